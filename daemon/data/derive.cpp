#include "data/derive.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace odt::data {

namespace {

std::string encode(Dtype dtype, std::uint8_t flags, std::uint32_t samples, std::uint32_t sample_len,
                   std::string_view labels, const std::vector<std::uint8_t>& data) {
  std::string out("ODTS", 4);
  const auto put32 = [&out](std::uint32_t v) { out.append(reinterpret_cast<char*>(&v), 4); };
  out.append({1, 0, static_cast<char>(dtype), static_cast<char>(flags)});
  put32(samples);
  put32(sample_len);
  out.append(labels);
  out.append((4 - out.size() % 4) % 4, '\0');
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  return out;
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size()};
}

// A dataset without classes has nothing a classifier could learn, and so on.
Status check_task(const Dataset& d, const OutputStage& out) {
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(
        d.outputs > 0 ? absl::StrCat("the dataset has ", d.outputs, " regression targets")
        : d.class_names.empty()
            ? std::string("the dataset has neither classes nor targets")
            : absl::StrCat("the dataset has ", d.class_names.size(), " classes"),
        "; the model ", what));
  };
  if (out.task == OutputStage::Task::kClasses &&
      (d.class_names.empty() || d.class_names.size() > out.outputs))
    return refuse(absl::StrCat("tells ", out.outputs, " apart"));
  if (out.task == OutputStage::Task::kTargets && d.outputs != out.outputs)
    return refuse(absl::StrCat("is a regression of ", out.outputs, " values"));
  return absl::OkStatus();
}

}  // namespace

Result<OutputStage> parse_output_stage(std::string_view manifest_json, const Dataset& d) {
  OutputStage out;
  try {
    const auto json = nlohmann::json::parse(manifest_json);
    const int task = json.value("task", 0);
    if (task < 0 || task > 2)
      return absl::InvalidArgumentError(absl::StrCat("manifest: task ", task, "; expected 0..2"));
    out.task = static_cast<OutputStage::Task>(task);
    out.outputs = json.value("n_classes", std::uint32_t{0});
    if (json.contains("targets")) {
      out.offset = json.at("targets").at("offset").get<std::vector<float>>();
      out.scale = json.at("targets").at("scale").get<std::vector<float>>();
    }
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: ", e.what()));
  }
  return output_stage(d, std::move(out));
}

Result<OutputStage> output_stage(const Dataset& d, OutputStage out) {
  ODT_TRY(check_task(d, out));
  if (out.task != OutputStage::Task::kTargets) return out;
  if (out.offset.size() == 1) out.offset.resize(out.outputs, out.offset[0]);
  if (out.scale.size() == 1) out.scale.resize(out.outputs, out.scale[0]);
  for (std::uint32_t i = 0; out.scale.size() < out.outputs && i < out.outputs; ++i) {
    const float lo = d.target_min[i], hi = d.target_max[i];
    out.offset.push_back(lo + (hi - lo) / 2);
    out.scale.push_back(hi > lo ? 200 / (hi - lo) : 1);
  }
  if (out.offset.size() != out.outputs || out.scale.size() != out.outputs)
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: targets: ", out.scale.size(), " scales; expected ", out.outputs));
  for (std::uint32_t i = 0; i < out.outputs; ++i)
    if (!std::isfinite(out.offset[i]) || !std::isfinite(out.scale[i]) || out.scale[i] == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("target ", i, ": its range has no finite offset and scale"));
  return out;
}

void output_scales(const InputStage& in, Dtype dtype, OutputStage& out) {
  out.offset = {0};
  out.scale = {1};
  if (!in.has_prequant()) return;
  out.offset.clear();
  out.scale.clear();
  for (std::size_t c = 0; c < in.offset.size(); ++c) {
    const float scale = std::ldexp(static_cast<float>(in.mult[c]), -in.k[c]);
    // y = floor((x + offset) * scale) for x from y / scale - offset to the next integer's.
    const float step = scale != 0 ? 1 / scale : 0, whole = std::copysign(1.0f, step);
    const float last = dtype == Dtype::kF32 ? 0 : std::abs(step) > 1 ? whole : step;
    const float middle = (step - last) / 2;
    out.offset.push_back(middle - in.offset[c]);
    out.scale.push_back(scale);
  }
  const auto alike = [](const std::vector<float>& v) {
    return std::all_of(v.begin(), v.end(), [&v](float x) { return x == v[0]; });
  };
  if (alike(out.offset) && alike(out.scale)) {
    out.offset.resize(1);
    out.scale.resize(1);
    return;
  }
  // Planes: each channel's for all of its values.
  const std::size_t channels = out.scale.size(), each = in.count() / channels;
  std::vector<float> offset, scale;
  for (std::size_t c = 0; c < channels; ++c) {
    offset.insert(offset.end(), each, out.offset[c]);
    scale.insert(scale.end(), each, out.scale[c]);
  }
  out.offset = std::move(offset);
  out.scale = std::move(scale);
}

std::int8_t quantize_target(const OutputStage& out, std::uint32_t i, float target) {
  const double y = std::floor((double{target} - out.offset[i]) * out.scale[i] + 0.5);
  return static_cast<std::int8_t>(std::clamp(y, -128.0, 127.0));
}

std::string encode_samples(Dtype dtype, std::uint32_t sample_len,
                           const std::vector<std::uint8_t>& labels,
                           const std::vector<std::uint8_t>& data) {
  return encode(dtype, 0, static_cast<std::uint32_t>(labels.size()), sample_len, bytes_of(labels),
                data);
}

std::string encode_target_samples(Dtype dtype, std::uint32_t sample_len, std::uint32_t samples,
                                  const std::vector<std::int8_t>& targets,
                                  const std::vector<std::uint8_t>& data) {
  return encode(dtype, 1, samples, sample_len, bytes_of(targets), data);
}

Result<DerivedBlobs> derive_samples(const Dataset& d, const InputStage& input,
                                    std::uint32_t n_classes) {
  return derive_samples(d, input, {OutputStage::Task::kClasses, n_classes, {}, {}});
}

Result<DerivedBlobs> derive_samples(const Dataset& d, const InputStage& input,
                                    const OutputStage& output) {
  ODT_TRY(check_task(d, output));
  DerivedBlobs blobs;
  std::string* const out[3] = {&blobs.train, &blobs.heldout, &blobs.test};
  for (const Split split : {Split::kTrain, Split::kHeldout, Split::kTest}) {
    const std::uint32_t first = d.first(split), n = d.count(split);
    if (n == 0) continue;
    std::vector<std::uint8_t> data;
    ODT_ASSIGN(data, quantize_samples(input, d, first, n));
    std::string& blob = *out[static_cast<int>(split)];
    if (output.task == OutputStage::Task::kTargets) {
      std::vector<std::int8_t> targets;
      for (std::uint32_t s = first; s < first + n; ++s)
        for (std::uint32_t i = 0; i < d.outputs; ++i)
          targets.push_back(quantize_target(output, i, d.targets[std::size_t{s} * d.outputs + i]));
      blob = encode_target_samples(input.dtype, d.sample_len(), n, targets, data);
    } else {
      const auto at = d.labels.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<std::uint8_t> labels(at, at + static_cast<std::ptrdiff_t>(n));
      blob = encode_samples(input.dtype, d.sample_len(), labels, data);
    }
  }
  std::string both(64, '\0');
  if (!blobs.train.empty()) std::memcpy(both.data(), sha256(blobs.train).bytes.data(), 32);
  if (!blobs.heldout.empty()) std::memcpy(both.data() + 32, sha256(blobs.heldout).bytes.data(), 32);
  blobs.sample_set_hash = sha256(both);
  return blobs;
}

}  // namespace odt::data

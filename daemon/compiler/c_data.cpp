// train_data.h and .c.
#include <algorithm>
#include <cmath>

#include "compiler/c_text.h"
#include "data/sampling.h"

namespace odt::compiler {
namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 23;

Status take(const data::Dataset& d, data::Split split, std::uint32_t seed, std::uint32_t limit,
            const std::string& file, const data::OutputStage& outputs, CSamples& out) {
  const std::uint32_t there = d.count(split), first = d.first(split), len = d.sample_len();
  out.n = limit == 0 ? there : std::min(limit, there);
  const auto order = data::shuffled(there, seed);
  for (std::uint32_t s = 0; s < out.n; ++s) {
    const std::uint32_t row = first + order[s];
    out.labels.push_back(static_cast<std::int8_t>(d.labels[row]));
    for (std::uint32_t i = 0; i < d.outputs && !outputs.scale.empty(); ++i)
      out.targets.push_back(
          data::quantize_target(outputs, i, d.targets[std::size_t{row} * d.outputs + i]));
    for (std::uint32_t i = 0; i < len; ++i) {
      const float v = d.value(row, i);
      if (!std::isfinite(v))
        return absl::InvalidArgumentError(absl::StrCat(
            file, ": value ", i, " of sample ", d.source_index[row], " is not a finite number"));
      out.inputs.push_back(v);
    }
  }
  return absl::OkStatus();
}

Status fits(const data::Dataset& d, const std::string& file, const Network& net) {
  const std::uint64_t len = count_of(net.input_shape);
  if (d.sample_len() != len)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", d.sample_len(), " values per sample; the model takes ", len));
  if (net.task == Task::kClassify && d.class_names.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has no classes; the model has ", net.n_classes()));
  for (std::size_t s = 0; s < d.labels.size() && net.task == Task::kClassify; ++s)
    if (d.labels[s] >= net.n_classes())
      return absl::InvalidArgumentError(absl::StrCat(file, ": label ", d.labels[s], " of sample ",
                                                     s, "; the model has ", net.n_classes(),
                                                     " classes"));
  const data::Dtype dtype = net.input_storage == Storage::kU8 ? data::Dtype::kU8 : data::Dtype::kS8;
  if (!net.prequant && d.dtype != dtype)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": the model has no PREQUANT block and takes ", data::dtype_name(dtype),
                     " values; the dataset has ", data::dtype_name(d.dtype)));
  return absl::OkStatus();
}

struct Part {
  const char* name;
  const CSamples* samples;
};

}  // namespace

Result<CData> c_data(const data::Dataset& d, const std::string& file, const Network& net,
                     std::uint32_t seed, const std::uint32_t (&limits)[3]) {
  CData out;
  // Of which kind the data is comes before its shape: what should be a target counts as an input.
  if (net.task == Task::kRegress) {
    const Calibration& c = net.calibration;
    auto outputs = data::output_stage(
        d, {data::OutputStage::Task::kTargets, net.n_classes(), c.target_offset, c.target_scale});
    if (!outputs.ok())
      return Status(outputs.status().code(), absl::StrCat(file, ": ", outputs.status().message()));
    out.outputs = *std::move(outputs);
  }
  ODT_TRY(fits(d, file, net));
  std::uint64_t samples = 0;
  for (int i = 0; i < 3; ++i)
    samples += limits[i] == 0 ? d.counts[i] : std::min(limits[i], d.counts[i]);
  if (samples * d.sample_len() > kMaxValues)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", samples, " samples of ", d.sample_len(), " values; at most ",
                     kMaxValues, " values become C: give --train, --val and --test"));
  ODT_TRY(take(d, data::Split::kTrain, seed, limits[0], file, out.outputs, out.train));
  ODT_TRY(take(d, data::Split::kHeldout, seed, limits[1], file, out.outputs, out.val));
  ODT_TRY(take(d, data::Split::kTest, seed, limits[2], file, out.outputs, out.test));
  if (out.train.n == 0) return absl::InvalidArgumentError(file + ": no training samples");
  out.source = d.source.empty() ? file : d.source;
  return out;
}

std::vector<CFile> write_c_data(const CData& data, const Network&) {
  const bool regression = !data.outputs.scale.empty();
  const Part parts[] = {{"TRAIN", &data.train}, {"VAL", &data.val}, {"TEST", &data.test}};
  std::string h =
      absl::StrCat("/* Samples: ", c_comment(data.source),
                   ". Written by odtc. */\n#ifndef TRAIN_DATA_H\n#define TRAIN_DATA_H\n\n"
                   "#include <stdint.h>\n\n#include \"integer_model_config.h\"\n\n");
  std::string c = "/* Written by odtc. */\n#include \"train_data.h\"\n";
  for (const Part& p : parts)
    absl::StrAppend(&h, "#define N_", p.name, "_SAMPLES ", p.samples->n, "\n");
  if (regression) {
    h += "\n/* What the targets stand for: target = output / TARGET_SCALE + TARGET_OFFSET. */\n"
         "extern const float TARGET_OFFSET[N_CLASSES];\nextern const float "
         "TARGET_SCALE[N_CLASSES];\n";
    absl::StrAppend(&c, "\n", c_array("const float TARGET_OFFSET", data.outputs.offset, 8),
                    c_array("const float TARGET_SCALE", data.outputs.scale, 8));
  }
  h += "\n/* Shuffled. A set without samples has one row of zeros, which counts nowhere. */\n";
  for (const Part& p : parts) {
    const std::string rows = absl::StrCat(std::max(p.samples->n, 1u));
    const std::string inputs =
        absl::StrCat("const float ", p.name, "_INPUTS[", rows, "][INPUT_SIZE]");
    const std::string wanted = regression ? absl::StrCat(p.name, "_TARGETS[", rows, "][N_CLASSES]")
                                          : absl::StrCat(p.name, "_LABELS[", rows, "]");
    absl::StrAppend(&h, "extern ", inputs, ";\nextern const int8_t ", wanted, ";\n");
    const std::size_t columns = p.samples->n == 0 ? 1 : p.samples->inputs.size() / p.samples->n;
    absl::StrAppend(&c, "\n", c_rows(inputs, p.samples->inputs, columns));
    if (regression) {
      std::vector<std::int8_t> targets = p.samples->targets;
      if (targets.empty()) targets.push_back(0);
      c += c_rows("const int8_t " + wanted, targets,
                  p.samples->n == 0 ? 1 : p.samples->targets.size() / p.samples->n);
      continue;
    }
    std::vector<std::int8_t> labels = p.samples->labels;
    if (labels.empty()) labels.push_back(0);
    c += c_array(absl::StrCat("const int8_t ", p.name, "_LABELS"), labels, 32);
  }
  return {{"train_data.h", h + "\n#endif\n"}, {"train_data.c", c}};
}

}  // namespace odt::compiler

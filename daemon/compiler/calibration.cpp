#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>

#include "compiler/layers.h"

// Metadata of our ONNX files.
namespace odt::compiler {
namespace {

bool read_targets(const std::string& text, std::size_t n, std::vector<std::int8_t>& out) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != n) return false;
  for (const auto& part : parts) {
    int v;
    if (!absl::SimpleAtoi(part, &v) || v < -128 || v > 127) return false;
    out.push_back(static_cast<std::int8_t>(v));
  }
  return true;
}

// "0.5,1e-3": one for each output, or one for all.
bool read_floats(const std::string& text, std::size_t n, std::vector<float>& out) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != n && parts.size() != 1) return false;
  for (const auto& part : parts) {
    float v;
    if (!absl::SimpleAtof(part, &v) || !std::isfinite(v)) return false;
    out.push_back(v);
  }
  return true;
}

Status read_number(const Graph& graph, const std::string& key, std::uint32_t limit,
                   std::uint32_t& out) {
  const auto it = graph.metadata.find(key);
  if (it != graph.metadata.end() && (!absl::SimpleAtoi(it->second, &out) || out > limit))
    return bad_metadata(graph, key, absl::StrCat("an integer in 0..", limit));
  return absl::OkStatus();
}

// Classifications: cross-entropy's scale and the targets of the squared error.
Status read_losses(const Graph& graph, double logit_scale, Network& net) {
  Calibration& c = net.calibration;
  const std::size_t n = net.n_classes();
  std::uint32_t scale = 0;
  ODT_TRY(read_number(graph, "odt.ce_scale", 65535, scale));
  if (scale == 0 && logit_scale > 0)
    scale = static_cast<std::uint32_t>(
        std::clamp(std::nearbyint(logit_scale * 1.4426950408889634 * 256), 1.0, 65535.0));
  c.ce_scale = static_cast<std::uint16_t>(scale);
  if (scale == 0)
    net.warnings.push_back(
        "no odt.ce_scale in the file: cross-entropy is not available, runs use MSE");
  const std::pair<const char*, std::vector<std::int8_t>*> targets[2] = {
      {"odt.target_correct", &c.target_correct}, {"odt.target_wrong", &c.target_wrong}};
  for (std::size_t t = 0; t < 2; ++t) {
    if (graph.metadata.contains(targets[t].first)) {
      if (!read_targets(graph.metadata.at(targets[t].first), n, *targets[t].second))
        return bad_metadata(graph, targets[t].first,
                            absl::StrCat(n, " integers in -128..127, one per class"));
      continue;
    }
    targets[t].second->assign(n, t == 0 ? 64 : -64);
    net.warnings.push_back(absl::StrCat(
        "no ", targets[t].first, " in the file: ", t == 0 ? "+64" : "-64", " for every class"));
  }
  return absl::OkStatus();
}

}  // namespace

Status read_target_scales(const Graph& graph, Network& net) {
  Calibration& c = net.calibration;
  const std::size_t n = net.n_classes();
  const auto offset = graph.metadata.find("odt.target_offset");
  const auto scale = graph.metadata.find("odt.target_scale");
  if (offset == graph.metadata.end() && scale == graph.metadata.end()) return absl::OkStatus();
  const std::string expected = absl::StrCat(n, " numbers, one for each output, or one");
  if (offset == graph.metadata.end() || !read_floats(offset->second, n, c.target_offset))
    return bad_metadata(graph, "odt.target_offset", expected);
  if (scale == graph.metadata.end() || !read_floats(scale->second, n, c.target_scale) ||
      std::count(c.target_scale.begin(), c.target_scale.end(), 0.0f) != 0)
    return bad_metadata(graph, "odt.target_scale", expected + ", not 0");
  c.target_offset.resize(n, c.target_offset[0]);
  c.target_scale.resize(n, c.target_scale[0]);
  return absl::OkStatus();
}

Status read_calibration(const Graph& graph, double logit_scale, Network& net) {
  Calibration& c = net.calibration;
  if (net.task == Task::kClassify) ODT_TRY(read_losses(graph, logit_scale, net));
  if (net.task == Task::kRegress) ODT_TRY(read_target_scales(graph, net));
  ODT_TRY(read_number(graph, "odt.src_correct", UINT32_MAX, c.src_correct));
  ODT_TRY(read_number(graph, "odt.src_total", UINT32_MAX, c.src_total));
  if (c.src_correct > c.src_total)
    return bad_metadata(graph, "odt.src_correct",
                        absl::StrCat("at most odt.src_total, ", c.src_total));
  if (c.src_total == 0 && net.task == Task::kClassify)
    net.warnings.push_back(
        "no odt.src_correct / odt.src_total in the file: accuracy on its own data is unknown");
  return absl::OkStatus();
}

Status read_input_storage(const Graph& graph, Network& net) {
  if (const auto it = graph.metadata.find("odt.input_dtype"); it != graph.metadata.end()) {
    if (it->second != "u8" && it->second != "i8")
      return bad_metadata(graph, "odt.input_dtype", "u8 or i8");
    net.input_storage = it->second == "u8" ? Storage::kU8 : Storage::kS8;
  } else {
    net.warnings.push_back("no PREQUANT block: samples are taken as int8 values as they are");
  }
  return absl::OkStatus();
}

Result<Task> read_task(const Graph& graph, std::optional<Task> asked,
                       const std::vector<std::int64_t>& output) {
  if (asked) return *asked;
  if (const auto it = graph.metadata.find("odt.task"); it != graph.metadata.end()) {
    if (it->second == "classify") return Task::kClassify;
    if (it->second == "regress") return Task::kRegress;
    if (it->second == "autoencode") return Task::kAutoencode;
    return bad_metadata(graph, "odt.task", "classify, regress or autoencode");
  }
  // Calibrated for cross-entropy: a classifier, even with as many classes as inputs.
  if (const auto it = graph.metadata.find("odt.ce_scale");
      it != graph.metadata.end() && it->second != "0")
    return Task::kClassify;
  std::int64_t outputs = 1;
  for (auto d : output) outputs *= d;
  if (outputs == 1) return Task::kRegress;
  return output == graph.input_dims ? Task::kAutoencode : Task::kClassify;
}

}  // namespace odt::compiler

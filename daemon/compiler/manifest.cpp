#include "compiler/manifest.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/ids.h"

namespace odt::compiler {
namespace {

using nlohmann::json;

const char* dtype_text(Storage storage) {
  return storage == Storage::kU8 ? "u8" : storage == Storage::kS8 ? "i8" : "i16";
}

json input_json(const Network& net) {
  json in = {
      {"shape", net.input_shape}, {"dtype", dtype_text(net.input_storage)}, {"prequant", nullptr}};
  if (net.arithmetic == Arithmetic::kDfp16) in["exponent"] = net.input_exponent;
  if (!net.prequant) return in;
  const Prequant& p = *net.prequant;
  in["prequant"] = {{"name", shown(p.name)}, {"offset", p.offset},  {"mult", p.mult}, {"k", p.k},
                    {"clip_lo", p.clip_lo},  {"clip_hi", p.clip_hi}};
  return in;
}

bool has_shift(const Layer& l) {
  return l.is_compute() || l.kind == LayerKind::kAvgPool || l.kind == LayerKind::kGap;
}

// Sums at 2^-20 of powers of two: float32 runtimes round the same number.
bool exact_sum(const Layer& l) {
  return std::all_of(l.offset.begin(), l.offset.end(),
                     [](std::int32_t m) { return m >= 0 && (m & (m - 1)) == 0; });
}

json layer_json(const Network& net, const Layer& l) {
  json j = {{"name", shown(l.name)},       {"kind", kind_name(l)},
            {"output_shape", l.out_shape}, {"weight_shape", l.weight_shape},
            {"weights", l.weights.size()}, {"trainable", l.trainable},
            {"macs", macs_of(l)},          {"inputs", {l.in0}}};
  if (l.in1 != kNoTensor) j["inputs"].push_back(l.in1);
  if (net.arithmetic == Arithmetic::kDfp16) {
    if (!l.is_compute()) return j;
    j["weights_exponent"] = l.e_w;
    j["offsets_exponent"] = l.e_b;
    return j;
  }
  if (has_shift(l) || l.kind == LayerKind::kAdd || l.kind == LayerKind::kConcat) {
    j["clip_lo"] = l.clip_lo;
    j["clip_hi"] = l.clip_hi;
  }
  if (l.kind == LayerKind::kAdd) j["float32_exact"] = exact_sum(l);
  if (!has_shift(l)) return j;
  const auto [k_min, k_max] = std::minmax_element(l.k.begin(), l.k.end());
  const auto mult_max = *std::max_element(l.mult.begin(), l.mult.end());
  const std::int64_t bound = accumulator_bound(net, l);
  j["k_out_min"] = *k_min;
  j["k_out_max"] = *k_max;
  j["accumulator_bound"] = bound;
  // |acc * mult| below 2^24: float32 runtimes give the same bits; sums must stay below 2^31.
  j["float32_exact"] = bound * mult_max < (std::int64_t{1} << 24);
  j["fits_32_bits"] = bound < (std::int64_t{1} << 31);
  return j;
}

json plan_json(const MemoryPlan& p) {
  return {{"weights_bytes", p.weights_bytes},
          {"best_bytes", p.best_bytes},
          {"activation_bytes", p.activation_bytes},
          {"gradient_bytes", p.gradient_bytes},
          {"total_bytes", p.total_bytes}};
}

json table_json(const model::RamPlan& t) {
  return {{"weights_k8", t.weights_k8}, {"weights_k15", t.weights_k16}, {"work_1", t.work_1},
          {"work_2", t.work_2},         {"work_4", t.work_4},           {"work_8", t.work_8},
          {"work_per_8", t.work_per_8}};
}

}  // namespace

std::uint64_t macs_of(const Layer& l) {
  if (!l.is_compute()) return 0;
  const std::uint64_t positions =
      l.kind == LayerKind::kConv ? std::uint64_t{l.out_shape[1]} * l.out_shape[2] : 1;
  return l.weights.size() * positions;
}

std::string op_name(const Layer& l) {
  static const char* const kNames[] = {"CONV2D", "LINEAR", "FLATTEN", "MAXPOOL", "AVGPOOL",
                                       "GAP",    "ADD",    "CONCAT",  "RESIZE"};
  return kNames[static_cast<int>(l.kind) - static_cast<int>(LayerKind::kConv)];
}

std::string kind_name(const Layer& l) { return op_name(l) + (l.relu ? "_RELU" : ""); }

std::int64_t accumulator_bound(const Network& net, const Layer& l) {
  const std::int64_t x = range_of_tensor(net, l.in0).largest();
  const std::size_t n = l.n_out();
  std::int64_t bound = 0;
  if (!l.is_compute()) {
    const std::int64_t window = l.kind == LayerKind::kGap
                                    ? std::int64_t{l.in_shape[1]} * l.in_shape[2]
                                    : std::int64_t{l.conv.k_h} * l.conv.k_w;
    for (auto o : l.offset) bound = std::max(bound, window * x + std::abs(std::int64_t{o}));
    return bound;
  }
  const std::size_t per_out = l.weights.size() / n;
  for (std::size_t o = 0; o < n; ++o) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < per_out; ++i)
      sum += std::abs(l.weights[l.kind == LayerKind::kConv ? o * per_out + i : i * n + o]);
    bound = std::max(bound, sum * x + std::abs(std::int64_t{l.offset[o]}));
  }
  return bound;
}

std::string write_manifest(const Network& net, const std::string& image, const std::string& onnx,
                           const MemoryPlan& k8, const MemoryPlan& k15, const model::RamPlan& table,
                           const Tail& tail) {
  json layers = json::array();
  std::uint32_t trainable = 0;
  for (const auto& l : net.layers) {
    layers.push_back(layer_json(net, l));
    trainable += l.trainable ? 1 : 0;
  }
  const Calibration& c = net.calibration;
  json manifest = {
      {"format", "odt-manifest-1"},
      {"name", net.name},
      {"model_hash", sha256(image).hex()},
      {"image_bytes", image.size()},
      {"onnx_hash", sha256(onnx).hex()},
      {"arithmetic", static_cast<int>(net.arithmetic)},
      {"task", static_cast<int>(net.task)},
      {"n_classes", net.n_classes()},
      {"trainable_layers", trainable},
      {"input", input_json(net)},
      {"layers", layers},
      {"ce_scale", c.ce_scale},
      {"target_correct", c.target_correct},
      {"target_wrong", c.target_wrong},
      {"source_accuracy", {{"correct", c.src_correct}, {"total", c.src_total}}},
      {"ram_k8", plan_json(k8)},
      {"ram_k15", plan_json(k15)},
      {"ram", table_json(table)},
      {"warnings", net.warnings},
  };
  if (!c.target_scale.empty())
    manifest["targets"] = {{"offset", c.target_offset}, {"scale", c.target_scale}};
  if (!tail.image.empty())
    manifest["tail"] = {{"image_hash", sha256(tail.image).hex()},
                        {"image_bytes", tail.image.size()},
                        {"sample_values", tail.values},
                        {"sample_bytes", tail.values * tail.value_bytes},
                        {"ram", table_json(tail.ram)}};
  return manifest.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace odt::compiler

#include "compiler/float_match.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "compiler/dfp.h"
#include "compiler/float_graph.h"
#include "compiler/layers.h"

namespace odt::compiler {
namespace {

constexpr std::int32_t kLeastExponent = -15, kMostExponent = 7;

// scale = mult * 2^-k with mult int16 and k in 0..31, as exact as it gets. A full scale of 2^15
// becomes 32767: nothing above fits into an int16 anyway.
bool split(double scale, std::int16_t& mult, std::uint8_t& k) {
  constexpr double kMost = 32767, kLeast = 1024;
  if (std::abs(scale) == 32768) scale = std::copysign(kMost, scale);
  bool found = false;
  for (int n = 0; n <= 31; ++n) {
    const double m = std::ldexp(scale, n);
    if (std::abs(m) > kMost) break;
    const bool exact = m == std::nearbyint(m) && m != 0;
    if (!exact && std::abs(m) < kLeast) continue;
    mult = static_cast<std::int16_t>(std::nearbyint(m));
    k = static_cast<std::uint8_t>(n);
    found = true;
    if (exact) break;
  }
  return found;
}

class FloatMatcher {
 public:
  FloatMatcher(const Graph& graph, const FloatInput& input, std::optional<Task> wanted)
      : graph_(graph), input_(input), task_(wanted) {}

  Result<Network> run() {
    ODT_TRY(input_type());
    const bool s16 = net_.input_storage == Storage::kS16;
    ODT_ASSIGN(float_, read_float_graph(graph_));
    const FloatGraph as_read = float_;
    ODT_TRY(fold_float_graph(graph_, s16, float_));
    if (s16 && !quantiser()) {  // its scales do not fit the quantiser's numbers
      float_ = as_read;
      ODT_TRY(fold_float_graph(graph_, false, float_));
      quantiser();
    }
    for (std::size_t n = 1; n < graph_.input_dims.size(); ++n)
      net_.input_shape.push_back(static_cast<std::uint32_t>(graph_.input_dims[n]));
    net_.arithmetic = Arithmetic::kDfp16;
    ODT_TRY(layers());
    ODT_TRY(task());
    ODT_TRY(accuracy());
    return std::move(net_);
  }

 private:
  Status input_type() {
    const auto dtype = graph_.metadata.find("odt.input_dtype");
    net_.input_storage = Storage::kS16;
    if (input_.dtype) {
      net_.input_storage = *input_.dtype;
    } else if (dtype != graph_.metadata.end()) {
      if (dtype->second == "u8")
        net_.input_storage = Storage::kU8;
      else if (dtype->second == "i8")
        net_.input_storage = Storage::kS8;
      else if (dtype->second != "s16")
        return bad_metadata(graph_, "odt.input_dtype", "u8, i8 or s16");
    }
    const bool s16 = net_.input_storage == Storage::kS16;
    std::int32_t exponent = s16 ? -12 : net_.input_storage == Storage::kU8 ? -8 : -7;
    if (input_.exponent) {
      exponent = *input_.exponent;
      if (exponent < kLeastExponent || exponent > kMostExponent)
        return absl::InvalidArgumentError(absl::StrCat("input exponent ", exponent, "; expected ",
                                                       kLeastExponent, "..", kMostExponent));
    } else if (const auto it = graph_.metadata.find("odt.input_exponent");
               it != graph_.metadata.end()) {
      if (!absl::SimpleAtoi(it->second, &exponent) || exponent < kLeastExponent ||
          exponent > kMostExponent)
        return bad_metadata(graph_, "odt.input_exponent",
                            absl::StrCat(kLeastExponent, "..", kMostExponent));
    } else {
      const double most = std::ldexp(s16                                  ? 32768
                                     : net_.input_storage == Storage::kU8 ? 256
                                                                          : 128,
                                     exponent);
      net_.warnings.push_back(
          absl::StrCat("no input exponent given (odt.input_exponent, "
                       "--input-exponent): ",
                       exponent, ", inputs within ", s16 ? "+-" : "", most));
    }
    net_.input_exponent = static_cast<std::int8_t>(exponent);
    return absl::OkStatus();
  }

  // y = floor((x + offset) * mult * 2^-k) = round((scale * x + shift) * 2^-e), by channel.
  bool quantiser() {
    std::vector<double> scale = float_.scale, shift = float_.shift;
    if (scale.empty()) {
      scale = {1};
      shift = {0};
    }
    Prequant p;
    p.name = "input";
    p.clip_lo = -32767;
    p.clip_hi = 32767;
    for (std::size_t c = 0; c < scale.size(); ++c) {
      const double unit = std::ldexp(scale[c], -net_.input_exponent);
      const double offset = shift[c] / scale[c] + 0.5 / unit;
      std::int16_t mult = 0;
      std::uint8_t k = 0;
      if (!split(unit, mult, k) || !(std::abs(offset) <= 1e6)) return false;
      p.mult.push_back(mult);
      p.k.push_back(k);
      p.offset.push_back(static_cast<float>(offset));
    }
    net_.prequant = std::move(p);
    return true;
  }

  // In front of an 8-bit input there is no quantiser: values are taken as they are.
  Status layers() {
    std::vector<std::uint16_t> tensor(float_.ops.size(), kNoTensor);
    const auto number = [&](int id) -> std::uint16_t {
      if (id == kFloatNone) return kNoTensor;
      return id == kFloatInput ? std::uint16_t{0} : tensor[static_cast<std::size_t>(id)];
    };
    for (std::size_t n = 0; n < float_.ops.size(); ++n) {
      const FloatOp& op = float_.ops[n];
      if (op.gone) continue;
      for (const double v : op.weights)
        if (!std::isfinite(v) || std::abs(v) > 1e30)
          return absl::InvalidArgumentError(where(graph_, *op.node) + "a weight is out of range");
      Layer l = layer(op);
      l.in0 = number(op.in0);
      l.in1 = number(op.in1);
      net_.layers.push_back(std::move(l));
      tensor[n] = static_cast<std::uint16_t>(net_.layers.size());
    }
    const auto fixed = std::count_if(net_.layers.begin(), net_.layers.end(),
                                     [](const Layer& l) { return l.fixed; });
    if (fixed > 0)
      net_.warnings.push_back(
          absl::StrCat("upper bounds (as ReLU6 has), and scales of vectors that no layer takes, "
                       "become ",
                       fixed,
                       " fixed layers (1x1 convolutions; on vectors dense ones with a diagonal): "
                       "Relu is cheaper, and takes fewer layers"));
    if (std::none_of(net_.layers.begin(), net_.layers.end(),
                     [](const Layer& l) { return l.can_train(); }))
      return absl::InvalidArgumentError(graph_.file + ": the graph has no Conv, MatMul or Gemm");
    return absl::OkStatus();
  }

  static LayerKind kind_of(FloatKind kind) {
    switch (kind) {
      case FloatKind::kLinear:
        return LayerKind::kLinear;
      case FloatKind::kMaxPool:
        return LayerKind::kMaxPool;
      case FloatKind::kAvgPool:
        return LayerKind::kAvgPool;
      case FloatKind::kGap:
        return LayerKind::kGap;
      case FloatKind::kAdd:
        return LayerKind::kAdd;
      case FloatKind::kConcat:
        return LayerKind::kConcat;
      case FloatKind::kResize:
        return LayerKind::kResize;
      case FloatKind::kFlatten:
        return LayerKind::kFlatten;
      default:
        return LayerKind::kConv;  // kAffine and kRelu are folded by now
    }
  }

  Layer layer(const FloatOp& op) const {
    Layer l;
    l.kind = kind_of(op.kind);
    l.name = op.node->name.empty() ? absl::StrCat(op.node->op, "_", op.node->index) : op.node->name;
    l.relu = op.relu;
    l.fixed = op.fixed;
    l.conv = op.geometry;
    l.in_shape = float_.shape_of(op.in0);
    l.out_shape = op.out;
    l.clip_lo = op.relu ? 0 : -32767;
    l.clip_hi = 32767;
    if (!l.is_compute()) return l;
    l.weight_shape = op.weight_shape;
    l.node = op.node->index;
    l.offset_node = op.offset_node;
    l.norm_node = op.norm_node;
    l.file_scale = op.file_scale;
    set_dfp16(op.weights, op.bias, l);
    return l;
  }

  Status task() {
    ODT_ASSIGN(net_.task, read_task(graph_, task_, float_.output_dims));
    const std::uint64_t n = net_.n_classes(), inputs = count_of(float_.input);
    if (net_.task == Task::kRegress) return target();
    if (net_.task == Task::kClassify && (n < 2 || n > 128))
      return absl::InvalidArgumentError(
          absl::StrCat(graph_.file, ": the output has ", n, " values; expected 2..128 classes"));
    if (net_.task == Task::kAutoencode && n != inputs)
      return absl::InvalidArgumentError(
          absl::StrCat(graph_.file, ": an autoencoder of ", inputs, " inputs and ", n, " outputs"));
    if (net_.task == Task::kAutoencode && net_.prequant && !float_.scale.empty())
      net_.warnings.push_back(
          "the graph normalises its input: the outputs are compared with the normalised input, and "
          "errors and values are told in units of the data by the same scale; a graph that turns "
          "its outputs back into units of the data must not (leave that step out of the file)");
    return absl::OkStatus();
  }

  // Targets are int8 at an exponent of their own.
  Status target() {
    std::int32_t exponent = -4;
    if (const auto it = graph_.metadata.find("odt.target_exponent"); it == graph_.metadata.end())
      net_.warnings.push_back("no odt.target_exponent in the file: -4, targets within +-8");
    else if (!absl::SimpleAtoi(it->second, &exponent) || exponent < -30 || exponent > 30)
      return bad_metadata(graph_, "odt.target_exponent", "-30..30");
    net_.target_exponent = static_cast<std::int8_t>(exponent);
    ODT_TRY(read_target_scales(graph_, net_));
    // The file's outputs are the targets themselves.
    if (graph_.metadata.contains("odt.target_exponent") && net_.calibration.target_scale.empty()) {
      net_.calibration.target_offset.assign(net_.n_classes(), 0);
      net_.calibration.target_scale.assign(net_.n_classes(), std::ldexp(1.0f, -exponent));
    }
    return absl::OkStatus();
  }

  Status accuracy() {
    const auto number = [&](const char* key, std::uint32_t& out) -> Status {
      const auto it = graph_.metadata.find(key);
      if (it != graph_.metadata.end() && !absl::SimpleAtoi(it->second, &out))
        return bad_metadata(graph_, key, "an integer");
      return absl::OkStatus();
    };
    Calibration& c = net_.calibration;
    ODT_TRY(number("odt.src_correct", c.src_correct));
    ODT_TRY(number("odt.src_total", c.src_total));
    if (c.src_correct > c.src_total)
      return bad_metadata(graph_, "odt.src_correct",
                          absl::StrCat("at most odt.src_total, ", c.src_total));
    if (c.src_total == 0)
      net_.warnings.push_back(
          "no odt.src_correct / odt.src_total in the file: accuracy on its own data is unknown");
    return absl::OkStatus();
  }

  const Graph& graph_;
  const FloatInput& input_;
  const std::optional<Task> task_;
  FloatGraph float_;
  Network net_;
};

}  // namespace

Result<Network> match_float(const Graph& graph, const FloatInput& input, std::optional<Task> task) {
  return FloatMatcher(graph, input, task).run();
}

}  // namespace odt::compiler

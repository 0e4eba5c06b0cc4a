#include "compiler/match.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>

#include "compiler/layers.h"
#include "compiler/oss.h"

namespace odt::compiler {
namespace {

using Dims = std::vector<std::int64_t>;

Shape per_sample(const Dims& dims) {
  Shape shape;
  for (std::size_t n = 1; n < dims.size(); ++n)
    shape.push_back(static_cast<std::uint32_t>(dims[n]));
  return shape;
}

template <typename T>
std::vector<T> repeated(const std::vector<T>& v, std::size_t n) {
  return v.size() == n ? v : std::vector<T>(n, v[0]);
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), chain_(graph), dims_(graph.input_dims) {
    net_.input_shape = per_sample(dims_);
  }

  Result<Network> run() {
    while (!chain_.done()) {
      const Node* node;
      ODT_ASSIGN(node, chain_.peek());
      ODT_TRY(step(*node));
    }
    if (std::none_of(net_.layers.begin(), net_.layers.end(),
                     [](const Layer& l) { return l.is_compute(); }))
      return absl::InvalidArgumentError(graph_.file + ": the graph has no Conv, MatMul or Gemm");
    connect_chain(net_);
    ODT_TRY(check_output());
    ODT_TRY(read_calibration(graph_, logit_scale_, net_));
    return std::move(net_);
  }

 private:
  bool at_input() const { return net_.layers.empty(); }

  Status step(const Node& node) {
    if (node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze") return reshape(node);
    if (node.op == "Add" && at_input() && !net_.prequant) return prequant(node);
    if (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm") return compute(node);
    if (node.op == "Mul" && !at_input() && graph_.output == node.outputs[0]) return dequant(node);
    const char* expected = at_input() ? "expected PREQUANT (Add), Conv, MatMul, Gemm, Reshape or "
                                        "Flatten at the input"
                                      : "expected Conv, MatMul, Gemm, Reshape or Flatten here, "
                                        "behind a finished block";
    return absl::UnimplementedError(absl::StrCat(
        where(graph_, node), "this operator is not supported; ", expected,
        "; supported blocks: PREQUANT (Add Mul Mul Floor Clip), Conv / MatMul / Gemm + Add Mul "
        "Mul Floor Clip [Relu] [Clip], Reshape, Flatten"));
  }

  Status prequant(const Node& node) {
    const std::string name = node.name.empty() ? "PREQUANT" : node.name;
    OssConstants oss;
    ODT_ASSIGN(oss, take_oss(chain_, Spread{dims_, true}, -32768, 32767, name));
    const std::size_t n = std::max({oss.offset.size(), oss.mult.size(), oss.k.size()});
    Prequant p;
    p.name = name;
    p.offset = repeated(oss.offset, n);
    for (auto m : repeated(oss.mult, n)) p.mult.push_back(static_cast<std::int16_t>(m));
    p.k = repeated(oss.k, n);
    p.clip_lo = oss.clip_lo;
    p.clip_hi = oss.clip_hi;
    if (storage_of(p.clip_lo, p.clip_hi) == Storage::kS16)
      return absl::InvalidArgumentError(absl::StrCat(where(graph_, *oss.clip), "PREQUANT clips to ",
                                                     p.clip_lo, "..", p.clip_hi,
                                                     "; expected within -128..127 or 0..255"));
    for (float o : p.offset)
      if (!(std::abs(o) <= 1e6f))
        return absl::InvalidArgumentError(
            absl::StrCat(where(graph_, *oss.add), "offset ", o, "; expected within +-1e6"));
    net_.input_storage = storage_of(p.clip_lo, p.clip_hi);
    net_.prequant = std::move(p);
    return absl::OkStatus();
  }

  Status reshape(const Node& node) {
    Dims to;
    ODT_ASSIGN(to, reshaped(graph_, node, dims_));
    const bool flattens = to.size() == 2 && dims_.size() > 2;
    if (!at_input() && to != dims_ && !flattens)
      return absl::UnimplementedError(
          absl::StrCat(where(graph_, node), "reshapes [", absl::StrJoin(dims_, ","), "] to [",
                       absl::StrJoin(to, ","), "]; behind a layer only flattening is supported"));
    if (flattens && !at_input()) {
      Layer layer;
      layer.kind = LayerKind::kFlatten;
      layer.name = node.name.empty() ? absl::StrCat("Flatten_", node.index) : node.name;
      layer.in_shape = per_sample(dims_);
      layer.out_shape = per_sample(to);
      net_.layers.push_back(std::move(layer));
    }
    dims_ = to;
    chain_.advance(node);
    return absl::OkStatus();
  }

  Status compute(const Node& node) {
    Layer layer;
    ODT_ASSIGN(layer, node.op == "Conv" ? read_conv(graph_, node, dims_)
                                        : read_linear(graph_, node, dims_));
    std::vector<double> bias(layer.offset.begin(), layer.offset.end());
    if (layer.name.empty()) layer.name = absl::StrCat(node.op, "_", node.index);
    chain_.advance(node);
    dims_ = {1};
    for (auto d : layer.out_shape) dims_.push_back(d);
    OssConstants oss;
    ODT_ASSIGN(oss, take_oss(chain_, Spread{dims_, false}, 1, 255, layer.name));
    const std::size_t n = layer.n_out();
    const auto offset = repeated(oss.offset, n);
    for (std::size_t i = 0; i < n; ++i) {
      // Exported offsets are mostly integral, at times off by a rounding error of float32.
      const double value = std::nearbyint(bias[i] + double{offset[i]});
      if (std::abs(value) > 2147483647.0)
        return absl::InvalidArgumentError(absl::StrCat(where(graph_, *oss.add), "offset ", value,
                                                       " of output ", i, " exceeds 32 bits"));
      layer.offset[i] = static_cast<std::int32_t>(value);
    }
    for (auto m : repeated(oss.mult, n)) layer.mult.push_back(static_cast<std::uint8_t>(m));
    layer.k = repeated(oss.k, n);
    layer.node = node.index;
    layer.offset_node = oss.add->index;
    layer.clip_lo = oss.clip_lo;
    layer.clip_hi = oss.clip_hi;
    ODT_TRY(take_relu(layer));
    net_.layers.push_back(std::move(layer));
    return absl::OkStatus();
  }

  // [Relu] [Clip] behind the block, folded into its clip.
  Status take_relu(Layer& layer) {
    const Node* relu;
    ODT_ASSIGN(relu, chain_.take_if("Relu"));
    if (relu != nullptr) {
      layer.relu = true;
      layer.clip_lo = std::max(layer.clip_lo, 0);
      layer.clip_hi = std::max(layer.clip_hi, 0);
    }
    const Node* clip;
    ODT_ASSIGN(clip, chain_.take_if("Clip"));
    if (clip == nullptr) return absl::OkStatus();
    std::int32_t lo, hi;
    ODT_TRY(clip_bounds(graph_, *clip, lo, hi));
    layer.clip_lo = std::clamp(layer.clip_lo, lo, hi);
    layer.clip_hi = std::clamp(layer.clip_hi, lo, hi);
    return absl::OkStatus();
  }

  // output_int=False: one more Mul that turns logits into real numbers. It decides nothing; its
  // scale tells what a logit step is worth.
  Status dequant(const Node& node) {
    const Tensor* t;
    ODT_ASSIGN(t, chain_.operand(node));
    if (t->size() != 1 || !(t->at(0) > 0))
      return absl::UnimplementedError(where(graph_, node) +
                                      "the output scale is not one positive number");
    logit_scale_ = t->at(0);
    chain_.advance(node);
    return absl::OkStatus();
  }

  Status check_output() {
    const Layer& last = net_.layers.back();
    const auto bad = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat(graph_.file, ": the last block '", shown(last.name), "' ", what));
    };
    if (!last.is_compute() || last.out_shape.size() != 1)
      return bad(absl::StrCat("has output [", absl::StrJoin(last.out_shape, ","),
                              "]; expected one logit per class (MatMul or Gemm at the end)"));
    if (last.out_shape[0] < 2 || last.out_shape[0] > 128)
      return bad(absl::StrCat("has ", last.out_shape[0],
                              " outputs; expected 2..128 classes (regression is not supported)"));
    if (last.clip_lo < -128 || last.clip_hi > 127)
      return bad(absl::StrCat("clips to ", last.clip_lo, "..", last.clip_hi,
                              "; logits are int8: expected within -128..127"));
    return absl::OkStatus();
  }

  const Graph& graph_;
  Chain chain_;
  Dims dims_;
  Network net_;
  double logit_scale_ = 0;
};

}  // namespace

Result<Network> match(const Graph& graph) { return Matcher(graph).run(); }

}  // namespace odt::compiler

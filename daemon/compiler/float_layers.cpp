#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/float_graph.h"
#include "compiler/geometry.h"

// Nodes with weights: Conv, MatMul, Gemm, BatchNormalization.
namespace odt::compiler {
namespace {

Status bad_layer(const Graph& graph, const Node& node, const std::string& what) {
  return absl::InvalidArgumentError(where(graph, node) + what);
}

// Constant input n, all of it finite.
Result<const Tensor*> constant_input(const Graph& graph, const Node& node, std::size_t n,
                                     const char* what) {
  const Tensor* t = node.inputs.size() > n ? graph.constant(node.inputs[n]) : nullptr;
  if (t == nullptr)
    return absl::UnimplementedError(
        absl::StrCat(where(graph, node), "its input ", n, " (", what, ") is not a constant"));
  for (std::size_t i = 0; i < t->size(); ++i)
    if (!std::isfinite(t->at(i)))
      return bad_layer(graph, node, absl::StrCat(what, " ", i, " is ", t->at(i)));
  return t;
}

Status read_bias_values(const Graph& graph, const Node& node, double beta, FloatOp& op) {
  const std::size_t n = op.out[0];
  op.bias.assign(n, 0);
  if (node.inputs.size() < 3 || node.inputs[2].empty()) return absl::OkStatus();
  const Tensor* t;
  ODT_ASSIGN(t, constant_input(graph, node, 2, "bias"));
  if (t->size() != n && t->size() != 1)
    return bad_layer(graph, node,
                     absl::StrCat("its bias has ", t->size(), " values; expected ", n));
  for (std::size_t i = 0; i < n; ++i) op.bias[i] = beta * t->at(t->size() == 1 ? 0 : i);
  return absl::OkStatus();
}

}  // namespace

Result<FloatOp> read_float_conv(const Graph& graph, const Node& node, const Shape& in,
                                std::size_t spatial) {
  const Tensor* w;
  ODT_ASSIGN(w, constant_input(graph, node, 1, "weight"));
  if (in.size() != 3 || w->dims.size() != spatial + 2 || w->size() == 0)
    return bad_layer(graph, node,
                     absl::StrCat("weights [", absl::StrJoin(w->dims, ","), "] on an input of [",
                                  absl::StrJoin(in, ","), "]"));
  const std::vector<std::int64_t> kernel(w->dims.begin() + 2, w->dims.end());
  Window window;
  ODT_ASSIGN(window, read_window(graph, node, in, kernel, spatial));
  const std::int64_t groups = window.geometry.groups, outputs = w->dims[0];
  if (outputs > 65535 || outputs % groups != 0 || w->dims[1] * groups != in[0])
    return bad_layer(graph, node,
                     absl::StrCat("weights [", absl::StrJoin(w->dims, ","), "] in ", groups,
                                  " groups do not fit ", in[0], " input channels"));
  FloatOp op;
  op.kind = FloatKind::kConv;
  op.geometry = window.geometry;
  op.out = {static_cast<std::uint32_t>(outputs), window.out_h, window.out_w};
  for (const auto d : w->dims) op.weight_shape.push_back(static_cast<std::uint32_t>(d));
  op.weight_shape.resize(4, 1);
  for (std::size_t n = 0; n < w->size(); ++n) op.weights.push_back(w->at(n));
  ODT_TRY(read_bias_values(graph, node, 1, op));
  return op;
}

Result<FloatOp> read_float_linear(const Graph& graph, const Node& node, const Shape& in) {
  const bool gemm = node.op == "Gemm";
  if (gemm && node.integer("transA", 0) != 0)
    return absl::UnimplementedError(where(graph, node) + "Gemm is supported with transA 0");
  const bool trans = gemm && node.integer("transB", 0) != 0;
  const double alpha = gemm ? double{node.real("alpha", 1)} : 1;
  const Tensor* w;
  ODT_ASSIGN(w, constant_input(graph, node, 1, "weight"));
  if (w->dims.size() != 2 || in.size() != 1)
    return absl::UnimplementedError(absl::StrCat(
        where(graph, node), "weights [", absl::StrJoin(w->dims, ","), "] on an input of [",
        absl::StrJoin(in, ","), "]; supported: [in,out] on [1,in] (flatten the input first)"));
  const std::int64_t inputs = w->dims[trans ? 1 : 0], outputs = w->dims[trans ? 0 : 1];
  if (inputs != in[0] || outputs < 1 || outputs > 65535)
    return bad_layer(graph, node,
                     absl::StrCat("weights ", inputs, " x ", outputs, " do not fit its input of ",
                                  in[0], " values"));
  FloatOp op;
  op.kind = FloatKind::kLinear;
  op.out = {static_cast<std::uint32_t>(outputs)};
  op.weight_shape = {static_cast<std::uint32_t>(inputs), static_cast<std::uint32_t>(outputs)};
  for (std::int64_t i = 0; i < inputs; ++i)
    for (std::int64_t o = 0; o < outputs; ++o)
      op.weights.push_back(
          alpha * w->at(static_cast<std::size_t>(trans ? o * inputs + i : i * outputs + o)));
  ODT_TRY(read_bias_values(graph, node, gemm ? double{node.real("beta", 1)} : 1, op));
  return op;
}

Result<FloatOp> read_batch_norm(const Graph& graph, const Node& node, const Shape& in) {
  if (node.integer("training_mode", 0) != 0)
    return absl::UnimplementedError(where(graph, node) +
                                    "training_mode 1; export the model in evaluation mode");
  static const char* const kParts[] = {"scale", "bias", "mean", "variance"};
  const Tensor* part[4];
  for (std::size_t n = 0; n < 4; ++n) {
    ODT_ASSIGN(part[n], constant_input(graph, node, n + 1, kParts[n]));
    if (part[n]->size() != in[0])
      return bad_layer(graph, node,
                       absl::StrCat(kParts[n], " of ", part[n]->size(), " values; its input has ",
                                    in[0], " channels"));
  }
  FloatOp op;
  op.kind = FloatKind::kAffine;
  op.out = in;
  for (std::size_t c = 0; c < in[0]; ++c) {
    const double variance = part[3]->at(c) + double{node.real("epsilon", 1e-5f)};
    if (!(variance > 0))
      return bad_layer(graph, node, absl::StrCat("variance ", c, " is ", part[3]->at(c)));
    op.weights.push_back(part[0]->at(c) / std::sqrt(variance));
    op.bias.push_back(part[1]->at(c) - part[2]->at(c) * op.weights[c]);
  }
  return op;
}

}  // namespace odt::compiler

#include "compiler/layers.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/geometry.h"

namespace odt::compiler {
namespace {

using Dims = std::vector<std::int64_t>;

Status bad(const Graph& graph, const Node& node, const std::string& what) {
  return absl::InvalidArgumentError(where(graph, node) + what);
}

Result<const Tensor*> weight_tensor(const Graph& graph, const Node& node, std::size_t rank) {
  const Tensor* t = node.inputs.size() > 1 ? graph.constant(node.inputs[1]) : nullptr;
  if (t == nullptr)
    return absl::UnimplementedError(where(graph, node) +
                                    "its second input is not a constant weight tensor");
  if (t->dims.size() != rank || t->size() == 0)
    return bad(graph, node,
               absl::StrCat("weights of shape [", absl::StrJoin(t->dims, ","), "]; expected ", rank,
                            " dimensions"));
  return t;
}

Status read_weight(const Graph& graph, const Node& node, const Tensor& t, std::size_t index,
                   std::vector<std::int16_t>& out) {
  const double v = t.at(index);
  if (!(v >= -128 && v <= 127) || v != std::nearbyint(v))
    return bad(graph, node,
               absl::StrCat("weight ", index, " is ", v,
                            "; expected an integer in -128..127 (is the file quantised?)"));
  out.push_back(static_cast<std::int16_t>(v));
  return absl::OkStatus();
}

Status read_bias(const Graph& graph, const Node& node, double beta, std::size_t n,
                 std::vector<std::int32_t>& out) {
  out.assign(n, 0);
  if (node.inputs.size() < 3 || node.inputs[2].empty()) return absl::OkStatus();
  const Tensor* t = graph.constant(node.inputs[2]);
  if (t == nullptr || (t->size() != n && t->size() != 1))
    return bad(graph, node, absl::StrCat("its bias is not a constant of ", n, " values"));
  for (std::size_t i = 0; i < n; ++i) {
    const double v = beta * t->at(t->size() == 1 ? 0 : i);
    if (!(std::abs(v) <= 2147483647.0) || v != std::nearbyint(v))
      return bad(graph, node, absl::StrCat("bias ", i, " is ", v, "; expected a 32-bit integer"));
    out[i] = static_cast<std::int32_t>(v);
  }
  return absl::OkStatus();
}

}  // namespace

Result<Layer> read_conv(const Graph& graph, const Node& node, const Dims& dims) {
  const std::size_t spatial = dims.size() - 2;
  if (dims.size() != 3 && dims.size() != 4)
    return bad(graph, node,
               absl::StrCat("its input is [", absl::StrJoin(dims, ","),
                            "]; expected [1,C,H,W] or [1,C,L]"));
  const Tensor* w;
  ODT_ASSIGN(w, weight_tensor(graph, node, dims.size()));
  for (auto d : w->dims)
    if (d < 1 || d > 65535) return bad(graph, node, absl::StrCat("weight dimension ", d));
  Layer layer;
  layer.kind = LayerKind::kConv;
  layer.name = node.name;
  for (std::size_t n = 1; n < 4; ++n)
    layer.in_shape.push_back(n < dims.size() ? static_cast<std::uint32_t>(dims[n]) : 1);
  Window window;
  ODT_ASSIGN(window, read_window(graph, node, layer.in_shape,
                                 Dims(w->dims.begin() + 2, w->dims.end()), spatial));
  layer.conv = window.geometry;
  const ConvGeometry& g = layer.conv;
  if (w->dims[0] % g.groups != 0 || w->dims[1] * g.groups != dims[1])
    return bad(graph, node,
               absl::StrCat("weights [", absl::StrJoin(w->dims, ","), "] in ", g.groups,
                            " groups do not fit ", dims[1], " input channels"));
  layer.out_shape = {static_cast<std::uint32_t>(w->dims[0]), window.out_h, window.out_w};
  for (auto d : w->dims) layer.weight_shape.push_back(static_cast<std::uint32_t>(d));
  layer.weight_shape.resize(4, 1);
  for (std::size_t n = 0; n < w->size(); ++n)
    ODT_TRY(read_weight(graph, node, *w, n, layer.weights));
  ODT_TRY(read_bias(graph, node, 1, layer.out_shape[0], layer.offset));
  return layer;
}

Result<Layer> read_linear(const Graph& graph, const Node& node, const Dims& dims) {
  const bool gemm = node.op == "Gemm";
  if (gemm && (node.real("alpha", 1) != 1 || node.integer("transA", 0) != 0))
    return absl::UnimplementedError(where(graph, node) +
                                    "Gemm is supported with alpha 1, transA 0");
  const bool trans = gemm && node.integer("transB", 0) != 0;
  const Tensor* w;
  ODT_ASSIGN(w, weight_tensor(graph, node, 2));
  const std::int64_t in = w->dims[trans ? 1 : 0], out = w->dims[trans ? 0 : 1];
  std::int64_t count = 1;
  for (auto d : dims) count *= d;
  if (in != count || dims.back() != in || out < 1 || out > 65535 || in > 65535)
    return bad(graph, node,
               absl::StrCat("weights ", in, " x ", out, " do not fit its input [",
                            absl::StrJoin(dims, ","), "]"));
  Layer layer;
  layer.kind = LayerKind::kLinear;
  layer.name = node.name;
  layer.in_shape = {static_cast<std::uint32_t>(in)};
  layer.out_shape = {static_cast<std::uint32_t>(out)};
  layer.weight_shape = {static_cast<std::uint32_t>(in), static_cast<std::uint32_t>(out)};
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t o = 0; o < out; ++o)
      ODT_TRY(read_weight(graph, node, *w,
                          static_cast<std::size_t>(trans ? o * in + i : i * out + o),
                          layer.weights));
  ODT_TRY(read_bias(graph, node, gemm ? node.real("beta", 1) : 1, static_cast<std::size_t>(out),
                    layer.offset));
  return layer;
}

}  // namespace odt::compiler

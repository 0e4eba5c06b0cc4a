#include "compiler/layers.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>

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

Status read_geometry(const Graph& graph, const Node& node, ConvGeometry& g) {
  if (const auto it = node.attributes.find("auto_pad");
      it != node.attributes.end() && it->second.s != "NOTSET" && it->second.s != "VALID")
    return absl::UnimplementedError(absl::StrCat(where(graph, node), "auto_pad ",
                                                 shown(it->second.s),
                                                 " is not supported; export explicit pads"));
  const auto pair = [&](const std::string& key, std::int64_t lo, std::uint16_t& a,
                        std::uint16_t& b) -> Status {
    const auto v = node.ints(key);
    if (v.empty()) return absl::OkStatus();
    if (v.size() != 2 || v[0] < lo || v[1] < lo || v[0] > 255 || v[1] > 255)
      return bad(graph, node,
                 absl::StrCat(key, " [", absl::StrJoin(v, ","), "]; expected two values in ", lo,
                              "..255"));
    a = static_cast<std::uint16_t>(v[0]);
    b = static_cast<std::uint16_t>(v[1]);
    return absl::OkStatus();
  };
  ODT_TRY(pair("strides", 1, g.stride_h, g.stride_w));
  ODT_TRY(pair("dilations", 1, g.dil_h, g.dil_w));
  if (const auto pads = node.ints("pads"); !pads.empty()) {
    if (pads.size() != 4 || *std::min_element(pads.begin(), pads.end()) < 0 ||
        *std::max_element(pads.begin(), pads.end()) > 255)
      return bad(
          graph, node,
          absl::StrCat("pads [", absl::StrJoin(pads, ","), "]; expected [t,l,b,r] in 0..255"));
    std::uint16_t* const to[4] = {&g.pad_t, &g.pad_l, &g.pad_b, &g.pad_r};
    for (std::size_t n = 0; n < 4; ++n) *to[n] = static_cast<std::uint16_t>(pads[n]);
  }
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups > 65535)
    return bad(graph, node, absl::StrCat("group ", groups, "; expected 1..65535"));
  g.groups = static_cast<std::uint16_t>(groups);
  return absl::OkStatus();
}

}  // namespace

Result<Layer> read_conv(const Graph& graph, const Node& node, const Dims& dims) {
  if (dims.size() != 4)
    return bad(graph, node,
               absl::StrCat("its input is [", absl::StrJoin(dims, ","), "]; expected [1,C,H,W]"));
  const Tensor* w;
  ODT_ASSIGN(w, weight_tensor(graph, node, 4));
  Layer layer;
  layer.kind = LayerKind::kConv;
  layer.name = node.name;
  ConvGeometry& g = layer.conv;
  ODT_TRY(read_geometry(graph, node, g));
  if (w->dims[0] % g.groups != 0 || w->dims[1] * g.groups != dims[1])
    return bad(graph, node,
               absl::StrCat("weights [", absl::StrJoin(w->dims, ","), "] in ", g.groups,
                            " groups do not fit ", dims[1], " input channels"));
  for (auto d : w->dims)
    if (d < 1 || d > 65535) return bad(graph, node, absl::StrCat("weight dimension ", d));
  if (w->dims[2] > 255 || w->dims[3] > 255)
    return bad(
        graph, node,
        absl::StrCat("kernel ", w->dims[2], "x", w->dims[3], "; at most 255 in each direction"));
  g.k_h = static_cast<std::uint16_t>(w->dims[2]);
  g.k_w = static_cast<std::uint16_t>(w->dims[3]);
  const std::int64_t span_h = dims[2] + g.pad_t + g.pad_b - (g.dil_h * (g.k_h - 1) + 1);
  const std::int64_t span_w = dims[3] + g.pad_l + g.pad_r - (g.dil_w * (g.k_w - 1) + 1);
  if (span_h < 0 || span_w < 0)
    return bad(graph, node,
               absl::StrCat("its kernel is larger than the padded input [",
                            absl::StrJoin(dims, ","), "]"));
  for (std::size_t n = 1; n < 4; ++n) layer.in_shape.push_back(static_cast<std::uint32_t>(dims[n]));
  layer.out_shape = {static_cast<std::uint32_t>(w->dims[0]),
                     static_cast<std::uint32_t>(span_h / g.stride_h + 1),
                     static_cast<std::uint32_t>(span_w / g.stride_w + 1)};
  for (auto d : w->dims) layer.weight_shape.push_back(static_cast<std::uint32_t>(d));
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

Result<Dims> reshaped(const Graph& graph, const Node& node, const Dims& dims) {
  std::int64_t count = 1;
  for (auto d : dims) count *= d;
  if (node.op == "Flatten") {
    const std::int64_t axis = node.integer("axis", 1);
    if (axis != 1)
      return absl::UnimplementedError(
          absl::StrCat(where(graph, node), "Flatten with axis ", axis, "; supported: 1"));
    return Dims{1, count};
  }
  if (node.op == "Squeeze") {
    Dims to = {1};
    for (std::size_t n = 1; n < dims.size(); ++n)
      if (dims[n] != 1) to.push_back(dims[n]);
    if (to.size() > 2)
      return absl::UnimplementedError(where(graph, node) +
                                      "Squeeze that leaves several dimensions");
    return Dims{1, count};
  }
  const Tensor* t = node.inputs.size() > 1 ? graph.constant(node.inputs[1]) : nullptr;
  if (t == nullptr || !t->integer)
    return absl::UnimplementedError(where(graph, node) + "its target shape is not constant");
  Dims to = t->i;
  std::int64_t known = 1;
  int open = 0;
  for (std::size_t n = 0; n < to.size(); ++n) {
    if (to[n] == 0 && n < dims.size()) to[n] = dims[n];
    if (to[n] == -1) {
      ++open;
      continue;
    }
    if (to[n] < 1 || to[n] > count) return bad(graph, node, "its target shape does not fit");
    known *= to[n];
    if (known > count) return bad(graph, node, "its target shape does not fit");
  }
  for (auto& d : to)
    if (d == -1) d = count / known;
  if (open > 1 || (open == 0 && known != count) || count % known != 0)
    return bad(graph, node, "its target shape does not fit");
  if ((to.size() != 2 && to.size() != 4) || to[0] != 1)
    return absl::UnimplementedError(absl::StrCat(where(graph, node), "target shape [",
                                                 absl::StrJoin(to, ","),
                                                 "]; supported: [1,N] and [1,C,H,W]"));
  return to;
}

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

Status bad_key(const Graph& graph, const std::string& key, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(graph.file, ": metadata ", key, " is '",
                                                 shown(graph.metadata.at(key)), "'; expected ",
                                                 expected));
}

}  // namespace

Status read_calibration(const Graph& graph, double logit_scale, Network& net) {
  Calibration& c = net.calibration;
  const std::size_t n = net.layers.back().out_shape[0];
  const auto number = [&](const std::string& key, std::uint32_t limit,
                          std::uint32_t& out) -> Status {
    const auto it = graph.metadata.find(key);
    if (it != graph.metadata.end() && (!absl::SimpleAtoi(it->second, &out) || out > limit))
      return bad_key(graph, key, absl::StrCat("an integer in 0..", limit));
    return absl::OkStatus();
  };
  std::uint32_t scale = 0;
  ODT_TRY(number("odt.ce_scale", 65535, scale));
  ODT_TRY(number("odt.src_correct", UINT32_MAX, c.src_correct));
  ODT_TRY(number("odt.src_total", UINT32_MAX, c.src_total));
  if (c.src_correct > c.src_total)
    return bad_key(graph, "odt.src_correct", absl::StrCat("at most odt.src_total, ", c.src_total));
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
        return bad_key(graph, targets[t].first,
                       absl::StrCat(n, " integers in -128..127, one per class"));
      continue;
    }
    targets[t].second->assign(n, t == 0 ? 64 : -64);
    net.warnings.push_back(absl::StrCat(
        "no ", targets[t].first, " in the file: ", t == 0 ? "+64" : "-64", " for every class"));
  }
  if (c.src_total == 0)
    net.warnings.push_back(
        "no odt.src_correct / odt.src_total in the file: accuracy on its own data is unknown");
  if (net.prequant) return absl::OkStatus();
  if (const auto it = graph.metadata.find("odt.input_dtype"); it != graph.metadata.end()) {
    if (it->second != "u8" && it->second != "i8")
      return bad_key(graph, "odt.input_dtype", "u8 or i8");
    net.input_storage = it->second == "u8" ? Storage::kU8 : Storage::kS8;
  } else {
    net.warnings.push_back("no PREQUANT block: samples are taken as int8 values as they are");
  }
  return absl::OkStatus();
}

}  // namespace odt::compiler

#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/matcher.h"

// Blocks that end in Add Mul Mul Floor Clip [Relu] [Clip] behind weights, or alone.
namespace odt::compiler {
namespace {

template <typename T>
std::vector<T> repeated(const std::vector<T>& v, std::size_t n) {
  return v.size() == n ? v : std::vector<T>(n, v[0]);
}

// An offset that float32 rounded off an integer is that integer; one that was meant to lie between
// two of them adds nothing to a floor that the lower one does not.
std::int64_t integer_offset(double value) {
  const double nearest = std::nearbyint(value);
  const double tolerance = std::max(1.0 / 64, std::abs(value) * 1e-6);
  return static_cast<std::int64_t>(std::abs(value - nearest) <= tolerance ? nearest
                                                                          : std::floor(value));
}

}  // namespace

Status Matcher::set_oss(const OssConstants& oss, std::size_t n, const std::vector<double>& bias,
                        Layer& layer) {
  for (const auto size : {oss.offset.size(), oss.mult.size(), oss.k.size()})
    if (size != 1 && size != n)
      return bad(*oss.clip, absl::StrCat("its block has constants of ", size,
                                         " values; expected 1 or ", n, " (one per output)"));
  const auto offset = repeated(oss.offset, n);
  layer.offset.resize(n);
  for (auto m : repeated(oss.mult, n)) layer.mult.push_back(static_cast<std::uint8_t>(m));
  layer.k = repeated(oss.k, n);
  bool inexact = false;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = bias[i] + double{offset[i]};
    if (std::abs(value) > 2147483647.0)
      return bad(oss.add != nullptr ? *oss.add : *oss.clip,
                 absl::StrCat("offset ", value, " of output ", i, " exceeds 32 bits"));
    layer.offset[i] = static_cast<std::int32_t>(integer_offset(value));
    inexact = inexact || (value - layer.offset[i]) * layer.mult[i] >= 1;
  }
  if (inexact)
    net_.warnings.push_back(absl::StrCat("layer '", shown(layer.name),
                                         "' has offsets between integers: may differ from the file "
                                         "in the last bit"));
  layer.clip_lo = oss.clip_lo;
  layer.clip_hi = oss.clip_hi;
  return absl::OkStatus();
}

// [Relu] [Clip] behind a block, folded into its clip; so is a Clip that cuts off what is negative.
Status Matcher::take_tail(Chain& chain, Layer& layer, bool relu_flag) {
  while (const Node* next = chain.look({"Relu", "Clip"})) {
    std::int32_t lo = 0, hi = 32767;
    if (next->op == "Clip") ODT_TRY(clip_bounds(graph_, *next, lo, hi));
    const bool cuts = lo >= 0 && layer.clip_lo < 0;
    if (!relu_flag && cuts && next->op == "Relu") break;  // a layer of its own: it has a mask
    layer.relu = layer.relu || (relu_flag && (cuts || next->op == "Relu"));
    layer.clip_lo = std::clamp(layer.clip_lo, lo, hi);
    layer.clip_hi = std::clamp(layer.clip_hi, lo, hi);
    chain.take_if({"Relu", "Clip"});
  }
  return absl::OkStatus();
}

// A Pad in front becomes padding of the window.
Status Matcher::take_padding(const Node& node, const Value& x, Layer& layer) const {
  if (!x.padded()) return absl::OkStatus();
  std::uint16_t* const pads[4] = {&layer.conv.pad_t, &layer.conv.pad_l, &layer.conv.pad_b,
                                  &layer.conv.pad_r};
  for (std::size_t n = 0; n < 4; ++n) {
    if (*pads[n] + x.pad[n] > 255)
      return bad(node, absl::StrCat("padding ", *pads[n] + x.pad[n], "; at most 255"));
    *pads[n] = static_cast<std::uint16_t>(*pads[n] + x.pad[n]);
  }
  for (std::size_t n = 0; n < 2; ++n)
    layer.in_shape[n + 1] -= static_cast<std::uint32_t>(x.pad[n] + x.pad[n + 2]);
  return absl::OkStatus();
}

Status Matcher::compute(const Node& node) {
  const bool conv = node.op == "Conv";
  if (node.inputs.size() < 2) return bad(node, "it has no weights");
  Value x;
  ODT_ASSIGN(x, use(node, node.inputs[0], false, conv));
  Layer layer;
  ODT_ASSIGN(layer, conv ? read_conv(graph_, node, x.dims) : read_linear(graph_, node, x.dims));
  if (conv) ODT_TRY(take_padding(node, x, layer));
  if (!conv && shape_of(x.dims).size() != 1)  // [1,1,1,N] as it is
    x = flattened(Value{x.tensor, {1, layer.in_shape[0]}});
  layer.in0 = x.tensor;
  layer.node = node.index;
  layer.name = name_of(node);
  Chain chain(graph_, node.outputs[0]);
  OssConstants oss;
  ODT_ASSIGN(oss, take_oss(chain, !conv, 1, 255, layer.name));
  ODT_TRY(set_oss(oss, layer.n_out(), {layer.offset.begin(), layer.offset.end()}, layer));
  if (oss.add != nullptr) layer.offset_node = oss.add->index;
  ODT_TRY(take_tail(chain, layer, true));
  const Range range{layer.clip_lo, layer.clip_hi};
  finish_block(chain, emit(std::move(layer), range));
  return absl::OkStatus();
}

// Add Mul Mul Floor Clip behind something without weights (a BatchNormalization behind a sum or
// concat): an average over windows of one value.
Status Matcher::requantise(const Node& node) {
  Value x;
  ODT_ASSIGN(x, use(node, data_operand(graph_, node)));
  if (const auto it = whole_.find(x.tensor); it != whole_.end()) x.tensor = it->second;
  Layer layer;
  layer.kind = LayerKind::kAvgPool;
  layer.name = name_of(node);
  layer.in0 = x.tensor;
  layer.in_shape = layer.out_shape = x.tensor == 0 ? shape_of(x.dims) : tensor_shape(x.tensor);
  if (layer.in_shape.size() != 3)
    return unsupported(node, absl::StrCat("constants behind [", absl::StrJoin(x.dims, ","),
                                          "] without a Conv, MatMul or Gemm in front"));
  Chain chain(graph_, node);
  OssConstants oss;
  ODT_ASSIGN(oss, take_oss(chain, false, 1, 255, layer.name));
  const std::size_t n = std::max({oss.offset.size(), oss.mult.size(), oss.k.size()});
  if (n != 1 && n != layer.in_shape[0])
    return unsupported(
        node, absl::StrCat("constants of ", n, " values behind ", layer.in_shape[0], " channels"));
  ODT_TRY(set_oss(oss, n, std::vector<double>(n, 0), layer));
  ODT_TRY(take_tail(chain, layer, false));
  const Range range{layer.clip_lo, layer.clip_hi};
  finish_block(chain, emit(std::move(layer), range));
  return absl::OkStatus();
}

}  // namespace odt::compiler

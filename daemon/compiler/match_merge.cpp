#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/matcher.h"

// Sums and concats of branches.
namespace odt::compiler {
namespace {

constexpr double kUnit = 1 << 20;  // rule 1.2

// Rounded half to even; 0: none that fits.
std::int32_t multiplier(double scale) {
  const double m = std::nearbyint(scale * kUnit);
  return m >= 1 && m <= 2147483647.0 ? static_cast<std::int32_t>(m) : 0;
}

std::int64_t round_half_even(std::int64_t v, int shift) {
  const std::int64_t unit = std::int64_t{1} << shift, q = v >> shift, rest = v & (unit - 1);
  return q + (rest > unit / 2 || (rest == unit / 2 && (q & 1) != 0) ? 1 : 0);
}

std::int64_t sum_of(const Layer& l, std::int64_t a, std::int64_t b) {
  return round_half_even(a * l.offset[0] + b * l.offset[1], 20);
}

}  // namespace

// Rule 1.2: all pairs of inputs against the file's nodes in float32.
void Matcher::report_differences(const Layer& layer, double a, double b, double s) {
  const bool one = layer.offset[1] == 0;  // a tensor alone, scaled
  const Range x = ranges_[layer.in0], y = one ? Range{0, 0} : ranges_[layer.in1];
  const std::int64_t pairs = std::int64_t{x.hi - x.lo + 1} * (y.hi - y.lo + 1);
  std::int64_t differ = 0;
  const auto fa = static_cast<float>(a), fb = static_cast<float>(b), fs = static_cast<float>(s);
  for (std::int32_t i = x.lo; i <= x.hi && pairs <= (1 << 20); ++i) {
    const float p = fa == 1.0f ? static_cast<float>(i) : static_cast<float>(i) * fa;
    for (std::int32_t j = y.lo; j <= y.hi; ++j) {
      const float q = fb == 1.0f ? static_cast<float>(j) : static_cast<float>(j) * fb;
      const volatile float sum = p + q;  // rounded as a runtime does
      const auto file = static_cast<std::int64_t>(std::nearbyint(sum * fs));
      const auto clipped = [&](std::int64_t v) {
        return std::clamp<std::int64_t>(v, layer.clip_lo, layer.clip_hi);
      };
      differ += clipped(file) != clipped(sum_of(layer, i, j)) ? 1 : 0;
    }
  }
  if (pairs <= (1 << 20) && differ == 0) return;
  net_.warnings.push_back(absl::StrCat(
      one ? "rescaling '" : "residual add '", shown(layer.name),
      one ? "': may differ from the file in the last bit ("
          : "' with unequal scales: may differ from the file in the last bit (",
      pairs <= (1 << 20)
          ? absl::StrCat("it does for ", differ, " of ", pairs, one ? " values" : " pairs")
          : std::string("pairs not counted"),
      ")"));
}

// [Mul] [Mul] Add [Mul] [Round] [Relu] [Clip].
Status Matcher::add(const Node& node) {
  if (node.inputs.size() != 2) return bad(node, "expected two inputs");
  Value x, y;
  ODT_ASSIGN(x, use(node, node.inputs[0], true));
  ODT_ASSIGN(y, use(node, node.inputs[1], true));
  if (x.dims != y.dims)
    return unsupported(node, absl::StrCat("it adds [", absl::StrJoin(x.dims, ","), "] and [",
                                          absl::StrJoin(y.dims, ","), "]; expected equal shapes"));
  Layer layer;
  layer.kind = LayerKind::kAdd;
  layer.name = name_of(node);
  layer.in0 = x.tensor;
  layer.in1 = y.tensor;
  layer.in_shape = layer.out_shape = shape_of(x.dims);
  Chain chain(graph_, node.outputs[0]);
  double s = 1;
  bool early_relu = false;
  while (const Node* next = chain.look({"Mul", "Div", "Relu"})) {
    if (next->op == "Relu") {
      if (x.scale == 1 && y.scale == 1 && s == 1) break;
      early_relu = true;
    } else {
      const double more = positive_scale(graph_, *next);
      if (more == 0 || leads_to_floor(graph_, next->outputs[0])) break;
      s *= more;
    }
    chain.take_if({"Mul", "Div", "Relu"});
  }
  const bool rounds = chain.take_if({"Round"}) != nullptr;
  double left = 1;  // scale that the result keeps: that of logits, or of the next sum
  double a = x.scale * s, b = y.scale * s;
  if (!rounds && (a != 1 || b != 1)) {
    if (std::abs(a - b) > 1e-6 * a)
      return unsupported(node,
                         absl::StrCat("it adds values scaled by ", x.scale, " and ", y.scale,
                                      " and no Round follows; expected Mul Mul Add Mul Round"));
    left = a;
    a = b = 1;
  }
  layer.offset = {multiplier(a), multiplier(b)};
  if (layer.offset[0] == 0 || layer.offset[1] == 0)
    return bad(node, absl::StrCat("scales ", a, " and ", b, "; expected within 2^-20..2^11"));
  const Range p = ranges_[x.tensor], q = ranges_[y.tensor];
  const std::int64_t lo = sum_of(layer, p.lo, q.lo), hi = sum_of(layer, p.hi, q.hi);
  layer.clip_lo = static_cast<std::int32_t>(std::clamp<std::int64_t>(lo, -32768, 32767));
  layer.clip_hi = static_cast<std::int32_t>(std::clamp<std::int64_t>(hi, -32768, 32767));
  if (early_relu) {
    layer.relu = true;
    layer.clip_lo = std::max(layer.clip_lo, 0);
    layer.clip_hi = std::max(layer.clip_hi, 0);
  }
  if (left == 1) ODT_TRY(take_tail(chain, layer, true));
  if ((lo < -32768 && layer.clip_lo == -32768) || (hi > 32767 && layer.clip_hi == 32767))
    return unsupported(node, absl::StrCat("its sum lies in ", lo, "..", hi,
                                          ", beyond 16 bits, and no Clip follows"));
  if (layer.offset[0] != layer.offset[1] || layer.offset[0] != 1 << 20)
    report_differences(layer, x.scale, y.scale, s);
  const Range range{layer.clip_lo, layer.clip_hi};
  finish_block(chain, emit(std::move(layer), range), left);
  return absl::OkStatus();
}

// Mul Round [Relu] [Clip] of one tensor.
Status Matcher::rescale(const Node& node, const Value& x) {
  const std::int32_t m = multiplier(x.scale);
  if (m == 0) return bad(node, absl::StrCat("scale ", x.scale, "; expected within 2^-20..2^11"));
  Layer layer = clip_layer(name_of(*x.scaled_by), x.tensor, shape_of(x.dims), {}, false);
  layer.offset[0] = m;
  const Range from = ranges_[x.tensor];
  const std::int64_t lo = sum_of(layer, from.lo, 0), hi = sum_of(layer, from.hi, 0);
  if (lo < -32768 || hi > 32767)
    return unsupported(node, absl::StrCat("it rounds to ", lo, "..", hi, ", beyond 16 bits"));
  layer.clip_lo = static_cast<std::int32_t>(lo);
  layer.clip_hi = static_cast<std::int32_t>(hi);
  Chain chain(graph_, node.outputs[0]);
  ODT_TRY(take_tail(chain, layer, true));
  report_differences(layer, x.scale, 0, 1);
  const Range range{layer.clip_lo, layer.clip_hi};
  finish_block(chain, emit(std::move(layer), range));
  return absl::OkStatus();
}

Status Matcher::concat(const Node& node) {
  const auto out = graph_.dims.find(node.outputs[0]);
  if (out == graph_.dims.end() || node.inputs.size() > 64)
    return bad(node, "its inputs do not fit each other");
  const auto rank = static_cast<std::int64_t>(out->second.size());
  const std::int64_t axis = node.integer("axis", 1);
  if ((axis < 0 ? axis + rank : axis) != 1)
    return unsupported(node, absl::StrCat("axis ", axis,
                                          "; supported: 1 (channels, or values: flatten what it "
                                          "joins)"));
  Value sum;
  for (std::size_t n = 0; n < node.inputs.size(); ++n) {
    Value x;
    ODT_ASSIGN(x, use(node, node.inputs[n]));
    if (n == 0) {
      sum = x;
      continue;
    }
    Layer layer;
    layer.kind = LayerKind::kConcat;
    layer.name = name_of(node);
    if (n > 1) absl::StrAppend(&layer.name, "_", n);
    layer.in0 = sum.tensor;
    layer.in1 = x.tensor;
    layer.in_shape = shape_of(sum.dims);
    sum.dims[1] += x.dims[1];
    layer.out_shape = shape_of(sum.dims);
    const Range p = ranges_[layer.in0], q = ranges_[layer.in1];
    layer.clip_lo = std::min(p.lo, q.lo);
    layer.clip_hi = std::max(p.hi, q.hi);
    const Range range{layer.clip_lo, layer.clip_hi};
    sum.tensor = emit(std::move(layer), range);
  }
  Chain chain(graph_, node.outputs[0]);
  finish_block(chain, sum.tensor);
  return absl::OkStatus();
}

}  // namespace odt::compiler

#include "compiler/oss.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

namespace odt::compiler {
namespace {

constexpr char kSupported[] =
    "supported: PREQUANT (Add Mul Mul Floor Clip), Conv / MatMul / Gemm followed by Add Mul Mul "
    "Floor Clip [Relu] [Clip], Reshape, Flatten, Identity";

// Values of a per-tensor, per-channel or per-value constant. Empty: its shape is none of them.
std::vector<float> spread_values(const Tensor& t, const Spread& spread) {
  std::vector<float> out;
  const auto rank = spread.dims.size();
  bool per_channel = t.dims.size() <= rank, per_value = per_channel && spread.per_value;
  for (std::size_t n = 0; n < rank && per_channel; ++n) {
    const std::int64_t own = n + t.dims.size() < rank ? 1 : t.dims[n + t.dims.size() - rank];
    if (own != 1 && (n != 1 || own != spread.dims[1])) per_channel = false;
    if (own != spread.dims[n]) per_value = false;
  }
  if (t.size() != 1 && !per_channel && !per_value) return out;
  for (std::size_t n = 0; n < t.size(); ++n) out.push_back(static_cast<float>(t.at(n)));
  return out;
}

bool all_integer(const std::vector<float>& v) {
  for (float x : v)
    if (x != std::nearbyint(x)) return false;
  return true;
}

bool all_power_of_two(const std::vector<float>& v) {
  for (float x : v) {
    int e;
    if (!(x > 0) || std::frexp(x, &e) != 0.5f || e > 1 || e < -30) return false;
  }
  return true;
}

float value_at(const std::vector<float>& v, std::size_t n) { return v.size() == 1 ? v[0] : v[n]; }

// scale = mult * 2^-k with the smallest k.
bool split_scale(double scale, std::int32_t lo, std::int32_t hi, std::int32_t& mult,
                 std::uint8_t& k) {
  for (int n = 0; n <= 31; ++n) {
    const double m = std::ldexp(scale, n);
    if (m < std::min(lo, 0) || m > hi) return false;
    if (m == std::nearbyint(m) && m != 0 && m >= lo) {
      mult = static_cast<std::int32_t>(m);
      k = static_cast<std::uint8_t>(n);
      return true;
    }
  }
  return false;
}

Status set_scales(const std::vector<float>& a, const std::vector<float>& b, std::int32_t lo,
                  std::int32_t hi, OssConstants& out) {
  const std::vector<float>* mult = &a;
  const std::vector<float>* shift = &b;
  if (!all_power_of_two(b) && all_power_of_two(a)) std::swap(mult, shift);
  const bool as_written = all_integer(*mult) && all_power_of_two(*shift);
  const std::size_t n = std::max(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t m = 0;
    std::uint8_t k = 0;
    const float x = value_at(*mult, i), y = value_at(*shift, i);
    if (as_written && x >= static_cast<float>(lo) && x <= static_cast<float>(hi)) {
      m = static_cast<std::int32_t>(x);
      k = static_cast<std::uint8_t>(-std::ilogb(y));
    } else if (!split_scale(double{x} * double{y}, lo, hi, m, k)) {
      return absl::InvalidArgumentError(absl::StrCat("scale ", x, " * ", y, " of output ", i,
                                                     " is not (integer in ", lo, "..", hi,
                                                     ") * 2^-k with k in 0..31"));
    }
    out.mult.push_back(m);
    out.k.push_back(k);
  }
  return absl::OkStatus();
}

}  // namespace

Result<const Node*> Chain::peek() const {
  const auto next = graph_.consumers(at_);
  if (next.size() == 1) return next[0];
  if (next.empty())
    return absl::InvalidArgumentError(absl::StrCat(graph_.file, ": tensor '", shown(at_),
                                                   "' is read by no node and is not the output"));
  return absl::UnimplementedError(absl::StrCat(where(graph_, *next[1]), "tensor '", shown(at_),
                                               "' feeds ", next.size(),
                                               " nodes; branches are not supported; ", kSupported));
}

Result<const Node*> Chain::take_if(const std::string& op) {
  if (done()) return nullptr;
  const Node* node;
  ODT_ASSIGN(node, peek());
  if (node->op != op) return nullptr;
  advance(*node);
  return node;
}

Result<const Node*> Chain::take(const std::string& op, const std::string& block) {
  if (done())
    return absl::UnimplementedError(
        absl::StrCat(graph_.file, ": the graph ends inside the block of '", shown(block),
                     "' where ", op, " was expected; ", kSupported));
  const Node* node;
  ODT_ASSIGN(node, peek());
  if (node->op != op)
    return absl::UnimplementedError(absl::StrCat(where(graph_, *node), "expected ", op,
                                                 " of the block of '", shown(block), "'; ",
                                                 kSupported));
  advance(*node);
  return node;
}

Result<const Tensor*> Chain::operand(const Node& node) const {
  const Tensor* constant = nullptr;
  if (node.inputs.size() == 2)
    for (const auto& in : node.inputs)
      if (const Tensor* t = graph_.constant(in)) constant = t;
  if (constant == nullptr)
    return absl::UnimplementedError(
        absl::StrCat(where(graph_, node), "expected one constant operand; ", kSupported));
  return constant;
}

Status clip_bounds(const Graph& graph, const Node& clip, std::int32_t& lo, std::int32_t& hi) {
  double bound[2] = {clip.real("min", -3e9f), clip.real("max", 3e9f)};
  for (std::size_t n = 0; n < 2; ++n) {
    if (clip.inputs.size() <= n + 1 || clip.inputs[n + 1].empty()) continue;
    const Tensor* t = graph.constant(clip.inputs[n + 1]);
    if (t == nullptr || t->size() != 1)
      return absl::UnimplementedError(where(graph, clip) + "its bounds are not scalar constants");
    bound[n] = t->at(0);
  }
  for (double b : bound)
    if (!(std::abs(b) <= 32767) || b != std::nearbyint(b))
      return absl::InvalidArgumentError(
          absl::StrCat(where(graph, clip), "bounds ", bound[0], "..", bound[1],
                       "; expected two integers within -32767..32767"));
  if (bound[0] > bound[1])
    return absl::InvalidArgumentError(
        absl::StrCat(where(graph, clip), "bounds ", bound[0], "..", bound[1], " are empty"));
  lo = static_cast<std::int32_t>(bound[0]);
  hi = static_cast<std::int32_t>(bound[1]);
  return absl::OkStatus();
}

Result<OssConstants> take_oss(Chain& chain, const Spread& spread, std::int32_t mult_lo,
                              std::int32_t mult_hi, const std::string& block) {
  const Graph& graph = chain.graph();
  const auto values = [&](const Node& node) -> Result<std::vector<float>> {
    const Tensor* t;
    ODT_ASSIGN(t, chain.operand(node));
    auto v = spread_values(*t, spread);
    for (float x : v)
      if (!(std::abs(x) < 2147483648.0f))
        return absl::InvalidArgumentError(
            absl::StrCat(where(graph, node), "constant ", x, " is out of range (32 bits)"));
    if (v.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(where(graph, node), "constant of shape [", absl::StrJoin(t->dims, ","),
                       "]; expected one value, or one per channel (", spread.channels(), ")"));
    return v;
  };
  OssConstants oss;
  ODT_ASSIGN(oss.add, chain.take("Add", block));
  ODT_ASSIGN(oss.offset, values(*oss.add));
  const Node* mul;
  ODT_ASSIGN(mul, chain.take("Mul", block));
  std::vector<float> first, second = {1.0f};
  ODT_ASSIGN(first, values(*mul));
  const Node* mul2;
  ODT_ASSIGN(mul2, chain.take_if("Mul"));
  if (mul2 != nullptr) {
    ODT_ASSIGN(second, values(*mul2));
  }
  if (first.size() != 1 && second.size() != 1 && first.size() != second.size())
    return absl::InvalidArgumentError(absl::StrCat(where(graph, *mul2), "constant of ",
                                                   second.size(), " values behind one of ",
                                                   first.size()));
  if (auto st = set_scales(first, second, mult_lo, mult_hi, oss); !st.ok())
    return Status(st.code(), absl::StrCat(where(graph, *mul), st.message()));
  const Node* floor;
  ODT_ASSIGN(floor, chain.take("Floor", block));
  (void)floor;
  ODT_ASSIGN(oss.clip, chain.take("Clip", block));
  ODT_TRY(clip_bounds(graph, *oss.clip, oss.clip_lo, oss.clip_hi));
  return oss;
}

}  // namespace odt::compiler

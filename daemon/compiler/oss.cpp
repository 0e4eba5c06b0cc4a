#include "compiler/oss.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

namespace odt::compiler {
namespace {

constexpr std::size_t kMaxViews = 32;  // in a row inside a block

// Values of a per-tensor, per-channel or per-value constant. Empty: its shape is none of them.
std::vector<float> spread_values(const Tensor& t, const std::vector<std::int64_t>& dims,
                                 bool per_value) {
  std::vector<float> out;
  const auto rank = dims.size();
  bool per_channel = t.dims.size() <= rank;
  per_value = per_value && per_channel;
  for (std::size_t n = 0; n < rank && t.dims.size() <= rank; ++n) {
    const std::int64_t own = n + t.dims.size() < rank ? 1 : t.dims[n + t.dims.size() - rank];
    if (own != 1 && (n != 1 || own != dims[1])) per_channel = false;
    if (own != dims[n]) per_value = false;
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

// One constant of a block, for the tensor in front of `node`.
Result<std::vector<float>> block_values(const Graph& graph, const Node& node, bool per_value) {
  const Tensor* t = constant_operand(graph, node);
  if (t == nullptr)
    return absl::UnimplementedError(
        absl::StrCat(where(graph, node), "expected one constant operand; ", kSupportedBlocks));
  const auto dims = graph.dims.find(data_operand(graph, node));
  if (dims == graph.dims.end() || dims->second.size() < 2)
    return absl::UnimplementedError(where(graph, node) +
                                    "the shape of its input is not known in advance");
  auto v = spread_values(*t, dims->second, per_value);
  for (float& x : v) {
    if (node.op == "Sub") x = -x;
    if (node.op == "Div") x = 1.0f / x;
    if (!(std::abs(x) < 2147483648.0f))
      return absl::InvalidArgumentError(
          absl::StrCat(where(graph, node), "constant ", x, " is out of range (32 bits)"));
  }
  if (v.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(where(graph, node), "constant of shape [", absl::StrJoin(t->dims, ","),
                     "]; expected one value, or one per channel (", dims->second[1], ")"));
  return v;
}

// a + b or a * b, of one value or n each.
bool combine(std::vector<float>& a, const std::vector<float>& b, bool add) {
  if (a.size() != 1 && b.size() != 1 && a.size() != b.size()) return false;
  if (a.size() == 1) a.assign(b.size(), a[0]);
  for (std::size_t n = 0; n < a.size(); ++n)
    a[n] = add ? a[n] + value_at(b, n) : a[n] * value_at(b, n);
  return true;
}

Status sizes_differ(const Graph& graph, const Node& node) {
  return absl::InvalidArgumentError(where(graph, node) +
                                    "its constant has another number of values than the one in "
                                    "front of it in this block");
}

}  // namespace

const char kSupportedBlocks[] =
    "supported: PREQUANT (Add Mul Mul Floor Clip); Conv, MatMul or Gemm + Add Mul Mul Floor Clip "
    "[Relu] [Clip]; MaxPool; AveragePool Mul [Round] or ReduceSum [Round] + Add Mul Mul Floor "
    "Clip; "
    "residual Add, or Mul Mul Add Mul Round; Concat of channels; nearest Resize; Relu, Clip, "
    "Reshape, Flatten, Squeeze; see compiler/README.md, or export the model without this node";

bool is_view(const Graph& graph, const Node& node) {
  if (node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" ||
      node.op == "Unsqueeze")
    return true;
  if (node.op != "Transpose" && node.op != "Slice") return false;
  const auto from = graph.dims.find(node.inputs[0]), to = graph.dims.find(node.outputs[0]);
  if (from == graph.dims.end() || to == graph.dims.end()) return false;
  if (node.op == "Slice") return from->second == to->second && node.inputs.size() < 5;
  // Only axes of one value move.
  const auto perm = node.ints("perm");
  std::int64_t last = -1;
  for (auto p : perm) {
    if (from->second[static_cast<std::size_t>(p)] == 1) continue;
    if (p < last) return false;
    last = p;
  }
  return !perm.empty();
}

std::vector<std::int64_t> Chain::dims() const {
  const auto it = graph_.dims.find(at_);
  return it == graph_.dims.end() ? std::vector<std::int64_t>{} : it->second;
}

Chain::Chain(const Graph& graph, const Node& first)
    : graph_(graph), at_(data_operand(graph, first)), first_(&first) {}

std::vector<const Node*> Chain::run_to_next() const {
  if (first_ != nullptr && taken_.empty()) return {first_};
  std::vector<const Node*> run;
  std::string at = at_;
  while (at != graph_.output && run.size() < kMaxViews) {
    const auto next = graph_.consumers(at);
    if (next.size() != 1) return {};
    run.push_back(next[0]);
    if (!is_view(graph_, *next[0])) return run;
    at = next[0]->outputs[0];
  }
  return {};
}

const Node* Chain::look(std::initializer_list<const char*> ops) const {
  const auto run = run_to_next();
  if (run.empty()) return nullptr;
  for (const char* op : ops)
    if (run.back()->op == op) return run.back();
  return nullptr;
}

const Node* Chain::take_if(std::initializer_list<const char*> ops) {
  const Node* node = look(ops);
  if (node == nullptr) return nullptr;
  for (const Node* each : run_to_next()) advance(*each);
  return node;
}

void Chain::advance(const Node& node) {
  at_ = node.outputs[0];
  taken_.push_back(&node);
}

Result<const Node*> Chain::take(const char* op, const std::string& block) {
  if (const Node* node = take_if({op})) return node;
  const auto next = graph_.consumers(at_);
  if (next.size() > 1)
    return absl::UnimplementedError(absl::StrCat(
        where(graph_, *next[1]), "tensor '", shown(at_), "' feeds ", next.size(),
        " nodes inside the block of '", shown(block), "', where ", op,
        " alone was expected; branches begin behind the last Clip of a block; ", kSupportedBlocks));
  const auto run = run_to_next();
  if (run.empty())
    return absl::UnimplementedError(
        absl::StrCat(graph_.file, ": the graph ends inside the block of '", shown(block),
                     "' where ", op, " was expected; ", kSupportedBlocks));
  return absl::UnimplementedError(absl::StrCat(where(graph_, *run.back()), "expected ", op,
                                               " of the block of '", shown(block), "'; ",
                                               kSupportedBlocks));
}

const Tensor* constant_operand(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) return nullptr;
  if (const Tensor* t = graph.constant(node.inputs[1])) return t;
  if (node.op == "Sub" || node.op == "Div") return nullptr;
  return graph.constant(node.inputs[0]);
}

const std::string& data_operand(const Graph& graph, const Node& node) {
  return node.inputs[node.inputs.size() == 2 && graph.constant(node.inputs[0]) != nullptr ? 1 : 0];
}

double positive_scale(const Graph& graph, const Node& node) {
  const Tensor* t = node.op == "Mul" || node.op == "Div" ? constant_operand(graph, node) : nullptr;
  if (t == nullptr || t->size() != 1 || !(t->at(0) > 0) || !std::isfinite(t->at(0))) return 0;
  const double scale = node.op == "Mul" ? t->at(0) : 1.0 / t->at(0);
  return std::isfinite(scale) ? scale : 0;
}

bool leads_to_floor(const Graph& graph, const std::string& at) {
  Chain chain(graph, at);
  for (int n = 0; n < 4; ++n) {
    const Node* node = chain.take_if({"Add", "Sub", "Mul", "Div", "Floor"});
    if (node == nullptr) return false;
    if (node->op == "Floor") return true;
    if (constant_operand(graph, *node) == nullptr) return false;
  }
  return false;
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

Result<OssConstants> take_oss(Chain& chain, bool per_value, std::int32_t mult_lo,
                              std::int32_t mult_hi, const std::string& block) {
  const Graph& graph = chain.graph();
  OssConstants oss;
  oss.offset = {0.0f};
  while (const Node* add = chain.take_if({"Add", "Sub"})) {
    std::vector<float> more;
    ODT_ASSIGN(more, block_values(graph, *add, per_value));
    if (!combine(oss.offset, more, true)) return sizes_differ(graph, *add);
    oss.add = add;
  }
  std::vector<float> scale[2] = {{1.0f}, {1.0f}};
  const Node* first = nullptr;
  for (int n = 0; n < 2; ++n) {
    const Node* mul = chain.take_if({"Mul", "Div"});
    if (mul == nullptr) break;
    ODT_ASSIGN(scale[n], block_values(graph, *mul, per_value));
    if (scale[0].size() != 1 && scale[1].size() != 1 && scale[0].size() != scale[1].size())
      return sizes_differ(graph, *mul);
    if (first == nullptr) first = mul;
  }
  const Node* floor;
  ODT_ASSIGN(floor, chain.take("Floor", block));
  if (auto st = set_scales(scale[0], scale[1], mult_lo, mult_hi, oss); !st.ok())
    return Status(st.code(),
                  absl::StrCat(where(graph, first != nullptr ? *first : *floor), st.message()));
  ODT_ASSIGN(oss.clip, chain.take("Clip", block));
  ODT_TRY(clip_bounds(graph, *oss.clip, oss.clip_lo, oss.clip_hi));
  return oss;
}

}  // namespace odt::compiler

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/onnx_graph.h"

// Constant folding: what raw exports compute from constants (scales, shapes), nothing more.
namespace odt::compiler {
namespace {

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

// -1: negative, or more than kMaxElements.
std::int64_t product(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (auto d : dims) {
    if (d < 0 || (d > 0 && n > kMaxElements / d)) return -1;
    n *= d;
  }
  return n;
}

std::int64_t to_integer_value(float v) {
  return v != v ? 0 : static_cast<std::int64_t>(std::clamp(v, -9e18f, 9e18f));
}

Result<std::vector<std::int64_t>> broadcast_dims(const Tensor& a, const Tensor& b) {
  const std::size_t rank = std::max(a.dims.size(), b.dims.size());
  std::vector<std::int64_t> dims(rank);
  for (std::size_t n = 0; n < rank; ++n) {
    const auto dim = [&](const Tensor& t) {
      return n + t.dims.size() < rank ? 1 : t.dims[n + t.dims.size() - rank];
    };
    if (dim(a) != dim(b) && dim(a) != 1 && dim(b) != 1) return bad("constants do not broadcast");
    dims[n] = dim(a) == 1 ? dim(b) : dim(a);
  }
  return dims;
}

std::size_t broadcast_index(const Tensor& t, const std::vector<std::int64_t>& dims,
                            std::int64_t flat) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t n = dims.size(); n-- > 0;) {
    const std::int64_t at = flat % dims[n];
    flat /= dims[n];
    if (n + t.dims.size() < dims.size()) continue;
    const std::int64_t own = t.dims[n + t.dims.size() - dims.size()];
    if (own != 1) index += at * stride;
    stride *= own;
  }
  return static_cast<std::size_t>(index);
}

using FloatFn = std::function<float(float, float)>;
using IntFn = std::function<std::int64_t(std::int64_t, std::int64_t)>;

Result<Tensor> binary(const Tensor& a, const Tensor& b, const FloatFn& f, const IntFn& i) {
  if (a.integer != b.integer) return bad("operands of different types");
  Tensor out;
  out.integer = a.integer;
  ODT_ASSIGN(out.dims, broadcast_dims(a, b));
  const std::int64_t count = product(out.dims);
  if (count < 0) return bad("a constant that is too large");
  for (std::int64_t n = 0; n < count; ++n) {
    const auto x = broadcast_index(a, out.dims, n), y = broadcast_index(b, out.dims, n);
    if (a.integer)
      out.i.push_back(i(a.i[x], b.i[y]));
    else
      out.f.push_back(f(a.f[x], b.f[y]));
  }
  return out;
}

Result<Tensor> fold_binary(const std::string& op, const Tensor& a, const Tensor& b) {
  using I = std::int64_t;
  if (op == "Add")
    return binary(
        a, b, [](float x, float y) { return x + y; }, [](I x, I y) { return x + y; });
  if (op == "Sub")
    return binary(
        a, b, [](float x, float y) { return x - y; }, [](I x, I y) { return x - y; });
  if (op == "Mul")
    return binary(
        a, b, [](float x, float y) { return x * y; }, [](I x, I y) { return x * y; });
  if (op == "Div")
    return binary(
        a, b, [](float x, float y) { return x / y; },
        [](I x, I y) { return y == 0 || (x == INT64_MIN && y == -1) ? 0 : x / y; });
  return binary(
      a, b, [](float x, float y) { return std::pow(x, y); },
      [](I x, I y) { return to_integer_value(std::pow(float(x), float(y))); });
}

const std::map<std::string, float (*)(float)>& unary_ops() {
  static const std::map<std::string, float (*)(float)> kOps = {
      {"Abs", [](float x) { return std::abs(x); }},
      {"Ceil", [](float x) { return std::ceil(x); }},
      {"Exp", [](float x) { return std::exp(x); }},
      {"Floor", [](float x) { return std::floor(x); }},
      {"Log", [](float x) { return std::log(x); }},
      {"Neg", [](float x) { return -x; }},
      {"Reciprocal", [](float x) { return 1.0f / x; }},
      {"Relu", [](float x) { return std::max(x, 0.0f); }},
      {"Round", [](float x) { return std::nearbyint(x); }},
      {"Sign", [](float x) { return x > 0   ? 1.0f
                                    : x < 0 ? -1.0f
                                            : 0.0f; }},
      {"Sqrt", [](float x) { return std::sqrt(x); }},
  };
  return kOps;
}

Result<Tensor> fold_unary(const std::string& op, Tensor t) {
  const auto fn = unary_ops().at(op);
  for (auto& v : t.f) v = fn(v);
  for (auto& v : t.i) v = to_integer_value(fn(static_cast<float>(v)));
  return t;
}

Result<Tensor> fold_constant(const Node& node) {
  if (const auto it = node.tensors.find("value"); it != node.tensors.end()) return it->second;
  Tensor t;
  if (const auto it = node.attributes.find("value_float"); it != node.attributes.end()) {
    t.f = {it->second.f};
  } else if (node.attributes.contains("value_int")) {
    t.integer = true;
    t.i = {node.integer("value_int", 0)};
  } else if (node.attributes.contains("value_ints")) {
    t.integer = true;
    t.i = node.ints("value_ints");
    t.dims = {static_cast<std::int64_t>(t.i.size())};
  } else {
    return bad("a Constant without a tensor, a float or integers");
  }
  return t;
}

Result<Tensor> fold_cast(const Node& node, Tensor t) {
  constexpr std::int64_t kFloat = 1, kDouble = 11;
  const std::int64_t to = node.integer("to", kFloat);
  const bool to_integer = to != kFloat && to != kDouble;
  if (to_integer && !t.integer)
    for (auto v : t.f) t.i.push_back(to_integer_value(v));
  if (!to_integer && t.integer)
    for (auto v : t.i) t.f.push_back(static_cast<float>(v));
  if (to_integer)
    t.f.clear();
  else
    t.i.clear();
  t.integer = to_integer;
  return t;
}

Result<Tensor> fold_reshape(Tensor t, const Tensor& shape) {
  if (!shape.integer) return bad("a shape that is not integer");
  std::vector<std::int64_t> dims = shape.i;
  std::int64_t known = 1;
  for (std::size_t n = 0; n < dims.size(); ++n) {
    if (dims[n] == 0 && n < t.dims.size()) dims[n] = t.dims[n];
    if (dims[n] > kMaxElements || dims[n] < -1) return bad("a shape that is out of range");
    if (dims[n] > 0 && known <= kMaxElements) known *= dims[n];
  }
  const auto size = static_cast<std::int64_t>(t.size());
  for (auto& d : dims)
    if (d == -1) d = known > 0 ? size / known : 0;
  if (product(dims) != size) return bad("a shape that does not fit its constant");
  t.dims = dims;
  return t;
}

Result<Tensor> fold_transpose(const Node& node, const Tensor& t) {
  const std::size_t rank = t.dims.size();
  std::vector<std::int64_t> perm = node.ints("perm");
  if (perm.empty())
    for (std::size_t n = rank; n-- > 0;) perm.push_back(static_cast<std::int64_t>(n));
  std::vector<bool> used(rank, false);
  if (perm.size() != rank) return bad("a permutation that does not fit its constant");
  for (auto p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(rank) || used[static_cast<std::size_t>(p)])
      return bad("a permutation that is none");
    used[static_cast<std::size_t>(p)] = true;
  }
  std::vector<std::int64_t> stride(rank, 1);
  for (std::size_t n = rank; n-- > 1;) stride[n - 1] = stride[n] * t.dims[n];
  Tensor out;
  out.integer = t.integer;
  for (auto p : perm) out.dims.push_back(t.dims[static_cast<std::size_t>(p)]);
  for (std::int64_t flat = 0; flat < static_cast<std::int64_t>(t.size()); ++flat) {
    std::int64_t rest = flat, from = 0;
    for (std::size_t n = rank; n-- > 0;) {
      from += rest % out.dims[n] * stride[static_cast<std::size_t>(perm[n])];
      rest /= out.dims[n];
    }
    if (t.integer)
      out.i.push_back(t.i[static_cast<std::size_t>(from)]);
    else
      out.f.push_back(t.f[static_cast<std::size_t>(from)]);
  }
  return out;
}

// Unsqueeze and Squeeze with axes as input or attribute.
Result<Tensor> fold_axes(const Node& node, Tensor t, const Tensor* axes_input) {
  const bool insert = node.op == "Unsqueeze";
  std::vector<std::int64_t> axes = axes_input != nullptr ? axes_input->i : node.ints("axes");
  const std::size_t rank = t.dims.size() + (insert ? axes.size() : 0);
  std::vector<bool> hit(rank, false);
  for (auto a : axes) {
    if (a < 0) a += static_cast<std::int64_t>(rank);
    if (a < 0 || a >= static_cast<std::int64_t>(rank)) return bad("an axis out of range");
    hit[static_cast<std::size_t>(a)] = true;
  }
  std::vector<std::int64_t> dims;
  std::size_t from = 0;
  for (std::size_t n = 0; n < rank; ++n) {
    if (insert) {
      if (!hit[n] && from >= t.dims.size()) return bad("axes that repeat");
      dims.push_back(hit[n] ? 1 : t.dims[from++]);
    } else if (!(t.dims[n] == 1 && (axes.empty() || hit[n]))) {
      dims.push_back(t.dims[n]);
    }
  }
  t.dims = dims;
  return t;
}

Result<Tensor> fold_concat(const std::vector<const Tensor*>& inputs) {
  Tensor out = *inputs[0];
  for (std::size_t n = 1; n < inputs.size(); ++n) {
    if (inputs[n]->integer != out.integer || inputs[n]->dims.size() > 1 || out.dims.size() > 1)
      return bad("a Concat of constants other than lists");
    out.f.insert(out.f.end(), inputs[n]->f.begin(), inputs[n]->f.end());
    out.i.insert(out.i.end(), inputs[n]->i.begin(), inputs[n]->i.end());
  }
  out.dims = {static_cast<std::int64_t>(out.size())};
  return out;
}

Result<Tensor> fold_where(const std::vector<const Tensor*>& in) {
  if (in[0]->size() != in[1]->size() || in[1]->size() != in[2]->size() ||
      in[1]->integer != in[2]->integer)
    return bad("a Where of constants of different sizes");
  Tensor out = *in[1];
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (in[0]->at(n) != 0) continue;
    if (out.integer)
      out.i[n] = in[2]->i[n];
    else
      out.f[n] = in[2]->f[n];
  }
  return out;
}

}  // namespace

Result<Tensor> fold(const Node& node, const std::vector<const Tensor*>& inputs) {
  const std::string& op = node.op;
  if (op == "Constant") return fold_constant(node);
  std::size_t needed = 1;
  const bool is_binary =
      op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Pow" || op == "Reshape";
  if (is_binary) needed = 2;
  if (op == "Where") needed = 3;
  for (std::size_t n = 0; n < std::max(needed, inputs.size()); ++n)
    if (n >= inputs.size() || inputs[n] == nullptr)
      return bad(absl::StrCat("input ", n, " is missing"));
  if (unary_ops().contains(op)) return fold_unary(op, *inputs[0]);
  if (op == "Cast") return fold_cast(node, *inputs[0]);
  if (op == "Transpose") return fold_transpose(node, *inputs[0]);
  if (op == "Reshape") return fold_reshape(*inputs[0], *inputs[1]);
  if (op == "Squeeze" || op == "Unsqueeze")
    return fold_axes(node, *inputs[0], inputs.size() > 1 ? inputs[1] : nullptr);
  if (op == "Concat") return fold_concat(inputs);
  if (op == "Where") return fold_where(inputs);
  if (is_binary) return fold_binary(op, *inputs[0], *inputs[1]);
  return absl::UnimplementedError(
      absl::StrCat("computes a constant with an operator that is not folded; simplify the file "
                   "(onnxsim) or export with constant folding"));
}

}  // namespace odt::compiler

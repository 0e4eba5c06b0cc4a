#include "compiler/fold.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <functional>

// Constant folding: what raw exports compute from constants (scales, shapes). Here the operators
// that compute values one by one; those that move them: fold_shape.cpp.
namespace odt::compiler {
namespace {

using I = std::int64_t;

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

I to_integer_value(double v) { return v != v ? 0 : static_cast<I>(std::clamp(v, -9e18, 9e18)); }

// Two's complement, as runtimes compute it.
I wrap(std::uint64_t v) { return static_cast<I>(v); }
std::uint64_t bits(I v) { return static_cast<std::uint64_t>(v); }

struct BinaryOp {
  std::function<float(float, float)> f;
  std::function<I(I, I)> i;
  bool compares = false;  // the result is a truth value
};

const std::map<std::string, BinaryOp>& binary_ops() {
  static const std::map<std::string, BinaryOp> kOps = {
      {"Add",
       {[](float x, float y) { return x + y; }, [](I x, I y) { return wrap(bits(x) + bits(y)); }}},
      {"Sub",
       {[](float x, float y) { return x - y; }, [](I x, I y) { return wrap(bits(x) - bits(y)); }}},
      {"Mul",
       {[](float x, float y) { return x * y; }, [](I x, I y) { return wrap(bits(x) * bits(y)); }}},
      {"Div",
       {[](float x, float y) { return x / y; },
        [](I x, I y) { return y == 0 || (x == INT64_MIN && y == -1) ? 0 : x / y; }}},
      {"Mod",
       {[](float x, float y) { return std::fmod(x, y); },
        [](I x, I y) { return y == 0 || y == -1 ? 0 : (x % y + y) % y; }}},
      {"Pow",
       {[](float x, float y) { return std::pow(x, y); },
        [](I x, I y) {
          return to_integer_value(std::pow(static_cast<double>(x), static_cast<double>(y)));
        }}},
      {"Min",
       {[](float x, float y) { return std::min(x, y); }, [](I x, I y) { return std::min(x, y); }}},
      {"Max",
       {[](float x, float y) { return std::max(x, y); }, [](I x, I y) { return std::max(x, y); }}},
      {"Equal",
       {[](float x, float y) { return x == y ? 1.0f : 0.0f; }, [](I x, I y) -> I { return x == y; },
        true}},
      {"Greater",
       {[](float x, float y) { return x > y ? 1.0f : 0.0f; }, [](I x, I y) -> I { return x > y; },
        true}},
      {"GreaterOrEqual",
       {[](float x, float y) { return x >= y ? 1.0f : 0.0f; }, [](I x, I y) -> I { return x >= y; },
        true}},
      {"Less",
       {[](float x, float y) { return x < y ? 1.0f : 0.0f; }, [](I x, I y) -> I { return x < y; },
        true}},
      {"LessOrEqual",
       {[](float x, float y) { return x <= y ? 1.0f : 0.0f; }, [](I x, I y) -> I { return x <= y; },
        true}},
      {"And",
       {[](float x, float y) { return x != 0 && y != 0 ? 1.0f : 0.0f; },
        [](I x, I y) -> I { return x && y; }, true}},
      {"Or",
       {[](float x, float y) { return x != 0 || y != 0 ? 1.0f : 0.0f; },
        [](I x, I y) -> I { return x || y; }, true}},
      {"Xor",
       {[](float x, float y) { return (x != 0) != (y != 0) ? 1.0f : 0.0f; },
        [](I x, I y) -> I { return !x != !y; }, true}},
  };
  return kOps;
}

Result<Tensor> fold_binary(const std::string& op, const Tensor& a, const Tensor& b) {
  const BinaryOp& fn = binary_ops().at(op);
  if (a.integer != b.integer && op != "Pow") return bad("operands of different types");
  const bool integers = a.integer && b.integer;
  Tensor out;
  ODT_ASSIGN(out.dims, broadcast_dims(a.dims, b.dims));
  const I count =
      product(out.dims, std::max(kMaxFolded, static_cast<I>(std::max(a.size(), b.size()))));
  if (count < 0) return bad("a constant that is too large");
  out.integer = fn.compares || a.integer;
  for (I n = 0; n < count; ++n) {
    const auto x = broadcast_index(a.dims, out.dims, n), y = broadcast_index(b.dims, out.dims, n);
    if (integers) {
      out.i.push_back(fn.i(a.i[x], b.i[y]));
      continue;
    }
    const float v = fn.f(static_cast<float>(a.at(x)), static_cast<float>(b.at(y)));
    if (out.integer)
      out.i.push_back(to_integer_value(double{v}));
    else
      out.f.push_back(v);
  }
  return out;
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
      {"Not", [](float x) { return x != 0 ? 0.0f : 1.0f; }},
  };
  return kOps;
}

Result<Tensor> fold_unary(const std::string& op, Tensor t) {
  const auto fn = unary_ops().at(op);
  for (auto& v : t.f) v = fn(v);
  for (auto& v : t.i) {
    if (op == "Abs" || op == "Neg")
      v = op == "Neg" || v < 0 ? wrap(0 - bits(v)) : v;
    else if (op == "Relu")
      v = std::max<I>(v, 0);
    else if (op != "Ceil" && op != "Floor" && op != "Round")
      v = to_integer_value(double{fn(static_cast<float>(v))});
  }
  return t;
}

Result<Tensor> fold_constant(const Node& node) {
  if (const auto it = node.tensors.find("value"); it != node.tensors.end()) return it->second;
  Tensor t;
  if (const auto it = node.attributes.find("value_float"); it != node.attributes.end()) {
    t.f = {it->second.f};
  } else if (const auto list = node.attributes.find("value_floats");
             list != node.attributes.end()) {
    t.f = list->second.floats;
    t.dims = {static_cast<I>(t.f.size())};
  } else if (node.attributes.contains("value_int")) {
    t.integer = true;
    t.i = {node.integer("value_int", 0)};
  } else if (node.attributes.contains("value_ints")) {
    t.integer = true;
    t.i = node.ints("value_ints");
    t.dims = {static_cast<I>(t.i.size())};
  } else {
    return bad("a Constant without a tensor, floats or integers");
  }
  return t;
}

Result<Tensor> fold_cast(const Node& node, Tensor t) {
  constexpr I kFloat = 1, kBool = 9, kFloat16 = 10, kDouble = 11;
  const I to = node.integer("to", kFloat);
  const bool to_integer = to != kFloat && to != kDouble && to != kFloat16;
  if (to_integer && !t.integer) {
    for (auto v : t.f) t.i.push_back(to == kBool ? I{v != 0} : to_integer_value(double{v}));
    t.f.clear();
  } else if (!to_integer && t.integer) {
    for (auto v : t.i) t.f.push_back(static_cast<float>(v));
    t.i.clear();
  } else if (to == kBool) {
    for (auto& v : t.i) v = v != 0;
  }
  t.integer = to_integer;
  return t;
}

Result<Tensor> fold_where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  if (yes.integer != no.integer) return bad("a Where of constants of different types");
  Tensor out;
  out.integer = yes.integer;
  ODT_ASSIGN(out.dims, broadcast_dims(yes.dims, no.dims));
  ODT_ASSIGN(out.dims, broadcast_dims(condition.dims, out.dims));
  const I count = product(out.dims, kMaxFolded);
  if (count < 0) return bad("a constant that is too large");
  for (I n = 0; n < count; ++n) {
    const bool take = condition.at(broadcast_index(condition.dims, out.dims, n)) != 0;
    const Tensor& from = take ? yes : no;
    const auto at = broadcast_index(from.dims, out.dims, n);
    if (out.integer)
      out.i.push_back(from.i[at]);
    else
      out.f.push_back(from.f[at]);
  }
  return out;
}

Result<Tensor> fold_clip(const Node& node, Tensor t, const Tensor* lo, const Tensor* hi) {
  for (const Tensor* bound : {lo, hi})
    if (bound != nullptr && (bound->size() != 1 || bound->integer != t.integer))
      return bad("bounds of a Clip that are not one value of its type");
  const float low = lo != nullptr && !t.integer ? lo->f[0] : node.real("min", -INFINITY);
  const float high = hi != nullptr && !t.integer ? hi->f[0] : node.real("max", INFINITY);
  for (auto& v : t.f) v = std::min(std::max(v, low), high);
  for (auto& v : t.i) {
    if (lo != nullptr) v = std::max(v, lo->i[0]);
    if (hi != nullptr) v = std::min(v, hi->i[0]);
  }
  return t;
}

// Inputs that an operator cannot do without.
std::size_t needed_inputs(const std::string& op) {
  if (op == "Where" || op == "Range") return 3;
  return binary_ops().contains(op) && op != "Min" && op != "Max" ? 2 : 1;
}

}  // namespace

std::int64_t product(const Dims& dims, std::int64_t limit) {
  std::int64_t n = 1;
  for (auto d : dims) {
    if (d < 0 || (d > 0 && n > limit / d)) return -1;
    n *= d;
  }
  return n;
}

Result<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (std::size_t n = 0; n < rank; ++n) {
    const auto dim = [&](const Dims& d) {
      return n + d.size() < rank ? 1 : d[n + d.size() - rank];
    };
    if (dim(a) != dim(b) && dim(a) != 1 && dim(b) != 1) return bad("constants do not broadcast");
    dims[n] = dim(a) == 1 ? dim(b) : dim(a);
  }
  return dims;
}

std::size_t broadcast_index(const Dims& own, const Dims& dims, std::int64_t flat) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t n = dims.size(); n-- > 0;) {
    const std::int64_t at = flat % dims[n];
    flat /= dims[n];
    if (n + own.size() < dims.size()) continue;
    const std::int64_t size = own[n + own.size() - dims.size()];
    if (size != 1) index += at * stride;
    stride *= size;
  }
  return static_cast<std::size_t>(index);
}

Result<Tensor> fold(const Node& node, const std::vector<const Tensor*>& inputs) {
  const std::string& op = node.op;
  if (op == "Constant") return fold_constant(node);
  const auto input = [&](std::size_t n) { return n < inputs.size() ? inputs[n] : nullptr; };
  for (std::size_t n = 0; n < needed_inputs(op); ++n)
    if (input(n) == nullptr) return bad(absl::StrCat("input ", n, " is missing"));
  if (unary_ops().contains(op)) return fold_unary(op, *inputs[0]);
  if (op == "Cast") return fold_cast(node, *inputs[0]);
  if (op == "Where") return fold_where(*inputs[0], *inputs[1], *inputs[2]);
  if (op == "Clip") return fold_clip(node, *inputs[0], input(1), input(2));
  if (binary_ops().contains(op)) {
    Tensor out = *inputs[0];
    for (std::size_t n = 1; n < inputs.size(); ++n) {
      if (inputs[n] == nullptr) return bad(absl::StrCat("input ", n, " is missing"));
      ODT_ASSIGN(out, fold_binary(op, out, *inputs[n]));
    }
    return out;
  }
  bool known = false;
  auto moved = fold_moving(node, inputs, known);
  if (known) return moved;
  return absl::UnimplementedError(
      "computes a constant with an operator that is not folded; simplify the file (onnxsim) or "
      "export with constant folding");
}

}  // namespace odt::compiler

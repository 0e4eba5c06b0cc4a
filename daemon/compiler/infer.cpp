#include "compiler/infer.h"

#include <algorithm>
#include <set>

#include "compiler/fold.h"
#include "compiler/geometry.h"

namespace odt::compiler {
namespace {

using Shapes = std::vector<Dims>;

const std::set<std::string>& elementwise_ops() {
  static const std::set<std::string> kOps = {
      "Relu", "Clip",        "Floor",     "Round",     "Ceil",  "Identity",   "Dropout",
      "Cast", "Softmax",     "Sigmoid",   "Tanh",      "Abs",   "Neg",        "Sqrt",
      "Exp",  "Log",         "Sign",      "LeakyRelu", "PRelu", "LogSoftmax", "BatchNormalization",
      "Elu",  "HardSigmoid", "HardSwish", "Reciprocal"};
  return kOps;
}

class Inference {
 public:
  Inference(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Shapes run() const {
    const std::string& op = node_.op;
    const Dims* x = dims(0);
    if (x == nullptr) return {};
    if (elementwise_ops().contains(op)) return {*x};
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Min" || op == "Max" ||
        op == "Pow")
      return broadcast(*x);
    if (op == "Conv") return conv(*x);
    if (op == "MaxPool" || op == "AveragePool") return pool(*x);
    if (op == "GlobalAveragePool" || op == "GlobalMaxPool") return global_pool(*x);
    if (op.starts_with("Reduce")) return reduce(*x);
    if (op == "MatMul") return matmul(*x);
    if (op == "Gemm") return gemm(*x);
    if (op == "Concat") return concat(*x);
    if (op == "Resize" || op == "Upsample") return resize(*x);
    if (op == "Pad") return pad(*x);
    if (op == "Split") return split(*x);
    return moved(*x);
  }

 private:
  const Dims* dims(std::size_t n) const {
    if (n >= node_.inputs.size()) return nullptr;
    if (const Tensor* t = graph_.constant(node_.inputs[n])) return &t->dims;
    const auto it = graph_.dims.find(node_.inputs[n]);
    return it == graph_.dims.end() ? nullptr : &it->second;
  }
  const Tensor* constant(std::size_t n) const {
    return n < node_.inputs.size() ? graph_.constant(node_.inputs[n]) : nullptr;
  }
  bool given(std::size_t n) const { return n < node_.inputs.size() && !node_.inputs[n].empty(); }

  static Shapes one(const Result<Dims>& d) { return d.ok() ? Shapes{*d} : Shapes{}; }

  Shapes broadcast(const Dims& x) const {
    Dims out = x;
    for (std::size_t n = 1; n < node_.inputs.size(); ++n) {
      const Dims* y = dims(n);
      if (y == nullptr) return {};
      const auto both = broadcast_dims(out, *y);
      if (!both.ok()) return {};
      out = *both;
    }
    return {out};
  }

  // [C,H,W] of [1,C,H,W] or [1,C,L]; empty: neither.
  static Shape planes(const Dims& x) {
    if (x.size() != 3 && x.size() != 4) return {};
    Shape shape;
    for (std::size_t n = 1; n < 4; ++n)
      shape.push_back(n < x.size() ? static_cast<std::uint32_t>(x[n]) : 1);
    return shape;
  }

  Shapes window(const Dims& x, const Dims& kernel, std::int64_t channels) const {
    const Shape in = planes(x);
    if (in.empty()) return {};
    const auto w = read_window(graph_, node_, in, kernel, x.size() - 2);
    if (!w.ok()) return {};
    Dims out = {x[0], channels, w->out_h};
    if (x.size() == 4) out.push_back(w->out_w);
    return {out};
  }

  Shapes conv(const Dims& x) const {
    const Dims* w = dims(1);
    if (w == nullptr || w->size() != x.size() || w->size() < 3) return {};
    return window(x, Dims(w->begin() + 2, w->end()), (*w)[0]);
  }
  Shapes pool(const Dims& x) const { return x.size() < 3 ? Shapes{} : window(x, {}, x[1]); }

  static Shapes global_pool(const Dims& x) {
    if (x.size() < 3) return {};
    Dims out(x.size(), 1);
    out[0] = x[0];
    out[1] = x[1];
    return {out};
  }

  Shapes reduce(const Dims& x) const {
    const auto axes = read_axes(graph_, node_, x.size());
    if (!axes.ok()) return {};
    Dims out;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const bool hit =
          std::find(axes->begin(), axes->end(), static_cast<std::int64_t>(n)) != axes->end();
      if (!hit || node_.integer("keepdims", 1) != 0) out.push_back(hit ? 1 : x[n]);
    }
    return {out};
  }

  Shapes matmul(const Dims& x) const {
    const Dims* w = dims(1);
    if (w == nullptr || w->size() != 2 || x.empty() || x.back() != (*w)[0]) return {};
    Dims out = x;
    out.back() = (*w)[1];
    return {out};
  }

  Shapes gemm(const Dims& x) const {
    const Dims* w = dims(1);
    if (w == nullptr || w->size() != 2 || x.size() != 2) return {};
    return {{x[0], (*w)[node_.integer("transB", 0) != 0 ? 0 : 1]}};
  }

  Shapes concat(const Dims& x) const {
    const auto axis = axis_of(node_.integer("axis", 1), x.size());
    if (!axis.ok()) return {};
    Dims out = x;
    for (std::size_t n = 1; n < node_.inputs.size(); ++n) {
      const Dims* y = dims(n);
      if (y == nullptr || y->size() != x.size()) return {};
      for (std::size_t d = 0; d < x.size(); ++d)
        if (d != *axis && (*y)[d] != x[d]) return {};
      out[*axis] += (*y)[*axis];
    }
    return {out};
  }

  Shapes resize(const Dims& x) const {
    const Shape in = planes(x);
    if (in.empty()) return {};
    const auto shape = read_resize(graph_, node_, in, x.size() - 2);
    if (!shape.ok()) return {};
    Dims out = {x[0]};
    for (std::size_t n = 0; n + 1 < x.size(); ++n) out.push_back((*shape)[n]);
    return {out};
  }

  Shapes pad(const Dims& x) const {
    const Dims pads = constant(1) != nullptr ? constant(1)->i : node_.ints("pads");
    if (pads.size() != 2 * x.size() || given(3)) return {};
    Dims out = x;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const std::int64_t before = pads[n], after = pads[n + x.size()];
      if (std::min(before, after) < 0 || std::max(before, after) > 65535) return {};
      out[n] += before + after;
    }
    return {out};
  }

  Shapes split(const Dims& x) const {
    const auto axis = axis_of(node_.integer("axis", 0), x.size());
    if (!axis.ok()) return {};
    Dims parts = constant(1) != nullptr ? constant(1)->i : node_.ints("split");
    const auto n = static_cast<std::int64_t>(node_.outputs.size());
    if (parts.empty() && x[*axis] % n == 0) parts.assign(static_cast<std::size_t>(n), x[*axis] / n);
    if (static_cast<std::int64_t>(parts.size()) != n || product(parts, 1 << 30) < 1) return {};
    Shapes out;
    std::int64_t sum = 0;
    for (auto p : parts) {
      sum += p;
      out.push_back(x);
      out.back()[*axis] = p;
    }
    return sum == x[*axis] ? out : Shapes{};
  }

  Shapes moved(const Dims& x) const {
    const std::string& op = node_.op;
    if (given(1) && constant(1) == nullptr) return {};
    if (op == "Squeeze") return one(squeeze_dims(node_, x, constant(1)));
    if (op == "Unsqueeze") return one(unsqueeze_dims(node_, x, constant(1)));
    if (op == "Reshape") return given(1) ? one(reshape_dims(node_, x, *constant(1))) : Shapes{};
    if (op == "Flatten") {
      const auto axis = axis_of(node_.integer("axis", 1), x.size() + 1);
      if (!axis.ok()) return {};
      const auto at = x.begin() + static_cast<std::ptrdiff_t>(*axis);
      return {{product(Dims(x.begin(), at)), product(Dims(at, x.end()))}};
    }
    if (op == "Transpose") {
      const auto perm = permutation_of(node_, x.size());
      if (!perm.ok()) return {};
      Dims out;
      for (auto p : *perm) out.push_back(x[static_cast<std::size_t>(p)]);
      return {out};
    }
    if (op == "Slice") {
      std::vector<const Tensor*> inputs;
      for (std::size_t n = 0; n < node_.inputs.size(); ++n) {
        if (n > 0 && given(n) && constant(n) == nullptr) return {};
        inputs.push_back(n > 0 ? constant(n) : nullptr);
      }
      const auto axes = slice_axes(node_, x, inputs);
      if (!axes.ok()) return {};
      Dims out;
      for (const auto& a : *axes) out.push_back(a.count);
      return {out};
    }
    return {};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

std::vector<std::vector<std::int64_t>> infer_dims(const Graph& graph, const Node& node) {
  auto out = Inference(graph, node).run();
  for (const auto& d : out)
    if (product(d) < 1) return {};  // empty or too large to be a tensor of a model
  return out;
}

}  // namespace odt::compiler

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/float_graph.h"
#include "compiler/fold.h"
#include "compiler/geometry.h"

// The nodes of a float32 graph, one by one.
namespace odt::compiler {
namespace {

constexpr char kFloatOps[] =
    "supported in float32 files: Conv, MatMul, Gemm, Relu, Clip from 0 (ReLU6), "
    "MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool, ReduceMean over the plane, "
    "BatchNormalization, Add, Sub, Mul and Div by constants, Add of two tensors, Concat of "
    "channels, nearest Resize and Upsample, Flatten, Reshape, Squeeze, Unsqueeze, and Softmax or "
    "LogSoftmax at the end";

// Why an operator cannot be; empty: nothing in particular.
std::string reason(const std::string& op) {
  static const std::map<std::string, std::string> kReasons = {
      {"ArgMax", "export the model up to its logits"},
      {"TopK", "export the model up to its logits"},
      {"ConvTranspose", "use a nearest Resize followed by Conv"},
      {"InstanceNormalization", "its statistics are of each sample; use BatchNormalization"},
      {"LayerNormalization", "its statistics are of each sample; use BatchNormalization"},
      {"GroupNormalization", "its statistics are of each sample; use BatchNormalization"},
      {"QuantizeLinear", "export the float model, or a QAT file of odt's form"},
      {"DequantizeLinear", "export the float model, or a QAT file of odt's form"},
      {"QLinearConv", "export the float model, or a QAT file of odt's form"},
      {"Slice", "no operator takes a part of a tensor; make each part a layer's own output"},
      {"Split", "no operator takes a part of a tensor; make each part a layer's own output"},
      {"Gather", "no operator takes a part of a tensor; make each part a layer's own output"},
      {"Pad", "give the padding to the Conv or pool behind it"},
      {"Transpose", "export with channels first, [1,C,H,W]"},
  };
  for (const char* activation :
       {"Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Selu", "Celu", "LeakyRelu", "PRelu",
        "Gelu", "Erf", "Softplus", "Softsign", "Mish", "Swish", "ThresholdedRelu"})
    if (op == activation) return "Relu is the only activation that boards train";
  for (const char* recurrent : {"LSTM", "GRU", "RNN", "Scan", "Loop"})
    if (op == recurrent) return "recurrent layers are not trained on boards";
  const auto it = kReasons.find(op);
  return it == kReasons.end() ? "" : it->second;
}

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {}

  Result<FloatGraph> run() {
    ODT_ASSIGN(g_.input, shape(graph_.input_dims));
    values_[graph_.input] = {kFloatInput, graph_.input_dims};
    for (const Node& node : graph_.nodes) {
      Value out;
      ODT_ASSIGN(out, step(node));
      ODT_TRY(check_made(graph_, node, g_.ops.size()));
      std::int64_t count = 1;
      for (const auto d : out.dims) count = std::min<std::int64_t>(count * d, 65536);
      if (count > 65535)
        return absl::OutOfRangeError(absl::StrCat(where(graph_, node), "its output [",
                                                  absl::StrJoin(out.dims, ","),
                                                  "] has over 65535 values"));
      values_[node.outputs[0]] = out;
    }
    const auto it = values_.find(graph_.output);
    if (it == values_.end() || it->second.id == kFloatInput)
      return absl::InvalidArgumentError(graph_.file + ": the output is the input");
    g_.output = it->second.id;
    g_.output_dims = it->second.dims;
    return std::move(g_);
  }

 private:
  struct Value {
    int id = kFloatNone;
    Dims dims;  // of the file, with the batch
  };

  Status refused(const Node& node, const std::string& what) const {
    return absl::UnimplementedError(where(graph_, node) + what);
  }
  Status malformed(const Node& node, const std::string& what) const {
    return absl::InvalidArgumentError(where(graph_, node) + what);
  }

  // [1,N] -> [N]; [1,C,L] -> [C,L,1]; [1,C,H,W] -> [C,H,W].
  Result<Shape> shape(const Dims& dims) const {
    if (dims.size() < 2 || dims.size() > 4)
      return absl::UnimplementedError(absl::StrCat(graph_.file, ": a tensor of [",
                                                   absl::StrJoin(dims, ","),
                                                   "]; supported: [1,N], [1,C,L], [1,C,H,W]"));
    Shape out;
    for (std::size_t n = 1; n < dims.size(); ++n)
      out.push_back(static_cast<std::uint32_t>(dims[n]));
    if (dims.size() == 3) out.push_back(1);
    return out;
  }

  // Same rank as `like`, with the batch.
  static Dims dims_of(const Shape& shape, const Dims& like) {
    Dims out = {1};
    for (std::size_t n = 0; n + 1 < like.size() && n < shape.size(); ++n) out.push_back(shape[n]);
    return out;
  }

  Result<Value> input(const Node& node, std::size_t n) const {
    const auto it = node.inputs.size() > n ? values_.find(node.inputs[n]) : values_.end();
    if (it == values_.end())
      return refused(node, absl::StrCat("its input ", n, " is not a tensor of the data"));
    return it->second;
  }

  Value push(FloatOp op, const Node& node, int in0, int in1, const Dims& like) {
    op.node = &node;
    op.in0 = in0;
    op.in1 = in1;
    const Dims dims = dims_of(op.out, like);
    g_.ops.push_back(std::move(op));
    return {static_cast<int>(g_.ops.size()) - 1, dims};
  }

  Result<Value> step(const Node& node) {
    const std::string& op = node.op;
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") return arithmetic(node);
    if (op == "Sum") return sum(node);
    if (op == "Concat") return concat(node);
    Value x;
    ODT_ASSIGN(x, input(node, 0));
    if (op == "Conv" || op == "MatMul" || op == "Gemm" || op == "BatchNormalization")
      return weighted(node, x);
    if (op == "Relu" || op == "Clip" || op == "Neg") return activation(node, x);
    if (op == "MaxPool" || op == "AveragePool") return pool(node, x);
    if (op == "GlobalAveragePool" || op == "GlobalMaxPool" || op == "ReduceMean")
      return global(node, x);
    if (op == "Resize" || op == "Upsample") return resize(node, x);
    if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze")
      return reshape(node, x);
    if (op == "Softmax" || op == "LogSoftmax") return softmax(node, x);
    const std::string why = reason(op);
    return refused(node, absl::StrCat("this operator is not supported", why.empty() ? "" : ": ",
                                      why, "; ", kFloatOps));
  }

  Result<Value> weighted(const Node& node, const Value& x) {
    Shape in;
    ODT_ASSIGN(in, shape(x.dims));
    FloatOp op;
    if (node.op == "Conv") {
      ODT_ASSIGN(op, read_float_conv(graph_, node, in, x.dims.size() - 2));
    } else if (node.op == "BatchNormalization") {
      ODT_ASSIGN(op, read_batch_norm(graph_, node, in));
    } else {
      ODT_ASSIGN(op, read_float_linear(graph_, node, in));
    }
    return push(std::move(op), node, x.id, kFloatNone, x.dims);
  }

  Result<double> bound(const Node& node, std::size_t n, double absent) const {
    if (node.inputs.size() <= n || node.inputs[n].empty()) return absent;
    const Tensor* t = graph_.constant(node.inputs[n]);
    if (t == nullptr || t->size() != 1) return refused(node, "its bounds are not constants");
    return t->at(0);
  }

  Result<Value> activation(const Node& node, const Value& x) {
    FloatOp op;
    ODT_ASSIGN(op.out, shape(x.dims));
    if (node.op == "Neg") return affine(node, x, {-1}, {0});
    if (node.op == "Clip") {
      constexpr double kUnbounded = 3.4e38;
      double lo, hi;
      ODT_ASSIGN(lo, bound(node, 1, double{node.real("min", -HUGE_VALF)}));
      ODT_ASSIGN(hi, bound(node, 2, double{node.real("max", HUGE_VALF)}));
      if (hi >= kUnbounded && lo <= -kUnbounded) return x;
      if (lo != 0 || !(hi > 0))
        return refused(node, absl::StrCat("clips to ", lo, "..", hi,
                                          "; supported: from 0, to an upper bound above it (as "
                                          "ReLU6 has) or none"));
      op.kind = FloatKind::kRelu;
      const Value positive = push(std::move(op), node, x.id, kFloatNone, x.dims);
      return hi >= kUnbounded ? Result<Value>(positive) : bounded(node, positive, hi);
    }
    op.kind = FloatKind::kRelu;
    return push(std::move(op), node, x.id, kFloatNone, x.dims);
  }

  // min(x, top) = top - Relu(top - x): DFP16 has no upper bound of its own.
  Result<Value> bounded(const Node& node, const Value& x, double top) {
    Value below, out;
    ODT_ASSIGN(below, affine(node, x, {-1}, {top}));
    g_.ops.back().relu = true;
    g_.ops.back().fixed = true;
    ODT_ASSIGN(out, affine(node, below, {-1}, {top}));
    g_.ops.back().fixed = true;
    return out;
  }

  Result<Value> affine(const Node& node, const Value& x, std::vector<double> scale,
                       std::vector<double> shift) {
    FloatOp op;
    op.kind = FloatKind::kAffine;
    ODT_ASSIGN(op.out, shape(x.dims));
    const auto spread = [&op](std::vector<double>& v) {
      if (v.size() == 1) v.assign(op.out[0], v[0]);
    };
    spread(scale);
    spread(shift);
    op.weights = std::move(scale);
    op.bias = std::move(shift);
    return push(std::move(op), node, x.id, kFloatNone, x.dims);
  }

  // One value, or one for each channel.
  Result<std::vector<double>> per_channel(const Node& node, const Tensor& t,
                                          const Dims& dims) const {
    bool fits = t.dims.size() <= dims.size();
    for (std::size_t n = 0; n < t.dims.size() && fits; ++n) {
      const std::size_t axis = n + dims.size() - t.dims.size();
      fits = t.dims[n] == 1 || (axis == 1 && t.dims[n] == dims[1]);
    }
    std::vector<double> out;
    for (std::size_t n = 0; n < t.size() && fits; ++n) {
      out.push_back(t.at(n));
      if (!std::isfinite(out.back())) return malformed(node, "its constant is not finite");
    }
    if (out.empty())
      return refused(node, absl::StrCat("a constant of [", absl::StrJoin(t.dims, ","),
                                        "] on a tensor of [", absl::StrJoin(dims, ","),
                                        "]; supported: one value, or one for each channel"));
    return out;
  }

  Result<Value> arithmetic(const Node& node) {
    if (node.inputs.size() != 2) return malformed(node, "expected two inputs");
    const Tensor *a = graph_.constant(node.inputs[0]), *b = graph_.constant(node.inputs[1]);
    if (a == nullptr && b == nullptr) return two_tensors(node);
    Value x;
    ODT_ASSIGN(x, input(node, a == nullptr ? 0 : 1));
    std::vector<double> c;
    ODT_ASSIGN(c, per_channel(node, a == nullptr ? *b : *a, x.dims));
    if (node.op == "Add") return affine(node, x, {1}, c);
    if (node.op == "Mul") return affine(node, x, c, {0});
    if (node.op == "Sub" && a != nullptr) return affine(node, x, {-1}, c);
    if (node.op == "Div" && a != nullptr) return refused(node, "a constant divided by a tensor");
    for (double& v : c) {
      if (node.op == "Div" && v == 0) return malformed(node, "division by 0");
      v = node.op == "Sub" ? -v : 1 / v;
    }
    return node.op == "Sub" ? affine(node, x, {1}, c) : affine(node, x, c, {0});
  }

  Result<Value> two_tensors(const Node& node) {
    Value a, b;
    ODT_ASSIGN(a, input(node, 0));
    ODT_ASSIGN(b, input(node, 1));
    if (node.op != "Add" && node.op != "Sub")
      return refused(node, absl::StrCat(node.op, " of two tensors of the data; supported: Add"));
    if (node.op == "Sub") {
      ODT_ASSIGN(b, affine(node, b, {-1}, {0}));
    }
    return add(node, a, b);
  }

  Result<Value> add(const Node& node, const Value& a, const Value& b) {
    if (a.dims != b.dims)
      return refused(
          node, absl::StrCat("adds [", absl::StrJoin(a.dims, ","), "] and [",
                             absl::StrJoin(b.dims, ","), "]; supported: tensors of one shape"));
    FloatOp op;
    op.kind = FloatKind::kAdd;
    ODT_ASSIGN(op.out, shape(a.dims));
    return push(std::move(op), node, a.id, b.id, a.dims);
  }

  Result<Value> sum(const Node& node) {
    Value total;
    ODT_ASSIGN(total, input(node, 0));
    for (std::size_t n = 1; n < node.inputs.size(); ++n) {
      Value next;
      ODT_ASSIGN(next, input(node, n));
      ODT_ASSIGN(total, add(node, total, next));
    }
    return total;
  }

  Result<Value> concat(const Node& node) {
    Value all;
    ODT_ASSIGN(all, input(node, 0));
    const auto rank = static_cast<std::int64_t>(all.dims.size());
    const std::int64_t axis = node.integer("axis", 1);
    if (rank < 2 || (axis != 1 && axis != 1 - rank))
      return refused(node, absl::StrCat("Concat along axis ", axis,
                                        "; supported: 1, channels (flatten what it joins)"));
    for (std::size_t n = 1; n < node.inputs.size(); ++n) {
      Value next;
      ODT_ASSIGN(next, input(node, n));
      Dims same = next.dims;
      if (same.size() == all.dims.size()) same[1] = all.dims[1];
      if (same != all.dims)
        return malformed(node, absl::StrCat("joins [", absl::StrJoin(all.dims, ","), "] and [",
                                            absl::StrJoin(next.dims, ","), "]"));
      FloatOp op;
      op.kind = FloatKind::kConcat;
      ODT_ASSIGN(op.out, shape(all.dims));
      op.out[0] += static_cast<std::uint32_t>(next.dims[1]);
      all = push(std::move(op), node, all.id, next.id, all.dims);
    }
    return all;
  }

  Result<Value> pool(const Node& node, const Value& x) {
    for (std::size_t n = 1; n < node.outputs.size(); ++n)
      if (!node.outputs[n].empty() && !graph_.consumers(node.outputs[n]).empty())
        return refused(node, "the indices of a MaxPool are used");
    Shape in;
    ODT_ASSIGN(in, shape(x.dims));
    Window w;
    ODT_ASSIGN(w, read_window(graph_, node, in, {}, x.dims.size() - 2));
    const ConvGeometry& geometry = w.geometry;
    const bool padded = (geometry.pad_t | geometry.pad_l | geometry.pad_b | geometry.pad_r) != 0;
    if (node.op == "AveragePool" && padded && node.integer("count_include_pad", 0) == 0)
      return refused(node,
                     "averages that leave the padding out; supported: count_include_pad 1, or no "
                     "padding");
    FloatOp op;
    op.kind = node.op == "MaxPool" ? FloatKind::kMaxPool : FloatKind::kAvgPool;
    op.geometry = geometry;
    op.out = {in[0], w.out_h, w.out_w};
    return push(std::move(op), node, x.id, kFloatNone, x.dims);
  }

  Result<Value> global(const Node& node, const Value& x) {
    Shape in;
    ODT_ASSIGN(in, shape(x.dims));
    if (in.size() != 3)
      return refused(node, absl::StrCat("on [", absl::StrJoin(x.dims, ","),
                                        "]; supported: over the plane of [1,C,H,W]"));
    Dims dims = x.dims;
    std::fill(dims.begin() + 2, dims.end(), 1);
    if (node.op == "ReduceMean") {
      Dims axes;
      ODT_ASSIGN(axes, read_axes(graph_, node, x.dims.size()));
      for (std::int64_t a = 0; a < static_cast<std::int64_t>(x.dims.size()); ++a) {
        const bool over = std::find(axes.begin(), axes.end(), a) != axes.end();
        if (over != (a >= 2) && x.dims[static_cast<std::size_t>(a)] != 1)
          return refused(
              node, absl::StrCat("over axes [", absl::StrJoin(axes, ","), "] of [",
                                 absl::StrJoin(x.dims, ","), "]; supported: over the whole plane"));
      }
      if (node.integer("keepdims", 1) == 0)
        for (auto a = axes.rbegin(); a != axes.rend(); ++a) dims.erase(dims.begin() + *a);
      if (dims.size() == 1) dims.insert(dims.begin(), 1);
    }
    FloatOp op;
    op.kind = node.op == "GlobalMaxPool" ? FloatKind::kMaxPool : FloatKind::kGap;
    if (op.kind == FloatKind::kMaxPool) {
      if (in[1] > 255 || in[2] > 255) return refused(node, "a plane of over 255 in one direction");
      op.geometry.k_h = static_cast<std::uint16_t>(in[1]);
      op.geometry.k_w = static_cast<std::uint16_t>(in[2]);
    }
    op.out = {in[0], 1, 1};
    const Value pooled = push(std::move(op), node, x.id, kFloatNone, x.dims);
    return dims == pooled.dims ? Result<Value>(pooled) : flattened(node, pooled, dims);
  }

  Result<Value> resize(const Node& node, const Value& x) {
    FloatOp op;
    op.kind = FloatKind::kResize;
    Shape in;
    ODT_ASSIGN(in, shape(x.dims));
    ODT_ASSIGN(op.out, read_resize(graph_, node, in, x.dims.size() - 2));
    if (op.out == in) return x;
    return push(std::move(op), node, x.id, kFloatNone, x.dims);
  }

  Result<Dims> target_dims(const Node& node, const Dims& from) const {
    std::int64_t count = 1;
    for (const auto d : from) count *= d;
    if (node.op == "Flatten") {
      const std::int64_t axis = node.integer("axis", 1);
      if (axis != 1 && axis != 1 - static_cast<std::int64_t>(from.size()))
        return refused(node, absl::StrCat("Flatten with axis ", axis, "; supported: 1"));
      return Dims{1, count};
    }
    const bool more = node.inputs.size() > 1 && !node.inputs[1].empty();
    const Tensor* t = more ? graph_.constant(node.inputs[1]) : nullptr;
    if ((more && t == nullptr) || (node.op == "Reshape" && t == nullptr))
      return refused(node, "its target shape is not constant");
    auto to = node.op == "Squeeze"     ? squeeze_dims(node, from, t)
              : node.op == "Unsqueeze" ? unsqueeze_dims(node, from, t)
                                       : reshape_dims(node, from, *t);
    if (!to.ok()) return malformed(node, absl::StrCat("it has ", to.status().message()));
    if (node.op != "Squeeze") return to;
    // The batch stays.
    Dims axes;
    if (more || node.attributes.contains("axes")) {
      ODT_ASSIGN(axes, read_axes(graph_, node, from.size()));
    }
    if (axes.empty() || std::find(axes.begin(), axes.end(), 0) != axes.end())
      to->insert(to->begin(), 1);
    if (to->size() == 1) to->push_back(1);
    return to;
  }

  Result<Value> reshape(const Node& node, const Value& x) {
    Dims to;
    ODT_ASSIGN(to, target_dims(node, x.dims));
    return flattened(node, x, to);
  }

  // Other dimensions for the same values.
  Result<Value> flattened(const Node& node, const Value& x, const Dims& to) {
    Shape from_shape, to_shape;
    ODT_ASSIGN(from_shape, shape(x.dims));
    const auto wrong = [&] {
      return refused(node, absl::StrCat("reshapes [", absl::StrJoin(x.dims, ","), "] to [",
                                        absl::StrJoin(to, ","),
                                        "]; supported: to [1,N], at the input also from it"));
    };
    if (to.size() < 2 || to.size() > 4 || to[0] != 1) return wrong();
    ODT_ASSIGN(to_shape, shape(to));
    if (to_shape == from_shape) return Value{x.id, to};
    if (x.id == kFloatInput && graph_.consumers(node.inputs[0]).size() == 1) {
      g_.input = to_shape;
      return Value{kFloatInput, to};
    }
    if (to_shape.size() != 1) return wrong();
    FloatOp op;
    op.kind = FloatKind::kFlatten;
    op.out = to_shape;
    return push(std::move(op), node, x.id, kFloatNone, to);
  }

  Result<Value> softmax(const Node& node, const Value& x) {
    const std::int64_t axis = node.integer("axis", -1);
    const auto rank = static_cast<std::int64_t>(x.dims.size());
    if (node.outputs[0] != graph_.output || (rank == 2 && axis != 1 && axis != -1))
      return refused(node, absl::StrCat(node.op, " is supported at the end, over the classes"));
    return x;
  }

  const Graph& graph_;
  FloatGraph g_;
  std::map<std::string, Value> values_;
};

}  // namespace

Result<FloatGraph> read_float_graph(const Graph& graph) { return Reader(graph).run(); }

}  // namespace odt::compiler

#include "float_fixture.h"

#include <algorithm>
#include <cmath>

namespace odt::test {
namespace {

using Dims = std::vector<std::int64_t>;
using Tensors = std::map<std::string, Tensor64>;
using Node = onnx::NodeProto;

std::int64_t product(const Dims& d) {
  std::int64_t n = 1;
  for (auto x : d) n *= x;
  return n;
}

const onnx::AttributeProto* attribute(const Node& n, const std::string& key) {
  for (const auto& a : n.attribute())
    if (a.name() == key) return &a;
  return nullptr;
}
std::int64_t integer_of(const Node& n, const std::string& key, std::int64_t absent) {
  const auto* a = attribute(n, key);
  return a == nullptr ? absent : a->i();
}
double real_of(const Node& n, const std::string& key, float absent) {
  const auto* a = attribute(n, key);
  return double{a == nullptr ? absent : a->f()};
}
std::int64_t ints_at(const Node& n, const std::string& key, int i, std::int64_t absent) {
  const auto* a = attribute(n, key);
  return a == nullptr ? absent : a->ints(i);
}

Tensor64 to_tensor(const onnx::TensorProto& p) {
  Tensor64 t;
  t.dims.assign(p.dims().begin(), p.dims().end());
  for (auto v : p.int64_data()) t.v.push_back(static_cast<double>(v));
  for (auto v : p.float_data()) t.v.push_back(double{v});
  return t;
}

// numpy's broadcasting: index into t of an element of `dims`.
std::size_t index_in(const Tensor64& t, const Dims& dims, std::int64_t flat) {
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

Tensor64 binary(const std::string& op, const Tensor64& a, const Tensor64& b) {
  Tensor64 y;
  y.dims = a.v.size() > b.v.size() || a.dims.size() >= b.dims.size() ? a.dims : b.dims;
  if (b.v.size() > a.v.size()) y.dims = b.dims;
  for (std::int64_t i = 0; i < product(y.dims); ++i) {
    const double p = a.v[index_in(a, y.dims, i)], q = b.v[index_in(b, y.dims, i)];
    y.v.push_back(op == "Add" ? p + q : op == "Sub" ? p - q : op == "Mul" ? p * q : p / q);
  }
  return y;
}

struct Geometry {
  std::int64_t k[2], s[2], d[2], before[2], out[2];
};
// 1 or 2 spatial axes; the missing one has size 1.
Geometry geometry(const Node& n, const Tensor64& x, const Dims& kernel) {
  Geometry g{};
  const int spatial = static_cast<int>(x.dims.size()) - 2;
  for (int a = 0; a < 2; ++a) {
    const bool there = a < spatial;
    const std::int64_t in = there ? x.dims[static_cast<std::size_t>(a) + 2] : 1;
    g.k[a] = there ? kernel[static_cast<std::size_t>(a)] : 1;
    g.s[a] = there ? ints_at(n, "strides", a, 1) : 1;
    g.d[a] = there ? ints_at(n, "dilations", a, 1) : 1;
    g.before[a] = there ? ints_at(n, "pads", a, 0) : 0;
    std::int64_t after = there ? ints_at(n, "pads", a + spatial, 0) : 0;
    const std::int64_t span = g.d[a] * (g.k[a] - 1) + 1;
    if (const auto* pad = attribute(n, "auto_pad"); pad != nullptr && there) {
      const std::int64_t total =
          std::max<std::int64_t>(0, ((in + g.s[a] - 1) / g.s[a] - 1) * g.s[a] + span - in);
      g.before[a] = pad->s() == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      after = total - g.before[a];
    }
    const std::int64_t rest = in + g.before[a] + after - span;
    g.out[a] = rest / g.s[a] + 1;
    if (integer_of(n, "ceil_mode", 0) != 0 && rest % g.s[a] != 0 &&
        g.out[a] * g.s[a] < in + g.before[a])
      ++g.out[a];
  }
  return g;
}

// Calls f(channel, output position, input index or -1, tap) over all windows.
template <typename F>
void windows(const Tensor64& x, const Geometry& g, F&& f) {
  const std::int64_t H = x.dims[2], W = x.dims.size() > 3 ? x.dims[3] : 1;
  for (std::int64_t c = 0; c < x.dims[1]; ++c)
    for (std::int64_t o = 0; o < g.out[0] * g.out[1]; ++o)
      for (std::int64_t k = 0; k < g.k[0] * g.k[1]; ++k) {
        const std::int64_t y = o / g.out[1] * g.s[0] - g.before[0] + k / g.k[1] * g.d[0];
        const std::int64_t z = o % g.out[1] * g.s[1] - g.before[1] + k % g.k[1] * g.d[1];
        const bool inside = y >= 0 && z >= 0 && y < H && z < W;
        f(c, o, inside ? (c * H + y) * W + z : -1, k);
      }
}

Dims with_plane(const Tensor64& x, std::int64_t channels, const Geometry& g) {
  Dims dims = {1, channels, g.out[0]};
  if (x.dims.size() > 3) dims.push_back(g.out[1]);
  return dims;
}

Tensor64 conv(const Node& n, const Tensor64& x, const Tensor64& w, const Tensor64* bias) {
  const Geometry g = geometry(n, x, Dims(w.dims.begin() + 2, w.dims.end()));
  const std::int64_t positions = g.out[0] * g.out[1], outs = w.dims[0], per_group = w.dims[1];
  const std::int64_t groups = integer_of(n, "group", 1), taps = g.k[0] * g.k[1];
  Tensor64 y{with_plane(x, outs, g),
             std::vector<double>(static_cast<std::size_t>(outs * positions))};
  for (std::int64_t o = 0; o < outs; ++o)
    for (std::int64_t p = 0; p < positions; ++p)
      y.v[static_cast<std::size_t>(o * positions + p)] =
          bias == nullptr ? 0 : bias->v[static_cast<std::size_t>(o)];
  windows(x, g, [&](std::int64_t c, std::int64_t p, std::int64_t at, std::int64_t k) {
    if (at < 0) return;
    const std::int64_t group = c / per_group, each = outs / groups;
    for (std::int64_t o = group * each; o < (group + 1) * each; ++o)
      y.v[static_cast<std::size_t>(o * positions + p)] +=
          x.v[static_cast<std::size_t>(at)] *
          w.v[static_cast<std::size_t>((o * per_group + c % per_group) * taps + k)];
  });
  return y;
}

Tensor64 pool(const Node& n, const Tensor64& x, const Dims& kernel, bool max) {
  const Geometry g = geometry(n, x, kernel);
  const std::int64_t positions = g.out[0] * g.out[1];
  Tensor64 y{
      with_plane(x, x.dims[1], g),
      std::vector<double>(static_cast<std::size_t>(x.dims[1] * positions), max ? -1e300 : 0)};
  windows(x, g, [&](std::int64_t c, std::int64_t p, std::int64_t at, std::int64_t) {
    double& to = y.v[static_cast<std::size_t>(c * positions + p)];
    if (at < 0) return;
    const double v = x.v[static_cast<std::size_t>(at)];
    to = max ? std::max(to, v) : to + v / static_cast<double>(g.k[0] * g.k[1]);
  });
  return y;
}

Tensor64 linear(const Node& n, const Tensor64& x, const Tensor64& w, const Tensor64* c) {
  const bool trans = integer_of(n, "transB", 0) != 0;
  const std::int64_t in = w.dims[trans ? 1 : 0], out = w.dims[trans ? 0 : 1];
  Tensor64 y{{1, out}, {}};
  for (std::int64_t o = 0; o < out; ++o) {
    double sum = 0;
    for (std::int64_t i = 0; i < in; ++i)
      sum += x.v[static_cast<std::size_t>(i)] *
             w.v[static_cast<std::size_t>(trans ? o * in + i : i * out + o)];
    sum *= real_of(n, "alpha", 1);
    if (c != nullptr)
      sum += real_of(n, "beta", 1) * c->v[c->v.size() == 1 ? 0 : static_cast<std::size_t>(o)];
    y.v.push_back(sum);
  }
  return y;
}

Tensor64 batch_norm(const Node& n, Tensor64 x, const Tensors& t) {
  const auto part = [&](int i, std::size_t c) { return t.at(n.input(i)).v[c]; };
  const std::size_t plane = x.v.size() / static_cast<std::size_t>(x.dims[1]);
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const std::size_t c = i / plane;
    x.v[i] =
        (x.v[i] - part(3, c)) / std::sqrt(part(4, c) + real_of(n, "epsilon", 1e-5f)) * part(1, c) +
        part(2, c);
  }
  return x;
}

Tensor64 concat(const Node& n, const Tensors& t) {
  Tensor64 y = t.at(n.input(0));
  for (int i = 1; i < n.input_size(); ++i) {
    const Tensor64& more = t.at(n.input(i));
    y.dims[1] += more.dims[1];
    y.v.insert(y.v.end(), more.v.begin(), more.v.end());
  }
  return y;
}

// Whole factors of the plane.
Tensor64 resize(const Tensor64& x, const std::vector<double>& scales) {
  Tensor64 y;
  y.dims = x.dims;
  for (std::size_t a = 0; a < y.dims.size(); ++a)
    y.dims[a] = static_cast<std::int64_t>(static_cast<double>(x.dims[a]) * scales[a]);
  const std::int64_t W = y.dims.size() > 3 ? y.dims[3] : 1, w = x.dims.size() > 3 ? x.dims[3] : 1;
  for (std::int64_t c = 0; c < y.dims[1]; ++c)
    for (std::int64_t r = 0; r < y.dims[2]; ++r)
      for (std::int64_t q = 0; q < W; ++q)
        y.v.push_back(x.v[static_cast<std::size_t>((c * x.dims[2] + r * x.dims[2] / y.dims[2]) * w +
                                                   q * w / W)]);
  return y;
}

Tensor64 reshaped(const Node& n, Tensor64 x, const Tensors& t) {
  Dims to;
  if (n.op_type() == "Flatten") to = {1, product(x.dims)};
  if (n.op_type() == "Reshape") {
    for (const double v : t.at(n.input(1)).v) to.push_back(static_cast<std::int64_t>(v));
    for (std::size_t a = 0; a < to.size(); ++a)
      if (to[a] == 0) to[a] = x.dims[a];
    const std::int64_t known = product(to);
    for (auto& d : to)
      if (d == -1) d = product(x.dims) / -known;
  }
  if (n.op_type() == "Squeeze") {
    for (std::size_t a = 0; a < x.dims.size(); ++a)
      if (a == 0 || x.dims[a] != 1) to.push_back(x.dims[a]);
  }
  if (n.op_type() == "Unsqueeze") {
    to = x.dims;
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(t.at(n.input(1)).v[0]), 1);
  }
  x.dims = to;
  return x;
}

Tensor64 elementwise(const Node& n, Tensor64 x, double top) {
  for (auto& v : x.v) {
    if (n.op_type() == "Relu" || n.op_type() == "Clip") v = std::min(std::max(v, 0.0), top);
    if (n.op_type() == "Neg") v = -v;
  }
  return x;
}

Tensor64 evaluate_node(const Node& n, const Tensors& t) {
  const std::string& op = n.op_type();
  const Tensor64& x = t.at(n.input(0));
  const Tensor64* third = n.input_size() > 2 && !n.input(2).empty() ? &t.at(n.input(2)) : nullptr;
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div")
    return binary(op, x, t.at(n.input(1)));
  if (op == "Conv") return conv(n, x, t.at(n.input(1)), third);
  if (op == "MatMul" || op == "Gemm") return linear(n, x, t.at(n.input(1)), third);
  if (op == "BatchNormalization") return batch_norm(n, x, t);
  if (op == "MaxPool" || op == "AveragePool") {
    const auto* k = attribute(n, "kernel_shape");
    return pool(n, x, Dims(k->ints().begin(), k->ints().end()), op == "MaxPool");
  }
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool" || op == "ReduceMean") {
    Tensor64 y = pool(n, x, Dims(x.dims.begin() + 2, x.dims.end()), op == "GlobalMaxPool");
    if (op == "ReduceMean" && integer_of(n, "keepdims", 1) == 0) y.dims.resize(2);
    return y;
  }
  if (op == "Concat") return concat(n, t);
  if (op == "Sum") return binary("Add", binary("Add", x, t.at(n.input(1))), *third);
  if (op == "Resize") return resize(x, third->v);
  if (op == "Upsample") return resize(x, t.at(n.input(1)).v);
  if (op == "Flatten" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze")
    return reshaped(n, x, t);
  if (op == "Softmax" || op == "LogSoftmax" || op == "Identity" || op == "Dropout") return x;
  if (op == "Relu" || op == "Clip" || op == "Neg")
    return elementwise(n, x, third == nullptr ? HUGE_VAL : third->v[0]);
  std::abort();
}

}  // namespace

FloatBuilder::FloatBuilder(const Dims& input, std::uint32_t seed) : random_(seed) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(17);
  auto* in = graph().add_input();
  in->set_name("x");
  auto* type = in->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (auto d : input) type->mutable_shape()->add_dim()->set_dim_value(d);
  probe_["x"].dims = input;
  for (std::int64_t i = 0; i < product(input); ++i) probe_["x"].v.push_back(normal());
}

void FloatBuilder::evaluate_last() {
  const Node& n = graph().node(graph().node_size() - 1);
  // Not complete yet: attributes follow.
  if ((n.op_type() == "MaxPool" || n.op_type() == "AveragePool") &&
      attribute(n, "kernel_shape") == nullptr)
    return;
  if (n.op_type() == "Conv" && n.attribute_size() == 0) return;
  if (n.op_type() == "Gemm" && n.attribute_size() == 0 &&
      probe_.at(n.input(0)).dims.back() != probe_.at(n.input(1)).dims[0])
    return;
  probe_[n.output(0)] = evaluate_node(n, probe_);
}

std::string FloatBuilder::node(const std::string& op, const std::vector<std::string>& inputs) {
  auto* n = graph().add_node();
  n->set_op_type(op);
  n->set_name("/" + op + "_" + std::to_string(next_));
  for (const auto& in : inputs) n->add_input(in);
  n->add_output("t" + std::to_string(next_++));
  evaluate_last();
  return n->output(0);
}

std::string FloatBuilder::raw(const std::string& op, const std::vector<std::string>& inputs) {
  const std::string y = node("Identity", inputs);
  graph().mutable_node(graph().node_size() - 1)->set_op_type(op);
  return y;
}

void FloatBuilder::ints(const std::string& key, const Dims& v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::INTS);
  for (auto x : v) a->add_ints(x);
  evaluate_last();
}
void FloatBuilder::integer(const std::string& key, std::int64_t v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(v);
  evaluate_last();
}
void FloatBuilder::real(const std::string& key, float v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(v);
  evaluate_last();
}
void FloatBuilder::text(const std::string& key, const std::string& v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(v);
  evaluate_last();
}

std::string FloatBuilder::constant(const Dims& dims, const std::vector<float>& v) {
  auto* t = graph().add_initializer();
  t->set_name("c" + std::to_string(next_++));
  t->set_data_type(onnx::TensorProto::FLOAT);
  for (auto d : dims) t->add_dims(d);
  for (auto x : v) t->add_float_data(x);
  probe_[t->name()] = to_tensor(*t);
  return t->name();
}
std::string FloatBuilder::constant_i64(const Dims& v) {
  auto* t = graph().add_initializer();
  t->set_name("c" + std::to_string(next_++));
  t->set_data_type(onnx::TensorProto::INT64);
  t->add_dims(static_cast<std::int64_t>(v.size()));
  for (auto x : v) t->add_int64_data(x);
  probe_[t->name()] = to_tensor(*t);
  return t->name();
}
std::string FloatBuilder::random(const Dims& dims, double scale, double shift) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < product(dims); ++i)
    v.push_back(static_cast<float>(normal() * scale + shift));
  return constant(dims, v);
}

std::string FloatBuilder::conv(const std::string& x, std::int64_t out, std::int64_t kernel,
                               std::int64_t groups, bool bias) {
  const std::size_t spatial = dims(x).size() - 2;
  Dims w = {out, dims(x)[1] / groups};
  w.resize(spatial + 2, kernel);
  const double fan_in = static_cast<double>(product(w) / out);
  std::vector<std::string> inputs = {x, random(w, 1 / std::sqrt(fan_in))};
  if (bias) inputs.push_back(random({out}, 0.3));
  const std::string y = node("Conv", inputs);
  integer("group", groups);
  return y;
}
std::string FloatBuilder::gemm(const std::string& x, std::int64_t out) {
  const std::int64_t in = dims(x)[1];
  const std::string y = node(
      "Gemm", {x, random({out, in}, 1 / std::sqrt(static_cast<double>(in))), random({out}, 0.3)});
  integer("transB", 1);
  return y;
}
std::string FloatBuilder::batch_norm(const std::string& x) {
  const std::int64_t c = dims(x)[1];
  std::vector<float> variance;
  for (std::int64_t i = 0; i < c; ++i)
    variance.push_back(static_cast<float>(0.3 + std::abs(normal())));
  return node("BatchNormalization", {x, random({c}, 0.3, 1), random({c}, 0.3), random({c}, 0.3),
                                     constant({c}, variance)});
}

std::string FloatBuilder::bytes(const std::string& output) {
  graph().clear_output();
  auto* out = graph().add_output();
  out->set_name(output);
  auto* type = out->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (auto d : dims(output)) type->mutable_shape()->add_dim()->set_dim_value(d);
  return model_.SerializeAsString();
}

Tensor64 evaluate64(const onnx::ModelProto& model, const std::vector<float>& input) {
  Tensors t;
  const auto& g = model.graph();
  Tensor64 in;
  for (const auto& d : g.input(0).type().tensor_type().shape().dim())
    in.dims.push_back(d.dim_value());
  in.v.assign(input.begin(), input.end());
  t[g.input(0).name()] = in;
  for (const auto& p : g.initializer()) t[p.name()] = to_tensor(p);
  for (int left = g.node_size(); left > 0;) {
    const int before = left;
    for (const auto& n : g.node()) {
      const bool ready = std::all_of(n.input().begin(), n.input().end(),
                                     [&](const auto& i) { return i.empty() || t.contains(i); });
      if (!ready || t.contains(n.output(0))) continue;
      t[n.output(0)] = evaluate_node(n, t);
      --left;
    }
    if (left == before) std::abort();
  }
  return t.at(g.output(0).name());
}

}  // namespace odt::test

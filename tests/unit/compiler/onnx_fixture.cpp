#include "onnx_fixture.h"

#include <cmath>

namespace odt::test {

OnnxBuilder::OnnxBuilder(const Dims& input, std::uint32_t seed) : random_(seed) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(17);
  auto* in = graph().add_input();
  in->set_name(at_);
  auto* type = in->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (auto d : input) type->mutable_shape()->add_dim()->set_dim_value(d);
}

std::string OnnxBuilder::fresh() { return std::to_string(next_++); }

int OnnxBuilder::random(int lo, int hi) {
  return lo + static_cast<int>(random_() % static_cast<unsigned>(hi - lo + 1));
}

OnnxBuilder& OnnxBuilder::node(const std::string& op, const std::vector<std::string>& more,
                               const std::string& name) {
  auto* n = graph().add_node();
  n->set_op_type(op);
  n->set_name(name);
  n->add_input(at_);
  for (const auto& m : more) n->add_input(m);
  at_ = fresh();
  n->add_output(at_);
  return *this;
}

OnnxBuilder& OnnxBuilder::swapped(const std::string& op, const std::string& c) {
  node(op, {c});
  auto* n = graph().mutable_node(graph().node_size() - 1);
  std::swap(*n->mutable_input(0), *n->mutable_input(1));
  return *this;
}

std::string OnnxBuilder::constant(const Dims& dims, const std::vector<float>& v) {
  auto* t = graph().add_initializer();
  t->set_name(fresh());
  t->set_data_type(onnx::TensorProto::FLOAT);
  for (auto d : dims) t->add_dims(d);
  for (auto x : v) t->add_float_data(x);
  return t->name();
}

std::string OnnxBuilder::constant_node(const std::vector<float>& scalar) {
  auto* n = graph().add_node();
  n->set_op_type("Constant");
  n->add_output(fresh());
  auto* a = n->add_attribute();
  a->set_name("value");
  a->set_type(onnx::AttributeProto::TENSOR);
  a->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  a->mutable_t()->set_raw_data(scalar.data(), scalar.size() * 4);
  return n->output(0);
}

std::string OnnxBuilder::constant_i64(const std::vector<std::int64_t>& v) {
  auto* t = graph().add_initializer();
  t->set_name(fresh());
  t->set_data_type(onnx::TensorProto::INT64);
  t->add_dims(static_cast<std::int64_t>(v.size()));
  for (auto x : v) t->add_int64_data(x);
  return t->name();
}

std::string OnnxBuilder::identity_of(const std::string& tensor) {
  auto* n = graph().add_node();
  n->set_op_type("Identity");
  n->add_input(tensor);
  n->add_output(fresh());
  return n->output(0);
}

OnnxBuilder& OnnxBuilder::clip(float lo, float hi, bool as_node) {
  const auto a = as_node ? constant_node({lo}) : constant({}, {lo});
  const auto b = as_node ? constant_node({hi}) : constant({}, {hi});
  return node("Clip", {a, b});
}

void OnnxBuilder::ints(const std::string& key, const Dims& v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::INTS);
  for (auto x : v) a->add_ints(x);
}

void OnnxBuilder::integer(const std::string& key, std::int64_t v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(v);
}

void OnnxBuilder::metadata(const std::string& key, const std::string& value) {
  auto* m = model_.add_metadata_props();
  m->set_key(key);
  m->set_value(value);
}

OnnxBuilder& OnnxBuilder::oss(const Dims& dims, float lo, float hi, float offset_range,
                              bool random_mult) {
  std::int64_t n = 1;
  for (auto d : dims) n *= d;
  std::vector<float> offset, mult, shift;
  for (std::int64_t i = 0; i < n; ++i) {
    const int k = random(4, 7) + (random_mult ? 7 : 0);
    offset.push_back(static_cast<float>(
        random(-static_cast<int>(offset_range), static_cast<int>(offset_range)) + (1 << (k - 1))));
    mult.push_back(random_mult ? static_cast<float>(random(1, 255)) : 1.0f);
    shift.push_back(std::ldexp(1.0f, -k));
  }
  swapped("Add", constant(dims, offset));
  node("Mul", {constant(dims, mult)});
  swapped("Mul", constant(dims, shift));
  return node("Floor").clip(lo, hi);
}

std::vector<float> OnnxBuilder::weights(std::int64_t n) {
  std::vector<float> w;
  for (std::int64_t i = 0; i < n; ++i) w.push_back(static_cast<float>(random(-24, 24)));
  w[0] = -128;
  return w;
}

OnnxBuilder& OnnxBuilder::matmul(std::int64_t in, std::int64_t out) {
  return node("MatMul", {constant({in, out}, weights(in * out))});
}

OnnxBuilder& OnnxBuilder::gemm(std::int64_t in, std::int64_t out, bool trans_b) {
  std::vector<float> bias;
  for (std::int64_t i = 0; i < out; ++i) bias.push_back(static_cast<float>(random(-50, 50)));
  node("Gemm", {constant(trans_b ? Dims{out, in} : Dims{in, out}, weights(in * out)),
                constant({out}, bias)});
  if (trans_b) integer("transB", 1);
  return *this;
}

OnnxBuilder& OnnxBuilder::conv(std::int64_t in, std::int64_t out, std::int64_t kh,
                               std::int64_t kw) {
  node("Conv", {constant({out, in, kh, kw}, weights(in * out * kh * kw))});
  ints("kernel_shape", {kh, kw});
  return *this;
}

OnnxBuilder& OnnxBuilder::prequant() {
  node("Add", {constant({}, {-128})});
  node("Mul", {constant({}, {1})});
  node("Mul", {constant({}, {1})});
  return node("Floor").clip(-128, 127, true);
}

std::string OnnxBuilder::bytes(const Dims& output) {
  graph().clear_output();
  auto* out = graph().add_output();
  out->set_name(at_);
  auto* type = out->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (auto d : output) type->mutable_shape()->add_dim()->set_dim_value(d);
  return model_.SerializeAsString();
}

// ---- evaluator ---------------------------------------------------------------------------------

namespace {

using Tensors = std::map<std::string, FloatTensor>;

std::int64_t product(const Dims& d) {
  std::int64_t n = 1;
  for (auto x : d) n *= x;
  return n;
}

FloatTensor to_tensor(const onnx::TensorProto& p) {
  FloatTensor t;
  t.dims.assign(p.dims().begin(), p.dims().end());
  if (p.data_type() == onnx::TensorProto::INT64) {
    for (auto v : p.int64_data()) t.v.push_back(static_cast<float>(v));
  } else if (p.has_raw_data()) {
    t.v.resize(p.raw_data().size() / 4);
    std::memcpy(t.v.data(), p.raw_data().data(), p.raw_data().size());
  } else {
    t.v.assign(p.float_data().begin(), p.float_data().end());
  }
  return t;
}

const onnx::AttributeProto* attribute(const onnx::NodeProto& n, const std::string& key) {
  for (const auto& a : n.attribute())
    if (a.name() == key) return &a;
  return nullptr;
}

// Constants of shape scalar, [1,C,1,1], [1,N] or full against x.
std::size_t broadcast(const FloatTensor& c, const FloatTensor& x, std::int64_t flat) {
  if (c.v.size() == 1) return 0;
  if (c.v.size() == x.v.size()) return static_cast<std::size_t>(flat);
  std::int64_t inner = 1;
  for (std::size_t d = 2; d < x.dims.size(); ++d) inner *= x.dims[d];
  return static_cast<std::size_t>(flat / inner % x.dims[1]);
}

FloatTensor binary(bool add, const FloatTensor& a, const FloatTensor& b) {
  const FloatTensor& big = a.v.size() >= b.v.size() ? a : b;
  const FloatTensor& small = a.v.size() >= b.v.size() ? b : a;
  FloatTensor y = big;
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const float c = small.v[broadcast(small, big, static_cast<std::int64_t>(i))];
    y.v[i] = add ? y.v[i] + c : y.v[i] * c;
  }
  return y;
}

FloatTensor linear(const FloatTensor& x, const FloatTensor& w, bool trans,
                   const FloatTensor* bias) {
  const std::int64_t in = w.dims[trans ? 1 : 0], out = w.dims[trans ? 0 : 1];
  FloatTensor y{{1, out}, std::vector<float>(static_cast<std::size_t>(out))};
  for (std::int64_t o = 0; o < out; ++o) {
    float sum = 0;
    for (std::int64_t i = 0; i < in; ++i)
      sum += x.v[static_cast<std::size_t>(i)] *
             w.v[static_cast<std::size_t>(trans ? o * in + i : i * out + o)];
    y.v[static_cast<std::size_t>(o)] =
        sum + (bias != nullptr ? bias->v[static_cast<std::size_t>(o)] : 0);
  }
  return y;
}

std::int64_t ints_at(const onnx::NodeProto& n, const std::string& key, int i, std::int64_t absent) {
  const auto* a = attribute(n, key);
  return a == nullptr ? absent : a->ints(i);
}

FloatTensor conv(const onnx::NodeProto& n, const FloatTensor& x, const FloatTensor& w) {
  const auto* group = attribute(n, "group");
  const std::int64_t g = group == nullptr ? 1 : group->i();
  const std::int64_t sh = ints_at(n, "strides", 0, 1), sw = ints_at(n, "strides", 1, 1);
  const std::int64_t dh = ints_at(n, "dilations", 0, 1), dw = ints_at(n, "dilations", 1, 1);
  const std::int64_t pt = ints_at(n, "pads", 0, 0), pl = ints_at(n, "pads", 1, 0);
  const std::int64_t pb = ints_at(n, "pads", 2, 0), pr = ints_at(n, "pads", 3, 0);
  const std::int64_t H = x.dims[2], W = x.dims[3], kh = w.dims[2], kw = w.dims[3];
  const std::int64_t oh = (H + pt + pb - dh * (kh - 1) - 1) / sh + 1;
  const std::int64_t ow = (W + pl + pr - dw * (kw - 1) - 1) / sw + 1;
  const std::int64_t per_group = w.dims[1], outs = w.dims[0];
  FloatTensor y{{1, outs, oh, ow}, {}};
  for (std::int64_t o = 0; o < outs; ++o)
    for (std::int64_t r = 0; r < oh; ++r)
      for (std::int64_t c = 0; c < ow; ++c) {
        float sum = 0;
        for (std::int64_t i = 0; i < per_group; ++i)
          for (std::int64_t a = 0; a < kh; ++a)
            for (std::int64_t b = 0; b < kw; ++b) {
              const std::int64_t yy = r * sh - pt + a * dh, xx = c * sw - pl + b * dw;
              if (yy < 0 || xx < 0 || yy >= H || xx >= W) continue;
              const std::int64_t ch = o / (outs / g) * per_group + i;
              sum += x.v[static_cast<std::size_t>((ch * H + yy) * W + xx)] *
                     w.v[static_cast<std::size_t>(((o * per_group + i) * kh + a) * kw + b)];
            }
        y.v.push_back(sum);
      }
  return y;
}

FloatTensor evaluate_node(const onnx::NodeProto& n, const Tensors& t) {
  const std::string& op = n.op_type();
  if (op == "Constant") return to_tensor(attribute(n, "value")->t());
  FloatTensor x = t.at(n.input(0));
  if (op == "Identity") return x;
  if (op == "Add" || op == "Mul") return binary(op == "Add", x, t.at(n.input(1)));
  if (op == "MatMul") return linear(x, t.at(n.input(1)), false, nullptr);
  if (op == "Gemm")
    return linear(x, t.at(n.input(1)), attribute(n, "transB") != nullptr,
                  n.input_size() > 2 ? &t.at(n.input(2)) : nullptr);
  if (op == "Conv") return conv(n, x, t.at(n.input(1)));
  if (op == "Flatten") x.dims = {1, product(x.dims)};
  if (op == "Reshape") {
    x.dims.clear();
    for (auto v : t.at(n.input(1)).v) x.dims.push_back(static_cast<std::int64_t>(v));
    const std::int64_t known = product(x.dims);
    for (auto& d : x.dims)
      if (d == -1) d = static_cast<std::int64_t>(x.v.size()) / -known;
  }
  for (auto& v : x.v) {
    if (op == "Floor") v = std::floor(v);
    if (op == "Relu") v = std::max(v, 0.0f);
    if (op == "Clip") v = std::min(std::max(v, t.at(n.input(1)).v[0]), t.at(n.input(2)).v[0]);
  }
  if (op != "Floor" && op != "Relu" && op != "Clip" && op != "Flatten" && op != "Reshape") abort();
  return x;
}

}  // namespace

FloatTensor evaluate(const onnx::ModelProto& model, const std::vector<float>& input) {
  Tensors t;
  const auto& g = model.graph();
  FloatTensor in;
  for (const auto& d : g.input(0).type().tensor_type().shape().dim())
    in.dims.push_back(d.dim_value());
  in.v = input;
  t[g.input(0).name()] = in;
  for (const auto& p : g.initializer()) t[p.name()] = to_tensor(p);
  for (const auto& n : g.node()) t[n.output(0)] = evaluate_node(n, t);
  return t.at(g.output(0).name());
}

}  // namespace odt::test

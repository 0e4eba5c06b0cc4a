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

OnnxBuilder& OnnxBuilder::conv(std::int64_t in, std::int64_t out, std::int64_t kh, std::int64_t kw,
                               std::int64_t groups) {
  const std::int64_t per_group = in / groups;
  node("Conv", {constant({out, per_group, kh, kw}, weights(out * per_group * kh * kw))});
  ints("kernel_shape", {kh, kw});
  if (groups != 1) integer("group", groups);
  return *this;
}

OnnxBuilder& OnnxBuilder::conv_relu(std::int64_t in, std::int64_t out, std::int64_t kh,
                                    std::int64_t kw, const Dims& pads, const Dims& strides) {
  conv(in, out, kh, kw);
  ints("pads", pads);
  ints("strides", strides);
  return oss({1, out, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255);
}

OnnxBuilder& OnnxBuilder::logits(std::int64_t in, std::int64_t out) {
  return matmul(in, out).oss({1, out}, -128, 127, 500);
}

OnnxBuilder& OnnxBuilder::gap(float offset, float k) {
  node("ReduceSum", {constant_i64({2, 3})});
  integer("keepdims", 0);
  node("Round").node("Add", {constant({1, 1}, {offset})}).node("Mul", {constant({1, 1}, {1})});
  return node("Mul", {constant({1, 1}, {std::ldexp(1.0f, -static_cast<int>(k))})})
      .node("Floor")
      .clip(0, 255);
}

OnnxBuilder& OnnxBuilder::go_to(const std::string& tensor) {
  at_ = tensor;
  return *this;
}

void OnnxBuilder::text(const std::string& key, const std::string& v) {
  auto* a = graph().mutable_node(graph().node_size() - 1)->add_attribute();
  a->set_name(key);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(v);
}

void OnnxBuilder::shuffle() {
  for (int n = graph().node_size() - 1; n > 0; --n)
    graph().mutable_node()->SwapElements(n, random(0, n));
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

}  // namespace odt::test

// Mutations of ONNX files that leave them ONNX files: nodes, wires, attributes, tensors. One in
// four is left to libFuzzer, which works on the bytes.
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t limit);

namespace {

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, std::uint32_t seed)
      : graph_(*model.mutable_graph()), rng_(seed) {
    if (model.opset_import_size() > 0 && chance(3)) {
      model.mutable_opset_import(0)->set_version(static_cast<std::int64_t>(below(24)));
    }
  }

  void mutate() {
    if (graph_.node_size() == 0) return;
    switch (below(10)) {
      case 0:
        return op();
      case 1:
        return rewire();
      case 2:
        return attribute();
      case 3:
        return drop();
      case 4:
        return copy();
      case 5:
        return swap_nodes();
      case 6:
        return dims();
      case 7:
        return shape();
      default:
        return values();
    }
  }

 private:
  std::uint32_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::uint32_t>(rng_() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  onnx::NodeProto& node() {
    return *graph_.mutable_node(
        static_cast<int>(below(static_cast<std::size_t>(graph_.node_size()))));
  }
  std::int64_t number() {
    static constexpr std::int64_t kSome[] = {
        0,   1,   2,   3,   -1,    -2,    7,          8,           31,        32,
        127, 128, 255, 256, 65535, 65536, 2147483647, -2147483648, INT64_MAX, INT64_MIN};
    return chance(60) ? static_cast<std::int64_t>(below(9)) - 1 : kSome[below(std::size(kSome))];
  }
  float real() {
    static constexpr float kSome[] = {0.0f,  -0.0f,         1.0f,       -1.0f,  0.5f,
                                      0.25f, 255.0f,        -128.0f,    1e-30f, 1e30f,
                                      3e38f, 2147483648.0f, 0.0078125f, 129.0f, 0.3f};
    const auto n = below(std::size(kSome) + 2);
    if (n == std::size(kSome)) return std::numeric_limits<float>::quiet_NaN();
    return n > std::size(kSome) ? std::numeric_limits<float>::infinity() : kSome[n];
  }
  std::string wire() {
    const onnx::NodeProto& from = node();
    if (chance(10)) return graph_.input_size() > 0 ? graph_.input(0).name() : "";
    if (chance(20) && graph_.initializer_size() > 0) return tensor().name();
    return from.output_size() > 0 ? from.output(0) : "";
  }
  onnx::TensorProto& tensor() {
    return *graph_.mutable_initializer(
        static_cast<int>(below(static_cast<std::size_t>(graph_.initializer_size()))));
  }

  void op() {
    static const char* const kOps[] = {"Add",
                                       "Mul",
                                       "Floor",
                                       "Clip",
                                       "Relu",
                                       "Conv",
                                       "MatMul",
                                       "Gemm",
                                       "Reshape",
                                       "Flatten",
                                       "Squeeze",
                                       "ReduceSum",
                                       "Round",
                                       "MaxPool",
                                       "AveragePool",
                                       "Concat",
                                       "Resize",
                                       "Identity",
                                       "GlobalAveragePool",
                                       "BatchNormalization",
                                       "Softmax",
                                       "Shape",
                                       "Gather",
                                       "Transpose",
                                       "Where",
                                       "Constant",
                                       "Upsample",
                                       "ReduceMean",
                                       "Dropout",
                                       "Unsqueeze",
                                       "Slice",
                                       "Pad"};
    node().set_op_type(kOps[below(std::size(kOps))]);
  }
  void rewire() {
    onnx::NodeProto& n = node();
    if (n.input_size() == 0 || chance(10)) return n.add_input(wire());
    n.set_input(static_cast<int>(below(static_cast<std::size_t>(n.input_size()))), wire());
  }
  void attribute() {
    onnx::NodeProto& n = node();
    if (n.attribute_size() == 0) return;
    const int i = static_cast<int>(below(static_cast<std::size_t>(n.attribute_size())));
    onnx::AttributeProto& a = *n.mutable_attribute(i);
    if (chance(10)) return n.mutable_attribute()->DeleteSubrange(i, 1);
    if (chance(5)) a.set_type(static_cast<onnx::AttributeProto_AttributeType>(below(9)));
    if (a.has_t()) return change(*a.mutable_t());
    if (a.ints_size() > 0 && chance(15)) return a.mutable_ints()->RemoveLast();
    if (a.ints_size() > 0 && chance(15)) return a.add_ints(number());
    if (a.ints_size() > 0)
      return a.set_ints(static_cast<int>(below(static_cast<std::size_t>(a.ints_size()))), number());
    if (a.has_f()) return a.set_f(real());
    a.set_i(number());
  }
  void drop() {
    graph_.mutable_node()->DeleteSubrange(
        static_cast<int>(below(static_cast<std::size_t>(graph_.node_size()))), 1);
  }
  // The same node once more, behind itself.
  void copy() {
    onnx::NodeProto n = node();
    if (n.output_size() > 0 && n.input_size() > 0) {
      n.set_input(0, n.output(0));
      n.set_output(0, n.output(0) + "x");
    }
    *graph_.add_node() = n;
  }
  void swap_nodes() {
    const auto size = static_cast<std::size_t>(graph_.node_size());
    graph_.mutable_node()->SwapElements(static_cast<int>(below(size)),
                                        static_cast<int>(below(size)));
  }
  void dims() {
    if (graph_.initializer_size() == 0) return;
    onnx::TensorProto& t = tensor();
    if (t.dims_size() == 0 || chance(20)) return t.add_dims(number());
    if (chance(20)) return t.mutable_dims()->RemoveLast();
    t.set_dims(static_cast<int>(below(static_cast<std::size_t>(t.dims_size()))), number());
  }
  void shape() {
    auto* values = chance(80) ? graph_.mutable_input() : graph_.mutable_output();
    if (values->empty()) return;
    auto* s = values->Mutable(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    if (s->dim_size() == 0 || chance(20)) return s->add_dim()->set_dim_value(number());
    s->mutable_dim(static_cast<int>(below(static_cast<std::size_t>(s->dim_size()))))
        ->set_dim_value(number());
  }
  void values() {
    if (graph_.initializer_size() > 0) change(tensor());
  }
  void change(onnx::TensorProto& t) {
    if (chance(5)) t.set_data_type(static_cast<std::int32_t>(below(17)));
    std::string& raw = *t.mutable_raw_data();
    if (raw.empty() || chance(5)) raw.resize(below(64), '\0');
    const std::size_t width = t.data_type() == onnx::TensorProto::INT64 ? 8 : 4;
    if (raw.size() < width) return;
    const std::size_t at = below(raw.size() / width) * width;
    const std::int64_t n = number();
    const float f = real();
    std::memcpy(raw.data() + at, width == 8 ? static_cast<const void*>(&n) : &f, width);
  }

  onnx::GraphProto& graph_;
  std::mt19937 rng_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t limit, unsigned int seed) {
  onnx::ModelProto model;
  if (size < 2 || seed % 4 == 0 || !model.ParseFromArray(data + 1, static_cast<int>(size - 1)))
    return LLVMFuzzerMutate(data, size, limit);
  Mutator mutator(model, seed);
  for (unsigned int n = 0; n <= seed % 3; n++) mutator.mutate();
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() + 1 > limit) return LLVMFuzzerMutate(data, size, limit);
  data[0] = static_cast<std::uint8_t>(data[0] + seed / 4 % 2);
  std::memcpy(data + 1, bytes.data(), bytes.size());
  return bytes.size() + 1;
}

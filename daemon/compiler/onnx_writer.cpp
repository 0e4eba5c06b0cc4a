#include "compiler/onnx_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <cmath>

namespace odt::compiler {
namespace {

using Dims = std::vector<std::int64_t>;

class Writer {
 public:
  explicit Writer(const Network& net) : net_(net) {
    model_.set_ir_version(8);
    model_.set_producer_name("odt-fleet");
    auto* opset = model_.add_opset_import();
    opset->set_domain("");
    opset->set_version(17);
    graph_ = model_.mutable_graph();
    graph_->set_name("odt");
  }

  std::string run() {
    Dims dims = with_batch(net_.input_shape);
    value_info(graph_->add_input(), "input", dims);
    at_ = "input";
    if (net_.prequant) {
      const Prequant& p = *net_.prequant;
      const Dims shape = constant_dims(p.offset.size(), dims);
      oss("prequant", shape, p.offset, floats(p.mult), p.k, p.clip_lo, p.clip_hi);
    }
    for (std::size_t n = 0; n < net_.layers.size(); ++n) {
      const Layer& l = net_.layers[n];
      const std::string name = absl::StrCat("layer", n);
      if (l.kind != LayerKind::kConv && dims.size() > 2) flatten(name, dims);
      if (!l.is_compute()) continue;
      compute(name, l);
      dims = with_batch(l.out_shape);
    }
    graph_->mutable_node(graph_->node_size() - 1)->set_output(0, "logits");
    value_info(graph_->add_output(), "logits", dims);
    metadata();
    std::string bytes;
    {
      google::protobuf::io::StringOutputStream stream(&bytes);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      model_.SerializeToCodedStream(&coded);
    }
    return bytes;
  }

 private:
  template <typename T>
  static std::vector<float> floats(const std::vector<T>& v) {
    return std::vector<float>(v.begin(), v.end());
  }
  static Dims with_batch(const Shape& shape) {
    Dims dims = {1};
    dims.insert(dims.end(), shape.begin(), shape.end());
    return dims;
  }
  static Dims constant_dims(std::size_t n, const Dims& dims) {
    if (n == 1) return Dims(dims.size(), 1);
    Dims out(dims.size(), 1);
    out[1] = dims[1];
    return static_cast<std::size_t>(dims[1]) == n ? out : dims;
  }

  static void value_info(onnx::ValueInfoProto* info, const std::string& name, const Dims& dims) {
    info->set_name(name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (auto d : dims) type->mutable_shape()->add_dim()->set_dim_value(d);
  }

  std::string constant(const std::string& name, const Dims& dims, const std::vector<float>& v) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::FLOAT);
    for (auto d : dims) t->add_dims(d);
    t->set_raw_data(v.data(), v.size() * sizeof(float));
    return name;
  }

  onnx::NodeProto* node(const std::string& op, const std::string& name,
                        const std::vector<std::string>& more) {
    auto* n = graph_->add_node();
    n->set_op_type(op);
    n->set_name(name);
    n->add_input(at_);
    for (const auto& in : more) n->add_input(in);
    n->add_output(name + "_out");
    at_ = name + "_out";
    return n;
  }

  void clip(const std::string& name, std::int32_t lo, std::int32_t hi) {
    node("Clip", name,
         {constant(name + ".min", {}, {static_cast<float>(lo)}),
          constant(name + ".max", {}, {static_cast<float>(hi)})});
  }

  void oss(const std::string& name, const Dims& dims, const std::vector<float>& offset,
           const std::vector<float>& mult, const std::vector<std::uint8_t>& k, std::int32_t lo,
           std::int32_t hi) {
    std::vector<float> shift;
    for (auto s : k) shift.push_back(std::ldexp(1.0f, -static_cast<int>(s)));
    node("Add", name + "/Add", {constant(name + ".offset", dims, offset)});
    node("Mul", name + "/Mul", {constant(name + ".mult", dims, mult)});
    node("Mul", name + "/Mul_1", {constant(name + ".shift_mult", dims, shift)});
    node("Floor", name + "/Floor", {});
    clip(name + "/Clip", lo, hi);
  }

  void flatten(const std::string& name, Dims& dims) {
    std::int64_t count = 1;
    for (auto d : dims) count *= d;
    node("Flatten", name + "/Flatten", {});
    auto* axis = graph_->mutable_node(graph_->node_size() - 1)->add_attribute();
    axis->set_name("axis");
    axis->set_type(onnx::AttributeProto::INT);
    axis->set_i(1);
    dims = {1, count};
  }

  void compute(const std::string& name, const Layer& l) {
    const Dims weight_dims(l.weight_shape.begin(), l.weight_shape.end());
    const std::string weight = constant(name + ".weight", weight_dims, floats(l.weights));
    const bool conv = l.kind == LayerKind::kConv;
    auto* n = node(conv ? "Conv" : "MatMul", name + (conv ? "/Conv" : "/MatMul"), {weight});
    if (conv) attributes(n, l.conv);
    const auto c = static_cast<std::int64_t>(l.n_out());
    oss(name, conv ? Dims{1, c, 1, 1} : Dims{1, c}, floats(l.offset), floats(l.mult), l.k,
        l.clip_lo, l.clip_hi);
    if (!l.relu) return;
    node("Relu", name + "/Relu", {});
    clip(name + "/Clip_1", l.clip_lo, l.clip_hi);
  }

  static void attributes(onnx::NodeProto* n, const ConvGeometry& g) {
    const auto ints = [n](const std::string& key, const Dims& values) {
      auto* a = n->add_attribute();
      a->set_name(key);
      a->set_type(onnx::AttributeProto::INTS);
      for (auto v : values) a->add_ints(v);
    };
    ints("dilations", {g.dil_h, g.dil_w});
    ints("kernel_shape", {g.k_h, g.k_w});
    ints("pads", {g.pad_t, g.pad_l, g.pad_b, g.pad_r});
    ints("strides", {g.stride_h, g.stride_w});
    auto* a = n->add_attribute();
    a->set_name("group");
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(g.groups);
  }

  void metadata() {
    const auto put = [this](const std::string& key, const std::string& value) {
      auto* entry = model_.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value);
    };
    const Calibration& c = net_.calibration;
    const auto list = [](const std::vector<std::int8_t>& v) {
      return absl::StrJoin(std::vector<int>(v.begin(), v.end()), ",");
    };
    put("odt.ce_scale", absl::StrCat(c.ce_scale));
    put("odt.target_correct", list(c.target_correct));
    put("odt.target_wrong", list(c.target_wrong));
    put("odt.src_correct", absl::StrCat(c.src_correct));
    put("odt.src_total", absl::StrCat(c.src_total));
    if (!net_.prequant) put("odt.input_dtype", net_.input_storage == Storage::kU8 ? "u8" : "i8");
  }

  const Network& net_;
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = nullptr;
  std::string at_;
};

}  // namespace

std::string write_onnx(const Network& net) { return Writer(net).run(); }

}  // namespace odt::compiler

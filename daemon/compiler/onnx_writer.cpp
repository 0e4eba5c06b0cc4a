#include "compiler/onnx_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <cmath>

#include "compiler/exponents.h"

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
    value_info(graph_->add_input(), "input", with_batch(net_.input_shape));
    at_ = "input";
    if (net_.prequant) {
      const Prequant& p = *net_.prequant;
      const Dims dims = with_batch(net_.input_shape);
      oss("prequant", constant_dims(p.offset.size(), dims), p.offset, floats(p.mult), p.k,
          p.clip_lo, p.clip_hi);
    }
    tensors_ = {at_};
    for (std::size_t n = 0; n < net_.layers.size(); ++n) {
      layer(absl::StrCat("layer", n), net_.layers[n]);
      tensors_.push_back(at_);
    }
    graph_->mutable_node(graph_->node_size() - 1)->set_output(0, "logits");
    value_info(graph_->add_output(), "logits", with_batch(net_.layers.back().out_shape));
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
    at_ = absl::StrCat("t", graph_->node_size(), "/", op);
    n->add_output(at_);
    return n;
  }

  void clip(const std::string& name, std::int32_t lo, std::int32_t hi,
            const std::string& constants = "") {
    const std::string prefix = constants.empty() ? name : constants;
    node("Clip", name,
         {constant(prefix + ".min", {}, {static_cast<float>(lo)}),
          constant(prefix + ".max", {}, {static_cast<float>(hi)})});
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

  void integer(onnx::NodeProto* n, const std::string& key, std::int64_t v) {
    auto* a = n->add_attribute();
    a->set_name(key);
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(v);
  }
  void text(onnx::NodeProto* n, const std::string& key, const std::string& v) {
    auto* a = n->add_attribute();
    a->set_name(key);
    a->set_type(onnx::AttributeProto::STRING);
    a->set_s(v);
  }
  std::string integers(const std::string& name, const Dims& v) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::INT64);
    t->add_dims(static_cast<std::int64_t>(v.size()));
    t->set_raw_data(v.data(), v.size() * sizeof(std::int64_t));
    return name;
  }

  // Goes on from a tensor, in the shape in which the layer reads it: only the input has several.
  void go_to(const std::string& name, std::uint16_t tensor, const Shape& shape) {
    at_ = tensors_[tensor];
    if (tensor != 0 || with_batch(shape) == with_batch(net_.input_shape)) return;
    if (shape.size() == 1)
      integer(node("Flatten", name + "/Flatten", {}), "axis", 1);
    else
      node("Reshape", name + "/Reshape", {integers(name + ".shape", with_batch(shape))});
  }

  void layer(const std::string& name, const Layer& l) {
    go_to(name, l.in0, l.in_shape);
    switch (l.kind) {
      case LayerKind::kConv:
      case LayerKind::kLinear:
        return compute(name, l);
      case LayerKind::kFlatten:
        return integer(node("Flatten", titled(l, name + "/Flatten"), {}), "axis", 1);
      case LayerKind::kMaxPool:
        return window(node("MaxPool", titled(l, name + "/MaxPool"), {}), l.conv);
      case LayerKind::kAvgPool:
      case LayerKind::kGap:
        return average(name, l);
      case LayerKind::kAdd:
        return add(name, l);
      case LayerKind::kConcat: {
        const std::string first = at_;
        Shape shape = l.in_shape;
        shape[0] = l.out_shape[0] - l.in_shape[0];
        go_to(name + "/1", l.in1, shape);
        const std::string second = at_;
        at_ = first;
        return integer(node("Concat", titled(l, name + "/Concat"), {second}), "axis", 1);
      }
      case LayerKind::kResize:
        return resize(name, l);
    }
  }

  static std::string titled(const Layer& l, const std::string& absent) {
    return l.name.empty() ? absent : l.name;
  }

  void compute(const std::string& name, const Layer& l) {
    const Dims weight_dims(l.weight_shape.begin(), l.weight_shape.end());
    const std::string weight = constant(name + ".weight", weight_dims, floats(l.weights));
    const bool conv = l.kind == LayerKind::kConv;
    auto* n =
        node(conv ? "Conv" : "MatMul", titled(l, name + (conv ? "/Conv" : "/MatMul")), {weight});
    if (conv) attributes(n, l.conv);
    const auto c = static_cast<std::int64_t>(l.n_out());
    oss(name, conv ? Dims{1, c, 1, 1} : Dims{1, c}, floats(l.offset), floats(l.mult), l.k,
        l.clip_lo, l.clip_hi);
    tail(name, l);
  }

  void tail(const std::string& name, const Layer& l) {
    if (!l.relu) return;
    node("Relu", name + "/Relu", {});
    clip(name + "/Clip_1", l.clip_lo, l.clip_hi);
  }

  void average(const std::string& name, const Layer& l) {
    if (l.kind == LayerKind::kGap) {
      auto* n =
          node("ReduceSum", titled(l, name + "/ReduceSum"), {integers(name + ".axes", {2, 3})});
      integer(n, "keepdims", l.out_shape.size() == 3 ? 1 : 0);
    } else {
      auto* n = node("AveragePool", titled(l, name + "/AveragePool"), {});
      window(n, l.conv);
      integer(n, "count_include_pad", 1);
      node("Mul", name + "/Mul_area",
           {constant(name + ".area", {}, {static_cast<float>(l.conv.k_h * l.conv.k_w)})});
    }
    node("Round", name + "/Round", {});
    const auto c = static_cast<std::int64_t>(l.n_out());
    Dims dims = c == 1 ? Dims{} : Dims{1, c};
    if (c != 1 && l.out_shape.size() == 3) dims = {1, c, 1, 1};
    oss(name, dims, floats(l.offset), floats(l.mult), l.k, l.clip_lo, l.clip_hi);
    tail(name, l);
  }

  // Sums at 2^-20, or one tensor clipped or scaled (m_b 0).
  void add(const std::string& name, const Layer& l) {
    const std::string first = at_;
    constexpr std::int32_t kOne = 1 << 20;
    const bool one = l.in0 == l.in1 && l.offset[1] == 0, plain = l.offset[0] == kOne;
    const auto scaled = [&](const std::string& tensor, std::size_t side, const std::string& title) {
      at_ = tensor;
      node("Mul", title,
           {constant(absl::StrCat(name, ".scale_", side), {},
                     {std::ldexp(static_cast<float>(l.offset[side]), -20)})});
      return at_;
    };
    if (one && plain) {
      if (l.relu) node("Relu", titled(l, name + "/Relu"), {});
      clip(l.relu ? name + "/Clip" : titled(l, name + "/Clip"), l.clip_lo, l.clip_hi, name);
      return;
    }
    if (one) {
      scaled(first, 0, titled(l, name + "/Mul"));
      node("Round", name + "/Round", {});
    } else if (plain && l.offset[1] == kOne) {
      go_to(name + "/1", l.in1, l.in_shape);
      const std::string second = at_;
      at_ = first;
      node("Add", titled(l, name + "/Add"), {second});
    } else {
      go_to(name + "/1", l.in1, l.in_shape);
      const std::string second = scaled(at_, 1, name + "/Mul_1");
      scaled(first, 0, name + "/Mul");
      node("Add", titled(l, name + "/Add"), {second});
      node("Round", name + "/Round", {});
    }
    if (l.relu) node("Relu", name + "/Relu", {});
    clip(name + "/Clip", l.clip_lo, l.clip_hi);
  }

  void resize(const std::string& name, const Layer& l) {
    auto* n = node("Resize", titled(l, name + "/Resize"), {"", resize_scales(name, l)});
    text(n, "mode", "nearest");
    text(n, "coordinate_transformation_mode", "asymmetric");
    text(n, "nearest_mode", "floor");
  }
  std::string resize_scales(const std::string& name, const Layer& l) {
    std::vector<float> scales = {1, 1};
    for (std::size_t d = 1; d < 3; ++d)
      scales.push_back(static_cast<float>(l.out_shape[d]) / static_cast<float>(l.in_shape[d]));
    return constant(name + ".scales", {4}, scales);
  }

  static void window(onnx::NodeProto* n, const ConvGeometry& g) {
    ints(n, "kernel_shape", {g.k_h, g.k_w});
    ints(n, "pads", {g.pad_t, g.pad_l, g.pad_b, g.pad_r});
    ints(n, "strides", {g.stride_h, g.stride_w});
  }

  static void ints(onnx::NodeProto* n, const std::string& key, const Dims& values) {
    auto* a = n->add_attribute();
    a->set_name(key);
    a->set_type(onnx::AttributeProto::INTS);
    for (auto v : values) a->add_ints(v);
  }

  void attributes(onnx::NodeProto* n, const ConvGeometry& g) {
    ints(n, "dilations", {g.dil_h, g.dil_w});
    window(n, g);
    integer(n, "group", g.groups);
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
    static const char* const kTasks[] = {"classify", "regress", "autoencode"};
    put("odt.task", kTasks[static_cast<int>(net_.task)]);
    if (net_.task == Task::kClassify) {
      put("odt.ce_scale", absl::StrCat(c.ce_scale));
      put("odt.target_correct", list(c.target_correct));
      put("odt.target_wrong", list(c.target_wrong));
    }
    if (!c.target_scale.empty()) {
      const auto floats = [](std::string* out, float v) { absl::StrAppendFormat(out, "%.9g", v); };
      put("odt.target_offset", absl::StrJoin(c.target_offset, ",", floats));
      put("odt.target_scale", absl::StrJoin(c.target_scale, ",", floats));
    }
    put("odt.src_correct", absl::StrCat(c.src_correct));
    put("odt.src_total", absl::StrCat(c.src_total));
    if (!net_.prequant) put("odt.input_dtype", net_.input_storage == Storage::kU8 ? "u8" : "i8");
    if (net_.input_exponent != 0) put(kInputExponentKey, absl::StrCat(net_.input_exponent));
    const auto known = [this, &put](const char* key, std::int8_t Layer::*exponent) {
      std::vector<std::string> parts;
      bool any = false;
      for (const Layer& l : net_.layers) {
        if (!l.is_compute()) continue;
        any = any || l.*exponent != 0;
        parts.push_back(l.*exponent == 0 ? "?" : absl::StrCat(l.*exponent));
      }
      if (any) put(key, absl::StrJoin(parts, ","));
    };
    known(kWeightExponentsKey, &Layer::e_w);
    known(kOutputExponentsKey, &Layer::e_out);
  }

  const Network& net_;
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = nullptr;
  std::string at_;
  std::vector<std::string> tensors_;  // of the IR's numbers
};

}  // namespace

std::string write_onnx(const Network& net) { return Writer(net).run(); }

}  // namespace odt::compiler

#include "compiler/match.h"

#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/matcher.h"

namespace odt::compiler {

Shape shape_of(const std::vector<std::int64_t>& dims) {
  Shape shape;
  for (std::size_t n = dims.size() > 1 ? 1 : 0; n < dims.size(); ++n)
    shape.push_back(static_cast<std::uint32_t>(dims[n]));
  if (shape.size() == 2) shape.push_back(1);
  if (shape.empty()) shape.push_back(1);
  return shape;
}

bool is_qat(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op == "Floor"; });
}

Result<Network> match(const Graph& graph, std::optional<Task> task) {
  return Matcher(graph, task).run();
}

Result<Network> Matcher::run() {
  for (std::size_t n = 1; n < graph_.input_dims.size(); ++n)
    net_.input_shape.push_back(static_cast<std::uint32_t>(graph_.input_dims[n]));
  if (count_of(net_.input_shape) > 65535)
    return absl::OutOfRangeError(absl::StrCat(
        graph_.file, ": input of ", count_of(net_.input_shape), " values; at most 65535"));
  const auto dtype = graph_.metadata.find("odt.input_dtype");
  if (dtype != graph_.metadata.end() && dtype->second == "u8") ranges_[0] = {0, 255};
  values_[graph_.input] = Value{0, graph_.input_dims};
  for (const Node& node : graph_.nodes)
    if (!done_.contains(&node)) {
      ODT_TRY(step(node));
      ODT_TRY(check_made(graph_, node, net_.layers.size()));
    }
  ODT_TRY(finish());
  return std::move(net_);
}

Status Matcher::bad(const Node& node, const std::string& what) const {
  return absl::InvalidArgumentError(where(graph_, node) + what);
}

Status Matcher::unsupported(const Node& node, const std::string& what) const {
  return absl::UnimplementedError(absl::StrCat(where(graph_, node), what, "; ", kSupportedBlocks));
}

std::string Matcher::name_of(const Node& node) const {
  return node.name.empty() ? absl::StrCat(node.op, "_", node.index) : node.name;
}

Status Matcher::step(const Node& node) {
  const std::string& op = node.op;
  for (std::size_t n = 1; n < node.outputs.size(); ++n)
    if (!node.outputs[n].empty() && op != "Split" && !graph_.consumers(node.outputs[n]).empty())
      return unsupported(node,
                         absl::StrCat("its output ", n + 1, " is read; supported: its first"));
  if (is_view(graph_, node)) return view(node);
  if (op == "Conv" || op == "MatMul" || op == "Gemm") return compute(node);
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") {
    if (node.inputs.size() == 2 && constant_operand(graph_, node) != nullptr)
      return scale_or_requantise(node);
    if (op == "Add") return add(node);
  }
  if (op == "MaxPool" || op == "GlobalMaxPool") return max_pool(node);
  if (op == "AveragePool" || op == "GlobalAveragePool" || op == "ReduceSum" || op == "ReduceMean")
    return average(node);
  if (op == "Concat") return concat(node);
  if (op == "Resize" || op == "Upsample") return resize(node);
  if (op == "Relu" || op == "Clip") return clip(node);
  if (op == "Round" || op == "Floor" || op == "Ceil") return round(node);
  if (op == "Pad") return pad(node);
  const bool at_input = net_.layers.empty();
  return unsupported(
      node, at_input
                ? "this operator is not supported; expected PREQUANT (Add), Conv, MatMul, Gemm, "
                  "a pool, Reshape or Flatten at the input"
                : "this operator is not supported; expected the first node of a block here");
}

Result<Value> Matcher::use(const Node& node, const std::string& tensor, bool scaled, bool padded) {
  const auto it = values_.find(tensor);
  if (it == values_.end())
    return unsupported(node, absl::StrCat("it reads '", shown(tensor),
                                          "', which is constant or inside another block"));
  const Value& v = it->second;
  if (v.scale != 1 && !scaled)
    return unsupported(node, absl::StrCat("its input is scaled by ", v.scale,
                                          "; expected a residual Add, Round or the output behind a "
                                          "Mul outside of a block"));
  if (v.padded() && !padded)
    return unsupported(node, "a Pad is supported in front of Conv and MaxPool only");
  if (v.tensor != 0 && !v.padded() && tensor_shape(v.tensor) != shape_of(v.dims))
    return unsupported(node, absl::StrCat("its input [", absl::StrJoin(tensor_shape(v.tensor), ","),
                                          "] is reshaped to [", absl::StrJoin(v.dims, ","),
                                          "]; behind a layer only flattening is supported"));
  return v;
}

Value Matcher::flattened(Value value) {
  const Shape want = shape_of(value.dims);
  if (value.tensor != 0 && !value.padded() && tensor_shape(value.tensor) != want) {
    if (const auto it = whole_.find(value.tensor); it != whole_.end()) value.tensor = it->second;
    if (want.size() == 1 && tensor_shape(value.tensor).size() == 3 &&
        count_of(tensor_shape(value.tensor)) == count_of(want)) {
      auto [it, added] = flat_.emplace(value.tensor, 0);
      if (added) {
        Layer layer;
        layer.kind = LayerKind::kFlatten;
        layer.name = flatten_name(net_.layers[value.tensor - 1u]);
        layer.in0 = value.tensor;
        layer.in_shape = tensor_shape(value.tensor);
        layer.out_shape = want;
        it->second = emit(std::move(layer), ranges_[value.tensor]);
        whole_[it->second] = value.tensor;
      }
      value.tensor = it->second;
    }
  }
  return value;
}

void Matcher::define(const std::string& name, Value value) {
  values_[name] = flattened(std::move(value));
}

std::uint16_t Matcher::emit(Layer layer, Range range) {
  net_.layers.push_back(std::move(layer));
  ranges_.push_back(range);
  return static_cast<std::uint16_t>(net_.layers.size());
}

void Matcher::finish_block(Chain& chain, std::uint16_t tensor, double scale) {
  mark(chain);
  Value v{tensor, chain.dims()};
  v.scale = scale;
  define(chain.at(), std::move(v));
}

Shape Matcher::tensor_shape(std::uint16_t tensor) const {
  return tensor == 0 ? Shape{} : net_.layers[tensor - 1u].out_shape;
}

void Matcher::mark(const Chain& chain) {
  for (const Node* node : chain.taken()) done_[node] = true;
}

Layer Matcher::clip_layer(const std::string& name, std::uint16_t tensor, const Shape& shape,
                          Range to, bool relu) const {
  Layer layer;
  layer.kind = LayerKind::kAdd;
  layer.name = name;
  layer.in0 = layer.in1 = tensor;
  layer.relu = relu;
  layer.offset = {1 << 20, 0};
  layer.clip_lo = to.lo;
  layer.clip_hi = to.hi;
  layer.in_shape = layer.out_shape = shape;
  return layer;
}

Status Matcher::prequant(const Node& node) {
  const std::string name = node.name.empty() ? "PREQUANT" : node.name;
  Chain chain(graph_, node);
  if (const auto readers = graph_.consumers(chain.at()); readers.size() > 1)
    return unsupported(*readers[1],
                       absl::StrCat("tensor '", shown(chain.at()), "' feeds ", readers.size(),
                                    " nodes; expected PREQUANT alone at the input, "
                                    "branches behind it"));
  OssConstants oss;
  ODT_ASSIGN(oss, take_oss(chain, true, -32768, 32767, name));
  const std::size_t count = count_of(net_.input_shape), channels = net_.input_shape[0];
  std::size_t n = std::max({oss.offset.size(), oss.mult.size(), oss.k.size()});
  // Channels of a reshaped input are none of the input, and lists may differ in kind: one constant
  // per value then.
  for (const std::size_t size : {oss.offset.size(), oss.mult.size(), oss.k.size()})
    if (size != 1 && size != channels) n = count;
  const auto at = [n](const auto& v, std::size_t i) { return v[i / (n / v.size())]; };
  Prequant p;
  p.name = name;
  for (std::size_t i = 0; i < n; ++i) {
    p.offset.push_back(at(oss.offset, i));
    p.mult.push_back(static_cast<std::int16_t>(at(oss.mult, i)));
    p.k.push_back(at(oss.k, i));
  }
  p.clip_lo = oss.clip_lo;
  p.clip_hi = oss.clip_hi;
  if (storage_of(p.clip_lo, p.clip_hi) == Storage::kS16)
    return bad(*oss.clip, absl::StrCat("PREQUANT clips to ", p.clip_lo, "..", p.clip_hi,
                                       "; expected within -128..127 or 0..255"));
  for (float o : p.offset)
    if (!(std::abs(o) <= 1e6f))
      return bad(oss.add != nullptr ? *oss.add : node,
                 absl::StrCat("offset ", o, "; expected within +-1e6"));
  net_.input_storage = storage_of(p.clip_lo, p.clip_hi);
  ranges_[0] = {p.clip_lo, p.clip_hi};
  net_.prequant = std::move(p);
  values_.clear();
  finish_block(chain, 0);
  return absl::OkStatus();
}

Status Matcher::view(const Node& node) {
  Value v;
  const auto it = values_.find(node.inputs[0]);
  if (it == values_.end()) {
    ODT_ASSIGN(v, use(node, node.inputs[0]));
  } else {
    v = it->second;
  }
  const auto dims = graph_.dims.find(node.outputs[0]);
  if (dims == graph_.dims.end() || v.padded())
    return bad(node, absl::StrCat("its input is [", absl::StrJoin(v.dims, ","),
                                  "]; its target shape is not constant, or does not fit"));
  if (dims->second.size() > 1 && dims->second[0] != 1)
    return bad(node, absl::StrCat("its output is [", absl::StrJoin(dims->second, ","),
                                  "]; expected batch 1 in front"));
  v.dims = dims->second;
  define(node.outputs[0], std::move(v));
  return absl::OkStatus();
}

// One constant operand: PREQUANT, constants of a block without Conv or MatMul, or a scale.
Status Matcher::scale_or_requantise(const Node& node) {
  Value v;
  ODT_ASSIGN(v, use(node, data_operand(graph_, node), true));
  const bool first = v.tensor == 0 && !net_.prequant && net_.layers.empty() && v.scale == 1;
  const double scale = positive_scale(graph_, node);
  const bool floors = leads_to_floor(graph_, node.outputs[0]);
  if (first && (floors || scale == 0)) return prequant(node);
  if (v.scale == 1 && (floors || scale == 0)) return requantise(node);
  if (scale == 0)
    return unsupported(node, "expected a Mul by one positive number outside of a block");
  v.scale *= scale;
  v.scaled_by = &node;
  if (!(v.scale > 1e-30 && v.scale < 1e30))
    return bad(node, absl::StrCat("scale ", v.scale, " is out of range"));
  const auto dims = graph_.dims.find(node.outputs[0]);
  if (dims == graph_.dims.end() || dims->second != v.dims)
    return bad(node, "its constant changes the shape");
  define(node.outputs[0], std::move(v));
  return absl::OkStatus();
}

// A Relu or Clip outside of a block: nothing, where all values lie within.
Status Matcher::clip(const Node& node) {
  Value v;
  ODT_ASSIGN(v, use(node, node.inputs[0], node.op == "Relu"));
  if (v.scale != 1) return unsupported(node, "a Relu of a scaled tensor in front of a sum");
  const Range from = ranges_[v.tensor];
  Layer layer = clip_layer(name_of(node), v.tensor, shape_of(v.dims), from, false);
  Chain chain(graph_, node);
  ODT_TRY(take_tail(chain, layer, true));
  const Range to{layer.clip_lo, layer.clip_hi};
  std::uint16_t tensor = v.tensor;
  if (to.lo != from.lo || to.hi != from.hi) tensor = emit(std::move(layer), to);
  finish_block(chain, tensor);
  return absl::OkStatus();
}

// Integers are round; a scaled tensor becomes integers again.
Status Matcher::round(const Node& node) {
  Value v;
  ODT_ASSIGN(v, use(node, node.inputs[0], node.op == "Round"));
  if (v.scale != 1) return rescale(node, v);
  if (v.tensor == 0 && !net_.prequant && net_.layers.empty() && node.op != "Round")
    return unsupported(node, "expected PREQUANT (Add Mul Mul Floor Clip) or a layer at the input");
  define(node.outputs[0], std::move(v));
  return absl::OkStatus();
}

Status Matcher::pad(const Node& node) {
  Value v;
  ODT_ASSIGN(v, use(node, node.inputs[0], false, true));
  const auto mode = node.attributes.find("mode");
  if (mode != node.attributes.end() && mode->second.s != "constant")
    return unsupported(node,
                       absl::StrCat("mode ", shown(mode->second.s), "; supported: constant 0"));
  const Tensor* pads = node.inputs.size() > 1 ? graph_.constant(node.inputs[1]) : nullptr;
  const Tensor* value = node.inputs.size() > 2 ? graph_.constant(node.inputs[2]) : nullptr;
  const auto list = pads != nullptr ? pads->i : node.ints("pads");
  const auto dims = graph_.dims.find(node.outputs[0]);
  if (dims == graph_.dims.end() || list.size() != 2 * v.dims.size() || v.dims.size() < 3)
    return unsupported(node, "expected constant paddings of H and W, at least 0");
  if ((value != nullptr && (value->size() != 1 || value->at(0) != 0)) || node.real("value", 0) != 0)
    return unsupported(node, "it pads with a number other than 0");
  const std::size_t rank = v.dims.size();
  for (std::size_t n = 0; n < rank; ++n) {
    const std::int64_t before = list[n], after = list[n + rank];
    if (n < 2 && (before != 0 || after != 0)) return unsupported(node, "it pads channels");
    if (n < 2) continue;
    v.pad[n - 2] += before;
    v.pad[n] += after;
  }
  v.dims = dims->second;
  define(node.outputs[0], std::move(v));
  return absl::OkStatus();
}

}  // namespace odt::compiler

#include "compiler/onnx_graph.h"

#include <absl/strings/str_cat.h>
#include <onnx/onnx_pb.h>

#include <cstring>

namespace odt::compiler {
namespace {

constexpr std::int64_t kMinOpset = 7, kMaxOpset = 21;

Status bad(const std::string& file, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

template <typename T, typename Out>
bool from_raw(const std::string& raw, std::int64_t count, std::vector<Out>& out) {
  if (raw.size() != static_cast<std::size_t>(count) * sizeof(T)) return false;
  out.resize(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < out.size(); ++n) {
    T v;
    std::memcpy(&v, raw.data() + n * sizeof(T), sizeof v);
    out[n] = static_cast<Out>(v);
  }
  return true;
}

template <typename Field, typename Out>
bool from_field(const Field& field, std::int64_t count, std::vector<Out>& out) {
  if (field.size() != count) return false;
  out.assign(field.begin(), field.end());
  return true;
}

bool read_values(const onnx::TensorProto& p, std::int64_t count, Tensor& t, bool& known) {
  const bool raw = p.has_raw_data();
  known = true;
  switch (p.data_type()) {
    case onnx::TensorProto::FLOAT:
      return raw ? from_raw<float>(p.raw_data(), count, t.f)
                 : from_field(p.float_data(), count, t.f);
    case onnx::TensorProto::DOUBLE:
      return raw ? from_raw<double>(p.raw_data(), count, t.f)
                 : from_field(p.double_data(), count, t.f);
    case onnx::TensorProto::INT64:
      t.integer = true;
      return raw ? from_raw<std::int64_t>(p.raw_data(), count, t.i)
                 : from_field(p.int64_data(), count, t.i);
    case onnx::TensorProto::INT32:
      t.integer = true;
      return raw ? from_raw<std::int32_t>(p.raw_data(), count, t.i)
                 : from_field(p.int32_data(), count, t.i);
    case onnx::TensorProto::INT8:
      t.integer = true;
      return raw ? from_raw<std::int8_t>(p.raw_data(), count, t.i)
                 : from_field(p.int32_data(), count, t.i);
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
      t.integer = true;
      return raw ? from_raw<std::uint8_t>(p.raw_data(), count, t.i)
                 : from_field(p.int32_data(), count, t.i);
    default:
      known = false;
      return false;
  }
}

Result<Tensor> read_tensor(const onnx::TensorProto& p, const std::string& file) {
  const std::string what = absl::StrCat("tensor '", shown(p.name()), "'");
  if (p.data_location() == onnx::TensorProto::EXTERNAL)
    return absl::UnimplementedError(absl::StrCat(
        file, ": ", what, " is in another file (external data); save the model as one file"));
  Tensor t;
  std::int64_t count = 1;
  for (auto d : p.dims()) {
    if (d < 0 || d > kMaxElements || (d > 0 && count > kMaxElements / d))
      return bad(file, absl::StrCat(what, " has an impossible size"));
    count *= d;
    t.dims.push_back(d);
  }
  bool known;
  if (!read_values(p, count, t, known)) {
    if (!known)
      return absl::UnimplementedError(
          absl::StrCat(file, ": ", what, " has element type ", p.data_type(),
                       "; supported: float, double, int64, int32, int8, uint8"));
    return bad(file, absl::StrCat(what, " does not hold the ", count, " values of its shape"));
  }
  return t;
}

Result<Node> read_node(const onnx::NodeProto& p, int index, const std::string& file) {
  Node node;
  const bool standard = p.domain().empty() || p.domain() == "ai.onnx";
  node.op = standard ? p.op_type() : absl::StrCat(p.domain(), ".", p.op_type());
  node.name = p.name();
  node.index = index;
  node.inputs.assign(p.input().begin(), p.input().end());
  node.outputs.assign(p.output().begin(), p.output().end());
  for (const auto& a : p.attribute()) {
    Attribute& out = node.attributes[a.name()];
    out.i = a.i();
    out.f = a.f();
    out.s = a.s();
    out.ints.assign(a.ints().begin(), a.ints().end());
    out.floats.assign(a.floats().begin(), a.floats().end());
    if (a.has_t()) {
      ODT_ASSIGN(node.tensors[a.name()], read_tensor(a.t(), file));
    }
  }
  return node;
}

Status read_input(const onnx::GraphProto& p, Graph& graph) {
  const onnx::ValueInfoProto* input = nullptr;
  for (const auto& in : p.input()) {
    if (graph.constant(in.name()) != nullptr) continue;
    if (input != nullptr)
      return bad(graph.file, absl::StrCat("two inputs, '", shown(input->name()), "' and '",
                                          shown(in.name()), "'; one is supported"));
    input = &in;
  }
  if (input == nullptr) return bad(graph.file, "the graph has no input");
  if (p.output_size() != 1)
    return bad(graph.file, absl::StrCat(p.output_size(), " outputs; one is supported"));
  graph.input = input->name();
  graph.output = p.output(0).name();
  const auto& dims = input->type().tensor_type().shape().dim();
  for (int n = 0; n < dims.size(); ++n) {
    const std::int64_t d = n == 0 && !dims[n].has_dim_value() ? 1 : dims[n].dim_value();
    if (d < 1 || d > 65535)
      return bad(graph.file, absl::StrCat("input '", shown(graph.input), "': dimension ", n,
                                          " is not fixed or not in 1..65535"));
    graph.input_dims.push_back(d);
  }
  const int type = input->type().tensor_type().elem_type();
  if (type != onnx::TensorProto::FLOAT)
    return bad(graph.file, absl::StrCat("input '", shown(graph.input), "' has element type ", type,
                                        "; expected float32 (1)"));
  if (graph.input_dims.size() < 2 || graph.input_dims.size() > 4)
    return bad(graph.file,
               absl::StrCat("input '", shown(graph.input), "' has ", graph.input_dims.size(),
                            " dimensions; expected [1,N], [1,C,L] or [1,C,H,W]"));
  if (graph.input_dims[0] != 1)
    return bad(graph.file, absl::StrCat("input '", shown(graph.input), "' has batch ",
                                        graph.input_dims[0], "; export with batch 1"));
  return absl::OkStatus();
}

}  // namespace

std::int64_t Node::integer(const std::string& key, std::int64_t absent) const {
  const auto it = attributes.find(key);
  return it == attributes.end() ? absent : it->second.i;
}
float Node::real(const std::string& key, float absent) const {
  const auto it = attributes.find(key);
  return it == attributes.end() ? absent : it->second.f;
}
std::vector<std::int64_t> Node::ints(const std::string& key) const {
  const auto it = attributes.find(key);
  return it == attributes.end() ? std::vector<std::int64_t>{} : it->second.ints;
}

std::vector<const Node*> Graph::consumers(const std::string& tensor) const {
  std::vector<const Node*> out;
  if (const auto it = readers.find(tensor); it != readers.end())
    for (std::size_t n : it->second) out.push_back(&nodes[n]);
  return out;
}

const Tensor* Graph::constant(const std::string& tensor) const {
  const auto it = constants.find(tensor);
  return it == constants.end() ? nullptr : &it->second;
}

std::string where(const Graph& graph, const Node& node) {
  return absl::StrCat(graph.file, ": node '", shown(node.name.empty() ? "(unnamed)" : node.name),
                      "' (", shown(node.op), ", number ", node.index + 1, " of ", graph.file_nodes,
                      "): ");
}

Status bad_metadata(const Graph& graph, const std::string& key, const std::string& expected) {
  const auto it = graph.metadata.find(key);
  const std::string got =
      it == graph.metadata.end() ? "missing" : absl::StrCat("'", shown(it->second), "'");
  return absl::InvalidArgumentError(
      absl::StrCat(graph.file, ": metadata ", key, " is ", got, "; expected ", expected));
}

Status check_made(const Graph& graph, const Node& node, std::size_t made) {
  if (made <= kMaxNodes) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(where(graph, node), "over ", kMaxNodes,
                                            " operators so far (a model image holds 64): shorten "
                                            "the model"));
}

Result<Graph> read_onnx(const std::string& bytes, const std::string& file) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || !model.has_graph() || model.ir_version() <= 0)
    return bad(file, absl::StrCat("not an ONNX model, or truncated (", bytes.size(),
                                  " bytes); export it again"));
  if (model.graph().node_size() == 0) return bad(file, "the graph has no nodes");
  std::int64_t opset = 0;
  for (const auto& set : model.opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") opset = set.version();
  if (opset < kMinOpset || opset > kMaxOpset)
    return bad(file, absl::StrCat("opset ", opset, opset == 0 ? " (truncated file?)" : "",
                                  "; supported: ", kMinOpset, "..", kMaxOpset));
  Graph graph;
  graph.file = file;
  graph.file_nodes = model.graph().node_size();
  for (const auto& entry : model.metadata_props()) graph.metadata[entry.key()] = entry.value();
  std::size_t values = 0;
  for (const auto& t : model.graph().initializer()) {
    if (t.name().empty()) return bad(file, "an initialiser has no name");
    if (graph.constants.contains(t.name()))
      return bad(file, absl::StrCat("two initialisers are called '", shown(t.name()), "'"));
    Tensor& to = graph.constants[t.name()];
    ODT_ASSIGN(to, read_tensor(t, file));
    values += to.size();
    if (values > static_cast<std::size_t>(kMaxElements))
      return bad(file, absl::StrCat("its constants hold more than ", kMaxElements, " values"));
  }
  ODT_TRY(read_input(model.graph(), graph));
  std::vector<Node> nodes;
  for (int n = 0; n < model.graph().node_size(); ++n) {
    nodes.emplace_back();
    ODT_ASSIGN(nodes.back(), read_node(model.graph().node(n), n, file));
  }
  ODT_TRY(clean_graph(std::move(nodes), graph));
  return graph;
}

}  // namespace odt::compiler

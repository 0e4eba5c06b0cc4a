#include "compiler/onnx_edit.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "compiler/ir.h"

namespace odt::compiler {
namespace {

using onnx::TensorProto;

template <typename T>
bool from_raw(const TensorProto& t, std::vector<double>& out) {
  for (std::size_t at = 0; at + sizeof(T) <= t.raw_data().size(); at += sizeof(T)) {
    T v;
    std::memcpy(&v, t.raw_data().data() + at, sizeof v);
    out.push_back(static_cast<double>(v));
  }
  return true;
}

template <typename Field>
bool from_field(const Field& field, std::vector<double>& out) {
  for (auto v : field) out.push_back(static_cast<double>(v));
  return true;
}

template <typename T>
void to_raw(const std::vector<double>& v, TensorProto& t) {
  std::string raw;
  for (double x : v) {
    const T value = static_cast<T>(x);
    raw.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  t.set_raw_data(raw);
}

template <typename Field>
void to_field(const std::vector<double>& v, Field* field) {
  field->Clear();
  for (double x : v) field->Add(static_cast<std::remove_reference_t<decltype(field->at(0))>>(x));
}

struct Limits {
  double lo, hi;
};

// Of the element types that the reader takes.
bool limits_of(int type, Limits& out) {
  switch (type) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
      out = {-3e38, 3e38};
      return true;
    case TensorProto::INT64:
    case TensorProto::INT32:
      out = {-2147483648.0, 2147483647.0};
      return true;
    case TensorProto::INT8:
      out = {-128, 127};
      return true;
    case TensorProto::UINT8:
      out = {0, 255};
      return true;
    default:
      return false;
  }
}

bool read(const TensorProto& t, std::vector<double>& out) {
  const bool raw = t.has_raw_data();
  switch (t.data_type()) {
    case TensorProto::FLOAT:
      return raw ? from_raw<float>(t, out) : from_field(t.float_data(), out);
    case TensorProto::DOUBLE:
      return raw ? from_raw<double>(t, out) : from_field(t.double_data(), out);
    case TensorProto::INT64:
      return raw ? from_raw<std::int64_t>(t, out) : from_field(t.int64_data(), out);
    case TensorProto::INT32:
      return raw ? from_raw<std::int32_t>(t, out) : from_field(t.int32_data(), out);
    case TensorProto::INT8:
      return raw ? from_raw<std::int8_t>(t, out) : from_field(t.int32_data(), out);
    case TensorProto::UINT8:
      return raw ? from_raw<std::uint8_t>(t, out) : from_field(t.int32_data(), out);
    default:
      return false;
  }
}

void write(const std::vector<double>& v, TensorProto& t) {
  const bool raw = t.has_raw_data();
  switch (t.data_type()) {
    case TensorProto::FLOAT:
      return raw ? to_raw<float>(v, t) : to_field(v, t.mutable_float_data());
    case TensorProto::DOUBLE:
      return raw ? to_raw<double>(v, t) : to_field(v, t.mutable_double_data());
    case TensorProto::INT64:
      return raw ? to_raw<std::int64_t>(v, t) : to_field(v, t.mutable_int64_data());
    case TensorProto::INT32:
      return raw ? to_raw<std::int32_t>(v, t) : to_field(v, t.mutable_int32_data());
    case TensorProto::INT8:
      return raw ? to_raw<std::int8_t>(v, t) : to_field(v, t.mutable_int32_data());
    default:
      return raw ? to_raw<std::uint8_t>(v, t) : to_field(v, t.mutable_int32_data());
  }
}

TensorProto* value_attribute(onnx::NodeProto& node) {
  for (auto& a : *node.mutable_attribute())
    if (a.name() == "value" && a.has_t()) return a.mutable_t();
  return nullptr;
}

// All but the name.
bool same(const TensorProto& a, TensorProto b) {
  b.set_name(a.name());
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

Result<std::vector<double>> values_of(const TensorProto& t, const std::string& file) {
  std::vector<double> out;
  if (!read(t, out))
    return absl::UnimplementedError(
        absl::StrCat(file, ": constant '", shown(t.name()), "' has element type ", t.data_type()));
  return out;
}

OnnxEdit::OnnxEdit(onnx::ModelProto& model, std::string file)
    : model_(model), file_(std::move(file)) {
  for (int n = 0; n < graph().node_size(); ++n) {
    const auto& node = graph().node(n);
    for (const auto& out : node.output()) makers_[out] = n;
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1)
      identities_[node.output(0)] = node.input(0);
  }
}

TensorProto* OnnxEdit::stored(const std::string& tensor) {
  for (auto& t : *model_.mutable_graph()->mutable_initializer())
    if (t.name() == tensor) return &t;
  const auto it = makers_.find(tensor);
  if (it == makers_.end() || graph().node(it->second).op_type() != "Constant") return nullptr;
  return value_attribute(*model_.mutable_graph()->mutable_node(it->second));
}

const TensorProto* OnnxEdit::stored(const std::string& tensor) const {
  return const_cast<OnnxEdit*>(this)->stored(tensor);  // finds, changes nothing
}

const TensorProto* OnnxEdit::constant(int node, int slot) const {
  if (node < 0 || node >= graph().node_size() || slot >= graph().node(node).input_size())
    return nullptr;
  std::string tensor = read_by({node, slot});
  for (auto it = identities_.find(tensor); it != identities_.end(); it = identities_.find(tensor))
    tensor = it->second;
  return stored(tensor);
}

std::vector<OnnxEdit::Edge> OnnxEdit::readers(const std::string& tensor) const {
  std::vector<Edge> out;
  for (int n = 0; n < graph().node_size(); ++n)
    for (int slot = 0; slot < graph().node(n).input_size(); ++slot)
      if (graph().node(n).input(slot) == tensor) out.push_back({n, slot});
  for (const auto& o : graph().output())
    if (o.name() == tensor) out.push_back({-1, 0});
  return out;
}

OnnxEdit::Edge OnnxEdit::own_edge(Edge e) const {
  while (identities_.contains(read_by(e)) && readers(read_by(e)).size() == 1)
    e = {makers_.at(read_by(e)), 0};
  return e;
}

Status OnnxEdit::set(int node, int slot, const std::vector<double>& values,
                     const std::vector<std::int64_t>* shape) {
  TensorProto t = *constant(node, slot);
  Limits limits{};
  if (!limits_of(t.data_type(), limits))
    return absl::UnimplementedError(
        absl::StrCat(file_, ": constant '", shown(t.name()), "' has element type ", t.data_type()));
  for (double v : values)
    if (!(v >= limits.lo && v <= limits.hi))
      return absl::InvalidArgumentError(absl::StrCat(file_, ": constant '", shown(t.name()),
                                                     "' holds ", limits.lo, "..", limits.hi, "; ",
                                                     v, " does not fit"));
  write(values, t);
  if (shape != nullptr) {
    t.clear_dims();
    for (auto d : *shape) t.add_dims(d);
  }
  wanted_[own_edge({node, slot})] = std::move(t);
  return absl::OkStatus();
}

void OnnxEdit::add_bias(int node, const std::vector<double>& values) {
  TensorProto t;
  t.set_data_type(TensorProto::FLOAT);
  t.set_name(graph().node(node).output(0) + "_bias");
  t.add_dims(static_cast<std::int64_t>(values.size()));
  t.set_raw_data("");
  write(values, t);
  auto* n = model_.mutable_graph()->mutable_node(node);
  while (n->input_size() < 3) n->add_input("");
  split({node, 2}, std::move(t));
}

std::string OnnxEdit::fresh_name(const std::string& like) const {
  std::set<std::string> taken;
  for (const auto& t : graph().initializer()) taken.insert(t.name());
  for (const auto& n : graph().node()) taken.insert(n.output().begin(), n.output().end());
  for (const auto& in : graph().input()) taken.insert(in.name());
  std::string name = like;
  for (int n = 1; name.empty() || taken.contains(name); ++n)
    name = absl::StrCat(like.empty() ? "constant" : like, "_", n);
  return name;
}

void OnnxEdit::split(Edge e, TensorProto tensor) {
  tensor.set_name(fresh_name(tensor.name()));
  model_.mutable_graph()->mutable_node(e.node)->set_input(e.slot, tensor.name());
  *model_.mutable_graph()->add_initializer() = std::move(tensor);
}

void OnnxEdit::apply() {
  while (!wanted_.empty()) {
    const std::string tensor = read_by(wanted_.begin()->first);
    const auto all = readers(tensor);
    std::vector<Edge> edges;
    for (const Edge& e : all)
      if (wanted_.contains(e)) edges.push_back(e);
    TensorProto* const there = stored(tensor);
    // The first of them keeps the constant where nobody else needs the old values.
    const bool keeps = there != nullptr && edges.size() == all.size();
    const TensorProto kept = keeps ? wanted_.at(edges[0]) : TensorProto();
    if (keeps) {
      const std::string name = there->name();
      *there = kept;
      there->set_name(name);
    }
    for (const Edge& e : edges) {
      const TensorProto* const now = stored(tensor);
      if (now == nullptr || !same(*now, wanted_.at(e))) split(e, wanted_.at(e));
      wanted_.erase(e);
    }
  }
}

void OnnxEdit::metadata(const std::string& key, const std::string& value) {
  for (auto& entry : *model_.mutable_metadata_props())
    if (entry.key() == key) {
      entry.set_value(value);
      return;
    }
  auto* entry = model_.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace odt::compiler

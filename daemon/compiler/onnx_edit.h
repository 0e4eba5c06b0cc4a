#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::compiler {

// Puts other numbers into constants of an ONNX file and leaves everything else as it is.
class OnnxEdit {
 public:
  // model is changed by add_bias(), apply() and metadata() alone; file names it in errors.
  OnnxEdit(onnx::ModelProto& model, std::string file);

  // The constant that input `slot` of node number `node` reads (through Identity too), as it is
  // stored. Null: it is computed by nodes, or no constant.
  const onnx::TensorProto* constant(int node, int slot) const;
  // That input is to read these values, in the constant's type and shape; shape: another one.
  // Errors: INVALID_ARGUMENT where the type cannot hold one.
  Status set(int node, int slot, const std::vector<double>& values,
             const std::vector<std::int64_t>* shape = nullptr);
  // A third input that a Conv or Gemm does not have yet: float.
  void add_bias(int node, const std::vector<double>& values);
  // All of it. A constant that others read with other values is split: those who are to read new
  // values read a new initialiser.
  void apply();
  // Sets or replaces an entry.
  void metadata(const std::string& key, const std::string& value);

 private:
  struct Edge {
    int node, slot;
    auto operator<=>(const Edge&) const = default;
  };
  onnx::TensorProto* stored(const std::string& tensor);
  const onnx::TensorProto* stored(const std::string& tensor) const;
  // Up through Identity nodes: which of them can be changed for this input alone.
  Edge own_edge(Edge e) const;
  const std::string& read_by(Edge e) const { return graph().node(e.node).input(e.slot); }
  std::vector<Edge> readers(const std::string& tensor) const;
  std::string fresh_name(const std::string& like) const;
  void split(Edge e, onnx::TensorProto tensor);
  const onnx::GraphProto& graph() const { return model_.graph(); }

  onnx::ModelProto& model_;
  std::string file_;
  std::map<std::string, std::string> identities_;  // output -> input
  std::map<std::string, int> makers_;              // output -> node
  std::map<Edge, onnx::TensorProto> wanted_;
};

// Values of a stored tensor.
Result<std::vector<double>> values_of(const onnx::TensorProto& t, const std::string& file);

}  // namespace odt::compiler

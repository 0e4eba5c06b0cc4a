#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"

namespace odt::compiler {

// Far more nodes than 64 operators take; what comes behind may be quadratic in them.
constexpr std::size_t kMaxNodes = 4096;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 26;  // of one constant

// A constant: float or integer values, row-major.
struct Tensor {
  std::vector<std::int64_t> dims;  // empty: scalar
  bool integer = false;
  std::vector<float> f;         // where !integer
  std::vector<std::int64_t> i;  // where integer
  std::size_t size() const { return integer ? i.size() : f.size(); }
  double at(std::size_t n) const { return integer ? static_cast<double>(i[n]) : double{f[n]}; }
};

struct Attribute {
  std::int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
};

struct Node {
  std::string op, name;
  int index = 0;  // position in the file, from 0
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Tensor> tensors;  // tensor attributes

  std::int64_t integer(const std::string& key, std::int64_t absent) const;
  float real(const std::string& key, float absent) const;
  std::vector<std::int64_t> ints(const std::string& key) const;
};

// A graph without its noise: Identity, constant subgraphs (also those that begin with the Shape of
// a tensor) and nodes that do not lead to the output are gone; every remaining node depends on the
// input. Names are only keys.
struct Graph {
  std::string file;  // for errors
  int file_nodes = 0;
  std::string input, output;
  std::vector<std::int64_t> input_dims;  // with the batch, which is 1
  std::vector<Node> nodes;               // producers first, otherwise in file order
  std::map<std::string, Tensor> constants;
  // Shapes, with the batch, of tensors that depend on the input; absent: not known.
  std::map<std::string, std::vector<std::int64_t>> dims;
  std::map<std::string, std::vector<std::size_t>> readers;  // of a tensor: positions in `nodes`
  std::map<std::string, std::string> metadata;

  std::vector<const Node*> consumers(const std::string& tensor) const;
  const Tensor* constant(const std::string& tensor) const;  // null: none
};

// Parses and cleans a file. `file` names it in the errors: INVALID_ARGUMENT (truncated, not ONNX,
// inputs, cycles, tensors that nothing or several nodes make, sizes), UNIMPLEMENTED (external data,
// element types). Its nodes may stand in any order.
Result<Graph> read_onnx(const std::string& bytes, const std::string& file);

// Second step of read_onnx: sorts the file's nodes and drops the noise among them.
Status clean_graph(std::vector<Node> nodes, Graph& graph);

// Folds one node whose inputs are all constant. UNIMPLEMENTED: an op that is not folded.
Result<Tensor> fold(const Node& node, const std::vector<const Tensor*>& inputs);

// OUT_OF_RANGE where `made` operators are more than nodes may be: one node may stand for many.
Status check_made(const Graph& graph, const Node& node, std::size_t made);

// "<file>: node '<name>' (<op>, number <n> of <all>): "
std::string where(const Graph& graph, const Node& node);
// INVALID_ARGUMENT: the file's metadata has something else under `key`.
Status bad_metadata(const Graph& graph, const std::string& key, const std::string& expected);

}  // namespace odt::compiler

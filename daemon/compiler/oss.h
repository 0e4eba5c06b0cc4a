#pragma once

#include <initializer_list>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Ends every error about a node that fits nowhere.
extern const char kSupportedBlocks[];

// Reshape and its like: the values stay where they are.
bool is_view(const Graph& graph, const Node& node);

// Walks the nodes of a block from one tensor on. Between them may lie views. Inside a block a
// tensor has one reader.
class Chain {
 public:
  Chain(const Graph& graph, std::string at) : graph_(graph), at_(std::move(at)) {}
  // From what `first` reads, of which others may be readers too.
  Chain(const Graph& graph, const Node& first);

  const Graph& graph() const { return graph_; }
  const std::string& at() const { return at_; }  // tensor behind what was taken
  // Shape of it, with the batch; empty: not known.
  std::vector<std::int64_t> dims() const;
  const std::vector<const Node*>& taken() const { return taken_; }
  // The next node that is no view, if it is the only one that reads the tensor and its op is among
  // `ops`; null otherwise.
  const Node* look(std::initializer_list<const char*> ops) const;
  // Likewise, and takes it.
  const Node* take_if(std::initializer_list<const char*> ops);
  // Takes the next node, which must be `op`. UNIMPLEMENTED naming it and `block`.
  Result<const Node*> take(const char* op, const std::string& block);
  void advance(const Node& node);

 private:
  std::vector<const Node*> run_to_next() const;  // views and the node behind them

  const Graph& graph_;
  std::string at_;
  const Node* first_ = nullptr;
  std::vector<const Node*> taken_;
};

// The constant operand of a two-input node (of Sub and Div: the second); null: none.
const Tensor* constant_operand(const Graph& graph, const Node& node);
// Its data operand.
const std::string& data_operand(const Graph& graph, const Node& node);
// A Mul (Div) by one positive number: that number (its reciprocal); 0 otherwise.
double positive_scale(const Graph& graph, const Node& node);
// What follows `at` is [Add] [Mul] [Mul] Floor, constants all along.
bool leads_to_floor(const Graph& graph, const std::string& at);

// Constants of [Add] [Mul] [Mul] Floor Clip: n values each (or 1).
struct OssConstants {
  std::vector<float> offset;
  std::vector<std::int32_t> mult;
  std::vector<std::uint8_t> k;
  std::int32_t clip_lo = 0, clip_hi = 0;
  const Node* add = nullptr;  // null: none
  const Node* clip = nullptr;
};

// mult: integer in lo..hi (times a power of two); per_value: constants may differ from value to
// value (PREQUANT), not only between channels; block: for errors.
Result<OssConstants> take_oss(Chain& chain, bool per_value, std::int32_t mult_lo,
                              std::int32_t mult_hi, const std::string& block);

// Bounds of a Clip: inputs 1 and 2, or attributes min and max. Integers.
Status clip_bounds(const Graph& graph, const Node& clip, std::int32_t& lo, std::int32_t& hi);

}  // namespace odt::compiler

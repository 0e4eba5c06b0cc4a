#pragma once

#include <optional>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Walks a chain of nodes from one tensor on.
class Chain {
 public:
  explicit Chain(const Graph& graph) : graph_(graph), at_(graph.input) {}

  const Graph& graph() const { return graph_; }
  const std::string& at() const { return at_; }
  bool done() const { return at_ == graph_.output && graph_.consumers(at_).empty(); }
  // The only node that reads the current tensor. UNIMPLEMENTED: none or several.
  Result<const Node*> peek() const;
  void advance(const Node& node) { at_ = node.outputs[0]; }
  // Takes the next node if its op is `op`; null otherwise.
  Result<const Node*> take_if(const std::string& op);
  // Takes the next node, which must be `op`. UNIMPLEMENTED naming it and `block`.
  Result<const Node*> take(const std::string& op, const std::string& block);
  // The constant operand of a two-input node on the chain (either side).
  Result<const Tensor*> operand(const Node& node) const;

 private:
  const Graph& graph_;
  std::string at_;
};

// Constants of Add Mul [Mul] Floor Clip: n values each (or 1).
struct OssConstants {
  std::vector<float> offset;
  std::vector<std::int32_t> mult;
  std::vector<std::uint8_t> k;
  std::int32_t clip_lo = 0, clip_hi = 0;
  const Node* add = nullptr;
  const Node* clip = nullptr;
};

// How constants may spread over the tensor of the block.
struct Spread {
  std::vector<std::int64_t> dims;  // of the tensor, with batch
  bool per_value = false;          // also one constant per value (PREQUANT)
  std::int64_t channels() const { return dims[1]; }
};

// mult: integer in lo..hi (times a power of two); block: for errors.
Result<OssConstants> take_oss(Chain& chain, const Spread& spread, std::int32_t mult_lo,
                              std::int32_t mult_hi, const std::string& block);

// Bounds of a Clip: inputs 1 and 2, or attributes min and max. Integers.
Status clip_bounds(const Graph& graph, const Node& clip, std::int32_t& lo, std::int32_t& hi);

}  // namespace odt::compiler

#pragma once

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/layers.h"
#include "compiler/oss.h"

// The state of match(); its parts are in match.cpp, match_blocks.cpp, match_pools.cpp,
// match_merge.cpp and match_finish.cpp.
namespace odt::compiler {

// What a tensor of the file is in the IR.
struct Value {
  std::uint16_t tensor = 0;
  std::vector<std::int64_t> dims;      // as the file sees it, with the batch
  double scale = 1;                    // the file has value * scale here (float islands)
  std::int64_t pad[4] = {0, 0, 0, 0};  // zeros around it, t l b r, of a Pad in front of a Conv
  const Node* scaled_by = nullptr;
  bool padded() const {
    return std::any_of(pad, pad + 4, [](auto p) { return p != 0; });
  }
};

struct Range {
  std::int32_t lo = -128, hi = 127;
};

// [N] of [1,N]; [C,L,1] of [1,C,L]; [C,H,W] of [1,C,H,W].
Shape shape_of(const std::vector<std::int64_t>& dims);

class Matcher {
 public:
  Matcher(const Graph& graph, std::optional<Task> task) : graph_(graph), task_(task) {}
  Result<Network> run();

 private:
  // match.cpp
  Status step(const Node& node);
  Status prequant(const Node& node);
  Status view(const Node& node);
  Status scale_or_requantise(const Node& node);
  Status clip(const Node& node);
  Status round(const Node& node);
  Status pad(const Node& node);
  Status unsupported(const Node& node, const std::string& what) const;
  Status bad(const Node& node, const std::string& what) const;
  std::string name_of(const Node& node) const;

  // match_blocks.cpp: Conv, MatMul, Gemm, constants alone
  Status compute(const Node& node);
  Status requantise(const Node& node);
  Status set_oss(const OssConstants& oss, std::size_t n, const std::vector<double>& bias,
                 Layer& layer);
  Status take_tail(Chain& chain, Layer& layer, bool relu_flag);
  Status take_padding(const Node& node, const Value& x, Layer& layer) const;

  // match_pools.cpp
  Status max_pool(const Node& node);
  Status average(const Node& node);
  Status average_window(const Node& node, const Value& x, Layer& layer, bool& mean);
  Status resize(const Node& node);

  // match_merge.cpp
  Status add(const Node& node);
  Status concat(const Node& node);
  Status rescale(const Node& node, const Value& x);
  void report_differences(const Layer& layer, double a, double b, double s);

  // match_finish.cpp
  Status finish();
  Status narrow_output();
  Status place_input();
  void prune(std::uint16_t output);
  Status check_task(const Value& output);

  // Tensors
  // Value of a node's input. Unless allowed, it has neither scale nor padding; `shaped`: and its
  // shape is that of its tensor in the IR.
  Result<Value> use(const Node& node, const std::string& tensor, bool scaled = false,
                    bool padded = false);
  // Behind the FLATTEN that its shape asks for, where there is one.
  Value flattened(Value value);
  void define(const std::string& name, Value value);
  std::uint16_t emit(Layer layer, Range range);
  void finish_block(Chain& chain, std::uint16_t tensor, double scale = 1);
  // A layer that only clips: ADD of a tensor and itself, once.
  Layer clip_layer(const std::string& name, std::uint16_t tensor, const Shape& shape, Range to,
                   bool relu) const;
  Shape tensor_shape(std::uint16_t tensor) const;
  void mark(const Chain& chain);

  const Graph& graph_;
  std::optional<Task> task_;
  Network net_;
  std::map<std::string, Value> values_;
  std::vector<Range> ranges_ = {Range{}};                // of tensors
  std::map<std::uint16_t, std::uint16_t> flat_, whole_;  // tensor -> its FLATTEN and back
  std::map<const Node*, bool> done_;
  double logit_scale_ = 0;
};

}  // namespace odt::compiler

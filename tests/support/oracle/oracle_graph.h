// A network as a graph of tensors, and which input value every op's output is made of.
#pragma once

#include <functional>
#include <vector>

#include "image_builder.h"
#include "oracle_math.h"

namespace odt::testing {

// One value of an op's output reads one value of its input number `which` (0 or 1).
using Link = std::function<void(int which, size_t in, size_t out)>;
using WeightLink = std::function<void(size_t weight, size_t in, size_t out)>;

class OracleGraph {
 public:
  explicit OracleGraph(const NetSpec& net);

  struct Reader {
    size_t op;
    int which;  // 0: reads the tensor as in0, 1: as in1
  };

  const NetSpec& net() const { return net_; }
  size_t ops() const { return net_.layers.size(); }
  size_t tensors() const { return dims_.size(); }
  const LayerSpec& op(size_t i) const { return net_.layers[i]; }
  bool is_compute(size_t i) const {
    return op(i).kind == OpKind::kConv2d || op(i).kind == OpKind::kLinear;
  }
  size_t input(size_t i, int which) const { return reads_[i][static_cast<size_t>(which)]; }
  int inputs(size_t i) const { return static_cast<int>(reads_[i].size()); }
  const std::vector<uint16_t>& dims(size_t tensor) const { return dims_[tensor]; }
  size_t size(size_t tensor) const { return count(dims_[tensor]); }
  const std::vector<Reader>& readers(size_t tensor) const { return readers_[tensor]; }
  // Some trainable op stands at or before the op that writes this tensor.
  bool needs_delta(size_t tensor) const { return needed_[tensor]; }
  // The one tensor that leads from the ops in front of the first trainable one to the rest; -1:
  // there are several.
  int cut() const;
  size_t positions(size_t i) const;  // outputs of op i per filter

  // Every product of a convolution or a dense layer.
  void products(size_t i, const WeightLink& fn) const;
  // Every pair of the ops without weights; for MAXPOOL all candidates, in row-major order of the
  // window.
  void links(size_t i, const Link& fn) const;
  // The inputs that MAXPOOL takes: [output] index of the first maximum.
  std::vector<size_t> max_sources(size_t i, const Values& x) const;
  int64_t area(size_t i) const;  // of an average's window

 private:
  void windows(size_t i, const Link& fn) const;

  NetSpec net_;
  std::vector<std::vector<uint16_t>> dims_;
  std::vector<std::vector<size_t>> reads_;  // per op
  std::vector<std::vector<Reader>> readers_;
  std::vector<bool> needed_;
};

}  // namespace odt::testing

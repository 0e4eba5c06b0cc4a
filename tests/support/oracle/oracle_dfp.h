// Slow reference of rule 1.13 (DFP16): int16 tensors with one exponent for the whole batch, exact
// sums. Shares no code with the library. oracle_dfp: forward, loss, deltas; oracle_dfp_update:
// weights, offsets, the guard's copy.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle_graph.h"
#include "oracle_math.h"

namespace odt::testing {

struct DfpSettings {
  int lr_m[3] = {1, 1, 1};
  int lr_s = 0;
  bool blocked = false;
  bool chain32 = false;  // operands halved, as cores without 64-bit multiply-add do it
  bool cross_entropy = true;
  int batch = 8;
  int epochs = 3;
  int train_samples = 0;
  std::vector<int> class_weights;  // Q6
};

struct DfpLayer {
  size_t op = 0;
  Values w;              // empty where the offsets alone are trained
  std::vector<int> e_w;  // one, or one an output
  Values off;
  int bits = 0, shift = 0;  // of the last step
  int e_d = 0;
};

// Largest magnitude of a value.
constexpr int64_t kDfpTop = 32767;
constexpr int kDfpExponentLimit = 100;

// One tensor of a batch.
struct DfpTensor {
  bool there = false;
  std::vector<Values> v;  // [sample]
  int e = 0;
};

class DfpOracle {
 public:
  DfpOracle(const NetSpec& net, const DfpSettings& settings);

  void step(const std::vector<Values>& samples, const std::vector<int>& labels,
            const std::vector<Values>& targets = {});
  std::vector<DfpTensor> forward(const std::vector<Values>& samples) const;  // by tensor number
  DfpTensor infer(const Values& sample) const { return forward({sample}).back(); }
  uint64_t evaluate(const Values& sample, int label, const Values& target, int* correct) const;

  void keep_best() { best_ = layers_; }
  void roll_back() { layers_ = best_.empty() ? layers_ : best_; }

  const OracleGraph& graph() const { return graph_; }
  const std::vector<DfpLayer>& layers() const { return layers_; }
  uint64_t loss() const { return loss_; }
  int correct() const { return correct_; }
  int steps() const { return step_; }
  int steps_per_epoch() const;

  // Accumulators at exponent e, brought to 15 bits over the whole tensor.
  static DfpTensor down_convert(const std::vector<Values>& acc, int e);
  // v from one exponent to another: left saturating at 2^62, right HALF_UP.
  static int64_t align(int64_t v, int from, int to);

 protected:
  struct Result {
    Values dy;
    uint64_t loss = 0;
    bool correct = false;
  };

  const DfpLayer* layer_of(size_t op) const;
  Values weights(size_t op) const;
  int exponent_of(size_t op, size_t output) const;
  int common_exponent(size_t op) const;
  size_t output_of_weight(size_t op, size_t weight) const;
  int64_t product(int64_t a, int64_t b) const;
  int chain_exponent() const { return set_.chain32 ? 2 : 0; }

  DfpTensor forward_compute(size_t op, const DfpTensor& x) const;
  DfpTensor forward_op(size_t op, const std::vector<DfpTensor>& tensors) const;
  DfpTensor join(size_t op, const std::vector<DfpTensor>& tensors) const;
  Result loss_of(const Values& z, int e_z, int label, const Values& target) const;
  Result cross_entropy(const Values& z, int e_z, int label) const;
  int loss_exponent() const;

  void mask(size_t tensor, const std::vector<DfpTensor>& batch, std::vector<Values>* d) const;
  DfpTensor give(const OracleGraph::Reader& reader, const std::vector<DfpTensor>& batch,
                 const DfpTensor& out) const;
  DfpTensor pull(size_t tensor, const std::vector<DfpTensor>& batch,
                 const std::vector<DfpTensor>& deltas) const;

  int rate() const;
  void update_offsets(DfpLayer& layer, const DfpTensor& dy) const;
  void update_weights(DfpLayer& layer, const DfpTensor& x, const DfpTensor& dy) const;

  OracleGraph graph_;
  DfpSettings set_;
  std::vector<DfpLayer> layers_, best_;
  int step_ = 0;
  uint64_t loss_ = 0;
  int correct_ = 0;
};

}  // namespace odt::testing

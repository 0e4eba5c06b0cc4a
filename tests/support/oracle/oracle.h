// Slow reference of the training rules for integer models (1.1-1.12): graphs of every layer kind,
// NITI, NITI_LITERAL and APT, written from the rules in int64 over whole matrices. Shares no code
// with the library; the differential tests hold the two against each other. DFP16: oracle_dfp.h.
//
//   oracle_math    roundings, hash32, order
//   oracle_graph   which value is made of which
//   oracle_loss    losses and targets
//   oracle         forward, deltas, a step
//   oracle_update  weights, offsets, precision (APT), guard
#pragma once

#include <cstdint>
#include <vector>

#include "oracle_graph.h"
#include "oracle_loss.h"
#include "oracle_math.h"

namespace odt::testing {

enum class AptMode { kOff = 0, kQuarters = 1, kEpochs = 2 };

struct OracleSettings {
  bool literal = false;
  bool default_rounding = false;  // by k, layer by layer
  Rounding rounding = Rounding::kHalfUp;
  bool cross_entropy = false;
  bool stale = false;
  int mu_weight[3] = {0, 0, 0};
  int mu_offset = 1;
  int dead_zone = 0;
  int k = 8;
  std::vector<int> layer_k;  // per trainable layer, 0: k; may be empty
  int batch = 8;
  int epochs = 3;
  int train_samples = 0;
  uint32_t order_seed = 0, sr_seed = 0;
  std::vector<int> class_weights;  // Q6
  AptMode apt = AptMode::kOff;
  int k_max = 16;
  bool apt_offsets = false;
  uint64_t t_min_q8 = 77, t_max_q8 = 0;
};

// U of rule 1.12 as a sum: a / (256 * N * n).
struct AptSum {
  uint64_t a = 0, n = 0;
};

// Sums of rule 1.14 over the current epoch.
struct OracleEpoch {
  int steps = 0, bits_min = 255, bits_max = 0;
  uint64_t bits_sum = 0;
  uint64_t deltas = 0, nonzero = 0;    // weight deltas, and how many of them not 0
  uint64_t propagated = 0, zeros = 0;  // values of the delta at the layer's output, and its zeros
  uint64_t sum_abs_g = 0, sum_n = 0;   // of the sampled steps
};

struct OracleLayer {
  size_t op = 0;  // index within the net
  Values m;       // stored weights, ONNX order; empty where the offsets alone are trained
  Values off;
  int k = 8;
  int k_off = 0;  // precision of the offsets, 0: not adapted
  int b_prev = 0;
  AptSum u, u_off;
  int bits = 0, ws = 0, k_used = 8;  // of the last step
  int e_d = 0;                       // exponent of the delta at the layer's output, last step
  OracleEpoch epoch;
  int64_t saturated(bool literal) const;  // weights at their limit
};

class Oracle {
 public:
  Oracle(const NetSpec& net, const OracleSettings& settings);

  // One training step on samples[i] with labels[i], or with targets[i] for regression.
  void step(const std::vector<Values>& samples, const std::vector<int>& labels,
            const std::vector<Values>& targets = {});
  // All tensors of one sample, by number; the last one holds the logits.
  std::vector<Values> forward(const Values& sample) const;
  Values infer(const Values& sample) const { return forward(sample).back(); }
  // Loss of one sample without training; adds to correct where the prediction is right.
  uint64_t evaluate(const Values& sample, int label, const Values& target, int* correct) const;

  void start_epoch();  // of the sums
  // One layer to another precision, in unit steps.
  void set_k(size_t layer, int k);
  // Keeps the weights as they are as the best; at the end of a guarded run they come back.
  void keep_best();
  void roll_back();

  const OracleGraph& graph() const { return graph_; }
  const std::vector<OracleLayer>& layers() const { return layers_; }
  uint64_t loss() const { return loss_; }  // of the last step
  int correct() const { return correct_; }
  int steps() const { return step_; }
  int steps_per_epoch() const;
  // Nothing was rounded or clipped (a ReLU apart) in the last step before the weights moved.
  bool exact() const { return exact_; }

 protected:
  using Batch = std::vector<std::vector<Values>>;  // [sample][tensor]
  struct Delta {
    bool there = false;
    std::vector<Values> values;  // [sample]
    int e = 0;
  };
  // What one reader of a tensor gives to its delta: unrounded accumulators, [sample].
  struct Contribution {
    std::vector<Values> values;
    int e = 0;
  };

  Values weight_view(size_t op) const;
  const OracleLayer* layer_of(size_t op) const;
  Values forward_compute(size_t op, const Values& x) const;
  int64_t output(const LayerSpec& l, size_t o, int64_t acc, int64_t off) const;
  Values forward_op(size_t op, const std::vector<Values>& tensors) const;
  std::vector<Delta> all_deltas(const Batch& batch, const std::vector<Values>& dy) const;
  bool give(const OracleGraph::Reader& reader, const Batch& batch, const Delta& out,
            Contribution* c) const;
  void give_exponent(const OracleGraph::Reader& reader, int e_out, Contribution* c) const;
  Delta pull(size_t tensor, const Batch& batch, const std::vector<Delta>& deltas) const;
  void mask(size_t tensor, const Batch& batch, std::vector<Values>* d) const;

  Values weight_gradient(const OracleLayer& layer, const Batch& batch, const Delta& dy) const;
  void update_offsets(OracleLayer& layer, const Delta& dy, bool sampled);
  void update_weights(size_t index, OracleLayer& layer, const Batch& batch, const Delta& dy,
                      bool sampled);
  Rounding rounding_of(int k) const;
  int mu_of(const OracleLayer& layer) const;
  int stage() const;
  void unit_step(OracleLayer& layer, bool up);
  void check_precision();
  static void count(OracleLayer& layer, const Values& g, const Delta& dy, bool sampled);

  OracleGraph graph_;
  OracleSettings set_;
  std::vector<OracleLayer> layers_, best_;
  int step_ = 0;
  int since_check_ = 0;  // steps since the last check of rule 1.12
  uint64_t loss_ = 0;
  int correct_ = 0;
  mutable bool exact_ = true;
};

}  // namespace odt::testing

// Slow reference of the training rules (firmware/odt/README.md, rules 1.1-1.11), written from the
// rules in int64 over whole matrices. Shares no code with the library; the differential tests hold
// the two against each other.
#pragma once

#include <cstdint>
#include <vector>

#include "image_builder.h"

namespace odt::testing {

enum class Rounding { kHalfUp = 1, kHalfAway = 2, kPsto = 3, kSr = 4 };

struct OracleSettings {
  bool literal = false;
  Rounding rounding = Rounding::kHalfUp;
  bool cross_entropy = false;
  bool stale = false;
  int mu_weight[3] = {0, 0, 0};
  int mu_offset = 1;
  int dead_zone = 0;
  int k = 8;
  int batch = 8;
  int epochs = 3;
  int train_samples = 0;
  uint32_t order_seed = 0, sr_seed = 0;
  std::vector<int> class_weights;  // Q6
};

using Values = std::vector<int64_t>;

struct OracleLayer {
  size_t op = 0;  // index within the net
  Values m;       // stored weights, ONNX order
  Values off;
  int b_prev = 0;
  int bits = 0, ws = 0;  // of the last step
};

int64_t oracle_round(int64_t g, int s, Rounding rounding, uint32_t r);
uint32_t oracle_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index);
std::vector<int> oracle_order(uint32_t seed, uint32_t epoch, int n);

class Oracle {
 public:
  Oracle(const NetSpec& net, const OracleSettings& settings);

  // One training step on samples[i] with labels[i].
  void step(const std::vector<Values>& samples, const std::vector<int>& labels);
  // Logits of one sample.
  Values infer(const Values& sample) const;

  const std::vector<OracleLayer>& layers() const { return layers_; }
  int64_t loss() const { return loss_; }  // of the last step
  int correct() const { return correct_; }
  int steps() const { return step_; }

 private:
  struct Shape {
    std::vector<uint16_t> in, out;
  };

  Values weight_view(size_t op) const;
  const OracleLayer* layer_of(size_t op) const;
  Values forward_op(size_t op, const Values& x) const;
  std::vector<Values> forward(const Values& sample) const;  // [0] input, [i + 1] output of op i
  Values loss_delta(const Values& z, int label);
  Values input_delta(size_t op, const Values& dy) const;
  Values weight_gradient(size_t op, const Values& x, const Values& dy) const;
  std::vector<Values> propagate(size_t op, const std::vector<std::vector<Values>>& acts,
                                const std::vector<Values>& dy) const;
  void update_offsets(OracleLayer& layer, const std::vector<Values>& dy);
  void update_weights(size_t index, OracleLayer& layer,
                      const std::vector<std::vector<Values>>& acts, const std::vector<Values>& dy);
  int stage() const;

  NetSpec net_;
  OracleSettings set_;
  std::vector<Shape> shapes_;
  std::vector<OracleLayer> layers_;
  int step_ = 0;
  int64_t loss_ = 0;
  int correct_ = 0;
};

}  // namespace odt::testing

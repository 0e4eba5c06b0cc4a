// Pieces of hand-written networks: constants come from hash32, so that they are the same for ever.
#pragma once

#include "compare.h"

namespace odt::testing {

class RuleNet {
 public:
  explicit RuleNet(std::vector<uint16_t> input, bool dfp16 = false);

  // Each returns the number of its output tensor. `from` -1: the newest one.
  int dense(uint32_t outputs, int k, bool relu, int from = -1);
  int conv(const LayerSpec& shape, int k, bool relu, int from = -1);
  int flatten(int from = -1);
  int pool(OpKind kind, const LayerSpec& shape, int from = -1);
  int add(int a, int b, int32_t m_a, int32_t m_b, bool relu);
  int concat(int a, int b);
  int resize(uint16_t h, uint16_t w, int from = -1);
  LayerSpec& last() { return net.layers.back(); }
  // Targets and cross-entropy scale; 0: that of a small model.
  NetSpec finish(uint16_t ce_scale = 150);

  NetSpec net;

 private:
  int put(LayerSpec l, int from, int from1 = -1);
  void fill(LayerSpec& l, uint32_t fan_in, int k);
  int32_t draw(int32_t lo, int32_t hi);

  std::vector<std::vector<uint16_t>> dims_;
  uint32_t drawn_ = 0;
};

LayerSpec window(uint16_t h, uint16_t w, uint16_t stride = 1, uint16_t pad = 0);

// Logits that are the samples themselves, with offsets that move by exactly the loss's dy.
NetSpec identity_net(uint16_t n, uint16_t ce_scale);
ComparedRun plain_run(const NetSpec& net, int samples, int batch, int epochs);
// The same with these values and labels.
ComparedRun given_run(const NetSpec& net, const std::vector<Values>& values,
                      const std::vector<int>& labels);

}  // namespace odt::testing

// A context of TI's interface over the trainable tail of a model image, with its own copies of
// weights and buffers.
#pragma once

#include <memory>
#include <vector>

#include "odt/odt.h"
#include "odt/ti.h"
#include "walk.h"

namespace odt::testing {

struct TiLayer {
  std::vector<int8_t> weights, mult, k;
  std::vector<int32_t> offset;
  std::vector<uint8_t> act, mask;
  std::vector<int8_t> delta;
};

class TiModel {
 public:
  // Frozen and trained part meet in one tensor.
  static bool fits(const odt_model_t& model);
  TiModel(const odt_model_t& model, uint16_t batch);
  TiModel(const TiModel&) = delete;

  IntModelCtx_t ctx{};
  std::vector<IntLayerDesc_t> layers;
  std::vector<TiLayer> memory;  // of layers
  uint32_t n_classes() const { return layers.back().out_size; }
  uint32_t input_bytes() const;  // of one sample, behind the frozen part
  // Input of the context from samples of the network input: the frozen part has run.
  std::vector<uint8_t> frozen(const std::vector<uint8_t>& samples, uint32_t n) const;
  const int8_t* logits() const { return static_cast<const int8_t*>(layers.back().act_buf); }
  // What a user's loss does: dy of MSE into grad_buf[0].
  void loss(const odt_model_t& model, const std::vector<int>& labels);
  // The same against values: regressions and autoencoders.
  void loss_values(const std::vector<std::vector<int64_t>>& targets);
  // act_buf and relu_mask of all layers, weights and offsets.
  std::vector<uint8_t> everything() const;

 private:
  const odt_model_t& model_;
  std::vector<int8_t> grad_[2];
  mutable std::vector<std::vector<uint32_t>> values_;  // by tensor
};

}  // namespace odt::testing

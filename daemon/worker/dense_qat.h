#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"

namespace odt::worker {

// Samples behind PREQUANT: int8 values [count][len].
struct QatSamples {
  std::uint32_t count = 0, len = 0;
  const std::int8_t* values = nullptr;
  const std::uint8_t* labels = nullptr;
};

struct QatOptions {
  std::vector<std::uint32_t> hidden;  // units of each hidden layer, uint8 with ReLU
  std::uint32_t epochs = 12;
  std::uint32_t seed = 1;
  std::uint32_t n_classes = 10;
};

struct QatResult {
  std::vector<compiler::Layer> layers;  // power-of-two shifts, one bit of weight headroom
  std::uint16_t ce_scale = 0;           // Q8, of the logits' step
};

// Fake-quantised training of a dense network on one thread: float for the first half of the epochs,
// then forward passes on the integer grid with straight-through gradients. Momentum SGD, cosine
// rate, cross-entropy. The same options and samples give the same bytes.
QatResult train_dense_qat(const QatSamples& train, const QatOptions& options,
                          const std::function<void(std::uint32_t epoch, double loss)>& on_epoch);

}  // namespace odt::worker

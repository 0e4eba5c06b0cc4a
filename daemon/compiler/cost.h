#pragma once

#include <cstdint>

#include "compiler/boards.h"
#include "compiler/ir.h"

// Predicted instructions of training, from counts of the kernels under QEMU (tests/bench/kernels).
// Conditions: rule defaults (PSTO or HALF_UP, exact shifts), telemetry on. Within about a quarter
// of what the bench counts.
namespace odt::compiler {

struct LayerCost {
  std::uint64_t macs = 0;  // forward, per sample
  double forward = 0;      // instructions per sample
  double backward = 0;     // delta and gradient, instructions per sample
  double update = 0;       // instructions per step
};

// One layer of the network at a precision k and a batch.
LayerCost layer_cost(const Network& net, std::size_t layer, Kernels kernels, std::uint32_t k,
                     std::uint32_t batch);

struct StepCost {
  double training_step = 0;  // instructions
  double inference = 0;      // of one sample
};
// frozen_outputs: the host computes what is in front of the first trainable layer.
StepCost step_cost(const Network& net, Kernels kernels, std::uint32_t k, std::uint32_t batch,
                   bool frozen_outputs = false);
std::size_t first_trainable(const Network& net);  // number of a layer

}  // namespace odt::compiler

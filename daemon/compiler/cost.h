#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// The same in time on a board of firmware/boards, by its clock. DFP16: k15 as k8.
struct BoardTime {
  std::string board;
  std::uint64_t infer_ns = 0;                // of one sample
  std::uint64_t k8_b1_ns = 0, k8_b8_ns = 0;  // a step of 1 and of 8 samples
  std::uint64_t k15_b1_ns = 0, k15_b8_ns = 0;
};
std::vector<BoardTime> board_times(const Network& net);

}  // namespace odt::compiler

#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"

// DFP16 (rule 1.13) networks: int16 values of shared exponents.
namespace odt::compiler {

// Values as mantissas of one exponent, the smallest that holds them; -100..100.
template <typename T>
struct Block {
  std::vector<T> values;
  std::int8_t exponent = 0;
};
Block<std::int16_t> block16(const std::vector<double>& reals);
Block<std::int32_t> block32(const std::vector<double>& reals);

// Weights (in the order of l.weights) and biases of a layer at the smallest exponents: weights fill
// 15 bits; biases keep 7 bits to grow, and stay as fine as a weight's 2^-8.
void set_dfp16(const std::vector<double>& weights, const std::vector<double>& bias, Layer& l);

// The same function in DFP16, graphs too: weights and biases as set_dfp16, real values instead of
// clips; ReLU stays. Logits are in units of the softmax, so that cross-entropy needs no scale;
// without classes a step of the integer net's outputs is 2^-7.
// Errors: INVALID_ARGUMENT (no cross-entropy scale, not an integer network), UNIMPLEMENTED (scales
// of channels that differ in an average; sums whose terms have other scales than real ones do).
Result<Network> to_dfp16(const Network& net);

}  // namespace odt::compiler

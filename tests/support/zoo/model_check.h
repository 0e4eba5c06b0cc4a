// Compiled models on the host library: inference of float samples, and one training step held
// against the reference (tests/support/oracle).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::testing {

// What a model needs to run: image and manifest as odtc wrote them, samples as the ONNX file takes
// them.
struct CompiledModel {
  std::string image, manifest;
  std::vector<float> samples;  // [count][values of the input]
  std::uint32_t count = 0;
};

// Outputs as real numbers: int8 values, DFP16 values * 2^exponent. [count][outputs]
Result<std::vector<float>> infer_all(const CompiledModel& model);

// One step on the first samples in every setting that the model allows: state, loss, correct count
// and the outputs afterwards equal the reference's. Empty: all equal; otherwise what differs.
Result<std::string> check_step(const CompiledModel& model);

}  // namespace odt::testing

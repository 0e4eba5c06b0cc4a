#pragma once

#include <string>

#include "base/result.h"
#include "model/library.h"

namespace odt::compiler {

// Trainer arena with guard on and streamed samples.
struct MemoryPlan {
  std::uint32_t weights_bytes = 0, best_bytes = 0, activation_bytes = 0, gradient_bytes = 0;
  std::uint32_t total_bytes = 0;
};

// Opens the image with firmware/odt and plans for precision k. Errors: INVALID_ARGUMENT,
// OUT_OF_RANGE, UNIMPLEMENTED naming `file`, the field, got and limits.
Result<MemoryPlan> plan_memory(const std::string& image, const std::string& file, std::uint8_t k,
                               std::uint16_t batch = 8);

// What the arena takes whatever the run is: one copy of weights + a second with guard + work at the
// batch + 2 bytes for each resident sample. Exact at these batches and at multiples of 8.
Result<model::RamPlan> plan_table(const std::string& image, const std::string& file);

// What an image asks of a board's firmware (compiler/boards.h, BoardLimits).
struct ImageParts {
  std::uint32_t ops = 0, layers = 0, classes = 0;  // classes: 0 where the model has none
  bool conv = false, graphs = false, dfp16 = false;
};
// Errors: those of plan_memory.
Result<ImageParts> parts_of(const std::string& image, const std::string& file);

}  // namespace odt::compiler

#pragma once

#include <string>

#include "base/result.h"

namespace odt::compiler {

// Trainer arena at batch 8, guard on, streamed samples.
struct MemoryPlan {
  std::uint32_t weights_bytes = 0, best_bytes = 0, activation_bytes = 0, gradient_bytes = 0;
  std::uint32_t total_bytes = 0;
};

// Opens the image with firmware/odt and plans for precision k. Errors: INVALID_ARGUMENT,
// OUT_OF_RANGE, UNIMPLEMENTED naming `file`, the field, got and limits.
Result<MemoryPlan> plan_memory(const std::string& image, const std::string& file, std::uint8_t k);

}  // namespace odt::compiler

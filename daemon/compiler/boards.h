#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "odt/odt.h"

namespace odt::compiler {

enum class Kernels : std::uint8_t { kPlainC, kDsp, kHelium };
const char* kernels_name(Kernels kernels);

// What a board's firmware takes (odt/odt.h); boards that save flash have less.
struct BoardLimits {
  // Of an image; layers: trainable ones.
  std::uint32_t ops = ODT_MAX_OPS, layers = ODT_MAX_LAYERS, classes = ODT_MAX_CLASSES;
  bool conv = true, graphs = true, dfp16 = true;
};

// What of a board decides whether a model fits and how long it trains there.
struct BoardFigures {
  std::string name, cpu;  // cpu: as -mcpu
  std::uint64_t clock_hz = 0;
  std::uint64_t arena_bytes = 0;  // RAM that image, trainer and samples share
  std::uint64_t flash_bytes = 0;  // beside the firmware
  Kernels kernels = Kernels::kPlainC;
  double cycles_per_instruction = 1.5;  // estimate
  BoardLimits limits;
};

// The boards of firmware/boards, by their board.cmake.
const std::vector<BoardFigures>& boards();
// Errors: NOT_FOUND with the names that are known.
Result<BoardFigures> find_board(const std::string& name);
// A board that is not in the table. Errors: INVALID_ARGUMENT (cpu unknown).
Result<BoardFigures> other_board(const std::string& cpu, std::uint64_t arena_bytes, double mhz);

}  // namespace odt::compiler

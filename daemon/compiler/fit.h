#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/boards.h"
#include "compiler/compile.h"
#include "compiler/cost.h"

// Does a model fit a board, and how long does it train there?
namespace odt::compiler {

struct FitRequest {
  std::uint32_t k = 15;  // precision, NITI; DFP16 models ignore it
  std::uint16_t batch = 8;
  std::uint32_t train = 600, heldout = 200;  // samples
  bool guard = true;                         // two copies of the weights
};

// Bytes of a board's arena.
struct FitRam {
  std::uint64_t image = 0, weights = 0, best = 0, activations = 0, gradients = 0, samples = 0;
  std::uint64_t total() const { return image + weights + best + activations + gradients + samples; }
};

// Settings with which a run would fit.
struct FitChoice {
  std::uint32_t trainable_layers = 0, k = 0;
  std::uint16_t batch = 0;
  bool streamed = false;
  std::uint64_t bytes = 0;
  bool operator==(const FitChoice&) const = default;
};

struct FitReport {
  FitRam resident, streamed;  // samples on the board, or one batch at a time
  bool fits_resident = false, fits_streamed = false;
  StepCost cost;
  double step_s = 0, epoch_s = 0;    // estimates; 0: no clock known
  std::vector<FitChoice> would_fit;  // where it does not: the most layers, then the largest batch
};

// Errors: INVALID_ARGUMENT (settings that the library refuses), those of compile_network.
Result<FitReport> fit(const Compiled& compiled, const std::string& file, const BoardFigures& board,
                      const FitRequest& request);

// For people, and as JSON.
std::string fit_text(const Compiled& compiled, const BoardFigures& board, const FitRequest& request,
                     const FitReport& report);
std::string fit_json(const Compiled& compiled, const BoardFigures& board, const FitRequest& request,
                     const FitReport& report);

}  // namespace odt::compiler

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/boards.h"
#include "compiler/compile.h"
#include "compiler/cost.h"

// Does a model fit a board, and how long does it train there? Decided as odtd does
// (training/ram_fit.h).
namespace odt::compiler {

struct FitRequest {
  std::uint32_t k = 0;      // precision, NITI; 0: as odtd chooses, 15 or else 8; DFP16 has none
  std::uint16_t batch = 0;  // 0: as odtd chooses, 8 (or 32, FitReport::mild) or less
  std::uint32_t train = 600, heldout = 200;  // samples
  bool guard = true;                         // with held-out samples: keeps the best weights
  bool evaluate = false;                     // on test samples, before and after
  // Absent: as odtd chooses.
  std::optional<bool> frozen, streamed, best_on_host;
};

// What a board trains on (training::Form): samples; outputs of the model's frozen part, which odtd
// computes; the same with the image of the trainable part alone.
enum class FitForm : std::uint8_t { kSamples, kFrozen, kTail };

// Bytes of a board's arena.
struct FitRam {
  std::uint64_t image = 0, weights = 0, best = 0, activations = 0, gradients = 0, samples = 0;
  std::uint64_t total() const { return image + weights + best + activations + gradients + samples; }
};

// A way to train.
struct FitWay {
  std::uint32_t k = 0;
  std::uint16_t batch = 0;
  bool streamed = false;      // one batch at a time, else all samples on the board
  bool best_on_host = false;  // the guard's best weights stay with odtd
  FitForm form = FitForm::kSamples;
  FitRam ram;
  std::string refused;  // what the board's firmware does not take; empty: it takes it
  bool fits(std::uint64_t arena) const { return refused.empty() && ram.total() <= arena; }
};

// Settings with which a run would fit.
struct FitChoice {
  std::uint32_t trainable_layers = 0;
  FitWay way;
};

struct FitTime {
  StepCost cost;
  double step_s = 0, epoch_s = 0;  // estimates; 0: no clock known
};

struct FitReport {
  // As odtd tries them, best first, up to the first that fits; at least those of the first
  // precision and batch. What the firmware refuses comes once for each form.
  std::vector<FitWay> ways;
  std::optional<FitWay> chosen;  // what odtd would run
  FitTime time;                  // of the way chosen, else of the first
  // Classes, batch not pinned: what odtd would run where the model is good on the new data already
  // (training::Drift::kMild), which takes a batch of 32.
  std::optional<FitWay> mild;
  FitTime mild_time;
  std::vector<FitChoice> would_fit;  // where nothing does: the most layers, then the best way
};

std::uint32_t trainable_layers(const Network& net);
// The way chosen, else the best that was tried.
const FitWay& shown_way(const FitReport& report);

// Errors: INVALID_ARGUMENT (settings that the library or odtd refuses), those of compile_network.
Result<FitReport> fit(const Compiled& compiled, const std::string& file, const BoardFigures& board,
                      const FitRequest& request);

// For people, and as JSON.
std::string fit_text(const Compiled& compiled, const BoardFigures& board, const FitRequest& request,
                     const FitReport& report);
std::string fit_json(const Compiled& compiled, const BoardFigures& board, const FitRequest& request,
                     const FitReport& report);

}  // namespace odt::compiler

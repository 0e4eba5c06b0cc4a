#pragma once

#include <string>

#include "model/board.h"
#include "model/library.h"
#include "training/policy.h"

// Does a run fit a board? From the model's figures, as firmware/app lays its arena out: an upper
// bound, so that what is accepted also starts. The board has the last word.
namespace odt::training {

struct RamNeed {
  // samples: resident sets or the batch slot, and the counts of an evaluation.
  std::uint64_t image = 0, trainer = 0, samples = 0;
  std::uint64_t total() const { return image + trainer + samples; }
};
struct SampleCounts {
  std::uint32_t train = 0, heldout = 0;
  bool evaluate = false;        // on the test split, before and after training
  bool start_snapshot = false;  // weights wait on the board while the trainer is laid out
  bool guard = true;            // as asked; off without held-out samples
};

// Bytes of a sample's values as a board takes them.
std::uint32_t sample_bytes(const model::Model& model, Form form = Form::kRaw);
RamNeed ram_need(const model::Model& model, const SampleCounts& counts, const Placement& place);

// The precision of the first placement to try, whatever memory there is.
Placement asked_placement(const model::HyperParams& asked);

// Placements to try, best first: k 15 before 8, resident before streamed, the batch wanted before
// smaller ones, the guard's best weights on the board before on the host; the whole model with the
// samples before frozen outputs, those with the whole model before the trainable part alone. What
// `asked` pins is never changed. Only those that fit by estimate (all, where the model's or the
// board's figures are unknown). Errors: RESOURCE_EXHAUSTED with what is needed and which settings
// would fit.
Result<std::vector<Placement>> placements(const model::Model& model, const model::Board& board,
                                          const SampleCounts& counts,
                                          const model::HyperParams& asked, std::uint32_t batch);
// What the board holds at that placement, and why not more.
std::string placement_text(const model::Model& model, const model::Board& board,
                           const SampleCounts& counts, const model::HyperParams& asked,
                           const Placement& place);

}  // namespace odt::training

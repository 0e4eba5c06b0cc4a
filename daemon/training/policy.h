#pragma once

#include <algorithm>

#include "base/result.h"
#include "model/board.h"
#include "model/device.h"
#include "model/library.h"
#include "model/run.h"

// Settings of a run: ranges (rules 1.3, 1.5, 1.6, 1.11) and the automatic policy (rule 1.9).
namespace odt::training {

enum class Drift : std::uint8_t { kMild, kStrong };

// Held-out sets below this judge too roughly: the training samples, not seen yet, are counted too.
inline constexpr std::uint32_t kFewHeldout = 50;
// Strong: fewer than 20 samples, or accuracy before training below 5/6 of the model's on its own
// data (an unknown source accuracy counts as 100 %).
Drift judge_drift(const model::Accuracy& start, const model::Accuracy& source);

// What a board trains on. kFrozen: outputs of the model's frozen part, made once by the host, with
// the whole image; kTail: the same with the image of the trainable part alone.
enum class Form : std::uint8_t { kRaw, kFrozen, kTail };
// Of a run whose placement is settled.
inline Form form_of(const model::HyperParams& effective) {
  if (effective.tail.value_or(false)) return Form::kTail;
  return effective.frozen.value_or(false) ? Form::kFrozen : Form::kRaw;
}

// What is settled before hyperparameters are: place and size.
struct Placement {
  std::uint32_t k = 15;
  std::uint32_t batch = 8;
  bool streamed = false;
  std::uint32_t k_max = 0;    // where k moves: the highest; 0: it stays
  std::uint32_t top = 0;      // the highest of layers that start with a k of their own
  bool best_on_host = false;  // with guard: the board keeps one copy of the weights
  Form form = Form::kRaw;
  std::uint32_t stored_k() const { return std::max({k, k_max, top}); }
  bool operator==(const Placement&) const = default;
};
// Batch that the policy wants where nobody says otherwise.
std::uint32_t policy_batch(const model::HyperParams& asked, Drift drift);

// Every field set. `asked` wins field by field over the policy.
model::HyperParams resolve(const model::HyperParams& asked, Drift drift, const Placement& place,
                           bool has_ce_scale, bool has_heldout, bool classes = true);

// Ranges of resolved settings, against what the board takes. Errors: INVALID_ARGUMENT naming the
// field, the value, its limits and what they come from.
Status check_ranges(const model::HyperParams& effective, const model::Model& model,
                    const model::Board& board);
// The fields as asked that do not depend on the policy (list lengths, k against rule set, loss
// against what the model learns).
Status check_asked(const model::HyperParams& asked, bool classes = true);

// Limits of mu_weight (rule 1.5).
struct MuRange {
  std::int32_t low, high;
};
MuRange mu_weight_range(std::uint32_t k, model::Rounding rounding, std::uint32_t batch);
// Where k varies: what at least one k in reach allows; boards clamp a step's mu to its layer's k.
MuRange mu_weight_range(const model::HyperParams& effective);
// Capability bits (proto/README.md): DFP16; the guard's best weights can stay with the host;
// regressions and autoencoders; frozen sets and tail images.
inline constexpr std::uint32_t kCapDfp16 = 1u << 10, kCapBestOnHost = 1u << 12,
                               kCapTasks = 1u << 13, kCapFrozen = 1u << 14;
// Those that settings need of a board.
std::uint32_t caps_needed(const model::HyperParams& asked);

}  // namespace odt::training

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/campaign.h"

// Trials of a sweep: pure functions of its spec.
namespace odt::campaign {

inline constexpr std::uint32_t kMaxTrials = 1024;

// One value of an axis put into settings. `trainable_layers` is not one of HyperParams: it goes to
// the second result. Errors: INVALID_ARGUMENT naming axis and value.
struct Trial {
  model::HyperParams hyper;
  std::optional<std::uint32_t> trainable_layers;
};
Status apply_value(const std::string& axis, const std::string& value, Trial& trial);

// "0..4" becomes five values; others stay. Errors: INVALID_ARGUMENT (over 64 values, wrong order).
Result<std::vector<std::string>> expand_values(const model::SweepAxis& axis);

// The first rung, in order: GRID all combinations (the last axis fastest), RANDOM and HALVING
// `trials` of them without repetition, drawn with `seed` and sorted by their number; all of them
// where trials is 0. Errors: INVALID_ARGUMENT (no axis, an axis twice, too many trials).
Result<std::vector<Trial>> trials_of(const model::SweepSpec& sweep, const model::HyperParams& base);

// Epochs of each rung: min_epochs * eta^r, the last is `epochs`. GRID, RANDOM: one rung.
std::vector<std::uint32_t> rung_epochs(const model::SweepSpec& sweep, std::uint32_t epochs);
std::uint32_t eta_of(const model::SweepSpec& sweep);  // 3 where it is 0

// Whether a ended better than b: held-out accuracy, or the lower held-out loss where there are no
// classes; ties by trial. A unit without a score is worse than any other.
bool better(const model::CampaignUnit& a, const model::CampaignUnit& b);

// Indices in `units` of those that go into the next rung: the best ceil(n / eta) of the n trials of
// the rung, of those that succeeded; in order of trial.
std::vector<std::size_t> survivors(const std::vector<model::CampaignUnit>& units,
                                   std::uint32_t rung, std::uint32_t eta);
// The best of the last rung that has one.
std::optional<std::uint32_t> best_unit(const std::vector<model::CampaignUnit>& units);

// Names of settings in which a and b differ.
std::vector<std::string> differing(const model::HyperParams& a, const model::HyperParams& b);

}  // namespace odt::campaign

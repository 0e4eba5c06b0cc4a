#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/sweep.h"
#include "model/board.h"
#include "model/campaign.h"
#include "model/library.h"

// What a campaign consists of and what comes next: pure functions, so that a restarted daemon
// decides as the one before.
namespace odt::campaign {

// A spec with its defaults filled in. Errors: INVALID_ARGUMENT naming the field.
Result<model::CampaignSpec> complete(model::CampaignSpec spec);

// The boards that the spec means, by name, then uid; TWIN: as given. Errors: INVALID_ARGUMENT
// (query), NOT_FOUND (a uid), FAILED_PRECONDITION NO_BOARDS.
Result<std::vector<BoardUid>> resolve_cohort(const model::CampaignSpec& spec,
                                             std::vector<model::Board> boards);

// models: those compiled from the ONNX file of spec.model_hash, and itself (for trainable_layers).
// Errors: INVALID_ARGUMENT, FAILED_PRECONDITION NO_MODEL (trainable_layers), NO_DATASET (a board).
Result<std::vector<model::CampaignUnit>> first_units(const model::Campaign& campaign,
                                                     const std::vector<model::Model>& models);
std::uint32_t rounds_of(const model::CampaignSpec& spec, std::size_t boards);

// SWEEP: the next rung; empty: there is none.
std::vector<model::CampaignUnit> next_rung(const model::Campaign& campaign,
                                           const std::vector<model::CampaignUnit>& units);
// FEDERATED: the units of a round (or, after the last, of personalisation) that begins with
// `start`.
std::vector<model::CampaignUnit> next_round(const model::Campaign& campaign, std::uint32_t round,
                                            std::uint32_t first_index, const Hash& start);

// ROLLOUT: how many boards have had their turn at the end of a phase, and the phases.
std::vector<std::uint32_t> phase_sizes(const model::RolloutSpec& rollout, std::size_t boards);
bool dropped_too_far(const model::RolloutSpec& rollout, const model::Accuracy& before,
                     const model::Accuracy& after);

// Least boards of a federated round.
std::uint32_t least_boards(const model::Campaign& campaign);

// Counts of units into the campaign.
void count_units(const std::vector<model::CampaignUnit>& units, model::Campaign& campaign);

}  // namespace odt::campaign

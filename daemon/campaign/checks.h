#pragma once

#include <memory>
#include <vector>

#include "campaign/driver.h"

namespace odt::campaign {

// Reads what the spec names: the snapshot of a rollout gives its model, a federated campaign
// without k one that every board has room for (15, else 8). Errors: NOT_FOUND, those of complete().
asio::awaitable<Result<model::CampaignSpec>> read_spec(Env& env, const model::CampaignSpec& asked,
                                                       const std::vector<BoardUid>& boards,
                                                       const CallContext& ctx);

// The model and those compiled from the same ONNX file.
asio::awaitable<Result<std::vector<model::Model>>> related_models(Env& env, Hash model);

// Asks the fleet whether each board could carry out its units (SWEEP: each trial on one board of
// each kind, the first trial on all), and how long they would take.
asio::awaitable<Result<std::vector<BoardCheck>>> check_boards(
    Env& env, const model::Campaign& campaign, const std::vector<model::CampaignUnit>& units);

}  // namespace odt::campaign

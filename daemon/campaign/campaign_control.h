#pragma once

#include <optional>
#include <vector>

#include "base/call.h"
#include "model/campaign.h"

namespace odt::campaign {

// What is known of a board before a campaign begins.
struct BoardCheck {
  BoardUid board;
  std::uint32_t units = 0;  // of the first round
  model::Reason refusal;    // empty code: it can
  std::optional<model::HyperParams> effective;
  std::uint32_t steps = 0;                     // of one unit; 0: not known
  std::uint64_t estimate_us = 0;               // of all its units; 0: not known
  std::optional<model::RunEstimate> estimate;  // of the first
  bool online = false;
};
struct Created {
  model::Campaign campaign;
  std::vector<BoardCheck> checks;
  std::vector<model::CampaignUnit> units;  // of the first round
};

// What the API may ask of campaigns. Any thread; `done` on the links thread. A mutation has
// happened (is committed) when its `done` says OK.
class CampaignControl {
 public:
  virtual ~CampaignControl() = default;

  // Errors: INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION (NO_BOARDS, CANNOT_RUN, ...).
  virtual void create(CallContext ctx, model::CampaignSpec spec, bool dry_run,
                      Done<Created> done) = 0;
  enum class Act : std::uint8_t { kPause, kResume, kCancel, kRetry };
  // Errors: NOT_FOUND, FAILED_PRECONDITION (the state does not allow it).
  virtual void act(CallContext ctx, Uuid campaign, Act act, Done<model::Campaign> done) = 0;
  // Every campaign that goes on is to pause, or to end. Which have answered within 2 s.
  virtual void stop_all(CallContext ctx, bool cancel, Done<std::vector<Uuid>> done) = 0;
};

}  // namespace odt::campaign

#include "model/campaign.h"

namespace odt::model {

bool is_legal_transition(CampaignState from, CampaignState to) {
  using S = CampaignState;
  switch (from) {
    case S::kQueued:
      return to == S::kRunning || to == S::kPaused || to == S::kFailed || to == S::kCancelled;
    case S::kRunning:
      return to == S::kPaused || to == S::kRollingBack || is_final(to);
    case S::kPaused:
      return to == S::kRunning || to == S::kFailed || to == S::kCancelled;
    case S::kRollingBack:
      return to == S::kFailed || to == S::kCancelled;
    // A retry of what failed.
    case S::kSucceeded:
    case S::kFailed:
    case S::kCancelled:
      return to == S::kRunning;
    default:
      return false;
  }
}

}  // namespace odt::model

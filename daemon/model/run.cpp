#include "model/run.h"

namespace odt::model {

bool is_legal_transition(RunState from, RunState to) {
  using S = RunState;
  if (is_final(from)) return false;
  if (to == S::kFailed || to == S::kCancelled) return true;
  switch (from) {
    case S::kQueued:
      return to == S::kPreparing || to == S::kWaitingBoard;
    case S::kPreparing:
      return to == S::kRunning || to == S::kPaused || to == S::kWaitingBoard ||
             to == S::kEvaluating;
    case S::kRunning:
      return to == S::kPaused || to == S::kWaitingBoard || to == S::kEvaluating ||
             to == S::kPreparing || to == S::kSucceeded;
    case S::kPaused:
      return to == S::kRunning || to == S::kWaitingBoard || to == S::kPreparing;
    case S::kWaitingBoard:
      return to == S::kPreparing || to == S::kRunning || to == S::kPaused || to == S::kEvaluating;
    case S::kEvaluating:
      // Before training (PREPARING -> EVALUATING -> PREPARING) and after it.
      return to == S::kPreparing || to == S::kWaitingBoard || to == S::kSucceeded;
    default:
      return false;
  }
}

}  // namespace odt::model

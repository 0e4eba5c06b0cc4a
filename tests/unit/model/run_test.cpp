#include "model/run.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace odt::model {
namespace {

using S = RunState;

const S kAll[] = {S::kUnspecified,  S::kQueued,     S::kPreparing, S::kRunning, S::kPaused,
                  S::kWaitingBoard, S::kEvaluating, S::kSucceeded, S::kFailed,  S::kCancelled};

// The legal transitions in full, written down a second time.
const std::set<std::pair<S, S>> kLegal = {
    {S::kQueued, S::kPreparing},       {S::kQueued, S::kWaitingBoard},
    {S::kQueued, S::kFailed},          {S::kQueued, S::kCancelled},
    {S::kPreparing, S::kRunning},      {S::kPreparing, S::kPaused},
    {S::kPreparing, S::kWaitingBoard}, {S::kPreparing, S::kEvaluating},
    {S::kPreparing, S::kFailed},       {S::kPreparing, S::kCancelled},
    {S::kRunning, S::kPaused},         {S::kRunning, S::kWaitingBoard},
    {S::kRunning, S::kEvaluating},     {S::kRunning, S::kPreparing},
    {S::kRunning, S::kSucceeded},      {S::kRunning, S::kFailed},
    {S::kRunning, S::kCancelled},      {S::kPaused, S::kRunning},
    {S::kPaused, S::kWaitingBoard},    {S::kPaused, S::kPreparing},
    {S::kPaused, S::kFailed},          {S::kPaused, S::kCancelled},
    {S::kWaitingBoard, S::kPreparing}, {S::kWaitingBoard, S::kRunning},
    {S::kWaitingBoard, S::kPaused},    {S::kWaitingBoard, S::kEvaluating},
    {S::kWaitingBoard, S::kFailed},    {S::kWaitingBoard, S::kCancelled},
    {S::kEvaluating, S::kPreparing},   {S::kEvaluating, S::kWaitingBoard},
    {S::kEvaluating, S::kSucceeded},   {S::kEvaluating, S::kFailed},
    {S::kEvaluating, S::kCancelled},
};

TEST(RunState, TransitionsAreExactlyTheTable) {
  for (S from : kAll) {
    if (from == S::kUnspecified) continue;  // no stored run is in it
    for (S to : kAll)
      EXPECT_EQ(is_legal_transition(from, to), kLegal.contains({from, to}))
          << static_cast<int>(from) << " -> " << static_cast<int>(to);
  }
}

TEST(RunState, FinalStatesHaveNoWayOut) {
  for (S from : kAll)
    for (S to : kAll)
      if (is_final(from)) {
        EXPECT_FALSE(is_legal_transition(from, to));
      }
}

TEST(RunState, ThreeStatesAreFinal) {
  std::set<S> final_states;
  for (S s : kAll)
    if (is_final(s)) final_states.insert(s);
  EXPECT_EQ(final_states, (std::set<S>{S::kSucceeded, S::kFailed, S::kCancelled}));
}

}  // namespace
}  // namespace odt::model

#include "campaign/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace odt::campaign {
namespace {

using model::CampaignKind;
using model::CampaignState;
using testing::ElementsAre;

BoardUid uid(int n) {
  BoardUid out;
  out.bytes = {0, 1, 2, 3, 4, 5, 6, static_cast<std::uint8_t>(n)};
  return out;
}

model::Campaign campaign(CampaignKind kind, int boards) {
  model::Campaign c;
  c.id.bytes[0] = 1;
  c.spec.kind = kind;
  c.spec.model_hash.bytes[0] = 2;
  c.spec.dataset_id.bytes[0] = 3;
  for (int i = 0; i < boards; ++i) c.boards.push_back(uid(i));
  return c;
}

// The whole table: what is not here is illegal.
TEST(CampaignStates, LegalTransitions) {
  using S = CampaignState;
  const std::set<std::pair<S, S>> legal = {
      {S::kQueued, S::kRunning},     {S::kQueued, S::kPaused},
      {S::kQueued, S::kFailed},      {S::kQueued, S::kCancelled},
      {S::kRunning, S::kPaused},     {S::kRunning, S::kRollingBack},
      {S::kRunning, S::kSucceeded},  {S::kRunning, S::kFailed},
      {S::kRunning, S::kCancelled},  {S::kPaused, S::kRunning},
      {S::kPaused, S::kFailed},      {S::kPaused, S::kCancelled},
      {S::kRollingBack, S::kFailed}, {S::kRollingBack, S::kCancelled},
      {S::kSucceeded, S::kRunning},  {S::kFailed, S::kRunning},
      {S::kCancelled, S::kRunning}};
  for (int from = 0; from <= 7; ++from)
    for (int to = 0; to <= 7; ++to) {
      const auto pair = std::pair(static_cast<S>(from), static_cast<S>(to));
      EXPECT_EQ(model::is_legal_transition(pair.first, pair.second), legal.count(pair) != 0)
          << from << " -> " << to;
    }
}

TEST(Cohort, IsByLabelsAndByName) {
  std::vector<model::Board> boards(4);
  for (int i = 0; i < 4; ++i) {
    boards[static_cast<std::size_t>(i)].uid = uid(i);
    boards[static_cast<std::size_t>(i)].name = "b" + std::to_string(3 - i);
  }
  boards[0].labels = {{"site", "lab"}, {"target", "m33"}};
  boards[1].labels = {{"site", "lab"}, {"broken", ""}};
  boards[2].labels = {{"site", "lab"}, {"target", "m0"}};
  model::CampaignSpec spec;
  spec.kind = CampaignKind::kSame;
  spec.query = "site=lab,!broken";
  EXPECT_THAT(*resolve_cohort(spec, boards), ElementsAre(uid(2), uid(0)));
  spec.boards = {uid(3)};
  EXPECT_THAT(*resolve_cohort(spec, boards), ElementsAre(uid(3), uid(2), uid(0)));
  spec = {};
  EXPECT_EQ(reason_of(resolve_cohort(spec, boards).status()), "NO_BOARDS");
  spec.query = "site=attic";
  EXPECT_EQ(reason_of(resolve_cohort(spec, boards).status()), "NO_BOARDS");
  spec.boards = {uid(9)};
  EXPECT_EQ(reason_of(resolve_cohort(spec, boards).status()), "BOARD_NOT_FOUND");
}

TEST(Phases, ACanaryThenShares) {
  model::RolloutSpec r;
  r.canary_ppm = 100'000;
  r.phases_ppm = {500'000, 1'000'000};
  EXPECT_THAT(phase_sizes(r, 10), ElementsAre(1, 5, 10));
  EXPECT_THAT(phase_sizes(r, 1), ElementsAre(1));
  EXPECT_THAT(phase_sizes(r, 3), ElementsAre(1, 2, 3));
  auto c = campaign(CampaignKind::kRollout, 4);
  c.spec.rollout = r;
  const auto units = *first_units(c, {});
  EXPECT_EQ(units[0].round, 0u);
  EXPECT_EQ(units[1].round, 1u);
  EXPECT_EQ(units[3].round, 2u);
  r.max_drop_ppm = 20'000;
  EXPECT_FALSE(dropped_too_far(r, {80, 100}, {78, 100}));
  EXPECT_TRUE(dropped_too_far(r, {80, 100}, {77, 100}));
  EXPECT_FALSE(dropped_too_far(r, {0, 0}, {10, 100}));
}

TEST(Rounds, EachBoardTrainsFromTheAverageInAnotherOrder) {
  auto c = campaign(CampaignKind::kFederated, 3);
  c.spec.hyper.order_seed = 5;
  c.spec.hyper.k = 15;
  c.spec.federated.rounds = 2;
  c.spec.federated.personalise_epochs = 4;
  Hash start;
  start.bytes[0] = 9;
  const auto next = next_round(c, 1, 3, start);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0].index, 3u);
  EXPECT_EQ(next[2].board, uid(2));
  EXPECT_EQ(next[1].start_snapshot, start);
  EXPECT_EQ(next[1].hyper.order_seed, 6u);
  EXPECT_FALSE(next[1].hyper.k.has_value());
  EXPECT_FALSE(next[1].personal);
  const auto own = next_round(c, 2, 6, start);
  EXPECT_TRUE(own[0].personal);
  EXPECT_EQ(own[0].hyper.epochs, 4u);
  EXPECT_EQ(rounds_of(c.spec, 3), 3u);
  EXPECT_EQ(least_boards(c), 2u);
}

TEST(Rungs, OneTrialThatIsLeftGoesToTheEnd) {
  auto c = campaign(CampaignKind::kSweep, 2);
  c.spec.hyper.epochs = 9;
  c.spec.sweep = {model::SweepStrategy::kHalving, {{"batch", {"2", "4", "8"}}}, 0, 0, 3, 1, 0};
  auto units = *first_units(c, {});
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].hyper.epochs, 1u);
  for (auto& u : units) {
    u.state = model::UnitState::kSucceeded;
    u.heldout_best = {u.index, 10};
  }
  const auto next = next_rung(c, units);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].trial, 2u);
  EXPECT_EQ(next[0].index, 3u);
  EXPECT_EQ(next[0].hyper.epochs, 9u);
  EXPECT_EQ(next[0].round, 2u);
  c.round = 2;
  units.push_back(next[0]);
  EXPECT_TRUE(next_rung(c, units).empty());
}

TEST(Spec, IsCompletedOrRefused) {
  auto c = campaign(CampaignKind::kFederated, 2);
  EXPECT_FALSE(complete(c.spec).ok());  // no rounds
  c.spec.federated.rounds = 1;
  const auto full = complete(c.spec);
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->federated.outlier_q8, 768u);
  EXPECT_EQ(full->resume_deadline_s, 60u);
  c.spec.dataset_id = {};
  EXPECT_FALSE(complete(c.spec).ok());
  c = campaign(CampaignKind::kTwin, 0);
  EXPECT_FALSE(complete(c.spec).ok());
  c.spec.boards = {uid(1)};
  EXPECT_EQ(complete(c.spec)->boards.size(), 2u);
  c = campaign(CampaignKind::kSweep, 1);
  c.spec.sweep = {model::SweepStrategy::kHalving, {{"epochs", {"2"}}}, 0, 0, 0, 0, 0};
  EXPECT_FALSE(complete(c.spec).ok());
}

TEST(Sweeps, TrainableLayersChooseTheModel) {
  auto c = campaign(CampaignKind::kSweep, 1);
  c.spec.sweep = {model::SweepStrategy::kGrid, {{"trainable_layers", {"1", "2"}}}, 0, 0, 0, 0, 0};
  std::vector<model::Model> models(2);
  models[0].hash = c.spec.model_hash;
  models[0].trainable_layers = 2;
  models[1].hash.bytes[0] = 7;
  models[1].trainable_layers = 1;
  const auto units = *first_units(c, models);
  EXPECT_EQ(units[0].model_hash, models[1].hash);
  EXPECT_EQ(units[1].model_hash, models[0].hash);
  models.pop_back();
  EXPECT_EQ(reason_of(first_units(c, models).status()), "NO_MODEL");
}

}  // namespace
}  // namespace odt::campaign

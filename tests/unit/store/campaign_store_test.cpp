// Campaigns in a ControlStore: the same for SQLite and memory.
#include <gtest/gtest.h>

#include "any_control_store.h"

namespace odt::store {
namespace {

using model::CampaignState;

class CampaignStoreTest : public AnyControlStore {
 protected:
  Result<std::vector<model::Event>> put(Change change) {
    return store_->commit(batch_of(std::move(change)));
  }
};
INSTANTIATE_TEST_SUITE_P(All, CampaignStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

model::Campaign campaign_of(int n) {
  model::Campaign c;
  c.id = new_uuid();
  c.spec.name = "c" + std::to_string(n);
  c.spec.kind = model::CampaignKind::kTwin;
  c.spec.query = "site=lab,!broken";
  c.spec.boards = {uid_of(n), uid_of(n + 1)};
  c.spec.model_hash = model_of(n).hash;
  c.spec.dataset_id = new_uuid();
  c.spec.datasets = {{uid_of(n), new_uuid()}};
  c.spec.hyper.mu_weight = {1, -1, -3};
  c.spec.hyper_b.emplace().batch = 16;
  c.spec.sweep = {model::SweepStrategy::kHalving, {{"batch", {"4", "8"}}}, 5, 6, 3, 1, 60};
  c.spec.rollout = {hash_of(n + 7), 100'000, {500'000, 1'000'000}, 0, "test", true};
  c.spec.federated = {3, 2, 60, 768, 4};
  c.spec.max_parallel = 9;
  c.boards = c.spec.boards;
  c.best_unit = 0;
  c.twin.settings = {"batch"};
  c.twin.a = -5;
  return c;
}

model::CampaignUnit unit_of(const model::Campaign& c, std::uint32_t index) {
  model::CampaignUnit u;
  u.campaign_id = c.id;
  u.index = index;
  u.board = uid_of(1);
  u.hyper.epochs = 3;
  u.run_id = new_uuid();
  u.stage = model::RolloutStage::kAfter;
  return u;
}

TransitionCampaign campaign_moves(model::Campaign c, CampaignState from, CampaignState to) {
  model::CampaignEvent e;
  e.campaign_id = c.id;
  e.from = from;
  e.to = to;
  e.cause = "test";
  c.state = to;
  c.meta.etag = 0;
  return {c, e};
}

TEST_P(CampaignStoreTest, AllOfACampaignComesBack) {
  const auto c = campaign_of(1);
  const auto events = put(CreateCampaign{c, {unit_of(c, 0), unit_of(c, 1)}, "ann"});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 2u);  // the campaign and its first event; units have none
  EXPECT_TRUE(std::holds_alternative<model::CampaignEvent>((*events)[1].body));
  const auto read = store_->campaign(c.id);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->spec, c.spec);
  EXPECT_EQ(read->boards, c.boards);
  EXPECT_EQ(read->best_unit, 0u);
  EXPECT_EQ(read->twin, c.twin);
  EXPECT_EQ(read->meta.created_by, "ann");
  const auto units = store_->campaign_units(c.id);
  ASSERT_TRUE(units.ok());
  ASSERT_EQ(units->size(), 2u);
  EXPECT_EQ((*units)[1].index, 1u);
  EXPECT_EQ((*units)[1].stage, model::RolloutStage::kAfter);
  model::CampaignRound round;
  round.campaign_id = c.id;
  round.average = hash_of(3);
  ASSERT_TRUE(put(PutCampaignRound{round}).ok());
  EXPECT_EQ(store_->campaign_rounds(c.id)->at(0).average, hash_of(3));
  EXPECT_EQ(store_->active_campaigns()->size(), 1u);
  EXPECT_EQ(store_->campaigns({})->items.size(), 1u);
  // Events are read again as they were written.
  EXPECT_EQ(store_->events_from(1, 10)->size(), 2u);
  EXPECT_TRUE(absl::IsAlreadyExists(put(CreateCampaign{c, {}, "ann"}).status()));
}

TEST_P(CampaignStoreTest, TransitionsAreLegalAndLeaveAnEvent) {
  const auto c = campaign_of(1);
  ASSERT_TRUE(put(CreateCampaign{c, {}, "ann"}).ok());
  using S = CampaignState;
  EXPECT_TRUE(absl::IsFailedPrecondition(put(campaign_moves(c, S::kRunning, S::kPaused)).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(put(campaign_moves(c, S::kQueued, S::kRollingBack)).status()));
  ASSERT_TRUE(put(campaign_moves(c, S::kQueued, S::kRunning)).ok());
  auto update = c;  // still QUEUED
  EXPECT_TRUE(absl::IsFailedPrecondition(put(UpdateCampaign{update}).status()));
  ASSERT_TRUE(put(campaign_moves(c, S::kRunning, S::kFailed)).ok());
  EXPECT_TRUE(store_->active_campaigns()->empty());
  ASSERT_TRUE(put(campaign_moves(c, S::kFailed, S::kRunning)).ok());  // a retry
  const auto events = store_->campaign_events(c.id);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 4u);
  EXPECT_EQ((*events)[3].seq, 4u);
  EXPECT_EQ((*events)[3].from, S::kFailed);
}

TEST_P(CampaignStoreTest, WhatItNeedsStaysAndItGoesOnlyWhenItIsOver) {
  const auto c = campaign_of(1);
  ASSERT_TRUE(put(PutBoard{board_of(1)}).ok());
  ASSERT_TRUE(put(PutModel{model_of(1)}).ok());
  ASSERT_TRUE(put(CreateCampaign{c, {unit_of(c, 0)}, "ann"}).ok());
  const Delete board{"board", uid_of(1).str()}, model{"model", c.spec.model_hash.str()},
      campaign{"campaign", c.id.str()};
  for (const auto& wanted : {board, model, campaign})
    EXPECT_TRUE(absl::IsFailedPrecondition(put(wanted).status())) << wanted.kind;
  ASSERT_TRUE(put(campaign_moves(c, CampaignState::kQueued, CampaignState::kCancelled)).ok());
  EXPECT_TRUE(put(campaign).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->campaign(c.id).status()));
  EXPECT_TRUE(store_->campaign_units(c.id)->empty());
  EXPECT_TRUE(store_->events_from(1, 100).ok());
  EXPECT_TRUE(absl::IsNotFound(put(PutCampaignUnit{unit_of(c, 0)}).status()));
}

}  // namespace
}  // namespace odt::store

// Events, refill, epoch records, hold and acknowledgement.
#include "board_rig.h"

namespace odt::testing {
namespace {

pb::Response ack(BoardRig& rig, std::uint32_t epoch) {
  pb::Request q;
  q.mutable_ack_epoch()->set_run_id(std::string(16, 'r'));
  q.mutable_ack_epoch()->set_attempt(1);
  q.mutable_ack_epoch()->set_epoch(epoch);
  return rig.request(q);
}

TEST(Events, CountFromOneWithoutGaps) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.settle();
  ASSERT_EQ(rig.events.size(), 2u + 15u + 3u);  // RUNNING, DONE, steps, epochs
  for (std::uint32_t i = 0; i < rig.events.size(); i++) EXPECT_EQ(rig.events[i].first, i + 1);
  EXPECT_TRUE(rig.events.front().second.has_job());
  EXPECT_TRUE(rig.events.back().second.has_job());
}

TEST(Events, TelemetryEveryNthStep) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  auto spec = small_spec(train);
  spec.set_telemetry_every(4);
  load(rig, train);
  rig.request(start_request(spec));
  rig.settle();
  std::vector<std::uint32_t> steps;
  for (const auto& [id, e] : rig.events) {
    if (e.has_step()) steps.push_back(e.step().step());
  }
  EXPECT_EQ(steps, (std::vector<std::uint32_t>{0, 4, 8, 12}));
}

TEST(Events, AGapIsFilledFromTheRing) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.settle();
  const auto all = rig.events;
  rig.events.clear();
  pb::Request q;
  q.mutable_get_telemetry_from()->set_event_id(static_cast<std::uint32_t>(all.size()) - 5);
  const auto r = rig.request(q);
  rig.settle();
  EXPECT_EQ(r.telemetry().first(), all.size() - 5);
  EXPECT_EQ(r.telemetry().next(), all.size() + 1);
  ASSERT_EQ(rig.events.size(), 6u);
  for (std::size_t i = 0; i < 6; i++) {
    EXPECT_EQ(rig.events[i].first, all[all.size() - 6 + i].first);
    EXPECT_EQ(rig.events[i].second.SerializeAsString(),
              all[all.size() - 6 + i].second.SerializeAsString());
  }
  // Older than the ring: the answer says where it begins.
  rig.events.clear();
  q.mutable_get_telemetry_from()->set_event_id(1);
  EXPECT_EQ(rig.request(q).telemetry().first(), all.size() + 1 - APP_EVENTS);
}

TEST(Events, AStalledLinkCostsStepsButNeverEpochs) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.accept_bytes(0);
  rig.step_us = 10000;
  rig.turns(400);
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 15u);
  rig.accept_bytes(SIZE_MAX);
  rig.hello();
  for (std::uint32_t e = 0; e < 3; e++) {
    pb::Request q;
    q.mutable_get_epoch()->set_epoch(e);
    EXPECT_FALSE(rig.request(q).has_error());
    ASSERT_FALSE(rig.events.empty()) << "the record comes before the answer";
    EXPECT_EQ(rig.events.back().second.epoch().epoch(), e);
  }
  EXPECT_EQ(state_of(rig).oldest_unacked_epoch(), 0u);
}

TEST(Events, TrainingWaitsForALinkThatMoves) {
  BoardRig rig;
  const std::string train = golden_part(0, 400);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  for (int i = 0; i < 400; i++) {
    rig.accept_bytes(20);
    rig.turns(1);
  }
  rig.accept_bytes(SIZE_MAX);
  rig.settle(5000);
  ASSERT_EQ(rig.events.size(), 2u + 150u + 3u);
  EXPECT_EQ(rig.app().events.dropped, 0u);
}

TEST(EpochHold, EndsWithTheAcknowledgement) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  auto spec = small_spec(train);
  spec.set_hold_at_epoch(true);
  load(rig, train);
  rig.request(start_request(spec));
  rig.settle();
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_EPOCH_HOLD);
  EXPECT_EQ(state_of(rig).step(), 5u);
  pb::Request other;
  other.mutable_ack_epoch()->set_run_id(std::string(16, 's'));
  EXPECT_EQ(rig.request(other).error().code(), pb::STATUS_CODE_NOT_FOUND);
  EXPECT_FALSE(ack(rig, 0).has_error());
  rig.settle();
  EXPECT_EQ(state_of(rig).step(), 10u);
  EXPECT_EQ(state_of(rig).oldest_unacked_epoch(), 1u);
}

TEST(EpochHold, GivesUpAfterFiveSecondsWithTheLinkUp) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  auto spec = small_spec(train);
  spec.set_hold_at_epoch(true);
  load(rig, train);
  rig.request(start_request(spec));
  rig.settle();
  for (int i = 0; i < 4; i++) {
    rig.advance_ms(1000);
    rig.send(FRAME_PING, 1);
    rig.turns(3);
  }
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 5u);
  rig.advance_ms(1000);
  rig.send(FRAME_PING, 1);
  rig.turns(3);
  EXPECT_GT(odt_trainer_step_count(&rig.app().trainer), 5u);
}

TEST(EpochHold, DoesNotWaitWithoutASession) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  auto spec = small_spec(train);
  spec.set_hold_at_epoch(true);
  load(rig, train);
  rig.request(start_request(spec));
  rig.send(FRAME_BYE, 0);
  rig.settle();
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 15u);
  EXPECT_EQ(rig.hello().job(), pb::JOB_STATE_DONE);
}

TEST(EpochHold, HoldsWhenNoMoreRecordsCanBeKept) {
  RigOptions o;
  o.epochs = 2;
  BoardRig rig(o);
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.send(FRAME_BYE, 0);
  rig.settle();
  rig.advance_ms(60000);
  rig.turns(50);
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 10u) << "an epoch's record would be lost";
  const auto hello = rig.hello();
  EXPECT_EQ(hello.job(), pb::JOB_STATE_EPOCH_HOLD);
  ack(rig, 1);
  rig.settle();
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);
}

TEST(GetEpoch, UnknownIsNotFound) {
  BoardRig rig;
  load(rig, "");
  pb::Request q;
  q.mutable_get_epoch()->set_epoch(3);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_NOT_FOUND);
}

TEST(NewSession, SendsOnlyWhatIsNewAndSaysWhatIsKept) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.settle();
  rig.events.clear();
  const auto ack = rig.hello();
  rig.turns(20);
  EXPECT_TRUE(rig.events.empty());
  EXPECT_EQ(ack.next_event(), 21u);
  EXPECT_EQ(ack.first_event(), 5u);
  EXPECT_EQ(ack.job(), pb::JOB_STATE_DONE);
  EXPECT_EQ(ack.last_step(), 15u);
  EXPECT_EQ(ack.run_id(), std::string(16, 'r'));
}

}  // namespace
}  // namespace odt::testing

#include "board_rig.h"

namespace odt::testing {
namespace {

// A step over 50 ms: ACCEPTED at once, done when that has left, told when asked again.
TEST(StreamedRun, ALongStepIsAcceptedAndDoneLater) {
  const std::string train = golden_part(0, 16);
  auto spec = small_spec(train);
  spec.set_streamed(true);
  std::string ends[2];
  for (const std::uint32_t work_us : {0u, 80'000u}) {
    BoardRig rig;
    load(rig, "");
    rig.request(start_request(spec));
    rig.work_us = work_us;
    rig.push(pb::RESOURCE_BATCH, golden_part(0, 8), 0, 1);
    EXPECT_EQ(rig.request(train_step(0, 1, 0)).accepted_ms(), 0u);  // nothing is known yet
    rig.push(pb::RESOURCE_BATCH, golden_part(8, 8), 0, 2);
    auto answer = rig.request(train_step(1, 2, 0));
    ASSERT_FALSE(answer.has_error());
    if (work_us != 0) {
      EXPECT_EQ(answer.accepted_ms(), 80u);
      EXPECT_FALSE(answer.has_step());
      rig.settle();
      answer = rig.request(train_step(1, 2, 0));
      ASSERT_FALSE(answer.has_error());
    }
    EXPECT_EQ(answer.accepted_ms(), 0u);
    EXPECT_EQ(answer.step().step(), 1u);
    EXPECT_EQ(state_of(rig).step(), 2u);
    ends[work_us != 0] = state_of(rig).state_hash();
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(StreamedRun, AnAcceptedStepWaitsForItsAnswerToLeave) {
  BoardRig rig;
  const std::string train = golden_part(0, 32);
  load(rig, "");
  auto spec = small_spec(train);
  spec.set_streamed(true);
  rig.request(start_request(spec));
  rig.work_us = 80'000;
  rig.push(pb::RESOURCE_BATCH, golden_part(0, 8), 0, 1);
  rig.request(train_step(0, 1, 0));
  rig.push(pb::RESOURCE_BATCH, golden_part(8, 8), 0, 2);
  rig.accept_bytes(0);
  rig.send(FRAME_REQ, rig.last_request() + 1, train_step(1, 2, 0).SerializeAsString());
  rig.turns(5);
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 1u);
  rig.accept_bytes(SIZE_MAX);
  rig.turns(5);
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), 2u);
  EXPECT_EQ(rig.take(FRAME_RSP)->id, rig.last_request() + 1);
}

TEST(StreamedRun, AnAcceptedStepThatCannotBeDoneLeavesTheRunWhereItWas) {
  BoardRig rig;
  const std::string train = golden_part(0, 32);
  load(rig, "");
  auto spec = small_spec(train);
  spec.set_streamed(true);
  rig.request(start_request(spec));
  rig.work_us = 80'000;
  rig.push(pb::RESOURCE_BATCH, golden_part(0, 8), 0, 1);
  rig.request(train_step(0, 1, 0));
  // Of another size than the step wants: told once, then asked anew.
  rig.push(pb::RESOURCE_BATCH, golden_part(8, 3), 0, 2);
  EXPECT_NE(rig.request(train_step(1, 2, 0)).accepted_ms(), 0u);
  rig.settle();
  EXPECT_TRUE(rig.request(train_step(1, 2, 0)).has_error());
  EXPECT_EQ(state_of(rig).step(), 1u);
  rig.push(pb::RESOURCE_BATCH, golden_part(8, 8), 0, 3);
  EXPECT_NE(rig.request(train_step(1, 3, 0)).accepted_ms(), 0u);
  rig.settle();
  EXPECT_EQ(rig.request(train_step(1, 3, 0)).step().step(), 1u);
  EXPECT_EQ(state_of(rig).step(), 2u);
}

}  // namespace
}  // namespace odt::testing

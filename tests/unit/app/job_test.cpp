// Runs: resident and streamed, guard, pause, resume from a state, compare-and-set.
#include "board_rig.h"

namespace odt::testing {
namespace {

std::vector<pb::EpochRecord> epochs(const BoardRig& rig) {
  std::vector<pb::EpochRecord> out;
  for (const auto& [id, e] : rig.events) {
    if (e.has_epoch()) out.push_back(e.epoch());
  }
  return out;
}

pb::JobChanged last_job(const BoardRig& rig) {
  pb::JobChanged job;
  for (const auto& [id, e] : rig.events) {
    if (e.has_job()) job = e.job();
  }
  return job;
}

pb::Response control(BoardRig& rig, pb::JobControl::Action action) {
  pb::Request q;
  q.mutable_job_control()->set_action(action);
  q.mutable_job_control()->set_run_id(std::string(16, 'r'));
  return rig.request(q);
}

std::uint32_t streamed_evaluation(BoardRig& rig, std::uint32_t id, const std::string& heldout) {
  pb::Request q;
  q.mutable_evaluate()->set_eval_id(id);
  q.mutable_evaluate()->set_total(static_cast<std::uint8_t>(heldout[8]));
  EXPECT_FALSE(rig.request(q).has_error());
  rig.push(pb::RESOURCE_BATCH, heldout, 1, 5000 + id);
  pb::Request s;
  s.mutable_eval_step()->set_eval_id(id);
  s.mutable_eval_step()->set_batch_id(5000 + id);
  s.mutable_eval_step()->set_slot(1);
  const auto r = rig.request(s);
  EXPECT_TRUE(r.eval().done()) << r.ShortDebugString();
  return r.eval().correct();
}

TEST(ResidentRun, TrainsByItselfToTheEnd) {
  BoardRig rig;
  const std::string train = golden_part(0, 43);
  const std::string held = golden_part(100, 50);
  load(rig, train, held);
  const auto started = rig.request(start_request(small_spec(train, held)));
  ASSERT_FALSE(started.has_error()) << started.ShortDebugString();
  EXPECT_EQ(started.state().job(), pb::JOB_STATE_RUNNING);
  rig.settle();
  const auto records = epochs(rig);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].step(), 18u);
  EXPECT_EQ(records[2].heldout_total(), 50u);
  const auto s = state_of(rig);
  EXPECT_EQ(s.job(), pb::JOB_STATE_DONE);
  EXPECT_EQ(s.step(), 18u);
  EXPECT_EQ(last_job(rig).job(), pb::JOB_STATE_DONE);
  EXPECT_EQ(last_job(rig).state_hash(), s.state_hash());
  EXPECT_EQ(last_job(rig).weights_hash(), s.weights_hash());
  EXPECT_EQ(records[2].state_hash(), s.state_hash());
  EXPECT_EQ(sha256(rig.pull(pb::RESOURCE_STATE)), s.state_hash());
}

TEST(StreamedRun, EndsInTheStateOfTheResidentOne) {
  const std::string train = golden_part(0, 43);
  const std::string held = golden_part(100, 50);
  BoardRig a;
  load(a, train, held);
  a.request(start_request(small_spec(train, held)));
  a.settle();

  RigOptions small;
  small.arena = 48 * 1024;
  BoardRig b(small);
  load(b, "");
  auto spec = small_spec(train, held);
  spec.set_streamed(true);
  EXPECT_EQ(b.request(start_request(spec)).state().job(), pb::JOB_STATE_READY);
  // The guard's start score comes first.
  b.push(pb::RESOURCE_BATCH, golden_part(0, 8), 0, 1);
  EXPECT_EQ(b.request(train_step(0, 1, 0)).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  streamed_evaluation(b, 1, held);
  for (std::uint32_t e = 0; e < 3; e++) {
    const auto order = order_of(spec, e);
    for (std::uint32_t i = 0; i < 6; i++) {
      const std::uint32_t step = e * 6 + i;
      const auto from = order.begin() + i * 8;
      const std::vector<std::uint32_t> batch(from, from + std::min<long>(8, order.end() - from));
      b.push(pb::RESOURCE_BATCH, golden_pick(batch), step % 2, step + 1);
      ASSERT_FALSE(b.request(train_step(step, step + 1, step % 2)).has_error());
    }
    streamed_evaluation(b, 2 + e, held);
    pb::Request q;
    q.mutable_end_epoch()->set_run_id(std::string(16, 'r'));
    q.mutable_end_epoch()->set_attempt(1);
    q.mutable_end_epoch()->set_epoch(e);
    q.mutable_end_epoch()->set_eval_id(1);
    EXPECT_EQ(b.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
    q.mutable_end_epoch()->set_eval_id(2 + e);
    ASSERT_FALSE(b.request(q).has_error());
  }
  EXPECT_EQ(state_of(b).state_hash(), state_of(a).state_hash());
  EXPECT_EQ(last_job(b).job(), pb::JOB_STATE_DONE);
}

TEST(StreamedRun, AStepIsTrainedOnceWhateverIsRepeated) {
  BoardRig rig;
  const std::string train = golden_part(0, 16);
  load(rig, "");
  auto spec = small_spec(train);
  spec.set_streamed(true);
  rig.request(start_request(spec));
  rig.push(pb::RESOURCE_BATCH, golden_part(0, 8), 0, 1);
  const auto first = rig.request(train_step(0, 1, 0));
  ASSERT_FALSE(first.has_error());
  const auto hash = state_of(rig).state_hash();
  // Repeated in a new session, with the batch gone.
  rig.hello();
  const auto again = rig.request(train_step(0, 1, 0));
  EXPECT_EQ(again.step().SerializeAsString(), first.step().SerializeAsString());
  EXPECT_EQ(state_of(rig).state_hash(), hash);
  const auto ahead = rig.request(train_step(2, 1, 0));
  EXPECT_EQ(ahead.error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(ahead.error().limit(), 1u);
  // The next step wants its own batch.
  EXPECT_EQ(rig.request(train_step(1, 2, 0)).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
}

TEST(StartRun, IsWithoutEffectWhereTheRunIsThere) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  const auto q = start_request(small_spec(train));
  rig.request(q);
  rig.turns(5);
  const auto before = state_of(rig).step();
  EXPECT_GT(before, 0u);
  rig.hello();
  const auto again = rig.request(q);
  EXPECT_FALSE(again.has_error());
  EXPECT_GE(again.state().step(), before);
  rig.settle();
  EXPECT_EQ(rig.request(q).state().job(), pb::JOB_STATE_DONE);
}

TEST(StartRun, RefusesWhatIsNotThere) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  rig.hello();
  EXPECT_EQ(rig.request(start_request(small_spec(train))).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  load(rig, golden_part(0, 39));
  auto r = rig.request(start_request(small_spec(train)));
  EXPECT_EQ(r.error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(r.error().limit(), 40u);
  load(rig, golden_part(1, 40));
  r = rig.request(start_request(small_spec(train)));
  EXPECT_NE(r.error().text().find("sample_set_hash"), std::string::npos);
  load(rig, train);
  auto spec = small_spec(train);
  spec.set_mu_weight_0(9);
  r = rig.request(start_request(spec));
  EXPECT_EQ(r.error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_NE(r.error().text().find("mu_weight"), std::string::npos);
  spec = small_spec(train);
  spec.set_batch(257);
  EXPECT_EQ(rig.request(start_request(spec)).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
}

TEST(StartRun, AnotherActiveRunStays) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  const auto other = start_request(small_spec(train), std::string(16, 's'));
  EXPECT_EQ(rig.request(other).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_FALSE(control(rig, pb::JobControl::ACTION_STOP).has_error());
  EXPECT_FALSE(rig.request(other).has_error());
  EXPECT_EQ(state_of(rig).run_id(), std::string(16, 's'));
}

TEST(StartRun, TooBigForTheBoardSaysBytesWantedAndThere) {
  RigOptions o;
  o.arena = 20000;
  BoardRig rig(o);
  const std::string train = golden_part(0, 16);
  load(rig, "");
  auto spec = small_spec(train);
  spec.set_streamed(true);
  spec.set_k(15);
  spec.set_mu_weight_0(0);
  const auto r = rig.request(start_request(spec));
  EXPECT_EQ(r.error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
  EXPECT_GT(r.error().limit(), 0u) << r.ShortDebugString();
  spec.set_k(8);
  spec.set_batch(1);
  const auto small = rig.request(start_request(spec));
  EXPECT_FALSE(small.has_error()) << small.ShortDebugString();
}

TEST(JobControl, PauseFreezesAndResumeGoesOnToTheSameEnd) {
  const std::string train = golden_part(0, 40);
  BoardRig a;
  load(a, train);
  a.request(start_request(small_spec(train)));
  a.settle();

  BoardRig b;
  load(b, train);
  b.request(start_request(small_spec(train)));
  b.turns(4);
  const auto paused = control(b, pb::JobControl::ACTION_PAUSE);
  EXPECT_EQ(paused.state().job(), pb::JOB_STATE_PAUSED);
  b.turns(50);
  EXPECT_EQ(state_of(b).state_hash(), paused.state().state_hash());
  EXPECT_EQ(last_job(b).state_hash(), paused.state().state_hash());
  EXPECT_FALSE(control(b, pb::JobControl::ACTION_PAUSE).has_error());
  EXPECT_FALSE(control(b, pb::JobControl::ACTION_RESUME).has_error());
  b.settle();
  EXPECT_EQ(state_of(b).state_hash(), state_of(a).state_hash());
}

TEST(JobControl, RefusesOtherRunsAndTheDead) {
  BoardRig rig;
  const std::string train = golden_part(0, 16);
  load(rig, train);
  EXPECT_EQ(control(rig, pb::JobControl::ACTION_STOP).error().code(), pb::STATUS_CODE_NOT_FOUND);
  rig.request(start_request(small_spec(train)));
  rig.settle();
  EXPECT_EQ(control(rig, pb::JobControl::ACTION_PAUSE).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_FALSE(control(rig, pb::JobControl::ACTION_STOP).has_error());
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);
}

// Power cycle in mid-run: image, samples, state and best go over again.
void resume_after_power_cycle(bool guard, std::uint32_t k) {
  const std::string train = golden_part(0, 40);
  const std::string held = guard ? golden_part(100, 30) : "";
  auto spec = small_spec(train, held);
  spec.set_k(k);
  spec.set_hold_at_epoch(true);
  const auto ack = [](BoardRig& rig, std::uint32_t attempt, std::uint32_t epoch) {
    pb::Request q;
    q.mutable_ack_epoch()->set_run_id(std::string(16, 'r'));
    q.mutable_ack_epoch()->set_attempt(attempt);
    q.mutable_ack_epoch()->set_epoch(epoch);
    EXPECT_FALSE(rig.request(q).has_error());
  };
  BoardRig rig;
  load(rig, train, held);
  rig.request(start_request(spec));
  rig.settle();
  ASSERT_EQ(state_of(rig).job(), pb::JOB_STATE_EPOCH_HOLD);
  const std::string state = rig.pull(pb::RESOURCE_STATE);
  const std::string best = guard ? rig.pull(pb::RESOURCE_BEST_WEIGHTS) : "";
  const std::string hash = state_of(rig).state_hash();
  EXPECT_EQ(sha256(state), hash);
  for (std::uint32_t e = 0; e < 3; e++) {
    ack(rig, 1, e);
    rig.settle();
  }
  const std::string end = state_of(rig).state_hash();
  ASSERT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);

  rig.restart();
  load(rig, train, held);
  ASSERT_FALSE(rig.push(pb::RESOURCE_STATE, state).has_error());
  EXPECT_EQ(state_of(rig).state_hash(), hash);
  auto q = start_request(spec, std::string(16, 'r'), 2);
  q.mutable_start_run()->set_expect_state_hash(std::string(32, 'z'));
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  q.mutable_start_run()->set_expect_state_hash(hash);
  if (guard) {
    const auto missing = rig.request(q);
    if (missing.has_error()) {
      EXPECT_NE(missing.error().text().find("BEST"), std::string::npos);
    }
    ASSERT_FALSE(rig.push(pb::RESOURCE_BEST_WEIGHTS, best).has_error());
  }
  const auto r = rig.request(q);
  ASSERT_FALSE(r.has_error()) << r.ShortDebugString();
  rig.settle();
  for (std::uint32_t e = 0; e < 3; e++) {
    ack(rig, 2, e);
    rig.settle();
  }
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);
  EXPECT_EQ(state_of(rig).state_hash(), end);
}

TEST(Resume, FromAStateAfterPowerCycle) { resume_after_power_cycle(false, 8); }
TEST(Resume, FromAStateAfterPowerCycleWithGuard) { resume_after_power_cycle(true, 8); }
TEST(Resume, FromAStateAfterPowerCycleWithGuardAt15Bits) { resume_after_power_cycle(true, 15); }

TEST(Resume, OtherSettingsAreRefused) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  auto spec = small_spec(train);
  rig.request(start_request(spec));
  rig.turns(6);
  control(rig, pb::JobControl::ACTION_STOP);
  const std::string state = rig.pull(pb::RESOURCE_STATE);
  rig.restart();
  load(rig, train);
  ASSERT_FALSE(rig.push(pb::RESOURCE_STATE, state).has_error());
  spec.set_order_seed(6);
  auto q = start_request(spec, std::string(16, 'r'), 2);
  q.mutable_start_run()->set_expect_state_hash(sha256(state));
  EXPECT_NE(rig.request(q).error().text().find("other settings"), std::string::npos);
}

TEST(FromWeights, StartsFromWhatWasPushed) {
  const std::string train = golden_part(0, 40);
  BoardRig a;
  load(a, train);
  a.request(start_request(small_spec(train)));
  a.settle();
  const std::string weights = a.pull(pb::RESOURCE_WEIGHTS);
  const auto check = [&](BoardRig& rig) {
    auto q = start_request(small_spec(train), std::string(16, 'w'));
    q.mutable_start_run()->set_from_weights(true);
    q.mutable_start_run()->set_expect_weights_hash(std::string(32, 'x'));
    EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
    q.mutable_start_run()->set_expect_weights_hash(sha256(weights));
    const auto r = rig.request(q);
    ASSERT_FALSE(r.has_error()) << r.ShortDebugString();
    EXPECT_EQ(r.state().step(), 0u);
    EXPECT_EQ(r.state().weights_hash(), sha256(weights));
    rig.settle();
  };
  check(a);
  BoardRig b;
  load(b, train);
  ASSERT_FALSE(b.push(pb::RESOURCE_WEIGHTS, weights).has_error());
  check(b);
  EXPECT_EQ(state_of(a).state_hash(), state_of(b).state_hash());
}

TEST(FromWeights, OnASmallBoardIntoTheReadyRun) {
  const std::string train = golden_part(0, 16);
  BoardRig a;
  load(a, train);
  a.request(start_request(small_spec(train)));
  a.settle();
  const std::string weights = a.pull(pb::RESOURCE_WEIGHTS);
  BoardRig b;
  load(b, "");
  auto spec = small_spec(train);
  spec.set_streamed(true);
  auto q = start_request(spec);
  ASSERT_FALSE(b.request(q).has_error());
  ASSERT_FALSE(b.push(pb::RESOURCE_WEIGHTS, weights).has_error());
  q.mutable_start_run()->set_from_weights(true);
  q.mutable_start_run()->set_expect_weights_hash(sha256(weights));
  const auto r = b.request(q);
  EXPECT_EQ(r.state().job(), pb::JOB_STATE_READY);
  EXPECT_EQ(r.state().weights_hash(), sha256(weights));
}

TEST(Freeze, TrainingStandsStillWhileAStateIsRead) {
  BoardRig rig;
  const std::string train = golden_part(0, 400);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.turns(5);
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(++rig.xfer_id);
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_STATE);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_HOST);
  const auto opened = rig.request(q).xfer_opened();
  rig.turns(20);
  EXPECT_EQ(odt_trainer_step_count(&rig.app().trainer), opened.version());
  // The host is gone: after 5 s the board goes on.
  rig.advance_ms(5100);
  rig.turns(20);
  EXPECT_GT(odt_trainer_step_count(&rig.app().trainer), opened.version());
}

TEST(Samples, OfARunningRunCannotBeReplaced) {
  BoardRig rig;
  const std::string train = golden_part(0, 200);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(++rig.xfer_id);
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_SAMPLES);
  q.mutable_xfer_open()->set_index(pb::SAMPLE_ROLE_TRAIN);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_BOARD);
  q.mutable_xfer_open()->set_size(1000);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_MODEL_IMAGE);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  // A test set may come meanwhile, and moves nothing that is in use.
  EXPECT_FALSE(
      rig.push(pb::RESOURCE_SAMPLES, golden_part(300, 20), pb::SAMPLE_ROLE_TEST).has_error());
  rig.settle(5000);
  BoardRig other;
  load(other, train);
  other.request(start_request(small_spec(train)));
  other.settle(5000);
  EXPECT_EQ(state_of(rig).state_hash(), state_of(other).state_hash());
}

}  // namespace
}  // namespace odt::testing

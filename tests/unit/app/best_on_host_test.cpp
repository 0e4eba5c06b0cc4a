// The guard's best weights with the host: the run waits for it, and ends in the state of a board
// that keeps them itself.
#include "board_rig.h"

namespace odt::testing {
namespace {

const char kRun[] = "rrrrrrrrrrrrrrrr";

pb::RunSpec coarse_spec(const std::string& train, const std::string& held) {
  auto spec = small_spec(train, held);
  spec.set_guard(true);
  spec.set_epochs(6);
  spec.set_hold_at_epoch(true);
  for (const auto set : {&pb::RunSpec::set_mu_weight_0, &pb::RunSpec::set_mu_weight_1,
                         &pb::RunSpec::set_mu_weight_2})
    (spec.*set)(3);  // large steps: the last epoch is not the best
  return spec;
}

pb::Response kept(BoardRig& rig, const std::string& hash, std::uint32_t attempt = 1) {
  pb::Request q;
  q.mutable_best_kept()->set_run_id(kRun);
  q.mutable_best_kept()->set_attempt(attempt);
  q.mutable_best_kept()->set_weights_hash(hash);
  return rig.request(q);
}

void ack_epochs(BoardRig& rig, std::uint32_t epoch) {
  pb::Request q;
  q.mutable_ack_epoch()->set_run_id(kRun);
  q.mutable_ack_epoch()->set_attempt(1);
  q.mutable_ack_epoch()->set_epoch(epoch);
  EXPECT_FALSE(rig.request(q).has_error());
}

struct Outcome {
  std::string state, weights;
  std::vector<pb::EpochRecord> epochs;
  int taken = 0, brought = 0;
};

// Takes and brings weights as the daemon does, until the run is over.
Outcome host_run(BoardRig& rig, bool lose_sessions) {
  Outcome out;
  std::string best;
  for (int turn = 0; turn < 100; turn++) {
    rig.settle();
    const auto s = state_of(rig);
    if (s.best_wait() == 1) {
      const auto step = s.step();
      if (lose_sessions) {
        rig.pull(pb::RESOURCE_BEST_WEIGHTS);
        rig.hello();  // what was read is lost with the host that read it
        rig.advance_ms(20000);
        rig.settle();
      }
      best = rig.pull(pb::RESOURCE_BEST_WEIGHTS);
      EXPECT_EQ(best, rig.pull(pb::RESOURCE_WEIGHTS));
      EXPECT_EQ(state_of(rig).step(), step) << "the weights must not change meanwhile";
      EXPECT_EQ(kept(rig, std::string(32, 'h')).error().code(),
                pb::STATUS_CODE_FAILED_PRECONDITION);
      EXPECT_EQ(kept(rig, sha256(best), 2).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
      EXPECT_FALSE(kept(rig, sha256(best)).has_error());
      EXPECT_FALSE(kept(rig, sha256(best)).has_error()) << "repeated";
      out.taken++;
    } else if (s.best_wait() == 2) {
      EXPECT_EQ(s.job(), pb::JOB_STATE_EPOCH_HOLD);
      EXPECT_EQ(s.epoch(), 5u);
      if (lose_sessions) {
        // Half of it, then silence, then a new host.
        rig.open(pb::RESOURCE_BEST_WEIGHTS, best, 0, 0);
        rig.chunks(best, 0, 1024);
        rig.hello();
        const auto half = state_of(rig);
        EXPECT_EQ(half.best_wait(), 2u);
        EXPECT_EQ(half.epoch(), 5u);
        EXPECT_EQ(half.step(), s.step());
      }
      std::string other = best;
      other[other.size() - 3] ^= 1;
      EXPECT_TRUE(rig.push(pb::RESOURCE_BEST_WEIGHTS, other).has_error());
      EXPECT_EQ(state_of(rig).best_wait(), 2u);
      EXPECT_FALSE(rig.push(pb::RESOURCE_BEST_WEIGHTS, best).has_error());
      out.brought++;
    }
    rig.settle();
    for (const auto& [id, e] : rig.events) {
      const bool next = e.has_epoch() && e.epoch().epoch() == out.epochs.size();
      if (next) out.epochs.push_back(e.epoch());
      if (e.has_epoch() && state_of(rig).best_wait() == 0) ack_epochs(rig, e.epoch().epoch());
    }
    if (state_of(rig).job() == pb::JOB_STATE_DONE) break;
  }
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);
  out.state = state_of(rig).state_hash();
  out.weights = state_of(rig).weights_hash();
  return out;
}

// A board whose run waits for the host to take the weights that it began with.
struct Waiting {
  Waiting() {
    spec.set_best_on_host(true);
    load(rig, train, held);
    EXPECT_FALSE(rig.request(start_request(spec)).has_error());
    rig.settle();
    EXPECT_EQ(state_of(rig).best_wait(), 1u);
  }
  const std::string train = golden_part(0, 43), held = golden_part(100, 50);
  pb::RunSpec spec = coarse_spec(train, held);
  BoardRig rig;
};

TEST(BestOnHost, ResidentRunEndsAsOneThatKeepsItItself) {
  const std::string train = golden_part(0, 43), held = golden_part(100, 50);
  auto spec = coarse_spec(train, held);
  BoardRig here;
  load(here, train, held);
  ASSERT_FALSE(here.request(start_request(spec)).has_error());
  const Outcome a = host_run(here, false);
  ASSERT_EQ(a.epochs.size(), 6u);
  EXPECT_EQ(a.taken, 0);
  ASSERT_LT(a.epochs.back().best_step(), a.epochs.back().step()) << "nothing to roll back";
  spec.set_best_on_host(true);
  for (const bool lose : {false, true}) {
    BoardRig there;
    load(there, train, held);
    EXPECT_NE(there.hello().caps() & 1u << 12, 0u);
    ASSERT_FALSE(there.request(start_request(spec)).has_error());
    const Outcome b = host_run(there, lose);
    EXPECT_EQ(b.state, a.state);
    EXPECT_EQ(b.weights, a.weights);
    EXPECT_GE(b.taken, 2);
    EXPECT_EQ(b.brought, 1);
    ASSERT_EQ(b.epochs.size(), a.epochs.size());
    for (std::size_t e = 0; e < a.epochs.size(); e++) {
      pb::EpochRecord x = a.epochs[e], y = b.epochs[e];
      x.clear_step_us();
      y.clear_step_us();
      EXPECT_EQ(x.SerializeAsString(), y.SerializeAsString()) << e;
    }
  }
}

// Reading the best may take longer than an epoch is held: what comes after it has its own time.
TEST(BestOnHost, TheHoldBeginsWhenTheBestIsKept) {
  Waiting w;
  BoardRig& rig = w.rig;
  EXPECT_FALSE(kept(rig, sha256(rig.pull(pb::RESOURCE_BEST_WEIGHTS))).has_error());  // the start
  rig.settle();
  const auto end = state_of(rig);
  ASSERT_EQ(end.best_wait(), 1u) << "the first epoch should improve";
  const std::string best = rig.pull(pb::RESOURCE_BEST_WEIGHTS);
  rig.advance_ms(20000);
  rig.hello();
  EXPECT_FALSE(kept(rig, sha256(best)).has_error());
  rig.settle();
  EXPECT_EQ(state_of(rig).step(), end.step());
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_EPOCH_HOLD);
}

TEST(BestOnHost, AStoppedWaitLeavesTheBoardToOtherWeights) {
  Waiting w;
  BoardRig& rig = w.rig;
  const std::string weights = rig.pull(pb::RESOURCE_WEIGHTS);
  pb::Request q;
  q.mutable_job_control()->set_run_id(kRun);
  q.mutable_job_control()->set_action(pb::JobControl::ACTION_STOP);
  ASSERT_FALSE(rig.request(q).has_error());
  const auto pushed = rig.push(pb::RESOURCE_WEIGHTS, weights);
  EXPECT_FALSE(pushed.has_error()) << pushed.ShortDebugString();
}

TEST(BestOnHost, ARunGoesOnFromAStateOnAnotherBoard) {
  Waiting w;
  BoardRig& rig = w.rig;
  const std::string best = rig.pull(pb::RESOURCE_BEST_WEIGHTS);
  EXPECT_FALSE(kept(rig, sha256(best)).has_error());
  rig.settle();
  const auto s = state_of(rig);
  EXPECT_EQ(s.job(), pb::JOB_STATE_EPOCH_HOLD);
  const std::string state = rig.pull(pb::RESOURCE_STATE);
  ASSERT_EQ(sha256(state), s.state_hash());
  BoardRig other;
  load(other, w.train, w.held);
  // Index 1: the best stays with the host; none is wanted before the run goes on.
  ASSERT_FALSE(other.push(pb::RESOURCE_STATE, state, 1).has_error());
  auto q = start_request(w.spec, kRun, 2);
  q.mutable_start_run()->set_expect_state_hash(s.state_hash());
  const auto started = other.request(q);
  ASSERT_FALSE(started.has_error()) << started.ShortDebugString();
  EXPECT_EQ(started.state().best_wait(), 0u);
  EXPECT_EQ(started.state().ram_used_bytes(), s.ram_used_bytes());
}

}  // namespace
}  // namespace odt::testing

// Precision per layer over the wire: APT, steering, recovery, weights of unequal k.
#include "board_rig.h"

namespace odt::testing {
namespace {

pb::RunSpec apt_spec(const std::string& train, const std::string& held = {}) {
  pb::RunSpec s = small_spec(train, held);
  s.set_k(7);
  s.set_rounding(0);
  s.set_shift_source(2);
  s.set_layer_k(std::string("\x00\x09", 2));
  s.set_apt_mode(1);
  s.set_apt_k_max(12);
  s.set_apt_offsets(true);
  s.set_apt_t_min_q8(200);
  s.set_apt_t_max_q8(800);
  return s;
}

pb::Request set_precision(std::uint32_t step, std::uint32_t layer, std::uint32_t k) {
  pb::Request q;
  auto* p = q.mutable_set_precision();
  p->set_run_id(std::string(16, 'r'));
  p->set_attempt(1);
  p->set_step(step);
  p->set_layer(layer);
  p->set_k(k);
  return q;
}

void pause(BoardRig& rig) {
  pb::Request q;
  q.mutable_job_control()->set_action(pb::JobControl::ACTION_PAUSE);
  q.mutable_job_control()->set_run_id(std::string(16, 'r'));
  ASSERT_FALSE(rig.request(q).has_error());
}

std::vector<pb::StepRecord> steps(const BoardRig& rig) {
  std::vector<pb::StepRecord> out;
  for (const auto& [id, e] : rig.events) {
    if (e.has_step()) out.push_back(e.step());
  }
  return out;
}

const std::string kTrain = golden_part(0, 43), kHeld = golden_part(100, 50);

TEST(Precision, SaysThatItCan) {
  BoardRig rig;
  EXPECT_NE(rig.hello().caps() & 0x200u, 0u);
}

TEST(Precision, RecordsTellWhatTheHostNeeds) {
  BoardRig rig;
  load(rig, kTrain, kHeld);
  const auto r = rig.request(start_request(apt_spec(kTrain, kHeld)));
  ASSERT_FALSE(r.has_error()) << r.ShortDebugString();
  rig.settle();
  EXPECT_EQ(state_of(rig).job(), pb::JOB_STATE_DONE);
  std::vector<pb::EpochRecord> records;
  for (const auto& [id, e] : rig.events) {
    if (e.has_epoch()) records.push_back(e.epoch());
  }
  ASSERT_EQ(records.size(), 3u);
  for (const auto& record : records) {
    ASSERT_EQ(record.layers_size(), 2);
    const auto& l = record.layers(0);
    EXPECT_EQ(l.resident_bytes(), 6272u * (l.k() > 8 ? 2 : 1));
    EXPECT_EQ(l.logical_bits(), 6272u * l.k() + 32u * l.k_off());
    EXPECT_GT(l.sum_abs_g(), 0u);
    EXPECT_EQ(l.sum_n(), 4u);  // 6 steps, checks after 2, 3, 5 and 6
    EXPECT_LT(l.w_min(), 0);
    EXPECT_GT(l.w_max(), 0);
  }
  EXPECT_NE(records[2].layers(0).k(), 7u);
}

TEST(Precision, ALongRecordLosesFieldsBeforeLayers) {
  pb::LayerEpoch most;
  for (const auto* f : {"k_off", "sum_n", "logical_bits", "resident_bytes", "bits_min", "bits_max",
                        "bits_mean_q8", "nonzero_deltas_ppm", "mean_abs_delta_q8",
                        "zero_propagated_ppm", "saturated", "dead_units", "k", "u_q8"}) {
    most.GetReflection()->SetUInt32(&most, most.GetDescriptor()->FindFieldByName(f), ~0u);
  }
  most.set_shift(-128);
  most.set_e_d(-32768);
  most.set_w_min(-32768);
  most.set_w_max(32767);
  most.set_sum_abs_g(~0ull);
  most.set_mu(-128);
  most.set_mu_clamped(true);
  // What a board can put there is smaller: bits, k and mu are bytes.
  most.set_bits_min(255);
  most.set_bits_max(255);
  most.set_bits_mean_q8(65535);
  most.set_k(16);
  most.set_k_off(16);
  EXPECT_LE(most.ByteSizeLong(), 136u);
}

// Powered off at every few steps, restored from state and best.
TEST(Precision, ARestoredRunEndsInTheSameState) {
  const auto spec = apt_spec(kTrain, kHeld);
  BoardRig whole;
  load(whole, kTrain, kHeld);
  whole.request(start_request(spec));
  whole.settle();
  const std::string want = state_of(whole).state_hash();
  bool other_k = false;
  for (int turns = 6; turns < 20; turns += 2) {
    BoardRig rig;
    load(rig, kTrain, kHeld);
    rig.request(start_request(spec));
    rig.turns(turns);
    pause(rig);
    const std::string state = rig.pull(pb::RESOURCE_STATE);
    const std::string best = rig.pull(pb::RESOURCE_BEST_WEIGHTS);
    other_k = other_k || best.size() != rig.pull(pb::RESOURCE_WEIGHTS).size();
    rig.restart();
    load(rig, kTrain, kHeld);
    ASSERT_FALSE(rig.push(pb::RESOURCE_STATE, state).has_error()) << turns;
    ASSERT_FALSE(rig.push(pb::RESOURCE_BEST_WEIGHTS, best).has_error()) << turns;
    auto q = start_request(spec, std::string(16, 'r'), 2);
    q.mutable_start_run()->set_expect_state_hash(sha256(state));
    const auto r = rig.request(q);
    ASSERT_FALSE(r.has_error()) << r.ShortDebugString();
    rig.settle();
    EXPECT_EQ(state_of(rig).state_hash(), want) << turns;
  }
  EXPECT_TRUE(other_k) << "best and current weights were always of one size";
}

TEST(Precision, SteeringComesIntoForceAtItsStep) {
  auto spec = apt_spec(kTrain);
  spec.set_apt_mode(0);
  spec.set_apt_offsets(false);
  spec.set_apt_t_min_q8(0);
  spec.set_apt_t_max_q8(0);
  BoardRig rig;
  load(rig, kTrain);
  rig.request(start_request(spec));
  pause(rig);
  const auto done = state_of(rig).step();
  ASSERT_LT(done, 6u);
  EXPECT_FALSE(rig.request(set_precision(6, 0, 12)).has_error());  // an epoch's first step
  EXPECT_FALSE(rig.request(set_precision(10, 1, 4)).has_error());
  EXPECT_FALSE(rig.request(set_precision(10, 1, 4)).has_error());
  EXPECT_EQ(rig.request(set_precision(10, 1, 5)).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(rig.request(set_precision(11, 2, 5)).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(rig.request(set_precision(11, 1, 13)).error().limit(), 12u);
  EXPECT_EQ(rig.request(set_precision(11, 1, 1)).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(rig.request(set_precision(18, 1, 5)).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  pb::Request go;
  go.mutable_job_control()->set_action(pb::JobControl::ACTION_RESUME);
  go.mutable_job_control()->set_run_id(std::string(16, 'r'));
  rig.request(go);
  rig.settle();
  const auto records = steps(rig);
  ASSERT_EQ(records.size(), 18u);
  for (const auto& s : records) {
    EXPECT_EQ(s.layers()[2], s.step() < 6 ? 7 : 12) << s.step();
    EXPECT_EQ(s.layers()[5], s.step() < 10 ? 9 : 4) << s.step();
  }
  // Known although its step is done; a new one is too late.
  EXPECT_FALSE(rig.request(set_precision(10, 1, 4)).has_error());
  EXPECT_EQ(rig.request(set_precision(9, 1, 4)).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
}

TEST(Precision, AtMostEightChangesWait) {
  auto spec = apt_spec(kTrain);
  BoardRig rig;
  load(rig, kTrain);
  rig.request(start_request(spec));
  pause(rig);
  for (std::uint32_t i = 0; i < 8; i++) {
    EXPECT_FALSE(rig.request(set_precision(9 + i, 0, 5)).has_error());
  }
  EXPECT_EQ(rig.request(set_precision(17, 0, 5)).error().code(),
            pb::STATUS_CODE_RESOURCE_EXHAUSTED);
}

TEST(Precision, SteeringWantsARunThatAllowsIt) {
  BoardRig rig;
  load(rig, kTrain);
  EXPECT_EQ(rig.request(set_precision(9, 0, 5)).error().code(), pb::STATUS_CODE_NOT_FOUND);
  rig.request(start_request(small_spec(kTrain)));
  pause(rig);
  EXPECT_EQ(rig.request(set_precision(9, 0, 5)).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
}

TEST(Precision, WeightsOfUnequalKTravel) {
  const auto spec = apt_spec(kTrain);
  BoardRig a;
  load(a, kTrain);
  a.request(start_request(spec));
  a.settle();
  const std::string weights = a.pull(pb::RESOURCE_WEIGHTS);
  ASSERT_NE(weights[46], 7) << "the run did not move k";
  BoardRig b;
  load(b, kTrain);
  const auto pushed = b.push(pb::RESOURCE_WEIGHTS, weights);
  ASSERT_FALSE(pushed.has_error()) << pushed.ShortDebugString();
  EXPECT_EQ(b.pull(pb::RESOURCE_WEIGHTS), weights);
  // A run that can be at that k starts from them; one that cannot says so.
  auto q = start_request(small_spec(kTrain));
  q.mutable_start_run()->set_from_weights(true);
  EXPECT_EQ(b.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  q = start_request(spec);
  q.mutable_start_run()->set_from_weights(true);
  const auto r = b.request(q);
  ASSERT_FALSE(r.has_error()) << r.ShortDebugString();
  b.settle();
  EXPECT_EQ(static_cast<std::uint8_t>(steps(b)[0].layers()[2]),
            static_cast<std::uint8_t>(weights[46]));
}

TEST(Precision, ALayersKThatIsTheRunsIsTheSameSettings) {
  auto spec = small_spec(kTrain);
  BoardRig rig;
  load(rig, kTrain);
  rig.request(start_request(spec));
  rig.settle();
  spec.set_layer_k(std::string("\x08\x08", 2));
  EXPECT_EQ(rig.request(start_request(spec)).state().job(), pb::JOB_STATE_DONE) << "the same run";
}

}  // namespace
}  // namespace odt::testing

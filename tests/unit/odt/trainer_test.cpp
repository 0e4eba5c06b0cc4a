// Guard, alarms, records, frozen ops in front, evaluation, and the order of calls.
#include <gtest/gtest.h>

#include "fixture.h"

namespace odt::testing {
namespace {

class Trainer : public ::testing::Test {
 protected:
  Random r_{31};
  NetSpec net_ = small_dense();
  SampleSet set_ = random_samples(r_, net_, 30);
  odt_samples_t train_ = open_samples(set_.blob);
  odt_run_spec_t spec_ = plain_spec(30, 8, 4);
  odt_error_t err_{};

  odt_epoch_record_t epoch(odt_trainer_t* t, uint32_t heldout, uint32_t total) {
    odt_step_record_t rec;
    odt_epoch_record_t out{};
    while (!odt_trainer_epoch_complete(t)) {
      EXPECT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK) << err_.what;
    }
    EXPECT_EQ(odt_trainer_end_epoch(t, heldout, total, &out, &err_), ODT_OK) << err_.what;
    return out;
  }
};

TEST_F(Trainer, GuardEndsAtTheBestTiesToTheEarlier) {
  spec_.guard = true;
  spec_.heldout_samples = 50;
  spec_.shift_source = ODT_SHIFT_STALE;
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  ASSERT_EQ(odt_trainer_set_start(t, 20, 50), ODT_OK);
  EXPECT_EQ(odt_trainer_set_start(t, 20, 50), ODT_FAILED_PRECONDITION);
  EXPECT_EQ(epoch(t, 20, 50).best_step, 0u);  // a tie: the start stays
  EXPECT_EQ(epoch(t, 30, 50).best_step, 8u);
  std::vector<uint8_t> best = weights_of(t);
  odt_epoch_record_t third = epoch(t, 30, 50);
  EXPECT_EQ(third.best_step, 8u);
  EXPECT_EQ(third.start_correct, 20u);
  EXPECT_NE(weights_of(t), best);
  odt_epoch_record_t last = epoch(t, 29, 50);
  EXPECT_EQ(weights_of(t), best);
  EXPECT_EQ(t->layers[0].b_prev, 0);
  EXPECT_EQ(last.step, 16u);
  uint8_t hash[32];
  odt_state_hash(t, hash);
  EXPECT_EQ(std::vector<uint8_t>(hash, hash + 32),
            std::vector<uint8_t>(last.state_hash, last.state_hash + 32));
  EXPECT_TRUE(odt_trainer_done(t));
}

TEST_F(Trainer, GuardMayEndAtTheStart) {
  spec_.guard = true;
  spec_.heldout_samples = 50;
  Rig rig(build_image(net_));
  rig.start(spec_);
  std::vector<uint8_t> start = weights_of(rig.trainer());
  ASSERT_EQ(odt_trainer_set_start(rig.trainer(), 40, 50), ODT_OK);
  for (int i = 0; i < 4; i++) epoch(rig.trainer(), 39, 50);
  EXPECT_EQ(weights_of(rig.trainer()), start);
}

TEST_F(Trainer, WithoutGuardTheLastWeightsStay) {
  spec_.heldout_samples = 50;
  Rig a(build_image(net_)), b(build_image(net_));
  a.start(spec_);
  b.start(spec_);
  odt_trainer_set_start(a.trainer(), 40, 50);
  for (int i = 0; i < 4; i++) {
    epoch(a.trainer(), 1, 50);
    epoch(b.trainer(), 0, 0);
  }
  EXPECT_EQ(weights_of(a.trainer()), weights_of(b.trainer()));
}

TEST_F(Trainer, CallsOutOfOrderAreRefused) {
  Rig rig(build_image(net_));
  spec_.epochs = 1;
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  odt_epoch_record_t e;
  odt_step_record_t s;
  EXPECT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_FAILED_PRECONDITION);
  for (int i = 0; i < 4; i++) EXPECT_EQ(odt_trainer_step_resident(t, &train_, &s, &err_), ODT_OK);
  std::vector<uint8_t> before = state_of(t);
  EXPECT_EQ(odt_trainer_step_resident(t, &train_, &s, &err_), ODT_FAILED_PRECONDITION);
  EXPECT_STREQ(err_.what, "epoch is complete: position");
  EXPECT_EQ(state_of(t), before);
  EXPECT_EQ(odt_trainer_end_epoch(t, 2, 1, &e, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_OK);
  EXPECT_EQ(odt_trainer_step_resident(t, &train_, &s, &err_), ODT_FAILED_PRECONDITION);
  EXPECT_STREQ(err_.what, "run is complete: step");
  EXPECT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_FAILED_PRECONDITION);
}

TEST_F(Trainer, StreamedBatchMustHaveTheRightSizeAndLabels) {
  Rig rig(build_image(net_));
  rig.start(spec_, false);
  odt_trainer_t* t = rig.trainer();
  odt_step_record_t rec;
  SampleSet nine = random_samples(r_, net_, 9), eight = random_samples(r_, net_, 8);
  odt_samples_t s = open_samples(nine.blob);
  std::vector<uint8_t> before = state_of(t);
  EXPECT_EQ(odt_trainer_step(t, &s, &rec, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(err_.got, 9);
  EXPECT_EQ(err_.limit_hi, 8);
  eight.blob[16] = 4;
  s = open_samples(eight.blob);
  EXPECT_EQ(odt_trainer_step(t, &s, &rec, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(odt_trainer_step_resident(t, &s, &rec, &err_), ODT_FAILED_PRECONDITION);
  EXPECT_EQ(state_of(t), before);
}

TEST_F(Trainer, EvaluationCountsAndTouchesNothing) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  odt_step_record_t rec;
  odt_trainer_step_resident(t, &train_, &rec, &err_);
  std::vector<uint8_t> before = state_of(t);
  uint32_t correct = 0, by_hand = 0;
  uint64_t loss = 0;
  std::vector<uint32_t> confusion(16);
  EXPECT_EQ(odt_trainer_eval(t, &train_, 0, 10, &correct, &loss, confusion.data()), ODT_OK);
  EXPECT_EQ(odt_trainer_eval(t, &train_, 10, 20, &correct, &loss, confusion.data()), ODT_OK);
  EXPECT_EQ(odt_trainer_eval(t, &train_, 10, 21, &correct, &loss, nullptr), ODT_OUT_OF_RANGE);
  EXPECT_EQ(state_of(t), before);
  std::vector<uint32_t> want(16);
  for (int i = 0; i < 30; i++) {
    int8_t z[4];
    odt_trainer_infer(t, train_.data + i * 12, z);
    auto got = static_cast<int>(std::max_element(z, z + 4) - z);
    int label = set_.labels[static_cast<size_t>(i)];
    if (got == label) by_hand++;
    want[static_cast<size_t>(label * 4 + got)]++;
  }
  EXPECT_EQ(correct, by_hand);
  EXPECT_EQ(confusion, want);
  EXPECT_GT(loss, 0u);
}

TEST_F(Trainer, DeadLayerAlarm) {
  for (int32_t& off : net_.layers[0].offsets) off = -2000000000;  // no unit ever speaks
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_epoch_record_t rec = epoch(rig.trainer(), 0, 0);
  EXPECT_TRUE(rec.alarms & ODT_ALARM_DEAD_LAYER);
  EXPECT_EQ(rec.layers[0].dead_units, 8u);
  EXPECT_EQ(rec.layers[0].bits_max, 0);
}

TEST_F(Trainer, SaturationAlarm) {
  for (size_t i = 0; i < net_.layers[1].weights.size(); i++) net_.layers[1].weights[i] = 127;
  Rig rig(build_image(net_));
  spec_.mu_weight[0] = spec_.mu_weight[1] = spec_.mu_weight[2] = -4;
  rig.start(spec_);
  odt_epoch_record_t rec = epoch(rig.trainer(), 0, 0);
  EXPECT_TRUE(rec.alarms & ODT_ALARM_SATURATION);
  EXPECT_FALSE(rec.alarms & ODT_ALARM_DEAD_LAYER);
}

TEST_F(Trainer, StuckAlarmWhenTheLossIsFlat) {
  for (size_t i = 0; i < 30; i++) set_.blob[16 + i] = 2;
  spec_.class_weights[2] = 0;  // the only label there is
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_epoch_record_t rec = epoch(rig.trainer(), 0, 0);
  EXPECT_TRUE(rec.alarms & ODT_ALARM_STUCK);
}

TEST_F(Trainer, EpochRecordSumsTheSteps) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  uint64_t loss = 0;
  uint32_t correct = 0, bits = 0;
  uint8_t lo = 255, hi = 0;
  odt_step_record_t rec{};
  while (!odt_trainer_epoch_complete(t)) {
    ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK);
    loss += rec.loss;
    correct += rec.correct;
    bits += rec.layers[0].bits;
    lo = std::min(lo, rec.layers[0].bits);
    hi = std::max(hi, rec.layers[0].bits);
  }
  odt_epoch_record_t e;
  ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_OK);
  EXPECT_EQ(e.epoch, 0u);
  EXPECT_EQ(e.step, 4u);
  EXPECT_EQ(e.loss, loss);
  EXPECT_EQ(e.correct, correct);
  EXPECT_EQ(e.total, 30u);
  EXPECT_EQ(e.start_correct, 0xFFFFFFFFu);
  EXPECT_EQ(e.layers[0].bits_min, lo);
  EXPECT_EQ(e.layers[0].bits_max, hi);
  EXPECT_EQ(e.layers[0].bits_mean_q8, bits * 256 / 4);
  EXPECT_EQ(e.layers[0].shift, rec.layers[0].shift);
  EXPECT_GT(e.layers[0].nonzero_deltas_ppm, 0u);
  EXPECT_GT(e.layers[0].mean_abs_delta_q8, 0u);
  EXPECT_GT(e.layers[0].u_q8, 0u);
}

TEST_F(Trainer, PlanCountsEveryPart) {
  Rig rig(build_image(net_));
  odt_memory_plan_t resident, streamed, guarded;
  odt_trainer_plan(&rig.model(), &spec_, true, &resident);
  odt_trainer_plan(&rig.model(), &spec_, false, &streamed);
  EXPECT_EQ(resident.order_bytes, 64u);  // 30 * 2, to 8
  EXPECT_EQ(streamed.order_bytes, 0u);
  EXPECT_EQ(resident.weights_bytes, 96u + 32 + 32 + 16);
  EXPECT_EQ(resident.best_bytes, 0u);
  spec_.guard = true;
  odt_trainer_plan(&rig.model(), &spec_, true, &guarded);
  EXPECT_EQ(guarded.best_bytes, guarded.weights_bytes);
  EXPECT_EQ(guarded.total_bytes, resident.total_bytes + guarded.best_bytes);
  EXPECT_EQ(resident.total_bytes, resident.weights_bytes + resident.activation_bytes +
                                      resident.gradient_bytes + resident.order_bytes);
}

// PREQUANT, a frozen convolution and FLATTEN in front of one trainable layer.
TEST_F(Trainer, FrozenOpsInFront) {
  NetSpec net;
  net.input_dtype = DType::kU8;
  net.input_dims = {2, 5, 4};
  net.n_classes = 3;
  LayerSpec pre;
  pre.kind = OpKind::kPrequant;
  pre.outputs = 2;
  pre.offsets = {-20000, 3000};
  pre.k = {3, 2};
  pre.prequant_mult = {-9, 5};
  LayerSpec conv;
  conv.kind = OpKind::kConv2d;
  conv.relu = true;
  conv.clip_lo = 0;
  conv.clip_hi = 255;
  conv.outputs = 3;
  conv.k_h = conv.k_w = 2;
  for (int i = 0; i < 24; i++) conv.weights.push_back(static_cast<int8_t>(r_.range(-60, 60)));
  conv.offsets = {100, -50, 900};
  conv.k = {5, 6, 6};
  LayerSpec flat;
  flat.kind = OpKind::kFlatten;
  LayerSpec dense;
  dense.outputs = 3;
  dense.trainable = true;
  for (int i = 0; i < 36 * 3; i++) dense.weights.push_back(static_cast<int8_t>(r_.range(-60, 60)));
  dense.offsets = {10, 20, 30};
  dense.k = {7, 7, 8};
  net.layers = {pre, conv, flat, dense};
  net.target_correct = {50, 60, 70};
  net.target_wrong = {0, -5, -9};
  SampleSet set = random_samples(r_, net, 8);
  odt_run_spec_t spec = plain_spec(8, 8, 1);
  Rig rig(build_image(net));
  rig.start(spec);
  Oracle oracle(net, oracle_settings(spec, net));
  odt_samples_t train = open_samples(set.blob);
  std::vector<Values> xs;
  std::vector<int> labels;
  for (int i : oracle_order(spec.order_seed, 0, 8)) {
    xs.push_back(set.values[static_cast<size_t>(i)]);
    labels.push_back(set.labels[static_cast<size_t>(i)]);
  }
  oracle.step(xs, labels);
  odt_step_record_t rec;
  ASSERT_EQ(odt_trainer_step_resident(rig.trainer(), &train, &rec, &err_), ODT_OK);
  EXPECT_EQ(rec.loss, static_cast<uint64_t>(oracle.loss()));
  EXPECT_EQ(stored(rig.trainer()->layers[0]), oracle.layers()[0].m);
  EXPECT_NE(stored(rig.trainer()->layers[0]), Values(dense.weights.begin(), dense.weights.end()));
}

TEST_F(Trainer, OtherSamplesWithinAnEpochAreCheckedToo) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  odt_step_record_t rec;
  ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK);
  odt_samples_t other = train_;
  other.sample_len++;
  EXPECT_EQ(odt_trainer_step_resident(t, &other, &rec, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: sample_len");
  std::vector<int8_t> labels(train_.count, -1);
  other = train_;
  other.labels = labels.data();
  EXPECT_EQ(odt_trainer_step_resident(t, &other, &rec, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: label");
  EXPECT_EQ(err_.got, -1);
  EXPECT_EQ(odt_trainer_step_count(t), 1u);
  EXPECT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK);
}

}  // namespace
}  // namespace odt::testing

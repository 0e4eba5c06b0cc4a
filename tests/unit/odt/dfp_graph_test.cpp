// DFP16: networks that random ones seldom are, against the oracle; what records tell.
#include "compare.h"
#include "dfp_fixture.h"

namespace odt::testing::dfp {
namespace {

// A FLATTEN beside another reader of its input, one behind it, and one of the network input.
NetSpec flatten_fork() {
  Random r(41);
  NetSpec net = base({2, 4, 3}, 3);
  net.layers.push_back(conv(r, 2, 3, 3, true, 1));   // t1: 3x4x3
  net.layers.push_back(plain(OpKind::kFlatten, 1));  // t2: 36
  net.layers.push_back(conv(r, 3, 2, 1, true));      // t3 of t1: 2x4x3
  net.layers.back().in0 = 1;
  net.layers.push_back(plain(OpKind::kFlatten, 3));  // t4: 24
  net.layers.push_back(plain(OpKind::kConcat, 2, 4));
  net.layers.push_back(plain(OpKind::kFlatten, 0));  // t6: 24
  net.layers.push_back(plain(OpKind::kConcat, 5, 6));
  net.layers.push_back(dense(r, 84, 5, true));  // t8
  net.layers.push_back(plain(OpKind::kFlatten, 8));
  net.layers.push_back(dense(r, 5, 5, true));  // t10 of t9
  net.layers.push_back(plain(OpKind::kAdd, 10, 9));
  net.layers.push_back(dense(r, 5, 3));
  return net;
}

// One tensor read five times, by every kind that passes deltas on in its own way.
NetSpec wide_fork() {
  Random r(42);
  NetSpec net = base({2, 5, 5}, 4);
  net.layers.push_back(conv(r, 2, 2, 3, true, 1));  // t1: 2x5x5
  LayerSpec pool = plain(OpKind::kMaxPool, 1);
  pool.k_h = pool.k_w = 3;
  pool.pad_t = pool.pad_l = pool.pad_b = pool.pad_r = 1;
  net.layers.push_back(pool);  // t2, overlapping
  pool.kind = OpKind::kAvgPool;
  net.layers.push_back(pool);  // t3
  net.layers.push_back(plain(OpKind::kResize, 1));
  net.layers.back().out_h = 5;
  net.layers.back().out_w = 5;
  net.layers.push_back(plain(OpKind::kAdd, 1, 1));     // t5
  net.layers.push_back(plain(OpKind::kConcat, 2, 3));  // t6
  net.layers.push_back(plain(OpKind::kConcat, 4, 5));  // t7
  net.layers.push_back(plain(OpKind::kAdd, 6, 7));     // t8: 4x5x5
  LayerSpec depthwise = weighted(r, OpKind::kConv2d, 4, 16, 4, true);
  depthwise.groups = 4;
  depthwise.k_h = depthwise.k_w = 2;
  depthwise.dil_h = 2;
  depthwise.stride_w = 2;
  depthwise.pad_r = 1;
  net.layers.push_back(depthwise);  // t9: 4x3x3
  net.layers.push_back(plain(OpKind::kGap, 9));
  net.layers.push_back(plain(OpKind::kFlatten, 10));
  net.layers.push_back(dense(r, 4, 4));
  return net;
}

ComparedRun compared(const NetSpec& net, const odt_run_spec_t& spec) {
  ComparedRun run;
  run.net = net;
  run.spec = spec;
  run.max_steps = 40;
  SampleSet set = labelled(net, static_cast<int>(spec.train_samples));
  run.samples.values = set.values;
  run.samples.labels = set.labels;
  run.samples.targets.resize(set.values.size());
  return run;
}

TEST(DfpGraph, EqualsOracle) {
  for (const NetSpec& net : {flatten_fork(), wide_fork(), branched_net(), dense_net()}) {
    for (double rate : {0.0001, 0.02, 8.0}) {
      for (bool blocked : {false, true}) {
        odt_run_spec_t spec = dfp_spec(13, 4, 4, rate);
        spec.blocked = blocked;
        Difference d = compare(compared(net, spec));
        ASSERT_EQ(d.text, "") << "rate " << rate << " blocked " << blocked << " "
                              << describe_net(net);
      }
    }
  }
}

class DfpRecord : public ::testing::Test {
 protected:
  NetSpec net_ = dense_net();
  SampleSet set_ = labelled(net_, 72);
  odt_samples_t train_ = open_samples(set_.blob);
  odt_run_spec_t spec_ = dfp_spec(72, 4, 3, 0.01);  // 18 steps an epoch
  std::unique_ptr<Rig> rig_;
  odt_step_record_t rec_;

  void start() {
    rig_ = std::make_unique<Rig>(build_image(net_));
    rig_->start(spec_);
  }
  odt_trainer_t* t() { return rig_->trainer(); }
  void step() { ASSERT_EQ(odt_trainer_step_resident(t(), &train_, &rec_, &rig_->err), ODT_OK); }
  std::vector<int> weights(uint32_t layer) {
    const odt_layer_t& l = t()->layers[layer];
    std::vector<int> out;
    for (uint32_t i = 0; i < l.n_weights; i++) {
      const auto* m = static_cast<const int16_t*>(l.m);
      out.push_back(m[odt_dfp_stored_at(&rig_->model(), &rig_->model().ops[l.op], i)]);
    }
    return out;
  }
};

// Moves of sampled steps (the 1st and the 17th of an epoch), also where weights were halved first.
TEST_F(DfpRecord, WhatSampledStepsSay) {
  for (bool full : {false, true}) {
    std::vector<int16_t>& last = net_.layers[1].weights16;
    for (size_t i = 0; i < last.size() && full; i++) last[i] = i % 2 ? 32767 : -32767;
    start();
    bool halved = false;
    for (int epoch = 0; epoch < 2; epoch++) {
      uint64_t nonzero[2] = {0, 0}, sum[2] = {0, 0}, zeros = 0, values = 0;
      for (int s = 0; s < 18; s++) {
        std::vector<int> before[2] = {weights(0), weights(1)};
        int e[2] = {*odt_dfp_e(&t()->layers[0]), *odt_dfp_e(&t()->layers[1])};
        step();
        const int16_t* delta = odt_dfp_delta(&t()->dfp, 1);
        for (int i = 0; i < 36; i++) zeros += delta[i / 9 * 10 + i % 9] == 0 ? 1u : 0u;
        values += 36;
        for (uint32_t l = 0; l < 2 && s % 16 == 0; l++) {
          std::vector<int> after = weights(l);
          for (; e[l] < *odt_dfp_e(&t()->layers[l]); e[l]++) {
            halved = true;
            for (int& v : before[l]) v = (v + 1) >> 1;
          }
          for (size_t i = 0; i < after.size(); i++) {
            nonzero[l] += after[i] != before[l][i] ? 1u : 0u;
            sum[l] += static_cast<uint64_t>(std::abs(after[i] - before[l][i]));
          }
        }
      }
      uint64_t abs_g[2] = {t()->layers[0].stats.sum_abs_g, t()->layers[1].stats.sum_abs_g};
      odt_epoch_record_t rec;
      ASSERT_EQ(odt_trainer_end_epoch(t(), 0, 0, &rec, &rig_->err), ODT_OK);
      for (uint32_t l = 0; l < 2; l++) {
        uint64_t n = 2 * uint64_t{t()->layers[l].n_weights};
        EXPECT_EQ(rec.layers[l].nonzero_deltas_ppm, nonzero[l] * 1000000 / n) << l;
        EXPECT_EQ(rec.layers[l].mean_abs_delta_q8, sum[l] * 256 / n) << l;
        EXPECT_EQ(rec.layers[l].sum_n, 2u);
        EXPECT_EQ(rec.layers[l].sum_abs_g, abs_g[l]);
        EXPECT_NEAR(rec.layers[l].u_q8,
                    256.0 * static_cast<double>(sum[l]) / static_cast<double>(n), 128.0)
            << l;
        EXPECT_EQ(rec.layers[l].k, 16);
        EXPECT_EQ(rec.layers[l].e_d, t()->layers[l].e_d);
      }
      EXPECT_EQ(rec.layers[0].zero_propagated_ppm, zeros * 1000000 / values);
    }
    EXPECT_EQ(halved, full);
  }
}

TEST_F(DfpRecord, DeadUnitsAndSaturation) {
  LayerSpec& first = net_.layers[0];
  for (size_t i = 0; i < 13; i++) first.weights16[i * 9 + 4] = 0;
  first.offsets[4] = 0;  // never above 0, never below
  for (size_t i = 0; i < 12; i++) first.weights16[i * 9 + 2] = i % 2 ? 32767 : -32767;
  for (uint16_t& m : spec_.lr_m) m = 1;
  spec_.lr_s = 40;
  start();
  for (int s = 0; s < 18; s++) step();
  odt_epoch_record_t rec;
  ASSERT_EQ(odt_trainer_end_epoch(t(), 0, 0, &rec, &rig_->err), ODT_OK);
  EXPECT_GE(rec.layers[0].dead_units, 1u);
  EXPECT_LT(rec.layers[0].dead_units, 9u);
  EXPECT_EQ(rec.layers[0].saturated, 12u);
  EXPECT_EQ(rec.alarms, ODT_ALARM_SATURATION | ODT_ALARM_STUCK);
  EXPECT_EQ(rec.layers[0].w_max, 32767);
  EXPECT_EQ(rec.layers[0].w_min, -32767);
}

}  // namespace
}  // namespace odt::testing::dfp

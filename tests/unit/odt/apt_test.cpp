// Rule 1.12: U, checks, unit steps of k, offsets' precision, steering, restore.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"
#include "internal.h"

namespace odt::testing {
namespace {

// ---- unit steps -----------------------------------------------------------------------------

int m_max(int k) { return k > 8 ? (127 << (k - 8)) + (1 << (k - 9)) - 1 : 127 >> (8 - k); }
int halve(int v) { return v < 0 ? -((-v + 1) / 2) : (v + 1) / 2; }

TEST(AptStep, EveryBoundaryUpAndDownInPlace) {
  for (int k = 2; k < 16; k++) {
    int n = 2 * m_max(k) + 1;
    if (k > 10) n = 4001;
    std::vector<int16_t> memory(static_cast<size_t>(n) + 3, 0);
    memory.back() = 0x5A5A;
    odt_layer_t l{};
    l.k = static_cast<int8_t>(k);
    l.dtype = k > 8 ? ODT_S16 : ODT_S8;
    l.b_prev = 9;
    l.m = memory.data();
    l.n_weights = static_cast<uint32_t>(n);
    l.n_offsets = 1;
    std::vector<int> values;
    for (int i = 0; i < n; i++) {
      int v =
          k > 10 ? static_cast<int>(int64_t{i} * 2 * m_max(k) / (n - 1)) - m_max(k) : i - m_max(k);
      values.push_back(v);
      odt_store(static_cast<uint8_t*>(l.m), l.dtype, static_cast<uint32_t>(i), v);
    }
    auto at = [&](int i) {
      return odt_load(static_cast<uint8_t*>(l.m), l.dtype, static_cast<uint32_t>(i));
    };
    odt_layer_set_k(&l, static_cast<uint8_t>(k));
    EXPECT_EQ(l.b_prev, 9) << "no change of k";
    odt_layer_set_k(&l, static_cast<uint8_t>(k + 1));
    EXPECT_EQ(l.k, k + 1);
    EXPECT_EQ(l.dtype, k + 1 > 8 ? ODT_S16 : ODT_S8);
    EXPECT_EQ(l.b_prev, 0);
    for (int i = 0; i < n; i++) ASSERT_EQ(at(i), 2 * values[i]) << k << " " << i;
    // Odd values of the finer grid: ties away from zero, then the coarser limit.
    for (int i = 0; i < n; i++) {
      values[i] = 2 * values[i] + (i % 2 && values[i] > 0 ? 1 : i % 2 ? -1 : 0);
      if (std::abs(values[i]) > m_max(k + 1))
        values[i] = values[i] < 0 ? -m_max(k + 1) : m_max(k + 1);
      odt_store(static_cast<uint8_t*>(l.m), l.dtype, static_cast<uint32_t>(i), values[i]);
    }
    odt_layer_set_k(&l, static_cast<uint8_t>(k));
    EXPECT_EQ(l.dtype, k > 8 ? ODT_S16 : ODT_S8);
    for (int i = 0; i < n; i++) {
      int want = std::max(-m_max(k), std::min(m_max(k), halve(values[i])));
      ASSERT_EQ(at(i), want) << k << " " << i << " from " << values[i];
    }
    EXPECT_EQ(memory.back(), 0x5A5A) << "wrote behind its weights";
  }
}

TEST(AptStep, SeveralAtOnceAreUnitSteps) {
  int16_t memory[4] = {0};
  odt_layer_t l{};
  l.k = 12;
  l.dtype = ODT_S16;
  l.m = memory;
  l.n_weights = 4;
  l.n_offsets = 1;
  const int16_t from[4] = {(127 << 4) + 7, -7, -2048, 24};
  std::memcpy(memory, from, sizeof from);
  odt_layer_set_k(&l, 6);
  // 24: 12, 6, 3, 2 (tie away), 1, 1; -7: -4, -2, -1, -1, -1, -1: not what one shift by 6 gives.
  const int8_t want[4] = {31, -1, -31, 1};
  EXPECT_EQ(std::memcmp(memory, want, 4), 0);
  odt_layer_set_k(&l, 16);
  const int16_t up[4] = {31 << 10, -1 << 10, -31 << 10, 1 << 10};
  EXPECT_EQ(std::memcmp(memory, up, sizeof up), 0);
}

TEST(AptStep, TermIsInGridSteps) {
  EXPECT_EQ(odt_apt_term(1000, 3), 32000u);
  EXPECT_EQ(odt_apt_term(1000, 0), 256000u);
  EXPECT_EQ(odt_apt_term(1001, -2), 1001u << 10);
  EXPECT_EQ(odt_apt_term(1001, 10), 250u);  // floor
  EXPECT_EQ(odt_apt_term(~0ull >> 8, 63), 1u);
  EXPECT_EQ(odt_apt_term(~0ull >> 8, 64), 0u);
}

// ---- one layer whose gradient is known ------------------------------------------------------

// 3 inputs, 2 outputs, logits = x * w with k_out 0; target 0 for every class.
NetSpec one_layer() {
  NetSpec net;
  net.input_dims = {3};
  LayerSpec l;
  l.trainable = true;
  l.outputs = 2;
  l.weights = {1, 0, 0, 1, 2, -1};
  l.offsets = {0, 0};
  l.k = {0, 0};
  net.layers = {l};
  net.target_correct = {0, 0};
  net.target_wrong = {0, 0};
  return net;
}

odt_run_spec_t apt_spec(int samples, int batch, int epochs) {
  odt_run_spec_t s = plain_spec(samples, batch, epochs);
  s.k = 6;
  for (int8_t& mu : s.mu_weight) mu = 2;
  s.apt.mode = ODT_APT_QUARTERS;
  s.apt.k_max = 16;
  s.apt.t_min_q8 = 77;
  return s;
}

TEST(Apt, UDecidesToTheLastUnit) {
  // k = 6: w = M << 2, M = (1,0,0,1,2,-1) halved twice, ties away: (1,0,0,1,1,-1), w =
  // (4,0,0,4,4,-4). x = (10, -3, 5): z = (10*4 + 5*4, -3*4 - 5*4) = (60, -32) = dy; G = x dy^T: 600
  // -320 -180 96 300 -160; sum |G| = 1656; bits = 10, ws = 8, f = -2, s = 10. a = 1656 * 256 >> 10
  // = 414, N = 6, n = 1: U = 414 / 6 = 69 in Q8.
  NetSpec net = one_layer();
  Rig rig(build_image(net));
  std::vector<uint8_t> blob = build_samples(DType::kS8, 3, {0}, {10, static_cast<uint8_t>(-3), 5});
  odt_samples_t train = open_samples(blob);
  struct {
    uint16_t t_min, t_max;
    int k;
  } const cases[] = {{69, 0, 6}, {70, 0, 7}, {17, 69, 6}, {17, 68, 5}, {1, 4, 5}};
  for (auto& c : cases) {
    odt_run_spec_t spec = apt_spec(1, 1, 1);
    spec.apt.t_min_q8 = c.t_min;
    spec.apt.t_max_q8 = c.t_max;
    rig.start(spec);
    odt_step_record_t step;
    odt_epoch_record_t epoch;
    ASSERT_EQ(odt_trainer_step_resident(rig.trainer(), &train, &step, nullptr), ODT_OK);
    EXPECT_EQ(step.layers[0].k, 6) << "k of the step itself";
    EXPECT_EQ(step.layers[0].bits, 10);
    EXPECT_EQ(step.layers[0].shift, 8);
    ASSERT_EQ(odt_trainer_end_epoch(rig.trainer(), 0, 0, &epoch, nullptr), ODT_OK);
    const odt_layer_epoch_t& l = epoch.layers[0];
    EXPECT_EQ(l.u_q8, 69u);
    EXPECT_EQ(l.sum_abs_g, 1656u);
    EXPECT_EQ(l.sum_n, 1u);
    EXPECT_EQ(l.k, c.k) << c.t_min << " " << c.t_max;
    EXPECT_EQ(odt_trainer_layer_bits(rig.trainer(), 0, l.k, l.k_off),
              6u * static_cast<uint32_t>(c.k) + 64u);
    EXPECT_EQ(odt_trainer_layer_bytes(rig.trainer(), 0, l.k), 8u) << "two rows of one word";
  }
}

TEST(Apt, ChecksOfTinyEpochsFallTogether) {
  // t_min is out of reach: every check raises k, so that k counts the checks.
  NetSpec net = one_layer();
  Rig rig(build_image(net));
  const struct {
    int steps;
    uint8_t mode;
    std::vector<int> k;  // after each step of the first epoch
  } cases[] = {{1, ODT_APT_QUARTERS, {3}},
               {2, ODT_APT_QUARTERS, {3, 4}},
               {3, ODT_APT_QUARTERS, {3, 4, 5}},
               {4, ODT_APT_QUARTERS, {3, 4, 5, 6}},
               {5, ODT_APT_QUARTERS, {2, 3, 4, 5, 6}},
               {9, ODT_APT_QUARTERS, {2, 2, 3, 3, 4, 4, 5, 5, 6}},
               {1, ODT_APT_EPOCHS, {3}},
               {5, ODT_APT_EPOCHS, {2, 2, 2, 2, 3}}};
  for (auto& c : cases) {
    Random r(7);
    SampleSet set = random_samples(r, net, 2 * c.steps - 1);  // the last batch has one sample
    odt_samples_t train = open_samples(set.blob);
    odt_run_spec_t spec = apt_spec(2 * c.steps - 1, 2, 2);
    spec.k = 2;
    spec.apt.mode = c.mode;
    spec.apt.t_min_q8 = 65535;
    rig.start(spec);
    odt_step_record_t rec;
    for (int k : c.k) {
      ASSERT_EQ(odt_trainer_step_resident(rig.trainer(), &train, &rec, nullptr), ODT_OK);
      EXPECT_EQ(rig.trainer()->layers[0].k, k) << c.steps << " steps, mode " << int{c.mode};
      if (rig.trainer()->layers[0].k != rec.layers[0].k) {
        EXPECT_EQ(rig.trainer()->layers[0].apt_n, 0u);
      }
    }
  }
}

TEST(Apt, SamplesTheFirstStepAfterACheckAndEvery16th) {
  NetSpec net = one_layer();
  Random r(8);
  SampleSet set = random_samples(r, net, 150);
  odt_samples_t train = open_samples(set.blob);
  Rig rig(build_image(net));
  odt_run_spec_t spec = apt_spec(150, 1, 1);  // checks after 38, 75, 113, 150
  rig.start(spec);
  odt_trainer_t* t = rig.trainer();
  odt_step_record_t rec;
  for (int i = 0; i < 150; i++) {
    int since = i < 38 ? i : i < 75 ? i - 38 : i < 113 ? i - 75 : i - 113;
    EXPECT_EQ(odt_apt_samples(t), since % 16 == 0) << i;
    EXPECT_EQ(t->layers[0].apt_n, static_cast<uint32_t>((since + 15) / 16)) << i;
    ASSERT_EQ(odt_trainer_step_resident(t, &train, &rec, nullptr), ODT_OK);
  }
  EXPECT_EQ(t->layers[0].apt_n, 0u);
  odt_epoch_record_t epoch;
  ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &epoch, nullptr), ODT_OK);
  EXPECT_EQ(epoch.layers[0].sum_n, 12u);
}

TEST(Apt, KStaysWithinItsLimits) {
  NetSpec net = one_layer();
  Random r(8);
  SampleSet set = random_samples(r, net, 8);
  odt_samples_t train = open_samples(set.blob);
  Rig rig(build_image(net));
  odt_run_spec_t spec = apt_spec(8, 2, 20);
  odt_step_record_t rec;
  odt_epoch_record_t epoch;
  for (bool up : {true, false}) {
    spec.apt.k_max = 11;
    spec.apt.t_min_q8 = up ? 65535 : 1;
    spec.apt.t_max_q8 = up ? 0 : 4;
    int lowest = 16;
    rig.start(spec);
    while (!odt_trainer_done(rig.trainer())) {
      while (!odt_trainer_epoch_complete(rig.trainer())) {
        ASSERT_EQ(odt_trainer_step_resident(rig.trainer(), &train, &rec, nullptr), ODT_OK);
        EXPECT_LE(rec.layers[0].k, 11);
        EXPECT_GE(rec.layers[0].k, 2);
        lowest = std::min<int>(lowest, rec.layers[0].k);
      }
      ASSERT_EQ(odt_trainer_end_epoch(rig.trainer(), 0, 0, &epoch, nullptr), ODT_OK);
    }
    if (up) {
      EXPECT_EQ(epoch.layers[0].k, 11);
      EXPECT_EQ(odt_trainer_layer_bytes(rig.trainer(), 0, epoch.layers[0].k), 16u)
          << "two rows of two words";
    } else {
      EXPECT_EQ(lowest, 2);
    }
  }
}

TEST(Apt, OffsetsMoveOnTheirOwnGrid) {
  // k_out 6 everywhere, k_off 6: g = 8. G_o = dy. d is a multiple of 256.
  NetSpec net = one_layer();
  net.layers[0].k = {6, 6};
  net.layers[0].weights = {64, 0, 0, 64, 127, -64};
  net.target_correct = {100, 100};
  net.target_wrong = {-100, -100};
  Rig rig(build_image(net));
  std::vector<uint8_t> blob = build_samples(DType::kS8, 3, {0}, {0, 0, 0});
  odt_samples_t train = open_samples(blob);
  odt_run_spec_t spec = apt_spec(1, 1, 1);
  spec.apt.offsets = true;
  spec.mu_offset = 1;
  rig.start(spec);
  odt_trainer_t* t = rig.trainer();
  EXPECT_EQ(t->layers[0].k_nom, 6);
  EXPECT_EQ(t->layers[0].k_off, 6);
  EXPECT_EQ(odt_offset_grid(&t->layers[0]), 8);
  odt_step_record_t rec;
  ASSERT_EQ(odt_trainer_step_resident(t, &train, &rec, nullptr), ODT_OK);
  // dy = (-100, 100): bits 7, T_o = 3, ws = 7 - 4 = 3, + 8: HALF_UP(-+100, 11) = 0.
  EXPECT_EQ(t->layers[0].off[0], 0);
  // U_o = (200 << 8 >> 11) / 2 = 12 < 77: one step finer.
  EXPECT_EQ(t->layers[0].k_off, 7);
  spec.mu_offset = 7;  // ws = max(0, 7 - 10) = 0, + 8: -100 * 2^-8 rounds to 0 and -0
  spec.layer_k[0] = 8;
  rig.start(spec);
  t = rig.trainer();
  EXPECT_EQ(odt_offset_grid(&t->layers[0]), 6);
  ASSERT_EQ(odt_trainer_step_resident(t, &train, &rec, nullptr), ODT_OK);
  // HALF_UP(-100, 6) = -2, HALF_UP(100, 6) = 2, times 64.
  EXPECT_EQ(t->layers[0].off[0], 128);
  EXPECT_EQ(t->layers[0].off[1], -128);
  EXPECT_EQ(t->layers[0].k_off, 8);  // U_o = (200 * 256 >> 6) / 2 = 400
}

TEST(Apt, MuIsClampedToTheRangeOfTheLayersK) {
  Random r(5);
  NetSpec net = small_dense();
  SampleSet set = random_samples(r, net, 8);
  odt_samples_t train = open_samples(set.blob);
  Rig rig(build_image(net));
  odt_run_spec_t spec = apt_spec(8, 8, 3);
  spec.apt.mode = ODT_APT_OFF;
  spec.apt.t_min_q8 = 0;
  spec.layer_k[1] = 14;
  const int8_t mus[3] = {-5, 1, -6};
  std::memcpy(spec.mu_weight, mus, 3);
  rig.start(spec);
  const int8_t first[3] = {-2, 1, -2}, second[3] = {-5, 1, -6};  // k = 6 PSTO; k = 14 HALF_UP
  for (int e = 0; e < 3; e++) {
    odt_step_record_t step;
    odt_epoch_record_t epoch;
    ASSERT_EQ(odt_trainer_step_resident(rig.trainer(), &train, &step, nullptr), ODT_OK);
    ASSERT_EQ(odt_trainer_end_epoch(rig.trainer(), 0, 0, &epoch, nullptr), ODT_OK);
    EXPECT_EQ(epoch.layers[0].mu, first[e]);
    EXPECT_EQ(step.layers[0].shift, std::max(0, step.layers[0].bits - first[e]));
    EXPECT_EQ(epoch.layers[1].mu, second[e]);
    EXPECT_EQ((epoch.alarms & ODT_ALARM_MU_CLAMPED) != 0, e != 1);
  }
}

}  // namespace
}  // namespace odt::testing

// Rule 1.12 and the canonical bytes: restore at every point, roll-back, steering, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fixture.h"
#include "internal.h"

namespace odt::testing {
namespace {

class AptState : public ::testing::Test {
 protected:
  Random r_{78};
  NetSpec net_ = small_dense();
  SampleSet set_ = random_samples(r_, net_, 61);
  odt_run_spec_t spec_ = plain_spec(61, 3, 3);  // 21 steps an epoch
  odt_samples_t train_ = open_samples(set_.blob);
  odt_error_t err_{};

  void SetUp() override {
    spec_.k = 7;
    for (int8_t& mu : spec_.mu_weight) mu = 1;
    spec_.shift_source = ODT_SHIFT_STALE;
    spec_.guard = true;
    spec_.heldout_samples = 21;
    spec_.layer_k[1] = 8;
    spec_.apt.mode = ODT_APT_QUARTERS;
    spec_.apt.k_max = 12;
    spec_.apt.t_min_q8 = 60;
    spec_.apt.t_max_q8 = 240;
    spec_.apt.offsets = true;
  }
  void advance(odt_trainer_t* t, uint32_t best_epoch = 1) {
    if (!odt_trainer_epoch_complete(t)) {
      odt_step_record_t rec;
      ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK) << err_.what;
      return;
    }
    odt_epoch_record_t rec;
    ASSERT_EQ(odt_trainer_end_epoch(t, t->epoch == best_epoch ? 15 : 9, 21, &rec, &err_), ODT_OK)
        << err_.what;
  }
  odt_status_t push_state(odt_trainer_t* t, const std::vector<uint8_t>& b, uint32_t piece) {
    for (uint32_t at = 0; at < b.size(); at += piece) {
      auto n = std::min<uint32_t>(piece, static_cast<uint32_t>(b.size()) - at);
      odt_status_t st = odt_state_write(t, at, b.data() + at, n, &err_);
      if (st != ODT_OK) return st;
    }
    return odt_state_write_end(t, &err_);
  }
  odt_status_t push_weights(odt_trainer_t* t, bool best, const std::vector<uint8_t>& b) {
    odt_status_t st =
        odt_weights_write(t, best, 0, b.data(), static_cast<uint32_t>(b.size()), &err_);
    return st == ODT_OK ? odt_weights_write_end(t, best, &err_) : st;
  }
  static std::vector<uint8_t> best_of(const odt_trainer_t* t) {
    std::vector<uint8_t> out(odt_best_size(t));
    odt_weights_read(t, true, 0, out.data(), static_cast<uint32_t>(out.size()));
    return out;
  }
};

TEST_F(AptState, ResumeAtEveryPointEqualsUndisturbed) {
  for (int mode : {ODT_APT_QUARTERS, ODT_APT_EPOCHS}) {
    for (bool offsets : {true, false}) {
      spec_.apt.mode = static_cast<uint8_t>(mode);
      spec_.apt.offsets = offsets;
      Rig whole(build_image(net_));
      whole.start(spec_);
      odt_trainer_t* t = whole.trainer();
      odt_trainer_set_start(t, 8, 21);
      std::vector<std::vector<uint8_t>> states, bests;
      std::vector<int> seen[2];
      while (!odt_trainer_done(t)) {
        states.push_back(state_of(t));
        bests.push_back(best_of(t));
        for (int i = 0; i < 2; i++) seen[i].push_back(t->layers[i].k);
        advance(t);
      }
      // The run must go through what is to be tested: other k than at the start, and over 8.
      EXPECT_NE(seen[0].front(), seen[0].back());
      seen[0].insert(seen[0].end(), seen[1].begin(), seen[1].end());
      EXPECT_GT(*std::max_element(seen[0].begin(), seen[0].end()), 8);
      EXPECT_LT(*std::min_element(seen[0].begin(), seen[0].end()), 8);
      std::vector<uint8_t> final_state = state_of(t);
      for (size_t i = 0; i < states.size(); i++) {
        Rig other(build_image(net_));
        other.start(spec_);
        bool best_first = i % 2 == 0;
        if (best_first) {
          ASSERT_EQ(push_weights(other.trainer(), true, bests[i]), ODT_OK);
        }
        ASSERT_EQ(push_state(other.trainer(), states[i], 1 + static_cast<uint32_t>(i) * 7), ODT_OK)
            << err_.what << " " << err_.got;
        if (!best_first) {
          ASSERT_EQ(push_weights(other.trainer(), true, bests[i]), ODT_OK);
        }
        EXPECT_FALSE(odt_trainer_best_missing(other.trainer()));
        ASSERT_EQ(state_of(other.trainer()), states[i]);
        while (!odt_trainer_done(other.trainer())) advance(other.trainer());
        ASSERT_EQ(state_of(other.trainer()), final_state) << "resumed at " << i;
      }
    }
  }
}

TEST_F(AptState, RollBackRestoresEachLayersK) {
  spec_.apt.offsets = false;
  spec_.apt.t_min_q8 = 65535;
  spec_.apt.t_max_q8 = 0;
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  odt_trainer_set_start(t, 20, 21);
  std::vector<uint8_t> start = weights_of(t);
  while (!odt_trainer_done(t)) {
    if (t->step == 40) {
      EXPECT_EQ(t->layers[0].k, 12);
      EXPECT_EQ(t->layers[0].dtype, ODT_S16);
      EXPECT_NE(odt_best_size(t), odt_weights_size(t));
      EXPECT_EQ(best_of(t), start);
    }
    advance(t);
  }
  EXPECT_EQ(weights_of(t), start);
  EXPECT_EQ(t->layers[0].k, 7);
  EXPECT_EQ(t->layers[1].k, 8);
  EXPECT_EQ(t->layers[0].dtype, ODT_S8);
}

TEST_F(AptState, LayoutOfExtensionAndLayers) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  advance(rig.trainer());
  const odt_layer_t* l = rig.trainer()->layers;
  std::vector<uint8_t> s = state_of(rig.trainer());
  ASSERT_EQ(s.size(), 176u + 32 + (44 + 96 + 32) + (44 + 32 + 16));
  EXPECT_EQ(s[73], 0);  // by each layer's k
  EXPECT_EQ(s[110], 32);
  const uint8_t extension[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 12, 1, 7, 60, 0, 240, 0,
                                 0, 8, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0,  0, 0,   0};
  EXPECT_EQ(std::memcmp(s.data() + 176, extension, 32), 0);
  const uint8_t head[12] = {7, 1, l[0].b_prev, 7, 96, 0, 0, 0, 8, 0, 0, 0};
  EXPECT_EQ(std::memcmp(s.data() + 208, head, 12), 0);
  uint64_t sums[4];
  std::memcpy(sums, s.data() + 220, 32);
  EXPECT_EQ(sums[0], l[0].apt_a);
  EXPECT_GT(sums[0], 0u);
  EXPECT_EQ(sums[1], 1u);
  EXPECT_EQ(sums[2], l[0].apt_off_a);
  EXPECT_EQ(sums[3], 1u);
  // Without any of it the state is as it always was.
  odt_run_spec_t plain = plain_spec(61, 3, 3);
  rig.start(plain);
  s = state_of(rig.trainer());
  EXPECT_EQ(s.size(), 176u + (28 + 96 + 32) + (28 + 32 + 16));
  EXPECT_EQ(s[110], 0);
  EXPECT_EQ(s[73], ODT_ROUND_PSTO);
}

TEST_F(AptState, HostileStatesAreRefused) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  for (int i = 0; i < 3; i++) advance(rig.trainer());
  std::vector<uint8_t> good = state_of(rig.trainer());
  auto refused = [&](size_t at, int value, const char* what) {
    std::vector<uint8_t> bad = good;
    bad[at] = static_cast<uint8_t>(value);
    Rig other(build_image(net_));
    other.start(spec_);
    EXPECT_NE(push_state(other.trainer(), bad, 50), ODT_OK) << at << " " << value;
    EXPECT_STREQ(err_.what, what) << at << " " << value;
    odt_step_record_t rec;
    EXPECT_EQ(odt_trainer_step_resident(other.trainer(), &train_, &rec, &err_),
              ODT_FAILED_PRECONDITION);
    EXPECT_EQ(push_state(other.trainer(), good, 50), ODT_OK);
  };
  refused(73, ODT_ROUND_PSTO, "state: rounding");
  refused(110, 0, "state: extension bytes");
  refused(176, 1, "state: lr, blocked");
  refused(184, 2, "state: apt");
  refused(185, 13, "state: apt");
  refused(187, 8, "state: k");
  refused(188, 61, "state: apt");
  refused(193, 9, "state: layer_k");
  refused(207, 1, "state: layer_k");
  refused(208, 1, "layer: k");
  refused(208, 13, "layer: k");
  refused(208, 9, "layer: kind, k, shape or sizes");  // dtype is s8
  refused(211, 1, "state: layer: k_off");
  refused(211, 13, "state: layer: k_off");
  refused(228, 2, "state: layer: apt_n");
  refused(235, 1, "state: layer: apt_n");
  refused(244, 2, "state: layer: apt_n");
}

TEST_F(AptState, WeightsBringTheirK) {
  Rig a(build_image(net_)), b(build_image(net_));
  a.start(spec_);
  for (int i = 0; i < 30; i++) advance(a.trainer());
  ASSERT_NE(a.trainer()->layers[0].k, 7);
  std::vector<uint8_t> w = weights_of(a.trainer());
  b.start(spec_);
  advance(b.trainer());
  ASSERT_EQ(push_weights(b.trainer(), false, w), ODT_OK) << err_.what;
  EXPECT_EQ(weights_of(b.trainer()), w);
  EXPECT_EQ(b.trainer()->layers[0].k, a.trainer()->layers[0].k);
  EXPECT_EQ(b.trainer()->layers[0].apt_n, 0u);
  // A run whose k is fixed takes no other.
  odt_run_spec_t fixed = plain_spec(61, 3, 3);
  fixed.k = 7;
  b.start(fixed);
  EXPECT_EQ(push_weights(b.trainer(), false, w), ODT_FAILED_PRECONDITION);
}

TEST_F(AptState, SteeringIsPartOfTheState) {
  spec_.apt = {};
  spec_.apt.k_max = 12;  // the host alone
  Rig a(build_image(net_)), b(build_image(net_));
  a.start(spec_);
  odt_trainer_t* t = a.trainer();
  odt_trainer_set_start(t, 8, 21);
  for (int i = 0; i < 5; i++) advance(t);
  EXPECT_EQ(t->layers[0].k, 7);
  ASSERT_EQ(odt_trainer_set_k(t, 0, 11, &err_), ODT_OK);
  EXPECT_EQ(t->layers[0].k, 11);
  EXPECT_EQ(t->layers[0].dtype, ODT_S16);
  EXPECT_EQ(t->layers[0].b_prev, 0);
  EXPECT_NE(t->layers[1].b_prev, 0);
  b.start(spec_);
  ASSERT_EQ(push_state(b.trainer(), state_of(t), 33), ODT_OK) << err_.what;
  ASSERT_EQ(push_weights(b.trainer(), true, best_of(t)), ODT_OK);
  while (!odt_trainer_done(t)) {
    advance(t);
    advance(b.trainer());
    ASSERT_EQ(state_of(t), state_of(b.trainer()));
  }
  EXPECT_EQ(odt_trainer_set_k(t, 0, 5, &err_), ODT_FAILED_PRECONDITION);
}

TEST_F(AptState, SteeringHasLimits) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  advance(t);
  EXPECT_EQ(t->layers[0].apt_n, 1u);
  EXPECT_EQ(odt_trainer_set_k(t, 0, 7, &err_), ODT_OK);
  EXPECT_EQ(t->layers[0].apt_n, 1u) << "no change of k";
  EXPECT_EQ(odt_trainer_set_k(t, 0, 6, &err_), ODT_OK);
  EXPECT_EQ(t->layers[0].apt_n, 0u);
  EXPECT_EQ(odt_trainer_set_k(t, 2, 6, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(err_.limit_hi, 1);
  for (int k : {1, 13}) {
    EXPECT_EQ(odt_trainer_set_k(t, 1, static_cast<uint8_t>(k), &err_), ODT_INVALID_ARGUMENT);
    EXPECT_EQ(err_.limit_lo, 2);
    EXPECT_EQ(err_.limit_hi, 12);
    EXPECT_EQ(err_.got, k);
  }
  while (!odt_trainer_epoch_complete(t)) advance(t);
  EXPECT_EQ(odt_trainer_set_k(t, 0, 8, &err_), ODT_FAILED_PRECONDITION);
  rig.start(plain_spec(61, 3, 3));
  EXPECT_EQ(odt_trainer_set_k(rig.trainer(), 0, 8, &err_), ODT_FAILED_PRECONDITION);
}

TEST_F(AptState, SettingsAndTheirLimits) {
  Rig rig(build_image(net_));
  auto check = [&](const odt_run_spec_t& s) { return odt_run_spec_check(&s, &rig.model(), &err_); };
  auto bad = [&](const char* what, int lo, int hi, auto change) {
    odt_run_spec_t s = spec_;
    ASSERT_EQ(check(s), ODT_OK) << err_.what;
    change(s);
    EXPECT_EQ(check(s), ODT_INVALID_ARGUMENT) << what;
    EXPECT_STREQ(err_.what, what);
    EXPECT_EQ(err_.limit_lo, lo) << what;
    EXPECT_EQ(err_.limit_hi, hi) << what;
  };
  bad("apt.mode", 0, 2, [](auto& s) { s.apt.mode = 3; });
  bad("apt.k_max", 2, 16, [](auto& s) { s.apt.k_max = 17; });
  bad("apt.k_max", 2, 16, [](auto& s) { s.apt.k_max = 0; });
  bad("apt.t_min_q8", 1, 65535, [](auto& s) { s.apt.t_min_q8 = 0; });
  bad("apt.t_max_q8 (0, or at least 4 t_min_q8)", 240, 65535,
      [](auto& s) { s.apt.t_max_q8 = 239; });
  bad("layer_k", 2, 12, [](auto& s) { s.layer_k[1] = 13; });
  bad("layer_k", 2, 12, [](auto& s) { s.k = 13; });
  bad("layer_k", 2, 12, [](auto& s) { s.layer_k[1] = 1; });
  bad("layer_k", 0, 0, [](auto& s) { s.layer_k[2] = 8; });  // the model has two layers
  bad("apt.t_min_q8", 0, 0, [](auto& s) { s.apt.mode = ODT_APT_OFF, s.apt.offsets = false; });
  bad("apt.offsets", 0, 0, [](auto& s) { s.apt.mode = ODT_APT_OFF; });
  // The widest range of what k can become: HALF_UP at 12, PSTO at 8.
  bad("mu_weight (for any k in reach)", -4, 4, [](auto& s) { s.mu_weight[1] = -5; });
  bad("mu_weight (for any k in reach)", -8, 4,
      [](auto& s) { s.apt.k_max = 16, s.mu_weight[1] = -9; });
  odt_run_spec_t literal = plain_spec(61, 3, 3);
  literal.rule_set = ODT_RULE_NITI_LITERAL;
  ASSERT_EQ(check(literal), ODT_OK) << err_.what;
  literal.layer_k[1] = 9;
  EXPECT_EQ(check(literal), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "layer_k, apt (NITI_LITERAL)");
}

TEST_F(AptState, ArenaHoldsKMaxAndNoMore) {
  Rig rig(build_image(net_));
  odt_memory_plan_t low, high;
  spec_.apt.k_max = 8;
  odt_trainer_plan(&rig.model(), &spec_, true, &low);
  spec_.apt.k_max = 9;
  odt_trainer_plan(&rig.model(), &spec_, true, &high);
  EXPECT_EQ(high.weights_bytes, low.weights_bytes + 96 + 32);
  EXPECT_EQ(rig.try_start(spec_, true, 0), ODT_OK);
  EXPECT_EQ(rig.try_start(spec_, true, -8), ODT_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace odt::testing

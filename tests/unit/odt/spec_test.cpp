// Limits of a run's settings: each at its limit and one beyond.
#include <gtest/gtest.h>

#include "fixture.h"

namespace odt::testing {
namespace {

class Spec : public ::testing::Test {
 protected:
  Rig rig_{build_image(small_dense())};
  odt_run_spec_t spec_ = plain_spec(100, 8, 3);
  odt_error_t err_{};

  odt_status_t check() { return odt_run_spec_check(&spec_, &rig_.model(), &err_); }
  void mu(int v) {
    for (int8_t& m : spec_.mu_weight) m = static_cast<int8_t>(v);
  }
  template <class T>
  void limits(T& field, int lo, int hi, const char* what) {
    T keep = field;
    for (int v : {lo, hi}) {
      field = static_cast<T>(v);
      EXPECT_EQ(check(), ODT_OK) << what << " " << v << ": " << err_.what;
    }
    for (int v : {lo - 1, hi + 1}) {
      field = static_cast<T>(v);
      if (static_cast<int64_t>(field) != v) continue;  // not expressible
      EXPECT_EQ(check(), ODT_INVALID_ARGUMENT) << what << " " << v;
      EXPECT_STREQ(err_.what, what);
      EXPECT_EQ(err_.got, v);
      EXPECT_EQ(err_.limit_lo, lo);
      EXPECT_EQ(err_.limit_hi, hi);
    }
    field = keep;
  }
};

TEST_F(Spec, SimpleRanges) {
  mu(2);
  spec_.mu_offset = 0;
  limits(spec_.batch, 1, 256, "batch");
  limits(spec_.epochs, 1, 65535, "epochs");
  limits(spec_.train_samples, 1, 65535, "train_samples");
  limits(spec_.mu_offset, -8, 7, "mu_offset");
  limits(spec_.dead_zone, 0, 127, "dead_zone");
  limits(spec_.rounding, 0, 4, "rounding");
  limits(spec_.loss, 1, 2, "loss");
  limits(spec_.shift_source, 1, 2, "shift_source");
  limits(spec_.rule_set, 1, 2, "rule_set");
}

TEST_F(Spec, KFrom2To16) {
  mu(4);
  spec_.rounding = ODT_ROUND_PSTO;
  limits(spec_.k, 2, 16, "k");
}

TEST_F(Spec, MuWeightByKRoundingAndBatch) {
  for (int rounding = 1; rounding <= 4; rounding++) {
    for (int k = 2; k <= 16; k++) {
      for (int batch : {1, 8}) {
        spec_.rounding = static_cast<uint8_t>(rounding);
        spec_.k = static_cast<uint8_t>(k);
        spec_.batch = static_cast<uint16_t>(batch);
        int lo = -(k - 8) - (rounding >= ODT_ROUND_PSTO ? 4 : 0), hi = batch == 1 ? 2 : 4;
        for (int v = -14; v <= 8; v++) {
          mu(v);
          bool ok = v >= lo && v <= hi;
          EXPECT_EQ(check(), ok ? ODT_OK : ODT_INVALID_ARGUMENT)
              << "rounding " << rounding << " k " << k << " batch " << batch << " mu " << v;
          if (ok) continue;
          EXPECT_EQ(err_.got, v);
          EXPECT_EQ(err_.limit_lo, lo);
          EXPECT_EQ(err_.limit_hi, hi);
          EXPECT_EQ(err_.index, k);
        }
      }
    }
  }
}

TEST_F(Spec, DefaultRoundingFollowsK) {
  spec_.k = 8;  // PSTO: four more below
  mu(-4);
  EXPECT_EQ(check(), ODT_OK);
  spec_.k = 9;  // HALF_UP
  mu(-2);
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  mu(-1);
  EXPECT_EQ(check(), ODT_OK);
}

TEST_F(Spec, EachStageIsChecked) {
  for (int i = 0; i < 3; i++) {
    mu(0);
    spec_.mu_weight[i] = 5;
    EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  }
}

TEST_F(Spec, ASchedulesMuIsClampedAConstantIsNot) {
  spec_.k = 15;
  spec_.mu_weight[0] = 9;
  spec_.mu_weight[1] = 0;
  spec_.mu_weight[2] = -9;
  EXPECT_TRUE(odt_run_spec_clamp_mu(&spec_));
  EXPECT_EQ(spec_.mu_weight[0], 4);
  EXPECT_EQ(spec_.mu_weight[1], 0);
  EXPECT_EQ(spec_.mu_weight[2], -7);
  EXPECT_FALSE(odt_run_spec_clamp_mu(&spec_));
  EXPECT_EQ(check(), ODT_OK);
  mu(9);
  EXPECT_FALSE(odt_run_spec_clamp_mu(&spec_));
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
}

TEST_F(Spec, LiteralFixesKShiftAndRounding) {
  spec_.rule_set = ODT_RULE_NITI_LITERAL;
  EXPECT_EQ(check(), ODT_OK);
  spec_.k = 9;
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  spec_.k = 8;
  spec_.shift_source = ODT_SHIFT_STALE;
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  spec_.shift_source = ODT_SHIFT_EXACT;
  spec_.rounding = ODT_ROUND_PSTO;
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
}

TEST_F(Spec, GuardNeedsHeldOut) {
  spec_.guard = true;
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "guard without heldout_samples");
  spec_.heldout_samples = 1;
  EXPECT_EQ(check(), ODT_OK);
}

TEST_F(Spec, LossMustBeInTheImage) {
  NetSpec net = small_dense();
  net.ce_scale = 0;
  Rig no_ce(build_image(net));
  spec_.loss = ODT_LOSS_CE;
  EXPECT_EQ(odt_run_spec_check(&spec_, &no_ce.model(), &err_), ODT_INVALID_ARGUMENT);
  net = small_dense();
  net.target_correct.clear();
  net.target_wrong.clear();
  Rig no_mse(build_image(net));
  EXPECT_EQ(odt_run_spec_check(&spec_, &no_mse.model(), &err_), ODT_OK);
  spec_.loss = ODT_LOSS_MSE;
  EXPECT_EQ(odt_run_spec_check(&spec_, &no_mse.model(), &err_), ODT_INVALID_ARGUMENT);
}

TEST_F(Spec, AllZeroClassWeightsAreRefused) {
  for (uint8_t& w : spec_.class_weights) w = 0;
  EXPECT_EQ(check(), ODT_INVALID_ARGUMENT);
  spec_.class_weights[3] = 1;
  EXPECT_EQ(check(), ODT_OK);
}

TEST_F(Spec, ArenaOneByteShort) {
  EXPECT_EQ(rig_.try_start(spec_, true), ODT_OK);
  EXPECT_EQ(rig_.try_start(spec_, true, -1), ODT_RESOURCE_EXHAUSTED);
  EXPECT_EQ(rig_.err.got, rig_.err.limit_lo - 1);
}

}  // namespace
}  // namespace odt::testing

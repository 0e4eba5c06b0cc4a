// Canonical bytes: layout, random access, restore at every step, refusals.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"

namespace odt::testing {
namespace {

uint32_t le32(const std::vector<uint8_t>& b, size_t at) {
  uint32_t v;
  std::memcpy(&v, b.data() + at, 4);
  return v;
}

std::vector<uint8_t> sha(const std::vector<uint8_t>& b) {
  odt_sha256_t s;
  odt_sha256_init(&s);
  odt_sha256_update(&s, b.data(), static_cast<uint32_t>(b.size()));
  std::vector<uint8_t> hash(32);
  odt_sha256_final(&s, hash.data());
  return hash;
}

class State : public ::testing::Test {
 protected:
  Random r_{77};
  NetSpec net_ = small_dense();
  SampleSet set_ = random_samples(r_, net_, 21);
  odt_run_spec_t spec_ = plain_spec(21, 4, 3);
  odt_samples_t train_ = open_samples(set_.blob);

  void SetUp() override {
    spec_.k = 12;
    spec_.shift_source = ODT_SHIFT_STALE;
    spec_.guard = true;
    spec_.heldout_samples = 21;
    for (uint8_t& b : spec_.sample_set_hash) b = 0x5C;
  }
  // One step, or the end of the epoch with a made-up held-out count.
  void advance(odt_trainer_t* t) {
    odt_error_t err{};
    if (!odt_trainer_epoch_complete(t)) {
      odt_step_record_t rec;
      ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err), ODT_OK) << err.what;
      return;
    }
    const uint32_t heldout[] = {9, 14, 11};
    odt_epoch_record_t rec;
    ASSERT_EQ(odt_trainer_end_epoch(t, heldout[t->epoch], 21, &rec, &err), ODT_OK) << err.what;
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
  odt_error_t err_{};
};

TEST_F(State, WeightsLayout) {
  spec_.k = 8;
  Rig rig(build_image(net_));
  rig.start(spec_);
  std::vector<uint8_t> w = weights_of(rig.trainer());
  ASSERT_EQ(w.size(), 44u + 20 + 96 + 32 + 20 + 32 + 16);
  EXPECT_EQ(std::memcmp(w.data(), "ODTW", 4), 0);
  EXPECT_EQ(w[4], 1);
  EXPECT_EQ(w[6], ODT_RULES_VERSION);
  EXPECT_EQ(w[8], ODT_RULE_NITI);
  EXPECT_EQ(w[9], 2);
  EXPECT_EQ(std::memcmp(w.data() + 12, rig.model().hash, 32), 0);
  const uint8_t layer[20] = {3, 1, 8, 2, 12, 0, 8, 0, 0, 0, 0, 0, 96, 0, 0, 0, 8, 0, 0, 0};
  EXPECT_EQ(std::memcmp(w.data() + 44, layer, 20), 0);
  EXPECT_EQ(std::memcmp(w.data() + 64, net_.layers[0].weights.data(), 96), 0);
  EXPECT_EQ(std::memcmp(w.data() + 160, net_.layers[0].offsets.data(), 32), 0);
  uint8_t hash[32];
  odt_weights_hash(rig.trainer(), false, hash);
  EXPECT_EQ(std::vector<uint8_t>(hash, hash + 32), sha(w));
}

TEST_F(State, StateLayout) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  ASSERT_EQ(odt_trainer_set_start(t, 8, 21), ODT_OK);
  std::vector<uint8_t> start_weights = weights_of(t);
  for (int i = 0; i < 8; i++) advance(t);  // 6 steps, end of epoch, 1 step
  std::vector<uint8_t> s = state_of(t);
  ASSERT_EQ(s.size(), 176u + 28 + 192 + 32 + 28 + 64 + 16);
  EXPECT_EQ(std::memcmp(s.data(), "ODTT", 4), 0);
  EXPECT_EQ(std::memcmp(s.data() + 8, rig.model().hash, 32), 0);
  EXPECT_EQ(s[40], 0x5C);
  EXPECT_EQ(s[72], ODT_RULE_NITI);
  EXPECT_EQ(s[73], ODT_ROUND_HALF_UP);  // default of k = 12, resolved
  EXPECT_EQ(s[74], ODT_LOSS_MSE);
  EXPECT_EQ(s[75], ODT_SHIFT_STALE);
  EXPECT_EQ(s[81], 1);  // stage: epoch 1 of 3
  EXPECT_EQ(s[82], 1);
  EXPECT_EQ(s[83], 2);
  EXPECT_EQ(s[84], 4);
  EXPECT_EQ(s[86], 3);
  EXPECT_EQ(le32(s, 88), 21u);
  EXPECT_EQ(le32(s, 92), 21u);
  EXPECT_EQ(le32(s, 104), 7u);
  EXPECT_EQ(s[108], 1);
  EXPECT_EQ(le32(s, 112), 4u);
  EXPECT_EQ(le32(s, 116), 8u);
  EXPECT_EQ(le32(s, 120), 6u);
  EXPECT_EQ(le32(s, 124), 9u);
  EXPECT_EQ(std::vector<uint8_t>(s.begin() + 128, s.begin() + 160), sha(weights_of(t, true)));
  std::vector<uint8_t> cw = sha(std::vector<uint8_t>(4, 64));
  EXPECT_EQ(std::memcmp(s.data() + 172, cw.data(), 4), 0);
  EXPECT_EQ(s[176], 12);
  EXPECT_EQ(s[177], 3);
  EXPECT_EQ(s[178], t->layers[0].b_prev);
  EXPECT_EQ(le32(s, 180), 96u);
  EXPECT_EQ(le32(s, 184), 8u);
  Values values;
  for (int i = 0; i < 96; i++)
    values.push_back(static_cast<int16_t>(s[204 + 2 * i] | s[205 + 2 * i] << 8));
  EXPECT_EQ(values, stored(t->layers[0]));
  uint8_t hash[32];
  odt_state_hash(t, hash);
  EXPECT_EQ(std::vector<uint8_t>(hash, hash + 32), sha(s));
}

TEST_F(State, RandomAccessReadsTheSameBytes) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  for (int i = 0; i < 3; i++) advance(rig.trainer());
  std::vector<uint8_t> whole = state_of(rig.trainer());
  for (int i = 0; i < 500; i++) {
    auto at = static_cast<uint32_t>(r_.range(0, static_cast<int>(whole.size()) - 1));
    auto n = static_cast<uint32_t>(r_.range(0, static_cast<int>(whole.size() - at)));
    std::vector<uint8_t> part(n);
    odt_state_read(rig.trainer(), at, part.data(), n);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + at));
  }
}

TEST_F(State, ResumeAtEveryPointEqualsUndisturbed) {
  for (int shift : {ODT_SHIFT_EXACT, ODT_SHIFT_STALE}) {
    for (int k : {5, 8, 12}) {
      spec_.shift_source = static_cast<uint8_t>(shift);
      spec_.k = static_cast<uint8_t>(k);
      spec_.mu_weight[0] = 2;
      spec_.mu_weight[1] = 1;
      spec_.mu_weight[2] = 0;
      Rig whole(build_image(net_));
      whole.start(spec_);
      odt_trainer_set_start(whole.trainer(), 8, 21);
      std::vector<std::vector<uint8_t>> states, bests;
      while (!odt_trainer_done(whole.trainer())) {
        states.push_back(state_of(whole.trainer()));
        bests.push_back(weights_of(whole.trainer(), true));
        advance(whole.trainer());
      }
      std::vector<uint8_t> final_state = state_of(whole.trainer());
      for (size_t i = 0; i < states.size(); i++) {
        Rig other(build_image(net_));
        other.start(spec_);
        bool best_first = i % 2 == 0;
        if (best_first) {
          ASSERT_EQ(push_weights(other.trainer(), true, bests[i]), ODT_OK);
        }
        ASSERT_EQ(push_state(other.trainer(), states[i], 1 + static_cast<uint32_t>(i) * 7), ODT_OK)
            << err_.what;
        EXPECT_EQ(odt_trainer_best_missing(other.trainer()), !best_first);
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

TEST_F(State, MissingBestStopsTheLastEpochUnlessBeaten) {
  Rig a(build_image(net_)), b(build_image(net_));
  a.start(spec_);
  odt_trainer_set_start(a.trainer(), 20, 21);
  for (int i = 0; i < 3; i++) advance(a.trainer());
  b.start(spec_);
  ASSERT_EQ(push_state(b.trainer(), state_of(a.trainer()), 1000), ODT_OK);
  EXPECT_TRUE(odt_trainer_best_missing(b.trainer()));
  odt_epoch_record_t rec;
  while (!(odt_trainer_epoch_complete(b.trainer()) && b.trainer()->epoch == 2))
    advance(b.trainer());
  EXPECT_EQ(odt_trainer_end_epoch(b.trainer(), 20, 21, &rec, &err_), ODT_FAILED_PRECONDITION);
  EXPECT_EQ(odt_trainer_end_epoch(b.trainer(), 21, 21, &rec, &err_), ODT_OK);
}

TEST_F(State, EverySettingMustMatch) {
  Rig a(build_image(net_));
  a.start(spec_);
  advance(a.trainer());
  std::vector<uint8_t> good = state_of(a.trainer());
  for (size_t at = 0; at < 176 + 12; at++) {
    // Free fields: start, best and its hash, sums, b_prev (unit-tested apart).
    bool free = (at >= 116 && at < 172) || at == 178;
    std::vector<uint8_t> bad = good;
    bad[at] ^= 0x40;
    Rig b(build_image(net_));
    b.start(spec_);
    odt_status_t st = push_state(b.trainer(), bad, 64);
    if (free) continue;
    EXPECT_NE(st, ODT_OK) << at;
    odt_step_record_t rec;
    EXPECT_EQ(odt_trainer_step_resident(b.trainer(), &train_, &rec, &err_), ODT_FAILED_PRECONDITION)
        << at;
    EXPECT_EQ(push_state(b.trainer(), good, 64), ODT_OK) << at;
  }
}

TEST_F(State, HostileValuesAreRefused) {
  Rig a(build_image(net_));
  a.start(spec_);
  std::vector<uint8_t> w = weights_of(a.trainer());
  auto with = [&](int16_t v) {
    std::vector<uint8_t> bad = w;
    std::memcpy(bad.data() + 64, &v, 2);
    return push_weights(a.trainer(), false, bad);
  };
  EXPECT_EQ(with((127 << 4) + 7), ODT_OK);
  EXPECT_EQ(with(-(128 << 4)), ODT_OK);
  EXPECT_EQ(with((127 << 4) + 8), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(with(-(128 << 4) - 1), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(with(32767), ODT_INVALID_ARGUMENT);
  std::vector<uint8_t> s = [&] {
    EXPECT_EQ(push_weights(a.trainer(), false, w), ODT_OK);
    return state_of(a.trainer());
  }();
  s[178] = 64;  // b_prev
  EXPECT_EQ(push_state(a.trainer(), s, 100), ODT_INVALID_ARGUMENT);
}

TEST_F(State, WritesComeInOrderAndWhole) {
  Rig a(build_image(net_));
  a.start(spec_);
  std::vector<uint8_t> w = weights_of(a.trainer());
  EXPECT_EQ(odt_weights_write(a.trainer(), false, 4, w.data(), 4, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(odt_weights_write(a.trainer(), false, 0, w.data(), 50, &err_), ODT_OK);
  EXPECT_EQ(odt_weights_write(a.trainer(), false, 51, w.data(), 1, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(odt_weights_write_end(a.trainer(), false, &err_), ODT_INVALID_ARGUMENT);
  odt_step_record_t rec;
  EXPECT_EQ(odt_trainer_step_resident(a.trainer(), &train_, &rec, &err_), ODT_FAILED_PRECONDITION);
  std::vector<uint8_t> more = w;
  more.push_back(0);
  EXPECT_EQ(push_weights(a.trainer(), false, more), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(push_weights(a.trainer(), false, w), ODT_OK);
  EXPECT_EQ(odt_trainer_step_resident(a.trainer(), &train_, &rec, &err_), ODT_OK);
}

TEST_F(State, WeightsOfAnotherModelAreRefused) {
  Rig a(build_image(net_));
  NetSpec other_net = net_;
  other_net.layers[0].weights[0] ^= 1;
  Rig b(build_image(other_net));
  a.start(spec_);
  b.start(spec_);
  EXPECT_EQ(push_weights(b.trainer(), false, weights_of(a.trainer())), ODT_FAILED_PRECONDITION);
  EXPECT_STREQ(err_.what, "weights: model hash");
}

TEST_F(State, PushedWeightsResetTheStaleShift) {
  Rig a(build_image(net_));
  a.start(spec_);
  for (int i = 0; i < 3; i++) advance(a.trainer());
  EXPECT_NE(a.trainer()->layers[0].b_prev, 0);
  ASSERT_EQ(push_weights(a.trainer(), false, weights_of(a.trainer())), ODT_OK);
  EXPECT_EQ(a.trainer()->layers[0].b_prev, 0);
  EXPECT_EQ(a.trainer()->layers[1].b_prev, 0);
}

// A best of the run's own takes the place of one that was only half written, for good.
TEST_F(State, HalfAWrittenBestEndsWithTheRunsOwnBest) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  ASSERT_EQ(odt_trainer_set_start(t, 5, 21), ODT_OK);
  std::vector<uint8_t> other = weights_of(t, true);
  auto n = static_cast<uint32_t>(other.size());
  ASSERT_EQ(odt_weights_write(t, true, 0, other.data(), n / 2, &err_), ODT_OK);
  EXPECT_TRUE(odt_trainer_best_missing(t));
  while (!odt_trainer_epoch_complete(t)) advance(t);
  advance(t);  // better than the start
  EXPECT_FALSE(odt_trainer_best_missing(t));
  std::vector<uint8_t> best = weights_of(t);
  EXPECT_EQ(weights_of(t, true), best);
  EXPECT_EQ(odt_weights_write(t, true, n / 2, other.data() + n / 2, n - n / 2, &err_),
            ODT_INVALID_ARGUMENT);
  EXPECT_EQ(odt_weights_write_end(t, true, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(weights_of(t, true), best);
}

// What a refused write left behind is no best, even under a state that names its hash.
TEST_F(State, RefusedValuesNeverBecomeTheBest) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  ASSERT_EQ(odt_trainer_set_start(t, 5, 21), ODT_OK);
  std::vector<uint8_t> state = state_of(t), bad = weights_of(t, true);
  bad[64] = 0x00;
  bad[65] = 0x80;  // first weight -32768: not of k 12
  EXPECT_EQ(push_weights(t, true, bad), ODT_INVALID_ARGUMENT);
  std::vector<uint8_t> hash(32);
  odt_weights_hash(t, true, hash.data());
  std::copy(hash.begin(), hash.end(), state.begin() + 128);
  ASSERT_EQ(push_state(t, state, 1000), ODT_OK) << err_.what;
  EXPECT_TRUE(odt_trainer_best_missing(t));
}

}  // namespace
}  // namespace odt::testing

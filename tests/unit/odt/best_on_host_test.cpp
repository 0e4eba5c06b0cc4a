// Rule 1.10 where the best's weights stay with the host: bit for bit the run that keeps them
// itself.
#include <gtest/gtest.h>

#include <cstring>

#include "dfp_fixture.h"
#include "fixture.h"

namespace odt::testing {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes best_of(const odt_trainer_t* t) {
  Bytes out(odt_best_size(t));
  odt_weights_read(t, true, 0, out.data(), static_cast<uint32_t>(out.size()));
  return out;
}

odt_status_t write_best(odt_trainer_t* t, const Bytes& b, uint32_t piece, odt_error_t* err) {
  for (uint32_t at = 0; at < b.size(); at += piece) {
    auto n = std::min<uint32_t>(piece, static_cast<uint32_t>(b.size()) - at);
    odt_status_t st = odt_weights_write(t, true, at, b.data() + at, n, err);
    if (st != ODT_OK) return st;
  }
  return odt_weights_write_end(t, true, err);
}

// A trainer that keeps the best itself and one whose best this test keeps, side by side.
class Pair {
 public:
  Pair(const NetSpec& net, const SampleSet& set, odt_run_spec_t spec)
      : train_(open_samples(set.blob)), here_(build_image(net)), there_(build_image(net)) {
    spec.guard = true;
    spec.heldout_samples = 21;
    here_.start(spec);
    spec.best_on_host = true;
    there_.start(spec);
  }
  odt_trainer_t* here() { return here_.trainer(); }
  odt_trainer_t* there() { return there_.trainer(); }

  // The host's part: takes the best, and lets the run go on.
  void keep() {
    if (odt_trainer_best_waits(there()) != ODT_BEST_UNREAD) return;
    odt_step_record_t rec;
    EXPECT_EQ(odt_trainer_step_resident(there(), &train_, &rec, &err_), ODT_FAILED_PRECONDITION);
    kept_ = best_of(there());
    EXPECT_EQ(kept_, best_of(here()));
    uint8_t hash[32] = {};
    EXPECT_EQ(odt_trainer_best_kept(there(), hash), ODT_FAILED_PRECONDITION);
    odt_weights_hash(there(), true, hash);
    EXPECT_EQ(odt_trainer_best_kept(there(), hash), ODT_OK);
    EXPECT_EQ(odt_trainer_best_kept(there(), hash), ODT_OK) << "may be repeated";
    kept_times_++;
  }
  void run(const std::vector<uint32_t>& scores) {
    for (odt_trainer_t* t : {here(), there()})
      ASSERT_EQ(odt_trainer_set_start(t, scores[0], 21), 0);
    keep();
    for (size_t e = 1; e < scores.size(); e++) {
      for (odt_trainer_t* t : {here(), there()}) {
        odt_step_record_t rec;
        while (!odt_trainer_epoch_complete(t)) {
          ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK) << err_.what;
        }
      }
      end_epoch(scores[e]);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(odt_trainer_done(there()));
    EXPECT_EQ(weights_of(here()), weights_of(there()));
  }
  int kept_times() const { return kept_times_; }
  bool rolled_back() const { return rolled_back_; }

 private:
  void end_epoch(uint32_t score) {
    odt_epoch_record_t a{}, b{};  // what is behind the model's layers is not written
    ASSERT_EQ(odt_trainer_end_epoch(here(), score, 21, &a, &err_), ODT_OK) << err_.what;
    ASSERT_EQ(odt_trainer_end_epoch(there(), score, 21, &b, &err_), ODT_OK) << err_.what;
    if (odt_trainer_best_waits(there()) == ODT_BEST_WANTED) roll_back(&b);
    ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << "records, with their state hash";
    ASSERT_EQ(state_of(here()), state_of(there()));
    keep();
  }
  void roll_back(odt_epoch_record_t* rec) {
    EXPECT_EQ(odt_trainer_end_epoch(there(), 0, 21, rec, &err_), ODT_FAILED_PRECONDITION);
    EXPECT_EQ(odt_trainer_roll_back(there(), rec, &err_), ODT_FAILED_PRECONDITION);
    Bytes other = kept_;
    other[other.size() - 5] ^= 1;  // of the last layer's offsets: well formed, but not the best
    if (there()->model->arith == ODT_ARITH_INT8) {
      EXPECT_EQ(write_best(there(), other, 1000, &err_), ODT_DATA_LOSS);
      EXPECT_EQ(odt_trainer_roll_back(there(), rec, &err_), ODT_FAILED_PRECONDITION);
    }
    ASSERT_EQ(write_best(there(), kept_, 37, &err_), ODT_OK) << err_.what;
    ASSERT_EQ(odt_trainer_roll_back(there(), rec, &err_), ODT_OK) << err_.what;
    rolled_back_ = true;
  }

  odt_samples_t train_;
  Rig here_, there_;
  Bytes kept_;
  int kept_times_ = 0;
  bool rolled_back_ = false;
  odt_error_t err_{};
};

odt_run_spec_t niti(uint8_t k) {
  odt_run_spec_t s = plain_spec(21, 4, 4);
  s.k = k;
  s.shift_source = ODT_SHIFT_STALE;
  return s;
}

TEST(BestOnHost, EqualsTheRunThatKeepsItItself) {
  Random r(5);
  NetSpec net = small_dense();
  SampleSet set = random_samples(r, net, 21);
  const std::vector<std::vector<uint32_t>> courses = {
      {9, 14, 11, 12, 13}, {15, 14, 11, 12, 13}, {9, 10, 11, 12, 13}, {9, 9, 9, 9, 9}};
  for (const uint8_t k : {8, 12}) {
    for (const auto& scores : courses) {
      Pair pair(net, set, niti(k));
      pair.run(scores);
      EXPECT_EQ(pair.rolled_back(),
                scores[4] != 13 || scores[3] != 12 || scores[2] != 11 || scores[1] != 10);
    }
  }
}

TEST(BestOnHost, PrecisionRollsBackToo) {
  Random r(78);
  NetSpec net = small_dense();
  SampleSet set = random_samples(r, net, 61);
  odt_run_spec_t s = plain_spec(61, 3, 4);
  s.k = 7;
  s.shift_source = ODT_SHIFT_STALE;
  for (int8_t& mu : s.mu_weight) mu = 1;
  s.apt.mode = ODT_APT_QUARTERS;
  s.apt.k_max = 12;
  s.apt.t_min_q8 = 160;
  s.apt.offsets = true;
  Pair pair(net, set, s);
  pair.run({9, 14, 11, 12, 13});
  EXPECT_TRUE(pair.rolled_back());
  EXPECT_EQ(pair.kept_times(), 2);
}

TEST(BestOnHost, Dfp16) {
  for (const bool blocked : {false, true}) {
    NetSpec net = dfp::branched_net();
    odt_run_spec_t s = dfp::dfp_spec(21, 4, 4, 0.05);
    s.blocked = blocked;
    const SampleSet set = dfp::labelled(net, 21);
    Pair pair(net, set, s);
    pair.run({9, 14, 11, 12, 13});
    EXPECT_TRUE(pair.rolled_back());
  }
}

TEST(BestOnHost, TakesNoMemoryForTheBest) {
  Random r(5);
  Rig rig(build_image(small_dense()));
  odt_run_spec_t s = niti(12);
  s.heldout_samples = 21;
  odt_memory_plan_t off, here, there;
  odt_trainer_plan(&rig.model(), &s, true, &off);
  s.guard = true;
  odt_trainer_plan(&rig.model(), &s, true, &here);
  s.best_on_host = true;
  odt_trainer_plan(&rig.model(), &s, true, &there);
  EXPECT_EQ(there.total_bytes, off.total_bytes);
  EXPECT_EQ(there.best_bytes, 0u);
  EXPECT_GT(here.best_bytes, 0u);
  s.guard = false;
  EXPECT_EQ(odt_run_spec_check(&s, &rig.model(), &rig.err), ODT_INVALID_ARGUMENT);
}

TEST(BestOnHost, PushesComeOnlyWhereTheyAreWanted) {
  Random r(5);
  NetSpec net = small_dense();
  SampleSet set = random_samples(r, net, 21);
  Pair pair(net, set, niti(12));
  odt_trainer_t* t = pair.there();
  odt_error_t err{};
  const Bytes w = weights_of(t);
  EXPECT_EQ(write_best(t, w, 64, &err), ODT_FAILED_PRECONDITION);
  ASSERT_EQ(odt_trainer_set_start(t, 9, 21), ODT_OK);
  EXPECT_EQ(odt_weights_write(t, false, 0, w.data(), 4, &err), ODT_FAILED_PRECONDITION)
      << "the best would be gone";
  EXPECT_TRUE(t->weights_valid);
  // A state brings the run back without what waited: its host has the best.
  const Bytes state = state_of(t);
  ASSERT_EQ(odt_state_write(t, 0, state.data(), static_cast<uint32_t>(state.size()), &err), ODT_OK);
  ASSERT_EQ(odt_state_write_end(t, &err), ODT_OK);
  EXPECT_EQ(odt_trainer_best_waits(t), ODT_BEST_HERE);
  EXPECT_FALSE(odt_trainer_best_missing(t));
}

}  // namespace
}  // namespace odt::testing

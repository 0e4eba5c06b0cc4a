#include "campaign/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace odt::campaign {
namespace {

using model::CampaignUnit;
using model::SweepStrategy;
using testing::ElementsAre;
using testing::HasSubstr;

model::SweepSpec spec(SweepStrategy strategy, std::vector<model::SweepAxis> axes,
                      std::uint32_t trials = 0, std::uint32_t seed = 0) {
  model::SweepSpec s;
  s.strategy = strategy;
  s.axes = std::move(axes);
  s.trials = trials;
  s.seed = seed;
  return s;
}

TEST(Sweep, GridIsEveryCombinationTheLastAxisFastest) {
  const auto trials = trials_of(
      spec(SweepStrategy::kGrid, {{"mu_weight", {"0", "1/-1/-3"}}, {"batch", {"4..6"}}}), {});
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 6u);
  EXPECT_THAT((*trials)[0].hyper.mu_weight, ElementsAre(0));
  EXPECT_EQ((*trials)[0].hyper.batch, 4u);
  EXPECT_EQ((*trials)[2].hyper.batch, 6u);
  EXPECT_THAT((*trials)[3].hyper.mu_weight, ElementsAre(1, -1, -3));
  EXPECT_EQ((*trials)[3].hyper.batch, 4u);
}

TEST(Sweep, EveryAxisSetsItsField) {
  Trial t;
  for (const auto& [axis, value] :
       std::vector<std::pair<const char*, const char*>>{{"mu_offset", "-3"},
                                                        {"epochs", "7"},
                                                        {"rule", "dfp16"},
                                                        {"rounding", "psto"},
                                                        {"loss", "ce"},
                                                        {"shift_source", "stale"},
                                                        {"k", "12"},
                                                        {"layer_k", "8/0/15"},
                                                        {"apt", "quarters"},
                                                        {"apt_k_max", "14"},
                                                        {"apt_t_min_q8", "77"},
                                                        {"apt_t_max_q8", "999"},
                                                        {"dead_zone", "4"},
                                                        {"order_seed", "9"},
                                                        {"sr_seed", "8"},
                                                        {"lr_m", "3"},
                                                        {"lr_s", "5"},
                                                        {"policy", "fixed"},
                                                        {"trainable_layers", "2"}})
    EXPECT_TRUE(apply_value(axis, value, t).ok()) << axis;
  EXPECT_EQ(t.hyper.mu_offset, -3);
  EXPECT_EQ(t.hyper.rule_set, model::RuleSet::kDfp16);
  EXPECT_EQ(t.hyper.rounding, model::Rounding::kPsto);
  EXPECT_THAT(t.hyper.layer_k, ElementsAre(8, 0, 15));
  EXPECT_EQ(t.hyper.apt, model::AptMode::kQuarters);
  EXPECT_EQ(t.trainable_layers, 2u);
  EXPECT_THAT(std::string(apply_value("colour", "red", t).message()), HasSubstr("mu_weight"));
  EXPECT_THAT(std::string(apply_value("rounding", "up", t).message()), HasSubstr("half-up"));
  EXPECT_FALSE(apply_value("batch", "-1", t).ok());
  EXPECT_FALSE(apply_value("mu_weight", "1/2/3/4", t).ok());
}

TEST(Sweep, RandomTrialsAreSeededAndNeverTwice) {
  const std::vector<model::SweepAxis> axes{{"mu_offset", {"-8..7"}}, {"batch", {"1..32"}}};
  const auto a = *trials_of(spec(SweepStrategy::kRandom, axes, 100, 1), {});
  const auto again = *trials_of(spec(SweepStrategy::kRandom, axes, 100, 1), {});
  const auto b = *trials_of(spec(SweepStrategy::kRandom, axes, 100, 2), {});
  ASSERT_EQ(a.size(), 100u);
  std::set<std::pair<int, unsigned>> seen;
  bool same = true, other = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    seen.insert({*a[i].hyper.mu_offset, *a[i].hyper.batch});
    same = same && a[i].hyper == again[i].hyper;
    other = other && a[i].hyper == b[i].hyper;
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_TRUE(same);
  EXPECT_FALSE(other);
  // More trials than combinations: all of them.
  EXPECT_EQ(trials_of(spec(SweepStrategy::kRandom, {{"batch", {"1..3"}}}, 50), {})->size(), 3u);
}

TEST(Sweep, RefusesWhatIsNoSweep) {
  EXPECT_FALSE(trials_of(spec(SweepStrategy::kGrid, {}), {}).ok());
  EXPECT_FALSE(trials_of(spec(SweepStrategy::kGrid, {{"k", {"8"}}, {"k", {"9"}}}), {}).ok());
  EXPECT_FALSE(trials_of(spec(SweepStrategy::kGrid, {{"k", {"9..2"}}}), {}).ok());
  for (const char* wide : {"-9223372036854775808..9223372036854775807", "-1..9223372036854775807"})
    EXPECT_THAT(trials_of(spec(SweepStrategy::kGrid, {{"k", {wide}}}), {}).status().message(),
                HasSubstr("at most 64 values"));
  // No axis is left out silently.
  std::vector<model::SweepAxis> many;
  for (const char* name :
       {"mu_offset", "batch", "epochs", "order_seed", "k", "dead_zone", "sr_seed"})
    many.push_back({name, {"1..64"}});
  many.push_back({"sr_seed", {"1"}});
  EXPECT_FALSE(trials_of(spec(SweepStrategy::kRandom, many, 5), {}).ok());
  EXPECT_FALSE(
      trials_of(spec(SweepStrategy::kGrid, {{"order_seed", {"0..63"}}, {"batch", {"1..32"}}}), {})
          .ok());
}

TEST(Halving, RungsGrowByEtaAndEndWithAllEpochs) {
  auto s = spec(SweepStrategy::kHalving, {{"k", {"8"}}});
  EXPECT_THAT(rung_epochs(s, 10), ElementsAre(1, 3, 9, 10));
  s.min_epochs = 2;
  s.eta = 2;
  EXPECT_THAT(rung_epochs(s, 16), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(rung_epochs(s, 1), ElementsAre(1));
  s.strategy = SweepStrategy::kGrid;
  EXPECT_THAT(rung_epochs(s, 16), ElementsAre(16));
}

CampaignUnit unit(std::uint32_t index, std::uint32_t round, std::uint32_t correct,
                  model::UnitState state = model::UnitState::kSucceeded) {
  CampaignUnit u;
  u.index = u.trial = index;
  u.round = round;
  u.heldout_best = {correct, 100};
  u.state = state;
  return u;
}

TEST(Halving, TheBestGoOnTiesByTrial) {
  const std::vector<CampaignUnit> units{unit(0, 0, 50), unit(1, 0, 70),
                                        unit(2, 0, 70), unit(3, 0, 99, model::UnitState::kFailed),
                                        unit(4, 0, 60), unit(5, 0, 70)};
  EXPECT_THAT(survivors(units, 0, 3), ElementsAre(1, 2));
  EXPECT_THAT(survivors(units, 0, 2), ElementsAre(1, 2, 5));
  EXPECT_THAT(survivors(units, 1, 2), ElementsAre());
  EXPECT_EQ(best_unit(units), 1u);
  auto later = units;
  later.push_back(unit(6, 1, 10));
  EXPECT_EQ(best_unit(later), 6u);  // the last rung decides
  EXPECT_EQ(best_unit({unit(0, 0, 9, model::UnitState::kFailed)}), std::nullopt);
}

TEST(Halving, WithoutClassesTheLowestLossIsBest) {
  auto a = unit(0, 0, 0), b = unit(1, 0, 0);
  a.heldout_best = b.heldout_best = {};
  a.heldout_best_loss = {500, 0, 10, model::LossKind::kMse};
  b.heldout_best_loss = {499, 0, 10, model::LossKind::kMse};
  EXPECT_TRUE(better(b, a));
  EXPECT_FALSE(better(a, b));
}

}  // namespace
}  // namespace odt::campaign

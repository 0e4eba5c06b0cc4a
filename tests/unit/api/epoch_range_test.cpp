#include "api/epoch_range.h"

#include <gtest/gtest.h>

namespace odt::api {
namespace {

// n epochs of 50 steps.
std::vector<model::EpochResult> epochs(std::uint32_t n) {
  std::vector<model::EpochResult> out(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    out[i].attempt = 1;
    out[i].epoch = i;
    out[i].step = (i + 1) * 50;
  }
  return out;
}

std::string steps(const ChosenEpochs& chosen) {
  std::string out;
  for (const auto* e : chosen.epochs) out += std::to_string(e->step) + " ";
  return out;
}

TEST(EpochRange, EveryRecordWhereNothingIsAskedFor) {
  const auto all = epochs(3);
  const auto chosen = choose_epochs(all, {});
  EXPECT_EQ(steps(chosen), "50 100 150 ");
  EXPECT_EQ(chosen.total, 3U);
}

TEST(EpochRange, BothEndsAreWithin) {
  const auto all = epochs(6);
  const auto chosen = choose_epochs(all, {.first_step = 100, .last_step = 200});
  EXPECT_EQ(steps(chosen), "100 150 200 ");
  EXPECT_EQ(chosen.total, 3U);
  EXPECT_EQ(choose_epochs(all, {.first_step = 301}).total, 0U);
}

TEST(EpochRange, OfManyTheNewestIsAlwaysThere) {
  const auto all = epochs(4000);
  for (const std::uint32_t most : {1U, 3U, 60U, 500U, 3999U, 4000U, 5000U}) {
    const auto chosen = choose_epochs(all, {.most = most});
    ASSERT_EQ(chosen.epochs.size(), std::min(most, 4000U));
    EXPECT_EQ(chosen.epochs.back(), &all.back());
    EXPECT_EQ(chosen.total, 4000U);
    for (std::size_t i = 1; i < chosen.epochs.size(); ++i)
      ASSERT_LT(chosen.epochs[i - 1]->step, chosen.epochs[i]->step);
  }
}

TEST(EpochRange, TheNewestAttemptCounts) {
  auto all = epochs(2);
  auto again = all[1];
  again.attempt = 2;
  again.alarms = 7;
  all.insert(all.begin(), again);  // whatever their order is
  const auto chosen = choose_epochs(all, {.most = 10});
  ASSERT_EQ(chosen.epochs.size(), 2U);
  EXPECT_EQ(chosen.epochs[1]->alarms, 7U);
  EXPECT_EQ(chosen.total, 2U);
  EXPECT_EQ(choose_epochs(all, {}).total, 3U);
}

}  // namespace
}  // namespace odt::api

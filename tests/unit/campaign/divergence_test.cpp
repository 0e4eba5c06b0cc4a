#include "campaign/divergence.h"

#include <gtest/gtest.h>

namespace odt::campaign {
namespace {

using What = model::TwinResult::What;

Recorded recorded(std::uint32_t steps) {
  Recorded r;
  for (std::uint32_t s = 0; s < steps; ++s) {
    model::TelemetryFrame f;
    f.step = s;
    f.loss.sum = 1000 - s;
    f.layers = {{12, 3, 15}, {13, 4, 15}};
    r.frames.push_back(f);
  }
  for (std::uint32_t e = 0; e < 2; ++e) {
    model::EpochResult epoch;
    epoch.epoch = e;
    epoch.attempt = 1;
    epoch.step = (e + 1) * steps / 2;
    epoch.state_hash.bytes[0] = static_cast<std::uint8_t>(e + 1);
    r.epochs.push_back(epoch);
  }
  return r;
}

TEST(Divergence, EqualRunsAreEqual) {
  const auto t = compare(recorded(20), recorded(20));
  EXPECT_EQ(t.what, What::kEqual);
  EXPECT_EQ(t.steps_compared, 20u);
  EXPECT_EQ(t.first_state_epoch, 0u);
}

TEST(Divergence, TheFirstStepAndItsValues) {
  auto b = recorded(20);
  b.frames[7].layers[1].shift = 9;
  b.frames[8].layers[0].bits = 1;
  b.epochs[0].state_hash.bytes[5] = 1;
  auto t = compare(recorded(20), b);
  EXPECT_EQ(t.what, What::kShift);
  EXPECT_EQ(t.step, 7u);
  EXPECT_EQ(t.layer, 1u);
  EXPECT_EQ(t.a, 4);
  EXPECT_EQ(t.b, 9);
  EXPECT_EQ(t.first_state_epoch, 1u);
  b.frames[3].loss.sum = 1;
  t = compare(recorded(20), b);
  EXPECT_EQ(t.what, What::kLoss);
  EXPECT_EQ(t.step, 3u);
  b.frames[3].layers[0].k = 8;
  EXPECT_EQ(compare(recorded(20), b).what, What::kPrecision);
}

TEST(Divergence, GapsArePassedOver) {
  auto a = recorded(20), b = recorded(20);
  a.frames.erase(a.frames.begin() + 4);
  b.frames[9].gap = 3;
  b.frames[12].loss.sum = 0;
  const auto t = compare(a, b);
  EXPECT_EQ(t.what, What::kLoss);
  EXPECT_EQ(t.step, 12u);
  EXPECT_EQ(t.steps_compared, 11u);
}

TEST(Divergence, StatesAndLengthsCountWhereNoStepDiffers) {
  auto b = recorded(20);
  b.epochs[1].state_hash.bytes[9] = 1;
  EXPECT_EQ(compare(recorded(20), b).what, What::kState);
  EXPECT_EQ(compare(recorded(20), b).first_state_epoch, 2u);
  b = recorded(20);
  b.epochs.pop_back();
  EXPECT_EQ(compare(recorded(20), b).what, What::kLength);
  // Only the newest attempt of an epoch counts.
  b = recorded(20);
  b.epochs.push_back(b.epochs[0]);
  b.epochs[0].attempt = 0;
  b.epochs[0].state_hash.bytes[1] = 9;
  EXPECT_EQ(compare(recorded(20), b).what, What::kEqual);
}

}  // namespace
}  // namespace odt::campaign

#include "campaign/average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace odt::campaign {
namespace {

using data::StoredLayer;
using data::StoredWeights;
using testing::ElementsAre;

StoredWeights weights(std::int8_t k, std::vector<std::int16_t> values,
                      std::vector<std::int32_t> offsets = {}, std::uint8_t dtype = 0) {
  StoredWeights w;
  w.rules_version = 1;
  w.rule_set = dtype >= 4 ? 3 : 1;
  StoredLayer l;
  l.kind = 3;
  l.dtype = dtype != 0 ? dtype : k > 8 ? 3 : 1;
  l.k = k;
  l.shape = {1, static_cast<std::uint32_t>(values.size())};
  l.values = std::move(values);
  l.offsets = std::move(offsets);
  w.layers.push_back(std::move(l));
  return w;
}

// round half away from zero of sum / total, with numbers wide enough for anything.
std::int64_t oracle(__int128 sum, __int128 total) {
  const __int128 twice = 2 * (sum < 0 ? -sum : sum) + total;
  const auto q = static_cast<std::int64_t>(twice / (2 * total));
  return sum < 0 ? -q : q;
}

TEST(Average, HalvesGoAwayFromZero) {
  EXPECT_EQ(divide_half_away(5, 2), 3);
  EXPECT_EQ(divide_half_away(-5, 2), -3);
  EXPECT_EQ(divide_half_away(1, 3), 0);
  EXPECT_EQ(divide_half_away(2, 3), 1);
  EXPECT_EQ(divide_half_away(0, 7), 0);
  EXPECT_EQ(divide_half_away(std::numeric_limits<std::int64_t>::max(), 1),
            std::numeric_limits<std::int64_t>::max());
}

// The golden vector of README.md.
TEST(Average, GoldenVector) {
  const auto mean = average({{weights(8, {127, -128, 1, -1, 0}, {100, -7}), 3},
                             {weights(8, {-127, 127, 2, -2, 1}, {-101, 8}), 1}});
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_THAT(mean->layers[0].values, ElementsAre(64, -64, 1, -1, 0));
  EXPECT_THAT(mean->layers[0].offsets, ElementsAre(50, -3));
  EXPECT_EQ(mean->layers[0].k, 8);
}

TEST(Average, OfOneIsItself) {
  const auto w = weights(15, {-16384, 16383, 7}, {-2147483647, 2147483647});
  const auto mean = average({{w, 65535}});
  ASSERT_TRUE(mean.ok());
  EXPECT_EQ(*mean, w);
}

TEST(Average, IsExactAgainstWideArithmetic) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t boards = 1 + random() % 9, n = 1 + random() % 40;
    std::vector<Share> shares;
    int top = 0;
    for (std::size_t b = 0; b < boards; ++b) {
      const auto k = static_cast<std::int8_t>(2 + random() % 15);
      top = std::max<int>(top, k);
      const int low = -(1 << (k - 1)), span = 1 << k;
      std::vector<std::int16_t> values;
      std::vector<std::int32_t> offsets;
      for (std::size_t i = 0; i < n; ++i) {
        values.push_back(static_cast<std::int16_t>(
            low + static_cast<int>(random() % static_cast<unsigned>(span))));
        offsets.push_back(static_cast<std::int32_t>(random()));
      }
      shares.push_back(
          {weights(k, values, offsets), 1 + static_cast<std::uint32_t>(random() % 65535)});
    }
    const auto mean = average(shares);
    ASSERT_TRUE(mean.ok()) << mean.status();
    EXPECT_EQ(mean->layers[0].k, top);
    for (std::size_t i = 0; i < n; ++i) {
      __int128 sum = 0, offsets = 0, total = 0;
      for (const auto& s : shares) {
        const auto& l = s.weights.layers[0];
        sum += static_cast<__int128>(l.values[i]) * (1 << (top - l.k)) * s.samples;
        offsets += static_cast<__int128>(l.offsets[i]) * s.samples;
        total += s.samples;
      }
      ASSERT_EQ(mean->layers[0].values[i], oracle(sum, total));
      ASSERT_EQ(mean->layers[0].offsets[i], oracle(offsets, total));
    }
    // Whatever the order of the boards.
    std::shuffle(shares.begin(), shares.end(), random);
    EXPECT_EQ(data::weights_bytes(*average(shares)), data::weights_bytes(*mean));
    // What comes out is odt_weights.
    EXPECT_EQ(*data::parse_weights(data::weights_bytes(*mean), "w"), *mean);
  }
}

TEST(Average, Dfp16TakesTheSmallestExponentThatHoldsAll) {
  // 30000 * 2^-10 and 20000 * 2^-8: their mean is 55000 * 2^-10, which needs 2^-9.
  const auto mean =
      average({{weights(-10, {30000, 1}, {}, 4), 1}, {weights(-8, {20000, 0}, {}, 4), 1}});
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_EQ(mean->layers[0].k, -9);
  EXPECT_THAT(mean->layers[0].values, ElementsAre(27500, 0));
  EXPECT_EQ(
      reason_of(average({{weights(-20, {1}, {}, 4), 1}, {weights(0, {1}, {}, 4), 1}}).status()),
      "GRIDS_TOO_FAR");
}

TEST(Average, RefusesWhatCannotBeAveraged) {
  const auto a = weights(8, {1, 2});
  auto b = a;
  b.model_hash.bytes[0] = 1;
  EXPECT_EQ(reason_of(average({{a, 1}, {b, 1}}).status()), "MODELS_DIFFER");
  b = a;
  b.rules_version = 2;
  EXPECT_EQ(reason_of(average({{a, 1}, {b, 1}}).status()), "RULES_DIFFER");
  b = weights(8, {1});
  EXPECT_EQ(reason_of(average({{a, 1}, {b, 1}}).status()), "LAYERS_DIFFER");
  b = weights(0, {1, 2}, {}, 5);
  b.rule_set = a.rule_set;
  EXPECT_EQ(reason_of(average({{a, 1}, {b, 1}}).status()), "BLOCKED");
  EXPECT_FALSE(average({}).ok());
  EXPECT_FALSE(average({{a, 0}}).ok());
  EXPECT_FALSE(average({{a, 65536}}).ok());
}

TEST(Drift, IsCountedOnTheGridOfTheAverage) {
  const auto start = weights(8, {0, 10, -10, 5});
  const auto d =
      drifts(start, {{weights(8, {0, 11, -12, 5}), 1}, {weights(9, {1, 20, -20, 10}), 1}});
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d[0].l1, 6u);  // 1 and 2 steps of k = 8 are 2 and 4 of k = 9
  EXPECT_EQ(d[0].changed_ppm, 500'000u);
  EXPECT_EQ(d[1].l1, 1u);
  EXPECT_EQ(d[1].changed_ppm, 250'000u);
}

TEST(Drift, OutliersAreFarFromTheMedian) {
  const auto of = [](std::vector<std::uint64_t> l1) {
    std::vector<Drift> out;
    for (const auto v : l1) out.push_back({v, 0});
    return out;
  };
  EXPECT_THAT(outliers(of({10, 11, 12, 100}), 768, 2), ElementsAre(false, false, false, true));
  EXPECT_THAT(outliers(of({10, 11, 12, 33}), 768, 2), ElementsAre(false, false, false, false));
  EXPECT_THAT(outliers(of({10, 11, 12, 34}), 768, 2), ElementsAre(false, false, false, true));
  EXPECT_THAT(outliers(of({1, 1, 100}), 768, 1), ElementsAre(false, false, false));  // too few
  // The farthest go first, and only while enough stay.
  EXPECT_THAT(outliers(of({1, 1, 50, 100}), 768, 3), ElementsAre(false, false, false, true));
  EXPECT_THAT(outliers(of({1, 1, 50, 100}), 768, 4), ElementsAre(false, false, false, false));
  EXPECT_THAT(outliers(of({10, 11, 12, 100}), 0xFFFFFFFF, 2), testing::Each(false));
  EXPECT_EQ(lower_median_l1(of({4, 1, 3, 2})), 2u);
  // Boards whose guard kept the start say nothing of how far learning goes.
  EXPECT_THAT(outliers(of({0, 0, 0, 10, 12, 0}), 768, 2), testing::Each(false));
  EXPECT_THAT(outliers(of({0, 0, 0, 10, 12, 100}), 768, 2),
              ElementsAre(false, false, false, false, false, true));
  EXPECT_THAT(outliers(of({0, 0, 0, 0}), 768, 2), testing::Each(false));
  EXPECT_EQ(lower_median_l1(of({0, 0, 0, 7})), 7u);
  EXPECT_EQ(lower_median_l1(of({0, 0})), 0u);
}

TEST(Image, IsReadWithinItsBounds) {
  EXPECT_FALSE(image_weights("").ok());
  EXPECT_FALSE(image_weights(std::string(64, 'x')).ok());
  std::string image(64, '\0');
  image.replace(0, 4, "ODTM");
  image[14] = 3;  // three ops, none of them there
  image[24] = 64;
  EXPECT_FALSE(image_weights(image).ok());
}

}  // namespace
}  // namespace odt::campaign

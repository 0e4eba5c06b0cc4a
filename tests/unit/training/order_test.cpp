#include "data/order.h"

#include <gtest/gtest.h>

#include <numeric>

#include "data/batcher.h"
#include "odt/odt.h"
#include "rig.h"

namespace odt::data {
namespace {

TEST(OrderTest, SameAsTheBoardsLibrary) {
  for (const std::uint32_t n : {1u, 2u, 7u, 600u, 65535u})
    for (const std::uint32_t seed : {0u, 1u, 0x9E3779B1u, 0xFFFFFFFFu})
      for (const std::uint32_t epoch : {0u, 1u, 9u}) {
        std::vector<std::uint16_t> expected(n);
        odt_order(seed, epoch, n, expected.data());
        const auto order = epoch_order(seed, epoch, n);
        ASSERT_TRUE(std::equal(order.begin(), order.end(), expected.begin(), expected.end()))
            << n << " " << seed << " " << epoch;
      }
}

TEST(BatcherTest, PicksSamplesInOrder) {
  auto blob = std::make_shared<const std::string>(test::make_samples(6, 5, 3));
  auto set = SampleSet::parse(blob);
  ASSERT_TRUE(set.ok()) << set.status();
  const std::uint32_t index[] = {4, 1};
  const std::string batch = set->batch(index, 2);
  ASSERT_EQ(batch.size(), samples_bytes(2, 5));
  EXPECT_EQ(batch[16], (*blob)[16 + 4]);
  EXPECT_EQ(batch.substr(20, 5), blob->substr(16 + 8 + 4 * 5, 5));
  EXPECT_EQ(batch.substr(25, 5), blob->substr(16 + 8 + 1 * 5, 5));
  EXPECT_EQ(set->slice(0, 6), *blob);
}

TEST(BatcherTest, RefusesWhatIsNoSampleFile) {
  const auto status = [](std::string blob) {
    return SampleSet::parse(std::make_shared<const std::string>(std::move(blob))).status().code();
  };
  const std::string good = test::make_samples(3, 5, 1);
  EXPECT_EQ(status(good), absl::StatusCode::kOk);
  EXPECT_EQ(status(""), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(good.substr(0, good.size() - 1)), absl::StatusCode::kInvalidArgument);
  for (const std::size_t at : {0, 4, 6, 8, 12, 15}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_EQ(status(bad), absl::StatusCode::kInvalidArgument) << at;
  }
}

}  // namespace
}  // namespace odt::data

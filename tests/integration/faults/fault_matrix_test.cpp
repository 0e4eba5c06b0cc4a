#include "support/virtual/fault_matrix.h"

#include <gtest/gtest.h>

// A sample of the fault matrix: one test a kind of fault, a few seeds of each operation.
namespace odt::test {
namespace {

constexpr std::uint64_t kSeeds = 3;

class FaultMatrixTest : public testing::TestWithParam<std::pair<Fault, const char*>> {};

TEST_P(FaultMatrixTest, NothingIsWrongLostOrHangs) {
  FaultMatrix matrix(ODT_GOLDEN_DIR);
  std::uint64_t injected = 0;
  for (const auto& [operation, name] : operations())
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Outcome out = matrix.run(GetParam().first, operation, seed);
      EXPECT_TRUE(out.sound()) << name << ", seed " << seed << ":\n" << out.text();
      injected += out.injected;
    }
  EXPECT_GT(injected, 0u);
}

INSTANTIATE_TEST_SUITE_P(Every, FaultMatrixTest, testing::ValuesIn(faults()),
                         [](const auto& one) { return std::string(one.param.second); });

TEST(VirtualTimeTest, TheSameSeedGivesTheSameRun) {
  FaultMatrix matrix(ODT_GOLDEN_DIR);
  const Outcome a = matrix.run(Fault::kBurst, Operation::kTrain, 7);
  const Outcome b = matrix.run(Fault::kBurst, Operation::kTrain, 7);
  EXPECT_EQ(a.injected, b.injected);
  EXPECT_EQ(a.seconds, b.seconds);
}

}  // namespace
}  // namespace odt::test

#include "support/virtual/fault_matrix.h"

#include <gtest/gtest.h>

// A sample of the fault matrix: one test a kind of fault, a few seeds of each operation.
namespace odt::test {
namespace {

// A commit is a person's or a run's, to an EEPROM or to flash: one of each.
std::vector<std::uint64_t> seeds_of(Operation operation) {
  if (operation == Operation::kCommit) return {1, 3, 6, 9};
  return {1, 2, 3};
}

class FaultMatrixTest : public testing::TestWithParam<std::pair<Fault, const char*>> {};

TEST_P(FaultMatrixTest, NothingIsWrongLostOrHangs) {
  FaultMatrix matrix(ODT_GOLDEN_DIR);
  std::uint64_t injected = 0;
  for (const auto& [operation, name] : operations())
    for (const std::uint64_t seed : seeds_of(operation)) {
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

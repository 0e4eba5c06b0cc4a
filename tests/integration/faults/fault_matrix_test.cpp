#include "support/virtual/fault_matrix.h"

#include <gtest/gtest.h>

#include "support/full.h"

// A sample of the fault matrix: one test a kind of fault, a few seeds of each operation.
// Undisturbed runs, which the others are measured by, are the same for all.
namespace odt::test {
namespace {

// A commit is a person's or a run's, to an EEPROM or to flash: one of each.
// Everyday the faults share the seeds: each operation meets every fault, and each seed some.
std::vector<std::uint64_t> seeds_of(Operation operation, Fault fault) {
  const auto n = static_cast<std::uint64_t>(fault);
  if (operation == Operation::kCommit) {
    if (full_run()) return {1, 3, 6, 9};
    return n % 2 == 0 ? std::vector<std::uint64_t>{1, 6} : std::vector<std::uint64_t>{3, 9};
  }
  if (full_run()) return {1, 2, 3};
  return {1 + n % 3};
}

FaultMatrix& matrix() {
  static FaultMatrix shared(ODT_GOLDEN_DIR);
  return shared;
}

class FaultMatrixTest : public testing::TestWithParam<std::pair<Fault, const char*>> {};

TEST_P(FaultMatrixTest, NothingIsWrongLostOrHangs) {
  std::uint64_t injected = 0;
  for (const auto& [operation, name] : operations())
    for (const std::uint64_t seed : seeds_of(operation, GetParam().first)) {
      const Outcome out = matrix().run(GetParam().first, operation, seed);
      EXPECT_TRUE(out.sound()) << name << ", seed " << seed << ":\n" << out.text();
      injected += out.injected;
    }
  EXPECT_GT(injected, 0u);
}

INSTANTIATE_TEST_SUITE_P(Every, FaultMatrixTest, testing::ValuesIn(faults()),
                         [](const auto& one) { return std::string(one.param.second); });

TEST(VirtualTimeTest, TheSameSeedGivesTheSameRun) {
  const Outcome a = matrix().run(Fault::kBurst, Operation::kTrain, 7);
  const Outcome b = matrix().run(Fault::kBurst, Operation::kTrain, 7);
  EXPECT_EQ(a.injected, b.injected);
  EXPECT_EQ(a.seconds, b.seconds);
}

}  // namespace
}  // namespace odt::test

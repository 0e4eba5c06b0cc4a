// The library against the oracle over random networks of every layer kind, settings and samples,
// step by step: records, weights, offsets, shifts, precisions, predictions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "compare.h"
#include "full.h"

namespace odt::testing {
namespace {

struct Kind {
  const char* name;
  RunKind kind;
  bool graphs;
  uint32_t first_seed;
};

ComparedRun run_of(const Kind& kind, uint32_t seed, int size) {
  Choices c(seed);
  return random_run(c, kind.kind, size, kind.graphs);
}

// The smallest size at which the seed still fails.
std::string shrunk(const Kind& kind, uint32_t seed, int size) {
  for (int small = 1; small <= size; small++) {
    ComparedRun run = run_of(kind, seed, small);
    Difference d = compare(run);
    if (d.text.empty() || d.refused) continue;
    return "seed " + std::to_string(seed) + " size " + std::to_string(small) + ": " + d.text +
           "\n" + describe_run(run);
  }
  return "";
}

class GraphDifferential : public ::testing::TestWithParam<std::tuple<Kind, int>> {};

constexpr int kNets = 25;

// Each case is of kNets seeds, of which the first are run everyday. ODT_SEED=n in the environment
// runs that seed alone.
TEST_P(GraphDifferential, EqualsOracle) {
  const auto& [kind, part] = GetParam();
  constexpr int kSize = 8;
  const char* only = std::getenv("ODT_SEED");
  int refused = 0;
  std::string why;
  const int nets = only ? kNets : test::repeats(4, kNets);
  for (int i = 0; i < nets; i++) {
    uint32_t seed = kind.first_seed + static_cast<uint32_t>(part * kNets + i);
    if (only && seed != std::strtoul(only, nullptr, 10)) continue;
    ComparedRun run = run_of(kind, seed, kSize);
    Difference d = compare(run);
    if (d.refused) {
      refused++;
      why += "\nseed " + std::to_string(seed) + ": " + d.text + "\n" + describe_run(run);
      continue;
    }
    ASSERT_EQ(d.text, "") << "seed " << seed << "\n"
                          << describe_run(run) << "shrunk: " << shrunk(kind, seed, kSize);
  }
  EXPECT_EQ(refused, 0) << "refused by the library: " << why;
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<Kind, int>>& param) {
  return std::string(std::get<0>(param.param).name) + "_" +
         std::to_string(std::get<1>(param.param));
}

INSTANTIATE_TEST_SUITE_P(Chains, GraphDifferential,
                         ::testing::Combine(::testing::Values(Kind{"niti_chain", RunKind::kNiti,
                                                                   false, 100000}),
                                            ::testing::Range(0, 4)),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    Graphs, GraphDifferential,
    ::testing::Combine(::testing::Values(Kind{"niti_graph", RunKind::kNiti, true, 200000},
                                         Kind{"apt_graph", RunKind::kApt, true, 400000}),
                       ::testing::Range(0, 20)),
    case_name);

INSTANTIATE_TEST_SUITE_P(Precision, GraphDifferential,
                         ::testing::Combine(::testing::Values(Kind{"apt_chain", RunKind::kApt,
                                                                   false, 300000}),
                                            ::testing::Range(0, 10)),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    Dfp16, GraphDifferential,
    ::testing::Combine(::testing::Values(Kind{"dfp16_chain", RunKind::kDfp16, false, 400000},
                                         Kind{"dfp16_graph", RunKind::kDfp16, true, 500000}),
                       ::testing::Range(0, 8)),
    case_name);

}  // namespace
}  // namespace odt::testing

#include "cli/resolve.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace odt::cli {
namespace {

std::string key(std::initializer_list<int> bytes) {
  std::string out;
  for (int b : bytes) out.push_back(static_cast<char>(b));
  return out;
}

const std::vector<Candidate> kAll = {{key({0xAB, 0xCD, 0xEF, 0x01}), "m33-1", {}},
                                     {key({0xAB, 0xCD, 0xEF, 0x02}), "m33-2", {"best"}},
                                     {key({0x12, 0x34, 0x56, 0x78}), "sim-1", {}},
                                     {key({0x99, 0x34, 0x56, 0x78}), "sim-1", {}}};

TEST(Resolve, FindsByNameAliasKeyAndPrefix) {
  EXPECT_EQ(*resolve("board", "m33-1", kAll), 0u);
  EXPECT_EQ(*resolve("board", "best", kAll), 1u);
  EXPECT_EQ(*resolve("board", "abcdef02", kAll), 1u);
  EXPECT_EQ(*resolve("board", "ABCD-EF02", kAll), 1u);
  EXPECT_EQ(*resolve("board", "123456", kAll), 2u);
  EXPECT_EQ(*resolve("board", "sim-1", kAll), 2u);  // the first of one name
}

TEST(Resolve, ShortPrefixIsNone) {
  const Status status = resolve("board", "12345", kAll).status();
  EXPECT_EQ(exit_code_of(status), kExitNotFound);
  EXPECT_NE(status.message().find("at least 6"), absl::string_view::npos) << status;
}

TEST(Resolve, AmbiguousPrefixNamesTheCandidates) {
  const Status status = resolve("board", "abcdef", kAll).status();
  EXPECT_EQ(exit_code_of(status), kExitUsage);
  for (const char* part : {"2 boards", "m33-1 (abcdef01)", "m33-2 (abcdef02)"})
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
}

TEST(Resolve, WhatMustBeOneIsRefusedWhereSeveralHaveTheName) {
  const std::vector<Candidate> two{{std::string(16, '\x12'), "wine", {}},
                                   {std::string(16, '\x34'), "wine", {}},
                                   {std::string(16, '\x56'), "beer", {}}};
  EXPECT_TRUE(only_one_named("trash item", "beer", two).ok());
  EXPECT_TRUE(only_one_named("trash item", "121212", two).ok());
  const Status refused = only_one_named("trash item", "wine", two);
  EXPECT_EQ(exit_code_of(refused), kExitUsage);
  EXPECT_NE(refused.message().find("2 trash items are called 'wine'"), std::string::npos);
  EXPECT_NE(refused.message().find("give the digits of one"), std::string::npos);
}

TEST(Resolve, UnknownNameSuggestsNearOnes) {
  const Status status = resolve("board", "m33-3", kAll).status();
  EXPECT_EQ(exit_code_of(status), kExitNotFound);
  EXPECT_NE(status.message().find("'m33-1' or 'm33-2'"), absl::string_view::npos) << status;
  EXPECT_NE(resolve("board", "x", {}).status().message().find("There is no board yet"),
            absl::string_view::npos);
}

TEST(ShortKey, IsTheShortestThatIsUnique) {
  std::vector<std::string> keys;
  for (const auto& c : kAll) keys.push_back(c.key);
  EXPECT_EQ(short_key(kAll[0].key, keys), "abcdef01");
  EXPECT_EQ(short_key(kAll[2].key, keys), "123456");
}

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(exit_code_of(Status()), 0);
  EXPECT_EQ(exit_code_of(absl::InternalError("")), 1);
  EXPECT_EQ(exit_code_of(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(exit_code_of(absl::NotFoundError("")), 4);
  EXPECT_EQ(exit_code_of(absl::FailedPreconditionError("")), 5);
  EXPECT_EQ(exit_code_of(absl::ResourceExhaustedError("")), 5);
  EXPECT_EQ(exit_code_of(with_exit(absl::NotFoundError(""), kExitRunFailed)), 6);
}

}  // namespace
}  // namespace odt::cli

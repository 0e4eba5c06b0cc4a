#include "base/failpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace odt {
namespace {

// Each in a process of its own: the variable is read once.
int passes(const char* value, int other, int named) {
  if (value != nullptr) ::setenv("ODT_FAILPOINT", value, 1);
  for (int i = 0; i < other; ++i) fail_here("another");
  for (int i = 0; i < named; ++i) fail_here("named");
  return 7;
}

TEST(FailpointDeathTest, EndsTheProcessAtThePassingThatIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(passes("named:3", 5, 3)), testing::ExitedWithCode(137), "");
  EXPECT_EXIT(::_exit(passes("named:3", 5, 2)), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(::_exit(passes("named", 5, 1)), testing::ExitedWithCode(137), "");
  EXPECT_EXIT(::_exit(passes("names:1", 5, 5)), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(::_exit(passes(nullptr, 5, 5)), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace odt

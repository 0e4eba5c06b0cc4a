// The boards' division of 64 bits against the host's.
#include "divide.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

divided_t by_digits(std::uint64_t n, std::uint64_t d) { return divide_unsigned(n, d, 1); }
divided_t by_bits(std::uint64_t n, std::uint64_t d) { return divide_unsigned(n, d, 0); }

void check(std::uint64_t n, std::uint64_t d) {
  if (d == 0) return;
  for (const auto by : {by_digits, by_bits}) {
    const divided_t u = by(n, d);
    ASSERT_EQ(u.quotient, n / d) << n << " / " << d;
    ASSERT_EQ(u.rest, n % d) << n << " % " << d;
    const auto sn = static_cast<std::int64_t>(n), sd = static_cast<std::int64_t>(d);
    const divided_t s = divide_signed(sn, sd, by);
    if (sn == std::numeric_limits<std::int64_t>::min() && sd == -1) {  // the host's would trap
      ASSERT_EQ(s.quotient, n);
      ASSERT_EQ(s.rest, 0u);
      continue;
    }
    ASSERT_EQ(static_cast<std::int64_t>(s.quotient), sn / sd) << sn << " / " << sd;
    ASSERT_EQ(static_cast<std::int64_t>(s.rest), sn % sd) << sn << " % " << sd;
  }
}

TEST(Divide, CornersAreAsTheHosts) {
  const std::uint64_t two32 = std::uint64_t{1} << 32;
  std::vector<std::uint64_t> values;
  for (const std::uint64_t around :
       {std::uint64_t{0}, std::uint64_t{1} << 15, std::uint64_t{1} << 16, std::uint64_t{1} << 31,
        two32, two32 * 2, std::uint64_t{1} << 48, std::uint64_t{1} << 63, 0xFFFF0000u * two32,
        std::uint64_t{0x80008000}, std::uint64_t{0xFFFF0000}, std::uint64_t{10}})
    for (std::uint64_t by = 0; by < 5; by++) values.push_back(around + by - 2);
  for (const auto n : values)
    for (const auto d : values) ASSERT_NO_FATAL_FAILURE(check(n, d));
  // The high word is the divisor, one less, one more.
  for (const auto d : values) {
    const std::uint64_t d32 = d & 0xFFFFFFFF;
    for (const std::uint64_t high : {d32, d32 - 1, d32 + 1})
      for (const std::uint64_t low : {std::uint64_t{0}, d32 - 1, d32, two32 - 1})
        ASSERT_NO_FATAL_FAILURE(check(high << 32 | (low & 0xFFFFFFFF), d32));
  }
}

TEST(Divide, AMillionPairsAreAsTheHosts) {
  std::mt19937_64 random(64);
  for (int i = 0; i < 1000000; i++) {
    // Of every length.
    const std::uint64_t n = random() >> (random() % 64), d = random() >> (random() % 64);
    ASSERT_NO_FATAL_FAILURE(check(n, d));
  }
}

}  // namespace

#include "oracle_math.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace odt::testing {

int64_t power(int n) {
  int64_t p = 1;
  for (int i = 0; i < n; i++) p *= 2;
  return p;
}

int bit_length(Wide magnitude) {
  int n = 0;
  while (magnitude > 0) {
    magnitude /= 2;
    n++;
  }
  return n;
}

int bit_length(int64_t magnitude) { return bit_length(Wide{magnitude}); }

int64_t floor_shift(int64_t v, int k) {
  int64_t d = power(k), q = v / d;
  return v % d < 0 ? q - 1 : q;
}

int64_t largest(const Values& values) {
  int64_t top = 0;
  for (int64_t v : values) top = std::max<int64_t>(top, std::llabs(v));
  return top;
}

int64_t largest(const std::vector<Values>& tensors) {
  int64_t top = 0;
  for (const Values& t : tensors) top = std::max(top, largest(t));
  return top;
}

int64_t oracle_round(int64_t g, int s, Rounding rounding, uint32_t r) {
  if (s == 0) return g;
  if (s < 0) return g * power(-s);
  if (s > 62) return 0;
  if (rounding == Rounding::kHalfUp) return floor_shift(g + power(s - 1), s);
  int64_t a = std::llabs(g), whole = a / power(s), fr = a % power(s), sign = g < 0 ? -1 : 1;
  if (rounding == Rounding::kHalfAway) return sign * ((a + power(s - 1)) / power(s));
  if (rounding == Rounding::kSr) return sign * (whole + (r % power(s) < fr ? 1 : 0));
  int h = s / 2;
  int64_t hi = fr / power(h), lo = fr % power(h);
  if (s % 2 == 1) lo *= 2;
  return sign * (whole + (hi > lo ? 1 : 0));
}

Wide wide_half_up(Wide g, int s) {
  if (s > 62) return 0;
  if (s <= 0) {
    for (int i = 0; i > s; i--) {
      g *= 2;
      // Far beyond every saturation that follows.
      if (g > Wide{INT64_MAX} * 4 || g < Wide{INT64_MIN} * 4) break;
    }
    return g;
  }
  Wide d = power(s), v = g + d / 2, q = v / d;
  return v % d < 0 ? q - 1 : q;
}

int64_t half_even_20(int64_t v) {
  int64_t down = floor_shift(v, 20), rest = v - down * power(20), half = power(19);
  if (rest > half || (rest == half && down % 2 != 0)) return down + 1;
  return down;
}

int rounded_log2(int64_t m) {
  int f = bit_length(m) - 1;
  return Wide{m} * m >= Wide{power(f)} * power(f) * 2 ? f + 1 : f;
}

int64_t most_frequent(const Values& values) {
  std::map<int64_t, int> times;  // in ascending order of the value
  for (int64_t v : values) times[v]++;
  int64_t best = values[0];
  int best_times = 0;
  for (auto [value, n] : times) {
    if (n > best_times) {
      best = value;
      best_times = n;
    }
  }
  return best;
}

uint32_t oracle_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index) {
  uint32_t x = 0x9E3779B9;
  for (uint32_t v : {seed, step, layer, index}) {
    x = x ^ v;
    x = x * 0x85EBCA6B;
    x = x ^ (x >> 13);
    x = x * 0xC2B2AE35;
    x = x ^ (x >> 16);
  }
  return x;
}

std::vector<int> oracle_order(uint32_t seed, uint32_t epoch, int n) {
  uint32_t x = seed ^ static_cast<uint32_t>((uint64_t{epoch} + 1) * 0x9E3779B1);
  if (x == 0) x = 0x9E3779B9;
  auto next = [&x] {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
  };
  for (int i = 0; i < 4; i++) next();
  std::vector<int> p(static_cast<size_t>(n));
  for (int i = 0; i < n; i++) p[static_cast<size_t>(i)] = i;
  for (int i = n - 1; i >= 1; i--) {
    auto j = static_cast<size_t>((uint64_t{next()} * static_cast<uint64_t>(i + 1)) >> 32);
    std::swap(p[static_cast<size_t>(i)], p[j]);
  }
  return p;
}

}  // namespace odt::testing

// Roundings, bit lengths, hash and order of the training rules (1.1, 1.8), in plain arithmetic.
#pragma once

#include <cstdint>
#include <vector>

namespace odt::testing {

using Values = std::vector<int64_t>;
__extension__ typedef __int128 Wide;

enum class Rounding { kHalfUp = 1, kHalfAway = 2, kPsto = 3, kSr = 4 };

template <class T>
T clip(T v, T lo, T hi) {
  return v < lo ? lo : v > hi ? hi : v;
}
inline int64_t sat32(int64_t v) { return clip<int64_t>(v, INT32_MIN, INT32_MAX); }
int64_t power(int n);  // 2^n, 0 <= n <= 62
int bit_length(int64_t magnitude);
int bit_length(Wide magnitude);
int64_t floor_shift(int64_t v, int k);
int64_t largest(const Values& values);  // max |v|
int64_t largest(const std::vector<Values>& tensors);

int64_t oracle_round(int64_t g, int s, Rounding rounding, uint32_t r);
// HALF_UP without any limit on the value: s above 62 gives 0, s < 0 multiplies.
Wide wide_half_up(Wide g, int s);
// Nearest integer, ties to even, of v / 2^20.
int64_t half_even_20(int64_t v);
// Nearest integer to log2(m), m > 0: the floor, and one more where m*m >= 2^(2*floor + 1).
int rounded_log2(int64_t m);
// The most frequent of the values; the smallest of several.
int64_t most_frequent(const Values& values);

uint32_t oracle_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index);
std::vector<int> oracle_order(uint32_t seed, uint32_t epoch, int n);

}  // namespace odt::testing

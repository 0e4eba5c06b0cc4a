/* Division of 64 bits, without what the C library and libgcc have of it. */
#ifndef CORTEX_M_DIVIDE_H
#define CORTEX_M_DIVIDE_H

#include <stdint.h>

typedef struct {
  uint64_t quotient, rest;
} divided_t;

static inline uint32_t divide_zeros(uint64_t v) {
  uint32_t high = (uint32_t)(v >> 32);
  return high != 0 ? (uint32_t)__builtin_clz(high)
                   : 32u + (uint32_t)__builtin_clz((uint32_t)v | 1u);
}

/* high < d: the quotient has 32 bits, which come in two digits of 16. */
static inline uint32_t divide_two_digits(uint32_t high, uint32_t low, uint32_t d, uint32_t* rest) {
  uint32_t q = 0, shift = (uint32_t)__builtin_clz(d);
  uint64_t n = ((uint64_t)high << 32 | low) << shift;
  high = (uint32_t)(n >> 32);
  low = (uint32_t)n;
  d <<= shift;
  for (int i = 0; i < 2; i++) {
    uint32_t digit = high / (d >> 16); /* at most 2 too large */
    uint64_t part = (uint64_t)high << 16 | low >> 16, product = (uint64_t)digit * d;
    for (; product > part; digit--) product -= d;
    high = (uint32_t)(part - product);
    low <<= 16;
    q = q << 16 | digit;
  }
  *rest = high >> shift;
  return q;
}

/* digits: the core divides 32 bits by an instruction. */
static inline divided_t divide_unsigned(uint64_t n, uint64_t d, int digits) {
  divided_t r = {0, 0};
  if (n <= UINT32_MAX && d <= UINT32_MAX) {
    uint32_t n32 = (uint32_t)n, d32 = (uint32_t)d, q32 = n32 / d32;
    r.quotient = q32;
    r.rest = n32 - q32 * d32;
    return r;
  }
  if (digits && d <= UINT32_MAX) {
    uint32_t high = (uint32_t)(n >> 32), d32 = (uint32_t)d, q32 = high / d32, rest;
    uint32_t low = divide_two_digits(high - q32 * d32, (uint32_t)n, d32, &rest);
    r.quotient = (uint64_t)q32 << 32 | low;
    r.rest = rest;
    return r;
  }
  int32_t shift = (int32_t)(divide_zeros(d) - divide_zeros(n));
  if (shift >= 0) d <<= shift;
  for (; shift >= 0; shift--, d >>= 1) {
    r.quotient <<= 1;
    if (n < d) continue;
    n -= d;
    r.quotient |= 1u;
  }
  r.rest = n;
  return r;
}

static inline divided_t divide_signed(int64_t n, int64_t d, divided_t (*by)(uint64_t, uint64_t)) {
  uint64_t u = n < 0 ? 0u - (uint64_t)n : (uint64_t)n, v = d < 0 ? 0u - (uint64_t)d : (uint64_t)d;
  divided_t r = by(u, v);
  if ((n ^ d) < 0) r.quotient = 0u - r.quotient;
  if (n < 0) r.rest = 0u - r.rest;
  return r;
}

#endif

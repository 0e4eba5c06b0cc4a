#include "round.h"

static uint32_t mix(uint32_t x, uint32_t v) {
  x ^= v;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return x;
}

uint32_t odt_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index) {
  return mix(mix(mix(mix(0x9E3779B9u, seed), step), layer), index);
}

/* Callers keep |g| below 2^54 and -s at most 8, so this cannot overflow; saturate all the same. */
static int64_t shift_left(int64_t g, int n) {
  if (n > 62) n = 62;
  int64_t limit = INT64_MAX >> n;
  if (g > limit) return INT64_MAX;
  if (g < -limit) return -INT64_MAX;
  return g * ((int64_t)1 << n);
}

int64_t odt_half_up(int64_t g, int s) {
  if (s <= 0) return s == 0 ? g : shift_left(g, -s);
  if (s > 62) return 0;
  return (g + ((int64_t)1 << (s - 1))) >> s;
}

int64_t odt_round(int64_t g, int s, uint8_t rounding, uint32_t r) {
  if (s <= 0 || rounding == ODT_ROUND_HALF_UP) return odt_half_up(g, s);
  if (s > 62) return 0;
  uint64_t a = g < 0 ? 0u - (uint64_t)g : (uint64_t)g;
  uint64_t mask = ((uint64_t)1 << s) - 1u;
  uint64_t q;
  if (rounding == ODT_ROUND_HALF_AWAY) {
    q = (a + ((uint64_t)1 << (s - 1))) >> s;
  } else if (rounding == ODT_ROUND_SR) {
    q = (a >> s) + ((r & mask) < (a & mask) ? 1u : 0u);
  } else {
    int h = s / 2;
    uint64_t hi = (a & mask) >> h;
    uint64_t lo = a & (((uint64_t)1 << h) - 1u);
    if (s & 1) lo <<= 1;
    q = (a >> s) + (hi > lo ? 1u : 0u);
  }
  return g < 0 ? -(int64_t)q : (int64_t)q;
}

/* Rule 1.8. */
#include "odt/odt.h"

static uint32_t xorshift32(uint32_t x) {
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return x;
}

void odt_order(uint32_t order_seed, uint32_t epoch, uint32_t n, uint16_t* p) {
  uint32_t x = order_seed ^ ((epoch + 1u) * 0x9E3779B1u);
  if (x == 0) x = 0x9E3779B9u;
  for (int i = 0; i < 4; i++) x = xorshift32(x);
  for (uint32_t i = 0; i < n; i++) p[i] = (uint16_t)i;
  for (uint32_t i = n; i-- > 1;) {
    x = xorshift32(x);
    uint32_t j = (uint32_t)(((uint64_t)x * (i + 1u)) >> 32);
    uint16_t swap = p[i];
    p[i] = p[j];
    p[j] = swap;
  }
}

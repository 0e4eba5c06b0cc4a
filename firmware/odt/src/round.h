/* Rule 1.1: rounding of G by s, on int64. */
#ifndef ODT_ROUND_H
#define ODT_ROUND_H

#include <stdint.h>

#include "odt/odt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bit length: 0 for 0. */
static inline int odt_bitlen64(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }

/* r: the random word of SR, unused otherwise. s > 62 rounds everything to 0. */
int64_t odt_round(int64_t g, int s, uint8_t rounding, uint32_t r);
int64_t odt_half_up(int64_t g, int s);
uint32_t odt_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif

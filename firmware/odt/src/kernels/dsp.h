/* The DSP extension's instructions: two int16 or four int8 values per word. On other machines the
 * same in plain C. Names are Arm's; what sets the GE flags is fused with the SEL that reads them.
 */
#ifndef ODT_KERNELS_DSP_H
#define ODT_KERNELS_DSP_H

#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>

#define ODT_DSP_OP(name, mnemonic)                              \
  static inline uint32_t name(uint32_t a, uint32_t b) {         \
    uint32_t r;                                                 \
    __asm__(mnemonic " %0, %1, %2" : "=r"(r) : "r"(a), "r"(b)); \
    return r;                                                   \
  }
ODT_DSP_OP(dsp_sadd16, "sadd16")
ODT_DSP_OP(dsp_qadd8, "qadd8")
ODT_DSP_OP(dsp_qsub8, "qsub8")
ODT_DSP_OP(dsp_sadd8, "sadd8")
ODT_DSP_OP(dsp_ssub8, "ssub8")
#undef ODT_DSP_OP

static inline uint32_t dsp_sxtb16(uint32_t a) {
  uint32_t r;
  __asm__("sxtb16 %0, %1" : "=r"(r) : "r"(a));
  return r;
}
static inline uint32_t dsp_sxtb16_ror8(uint32_t a) {
  uint32_t r;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(r) : "r"(a));
  return r;
}
#define ODT_DSP_MAC(name, mnemonic)                                           \
  static inline int32_t name(uint32_t a, uint32_t b, int32_t acc) {           \
    int32_t r;                                                                \
    __asm__(mnemonic " %0, %1, %2, %3" : "=r"(r) : "r"(a), "r"(b), "r"(acc)); \
    return r;                                                                 \
  }
ODT_DSP_MAC(dsp_smlad, "smlad")
ODT_DSP_MAC(dsp_smlabb, "smlabb")
ODT_DSP_MAC(dsp_smlabt, "smlabt")
ODT_DSP_MAC(dsp_smlatb, "smlatb")
ODT_DSP_MAC(dsp_smlatt, "smlatt")
#undef ODT_DSP_MAC
/* acc + sum of |a.byte - b.byte|, bytes unsigned. */
static inline uint32_t dsp_usada8(uint32_t a, uint32_t b, uint32_t acc) {
  uint32_t r;
  __asm__("usada8 %0, %1, %2, %3" : "=r"(r) : "r"(a), "r"(b), "r"(acc));
  return r;
}
/* Bytes of a that are not 0 become the bytes of one, the others those of zero. */
static inline uint32_t dsp_nonzero8(uint32_t a, uint32_t ff, uint32_t one, uint32_t zero) {
  uint32_t r;
  __asm__("uadd8 %0, %1, %2\n\tsel %0, %3, %4" : "=&r"(r) : "r"(a), "r"(ff), "r"(one), "r"(zero));
  return r;
}
/* Byte `at` of word becomes the low byte of v. */
#define DSP_BFI8(word, v, at) __asm__("bfi %0, %1, #" #at ", #8" : "+r"(word) : "r"(v))
#define DSP_SSAT8(v) __asm__("ssat %0, #8, %0" : "+r"(v))

#else

static inline int32_t dsp_b(uint32_t a, int i) { return (int8_t)(a >> (8 * i)); }
static inline int32_t dsp_h(uint32_t a, int i) { return (int16_t)(a >> (16 * i)); }
static inline int32_t dsp_sat(int32_t v, int32_t lo, int32_t hi) {
  return v < lo ? lo : v > hi ? hi : v;
}
#define ODT_DSP_OP(name, expression)                                            \
  static inline uint32_t name(uint32_t a, uint32_t b) {                         \
    uint32_t r = 0;                                                             \
    for (int i = 0; i < 4; i++) r |= ((uint32_t)(expression)&0xFFu) << (8 * i); \
    return r;                                                                   \
  }
ODT_DSP_OP(dsp_qadd8, dsp_sat(dsp_b(a, i) + dsp_b(b, i), -128, 127))
ODT_DSP_OP(dsp_qsub8, dsp_sat(dsp_b(a, i) - dsp_b(b, i), -128, 127))
ODT_DSP_OP(dsp_sadd8, dsp_b(a, i) + dsp_b(b, i))
ODT_DSP_OP(dsp_ssub8, dsp_b(a, i) - dsp_b(b, i))
#undef ODT_DSP_OP
static inline uint32_t dsp_pair(int32_t lo, int32_t hi) {
  return ((uint32_t)lo & 0xFFFFu) | ((uint32_t)hi << 16);
}
static inline uint32_t dsp_sadd16(uint32_t a, uint32_t b) {
  return dsp_pair(dsp_h(a, 0) + dsp_h(b, 0), dsp_h(a, 1) + dsp_h(b, 1));
}
static inline uint32_t dsp_sxtb16(uint32_t a) { return dsp_pair(dsp_b(a, 0), dsp_b(a, 2)); }
static inline uint32_t dsp_sxtb16_ror8(uint32_t a) { return dsp_pair(dsp_b(a, 1), dsp_b(a, 3)); }
static inline int32_t dsp_smlad(uint32_t a, uint32_t b, int32_t acc) {
  return acc + dsp_h(a, 0) * dsp_h(b, 0) + dsp_h(a, 1) * dsp_h(b, 1);
}
static inline int32_t dsp_smlabb(uint32_t a, uint32_t b, int32_t acc) {
  return acc + dsp_h(a, 0) * dsp_h(b, 0);
}
static inline int32_t dsp_smlabt(uint32_t a, uint32_t b, int32_t acc) {
  return acc + dsp_h(a, 0) * dsp_h(b, 1);
}
static inline int32_t dsp_smlatb(uint32_t a, uint32_t b, int32_t acc) {
  return acc + dsp_h(a, 1) * dsp_h(b, 0);
}
static inline int32_t dsp_smlatt(uint32_t a, uint32_t b, int32_t acc) {
  return acc + dsp_h(a, 1) * dsp_h(b, 1);
}
static inline uint32_t dsp_usada8(uint32_t a, uint32_t b, uint32_t acc) {
  for (int i = 0; i < 4; i++) {
    uint32_t x = a >> (8 * i) & 0xFFu, y = b >> (8 * i) & 0xFFu;
    acc += x > y ? x - y : y - x;
  }
  return acc;
}
static inline uint32_t dsp_nonzero8(uint32_t a, uint32_t ff, uint32_t one, uint32_t zero) {
  uint32_t r = 0;
  (void)ff;
  for (int i = 0; i < 4; i++) {
    r |= ((a >> (8 * i) & 0xFFu) != 0 ? one : zero) & (0xFFu << (8 * i));
  }
  return r;
}
#define DSP_BFI8(word, v, at) \
  ((word) = ((word) & ~(0xFFu << (at))) | (((uint32_t)(v)&0xFFu) << (at)))
#define DSP_SSAT8(v) ((v) = dsp_sat((v), -128, 127))

#endif

static inline uint32_t dsp_load(const void* p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

#endif

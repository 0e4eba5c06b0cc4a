/* DSP paths of dfp_dense.c. */
#ifndef ODT_DFP_DENSE_DSP_H
#define ODT_DFP_DENSE_DSP_H

#include "dfp/dfp_kernels.h"

#if defined(__ARM_FEATURE_DSP) && !defined(ODT_KERNELS_C) && !defined(ODT_DFP_CHAIN32)
#define ODT_DFP_DSP
#endif

#ifdef ODT_DFP_DSP
#include <arm_acle.h>
#include <string.h>

typedef int16x2_t odt_dfp_pair_t;

static inline odt_dfp_pair_t odt_dfp_load2(const int16_t* p) {
  odt_dfp_pair_t v;
  memcpy(&v, p, 4);
  return v;
}

/* Halfwords of a and b: (a low, b low); (a high, b high). */
static inline odt_dfp_pair_t odt_dfp_low(uint32_t a, uint32_t b) {
  odt_dfp_pair_t v;
  __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(v) : "r"(a), "r"(b));
  return v;
}
static inline odt_dfp_pair_t odt_dfp_high(uint32_t a, uint32_t b) {
  odt_dfp_pair_t v;
  __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(v) : "r"(b), "r"(a));
  return v;
}

/* As the functions without _dsp; false: not a case for them, nothing was done. */
bool odt_dfp_dense_forward_dsp(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                               const int16_t* x, uint32_t x_stride, uint32_t n,
                               odt_dfp_sink_t* sink, void* scratch);
bool odt_dfp_dense_delta_dsp(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                             const int16_t* dy, uint32_t dy_stride, uint32_t n,
                             odt_dfp_sink_t* sink, void* scratch);
/* For whole blocks: u->lane < 0. */
uint32_t odt_dfp_dense_update_dsp(uint32_t n_in, const int16_t* x, uint32_t x_stride,
                                  const int16_t* dy, uint32_t dy_stride, uint32_t n,
                                  odt_dfp_update_t* u, void* scratch);
#endif

#endif

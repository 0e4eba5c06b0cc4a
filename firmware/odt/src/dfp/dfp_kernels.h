/* Rule 1.13: what multiplies and accumulates, a whole batch a call. Plain C in dfp_dense.c and
 * dfp_conv.c; a core's own variant takes a file's place and gives the same bits.
 *
 * Tensors are int16 [n][stride], |value| <= 32767, stride even, values behind the sample's count 0,
 * 4-byte aligned. Sums are exact in int64. With ODT_DFP_CHAIN32 both operands are first shifted
 * right by 1 (floor) and 8 products at a time summed in int32; an accumulator then counts at an
 * exponent higher by ODT_DFP_CHAIN. */
#ifndef ODT_DFP_KERNELS_H
#define ODT_DFP_KERNELS_H

#include "internal.h"
#include "round.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef ODT_DFP_CHAIN32
#define ODT_DFP_CHAIN 2
#else
#define ODT_DFP_CHAIN 0
#endif

#define ODT_DFP_MAX 32767

/* Where a kernel leaves its sums. */
typedef struct {
  int32_t* acc;        /* [n][stride]: floor(sum / 2^pre), 0 where mask <= 0 */
  int64_t* wide;       /* not NULL: instead, [stride] of the one sample: += HALF_UP(sum, shift) */
  const int16_t* mask; /* [n][stride]; NULL: none */
  uint32_t stride;
  int pre, shift;
  uint64_t or_abs; /* OR of all |sum| that went into acc */
} odt_dfp_sink_t;

/* Weights and offsets of one layer. */
typedef struct {
  const int16_t* w;    /* dense: panels or ONNX [in][out]; conv: ONNX [O][I/g][kH][kW] */
  bool panels;         /* dense: as odt_dfp_panel_at says */
  const int8_t* e;     /* blocked: exponent per output; NULL: one for all */
  int32_t e_max;       /* the layer's common exponent */
  const int32_t* bias; /* [outputs] */
  int32_t bias_left;   /* bias * 2^bias_left counts like a sum whose weights are at e_max */
} odt_dfp_weights_t;

/* One update of (a part of) a layer: W -= HALF_UP(lr_m * sum, s). Units are handled in a fixed
 * order of the kernel's own, each wholly or not at all. */
typedef struct {
  int16_t* w;
  uint32_t from, to; /* units */
  int8_t lane;       /* dense panels: only output `lane` (0, 1) of a panel; -1: both */
  bool revert;       /* W += instead: undoes units that were applied with the same s */
  bool saturate;     /* no overflow: W stays within +-32767 */
  bool stats;        /* fill sum_abs, nonzero, abs_delta */
  int32_t lr_m;
  int s;           /* any value; below 0 shifts left, saturating */
  uint64_t or_abs; /* OR of all |sum| */
  uint64_t sum_abs, nonzero, abs_delta;
} odt_dfp_update_t;

/* ---- layout of dense weights ------------------------------------------------------------------
 * Panels of 2 outputs; in them pairs of inputs; so 4 values w[i][o], w[i+1][o], w[i][o+1],
 * w[i+1][o+1] for each 2x2 block: one 64-bit load for two SMLALD lanes of the forward pass, and the
 * unit of updates, numbered as they lie. Odd ends are filled with 0. */
static inline uint32_t odt_dfp_even(uint32_t n) { return (n + 1u) & ~1u; }
static inline uint32_t odt_dfp_panel_at(uint32_t n_in, uint32_t i, uint32_t o) {
  return ((o >> 1) * ((n_in + 1u) >> 1) + (i >> 1)) * 4u + ((o & 1u) << 1) + (i & 1u);
}
static inline uint32_t odt_dfp_panel_values(uint32_t n_in, uint32_t n_out) {
  return odt_dfp_even(n_in) * odt_dfp_even(n_out);
}

/* ---- kernels ----------------------------------------------------------------------------------
 */

/* Bytes of scratch (8-byte aligned) the kernels want for this op and batch. */
uint32_t odt_dfp_scratch_bytes(const odt_model_t* m, const odt_op_t* op, uint32_t batch);

/* sum[b][o] = x[b][i] w[i][o] + offset, blocked: brought to e_max. */
void odt_dfp_dense_forward(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                           const int16_t* x, uint32_t x_stride, uint32_t n, odt_dfp_sink_t* sink,
                           void* scratch);
/* sum[b][i] = dy[b][o] w[i][o], blocked: weights first brought to e_max. */
void odt_dfp_dense_delta(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                         const int16_t* dy, uint32_t dy_stride, uint32_t n, odt_dfp_sink_t* sink,
                         void* scratch);
/* sum[i][o] = x[b][i] dy[b][o], panels. Returns the unit whose weights would have left +-32767 (it
 * and those behind it are untouched), else u->to. */
uint32_t odt_dfp_dense_update(uint32_t n_in, uint32_t n_out, const int16_t* x, uint32_t x_stride,
                              const int16_t* dy, uint32_t dy_stride, uint32_t n,
                              odt_dfp_update_t* u, void* scratch);

/* The same for convolutions; a unit is one weight. */
void odt_dfp_conv_forward(const odt_dfp_weights_t* w, const odt_op_t* op, const odt_tensor_t* in,
                          const odt_tensor_t* out, const int16_t* x, uint32_t n,
                          odt_dfp_sink_t* sink, void* scratch);
void odt_dfp_conv_delta(const odt_dfp_weights_t* w, const odt_op_t* op, const odt_tensor_t* in,
                        const odt_tensor_t* out, const int16_t* dy, uint32_t n,
                        odt_dfp_sink_t* sink, void* scratch);
uint32_t odt_dfp_conv_update(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                             const int16_t* x, const int16_t* dy, uint32_t n, odt_dfp_update_t* u,
                             void* scratch);

/* y[i] = sat((acc[i] + half) >> s) to +-32767, below 0: 0 where relu. half = 2^(s-1), s = 0: 0;
 * |acc| <= 2^30. Returns how many are 0. */
uint32_t odt_dfp_round(const int32_t* acc, int16_t* y, uint32_t n, int s, bool relu);

/* ---- shared by the variants --------------------------------------------------------------------
 */

static inline uint64_t odt_dfp_abs(int64_t v) { return v < 0 ? 0u - (uint64_t)v : (uint64_t)v; }

static inline int64_t odt_dfp_half_up(int64_t v, int s) {
  return s >= 1 && s <= 62 ? (v + ((int64_t)1 << (s - 1))) >> s : odt_half_up(v, s);
}

static inline void odt_dfp_put(odt_dfp_sink_t* k, uint32_t b, uint32_t i, int64_t sum) {
  uint32_t at = b * k->stride + i;
  if (k->wide) {
    k->wide[i] += odt_dfp_half_up(sum, k->shift);
    return;
  }
  if (k->mask && k->mask[at] <= 0) sum = 0;
  k->or_abs |= odt_dfp_abs(sum);
  k->acc[at] = (int32_t)(sum >> k->pre);
}

/* How far output o's sums lie below the common exponent. */
static inline int odt_dfp_below(const odt_dfp_weights_t* w, uint32_t o) {
  return w->e ? w->e_max - w->e[o] : 0;
}
/* The offset of o as its sums count before they are brought to e_max. */
int64_t odt_dfp_bias(const odt_dfp_weights_t* w, uint32_t o);

/* lr_m * sum as a step; far outside of what a weight can take it is cut. */
static inline int32_t odt_dfp_step(const odt_dfp_update_t* u, int64_t sum) {
  int64_t d = odt_dfp_half_up(sum * u->lr_m, u->s);
  return d > 131072 ? 131072 : d < -131072 ? -131072 : (int32_t)d;
}
/* Applies the sums of one unit to its n (at most 4) weights; false: overflow, nothing was done. */
bool odt_dfp_apply(odt_dfp_update_t* u, int16_t* w, const int64_t* sum, uint32_t n);

/* Operands of one product. */
static inline int32_t odt_dfp_operand(int16_t v) { return v >> (ODT_DFP_CHAIN / 2); }

#ifdef __cplusplus
}
#endif
#endif

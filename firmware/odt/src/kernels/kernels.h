/* The layers that cost the time, LINEAR and CONV2D, on whole batches. The same bits whatever
 * variant is built in (ODT_KERNELS in CMakeLists.txt). */
#ifndef ODT_KERNELS_H
#define ODT_KERNELS_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weights as the kernels read them: the 8-bit view of M is taken on the fly (rule 1.5). */
typedef struct {
  const int8_t* m8;   /* k <= 8 and frozen layers: view = m8 << shl */
  const int16_t* m16; /* k > 8: view = (m16 + half) >> f */
  bool packed;        /* in the layout of layout.h; else in ONNX order */
  int f, shl;
  int32_t half;
} odt_wref_t;

/* Weights of op as trained (layer >= 0) or from the image. */
odt_wref_t odt_weights_of(const odt_trainer_t* t, const odt_op_t* op);

/* One LINEAR or CONV2D and what it works with. */
typedef struct {
  const odt_op_t* op;
  const odt_tensor_t *in, *out;
  odt_wref_t w;
  const int32_t* off;
  void* scratch; /* odt_kernel_scratch() bytes, 8-byte aligned; holds nothing between calls but what
                    odt_update_t.kept speaks of */
} odt_kernel_t;

/* The op of t, with the weights as they are now. */
odt_kernel_t odt_kernel_of(const odt_trainer_t* t, const odt_op_t* op);

/* Bytes of scratch that every call on this op needs at most, for batches of up to `batch`; the same
 * in every variant, so that the host can plan a board's memory. 0 for other ops. */
uint32_t odt_kernel_scratch(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                            uint32_t batch);

/* ---- forward: rule 1.2. y: [n][out->count] of out->dtype ----------------------------------------
 */

void odt_kernel_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y);

/* ---- deltas: rule 1.4. dy: [n][out->count] ------------------------------------------------------
 */

/* A tensor's delta in the making. Whoever fills it walks all its values twice: once to measure, and
 * once, with s set, to store. */
typedef struct {
  bool store;
  bool measure;           /* while storing, with a shift that is not known to be right yet */
  uint8_t* last;          /* the shift of the step before, 0xFF: none; NULL: nobody remembers it */
  int s;                  /* shift of rule 1.4, second pass */
  uint32_t or_abs;        /* first pass: OR of all |d|: its bit length is that of the maximum */
  uint64_t zeros;         /* second pass */
  const odt_view_t* mask; /* activations whose sign masks (value > 0 passes), NULL: no ReLU */
  int8_t* out;            /* [batch][count] */
  uint32_t count;
} odt_delta_t;

static inline void odt_delta_put(odt_delta_t* d, uint32_t b, uint32_t i, int32_t v) {
  if (d->mask && odt_load(odt_sample(d->mask, b), d->mask->dtype, i) <= 0) v = 0;
  if (!d->store || d->measure) d->or_abs |= v < 0 ? 0u - (uint32_t)v : (uint32_t)v;
  if (!d->store) return;
  if (d->s > 0) {
    int64_t r = ((int64_t)v + ((int64_t)1 << (d->s - 1))) >> d->s;
    v = r > 127 ? 127 : r < -127 ? -127 : (int32_t)r;
  }
  if (v == 0) d->zeros++;
  d->out[(size_t)b * d->count + i] = (int8_t)(v < -127 ? -127 : v > 127 ? 127 : v);
}

/* The delta of k's input where k is its only consumer: both passes. In: mask, out, count; out: s,
 * or_abs, zeros. */
void odt_kernel_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, odt_delta_t* d);
/* Where it is one of several: acc[b][i] += contribution << shift, no mask. acc: [n][in->count]. */
void odt_kernel_delta_add(const odt_kernel_t* k, const int8_t* dy, uint32_t n, int shift,
                          int64_t* acc);

/* ---- gradients and weight updates: rules 1.1, 1.5, 1.7, 1.11 ------------------------------------
 */

typedef struct {
  bool measure, apply, literal, sum;
  bool kept; /* set by a pass that only measures: the scratch holds what the pass that applies
                needs; it must be the next call on it */
  bool fast; /* odt_update_prepare: usual settings, which odt_update_words does in words */
  bool tame; /* the gradients to come are known to add nothing to or_abs's length and to need no
                d_clip */
  uint8_t rounding;
  int s;          /* right shift into the grid, ws - f; literal: sh */
  int s2;         /* literal: second shift */
  int32_t d_clip; /* stale: |d| limit, else INT32_MAX */
  int32_t m_lo, m_hi;
  int8_t* m8;
  int16_t* m16;
  uint32_t sr_seed, step, layer;
  uint64_t or_abs; /* as long as the largest |G| */
  uint64_t kept_norm;
  uint64_t sum_abs, nonzero, abs_delta; /* sum_abs: where sum */
} odt_update_t;

/* One pass over the gradients of k's weights: measures, applies or both. */
void odt_kernel_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                     odt_update_t* u);

/* One gradient G of the weight with ONNX index i, which lies at `at`. */
void odt_update_one(odt_update_t* u, uint32_t i, uint32_t at, int64_t g);
/* n gradients from ONNX index i on of an M in ONNX order, |g| <= 2^30. */
void odt_update_row(odt_update_t* u, uint32_t i, const int32_t* g, uint32_t n);

/* ---- inside the kernels -------------------------------------------------------------------------
 */

/* Rule 1.2's last step for one output. */
typedef struct {
  int32_t off, lo, hi;
  uint32_t k, mult; /* 0: none */
  int shl;          /* of the sum, first */
} odt_requant_t;

static inline odt_requant_t odt_requant_of(const odt_op_t* op, const int32_t* off, uint32_t o,
                                           int shl) {
  odt_requant_t q = {off[o],
                     op->clip_lo,
                     op->clip_hi,
                     (uint32_t)op->k_out[o],
                     op->mult ? (uint32_t)op->mult[o] : 0u,
                     shl};
  return q;
}
static inline int32_t odt_requant(const odt_requant_t* q, int32_t acc) {
  int32_t a;
  acc *= 1 << q->shl;
  if (__builtin_add_overflow(acc, q->off, &a)) a = acc < 0 ? INT32_MIN : INT32_MAX;
  if (q->mult) {
    int64_t p = ((int64_t)a * q->mult) >> q->k;
    return p < q->lo ? q->lo : p > q->hi ? q->hi : (int32_t)p;
  }
  a >>= q->k;
  return a < q->lo ? q->lo : a > q->hi ? q->hi : a;
}

/* The usual case of odt_requant: neither mult nor shl. */
static inline bool odt_requant_plain(const odt_requant_t* q) { return q->mult == 0 && q->shl == 0; }
static inline int32_t odt_requant_shift(const odt_requant_t* q, int32_t acc) {
  int32_t a;
  if (__builtin_add_overflow(acc, q->off, &a)) a = acc < 0 ? INT32_MIN : INT32_MAX;
  a >>= q->k;
  return a < q->lo ? q->lo : a > q->hi ? q->hi : a;
}

/* Where raw delta contributions go: into d, or added to acc. */
typedef struct {
  odt_delta_t* d; /* NULL: acc */
  int64_t* acc;
  uint32_t count;
  int shift, shl; /* of acc; of every value first */
} odt_sink_t;

/* n contributions to sample b from input i on. */
void odt_sink_row(const odt_sink_t* s, uint32_t b, uint32_t i, const int32_t* v, uint32_t n);

#define ODT_DELTA_COLS 128u /* inputs at a time */
#define ODT_BLOCK_BYTES 80u /* scratch per eight samples: dy of an output, 4 inputs */
#define ODT_DELTA_ROWS 256u /* outputs at a time */

uint32_t odt_dense_scratch(const odt_op_t* op, uint32_t n_in, uint32_t batch);
uint32_t odt_conv_scratch(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                          uint32_t batch);
void odt_dense_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y);
void odt_dense_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink);
void odt_dense_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                    odt_update_t* u);
void odt_conv_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y);
void odt_conv_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink);
void odt_conv_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                   odt_update_t* u);

#ifdef __cplusplus
}
#endif
#endif

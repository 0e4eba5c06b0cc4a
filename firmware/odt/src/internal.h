/* Shared inside the library. */
#ifndef ODT_INTERNAL_H
#define ODT_INTERNAL_H

#include <stddef.h>

#include "odt/odt.h"
#include "odt/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ODT_NONE 0xFFFFFFFFu

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "images and canonical bytes are used in place: little-endian cores only"
#endif

/* Fills err (may be NULL) and returns status. */
odt_status_t odt_fail(odt_error_t* err, odt_status_t status, const char* what, int32_t index,
                      int64_t got, int64_t lo, int64_t hi);

static inline uint16_t odt_le16(const uint8_t* p) { return (uint16_t)(p[0] | (p[1] << 8)); }
static inline uint32_t odt_le32(const uint8_t* p) {
  return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}
static inline void odt_put16(uint8_t* p, uint32_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}
static inline void odt_put32(uint8_t* p, uint32_t v) {
  odt_put16(p, v);
  odt_put16(p + 2, v >> 16);
}
static inline void odt_put64(uint8_t* p, uint64_t v) {
  odt_put32(p, (uint32_t)v);
  odt_put32(p + 4, (uint32_t)(v >> 32));
}

/* Values of one tensor for a batch: sample b is at base + (idx ? idx[b] : b) * stride. */
typedef struct {
  const uint8_t* base;
  const uint16_t* idx;
  uint32_t stride; /* bytes per sample */
  uint8_t dtype;
} odt_view_t;

static inline const uint8_t* odt_sample(const odt_view_t* v, uint32_t b) {
  return v->base + (size_t)(v->idx ? v->idx[b] : b) * v->stride;
}
static inline uint32_t odt_elem_bytes(uint8_t dtype) { return dtype == ODT_S16 ? 2u : 1u; }
static inline int32_t odt_load(const uint8_t* p, uint8_t dtype, uint32_t i) {
  if (dtype == ODT_U8) return p[i];
  if (dtype == ODT_S8) return ((const int8_t*)p)[i];
  return ((const int16_t*)(const void*)p)[i];
}
static inline void odt_store(uint8_t* p, uint8_t dtype, uint32_t i, int32_t v) {
  if (dtype == ODT_S16) {
    ((int16_t*)(void*)p)[i] = (int16_t)v;
  } else {
    p[i] = (uint8_t)v;
  }
}

/* Weights as the kernels read them: the 8-bit view of M is taken on the fly (rule 1.5). */
typedef struct {
  const int8_t* m8;   /* k <= 8 and frozen layers: view = m8 << shl */
  const int16_t* m16; /* k > 8: view = (m16 + half) >> f */
  int f, shl;
  int32_t half;
} odt_wref_t;

static inline int32_t odt_weight(const odt_wref_t* w, uint32_t i) {
  return w->m16 ? (w->m16[i] + w->half) >> w->f : w->m8[i] * (1 << w->shl);
}

/* Rule 1.2's last step for output o. */
static inline int32_t odt_requant(const odt_op_t* op, const int32_t* off, uint32_t o, int32_t acc) {
  int64_t a = (int64_t)acc + off[o];
  if (a > INT32_MAX) a = INT32_MAX;
  if (a < INT32_MIN) a = INT32_MIN;
  if (op->mult) a *= op->mult[o];
  a >>= op->k_out[o];
  if (a < op->clip_lo) return op->clip_lo;
  if (a > op->clip_hi) return op->clip_hi;
  return (int32_t)a;
}

/* ---- deltas: one propagated tensor, in two passes (measure, then round and store) -------------
 */

typedef struct {
  bool store;
  int s;                  /* shift of rule 1.4, second pass */
  uint32_t or_abs;        /* first pass: OR of all |d|: its bit length is that of the maximum */
  uint64_t zeros;         /* second pass */
  const odt_view_t* mask; /* activations whose sign masks (value > 0 passes), NULL: no ReLU */
  int8_t* out;            /* [batch][count] */
  uint32_t count;
} odt_delta_t;

static inline void odt_delta_put(odt_delta_t* d, uint32_t b, uint32_t i, int32_t v) {
  if (d->mask && odt_load(odt_sample(d->mask, b), d->mask->dtype, i) <= 0) v = 0;
  if (!d->store) {
    d->or_abs |= v < 0 ? 0u - (uint32_t)v : (uint32_t)v;
    return;
  }
  if (d->s > 0) {
    int64_t r = ((int64_t)v + ((int64_t)1 << (d->s - 1))) >> d->s;
    v = r > 127 ? 127 : r < -127 ? -127 : (int32_t)r;
  }
  if (v == 0) d->zeros++;
  d->out[(size_t)b * d->count + i] = (int8_t)(v < -127 ? -127 : v > 127 ? 127 : v);
}

/* ---- weight updates ---------------------------------------------------------------------------
 */

typedef struct {
  bool measure, apply, literal, sum;
  uint8_t rounding;
  int s;          /* right shift into the grid, ws - f; literal: sh */
  int s2;         /* literal: second shift */
  int32_t d_clip; /* stale: |d| limit, else INT32_MAX */
  int32_t m_lo, m_hi;
  int8_t* m8;
  int16_t* m16;
  uint32_t sr_seed, step, layer;
  uint64_t or_abs, sum_abs, nonzero, abs_delta; /* sum_abs: where sum */
} odt_update_t;

/* One gradient G of the weight with ONNX index i. */
void odt_update_one(odt_update_t* u, uint32_t i, int64_t g);
/* n gradients from index i on, |g| <= 2^30. */
void odt_update_row(odt_update_t* u, uint32_t i, const int32_t* g, uint32_t n);

/* ---- kernels ----------------------------------------------------------------------------------
 */

void odt_linear_forward(const odt_op_t* op, uint32_t n_in, const odt_wref_t* w, const int32_t* off,
                        const uint8_t* x, uint8_t x_dtype, uint8_t* y, uint8_t y_dtype,
                        int32_t* row);
void odt_linear_delta(const odt_op_t* op, uint32_t n_in, const odt_wref_t* w, const int8_t* dy,
                      uint32_t n, odt_delta_t* d);
void odt_linear_grad(const odt_op_t* op, uint32_t n_in, const odt_view_t* x, const int8_t* dy,
                     uint32_t n, int32_t* row, odt_update_t* u);

void odt_conv_forward(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                      const odt_wref_t* w, const int32_t* off, const uint8_t* x, uint8_t* y,
                      int32_t* row);
void odt_conv_delta(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                    const odt_wref_t* w, const int8_t* dy, uint32_t n, int32_t* row,
                    odt_delta_t* d);
void odt_conv_grad(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                   const odt_view_t* x, const int8_t* dy, uint32_t n, odt_update_t* u);
void odt_prequant(const odt_op_t* op, const odt_tensor_t* in, const uint8_t* x, uint8_t* y,
                  uint8_t y_dtype);

/* ---- parts of the trainer ---------------------------------------------------------------------
 */

/* The op that wrote what `op` passes on, stepping over FLATTEN; -1: the network input. */
int32_t odt_producer(const odt_model_t* m, int32_t op);
/* Arena layout; t NULL: only the plan. */
void odt_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                 void* base, odt_memory_plan_t* plan);
/* Weights of op as trained (layer >= 0) or from the image. */
odt_wref_t odt_weights_of(const odt_trainer_t* t, const odt_op_t* op);
const int32_t* odt_offsets_of(const odt_trainer_t* t, const odt_op_t* op);
/* Forward pass of n samples; fills act[]. */
void odt_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n);
/* Output of op i (i = -1: the network input x). FLATTEN shares its input's memory. */
odt_view_t odt_act_view(const odt_trainer_t* t, int32_t op, const odt_view_t* x);
/* Deltas and updates from delta[0] = dy; fills rec->layers. */
void odt_backward(odt_trainer_t* t, const odt_view_t* x, uint32_t n, odt_step_record_t* rec);

/* Rule 1.3. Adds the sample's loss to *loss; dy may be NULL. Returns the predicted class. */
uint32_t odt_loss(const odt_model_t* m, const odt_run_spec_t* spec, const int8_t* z, uint32_t label,
                  int8_t* dy, uint64_t* loss);

int32_t odt_m_max(int k);
/* Stage (0..2) of the step to come; 2 at the end of the run. */
uint32_t odt_stage(const odt_trainer_t* t);
void odt_load_layer(const odt_trainer_t* t, odt_layer_t* l);
void odt_epoch_stats_reset(odt_trainer_t* t);
uint8_t odt_resolve_rounding(const odt_run_spec_t* spec);

#ifdef __cplusplus
}
#endif
#endif

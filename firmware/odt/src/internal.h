/* Shared inside the library. */
#ifndef ODT_INTERNAL_H
#define ODT_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "odt/odt.h"
#include "odt/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ODT_NONE 0xFFFFFFFFu

/* A loop that a step spends its time in, in a file that is otherwise built for size. */
#if defined(__arm__) && defined(__GNUC__) && !defined(__clang__)
#define ODT_HOT __attribute__((optimize("O2")))
#else
#define ODT_HOT
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "images and canonical bytes are used in place: little-endian cores only"
#endif

/* Fills err (may be NULL) and returns status. Got and limits may be of any integer type: what an
 * int32 cannot hold becomes its end. (64-bit arguments would make every call half as long again.)
 */
odt_status_t odt_fail32(odt_error_t* err, odt_status_t status, const char* what, int32_t index,
                        int32_t got, int32_t lo, int32_t hi);
#define odt_fail(err, status, what, index, got, lo, hi) \
  odt_fail32(err, status, what, index, ODT_I32(got), ODT_I32(lo), ODT_I32(hi))
static inline int32_t odt_i32_same(int32_t v) { return v; }
static inline int32_t odt_i32_signed(int64_t v) {
  return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
static inline int32_t odt_i32_unsigned(uint64_t v) {
  return v > INT32_MAX ? INT32_MAX : (int32_t)v;
}
#ifndef __cplusplus
#define ODT_I32(v)                                \
  _Generic((v), unsigned                          \
           : odt_i32_unsigned, unsigned long      \
           : odt_i32_unsigned, unsigned long long \
           : odt_i32_unsigned, long               \
           : odt_i32_signed, long long            \
           : odt_i32_signed, default              \
           : odt_i32_same)(v)
#endif

/* Little-endian numbers at any address: one instruction where the core loads unaligned words. */
#ifdef __ARM_FEATURE_UNALIGNED
#define ODT_WORD static inline __attribute__((always_inline))
#else
#define ODT_WORD static inline
#endif
ODT_WORD uint16_t odt_le16(const uint8_t* p) {
  uint16_t v;
  memcpy(&v, p, 2);
  return v;
}
ODT_WORD uint32_t odt_le32(const uint8_t* p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}
ODT_WORD uint64_t odt_le64(const uint8_t* p) {
  return odt_le32(p) | ((uint64_t)odt_le32(p + 4) << 32);
}
ODT_WORD void odt_put16(uint8_t* p, uint32_t v) {
  uint16_t word = (uint16_t)v;
  memcpy(p, &word, 2);
}
ODT_WORD void odt_put32(uint8_t* p, uint32_t v) { memcpy(p, &v, 4); }
ODT_WORD void odt_put64(uint8_t* p, uint64_t v) {
  odt_put32(p, (uint32_t)v);
  odt_put32(p + 4, (uint32_t)(v >> 32));
}

/* False where this build has no DFP16: then what serves it drops out. */
static inline bool odt_is_dfp16(const odt_model_t* m) {
  return ODT_WITH_DFP16 && m->arith == ODT_ARITH_DFP16;
}

static inline bool odt_is_conv(const odt_op_t* op) {
  return ODT_WITH_CONV && op->kind == ODT_OP_CONV2D;
}
static inline bool odt_has_weights(const odt_op_t* op) {
  return odt_is_conv(op) || op->kind == ODT_OP_LINEAR;
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

/* ---- parts of the trainer ---------------------------------------------------------------------
 */

void odt_prequant(const odt_op_t* op, const odt_tensor_t* in, const uint8_t* x, uint8_t* y,
                  uint8_t y_dtype);
/* Arena layout; t NULL: only the plan. */
void odt_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                 void* base, odt_memory_plan_t* plan);
const int32_t* odt_offsets_of(const odt_trainer_t* t, const odt_op_t* op);
/* Forward pass of n samples; x: values of tensor t->source. */
void odt_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n);
/* Deltas and updates from the logits' delta; fills rec->layers. */
void odt_backward(odt_trainer_t* t, const odt_view_t* x, uint32_t n, odt_step_record_t* rec);

/* Lowest index of the maximum of n logits. */
uint32_t odt_predicted(uint32_t n, const int8_t* z);
/* Rule 1.3. Adds the sample's loss to *loss; dy may be NULL. Returns the predicted class. */
uint32_t odt_loss(const odt_model_t* m, const odt_run_spec_t* spec, const int8_t* z, uint32_t label,
                  int8_t* dy, uint64_t* loss);
/* The same against n values: regressions and autoencoders. */
void odt_loss_values(const odt_run_spec_t* spec, uint32_t n, const int8_t* z, const int8_t* target,
                     int8_t* dy, uint64_t* loss);
/* odt_samples_fit but for the labels themselves. */
odt_status_t odt_samples_shape(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err);
/* The label of sample i, and DFP16's range of its int16 values; without classes: no label. */
odt_status_t odt_samples_label(const odt_samples_t* s, const odt_model_t* m, uint32_t i,
                               odt_error_t* err);

int32_t odt_m_max(int k);
/* The guard's score is a loss (regression, autoencoder) and no count. */
static inline bool odt_lower_is_better(const odt_model_t* m) {
  return m->task != ODT_TASK_CLASSIFY;
}

/* ---- rule 1.12 (apt.c) ------------------------------------------------------------------------
 */

/* The highest precision of a layer that the arena has room for. */
uint8_t odt_k_limit(const odt_run_spec_t* spec, uint32_t layer);
/* Unit steps of rule 1.5 to k, re-laid out in place between 8 and 9; b_prev is reset. */
void odt_layer_set_k(odt_layer_t* l, uint8_t k);
/* True where the step to come is one whose sum |G| is taken. */
bool odt_apt_samples(const odt_trainer_t* t);
/* What a step adds to a: sum |G| in steps of a grid that is s bits right of G, Q8. */
uint64_t odt_apt_term(uint64_t sum_abs, int s);
/* The check, where one is due after the step just done. */
void odt_apt_after_step(odt_trainer_t* t);
/* Most steps that can have been sampled since the last check at this position of an epoch. */
uint32_t odt_apt_pending(const odt_trainer_t* t, uint32_t position);
/* A layer's rounding at precision k; mu of its step, clamped to the range of its k. */
uint8_t odt_layer_rounding(const odt_run_spec_t* spec, int k);
int odt_layer_mu(odt_trainer_t* t, odt_layer_t* l);
/* Offsets move in multiples of 2^this. */
int odt_offset_grid(const odt_layer_t* l);
/* Rule 1.5's range of mu_weight; lo > hi: none. */
static inline void odt_mu_range(int k, uint8_t rounding, uint32_t batch, int8_t* lo, int8_t* hi) {
  bool fine = rounding == ODT_ROUND_PSTO || rounding == ODT_ROUND_SR;
  *lo = (int8_t)(8 - k - (fine ? 4 : 0));
  *hi = batch == 1 ? 2 : 4;
}
/* Stage (0..2) of the step to come; 2 at the end of the run. */
uint32_t odt_stage(const odt_trainer_t* t);
void odt_load_layer(const odt_trainer_t* t, odt_layer_t* l);
void odt_epoch_stats_reset(odt_trainer_t* t);
uint8_t odt_resolve_rounding(const odt_run_spec_t* spec);

#ifdef __cplusplus
}
#endif
#endif

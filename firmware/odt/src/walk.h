/* How the trainer goes through a graph, and where its values and deltas lie. */
#ifndef ODT_WALK_H
#define ODT_WALK_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- who reads what (graph.c) -------------------------------------------------------------------
 */

static inline bool odt_trains_weights(const odt_op_t* op) {
  return op->layer >= 0 && !(op->flags & ODT_OP_FLAG_OFFSETS_ONLY);
}
/* Tensor that op reads in `slot` (0 or 1); ODT_NO_TENSOR: none. */
static inline uint16_t odt_input(const odt_op_t* op, uint32_t slot) {
  return slot == 0 ? op->in0 : op->in1;
}
/* FLATTEN only renames: the tensor whose memory `tensor` shares. */
uint16_t odt_root(const odt_model_t* m, uint16_t tensor);
/* How often a tensor is read; an op that reads it twice counts twice. */
uint32_t odt_readers(const odt_model_t* m, uint16_t tensor);
/* Lowest op that reads tensor; n_ops: none. */
uint32_t odt_first_reader(const odt_model_t* m, uint16_t tensor);
/* True for a FLATTEN that alone reads its input: both have one delta, that of the output. */
bool odt_passes(const odt_model_t* m, uint32_t op);
/* The op whose output's delta is that of op's output too: behind FLATTENs that pass it. */
uint32_t odt_tail(const odt_model_t* m, uint32_t op);
/* The op in front of FLATTENs that pass: its ReLU masks op's delta, its layer owns it. */
uint32_t odt_head(const odt_model_t* m, uint32_t op);
/* Bit per op: its output has a delta, for something trainable lies at it or before it. */
uint64_t odt_needed(const odt_model_t* m);
/* needed, by tensor. */
static inline bool odt_has_delta(const odt_model_t* m, uint64_t needed, uint16_t tensor) {
  if (tensor == ODT_NO_TENSOR || m->tensors[tensor].producer == ODT_NO_OP) return false;
  return (needed >> m->tensors[tensor].producer) & 1u;
}

/* ---- lifetimes (lifetime.c) ---------------------------------------------------------------------
 *
 * Time: op i forwards at i, the loss at n_ops, op i backwards at 2 n_ops - i. A buffer is taken
 * from `from` to `to`, both included. The frozen ops in front of the first trainable one work on
 * one sample after the other; what they leave for the rest lives from time 0 on. */

#define ODT_NEVER 0xFFu /* from: there is no such buffer */

typedef struct {
  uint8_t from[ODT_MAX_OPS], to[ODT_MAX_OPS];
} odt_spans_t;

/* By op: its output's values, and the delta of its output. */
void odt_lifetimes(const odt_model_t* m, odt_spans_t* act, odt_spans_t* delta);
/* Bit per op: its output is kept for one sample only. */
uint64_t odt_one_sample(const odt_model_t* m);
/* When the delta of op's output is made. */
uint32_t odt_delta_time(const odt_model_t* m, uint32_t op);
/* Contributions to the delta of op's output. */
uint32_t odt_contributions(const odt_model_t* m, uint32_t op);

/* Places of all values and deltas in one region, in units of bytes. */
typedef struct {
  uint32_t unit;
  uint16_t act[ODT_MAX_OPS], delta[ODT_MAX_OPS];
  uint16_t sum;                  /* accumulators of one sample, where deltas meet */
  uint64_t act_bytes, all_bytes; /* extent of the values alone, and of all */
} odt_places_t;

void odt_place(const odt_model_t* m, uint32_t batch, odt_places_t* p);

/* ---- values and deltas --------------------------------------------------------------------------
 */

/* Values of a tensor; x: the samples of the step. */
odt_view_t odt_view_of(const odt_trainer_t* t, uint16_t tensor, const odt_view_t* x);
/* Frozen ops in front of the first trainable one, on sample b of x. */
void odt_forward_frozen(odt_trainer_t* t, const odt_view_t* x, uint32_t b);
/* Memory of the values and of the delta of op's output. */
uint8_t* odt_act_of(const odt_trainer_t* t, uint32_t op);
int8_t* odt_delta_of(const odt_trainer_t* t, uint32_t op);
/* The delta of a tensor from those of its readers: mask, rounding, telemetry (delta.c). */
void odt_pull(odt_trainer_t* t, uint16_t tensor, const odt_view_t* x, uint32_t n);

/* ---- ops without weights: one sample (pool.c, merge.c) ------------------------------------------
 */

typedef struct {
  const odt_op_t* op;
  const odt_tensor_t *in, *in1, *out; /* in1 NULL: one input */
  const uint8_t *x, *x1;              /* forward; MAXPOOL's delta too */
  uint8_t x_dtype, x1_dtype;
} odt_pass_t;

void odt_pass_forward(const odt_pass_t* p, uint8_t* y);
/* Hands every value of input `slot` its contribution from dy, at sample b of the sink. */
void odt_pass_delta(const odt_pass_t* p, uint32_t slot, const int8_t* dy, const odt_sink_t* sink,
                    uint32_t b);
#define ODT_PASS_PART 16u /* values at a time */
/* The contributions to values [first, first + n) alone, of the sample that dy is of. */
void odt_pass_delta_part(const odt_pass_t* p, uint32_t slot, const int8_t* dy, uint32_t first,
                         uint32_t n, int32_t* sums);
void odt_pool_forward(const odt_pass_t* p, uint8_t* y);
void odt_pool_delta(const odt_pass_t* p, const int8_t* dy, uint32_t first, uint32_t n,
                    int32_t* sums);

/* ---- exponents of deltas (exponent.c) -----------------------------------------------------------
 */

/* Nearest integer to log2 m, m > 0. */
int odt_log2_nearest(uint64_t m);
/* What crossing op towards input `slot` adds to a delta's exponent. */
int odt_exponent_step(const odt_model_t* m, const odt_op_t* op, uint32_t slot);
/* Most frequent k_out, ties to the smaller. */
uint8_t odt_nominal_k(const odt_op_t* op);

#ifdef __cplusplus
}
#endif
#endif

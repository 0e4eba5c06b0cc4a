/* The engine of rule 1.13 (DFP16), behind odt_trainer_*: what its files share. */
#ifndef ODT_DFP_H
#define ODT_DFP_H

#include "dfp_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ODT_DFP_E_MAX 100 /* exponents stay within +-100 */
#define ODT_DFP_SUMS \
  (1u << 17) /* most products in a weight's gradient: lr_m * sum stays in int64 */

/* What the walk needs to know about tensors; made anew where it is used (O(ops)). */
typedef struct {
  int8_t maker[ODT_MAX_TENSORS];    /* op that writes it; -1: network input */
  uint8_t root[ODT_MAX_TENSORS];    /* tensor whose values it shares: FLATTEN only renames */
  uint8_t owner[ODT_MAX_TENSORS];   /* tensor whose delta it shares: a FLATTEN's input that nobody
                                       else reads takes the delta of the output */
  uint8_t readers[ODT_MAX_TENSORS]; /* reads of it; an op that reads it twice counts twice */
  bool need[ODT_MAX_TENSORS]; /* has a delta: something trainable lies at or before its maker */
} odt_dfp_graph_t;

void odt_dfp_graph(const odt_model_t* m, odt_dfp_graph_t* g);
/* Values and deltas of a tensor for the batch, [n][stride]. */
static inline int16_t* odt_dfp_act(const odt_dfp_t* d, uint32_t tensor) {
  return (int16_t*)(void*)(d->base + 8u * (size_t)d->act[tensor]);
}
static inline int16_t* odt_dfp_delta(const odt_dfp_t* d, uint32_t tensor) {
  return (int16_t*)(void*)(d->base + 8u * (size_t)d->delta[tensor]);
}
/* The op whose ReLU masks tensor's delta; -1: none. */
int32_t odt_dfp_mask_op(const odt_model_t* m, const odt_dfp_graph_t* g, uint32_t tensor);
static inline bool odt_dfp_computes(const odt_op_t* op) {
  return op->kind == ODT_OP_LINEAR || op->kind == ODT_OP_CONV2D;
}

/* ---- layers ---- */
/* Stored values of M (panels are filled up); 0 where the offsets alone are trained. */
uint32_t odt_dfp_stored(const odt_model_t* m, const odt_op_t* op);
/* Position in M of the weight with ONNX index i. */
uint32_t odt_dfp_stored_at(const odt_model_t* m, const odt_op_t* op, uint32_t i);
odt_dfp_weights_t odt_dfp_weights_of(const odt_trainer_t* t, const odt_op_t* op, int32_t e_x);
/* A layer's exponents: one, or blocked one per output. They lie behind the offsets. */
static inline uint32_t odt_dfp_blocks(const odt_trainer_t* t, const odt_layer_t* l) {
  return t->spec.blocked ? l->n_offsets : 1u;
}
static inline int8_t* odt_dfp_e(const odt_layer_t* l) { return (int8_t*)(l->off + l->n_offsets); }
static inline int8_t* odt_dfp_best_e(const odt_layer_t* l) {
  return (int8_t*)(l->best_off + l->n_offsets);
}
int32_t odt_dfp_e_max(const odt_trainer_t* t, const odt_layer_t* l);

/* ---- accumulators to tensors ---- */
/* Smallest pre for sums up to bound. */
int odt_dfp_pre(uint64_t bound);
/* True where the sums turned out too small for the pre chosen: sets a better one, do them again. */
bool odt_dfp_again(odt_dfp_sink_t* k);
/* Down-conversion of n samples from k->acc at exponent e into y; returns how many values are 0. */
uint32_t odt_dfp_convert(const odt_dfp_sink_t* k, uint32_t n, uint32_t count, int32_t e, bool relu,
                         int16_t* y, int8_t* e_out);
int32_t odt_dfp_clamp_e(int32_t e);

/* ---- forward, loss, backward ---- */
void odt_dfp_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n);
/* Ops that only move or add values; op's input(s) and output for n samples. */
void odt_dfp_move(odt_trainer_t* t, const odt_op_t* op, uint32_t n);
/* 2^30 / window area in Q15, as AVGPOOL and GAP multiply; 1 for the others. */
int32_t odt_dfp_factor(const odt_model_t* m, const odt_op_t* op);
/* Most outputs of op that one of its inputs reaches. */
uint32_t odt_dfp_fan_out(const odt_model_t* m, const odt_op_t* op);
/* Sums, for input `which` of sample b, the deltas of the outputs it reached. sum: [count]. */
void odt_dfp_move_back(const odt_trainer_t* t, const odt_op_t* op, int which, uint32_t b,
                       int32_t* sum);
/* Rule 1.13's loss of one sample. z at e_z; target: see there. dy may be NULL; its exponent is
 * odt_dfp_loss_e. Adds to *loss, returns the predicted class. */
uint32_t odt_dfp_loss(const odt_trainer_t* t, const int16_t* z, int32_t e_z, uint32_t label,
                      int16_t* dy, uint64_t* loss);
void odt_dfp_loss_mse(const odt_model_t* m, const int16_t* z, int32_t e_z, const int8_t* target,
                      const int16_t* input, int16_t* dy, uint64_t* loss);
int32_t odt_dfp_loss_e(const odt_model_t* m);
/* Deltas and updates from the logits' delta; fills rec->layers. */
void odt_dfp_backward(odt_trainer_t* t, uint32_t n, odt_step_record_t* rec);
void odt_dfp_update(odt_trainer_t* t, const odt_op_t* op, uint32_t n, odt_layer_step_t* rec);

/* ---- parts of the trainer ---- */
void odt_dfp_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec,
                     bool resident, void* base, odt_memory_plan_t* plan);
odt_status_t odt_dfp_spec_check(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err);
void odt_dfp_load_layer(const odt_trainer_t* t, odt_layer_t* l);
/* Forward pass, loss, backward pass of a batch; labels or targets of x's samples, by x->idx. */
void odt_dfp_train(odt_trainer_t* t, const odt_view_t* x, const int8_t* labels, uint32_t n,
                   odt_step_record_t* rec);
odt_status_t odt_dfp_eval(odt_trainer_t* t, const odt_samples_t* s, uint32_t first, uint32_t n,
                          uint32_t* correct, uint64_t* loss, uint32_t* confusion);
/* An autoencoder's loss of one sample, at most UINT32_MAX. */
uint32_t odt_dfp_score(odt_trainer_t* t, const uint8_t* sample);
/* The logits' upper 7 bits and sign. */
void odt_dfp_infer(odt_trainer_t* t, const uint8_t* sample, int8_t* logits);

#ifdef __cplusplus
}
#endif
#endif

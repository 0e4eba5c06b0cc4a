/* odt: integer training for microcontrollers. Pure C11: no heap, no float, no I/O, no statics.
 *
 * The rules are rules_version ODT_RULES_VERSION of proto/README.md ("Training rules"): the same
 * image, state, samples and settings give the same bits on every core and on the host.
 *
 * Life of an object: odt_model_open() over an image -> odt_trainer_plan() -> odt_trainer_init()
 * over a caller's arena -> either odt_run_*() (resident sets, whole run) or odt_trainer_step() (one
 * batch).
 */
#ifndef ODT_ODT_H
#define ODT_ODT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ODT_RULES_VERSION 1u
/* What models and settings may have; a small board's build sets them lower (board.cmake). */
#ifndef ODT_MAX_OPS
#define ODT_MAX_OPS 64 /* at most */
#endif
#define ODT_MAX_TENSORS (ODT_MAX_OPS + 1)
#ifndef ODT_MAX_LAYERS
#define ODT_MAX_LAYERS 16 /* trainable compute layers; at most */
#endif
#ifndef ODT_MAX_CLASSES
#define ODT_MAX_CLASSES 128 /* at most */
#endif
#define ODT_MAX_OUTPUTS 4096 /* of a regression or an autoencoder */
#define ODT_MAX_BATCH 256

/* What a build can do without, to save flash: 0 leaves it out, and images and settings that need it
 * are refused (UNIMPLEMENTED). */
#ifndef ODT_WITH_CONV /* CONV2D */
#define ODT_WITH_CONV 1
#endif
#ifndef ODT_WITH_GRAPHS /* operators 5 to 10, and with them branches */
#define ODT_WITH_GRAPHS 1
#endif
#ifndef ODT_WITH_APT /* k that moves during a run: rule 1.12, odt_trainer_set_k */
#define ODT_WITH_APT 1
#endif
#ifndef ODT_WITH_DFP16 /* rule 1.13 */
#define ODT_WITH_DFP16 1
#endif

/* Same numbers as odt.device.v1.StatusCode. */
typedef enum {
  ODT_OK = 0,
  ODT_INVALID_ARGUMENT = 3,
  ODT_NOT_FOUND = 5,
  ODT_RESOURCE_EXHAUSTED = 8,
  ODT_FAILED_PRECONDITION = 9,
  ODT_ABORTED = 10,
  ODT_OUT_OF_RANGE = 11,
  ODT_UNIMPLEMENTED = 12,
  ODT_INTERNAL = 13,
  ODT_DATA_LOSS = 15,
} odt_status_t;

/* What was wrong, for one clear error. what: static text naming the field or structure
 * ("mu_weight", "op: in0"); the number of the op is in index. */
typedef struct {
  odt_status_t status;
  const char* what;
  int32_t got;
  int32_t limit_lo;
  int32_t limit_hi;
  int32_t index; /* number of the op, tensor, layer or sample that `what` speaks of; -1: none */
} odt_error_t;

typedef enum { ODT_S8 = 1, ODT_U8 = 2, ODT_S16 = 3 } odt_dtype_t;

typedef enum {
  ODT_OP_PREQUANT = 1,
  ODT_OP_CONV2D = 2,
  ODT_OP_LINEAR = 3,
  ODT_OP_FLATTEN = 4,
  ODT_OP_MAXPOOL = 5,
  ODT_OP_AVGPOOL = 6, /* sum over the window, then rule 1.2 with the file's off, mult, k */
  ODT_OP_GAP = 7,     /* the same over the whole plane */
  ODT_OP_ADD = 8,     /* offset: [m_a, m_b] of rule 1.2 */
  ODT_OP_CONCAT = 9,  /* along the first dimension */
  ODT_OP_RESIZE = 10, /* nearest: input index = floor(output index * inputs / outputs) */
} odt_op_kind_t;

#define ODT_OP_FLAG_RELU 1u /* a Relu was folded: the layer has a mask (bit = y > 0) */
#define ODT_OP_FLAG_TRAINABLE 2u
#define ODT_OP_FLAG_OFFSETS_ONLY 4u /* with TRAINABLE: the weights stay those of the image */

/* What the last output is compared with. */
typedef enum {
  ODT_TASK_CLASSIFY = 0,
  ODT_TASK_REGRESS = 1,    /* samples carry a target per output */
  ODT_TASK_AUTOENCODE = 2, /* the target is the network input */
} odt_task_t;
/* Integer models (NITI, APT) or int16 tensors with shared exponents (rule 1.13). */
typedef enum { ODT_ARITH_INT8 = 0, ODT_ARITH_DFP16 = 1 } odt_arith_t;

typedef enum { ODT_RULE_NITI = 1, ODT_RULE_NITI_LITERAL = 2, ODT_RULE_DFP16 = 3 } odt_rule_set_t;
typedef enum {
  ODT_ROUND_DEFAULT = 0, /* PSTO where k <= 8, HALF_UP where k > 8 */
  ODT_ROUND_HALF_UP = 1,
  ODT_ROUND_HALF_AWAY = 2,
  ODT_ROUND_PSTO = 3,
  ODT_ROUND_SR = 4,
} odt_rounding_t;
typedef enum { ODT_LOSS_MSE = 1, ODT_LOSS_CE = 2 } odt_loss_t;
typedef enum { ODT_SHIFT_EXACT = 1, ODT_SHIFT_STALE = 2 } odt_shift_source_t;

#define ODT_NO_OP 0xFFu       /* of odt_tensor_t.producer */
#define ODT_NO_TENSOR 0xFFFFu /* of odt_op_t.in1, odt_model_t.cut */

/* ---- model image (ODTM v1, layout in proto/README.md) ---------------------------------------- */

typedef struct {
  uint8_t dtype; /* odt_dtype_t */
  uint8_t ndim;
  int8_t exponent;  /* real value = value * 2^exponent; DFP16: of the network input and targets */
  uint8_t producer; /* op that writes it; ODT_NO_OP: the network input */
  uint16_t dims[4]; /* per sample: [N] or [C,H,W] */
  uint32_t count;   /* product of dims */
} odt_tensor_t;

typedef struct {
  uint8_t kind;
  uint8_t flags;
  uint16_t in0, in1, out; /* tensor numbers; in1 0xFFFF: none */
  int32_t clip_lo, clip_hi;
  const int8_t* weights;    /* ONNX order: conv [O,I/g,kH,kW], linear [in,out] */
  const int16_t* weights16; /* the same in a DFP16 image; there weights is NULL */
  uint32_t n_weights;
  const int32_t* offset; /* [outputs]; PREQUANT: Q8 per channel */
  uint32_t n_out;        /* filters or outputs; PREQUANT: channels */
  const int8_t* k_out;   /* [n_out], 0..31 */
  const uint8_t* mult;   /* [n_out] uint8, NULL: all 1. PREQUANT: int16 LE [n_out] */
  uint16_t k_h, k_w, stride_h, stride_w, pad_t, pad_l, pad_b, pad_r, dil_h, dil_w, groups;
  int8_t e_w, e_b; /* exponents of weights and offsets (real value = value * 2^e) */
  int8_t layer;    /* index among the trainable layers, -1: frozen */
} odt_op_t;

typedef struct {
  const uint8_t* image;
  uint32_t image_bytes;
  uint8_t hash[32];
  uint16_t n_tensors, n_ops, n_layers, n_classes;
  uint16_t input, logits; /* tensor numbers: first op's input, last op's output */
  uint16_t first_trainable_op;
  uint16_t cut; /* the one tensor that leads from the frozen ops in front of first_trainable_op into
                   the rest; 0xFFFF: there are several */
  bool tail; /* the image begins at the cut of the model named by hash: samples are frozen ones */
  uint8_t task, arith;                         /* odt_task_t, odt_arith_t */
  uint16_t ce_scale;                           /* Q8; 0: no cross-entropy */
  const int8_t *target_correct, *target_wrong; /* [n_classes]; NULL: no MSE */
  uint32_t src_correct, src_total;
  char name[17];
  odt_tensor_t tensors[ODT_MAX_TENSORS];
  odt_op_t ops[ODT_MAX_OPS];
  uint16_t layer_op[ODT_MAX_LAYERS];
} odt_model_t;

/* Parses and validates an image: every offset, count, shape and value range, so that the kernels
 * may run blind. `image` must be 4-byte aligned and outlive the model. Computes hash (SHA-256 of
 * the bytes; of a tail image: the one it carries, so that weights and states are the model's).
 * Errors: INVALID_ARGUMENT (malformed), OUT_OF_RANGE (limits above), UNIMPLEMENTED (op kind,
 * version). */
odt_status_t odt_model_open(odt_model_t* m, const void* image, uint32_t bytes, odt_error_t* err);

/* ---- samples (ODTS v1) ------------------------------------------------------------------------
 */

typedef struct {
  uint8_t dtype;
  uint32_t count;
  uint32_t sample_len;  /* values per sample */
  uint8_t flags;        /* ODT_SAMPLES_* */
  uint32_t label_len;   /* 1; targets: what the bytes make, exact where count >= 4 */
  const int8_t* labels; /* [count], or targets [count][n_classes of the model] */
  const uint8_t*
      data; /* [count][sample_len], dtype S8 or U8; S16 in DFP16 and for frozen outputs */
  const uint8_t* source; /* [64]: hash of the model, SHA-256 of the ODTS frozen; NULL: not told */
} odt_samples_t;

#define ODT_SAMPLES_TARGETS 1u /* a target per output instead of a label */
#define ODT_SAMPLES_FROZEN \
  2u /* values of the model's cut tensor: the frozen ops have run already */
#define ODT_SAMPLES_SOURCE 4u /* with FROZEN: 64 bytes at the end say of what */

/* Checks an ODTS blob and points into it. Errors: INVALID_ARGUMENT. */
odt_status_t odt_samples_open(odt_samples_t* s, const void* blob, uint32_t bytes, odt_error_t* err);
static inline bool odt_samples_frozen(const odt_samples_t* s) {
  return (s->flags & ODT_SAMPLES_FROZEN) != 0;
}
/* Checks samples against a model (dtype, length, labels < n_classes or number of targets). A
 * regression wants targets, a classifier labels; an autoencoder targets where its samples are
 * frozen (its inputs are not there). Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (frozen samples:
 * model without a cut or DFP16, outputs of another model; other samples: a tail image). */
odt_status_t odt_samples_fit(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err);

/* ---- run settings -----------------------------------------------------------------------------
 */

typedef enum {
  ODT_APT_OFF = 0,
  ODT_APT_QUARTERS = 1, /* algorithm 2: checks after each quarter of an epoch */
  ODT_APT_EPOCHS = 2,   /* algorithm 1: checks between epochs */
} odt_apt_mode_t;

/* Adaptive precision (rule 1.12). */
typedef struct {
  uint8_t mode;      /* odt_apt_mode_t */
  uint8_t k_max;     /* 2..16: the arena holds every layer at this precision. With mode OFF: k moves
                        by odt_trainer_set_k alone; 0 there: not at all */
  bool offsets;      /* offsets have a precision of their own too */
  uint16_t t_min_q8; /* U below: k + 1; default 77 */
  uint16_t t_max_q8; /* U above: k - 1; 0: off, else >= 4 t_min */
} odt_apt_t;

/* Everything that decides the bits of a run; mirrors odt.device.v1.RunSpec. */
typedef struct {
  uint8_t rule_set, rounding, loss, shift_source;
  int8_t mu_weight[3]; /* by thirds (rule 1.8) */
  int8_t mu_offset;
  uint8_t dead_zone, k;
  uint16_t batch, epochs;
  uint32_t train_samples, heldout_samples;
  uint32_t order_seed, sr_seed;
  bool guard;
  odt_apt_t apt;
  /* DFP16 (rule 1.13): rate = lr_m * 2^-lr_s on the sum of the batch's gradients, lr_m by thirds,
   * 1..32767; lr_s 0..40. blocked: one exponent per output of a weight matrix. */
  uint16_t lr_m[3];
  uint8_t lr_s;
  bool blocked;
  /* With guard: no copy of the best's weights here, the host keeps them. Says where they lie and
   * nothing else: the bits and the state are those of a run that keeps them itself. */
  bool best_on_host;
  uint8_t sample_set_hash[32];
  uint8_t layer_k[ODT_MAX_LAYERS];        /* precision of a layer where it is not k; 0: k */
  uint8_t class_weights[ODT_MAX_CLASSES]; /* Q6; 64 = 1 */
} odt_run_spec_t;

/* Ranges of rules 1.3, 1.5, 1.6 against model. Errors: INVALID_ARGUMENT naming field, got and
 * limits. */
odt_status_t odt_run_spec_check(const odt_run_spec_t* spec, const odt_model_t* m, odt_error_t* err);

/* Rule 1.12: true where k can differ between layers or in time; defaults by k are then a layer's
 * own and the state has an extension. */
bool odt_run_spec_k_varies(const odt_run_spec_t* spec);
/* Precision that a layer starts with. */
uint8_t odt_run_spec_layer_k(const odt_run_spec_t* spec, uint32_t layer);

/* Range of mu_weight (rule 1.5) for the spec's k, rounding and batch; lo > hi: none. */
void odt_mu_limits(const odt_run_spec_t* spec, int8_t* lo, int8_t* hi);
/* Rule 1.5: a schedule's (three unequal values) mu out of range is clamped; a constant one is left
 * for odt_run_spec_check to refuse. Returns true where something changed: that is an event. The
 * host calls it before it sends a spec; boards only check. */
bool odt_run_spec_clamp_mu(odt_run_spec_t* spec);

/* ---- trainer ----------------------------------------------------------------------------------
 */

typedef struct {
  uint32_t weights_bytes;    /* M and offsets */
  uint32_t best_bytes;       /* the guard's copy; 0 without guard, or where the host keeps it */
  uint32_t activation_bytes; /* activations that live at the same time, tables, dead-unit bits */
  uint32_t gradient_bytes;   /* what deltas need beside the activations' places, scratch */
  uint32_t order_bytes;      /* permutation of resident training samples (0: streamed) */
  uint32_t total_bytes;      /* arena needed, with alignment */
} odt_memory_plan_t;

typedef struct {
  uint8_t bits; /* bit length of max |G| of the layer's weights, 0: no update */
  int8_t shift; /* ws */
  uint8_t k;
} odt_layer_step_t;

typedef struct {
  uint32_t step; /* number of this step, from 0 */
  uint64_t loss; /* rule 1.3, of this batch */
  uint32_t correct;
  odt_layer_step_t layers[ODT_MAX_LAYERS];
} odt_step_record_t;

/* Boards keep several of these: packed, and without what follows from k (odt_trainer_layer_bytes).
 */
typedef struct {
  uint8_t bits_min, bits_max, k;
  uint8_t k_off; /* precision of the offsets, 0: not adapted */
  int8_t shift;
  int8_t mu; /* mu_weight of the last step as used (rule 1.12 clamps it to k's range) */
  uint16_t bits_mean_q8;
  int16_t e_d;          /* exponent of the delta at the layer's output, last step (rule 1.4) */
  int16_t w_min, w_max; /* of M at the end of the epoch */
  uint16_t sum_n;       /* steps that sum_abs_g is of */
  uint32_t nonzero_deltas_ppm;
  uint32_t mean_abs_delta_q8;
  uint32_t zero_propagated_ppm;
  uint32_t saturated;
  uint32_t dead_units;
  uint32_t u_q8;
  uint64_t sum_abs_g; /* sum |G| over the weights, of the steps that rule 1.12 samples */
} odt_layer_epoch_t;

#define ODT_ALARM_DEAD_LAYER 1u
#define ODT_ALARM_SATURATION 2u
#define ODT_ALARM_STUCK 4u
#define ODT_ALARM_MU_CLAMPED 8u /* a layer's mu was outside the range of its k (rule 1.12) */

typedef struct {
  uint32_t epoch; /* from 0 */
  uint32_t step;  /* steps done at its end */
  uint64_t loss;
  uint32_t correct, total;
  uint32_t heldout_correct, heldout_total;
  uint32_t start_correct;
  uint32_t best_step;
  uint32_t alarms;
  uint8_t state_hash[32];
  odt_layer_epoch_t layers[ODT_MAX_LAYERS]; /* those of the model; what is behind is not written */
} odt_epoch_record_t;

typedef struct odt_trainer odt_trainer_t; /* defined in odt/trainer.h; caller owns the memory */

/* Arena bytes for `spec` on `m`. resident: the trainer shuffles an index of train_samples itself
 * (streamed: the host orders). Never fails for a checked spec. */
void odt_trainer_plan(const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                      odt_memory_plan_t* plan);

/* Lays out the arena (8-byte aligned) and loads the image's weights. Step 0. Errors:
 * RESOURCE_EXHAUSTED (err->got arena bytes, limit_lo bytes needed), INVALID_ARGUMENT (address),
 * those of odt_run_spec_check. */
odt_status_t odt_trainer_init(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec,
                              bool resident, void* arena, uint32_t arena_bytes, odt_error_t* err);

/* One training step on a batch already in order (1..spec.batch samples). Errors:
 * FAILED_PRECONDITION (epoch or run is complete, weights being written, the host has not kept the
 * best), INVALID_ARGUMENT (batch size is not the one that rule 1.8 gives for this position), those
 * of odt_samples_fit. */
odt_status_t odt_trainer_step(odt_trainer_t* t, const odt_samples_t* batch, odt_step_record_t* rec,
                              odt_error_t* err);
/* The same from resident samples: picks the batch by rule 1.8. Every label is checked at an epoch's
 * first step, later those of the batch. Errors: as above; FAILED_PRECONDITION (set up for streamed
 * batches), INVALID_ARGUMENT (train->count, samples that do not fit the model). */
odt_status_t odt_trainer_step_resident(odt_trainer_t* t, const odt_samples_t* train,
                                       odt_step_record_t* rec, odt_error_t* err);
/* Rule 1.12, steering: moves a layer's precision to k in unit steps, between two steps of an epoch;
 * its sums start afresh. Errors: FAILED_PRECONDITION (spec without apt.k_max, epoch or run
 * complete, weights being written), INVALID_ARGUMENT (layer; k outside 2..apt.k_max). */
odt_status_t odt_trainer_set_k(odt_trainer_t* t, uint32_t layer, uint8_t k, odt_error_t* err);
/* True when the current epoch's samples are used up and odt_trainer_end_epoch is due. */
bool odt_trainer_epoch_complete(const odt_trainer_t* t);
/* Ends the epoch: guard check with the held-out counts (total 0: none; regressions and
 * autoencoders: heldout_correct is the held-out loss, at most 0xFFFFFFFE, less is better), alarms,
 * record with state hash. After the last epoch it also applies the guard (weights := best, b_prev
 * reset) BEFORE hashing. Errors: FAILED_PRECONDITION (epoch not complete, weights being written,
 * the last epoch of a guarded run whose best's weights are missing), INVALID_ARGUMENT
 * (heldout_correct over heldout_total). */
odt_status_t odt_trainer_end_epoch(odt_trainer_t* t, uint32_t heldout_correct,
                                   uint32_t heldout_total, odt_epoch_record_t* rec,
                                   odt_error_t* err);
bool odt_trainer_done(const odt_trainer_t* t);

/* spec.best_on_host. Two times a run stands still for the host:
 * - UNREAD: the present weights are the best so far (start score, end of an epoch). They are read
 *   as best weights; once they are kept for good, odt_trainer_best_kept() lets the next step come.
 * - WANTED: odt_trainer_end_epoch() has closed the last epoch but for the roll-back: the best's
 *   weights have to be written (best = true), then odt_trainer_roll_back() ends the run. */
typedef enum { ODT_BEST_HERE = 0, ODT_BEST_UNREAD = 1, ODT_BEST_WANTED = 2 } odt_best_wait_t;
odt_best_wait_t odt_trainer_best_waits(const odt_trainer_t* t);
/* Without effect where nothing waits. Errors: FAILED_PRECONDITION (another best by now). */
odt_status_t odt_trainer_best_kept(odt_trainer_t* t, const uint8_t hash[32]);
/* Ends the last epoch; rec: the record that odt_trainer_end_epoch() left, which gets its state
 * hash. Errors: FAILED_PRECONDITION (not WANTED, or the best has not been written). */
odt_status_t odt_trainer_roll_back(odt_trainer_t* t, odt_epoch_record_t* rec, odt_error_t* err);
/* Sets the guard's start score (held-out before training); once, at step 0, after any pushed
 * weights: with a guard the weights as they are become the best so far. total and correct 0: no
 * score, nothing is set. Errors: FAILED_PRECONDITION (set already, later than step 0, weights being
 * written), INVALID_ARGUMENT (correct over total). */
odt_status_t odt_trainer_set_start(odt_trainer_t* t, uint32_t heldout_correct,
                                   uint32_t heldout_total);

/* Logits of one sample of the network input, in its dtype (S16: 2-byte aligned), with the current
 * weights; scratch inside the arena. Touches no training state. Errors: FAILED_PRECONDITION
 * (weights being written), as below. */
odt_status_t odt_trainer_infer(odt_trainer_t* t, const uint8_t* sample, int8_t* logits);
/* DFP16: the same at full width; real value = logit * 2^exponent. (odt_trainer_infer gives their
 * upper 8 bits.) Errors: FAILED_PRECONDITION (other arithmetic). */
odt_status_t odt_trainer_infer16(odt_trainer_t* t, const uint8_t* sample, int16_t* logits,
                                 int32_t* exponent);
/* Anomaly score of one sample by an autoencoder: the sum of (output - input)^2, at most UINT32_MAX
 * (DFP16). Errors: FAILED_PRECONDITION (other tasks, tail images). */
odt_status_t odt_trainer_score(odt_trainer_t* t, const uint8_t* sample, uint32_t* score);
/* Runs the frozen part alone: the values of the model's cut tensor for one sample of the network
 * input, in the tensor's dtype; together they make samples with ODT_SAMPLES_FROZEN, which then
 * train and evaluate to the same bits. Errors: FAILED_PRECONDITION (no cut), UNIMPLEMENTED (DFP16,
 * whose batches have exponents of their own). */
odt_status_t odt_trainer_freeze(odt_trainer_t* t, const uint8_t* sample, uint8_t* out);
/* Adds samples [first, first + n) to counts: *correct, *loss, and confusion (u32
 * [n_classes][n_classes], row = label; may be NULL). Without classes: *loss alone. Errors:
 * FAILED_PRECONDITION (weights being written, frozen samples that the model cannot take),
 * OUT_OF_RANGE (first, n), INVALID_ARGUMENT (samples of another shape; a label: those in front of
 * it have been added). */
odt_status_t odt_trainer_eval(odt_trainer_t* t, const odt_samples_t* s, uint32_t first, uint32_t n,
                              uint32_t* correct, uint64_t* loss, uint32_t* confusion);

/* What a layer takes at precision k (and k_off, 0: offsets are not adapted): its weights in memory,
 * bytes, and all of it in bits as the precision says. */
uint32_t odt_trainer_layer_bytes(const odt_trainer_t* t, uint32_t layer, uint8_t k);
uint32_t odt_trainer_layer_bits(const odt_trainer_t* t, uint32_t layer, uint8_t k, uint8_t k_off);

/* Position within the run. */
uint32_t odt_trainer_step_count(const odt_trainer_t* t);  /* steps done */
uint32_t odt_trainer_epoch_count(const odt_trainer_t* t); /* epochs done */
uint32_t odt_trainer_steps_total(const odt_trainer_t* t);
/* True when the state names a best whose weights the arena does not hold: push them before the
 * last epoch ends. */
bool odt_trainer_best_missing(const odt_trainer_t* t);

/* ---- canonical bytes (proto/README.md): random access, so that no second copy is needed ---------
 */

uint32_t odt_weights_size(const odt_trainer_t* t); /* of the current weights */
uint32_t odt_best_size(const odt_trainer_t* t);    /* of the best: its k may be another */
/* Copies bytes [offset, offset + n) of odt_weights v1 of the current (best = false) or best
 * weights. Without a guard there is no best: the current weights are given. */
void odt_weights_read(const odt_trainer_t* t, bool best, uint32_t offset, uint8_t* out, uint32_t n);
void odt_weights_hash(const odt_trainer_t* t, bool best, uint8_t hash[32]);
/* Writes bytes in order from 0; odt_weights_write_end checks that all came. A wrong header, shape
 * or value is refused as soon as it is complete. Until a whole write has ended the weights are
 * invalid and steps are refused. Errors: INVALID_ARGUMENT (header, size), FAILED_PRECONDITION
 * (other model or rules; best weights that the host keeps and that are not WANTED). With
 * spec.best_on_host the best takes the place of the current weights; write_end answers DATA_LOSS
 * where they are not those that the state names. */
odt_status_t odt_weights_write(odt_trainer_t* t, bool best, uint32_t offset, const uint8_t* in,
                               uint32_t n, odt_error_t* err);
odt_status_t odt_weights_write_end(odt_trainer_t* t, bool best, odt_error_t* err);

uint32_t odt_state_size(const odt_trainer_t* t);
void odt_state_read(const odt_trainer_t* t, uint32_t offset, uint8_t* out, uint32_t n);
void odt_state_hash(const odt_trainer_t* t, uint8_t hash[32]);
odt_status_t odt_state_write(odt_trainer_t* t, uint32_t offset, const uint8_t* in, uint32_t n,
                             odt_error_t* err);
/* Checks that the state belongs to model, rules and spec of this trainer. Where it names a best,
 * push that too (before or after): see odt_trainer_best_missing. */
odt_status_t odt_state_write_end(odt_trainer_t* t, odt_error_t* err);

/* ---- small things shared by both ends -----------------------------------------------------------
 */

typedef struct {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t block[64];
} odt_sha256_t;
void odt_sha256_init(odt_sha256_t* s);
void odt_sha256_update(odt_sha256_t* s, const void* data, uint32_t n);
void odt_sha256_final(odt_sha256_t* s, uint8_t hash[32]);

/* Rule 1.8: order of epoch e over n samples into p. */
void odt_order(uint32_t order_seed, uint32_t epoch, uint32_t n, uint16_t* p);

#ifdef __cplusplus
}
#endif
#endif

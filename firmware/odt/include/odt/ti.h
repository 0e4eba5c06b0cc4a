/* TI's C interface to integer training, on this library.
 *
 * The first part has the names, types and meaning of TI's public interface: a main.c written for it
 * compiles against this header and the files that `odtc c` writes. It works in place on TI's
 * layouts, without arena, heap or set-up. Arithmetic is this library's (README.md, "Training
 * rules") at k = 8: rule set NITI, exact shift, PSTO, constant mu: the same bits as
 * odt_trainer_step().
 *
 * The second part (odt_ti_*) is beside it: errors, rule set and rounding, batch size at run time,
 * records, snapshots.
 */
#ifndef ODT_TI_H
#define ODT_TI_H

#include <stdbool.h>
#include <stdint.h>

#include "odt/odt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  INT_LAYER_PREQUANT = 0, /* float -> int8; first layer only; its input is float [in_size] */
  INT_LAYER_CONV2D = 1,
  INT_LAYER_CONV2D_RELU = 2,
  INT_LAYER_LINEAR = 3,
  INT_LAYER_LINEAR_RELU = 4,
  /* Not TI's: layers without weights (README.md, rule 1.2). act_dtype says their type. */
  INT_LAYER_MAXPOOL = 5,
  INT_LAYER_AVGPOOL = 6,
  INT_LAYER_GAP = 7, /* global average pool */
  INT_LAYER_ADD = 8,
  INT_LAYER_ADD_RELU = 9,
  INT_LAYER_CONCAT = 10, /* the values of in0, then those of in1 */
  INT_LAYER_RESIZE = 11, /* nearest */
  INT_LAYER_FLATTEN =
      12, /* only where its input is read by others too: it has a delta of its own */
} IntLayerType_t;

#define INT_FROM_INPUT 0xFFFFu /* of in0, in1 below */

/* What the caller hands over as input. */
typedef enum {
  INT_INPUT_INT8 = 1,  /* full model: the output of PREQUANT */
  INT_INPUT_UINT8 = 2, /* partial model: the output of the last frozen layer */
  INT_INPUT_INT16 = 3, /* not TI's: frozen layers without ReLU that clip beyond int8 */
} IntInputType_t;

typedef struct {
  const float* offset; /* [n_ch] */
  const float* scale;  /* [n_ch]: y = clip(floor((x + offset) * scale)) in float32 */
  uint16_t n_ch;       /* 1, channels or values */
} IntPrequant_t;

typedef struct {
  int8_t* weights;    /* [n_filters, in_ch, kH, kW], changed by training */
  int32_t* offset;    /* [n_filters] in accumulator units, changed by training */
  const int8_t* mult; /* [n_filters], read as uint8 (1..255); NULL: all 1 */
  const int8_t* k;    /* [n_filters], right shift 0..31 */
  uint16_t n_filters;
  uint16_t conv_out_h, conv_out_w;
  uint8_t kH, kW;
  uint8_t stride_h, stride_w; /* 0: 1 */
  uint8_t pad_h, pad_w;       /* top, left; what is missing below and right follows from conv_out */
  uint16_t input_h, input_w;  /* in_ch = in_size / (input_h * input_w) */
  /* Not TI's; 0 as TI's files leave it. */
  uint8_t dil_h, dil_w; /* 0: 1 */
  uint16_t groups;      /* 0: 1; in_ch of weights is then in_ch / groups */
} IntConv_t;

typedef struct {
  int8_t* weights;    /* [in_size, out_size] row-major, changed by training */
  int32_t* offset;    /* [out_size], changed by training */
  const int8_t* mult; /* [out_size], as above */
  const int8_t* k;    /* [out_size] */
} IntLinear_t;

/* MAXPOOL, AVGPOOL, GAP, RESIZE. Channels = in_size / (input_h * input_w). */
typedef struct {
  const int32_t* offset; /* AVGPOOL, GAP: [n_ch], as above; acc is the window's or plane's sum */
  const int8_t* mult;
  const int8_t* k;
  uint16_t n_ch; /* 1 or channels */
  uint16_t input_h, input_w, out_h, out_w;
  uint16_t kH, kW, stride_h, stride_w, pad_h, pad_w; /* MAXPOOL, AVGPOOL; stride 0: 1 */
} IntPool_t;

/* y = clip(round_half_even((a * m[0] + b * m[1]) / 2^20)). */
typedef struct {
  int32_t m[2];
} IntAdd_t;

/* y = clip(((acc + offset) * mult) >> k, clip_lo, clip_hi). */
typedef struct {
  IntLayerType_t type;
  uint16_t in_size, out_size; /* values per sample; in_size: of the first input */
  int32_t clip_lo, clip_hi;
  void* act_buf;      /* [BATCH_SIZE * out_size]: uint8 for ReLU layers, else int8 */
  uint8_t* relu_mask; /* [BATCH_SIZE * ceil(out_size / 8)]: bit i % 8 of byte i / 8 is y > 0; NULL
                         for layers without ReLU */
  union {
    IntPrequant_t prequant;
    IntConv_t conv;
    IntLinear_t linear;
    IntPool_t pool;
    IntAdd_t add;
  };
  /* Not TI's: odt_dtype_t of act_buf where TI's two types do not hold the layer's range (a
   * convolution without ReLU clips to -255..255); 0: as TI has it, and values saturate to it. */
  uint8_t act_dtype;
  /* Not TI's: graphs. The layers that are read, counted from 1; INT_FROM_INPUT: the caller's input.
   * 0, as TI's files leave them: in0 is the layer in front, in1 (ADD, CONCAT) is missing. */
  uint16_t in0, in1;
  /* Where a context is no chain, of every layer but the last, [BATCH_SIZE * out_size * bytes of a
   * value]: the delta of act_buf, and scratch of INTODT_Infer. Layers may share it where the one
   * is written only behind the last reader of the other. */
  int8_t* delta_buf;
  /* The library's own, of the last step: exponent of the delta (rule 1.4), what crossing the layer
   * adds to it, whether there is a delta. */
  int16_t e_d;
  int8_t e_step;
  uint8_t needs_delta;
} IntLayerDesc_t;

typedef struct {
  uint16_t n_layers;
  IntLayerDesc_t* layers;
  int8_t*
      grad_buf[2];  /* each [BATCH_SIZE * max(largest out_size, first in_size)]; where the context
                       is no chain, [BATCH_SIZE * n_classes], and the second is not used */
  int8_t mu_weight; /* the user's, between any two steps; -4..4 */
  int8_t mu_offset; /* -8..7 */
  IntInputType_t input_type;
} IntModelCtx_t;

/* Logits of one sample. Touches neither act_buf nor relu_mask nor weights; grad_buf is scratch. */
void INTODT_Infer(IntModelCtx_t* ctx, const void* input, int8_t* logit_output);

/* 0 < batch_size <= BATCH_SIZE samples, one after the other: fills every layer's act_buf (batch
 * major) and relu_mask. */
void INTODT_Forward(IntModelCtx_t* ctx, const void* batch_input, int32_t batch_size);

/* Behind INTODT_Forward on the same input. Reads dy, int8 [batch_size, n_classes], from
 * grad_buf[0]; updates weights and offsets in place; both grad_buf (and delta_buf) are scratch
 * afterwards. */
void INTODT_Backward(IntModelCtx_t* ctx, const void* batch_input, int32_t batch_size);

/* All three do nothing where odt_ti_check() would refuse ctx, or batch_size is not positive; a mu
 * out of range counts as the nearest limit (rule 1.5). */

/* ---- beside TI's interface ------------------------------------------------------------------- */

/* Everything the functions above rely on: pointers, sizes that fit each other, k, mult, clips.
 * Errors: INVALID_ARGUMENT naming the field, with the number of the layer in index. */
odt_status_t odt_ti_check(const IntModelCtx_t* ctx, odt_error_t* err);

/* Bytes for act_buf, relu_mask, delta_buf and grad_buf of all layers at `batch`, and handing them
 * out from caller's memory (4-byte aligned; nothing is shared): a batch size chosen at run time.
 * Errors: RESOURCE_EXHAUSTED (got bytes, limit_lo needed). */
uint32_t odt_ti_buffer_bytes(const IntModelCtx_t* ctx, uint16_t batch);
odt_status_t odt_ti_bind(IntModelCtx_t* ctx, uint16_t batch, void* memory, uint32_t bytes,
                         odt_error_t* err);

/* A run's settings and what it remembers between steps. The struct may be copied to keep it. */
typedef struct {
  IntModelCtx_t* ctx;
  uint16_t batch;       /* samples that the buffers hold, 1..ODT_MAX_BATCH */
  uint8_t rule_set;     /* ODT_RULE_NITI (default) or ODT_RULE_NITI_LITERAL */
  uint8_t rounding;     /* odt_rounding_t; default PSTO */
  uint8_t shift_source; /* odt_shift_source_t; default exact */
  uint32_t sr_seed;
  uint32_t step;                  /* steps done */
  uint8_t b_prev[ODT_MAX_LAYERS]; /* rule 1.7, per layer that has weights */
} odt_ti_t;

typedef struct {
  uint8_t bits;             /* bit length of max |G| of the weights; 0: no update */
  int8_t shift;             /* ws */
  uint8_t k;                /* 8 */
  uint32_t changed;         /* weights whose delta was not 0 */
  uint64_t abs_delta;       /* sum of |delta| in weight steps */
  uint32_t zero_propagated; /* zeros in the delta at the layer's output; last layer: in dy */
  int16_t e_d;              /* exponent of that delta (rule 1.4) */
} odt_ti_layer_record_t;

typedef struct {
  uint32_t step;                                /* number of this step, from 0 */
  odt_ti_layer_record_t layers[ODT_MAX_LAYERS]; /* layers that have weights, first to last */
} odt_ti_record_t;

/* A layer's weights as they are now. */
typedef struct {
  int16_t w_min, w_max;
  uint32_t saturated;  /* |w| at its limit */
  uint32_t dead_units; /* ReLU: filters or outputs that the last `n` samples never had above 0 */
} odt_ti_layer_stats_t;

/* Defaults as INTODT_Backward has them. Errors: those of odt_ti_check; OUT_OF_RANGE (batch, more
 * than ODT_MAX_LAYERS layers). */
odt_status_t odt_ti_init(odt_ti_t* t, IntModelCtx_t* ctx, uint16_t batch, odt_error_t* err);

/* As INTODT_*, with settings and errors: INVALID_ARGUMENT (batch size, mu_weight, mu_offset, rule
 * set, rounding, shift source; nothing has changed then). rec may be NULL. */
odt_status_t odt_ti_infer(odt_ti_t* t, const void* input, int8_t* logits, odt_error_t* err);
odt_status_t odt_ti_forward(odt_ti_t* t, const void* input, int32_t n, odt_error_t* err);
odt_status_t odt_ti_backward(odt_ti_t* t, const void* input, int32_t n, odt_ti_record_t* rec,
                             odt_error_t* err);
/* layer: index into ctx->layers; n: samples of the last forward pass. */
void odt_ti_layer_stats(const odt_ti_t* t, uint16_t layer, int32_t n, odt_ti_layer_stats_t* stats);

/* Weights and offsets as odt_weights v1 (proto/README.md): what odt_trainer_t gives for the same
 * model, so that they can be exchanged with a host. model_hash: that of the model image
 * (INT_MODEL_HASH of the files of odtc). Restoring resets b_prev (rule 1.7). Errors:
 * RESOURCE_EXHAUSTED (snapshot: bytes), INVALID_ARGUMENT (restore: size, header, shapes),
 * FAILED_PRECONDITION (other model or rules); weights are unchanged then. */
uint32_t odt_ti_snapshot_size(const IntModelCtx_t* ctx);
odt_status_t odt_ti_snapshot(const odt_ti_t* t, const uint8_t model_hash[32], uint8_t* out,
                             uint32_t bytes, odt_error_t* err);
odt_status_t odt_ti_restore(odt_ti_t* t, const uint8_t model_hash[32], const uint8_t* in,
                            uint32_t bytes, odt_error_t* err);
/* SHA-256 of the snapshot, without the memory for it. */
void odt_ti_weights_hash(const odt_ti_t* t, const uint8_t model_hash[32], uint8_t hash[32]);

/* ---- the frozen part in front, as C files carry it ------------------------------------------- */

/* Ops with constant weights over const tables, read in place from flash: any kinds of a model
 * image, in topological order, branches too. */
typedef struct {
  const odt_op_t* ops; /* in0, in1, out: tensor numbers */
  const odt_tensor_t* tensors;
  uint16_t n_ops;
  uint16_t input, output; /* tensors that the caller gives and gets */
  void* const* values;    /* by tensor: memory of the others, 4-byte aligned; a FLATTEN's output may
                             share that of its input, and dead ones may share */
} odt_ti_frozen_t;

/* One sample: rule 1.2. Same bits as odt_trainer_freeze(). */
void odt_ti_frozen_run(const odt_ti_frozen_t* f, const void* input, void* output);

/* The float form of PREQUANT, in ti_prequant.c alone: y = clip(floor((x + offset) * scale)) with
 * every operation in float32; n values, n a multiple of n_ch; NaN gives clip_lo. dtype: ODT_S8,
 * ODT_U8 or ODT_S16 of y. */
void odt_ti_prequant(const IntPrequant_t* p, int32_t clip_lo, int32_t clip_hi, const float* x,
                     uint32_t n, uint8_t dtype, void* y);

#ifdef __cplusplus
}
#endif
#endif

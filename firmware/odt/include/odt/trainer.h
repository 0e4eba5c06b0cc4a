/* The trainer's memory. Callers reserve it (static or inside a larger object) and touch it only
 * through the functions of odt.h; the layout is public so that its size is known. */
#ifndef ODT_TRAINER_H
#define ODT_TRAINER_H

#include "odt/odt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over the current epoch for telemetry; no part of the training state. */
typedef struct {
  uint32_t steps;
  uint32_t bits_sum;
  uint8_t bits_min, bits_max;
  int8_t shift;
  uint64_t deltas;         /* weight deltas computed */
  uint64_t nonzero_deltas; /* of these not 0 */
  uint64_t abs_delta_sum;  /* in grid LSBs */
  uint64_t propagated;     /* delta values that reached the layer's output */
  uint64_t zero_propagated;
  uint64_t update_q8; /* rule 1.14's u_q8: of every 16th step; with APT, what decided last */
  uint32_t update_n;
  uint64_t sum_abs_g; /* of the sampled steps */
  uint32_t sum_n;
  int8_t mu; /* of the last step, as used */
  bool mu_clamped;
} odt_layer_stats_t;

/* One trainable layer. */
typedef struct {
  uint16_t op;
  int8_t k;
  uint8_t dtype; /* of M: ODT_S8 where k <= 8, else ODT_S16 */
  uint8_t b_prev;
  uint8_t k_nom;                               /* most frequent k_out, ties to the smaller */
  uint8_t k_off;                               /* precision of the offsets; 0: not adapted */
  int8_t best_k;                               /* of best_m */
  uint64_t apt_a, apt_n, apt_off_a, apt_off_n; /* rule 1.12, since the last check */
  uint8_t t_o;                                 /* rule 1.6 */
  bool in_out;                                 /* ONNX order of the weights is [in,out] */
  uint32_t n_weights, n_offsets;
  void* m; /* in the kernels' layout: src/kernels/layout.h */
  int32_t* off;
  void* best_m;      /* NULL: guard off; m itself: the host keeps the best */
  int32_t* best_off; /* likewise */
  uint8_t* alive;    /* bit per output: was > 0 in this epoch; NULL: no ReLU */
  int16_t e_d;       /* exponent of the last delta at the layer's output */
  odt_layer_stats_t stats;
} odt_layer_t;

/* DFP16 (rule 1.13): the batch at hand, by tensor number. */
typedef struct {
  uint8_t* base;         /* values and deltas lie from here on: */
  uint32_t *act, *delta; /* so many times 8 bytes */
  int8_t *e_act, *e_delta;
  int32_t* acc;
  int64_t* wide;
  void* scratch;
} odt_dfp_t;
/* An op's output; offsets within the region. */
typedef struct {
  uint32_t act, delta;
  int16_t e_d;    /* exponent of the delta, last step (rule 1.4) */
  int16_t e_step; /* LINEAR, CONV2D: what crossing the op backwards adds to it */
} odt_node_t;

/* What code asks for often comes first: short offsets make short instructions. */
struct odt_trainer {
  const odt_model_t* model;
  bool resident;
  bool weights_valid; /* false while weights or a state are being written */
  bool best_missing;  /* the state names a best that the arena does not hold */
  bool best_whole;    /* the best was kept or written to its end: its values are checked ones */
  uint8_t best_waits; /* odt_best_wait_t */
  uint16_t source;    /* tensor that the samples at hand are: the input's or the cut's */
  uint8_t write_kind; /* of the transfer in progress */
  bool write_bad;
  uint32_t steps_per_epoch;
  uint32_t step, epoch, position;
  uint32_t start_correct, best_step, best_correct; /* 0xFFFFFFFF: none */
  uint64_t epoch_loss;
  uint32_t epoch_correct;
  uint32_t order_epoch; /* epoch that `order` holds; 0xFFFFFFFF: none */
  uint16_t* order;
  odt_node_t* nodes; /* per op */
  uint8_t* region;   /* values and deltas, which share it by lifetime */
  int64_t* sum;      /* in it: accumulators of one sample, where several deltas meet */
  void* scratch;     /* of the kernels */
  odt_dfp_t dfp;
  uint32_t write_pos;  /* of the transfer in progress: bytes taken so far */
  odt_run_spec_t spec; /* rounding as resolved */
  odt_layer_t layers[ODT_MAX_LAYERS];
  uint8_t best_hash[32];
  uint8_t delta_shift[ODT_MAX_TENSORS]; /* of each last delta, 0xFF: none; only saves work */
  /* The header that a transfer in progress collects. */
  uint8_t head[176];
  uint8_t layer_head[44];
  uint8_t new_b_prev[ODT_MAX_LAYERS];
};

#ifdef __cplusplus
}
#endif
#endif

/* Rule 1.13: deltas from the last tensor to the first that needs one; each layer is updated when
 * the delta of its input has been made from its old weights. */
#include <string.h>

#include "dfp.h"

/* One read of the tensor whose delta is made. */
typedef struct {
  const odt_op_t* op;
  int which; /* 0: as in0, 1: as in1 */
} reader_t;

/* The next reader behind *at; ops are walked, an op that reads twice comes twice. */
static bool next_reader(const odt_model_t* m, uint32_t tensor, uint32_t* at, reader_t* r) {
  for (; *at < 2u * m->n_ops; (*at)++) {
    const odt_op_t* op = &m->ops[*at >> 1];
    int which = (int)(*at & 1u);
    if ((which ? op->in1 : op->in0) != tensor || (which && op->in1 == ODT_NO_TENSOR)) continue;
    r->op = op;
    r->which = which;
    (*at)++;
    return true;
  }
  return false;
}

static int32_t weights_e(const odt_trainer_t* t, const odt_op_t* op) {
  return odt_dfp_weights_of(t, op, 0).e_max;
}

/* Exponent of what op gives to its input's delta. */
static int32_t gift_e(const odt_trainer_t* t, const odt_op_t* op) {
  int32_t e = t->dfp.e_delta[op->out];
  if (odt_dfp_computes(op)) return e + weights_e(t, op) + ODT_DFP_CHAIN;
  return op->kind == ODT_OP_AVGPOOL || op->kind == ODT_OP_GAP ? e - 15 : e;
}

static uint64_t gift_bound(const odt_model_t* m, const odt_op_t* op) {
  if (op->kind == ODT_OP_LINEAR) return (uint64_t)op->n_out << 30;
  if (op->kind == ODT_OP_CONV2D) {
    return ((uint64_t)op->n_out / op->groups * op->k_h * op->k_w) << 30;
  }
  return ((uint64_t)odt_dfp_fan_out(m, op) * (uint32_t)odt_dfp_factor(m, op)) << 15;
}

static void layer_back(odt_trainer_t* t, const odt_op_t* op, const int16_t* dy, uint32_t n,
                       odt_dfp_sink_t* k) {
  const odt_model_t* m = t->model;
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  odt_dfp_weights_t w = odt_dfp_weights_of(t, op, 0);
  if (op->kind == ODT_OP_LINEAR) {
    odt_dfp_dense_delta(&w, in->count, op->n_out, dy, odt_dfp_even(out->count), n, k,
                        t->dfp.scratch);
  } else {
    odt_dfp_conv_delta(&w, op, in, out, dy, n, k, t->dfp.scratch);
  }
}

/* Several readers, or one that only moves values: sample by sample, over a row of int64. */
static void sum_gifts(odt_trainer_t* t, uint32_t tensor, uint32_t b, int32_t e, odt_dfp_sink_t* k) {
  odt_dfp_t* d = &t->dfp;
  uint32_t count = t->model->tensors[tensor].count, at = 0;
  int32_t* part = k->acc + (size_t)b * k->stride;
  odt_dfp_sink_t wide = {.wide = d->wide, .stride = k->stride};
  reader_t r;
  memset(d->wide, 0, 8u * (size_t)count);
  while (next_reader(t->model, tensor, &at, &r)) {
    int down = e - gift_e(t, r.op);
    if (odt_dfp_computes(r.op)) {
      uint32_t stride = odt_dfp_even(t->model->tensors[r.op->out].count);
      wide.shift = down;
      layer_back(t, r.op, odt_dfp_delta(d, r.op->out) + (size_t)b * stride, 1, &wide);
      continue;
    }
    int64_t factor = odt_dfp_factor(t->model, r.op);
    odt_dfp_move_back(t, r.op, r.which, b, part);
    for (uint32_t i = 0; i < count; i++) d->wide[i] += odt_dfp_half_up(part[i] * factor, down);
  }
  for (uint32_t i = 0; i < count; i++) odt_dfp_put(k, b, i, d->wide[i]);
}

static void count_zeros(odt_trainer_t* t, const odt_dfp_graph_t* g, uint32_t tensor, uint32_t n,
                        uint32_t zeros) {
  const odt_model_t* m = t->model;
  int32_t op = g->maker[g->root[tensor]];
  if (op < 0 || m->ops[op].layer < 0) return;
  odt_layer_t* l = &t->layers[m->ops[op].layer];
  l->stats.propagated += (uint64_t)n * m->tensors[tensor].count;
  l->stats.zero_propagated += zeros;
}

/* The delta of a tensor from those of its readers' outputs. (A frame of its own: the caller's holds
 * the graph.) */
static __attribute__((noinline)) void pull(odt_trainer_t* t, const odt_dfp_graph_t* g,
                                           uint32_t tensor, uint32_t n) {
  const odt_model_t* m = t->model;
  odt_dfp_t* d = &t->dfp;
  const odt_tensor_t* x = &m->tensors[tensor];
  odt_dfp_sink_t k = {.acc = d->acc, .stride = odt_dfp_even(x->count)};
  if (odt_dfp_mask_op(m, g, tensor) >= 0) k.mask = odt_dfp_act(d, tensor);
  uint32_t at = 0;
  int32_t e = INT32_MIN;
  uint64_t bound = 0;
  reader_t r = {0};
  while (next_reader(m, tensor, &at, &r)) {
    int32_t gift = gift_e(t, r.op);
    if (gift > e) e = gift;
    bound += gift_bound(m, r.op);
  }
  bool direct = g->readers[tensor] == 1 && odt_dfp_computes(r.op);
  k.pre = odt_dfp_pre(bound);
  do {
    if (direct) {
      layer_back(t, r.op, odt_dfp_delta(d, r.op->out), n, &k);
    } else {
      for (uint32_t b = 0; b < n; b++) sum_gifts(t, tensor, b, e, &k);
    }
  } while (odt_dfp_again(&k));
  uint32_t zeros =
      odt_dfp_convert(&k, n, x->count, e, false, odt_dfp_delta(d, tensor), &d->e_delta[tensor]);
  count_zeros(t, g, tensor, n, zeros);
}

static void logits_zeros(odt_trainer_t* t, const odt_dfp_graph_t* g, uint32_t n) {
  const odt_tensor_t* z = &t->model->tensors[t->model->logits];
  uint32_t zeros = 0, stride = odt_dfp_even(z->count);
  for (uint32_t b = 0; b < n; b++) {
    const int16_t* dy = odt_dfp_delta(&t->dfp, t->model->logits) + (size_t)b * stride;
    for (uint32_t i = 0; i < z->count; i++) zeros += dy[i] == 0 ? 1u : 0u;
  }
  count_zeros(t, g, t->model->logits, n, zeros);
}

void odt_dfp_backward(odt_trainer_t* t, uint32_t n, odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  odt_dfp_graph_t g;
  odt_dfp_graph(m, &g);
  logits_zeros(t, &g, n);
  for (int32_t i = m->n_ops - 1; i >= m->first_trainable_op; i--) {
    const odt_op_t* op = &m->ops[i];
    uint32_t tensor = op->out, at = 0;
    if (!g.need[tensor]) continue;
    if (g.owner[tensor] != tensor) {
      t->dfp.e_delta[tensor] = t->dfp.e_delta[g.owner[tensor]];
    } else if (tensor != m->logits) {
      pull(t, &g, tensor, n);
    }
    reader_t r;
    while (next_reader(m, tensor, &at, &r)) {
      if (r.op->layer >= 0) odt_dfp_update(t, r.op, n, &rec->layers[r.op->layer]);
    }
    if (op->layer >= 0 && !g.need[op->in0]) {
      odt_dfp_update(t, op, n, &rec->layers[op->layer]);
    }
  }
}

/* Rule 1.4: the delta of one tensor from those of the ops that read it. One reader: its
 * accumulators are rounded as they come. Several: they are aligned and summed in int64, one sample
 * at a time, first to measure, then again to store. */
#include <string.h>

#include "round.h"
#include "walk.h"

/* Reads of one tensor that give it something. */
typedef struct {
  uint32_t n;
  int e_min;
  uint32_t op; /* of the last one */
  uint32_t slot;
} givers_t;

static int exponent_of(const odt_trainer_t* t, uint32_t op, uint32_t slot) {
  const odt_model_t* m = t->model;
  const odt_op_t* o = &m->ops[op];
  int step = odt_has_weights(o) ? t->nodes[op].e_step : odt_exponent_step(m, o, slot);
  return t->nodes[odt_tail(m, op)].e_d + step;
}

static bool gives(const odt_op_t* op, uint32_t slot, uint16_t tensor) {
  return odt_input(op, slot) == tensor && (op->kind != ODT_OP_ADD || op->offset[slot] != 0);
}

static givers_t find_givers(const odt_trainer_t* t, uint16_t tensor) {
  const odt_model_t* m = t->model;
  givers_t g = {0};
  for (uint32_t j = odt_first_reader(m, tensor); j < m->n_ops; j++) {
    for (uint32_t slot = 0; slot < 2; slot++) {
      if (!gives(&m->ops[j], slot, tensor)) continue;
      int e = exponent_of(t, j, slot);
      if (g.n++ == 0 || e < g.e_min) g.e_min = e;
      g.op = j;
      g.slot = slot;
    }
  }
  return g;
}

/* Op j with sample b's inputs. */
static odt_pass_t pass_of(const odt_trainer_t* t, uint32_t j, const odt_view_t* x, uint32_t b) {
  const odt_model_t* m = t->model;
  const odt_op_t* op = &m->ops[j];
  odt_pass_t p = {.op = op, .in = &m->tensors[op->in0], .out = &m->tensors[op->out]};
  if (op->kind == ODT_OP_MAXPOOL) {
    odt_view_t v = odt_view_of(t, op->in0, x);
    p.x = odt_sample(&v, b);
    p.x_dtype = v.dtype;
  }
  if (op->in1 != ODT_NO_TENSOR) p.in1 = &m->tensors[op->in1];
  return p;
}

static const int8_t* delta_behind(const odt_trainer_t* t, uint32_t j, uint32_t b) {
  const odt_model_t* m = t->model;
  return odt_delta_of(t, odt_tail(m, j)) + (size_t)b * m->tensors[m->ops[j].out].count;
}

static void single(odt_trainer_t* t, const givers_t* g, const odt_view_t* x, uint32_t n,
                   odt_delta_t* d) {
  const odt_op_t* op = &t->model->ops[g->op];
  if (!ODT_WITH_GRAPHS || odt_has_weights(op)) {
    odt_kernel_t k = odt_kernel_of(t, op);
    odt_kernel_delta(&k, delta_behind(t, g->op, 0), n, d);
    return;
  }
  odt_sink_t sink = {.d = d, .count = d->count};
  for (int pass = 0; pass < 2; pass++) {
    d->store = pass == 1;
    for (uint32_t b = 0; b < n; b++) {
      odt_pass_t p = pass_of(t, g->op, x, b);
      odt_pass_delta(&p, g->slot, delta_behind(t, g->op, b), &sink, b);
    }
    int bits = odt_bitlen64(d->or_abs);
    d->s = bits > 7 ? bits - 7 : 0;
  }
}

/* All contributions to sample b, in t->sum. */
static void add_up(odt_trainer_t* t, uint16_t tensor, int e_min, const odt_view_t* x, uint32_t b) {
  const odt_model_t* m = t->model;
  uint32_t count = m->tensors[tensor].count;
  memset(t->sum, 0, 8u * (size_t)count);
  for (uint32_t j = odt_first_reader(m, tensor); j < m->n_ops; j++) {
    for (uint32_t slot = 0; slot < 2; slot++) {
      if (!gives(&m->ops[j], slot, tensor)) continue;
      int shift = exponent_of(t, j, slot) - e_min;
      if (shift > 24) shift = 24;
      const int8_t* dy = delta_behind(t, j, b);
      if (odt_has_weights(&m->ops[j])) {
        odt_kernel_t k = odt_kernel_of(t, &m->ops[j]);
        odt_kernel_delta_add(&k, dy, 1, shift, t->sum);
        continue;
      }
      odt_sink_t sink = {.acc = t->sum, .count = count, .shift = shift};
      odt_pass_t p = pass_of(t, j, x, b);
      odt_pass_delta(&p, slot, dy, &sink, 0);
    }
  }
}

static uint64_t round_sample(const odt_trainer_t* t, odt_delta_t* d, uint32_t b) {
  uint64_t or_abs = 0;
  const uint8_t* y = d->mask ? odt_sample(d->mask, b) : NULL;
  int8_t* out = d->out + (size_t)b * d->count;
  for (uint32_t i = 0; i < d->count; i++) {
    int64_t v = y && odt_load(y, d->mask->dtype, i) <= 0 ? 0 : t->sum[i];
    if (!d->store) {
      or_abs |= v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
      continue;
    }
    v = odt_half_up(v, d->s);
    out[i] = (int8_t)(v > 127 ? 127 : v < -127 ? -127 : v);
    if (v == 0) d->zeros++;
  }
  return or_abs;
}

static void several(odt_trainer_t* t, uint16_t tensor, const givers_t* g, const odt_view_t* x,
                    uint32_t n, odt_delta_t* d) {
  uint64_t or_abs = 0;
  for (int pass = 0; pass < 2; pass++) {
    d->store = pass == 1;
    for (uint32_t b = 0; b < n; b++) {
      add_up(t, tensor, g->e_min, x, b);
      or_abs |= round_sample(t, d, b);
    }
    int bits = odt_bitlen64(or_abs);
    d->s = bits > 7 ? bits - 7 : 0;
  }
}

void odt_pull(odt_trainer_t* t, uint16_t tensor, const odt_view_t* x, uint32_t n) {
  const odt_model_t* m = t->model;
  uint32_t op = m->tensors[tensor].producer, head = odt_head(m, op);
  odt_view_t y = odt_view_of(t, tensor, x);
  odt_delta_t d = {.out = odt_delta_of(t, op),
                   .count = m->tensors[tensor].count,
                   .last = &t->delta_shift[tensor]};
  if (m->ops[head].flags & ODT_OP_FLAG_RELU) d.mask = &y;
  givers_t g = find_givers(t, tensor);
  if (g.n == 0) {
    memset(d.out, 0, (size_t)n * d.count);
    d.zeros = (uint64_t)n * d.count;
  } else if (!ODT_WITH_GRAPHS || g.n == 1) { /* no branches: one reader */
    single(t, &g, x, n, &d);
  } else {
    several(t, tensor, &g, x, n, &d);
  }
  int e = g.n == 0 ? 0 : g.e_min + d.s;
  t->nodes[op].e_d = (int16_t)(e > INT16_MAX ? INT16_MAX : e < INT16_MIN ? INT16_MIN : e);
  int8_t layer = m->ops[head].layer;
  if (layer < 0) return;
  t->layers[layer].stats.propagated += (uint64_t)n * d.count;
  t->layers[layer].stats.zero_propagated += d.zeros;
}

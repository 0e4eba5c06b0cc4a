/* When each buffer is in use, and a place for it: two that are never in use at once may share. */
#include <string.h>

#include "walk.h"

uint64_t odt_one_sample(const odt_model_t* m) {
  uint64_t inside = ((uint64_t)1 << m->first_trainable_op) - 1u;
  for (uint32_t i = m->first_trainable_op; i < m->n_ops; i++) {
    for (uint32_t slot = 0; slot < 2; slot++) {
      uint16_t in = odt_input(&m->ops[i], slot);
      if (in == ODT_NO_TENSOR) continue;
      uint8_t from = m->tensors[odt_root(m, in)].producer;
      if (from != ODT_NO_OP) inside &= ~((uint64_t)1 << from);
    }
  }
  return inside;
}

uint32_t odt_delta_time(const odt_model_t* m, uint32_t op) {
  if (m->ops[op].out == m->logits) return m->n_ops;
  return 2u * m->n_ops - odt_first_reader(m, m->ops[op].out);
}

static bool contributes(const odt_op_t* op, uint32_t slot) {
  return op->kind != ODT_OP_ADD || op->offset[slot] != 0;
}

uint32_t odt_contributions(const odt_model_t* m, uint32_t op) {
  uint32_t n = 0;
  for (uint32_t j = op + 1u; j < m->n_ops; j++) {
    for (uint32_t slot = 0; slot < 2; slot++) {
      if (odt_input(&m->ops[j], slot) == m->ops[op].out && contributes(&m->ops[j], slot)) n++;
    }
  }
  return n;
}

static void extend(odt_spans_t* s, uint32_t op, uint32_t time) {
  if (op != ODT_NO_OP && s->to[op] < time) s->to[op] = (uint8_t)time;
}

/* The forward pass, and the frozen part's results, which wait for the whole batch. */
static void forward_spans(const odt_model_t* m, odt_spans_t* act) {
  uint64_t one = odt_one_sample(m);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    bool waits = i < m->first_trainable_op && !((one >> i) & 1u);
    act->from[i] = (uint8_t)(op->kind == ODT_OP_FLATTEN ? ODT_NEVER : waits ? 0 : i);
    act->to[i] = (uint8_t)i;
    for (uint32_t slot = 0; slot < 2; slot++) {
      uint16_t in = odt_input(op, slot);
      if (in != ODT_NO_TENSOR) extend(act, m->tensors[odt_root(m, in)].producer, i);
    }
  }
  extend(act, m->tensors[odt_root(m, m->logits)].producer, m->n_ops);
}

/* The delta of op's output, made at `time`: what it is made of lives until then. */
static void made_of(const odt_model_t* m, uint32_t op, uint32_t time, odt_spans_t* act,
                    odt_spans_t* delta) {
  uint16_t tensor = m->ops[op].out;
  uint8_t root = m->tensors[odt_root(m, tensor)].producer;
  if (m->ops[odt_head(m, op)].flags & ODT_OP_FLAG_RELU) extend(act, root, time);
  for (uint32_t j = op + 1u; j < m->n_ops; j++) {
    const odt_op_t* reader = &m->ops[j];
    if (reader->in0 != tensor && reader->in1 != tensor) continue;
    extend(delta, odt_tail(m, j), time);
    if (reader->kind == ODT_OP_MAXPOOL || odt_trains_weights(reader)) extend(act, root, time);
  }
}

void odt_lifetimes(const odt_model_t* m, odt_spans_t* act, odt_spans_t* delta) {
  uint64_t needed = odt_needed(m);
  forward_spans(m, act);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    bool there = ((needed >> i) & 1u) && odt_tail(m, i) == i;
    delta->from[i] = (uint8_t)(there ? odt_delta_time(m, i) : ODT_NEVER);
    delta->to[i] = there ? delta->from[i] : 0;
  }
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    if (delta->from[i] != ODT_NEVER && op->out != m->logits) {
      made_of(m, i, delta->from[i], act, delta);
    }
    if (op->layer < 0 || odt_has_delta(m, needed, op->in0)) continue;
    extend(delta, odt_tail(m, i), 2u * m->n_ops - i); /* updated in its own turn */
    if (!odt_trains_weights(op)) continue;
    extend(act, m->tensors[odt_root(m, op->in0)].producer, 2u * m->n_ops - i);
  }
}

/* ---- places -------------------------------------------------------------------------------------
 */

typedef struct {
  const odt_model_t* m;
  const odt_spans_t *act, *delta;
  odt_places_t* p;
  uint32_t batch;
  uint64_t one;          /* odt_one_sample */
  uint64_t meets;        /* bit per op: several deltas meet in that of its output */
  uint64_t acts, deltas; /* placed so far */
} fit_t;

static uint64_t act_bytes(const fit_t* f, uint32_t op) {
  const odt_tensor_t* out = &f->m->tensors[f->m->ops[op].out];
  uint64_t n = (f->one >> op) & 1u ? 1u : f->batch;
  return n * out->count * odt_elem_bytes(out->dtype);
}

static uint64_t delta_bytes(const fit_t* f, uint32_t op) {
  return (uint64_t)f->batch * f->m->tensors[f->m->ops[op].out].count;
}

static uint64_t units(const fit_t* f, uint64_t bytes) {
  return (bytes + f->p->unit - 1u) / f->p->unit;
}

/* Whether op's buffer is in use at some time of [from, to]; to < from: when several deltas meet. */
static bool in_use(const fit_t* f, const odt_spans_t* s, uint32_t op, uint32_t from, uint32_t to) {
  if (from <= to) return s->from[op] <= to && s->to[op] >= from;
  for (uint32_t i = 0; i < f->m->n_ops; i++) {
    uint32_t at = f->delta->from[i];
    if (((f->meets >> i) & 1u) && s->from[op] <= at && s->to[op] >= at) return true;
  }
  return false;
}

/* The lowest place for n units that nothing placed is in at that time. */
static uint16_t first_fit(const fit_t* f, uint64_t n, uint32_t from, uint32_t to) {
  uint64_t at = 0;
  bool moved = true;
  while (moved) {
    moved = false;
    for (uint32_t i = 0; i < 2u * f->m->n_ops; i++) {
      bool values = i < f->m->n_ops;
      uint32_t op = values ? i : i - f->m->n_ops;
      if (!(((values ? f->acts : f->deltas) >> op) & 1u)) continue;
      if (!in_use(f, values ? f->act : f->delta, op, from, to)) continue;
      uint64_t lo = values ? f->p->act[op] : f->p->delta[op];
      uint64_t hi = lo + units(f, values ? act_bytes(f, op) : delta_bytes(f, op));
      if (at >= hi || at + n <= lo) continue;
      at = hi;
      moved = true;
    }
  }
  return (uint16_t)at;
}

/* What is placed first: the larger, the earlier, or the later; the best of these is taken. */
typedef enum { LARGE_FIRST, EARLY_FIRST, LATE_FIRST, ORDERS } order_t;

/* Places the next one; false: none is left. */
static bool place_next(fit_t* f, bool values, order_t order, uint64_t* extent) {
  const odt_spans_t* s = values ? f->act : f->delta;
  uint64_t* placed = values ? &f->acts : &f->deltas;
  uint64_t most = 0;
  uint32_t which = ODT_MAX_OPS;
  for (uint32_t i = 0; i < f->m->n_ops; i++) {
    if (s->from[i] == ODT_NEVER || ((*placed >> i) & 1u)) continue;
    uint64_t key = order == LARGE_FIRST   ? units(f, values ? act_bytes(f, i) : delta_bytes(f, i))
                     : order == EARLY_FIRST ? ODT_NEVER - s->from[i]
                                          : s->from[i] + 1u;
    if (key <= most) continue;
    most = key;
    which = i;
  }
  if (which == ODT_MAX_OPS) return false;
  uint64_t n = units(f, values ? act_bytes(f, which) : delta_bytes(f, which));
  uint16_t at = first_fit(f, n, s->from[which], s->to[which]);
  (values ? f->p->act : f->p->delta)[which] = at;
  *placed |= (uint64_t)1 << which;
  if ((at + n) * f->p->unit > *extent) *extent = (at + n) * f->p->unit;
  return true;
}

static void place_all(fit_t* f, order_t values, order_t deltas) {
  odt_places_t* p = f->p;
  f->acts = f->deltas = p->act_bytes = 0;
  while (place_next(f, true, values, &p->act_bytes)) {}
  p->all_bytes = p->act_bytes;
  while (place_next(f, false, deltas, &p->all_bytes)) {}
  uint64_t most = 0;
  for (uint32_t i = 0; i < f->m->n_ops; i++) {
    uint64_t n = units(f, 8ull * f->m->tensors[f->m->ops[i].out].count);
    if (((f->meets >> i) & 1u) && n > most) most = n;
  }
  p->sum = most ? first_fit(f, most, 1, 0) : 0;
  if ((p->sum + most) * p->unit > p->all_bytes) p->all_bytes = (p->sum + most) * p->unit;
}

/* Small enough numbers of units for 16 bits, whatever the order. */
static uint32_t unit_for(const fit_t* f) {
  uint64_t sum = 0, n = 2u * f->m->n_ops + 1u;
  for (uint32_t i = 0; i < f->m->n_ops; i++) {
    sum += act_bytes(f, i) + delta_bytes(f, i) + 8ull * f->m->tensors[f->m->ops[i].out].count;
  }
  uint32_t unit = 8;
  while (sum / unit + n > UINT16_MAX) unit *= 2u;
  return unit;
}

static void __attribute__((noinline))
fit(const odt_model_t* m, const odt_spans_t* act, const odt_spans_t* delta, uint32_t batch,
    odt_places_t* p) {
  fit_t f = {.m = m, .act = act, .delta = delta, .p = p, .batch = batch, .one = odt_one_sample(m)};
  memset(p, 0, sizeof *p);
  p->unit = unit_for(&f);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    if (delta->from[i] != ODT_NEVER && odt_contributions(m, i) > 1) f.meets |= (uint64_t)1 << i;
  }
  uint32_t best = 0;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < 2u * ORDERS; i++) {
    place_all(&f, (order_t)(i / ORDERS), (order_t)(i % ORDERS));
    if (p->all_bytes >= least) continue;
    least = p->all_bytes;
    best = i;
  }
  place_all(&f, (order_t)(best / ORDERS), (order_t)(best % ORDERS));
}

void odt_place(const odt_model_t* m, uint32_t batch, odt_places_t* p) {
  odt_spans_t act, delta;
  odt_lifetimes(m, &act, &delta);
  fit(m, &act, &delta, batch, p);
}

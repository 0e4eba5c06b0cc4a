/* Where everything of a DFP16 trainer lies in the arena. One walk serves the query and the layout.
 * Values and deltas that the backward pass does not need again share their places by lifetime. */
#include <string.h>

#include "dfp.h"

typedef struct {
  uint8_t* base; /* NULL: only count */
  uint64_t used;
} arena_t;

static void* take(arena_t* a, uint64_t bytes) {
  void* p = a->base ? a->base + a->used : NULL;
  a->used += (bytes + 7u) & ~(uint64_t)7;
  return bytes ? p : NULL;
}

/* What lives from one op to another (both included); to < from: nothing there. */
typedef struct {
  uint8_t from[ODT_MAX_TENSORS], to[ODT_MAX_TENSORS];
} lives_t;

static void no_lives(lives_t* v) {
  memset(v->from, 255, sizeof v->from);
  memset(v->to, 0, sizeof v->to);
}
static bool there(const lives_t* v, uint32_t tensor) { return v->from[tensor] <= v->to[tensor]; }

static uint64_t batch_bytes(const odt_model_t* m, uint32_t tensor, uint32_t batch) {
  return ((uint64_t)batch * odt_dfp_even(m->tensors[tensor].count) * 2u + 7u) & ~(uint64_t)7;
}

static void live(lives_t* v, uint32_t tensor, uint32_t from, uint32_t to) {
  if (from < v->from[tensor]) v->from[tensor] = (uint8_t)from;
  if (to > v->to[tensor]) v->to[tensor] = (uint8_t)to;
}

/* Values: time is the op's number + 1, 0 the network input. Those that the backward pass reads live
 * to the end. */
static void value_lives(const odt_model_t* m, const odt_dfp_graph_t* g, lives_t* v) {
  no_lives(v);
  live(v, m->input, 0, 0);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    if (op->kind == ODT_OP_FLATTEN) continue;
    uint32_t to = g->need[op->out] ? ODT_MAX_OPS + 1u : i + 1u;
    live(v, op->out, i + 1u, i + 1u);
    live(v, g->root[op->in0], i + 1u, to);
    if (op->in1 != ODT_NO_TENSOR) live(v, g->root[op->in1], i + 1u, to);
  }
  live(v, g->root[m->logits], m->n_ops, ODT_MAX_OPS + 1u);
  if (m->task == ODT_TASK_AUTOENCODE) live(v, m->input, 0, ODT_MAX_OPS + 1u);
}

/* Deltas: time is the op whose turn it is, backwards. A delta is there from its making until those
 * of its op's inputs are made. */
static void delta_lives(const odt_model_t* m, const odt_dfp_graph_t* g, lives_t* v) {
  no_lives(v);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    if (!g->need[op->out]) continue;
    uint32_t until = i;
    const uint16_t in[2] = {op->in0, op->in1};
    for (uint32_t j = 0; j < 2; j++) {
      if (in[j] == ODT_NO_TENSOR || !g->need[in[j]]) continue;
      uint32_t maker = (uint32_t)g->maker[in[j]];
      if (maker < until) until = maker;
    }
    live(v, g->owner[op->out], until, i);
  }
}

/* First fit; fills where[] with offsets in 8 bytes, returns the bytes taken. */
static uint64_t place(const odt_model_t* m, const lives_t* v, uint32_t batch, uint32_t* where) {
  uint64_t end = 0;
  for (uint32_t t = 0; t < m->n_tensors; t++) {
    if (!there(v, t)) continue;
    uint64_t size = batch_bytes(m, t, batch), at = 0;
    for (uint32_t p = 0; p < t; p++) {
      if (!there(v, p) || v->to[p] < v->from[t] || v->from[p] > v->to[t]) continue;
      uint64_t lo = 8ull * where[p], hi = lo + batch_bytes(m, p, batch);
      if (at >= hi || at + size <= lo) continue;
      at = hi;
      p = UINT32_MAX; /* from the first again */
    }
    where[t] = (uint32_t)(at / 8u);
    if (at + size > end) end = at + size;
  }
  return end;
}

/* Frames stay small: the tables in functions of their own. */
static __attribute__((noinline)) void lay_values(arena_t* a, odt_trainer_t* t, const odt_model_t* m,
                                                 const odt_dfp_graph_t* g, uint32_t batch) {
  lives_t v;
  uint32_t where[ODT_MAX_TENSORS], start = (uint32_t)(a->used / 8u);
  value_lives(m, g, &v);
  take(a, place(m, &v, batch, where));
  for (uint32_t i = 0; t && i < m->n_tensors; i++) t->dfp.act[i] = start + where[g->root[i]];
}

static __attribute__((noinline)) void lay_deltas(arena_t* a, odt_trainer_t* t, const odt_model_t* m,
                                                 const odt_dfp_graph_t* g, uint32_t batch) {
  lives_t v;
  uint32_t where[ODT_MAX_TENSORS], start = (uint32_t)(a->used / 8u);
  delta_lives(m, g, &v);
  take(a, place(m, &v, batch, where));
  for (uint32_t i = 0; t && i < m->n_tensors; i++) {
    t->dfp.delta[i] = g->need[i] ? start + where[g->owner[i]] : 0;
  }
}

/* What is known of each tensor. */
static void lay_tables(arena_t* a, odt_trainer_t* t, const odt_model_t* m) {
  uint32_t n = m->n_tensors;
  uint32_t* words = take(a, 8ull * n);
  int8_t* bytes = take(a, 2ull * n);
  if (!t) return;
  t->dfp.base = a->base;
  t->dfp.act = words;
  t->dfp.delta = words + n;
  t->dfp.e_act = bytes;
  t->dfp.e_delta = bytes + n;
}

static void most(uint64_t* most_so_far, uint64_t n) {
  if (n > *most_so_far) *most_so_far = n;
}

static void lay_scratch(arena_t* a, odt_trainer_t* t, const odt_model_t* m,
                        const odt_dfp_graph_t* g, uint32_t batch) {
  uint64_t acc = 0, wide = 0, scratch = 0;
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    const uint16_t inputs[2] = {op->in0, op->in1};
    bool computes = odt_dfp_computes(op);
    if (computes) most(&scratch, odt_dfp_scratch_bytes(m, op, batch));
    if (op->kind != ODT_OP_FLATTEN) most(&acc, odt_dfp_even(m->tensors[op->out].count));
    for (uint32_t j = 0; j < 2; j++) {
      uint32_t x = inputs[j];
      if (x == ODT_NO_TENSOR || !g->need[x] || g->owner[x] != x) continue;
      uint32_t n = odt_dfp_even(m->tensors[x].count);
      most(&acc, n);
      if (!computes || g->readers[x] > 1) most(&wide, n);
    }
  }
  int32_t* sums = take(a, acc * batch * 4u);
  int64_t* row = take(a, wide * 8u);
  void* rest = take(a, scratch);
  if (!t) return;
  t->dfp.acc = sums;
  t->dfp.wide = row;
  t->dfp.scratch = rest;
}

static void lay_weights(arena_t* a, odt_trainer_t* t, const odt_model_t* m,
                        const odt_run_spec_t* spec, bool best) {
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    void* values = take(a, 2ull * odt_dfp_stored(m, op));
    void* offsets = take(a, 4ull * op->n_out + (spec->blocked ? op->n_out : 1u));
    if (!t) continue;
    odt_layer_t* l = &t->layers[i];
    if (best) {
      l->best_m = values;
      l->best_off = offsets;
    } else {
      l->m = values;
      l->off = offsets;
    }
  }
}

static void lay_alive(arena_t* a, odt_trainer_t* t, const odt_model_t* m) {
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    if (!(op->flags & ODT_OP_FLAG_RELU)) continue;
    uint8_t* p = take(a, (op->n_out + 7u) / 8u);
    if (t) t->layers[i].alive = p;
  }
}

static uint32_t part(const arena_t* a, uint64_t from) {
  uint64_t n = a->used - from;
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

void odt_dfp_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec,
                     bool resident, void* base, odt_memory_plan_t* plan) {
  arena_t a = {.base = base};
  odt_dfp_graph_t g;
  odt_dfp_graph(m, &g);
  lay_weights(&a, t, m, spec, false);
  plan->weights_bytes = part(&a, 0);
  uint64_t at = a.used;
  if (spec->guard && !spec->best_on_host) lay_weights(&a, t, m, spec, true);
  plan->best_bytes = part(&a, at);
  at = a.used;
  lay_tables(&a, t, m);
  lay_values(&a, t, m, &g, spec->batch);
  lay_alive(&a, t, m);
  plan->activation_bytes = part(&a, at);
  at = a.used;
  lay_deltas(&a, t, m, &g, spec->batch);
  lay_scratch(&a, t, m, &g, spec->batch);
  plan->gradient_bytes = part(&a, at);
  at = a.used;
  uint16_t* order = resident ? take(&a, 2ull * spec->train_samples) : NULL;
  if (t) t->order = order;
  plan->order_bytes = part(&a, at);
  plan->total_bytes = part(&a, 0);
}

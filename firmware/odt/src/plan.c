/* Where everything lies in the arena. One walk serves the query and the layout. */
#include <string.h>

#include "dfp/dfp.h"
#include "kernels/layout.h"
#include "walk.h"

typedef struct {
  uint8_t* base; /* NULL: only count */
  uint64_t used;
} arena_t;

static void* take(arena_t* a, uint64_t bytes) {
  void* p = a->base ? a->base + a->used : NULL;
  a->used += (bytes + 7u) & ~(uint64_t)7;
  return bytes ? p : NULL;
}

static void lay_weights(arena_t* a, odt_trainer_t* t, const odt_model_t* m, bool best,
                        const odt_run_spec_t* spec) {
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    uint8_t dtype = odt_k_limit(spec, i) > 8 ? ODT_S16 : ODT_S8;
    uint32_t n = odt_trains_weights(op) ? op->n_weights : 0;
    odt_layout_t lay = odt_layout(op->kind, n, op->n_out, dtype);
    void* values = take(a, odt_layout_bytes(&lay));
    void* offsets = take(a, (uint64_t)op->n_out * 4u);
    if (!t) continue;
    if (best) {
      t->layers[i].best_m = values;
      t->layers[i].best_off = offsets;
    } else {
      t->layers[i].m = values;
      t->layers[i].off = offsets;
    }
  }
}

/* Per op where its values and its delta lie, and a bit per ReLU unit. */
static void lay_tables(arena_t* a, odt_trainer_t* t, const odt_model_t* m) {
  odt_node_t* nodes = take(a, (uint64_t)m->n_ops * sizeof(odt_node_t));
  if (t) t->nodes = nodes;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    if (!(op->flags & ODT_OP_FLAG_RELU)) continue;
    uint8_t* p = take(a, (op->n_out + 7u) / 8u);
    if (t) t->layers[i].alive = p;
  }
}

static void lay_region(arena_t* a, odt_trainer_t* t, const odt_model_t* m, const odt_places_t* p) {
  uint8_t* region = take(a, p->all_bytes);
  if (!t) return;
  t->region = region;
  t->sum = (int64_t*)(void*)(region + (size_t)p->sum * p->unit);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    odt_node_t node = {.act = p->act[i] * p->unit, .delta = p->delta[i] * p->unit};
    if (odt_has_weights(&m->ops[i])) node.e_step = (int16_t)odt_exponent_step(m, &m->ops[i], 0);
    t->nodes[i] = node;
  }
}

static void lay_scratch(arena_t* a, odt_trainer_t* t, const odt_model_t* m, uint32_t batch) {
  uint64_t scratch = 0;
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    uint32_t need = odt_kernel_scratch(op, &m->tensors[op->in0], &m->tensors[op->out], batch);
    if (need > scratch) scratch = need;
  }
  void* p = take(a, scratch);
  if (t) t->scratch = p;
}

static uint32_t part_of(uint64_t n) { return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; }
static uint32_t part(const arena_t* a, uint64_t from) { return part_of(a->used - from); }

void odt_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                 void* base, odt_memory_plan_t* plan) {
  if (odt_is_dfp16(m)) {
    odt_dfp_lay_out(t, m, spec, resident, base, plan);
    return;
  }
  arena_t a = {.base = base};
  uint64_t at = 0;
  lay_weights(&a, t, m, false, spec);
  plan->weights_bytes = part(&a, at);
  at = a.used;
  if (spec->guard && !spec->best_on_host) lay_weights(&a, t, m, true, spec);
  plan->best_bytes = part(&a, at);
  at = a.used;
  odt_places_t places;
  odt_place(m, spec->batch, &places);
  lay_tables(&a, t, m);
  plan->activation_bytes = part(&a, at) + part_of(places.act_bytes);
  lay_region(&a, t, m, &places);
  lay_scratch(&a, t, m, spec->batch);
  plan->gradient_bytes = part(&a, at) - plan->activation_bytes;
  at = a.used;
  uint16_t* order = resident ? take(&a, 2ull * spec->train_samples) : NULL;
  if (t) t->order = order;
  plan->order_bytes = part(&a, at);
  plan->total_bytes = part(&a, 0);
}

void odt_trainer_plan(const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                      odt_memory_plan_t* plan) {
  odt_lay_out(NULL, m, spec, resident, NULL, plan);
}

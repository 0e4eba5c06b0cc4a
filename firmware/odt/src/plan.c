/* Where everything lies in the arena. One walk serves the query and the layout. */
#include <string.h>

#include "dfp/dfp.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"

typedef struct {
  uint8_t* base; /* NULL: only count */
  uint64_t used;
} arena_t;

static void* take(arena_t* a, uint64_t bytes) {
  void* p = a->base ? a->base + a->used : NULL;
  a->used += (bytes + 7u) & ~(uint64_t)7;
  return bytes ? p : NULL;
}

int32_t odt_producer(const odt_model_t* m, int32_t op) {
  while (op >= 0 && m->ops[op].kind == ODT_OP_FLATTEN) op--;
  return op;
}

static uint64_t batch_bytes(const odt_model_t* m, uint32_t batch, uint32_t op) {
  const odt_tensor_t* out = &m->tensors[m->ops[op].out];
  return (uint64_t)batch * out->count * odt_elem_bytes(out->dtype);
}

static void lay_weights(arena_t* a, odt_trainer_t* t, const odt_model_t* m, bool best,
                        const odt_run_spec_t* spec) {
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    uint8_t dtype = odt_k_limit(spec, i) > 8 ? ODT_S16 : ODT_S8;
    odt_layout_t lay = odt_layout(op->kind, op->n_weights, op->n_out, dtype);
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

static void lay_activations(arena_t* a, odt_trainer_t* t, const odt_model_t* m, uint32_t batch) {
  int32_t keep = odt_producer(m, m->first_trainable_op - 1);
  uint64_t prefix[2] = {0, 0};
  uint32_t side = 0;
  for (int32_t i = 0; i < keep; i++) {
    if (m->ops[i].kind == ODT_OP_FLATTEN) continue;
    uint64_t bytes = batch_bytes(m, 1, (uint32_t)i);
    if (bytes > prefix[side]) prefix[side] = bytes;
    side ^= 1u;
  }
  for (uint32_t i = 0; i < 2; i++) {
    uint8_t* p = take(a, prefix[i]);
    if (t) t->prefix[i] = p;
  }
  for (int32_t i = keep < 0 ? 0 : keep; i < m->n_ops; i++) {
    if (m->ops[i].kind == ODT_OP_FLATTEN) continue;
    uint8_t* p = take(a, batch_bytes(m, batch, (uint32_t)i));
    if (t) t->act[i] = p;
  }
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    if (!(op->flags & ODT_OP_FLAG_RELU)) continue;
    uint8_t* p = take(a, (op->n_out + 7u) / 8u);
    if (t) t->layers[i].alive = p;
  }
}

static void lay_gradients(arena_t* a, odt_trainer_t* t, const odt_model_t* m, uint32_t batch) {
  uint64_t delta[2] = {0, 0}, scratch = 0;
  uint32_t side = 0;
  for (int32_t i = m->n_ops - 1; i >= 0; i--) {
    const odt_op_t* op = &m->ops[i];
    const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
    uint32_t need = odt_kernel_scratch(op, in, out, batch);
    if (need > scratch) scratch = need;
    if (op->kind == ODT_OP_FLATTEN || i < m->first_trainable_op) continue;
    if ((uint64_t)batch * out->count > delta[side]) delta[side] = (uint64_t)batch * out->count;
    side ^= 1u;
  }
  for (uint32_t i = 0; i < 2; i++) {
    int8_t* p = take(a, delta[i]);
    if (t) t->delta[i] = p;
  }
  void* p = take(a, scratch);
  if (t) t->scratch = p;
}

static uint32_t part(const arena_t* a, uint64_t from) {
  uint64_t n = a->used - from;
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

void odt_lay_out(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec, bool resident,
                 void* base, odt_memory_plan_t* plan) {
  if (m->arith == ODT_ARITH_DFP16) {
    odt_dfp_lay_out(t, m, spec, resident, base, plan);
    return;
  }
  arena_t a = {.base = base};
  uint64_t at = 0;
  lay_weights(&a, t, m, false, spec);
  plan->weights_bytes = part(&a, at);
  at = a.used;
  if (spec->guard) lay_weights(&a, t, m, true, spec);
  plan->best_bytes = part(&a, at);
  at = a.used;
  lay_activations(&a, t, m, spec->batch);
  plan->activation_bytes = part(&a, at);
  at = a.used;
  lay_gradients(&a, t, m, spec->batch);
  plan->gradient_bytes = part(&a, at);
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

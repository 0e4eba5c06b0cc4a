#include <string.h>

#include "dfp.h"

static uint32_t inputs_of(const odt_op_t* op) { return op->in1 == ODT_NO_TENSOR ? 1u : 2u; }

void odt_dfp_graph(const odt_model_t* m, odt_dfp_graph_t* g) {
  memset(g, 0, sizeof *g);
  for (uint32_t i = 0; i < ODT_MAX_TENSORS; i++) {
    g->maker[i] = -1;
    g->root[i] = g->owner[i] = (uint8_t)i;
  }
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    g->maker[op->out] = (int8_t)i;
    if (op->kind == ODT_OP_FLATTEN) g->root[op->out] = g->root[op->in0];
    g->need[op->out] = op->layer >= 0 || g->need[op->in0];
    g->readers[op->in0]++;
    if (inputs_of(op) == 1) continue;
    g->need[op->out] = g->need[op->out] || g->need[op->in1];
    g->readers[op->in1]++;
  }
  for (uint32_t i = m->n_ops; i-- > 0;) {
    const odt_op_t* op = &m->ops[i];
    if (op->kind == ODT_OP_FLATTEN && g->readers[op->in0] == 1) {
      g->owner[op->in0] = g->owner[op->out];
    }
  }
}

int32_t odt_dfp_mask_op(const odt_model_t* m, const odt_dfp_graph_t* g, uint32_t tensor) {
  int32_t op = g->maker[tensor];
  while (op >= 0 && m->ops[op].kind == ODT_OP_FLATTEN && g->readers[m->ops[op].in0] == 1) {
    op = g->maker[m->ops[op].in0];
  }
  return op >= 0 && (m->ops[op].flags & ODT_OP_FLAG_RELU) ? op : -1;
}

uint32_t odt_dfp_stored(const odt_model_t* m, const odt_op_t* op) {
  if (op->flags & ODT_OP_FLAG_OFFSETS_ONLY) return 0;
  if (op->kind != ODT_OP_LINEAR) return op->n_weights;
  return odt_dfp_panel_values(m->tensors[op->in0].count, op->n_out);
}

uint32_t odt_dfp_stored_at(const odt_model_t* m, const odt_op_t* op, uint32_t i) {
  if (op->kind != ODT_OP_LINEAR) return i;
  return odt_dfp_panel_at(m->tensors[op->in0].count, i / op->n_out, i % op->n_out);
}

int32_t odt_dfp_e_max(const odt_trainer_t* t, const odt_layer_t* l) {
  const int8_t* all = odt_dfp_e(l);
  int32_t e = all[0];
  for (uint32_t o = 1; o < odt_dfp_blocks(t, l); o++) e = all[o] > e ? all[o] : e;
  return e;
}

odt_dfp_weights_t odt_dfp_weights_of(const odt_trainer_t* t, const odt_op_t* op, int32_t e_x) {
  odt_dfp_weights_t w = {.w = op->weights16, .e_max = op->e_w, .bias = op->offset};
  if (op->layer >= 0) {
    const odt_layer_t* l = &t->layers[op->layer];
    w.bias = l->off;
    if (l->n_weights > 0) {
      w.w = l->m;
      w.panels = op->kind == ODT_OP_LINEAR;
      w.e = t->spec.blocked ? odt_dfp_e(l) : NULL;
      w.e_max = odt_dfp_e_max(t, l);
    }
  }
  w.bias_left = op->e_b - (e_x + w.e_max + ODT_DFP_CHAIN);
  return w;
}

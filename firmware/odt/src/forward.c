/* Rule 1.2. */
#include "kernels/kernels.h"

odt_wref_t odt_weights_of(const odt_trainer_t* t, const odt_op_t* op) {
  odt_wref_t w = {.m8 = op->weights};
  if (op->layer < 0) return w;
  const odt_layer_t* l = &t->layers[op->layer];
  int f = l->k - 8;
  w.packed = true;
  if (f > 0) {
    w.m8 = NULL;
    w.m16 = l->m;
    w.f = f;
    w.half = 1 << (f - 1);
  } else {
    w.m8 = l->m;
    w.shl = -f;
  }
  return w;
}

const int32_t* odt_offsets_of(const odt_trainer_t* t, const odt_op_t* op) {
  return op->layer < 0 ? op->offset : t->layers[op->layer].off;
}

odt_kernel_t odt_kernel_of(const odt_trainer_t* t, const odt_op_t* op) {
  const odt_model_t* m = t->model;
  odt_kernel_t k = {.op = op,
                    .in = &m->tensors[op->in0],
                    .out = &m->tensors[op->out],
                    .w = odt_weights_of(t, op),
                    .off = odt_offsets_of(t, op),
                    .scratch = t->scratch};
  return k;
}

odt_view_t odt_act_view(const odt_trainer_t* t, int32_t op, const odt_view_t* x) {
  const odt_model_t* m = t->model;
  op = odt_producer(m, op);
  if (op < 0) return *x;
  const odt_tensor_t* out = &m->tensors[m->ops[op].out];
  odt_view_t v = {
      .base = t->act[op], .stride = out->count * odt_elem_bytes(out->dtype), .dtype = out->dtype};
  return v;
}

/* n samples at x into y, one behind the other. */
static void run_op(odt_trainer_t* t, uint32_t i, const odt_view_t* x, uint32_t n, uint8_t* y) {
  const odt_model_t* m = t->model;
  const odt_op_t* op = &m->ops[i];
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  if (op->kind == ODT_OP_PREQUANT) {
    size_t bytes = out->count * odt_elem_bytes(out->dtype);
    for (uint32_t b = 0; b < n; b++)
      odt_prequant(op, in, odt_sample(x, b), y + b * bytes, out->dtype);
    return;
  }
  odt_kernel_t k = odt_kernel_of(t, op);
  odt_kernel_forward(&k, x, n, y);
}

/* Frozen ops before the first trainable one: sample by sample, only the last output is kept. */
static void run_prefix(odt_trainer_t* t, const odt_view_t* x, uint32_t n, int32_t keep) {
  for (uint32_t b = 0; b < n; b++) {
    const uint8_t* in = odt_sample(x, b);
    uint32_t side = 0;
    for (int32_t i = 0; i <= keep; i++) {
      if (t->model->ops[i].kind == ODT_OP_FLATTEN) continue;
      odt_view_t kept = odt_act_view(t, keep, x);
      uint8_t* out = i == keep ? t->act[i] + (size_t)b * kept.stride : t->prefix[side];
      odt_view_t v = {.base = in, .dtype = t->model->tensors[t->model->ops[i].in0].dtype};
      run_op(t, (uint32_t)i, &v, 1, out);
      in = out;
      side ^= 1u;
    }
  }
}

void odt_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n) {
  const odt_model_t* m = t->model;
  int32_t keep = odt_producer(m, m->first_trainable_op - 1);
  run_prefix(t, x, n, keep);
  for (int32_t i = keep + 1; i < m->n_ops; i++) {
    if (m->ops[i].kind == ODT_OP_FLATTEN) continue;
    odt_view_t in = odt_act_view(t, i - 1, x);
    run_op(t, (uint32_t)i, &in, n, t->act[i]);
  }
}

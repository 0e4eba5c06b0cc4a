/* Rule 1.2. */
#include "walk.h"

odt_wref_t odt_weights_of(const odt_trainer_t* t, const odt_op_t* op) {
  odt_wref_t w = {.m8 = op->weights};
  if (!odt_trains_weights(op)) return w;
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

uint8_t* odt_act_of(const odt_trainer_t* t, uint32_t op) { return t->region + t->nodes[op].act; }
int8_t* odt_delta_of(const odt_trainer_t* t, uint32_t op) {
  return (int8_t*)(t->region + t->nodes[op].delta);
}

odt_view_t odt_view_of(const odt_trainer_t* t, uint16_t tensor, const odt_view_t* x) {
  const odt_model_t* m = t->model;
  uint16_t root = odt_root(m, tensor);
  if (root == t->source) return *x;
  const odt_tensor_t* values = &m->tensors[root];
  odt_view_t v = {.base = odt_act_of(t, values->producer),
                  .stride = values->count * odt_elem_bytes(values->dtype),
                  .dtype = values->dtype};
  return v;
}

/* Values of op's input; those of the frozen part that wait for the whole batch: from sample b on.
 */
static odt_view_t input_of(const odt_trainer_t* t, uint16_t tensor, const odt_view_t* x,
                           uint32_t b) {
  odt_view_t v = odt_view_of(t, tensor, x);
  uint16_t root = odt_root(t->model, tensor);
  if (b == 0 || root == t->source) return v;
  bool one = (odt_one_sample(t->model) >> t->model->tensors[root].producer) & 1u;
  if (!one) v.base += (size_t)b * v.stride;
  return v;
}

/* Op i on n samples into y, one behind the other. */
static void run_op(odt_trainer_t* t, uint32_t i, const odt_view_t* x, uint32_t b, uint32_t n,
                   uint8_t* y) {
  const odt_model_t* m = t->model;
  const odt_op_t* op = &m->ops[i];
  odt_view_t in = input_of(t, op->in0, x, b), in1 = in;
  if (odt_has_weights(op)) {
    odt_kernel_t k = odt_kernel_of(t, op);
    odt_kernel_forward(&k, &in, n, y);
    return;
  }
  odt_pass_t p = {.op = op, .in = &m->tensors[op->in0], .out = &m->tensors[op->out]};
  if (op->in1 != ODT_NO_TENSOR) {
    p.in1 = &m->tensors[op->in1];
    in1 = input_of(t, op->in1, x, b);
  }
  p.x_dtype = in.dtype;
  p.x1_dtype = in1.dtype;
  size_t bytes = p.out->count * odt_elem_bytes(p.out->dtype);
  for (uint32_t s = 0; s < n; s++) {
    p.x = odt_sample(&in, s);
    p.x1 = odt_sample(&in1, s);
    odt_pass_forward(&p, y + s * bytes);
  }
}

void odt_forward_frozen(odt_trainer_t* t, const odt_view_t* x, uint32_t b) {
  const odt_model_t* m = t->model;
  odt_view_t sample = {.base = odt_sample(x, b), .dtype = x->dtype};
  uint64_t one = odt_one_sample(m);
  for (uint32_t i = 0; i < m->first_trainable_op; i++) {
    const odt_tensor_t* out = &m->tensors[m->ops[i].out];
    if (m->ops[i].kind == ODT_OP_FLATTEN) continue;
    size_t at = (one >> i) & 1u ? 0 : (size_t)b * out->count * odt_elem_bytes(out->dtype);
    run_op(t, i, &sample, b, 1, odt_act_of(t, i) + at);
  }
}

void odt_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n) {
  const odt_model_t* m = t->model;
  if (t->source == m->input && m->first_trainable_op > 0) {
    for (uint32_t b = 0; b < n; b++) odt_forward_frozen(t, x, b);
  }
  for (uint32_t i = m->first_trainable_op; i < m->n_ops; i++) {
    if (m->ops[i].kind != ODT_OP_FLATTEN) run_op(t, i, x, 0, n, odt_act_of(t, i));
  }
}

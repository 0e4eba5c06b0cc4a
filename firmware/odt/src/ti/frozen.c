/* The frozen part of a model from const tables, one sample at a time. */
#include <string.h>

#include "ti_internal.h"
#include "walk.h"

static odt_ti_layer_t layer_of_op(const odt_op_t* op, const odt_tensor_t* in,
                                  const odt_tensor_t* out) {
  odt_ti_layer_t l = {.conv = op->kind == ODT_OP_CONV2D,
                      .x_dtype = in->dtype,
                      .y_dtype = out->dtype,
                      .in_size = in->count,
                      .out_size = out->count,
                      .n_out = op->n_out,
                      .weights = op->weights,
                      .offset = op->offset,
                      .mult = op->mult,
                      .k = op->k_out,
                      .lo = op->clip_lo,
                      .hi = op->clip_hi};
  if (!l.conv) return l;
  l.c_group = (uint32_t)in->dims[0] / op->groups;
  l.o_group = op->n_out / op->groups;
  l.h_in = in->dims[1];
  l.w_in = in->dims[2];
  l.h_out = out->dims[1];
  l.w_out = out->dims[2];
  l.k_h = op->k_h;
  l.k_w = op->k_w;
  l.stride_h = op->stride_h;
  l.stride_w = op->stride_w;
  l.pad_t = op->pad_t;
  l.pad_l = op->pad_l;
  l.dil_h = op->dil_h;
  l.dil_w = op->dil_w;
  return l;
}

static void run_op(const odt_ti_frozen_t* f, const odt_op_t* op, const uint8_t* x,
                   const uint8_t* x1, uint8_t* y) {
  const odt_tensor_t *in = &f->tensors[op->in0], *out = &f->tensors[op->out];
  if (op->kind == ODT_OP_FLATTEN) {
    if (y != x) memcpy(y, x, (size_t)in->count * odt_elem_bytes(in->dtype));
    return;
  }
  if (odt_has_weights(op)) {
    odt_ti_layer_t l = layer_of_op(op, in, out);
    odt_ti_forward_layer(&l, x, y);
    return;
  }
  odt_pass_t p = {.op = op, .in = in, .out = out, .x = x, .x1 = x1, .x_dtype = in->dtype};
  if (x1) {
    p.in1 = &f->tensors[op->in1];
    p.x1_dtype = p.in1->dtype;
  }
  odt_pass_forward(&p, y);
}

void odt_ti_frozen_run(const odt_ti_frozen_t* f, const void* input, void* output) {
  for (uint32_t i = 0; i < f->n_ops; i++) {
    const odt_op_t* op = &f->ops[i];
    const uint8_t* x[2] = {NULL, NULL};
    for (uint32_t slot = 0; slot < 2; slot++) {
      uint16_t tensor = odt_input(op, slot);
      bool two = op->kind == ODT_OP_ADD || op->kind == ODT_OP_CONCAT;
      if (slot == 0 || two) x[slot] = tensor == f->input ? input : f->values[tensor];
    }
    run_op(f, op, x[0], x[1], op->out == f->output ? output : f->values[op->out]);
  }
}

/* The frozen part of a model from const tables. */
#include "ti_internal.h"

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

void odt_ti_frozen_run(const odt_ti_frozen_t* f, const void* input, void* output) {
  const uint8_t* x = input;
  uint32_t last = f->n_ops, side = 0;
  while (last > 0 && f->ops[last - 1u].kind == ODT_OP_FLATTEN) last--;
  for (uint32_t i = 0; i < last; i++) {
    if (f->ops[i].kind == ODT_OP_FLATTEN) continue;
    odt_ti_layer_t l = layer_of_op(&f->ops[i], &f->tensors[i], &f->tensors[i + 1u]);
    uint8_t* y = i + 1u == last ? output : f->scratch[side];
    odt_ti_forward_layer(&l, x, y);
    x = y;
    side ^= 1u;
  }
}

/* Rule 1.13: forward pass and down-conversion. */
#include <string.h>

#include "dfp.h"

int32_t odt_dfp_clamp_e(int32_t e) {
  return e > ODT_DFP_E_MAX ? ODT_DFP_E_MAX : e < -ODT_DFP_E_MAX ? -ODT_DFP_E_MAX : e;
}

int odt_dfp_pre(uint64_t bound) {
  int bits = odt_bitlen64(bound);
  return bits > 30 ? bits - 30 : 0;
}

/* HALF_UP(sum, rs) = (floor(sum / 2^pre) + 2^(rs - 1 - pre)) >> (rs - pre) needs pre < rs. */
bool odt_dfp_again(odt_dfp_sink_t* k) {
  int bits = odt_bitlen64(k->or_abs);
  if (k->pre == 0 || bits == 0 || bits - 15 > k->pre) return false;
  k->pre = bits > 30 ? bits - 30 : 0;
  k->or_abs = 0;
  return true;
}

/* Beyond the largest exponent: every value but 0 is the largest. */
static void saturate_all(const int32_t* acc, uint32_t n, bool relu, int16_t* y) {
  for (uint32_t i = 0; i < n; i++) {
    y[i] = acc[i] > 0 ? ODT_DFP_MAX : acc[i] < 0 && !relu ? -ODT_DFP_MAX : 0;
  }
}

uint32_t odt_dfp_convert(const odt_dfp_sink_t* k, uint32_t n, uint32_t count, int32_t e, bool relu,
                         int16_t* y, int8_t* e_out) {
  int bits = odt_bitlen64(k->or_abs), rs = bits > 15 ? bits - 15 : 0;
  uint32_t values = n * k->stride, fill = k->stride - count;
  for (uint32_t b = 0; fill && b < n; b++) k->acc[b * k->stride + count] = 0;
  e += rs;
  *e_out = (int8_t)odt_dfp_clamp_e(e);
  uint32_t zeros = odt_dfp_round(k->acc, y, values, bits ? rs - k->pre : 0, relu);
  if (e < -ODT_DFP_E_MAX) {
    memset(y, 0, 2u * (size_t)values);
    zeros = values;
  } else if (e > ODT_DFP_E_MAX) {
    /* Values that round to 0 are 0 here too. */
    for (uint32_t i = 0; i < values; i++) k->acc[i] = y[i];
    saturate_all(k->acc, values, relu, y);
  }
  return zeros - fill * n;
}

static uint64_t products(const odt_model_t* m, const odt_op_t* op) {
  const odt_tensor_t* in = &m->tensors[op->in0];
  if (op->kind == ODT_OP_LINEAR) return in->count;
  return (uint64_t)in->dims[0] / op->groups * op->k_h * op->k_w;
}

static int pre_of(const odt_model_t* m, const odt_op_t* op, const odt_dfp_weights_t* w) {
  uint64_t largest = 0;
  for (uint32_t o = 0; o < op->n_out; o++) {
    uint64_t bias = odt_dfp_abs(odt_dfp_bias(w, o));
    if (bias > largest) largest = bias;
  }
  return odt_dfp_pre((products(m, op) << 30) + largest);
}

static void compute(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  const odt_model_t* m = t->model;
  odt_dfp_t* d = &t->dfp;
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  const int16_t* x = odt_dfp_act(d, op->in0);
  odt_dfp_weights_t w = odt_dfp_weights_of(t, op, d->e_act[op->in0]);
  odt_dfp_sink_t k = {.acc = d->acc, .stride = odt_dfp_even(out->count), .pre = pre_of(m, op, &w)};
  do {
    if (op->kind == ODT_OP_LINEAR) {
      odt_dfp_dense_forward(&w, in->count, op->n_out, x, odt_dfp_even(in->count), n, &k,
                            d->scratch);
    } else {
      odt_dfp_conv_forward(&w, op, in, out, x, n, &k, d->scratch);
    }
  } while (odt_dfp_again(&k));
  int32_t e = d->e_act[op->in0] + w.e_max + ODT_DFP_CHAIN;
  odt_dfp_convert(&k, n, out->count, e, (op->flags & ODT_OP_FLAG_RELU) != 0,
                  odt_dfp_act(d, op->out), &d->e_act[op->out]);
}

static void load_input(odt_trainer_t* t, const odt_view_t* x, uint32_t n) {
  const odt_tensor_t* in = &t->model->tensors[t->model->input];
  uint32_t stride = odt_dfp_even(in->count);
  int16_t* y = odt_dfp_act(&t->dfp, t->model->input);
  for (uint32_t b = 0; b < n; b++, y += stride) {
    const uint8_t* p = odt_sample(x, b);
    if (x->dtype == ODT_S16) {
      memcpy(y, p, 2u * (size_t)in->count);
    } else {
      for (uint32_t i = 0; i < in->count; i++) y[i] = (int16_t)odt_load(p, x->dtype, i);
    }
    if (stride > in->count) y[in->count] = 0;
  }
  t->dfp.e_act[t->model->input] = in->exponent;
}

void odt_dfp_forward(odt_trainer_t* t, const odt_view_t* x, uint32_t n) {
  const odt_model_t* m = t->model;
  load_input(t, x, n);
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    if (op->kind == ODT_OP_FLATTEN) {
      t->dfp.e_act[op->out] = t->dfp.e_act[op->in0];
    } else if (odt_dfp_computes(op)) {
      compute(t, op, n);
    } else {
      odt_dfp_move(t, op, n);
    }
  }
}

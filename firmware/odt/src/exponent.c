/* Rule 1.4: what crossing an op does to a delta's exponent. */
#include "round.h"
#include "walk.h"

int odt_log2_nearest(uint64_t m) {
  int f = odt_bitlen64(m) - 1;
  /* m < 2^32: the square fits */
  return m * m >= (uint64_t)1 << (2 * f + 1) ? f + 1 : f;
}

static uint32_t count_k(const odt_op_t* op, uint32_t k) {
  uint32_t n = 0;
  for (uint32_t o = 0; o < op->n_out; o++) n += op->k_out[o] == (int8_t)k ? 1u : 0u;
  return n;
}

uint8_t odt_nominal_k(const odt_op_t* op) {
  uint32_t most = 0, nominal = 0;
  for (uint32_t k = 0; k < 32; k++) {
    uint32_t n = count_k(op, k);
    if (n <= most) continue;
    most = n;
    nominal = k;
  }
  return (uint8_t)nominal;
}

static uint32_t nominal_mult(const odt_op_t* op) {
  uint32_t most = 0, nominal = 1;
  for (uint32_t v = 1; op->mult && v < 256; v++) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->n_out; o++) n += op->mult[o] == v ? 1u : 0u;
    if (n <= most) continue;
    most = n;
    nominal = v;
  }
  return nominal;
}

int odt_exponent_step(const odt_model_t* m, const odt_op_t* op, uint32_t slot) {
  const odt_tensor_t* in = &m->tensors[op->in0];
  switch (op->kind) {
    case ODT_OP_CONV2D:
    case ODT_OP_LINEAR:
      return odt_log2_nearest(nominal_mult(op)) - odt_nominal_k(op);
    case ODT_OP_AVGPOOL:
      return -odt_log2_nearest((uint64_t)op->k_h * op->k_w);
    case ODT_OP_GAP:
      return -odt_log2_nearest((uint64_t)in->dims[1] * in->dims[2]);
    case ODT_OP_ADD: {
      int32_t f = op->offset[slot]; /* not negative: odt_model_open */
      return f == 0 ? 0 : odt_log2_nearest((uint64_t)f) - 20;
    }
    default:
      return 0;
  }
}

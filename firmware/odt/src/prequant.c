/* PREQUANT: network input to the first layer's integers (rule 1.2). */
#include "internal.h"

void odt_prequant(const odt_op_t* op, const odt_tensor_t* in, const uint8_t* x, uint8_t* y,
                  uint8_t y_dtype) {
  uint32_t per_channel = op->n_out == 1 ? in->count : in->count / op->n_out;
  for (uint32_t i = 0; i < in->count; i++) {
    uint32_t c = i / per_channel;
    int16_t mult = (int16_t)odt_le16(op->mult + 2 * c);
    int64_t v = ((int64_t)odt_load(x, in->dtype, i) * 256 + op->offset[c]) * mult;
    v >>= op->k_out[c] + 8;
    v = v < op->clip_lo ? op->clip_lo : v > op->clip_hi ? op->clip_hi : v;
    odt_store(y, y_dtype, i, (int32_t)v);
  }
}

/* ADD, CONCAT and RESIZE; and the way into pool.c. One sample at a time. */
#include <string.h>

#include "walk.h"

static int64_t half_even20(int64_t v) {
  int64_t down = v >> 20, rest = v & ((1 << 20) - 1);
  if (rest > 1 << 19 || (rest == 1 << 19 && (down & 1))) down++;
  return down;
}

static void add_forward(const odt_pass_t* p, uint8_t* y) {
  const odt_op_t* op = p->op;
  for (uint32_t i = 0; i < p->out->count; i++) {
    int64_t v = (int64_t)odt_load(p->x, p->x_dtype, i) * op->offset[0] +
                (int64_t)odt_load(p->x1, p->x1_dtype, i) * op->offset[1];
    v = half_even20(v);
    v = v < op->clip_lo ? op->clip_lo : v > op->clip_hi ? op->clip_hi : v;
    odt_store(y, p->out->dtype, i, (int32_t)v);
  }
}

static void concat_forward(const odt_pass_t* p, uint8_t* y) {
  uint32_t n = p->in->count;
  for (uint32_t i = 0; i < n; i++) {
    odt_store(y, p->out->dtype, i, odt_load(p->x, p->x_dtype, i));
  }
  for (uint32_t i = 0; i < p->in1->count; i++) {
    odt_store(y, p->out->dtype, n + i, odt_load(p->x1, p->x1_dtype, i));
  }
}

static void resize_forward(const odt_pass_t* p, uint8_t* y) {
  uint32_t h = p->in->dims[1], w = p->in->dims[2], oh = p->out->dims[1], ow = p->out->dims[2];
  for (uint32_t row = 0; row < p->out->dims[0] * oh; row++) {
    uint32_t from = (row / oh * h + row % oh * h / oh) * w;
    for (uint32_t x = 0; x < ow; x++) {
      odt_store(y, p->out->dtype, row * ow + x, odt_load(p->x, p->x_dtype, from + x * w / ow));
    }
  }
}

/* Outputs [lo, hi) of an axis that copy input i. */
static void copies(uint32_t i, uint32_t n_in, uint32_t n_out, uint32_t* lo, uint32_t* hi) {
  *lo = (i * n_out + n_in - 1u) / n_in;
  *hi = ((i + 1u) * n_out + n_in - 1u) / n_in;
}

static void resize_delta(const odt_pass_t* p, const int8_t* dy, uint32_t first, uint32_t n,
                         int32_t* sums) {
  uint32_t h = p->in->dims[1], w = p->in->dims[2], oh = p->out->dims[1], ow = p->out->dims[2];
  uint32_t y0, y1, x0, x1;
  for (uint32_t i = first; i < first + n; i++) {
    const int8_t* plane = dy + (size_t)(i / (h * w)) * oh * ow;
    copies(i / w % h, h, oh, &y0, &y1);
    copies(i % w, w, ow, &x0, &x1);
    int32_t sum = 0;
    for (uint32_t y = y0; y < y1; y++) {
      for (uint32_t x = x0; x < x1; x++) sum += plane[y * ow + x];
    }
    *sums++ = sum;
  }
}

void odt_pass_forward(const odt_pass_t* p, uint8_t* y) {
  if (!ODT_WITH_GRAPHS || p->op->kind == ODT_OP_PREQUANT) { /* FLATTEN has no forward pass */
    odt_prequant(p->op, p->in, p->x, y, p->out->dtype);
    return;
  }
  switch (p->op->kind) {
    case ODT_OP_ADD:
      add_forward(p, y);
      break;
    case ODT_OP_CONCAT:
      concat_forward(p, y);
      break;
    case ODT_OP_RESIZE:
      resize_forward(p, y);
      break;
    default:
      odt_pool_forward(p, y);
      break;
  }
}

void odt_pass_delta_part(const odt_pass_t* p, uint32_t slot, const int8_t* dy, uint32_t first,
                         uint32_t n, int32_t* sums) {
  switch (p->op->kind) {
    case ODT_OP_CONCAT:
      if (slot) dy += p->in->count;
      break;
    case ODT_OP_ADD:
    case ODT_OP_FLATTEN:
      break;
    case ODT_OP_RESIZE:
      resize_delta(p, dy, first, n, sums);
      return;
    default:
      odt_pool_delta(p, dy, first, n, sums);
      return;
  }
  for (uint32_t i = 0; i < n; i++) sums[i] = dy[first + i];
}

void odt_pass_delta(const odt_pass_t* p, uint32_t slot, const int8_t* dy, const odt_sink_t* sink,
                    uint32_t b) {
  uint32_t count = slot ? p->in1->count : p->in->count;
  int32_t sums[ODT_PASS_PART];
  for (uint32_t i = 0; i < count; i += ODT_PASS_PART) {
    uint32_t n = count - i < ODT_PASS_PART ? count - i : ODT_PASS_PART;
    odt_pass_delta_part(p, slot, dy, i, n, sums);
    odt_sink_row(sink, b, i, sums, n);
  }
}

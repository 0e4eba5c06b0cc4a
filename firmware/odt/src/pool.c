/* MAXPOOL, AVGPOOL and GAP, one sample at a time. Padding never is a maximum and adds nothing. */
#include "walk.h"

/* GAP is a pool whose window is the plane. */
typedef struct {
  uint32_t h, w, oh, ow, k_h, k_w, s_h, s_w, pad_t, pad_l;
} pool_t;

static pool_t pool_of(const odt_pass_t* p) {
  const odt_op_t* op = p->op;
  pool_t q = {.h = p->in->dims[1], .w = p->in->dims[2], .oh = 1, .ow = 1, .s_h = 1, .s_w = 1};
  q.k_h = q.h;
  q.k_w = q.w;
  if (op->kind == ODT_OP_GAP) return q;
  q = (pool_t){q.h,     q.w,          p->out->dims[1], p->out->dims[2], op->k_h,
               op->k_w, op->stride_h, op->stride_w,    op->pad_t,       op->pad_l};
  return q;
}

/* Inputs [lo, hi) of an axis that output o sees. */
static void seen(uint32_t o, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t n,
                 uint32_t* lo, uint32_t* hi) {
  uint32_t end = o * stride + kernel;
  *lo = o * stride > pad ? o * stride - pad : 0;
  *hi = end > pad ? end - pad : 0;
  if (*hi > n) *hi = n;
  if (*lo > *hi) *lo = *hi;
}

/* Outputs [lo, hi) of an axis that see input i. */
static void seeing(uint32_t i, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t n_out,
                   uint32_t* lo, uint32_t* hi) {
  uint32_t at = i + pad;
  *lo = at + 1u > kernel ? (at - kernel + stride) / stride : 0;
  *hi = at / stride + 1u;
  if (*hi > n_out) *hi = n_out;
  if (*lo > *hi) *lo = *hi;
}

void odt_pool_forward(const odt_pass_t* p, uint8_t* y) {
  pool_t q = pool_of(p);
  bool max = p->op->kind == ODT_OP_MAXPOOL;
  uint32_t y0, y1, x0, x1, plane = q.oh * q.ow;
  for (uint32_t o = 0; o < p->out->count; o++) {
    uint32_t c = o / plane;
    seen(o / q.ow % q.oh, q.k_h, q.s_h, q.pad_t, q.h, &y0, &y1);
    seen(o % q.ow, q.k_w, q.s_w, q.pad_l, q.w, &x0, &x1);
    int32_t acc = max ? INT32_MIN : 0;
    for (uint32_t iy = y0; iy < y1; iy++) {
      for (uint32_t ix = x0; ix < x1; ix++) {
        int32_t v = odt_load(p->x, p->x_dtype, (c * q.h + iy) * q.w + ix);
        acc = max ? (v > acc ? v : acc) : acc + v;
      }
    }
    if (!max) {
      odt_requant_t r = odt_requant_of(p->op, p->op->offset, p->op->n_out == 1 ? 0 : c, 0);
      acc = odt_requant(&r, acc);
    }
    odt_store(y, p->out->dtype, o, acc);
  }
}

/* True where input (iy, ix) is the first maximum of the window. */
static bool is_first_max(const odt_pass_t* p, const pool_t* q, uint32_t plane, uint32_t oy,
                         uint32_t ox, uint32_t iy, uint32_t ix) {
  uint32_t y0, y1, x0, x1, at = iy * q->w + ix;
  int32_t v = odt_load(p->x, p->x_dtype, plane + at);
  seen(oy, q->k_h, q->s_h, q->pad_t, q->h, &y0, &y1);
  seen(ox, q->k_w, q->s_w, q->pad_l, q->w, &x0, &x1);
  for (uint32_t y = y0; y < y1; y++) {
    for (uint32_t x = x0; x < x1; x++) {
      int32_t other = odt_load(p->x, p->x_dtype, plane + y * q->w + x);
      if (other > v || (other == v && y * q->w + x < at)) return false;
    }
  }
  return true;
}

void odt_pool_delta(const odt_pass_t* p, const int8_t* dy, uint32_t first, uint32_t n,
                    int32_t* sums) {
  pool_t q = pool_of(p);
  bool max = p->op->kind == ODT_OP_MAXPOOL;
  uint32_t y0, y1, x0, x1;
  for (uint32_t i = first; i < first + n; i++) {
    uint32_t c = i / (q.h * q.w), iy = i / q.w % q.h, ix = i % q.w;
    seeing(iy, q.k_h, q.s_h, q.pad_t, q.oh, &y0, &y1);
    seeing(ix, q.k_w, q.s_w, q.pad_l, q.ow, &x0, &x1);
    int32_t sum = 0;
    for (uint32_t oy = y0; oy < y1; oy++) {
      for (uint32_t ox = x0; ox < x1; ox++) {
        int32_t d = dy[(c * q.oh + oy) * q.ow + ox];
        if (max && d != 0 && !is_first_max(p, &q, c * q.h * q.w, oy, ox, iy, ix)) d = 0;
        sum += d;
      }
    }
    *sums++ = sum;
  }
}

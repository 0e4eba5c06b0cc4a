/* Entry points: by kind of op, and the two passes of a delta. */
#include "kernels/kernels.h"

#include "kernels/matrix.h"
#include "round.h"

uint32_t odt_kernel_scratch(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                            uint32_t batch) {
  if (op->kind == ODT_OP_LINEAR) return odt_dense_scratch(op, in->count, batch);
  return odt_is_conv(op) ? odt_conv_scratch(op, in, out, batch) : 0;
}

odt_matrix_t odt_matrix_of(const odt_kernel_t* k, uint32_t cols) {
  const odt_wref_t* w = &k->w;
  odt_matrix_t m = {.base = w->m16 ? (const uint8_t*)w->m16 : (const uint8_t*)w->m8,
                    .rows = k->op->n_out,
                    .cols = cols,
                    .packed = w->packed,
                    .wide = w->m16 != NULL,
                    .f = w->f,
                    .half = w->half};
  return m;
}

/* mask: activations that let a value pass where they are above 0; NULL: all do. */
static uint32_t or_of(const int32_t* v, uint32_t n, const uint8_t* mask) {
  uint32_t or_abs = 0;
  for (uint32_t j = 0; j < n; j++) {
    int32_t a = mask && mask[j] == 0 ? 0 : v[j], sign = a >> 31;
    or_abs |= (uint32_t)(a ^ sign) - (uint32_t)sign;
  }
  return or_abs;
}

static uint32_t store_row(int8_t* out, const int32_t* v, uint32_t n, const uint8_t* mask, int s) {
  uint32_t zeros = 0;
  for (uint32_t j = 0; j < n; j++) {
    int32_t a = mask && mask[j] == 0 ? 0 : v[j];
    if (s > 0) a = ((a >> (s - 1)) + 1) >> 1; /* HALF_UP, and no sum that could overflow */
    a = a > 127 ? 127 : a < -128 ? -128 : a;  /* one SSAT */
    if (a == -128) a = -127;
    if (a == 0) zeros++;
    out[j] = (int8_t)a;
  }
  return zeros;
}

/* Both at once, for the pass that stores on trial. */
static uint32_t store_trial(odt_delta_t* d, int8_t* out, const int32_t* v, uint32_t n,
                            const uint8_t* mask) {
  uint32_t zeros = 0, or_abs = 0;
  int s = d->s;
  for (uint32_t j = 0; j < n; j++) {
    int32_t a = mask && mask[j] == 0 ? 0 : v[j], sign = a >> 31;
    or_abs |= (uint32_t)(a ^ sign) - (uint32_t)sign;
    if (s > 0) a = ((a >> (s - 1)) + 1) >> 1;
    a = a > 127 ? 127 : a < -128 ? -128 : a; /* one SSAT */
    if (a == -128) a = -127;
    if (a == 0) zeros++;
    out[j] = (int8_t)a;
  }
  d->or_abs |= or_abs;
  return zeros;
}

void odt_sink_row(const odt_sink_t* s, uint32_t b, uint32_t i, const int32_t* v, uint32_t n) {
  odt_delta_t* d = s->d;
  if (!d) {
    int64_t* acc = s->acc + (size_t)b * s->count + i;
    for (uint32_t j = 0; j < n; j++) acc[j] += (int64_t)v[j] * ((int64_t)1 << (s->shl + s->shift));
  } else if (s->shl != 0 || (d->mask && d->mask->dtype != ODT_U8)) {
    for (uint32_t j = 0; j < n; j++) odt_delta_put(d, b, i + j, v[j] * (1 << s->shl));
  } else {
    const uint8_t* mask = d->mask ? odt_sample(d->mask, b) + i : NULL;
    int8_t* out = d->out + (size_t)b * d->count + i;
    if (!d->store) {
      d->or_abs |= or_of(v, n, mask);
    } else if (d->measure) {
      d->zeros += store_trial(d, out, v, n, mask);
    } else {
      d->zeros += store_row(out, v, n, mask, d->s);
    }
  }
}

void odt_spread(int16_t* to, uint32_t step, const uint8_t* from, uint8_t dtype, uint32_t stride,
                uint32_t n) {
  if (stride == 1 && step == 1 && dtype != ODT_S16) {
    if (dtype == ODT_U8) {
      for (; n > 0; n--) *to++ = *from++;
    } else {
      for (; n > 0; n--) *to++ = (int8_t)*from++;
    }
  } else if (dtype == ODT_U8) {
    for (; n > 0; n--, from += stride, to += step) *to = *from;
  } else if (dtype == ODT_S8) {
    for (; n > 0; n--, from += stride, to += step) *to = (int8_t)*from;
  } else {
    const int16_t* p = (const int16_t*)(const void*)from;
    for (; n > 0; n--, p += stride, to += step) *to = *p;
  }
}

void odt_clear(int32_t* p, uint32_t n) {
  for (; n >= 4u; n -= 4u, p += 4) {
    p[0] = p[1] = p[2] = p[3] = 0;
    __asm__(""); /* loops of words, no call of memset, which may go by bytes */
  }
  for (; n > 0; n--) {
    *p++ = 0;
    __asm__("");
  }
}

void odt_kernel_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y) {
  if (odt_is_conv(k->op)) {
    odt_conv_forward(k, x, n, y);
  } else {
    odt_dense_forward(k, x, n, y);
  }
}

static void delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink) {
  if (odt_is_conv(k->op)) {
    odt_conv_delta(k, dy, n, sink);
  } else {
    odt_dense_delta(k, dy, n, sink);
  }
}

/* The first pass stores by the shift of the step before; where that turns out right, which it
 * mostly does, there is no second. */
void odt_kernel_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, odt_delta_t* d) {
  odt_sink_t sink = {.d = d};
  bool guess = d->last && *d->last != 0xFFu;
  d->s = guess ? *d->last : 0;
  d->store = guess;
  d->measure = true;
  d->or_abs = 0;
  d->zeros = 0;
  delta(k, dy, n, &sink);
  int s = odt_bitlen64(d->or_abs) - 7;
  s = s > 0 ? s : 0;
  if (d->last) *d->last = (uint8_t)s;
  if (guess && d->s == s) return;
  d->s = s;
  d->store = true;
  d->measure = false;
  d->zeros = 0;
  delta(k, dy, n, &sink);
}

void odt_kernel_delta_add(const odt_kernel_t* k, const int8_t* dy, uint32_t n, int shift,
                          int64_t* acc) {
  odt_sink_t sink = {.acc = acc, .count = k->in->count, .shift = shift};
  delta(k, dy, n, &sink);
}

void odt_kernel_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                     odt_update_t* u) {
  odt_update_prepare(u);
  if (odt_is_conv(k->op)) {
    odt_conv_grad(k, x, dy, n, u);
  } else {
    odt_dense_grad(k, x, dy, n, u);
  }
}

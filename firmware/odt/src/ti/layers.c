/* Loops over TI's layouts, in place: linear [in,out], convolutions [O,I/g,kH,kW].
 *
 * Sizes are uint16: 65535 products of 255 * 128 fit 32 bits. Where activations have two bytes, at
 * most 256 products (2^30) are summed before they go to 64. */
#include "round.h"
#include "ti_internal.h"

/* ---- inner loops: each a function of its own, so that its sums stay in registers ----------------
 */

#define NOINLINE __attribute__((noinline))

/* four_NAME: sums of n inputs against four neighbouring outputs, or of n samples against four
 * gradients: v advances by v_step, w by w_step. one_NAME: the same for one. */
#define INNER_LOOPS(NAME, TYPE)                                                            \
  static NOINLINE void four_##NAME(const void* values, uint32_t v_step, const int8_t* w,   \
                                   uint32_t w_step, uint32_t n, int32_t* sum) {            \
    const TYPE* v = values;                                                                \
    int32_t a = 0, b = 0, c = 0, d = 0;                                                    \
    for (; n > 0; n--, v += v_step, w += w_step) {                                         \
      int32_t x = *v;                                                                      \
      a += x * w[0];                                                                       \
      b += x * w[1];                                                                       \
      c += x * w[2];                                                                       \
      d += x * w[3];                                                                       \
    }                                                                                      \
    sum[0] = a;                                                                            \
    sum[1] = b;                                                                            \
    sum[2] = c;                                                                            \
    sum[3] = d;                                                                            \
  }                                                                                        \
  static NOINLINE int32_t one_##NAME(const void* values, uint32_t v_step, const int8_t* w, \
                                     uint32_t w_step, uint32_t n) {                        \
    const TYPE* v = values;                                                                \
    int32_t sum = 0;                                                                       \
    for (; n > 0; n--, v += v_step, w += w_step) sum += *v * *w;                           \
    return sum;                                                                            \
  }

INNER_LOOPS(u8, uint8_t)
INNER_LOOPS(s8, int8_t)
INNER_LOOPS(s16, int16_t)

/* n values of dtype from number `at` on, against w. Four sums; n at most 256 where they have two
 * bytes. */
static void four(const uint8_t* x, uint8_t dtype, uint32_t at, uint32_t x_step, const int8_t* w,
                 uint32_t w_step, uint32_t n, int32_t* sum) {
  if (dtype == ODT_U8) {
    four_u8(x + at, x_step, w, w_step, n, sum);
  } else if (dtype == ODT_S8) {
    four_s8(x + at, x_step, w, w_step, n, sum);
  } else {
    four_s16(x + (size_t)at * 2u, x_step, w, w_step, n, sum);
  }
}

/* One sum of any length. */
static int64_t one(const uint8_t* x, uint8_t dtype, uint32_t at, uint32_t x_step, const int8_t* w,
                   uint32_t w_step, uint32_t n) {
  if (dtype == ODT_U8) return one_u8(x + at, x_step, w, w_step, n);
  if (dtype == ODT_S8) return one_s8(x + at, x_step, w, w_step, n);
  int64_t sum = 0;
  while (n > 0) {
    uint32_t some = n < 256u ? n : 256u;
    sum += one_s16(x + (size_t)at * 2u, x_step, w, w_step, some);
    at += some * x_step;
    w += (size_t)some * w_step;
    n -= some;
  }
  return sum;
}

/* ---- forward ----------------------------------------------------------------------------------
 */

static void put(const odt_ti_layer_t* l, uint8_t* y, uint32_t at, uint32_t o, int64_t acc) {
  int64_t v = acc + l->offset[o];
  if (v > INT32_MAX) v = INT32_MAX;
  if (v < INT32_MIN) v = INT32_MIN;
  if (l->mult) v *= l->mult[o];
  v >>= l->k[o];
  odt_store(y, l->y_dtype, at, v < l->lo ? l->lo : v > l->hi ? l->hi : (int32_t)v);
}

static void linear_forward(const odt_ti_layer_t* l, const uint8_t* x, uint8_t* y) {
  uint32_t chunk = l->x_dtype == ODT_S16 ? 256u : 65535u, o = 0;
  for (; o + 4u <= l->n_out; o += 4u) {
    int64_t sum[4] = {0};
    for (uint32_t i = 0; i < l->in_size; i += chunk) {
      uint32_t n = l->in_size - i < chunk ? l->in_size - i : chunk;
      int32_t part[4];
      four(x, l->x_dtype, i, 1, l->weights + (size_t)i * l->n_out + o, l->n_out, n, part);
      for (uint32_t j = 0; j < 4; j++) sum[j] += part[j];
    }
    for (uint32_t j = 0; j < 4; j++) put(l, y, o + j, o + j, sum[j]);
  }
  for (; o < l->n_out; o++) {
    put(l, y, o, o, one(x, l->x_dtype, 0, 1, l->weights + o, l->n_out, l->in_size));
  }
}

/* Kernel taps [lo, hi) of an output whose first tap reads input position `at` of `size`. */
static void taps(int32_t at, uint32_t dil, uint32_t k, uint32_t size, uint32_t* lo, uint32_t* hi) {
  *lo = at >= 0 ? 0u : ((uint32_t)-at + dil - 1u) / dil;
  int32_t left = (int32_t)size - 1 - at;
  *hi = left < 0 ? 0u : (uint32_t)left / dil + 1u;
  if (*hi > k) *hi = k;
  if (*lo > *hi) *lo = *hi;
}

static int64_t conv_at(const odt_ti_layer_t* l, const uint8_t* x, uint32_t o, uint32_t oy,
                       uint32_t ox) {
  int32_t y0 = (int32_t)(oy * l->stride_h) - (int32_t)l->pad_t;
  int32_t x0 = (int32_t)(ox * l->stride_w) - (int32_t)l->pad_l;
  uint32_t y_lo, y_hi, x_lo, x_hi, c0 = o / l->o_group * l->c_group;
  taps(y0, l->dil_h, l->k_h, l->h_in, &y_lo, &y_hi);
  taps(x0, l->dil_w, l->k_w, l->w_in, &x_lo, &x_hi);
  uint32_t rows = y_hi - y_lo, width = x_hi - x_lo;
  if (rows == 0 || width == 0) return 0;
  /* A kernel as wide as the plane reads neighbouring rows as one. */
  bool whole = width == l->w_in && width == l->k_w && l->dil_w == 1 && l->dil_h == 1;
  if (whole) {
    width *= rows;
    rows = 1;
  }
  uint32_t first = (uint32_t)(x0 + (int32_t)(x_lo * l->dil_w));
  int64_t sum = 0;
  for (uint32_t c = 0; c < l->c_group; c++) {
    const int8_t* w = l->weights + ((size_t)o * l->c_group + c) * l->k_h * l->k_w + x_lo;
    for (uint32_t ky = y_lo; ky < y_lo + rows; ky++) {
      uint32_t iy = (uint32_t)(y0 + (int32_t)(ky * l->dil_h));
      uint32_t at = ((c0 + c) * l->h_in + iy) * l->w_in + first;
      sum += one(x, l->x_dtype, at, l->dil_w, w + (size_t)ky * l->k_w, 1, width);
    }
  }
  return sum;
}

static void conv_forward(const odt_ti_layer_t* l, const uint8_t* x, uint8_t* y) {
  uint32_t at = 0;
  for (uint32_t o = 0; o < l->n_out; o++) {
    for (uint32_t oy = 0; oy < l->h_out; oy++) {
      for (uint32_t ox = 0; ox < l->w_out; ox++) put(l, y, at++, o, conv_at(l, x, o, oy, ox));
    }
  }
}

void odt_ti_forward_layer(const odt_ti_layer_t* l, const uint8_t* x, uint8_t* y) {
  if (l->conv) {
    conv_forward(l, x, y);
  } else {
    linear_forward(l, x, y);
  }
}

/* ---- deltas ---- */

/* A ReLU that was silent passes nothing: its sum need not be made. */
static bool masked(const odt_ti_delta_t* d, uint32_t b, uint32_t i) {
  return d->mask && !odt_ti_bit(d->mask + (size_t)b * d->mask_bytes, i);
}

static void delta_put(odt_ti_delta_t* d, uint32_t b, uint32_t i, int32_t v) {
  if (!d->store) {
    d->or_abs |= v < 0 ? 0u - (uint32_t)v : (uint32_t)v;
    return;
  }
  int64_t r = odt_half_up(v, d->s);
  if (r == 0) d->zeros++;
  d->out[(size_t)b * d->count + i] = (int8_t)(r > 127 ? 127 : r < -127 ? -127 : r);
}

static NOINLINE int32_t dot(const int8_t* w, const int8_t* dy, uint32_t n) {
  int32_t sum = 0;
  uint32_t o = 0;
  for (; o + 4u <= n; o += 4u) {
    sum += w[o] * dy[o] + w[o + 1u] * dy[o + 1u] + w[o + 2u] * dy[o + 2u] + w[o + 3u] * dy[o + 3u];
  }
  for (; o < n; o++) sum += w[o] * dy[o];
  return sum;
}

static void linear_delta(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, odt_ti_delta_t* d) {
  for (uint32_t i = 0; i < l->in_size; i++) {
    const int8_t* w = l->weights + (size_t)i * l->n_out;
    for (uint32_t b = 0; b < n; b++) {
      delta_put(d, b, i, masked(d, b, i) ? 0 : dot(w, dy + (size_t)b * l->n_out, l->n_out));
    }
  }
}

/* The output that tap k of the kernel gives from input position `at`; false: none. */
static bool output_of(uint32_t at, uint32_t pad, uint32_t k, uint32_t dil, uint32_t stride,
                      uint32_t n_out, uint32_t* out) {
  int32_t num = (int32_t)(at + pad) - (int32_t)(k * dil);
  if (num < 0 || (uint32_t)num % stride != 0) return false;
  *out = (uint32_t)num / stride;
  return *out < n_out;
}

static int32_t conv_delta_at(const odt_ti_layer_t* l, const int8_t* dy, uint32_t c, uint32_t iy,
                             uint32_t ix) {
  uint32_t o0 = c / l->c_group * l->o_group, oy, ox;
  int32_t sum = 0;
  for (uint32_t ky = 0; ky < l->k_h; ky++) {
    if (!output_of(iy, l->pad_t, ky, l->dil_h, l->stride_h, l->h_out, &oy)) continue;
    for (uint32_t kx = 0; kx < l->k_w; kx++) {
      if (!output_of(ix, l->pad_l, kx, l->dil_w, l->stride_w, l->w_out, &ox)) continue;
      for (uint32_t o = o0; o < o0 + l->o_group; o++) {
        size_t at = (((size_t)o * l->c_group + c % l->c_group) * l->k_h + ky) * l->k_w + kx;
        sum += l->weights[at] * dy[((size_t)o * l->h_out + oy) * l->w_out + ox];
      }
    }
  }
  return sum;
}

static void conv_delta(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, odt_ti_delta_t* d) {
  for (uint32_t b = 0; b < n; b++) {
    const int8_t* row = dy + (size_t)b * l->out_size;
    for (uint32_t i = 0; i < l->in_size; i++) {
      uint32_t plane = l->h_in * l->w_in, in_plane = i % plane;
      int32_t v = 0;
      if (!masked(d, b, i)) {
        v = conv_delta_at(l, row, i / plane, in_plane / l->w_in, in_plane % l->w_in);
      }
      delta_put(d, b, i, v);
    }
  }
}

void odt_ti_delta_part(const odt_ti_layer_t* l, const int8_t* dy, uint32_t first, uint32_t count,
                       int32_t* sums) {
  uint32_t plane = l->h_in * l->w_in;
  for (uint32_t i = first; i < first + count; i++) {
    *sums++ = l->conv ? conv_delta_at(l, dy, i / plane, i % plane / l->w_in, i % l->w_in)
                      : dot(l->weights + (size_t)i * l->n_out, dy, l->n_out);
  }
}

void odt_ti_delta_pass(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, odt_ti_delta_t* d) {
  if (l->conv) {
    conv_delta(l, dy, n, d);
  } else {
    linear_delta(l, dy, n, d);
  }
}

/* ---- weight gradients ---- */

#define BLOCK 32u /* gradients of a linear layer at a time: 128 bytes */

static bool all_zero(const odt_ti_layer_t* l, const uint8_t* x, uint32_t i, uint32_t n) {
  for (uint32_t b = 0; b < n; b++) {
    if (odt_load(x, l->x_dtype, b * l->in_size + i) != 0) return false;
  }
  return true;
}

/* At most ODT_MAX_BATCH samples: 2^8 products of 2^15 * 2^7 are within odt_update_row's 2^30. */
static void linear_gradient(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                            odt_update_t* u) {
  uint32_t step = l->in_size, n_out = l->n_out;
  for (uint32_t i = 0; i < l->in_size; i++) {
    if (all_zero(l, x, i, n)) continue;
    for (uint32_t o0 = 0; o0 < n_out; o0 += BLOCK) {
      uint32_t width = n_out - o0 < BLOCK ? n_out - o0 : BLOCK, o = 0;
      int32_t g[BLOCK];
      for (; o + 4u <= width; o += 4u) {
        four(x, l->x_dtype, i, step, dy + o0 + o, n_out, n, g + o);
      }
      for (; o < width; o++) g[o] = (int32_t)one(x, l->x_dtype, i, step, dy + o0 + o, n_out, n);
      odt_update_row(u, i * n_out + o0, g, width);
    }
  }
}

/* Outputs [lo, hi) of an axis whose tap reads inside the plane: input = o * stride + at. */
static void inside(int32_t at, uint32_t stride, uint32_t n_in, uint32_t n_out, uint32_t* lo,
                   uint32_t* hi) {
  int32_t last = (int32_t)n_in - 1 - at;
  *lo = at >= 0 ? 0u : ((uint32_t)-at + stride - 1u) / stride;
  *hi = last < 0 ? 0u : (uint32_t)last / stride + 1u;
  if (*hi > n_out) *hi = n_out;
  if (*lo > *hi) *lo = *hi;
}

/* Sum over the batch and all outputs of x * dy, along the longer axis of the output. */
static int64_t tap_gradient(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                            uint32_t o, uint32_t channel, uint32_t ky, uint32_t kx) {
  int32_t y0 = (int32_t)(ky * l->dil_h) - (int32_t)l->pad_t;
  int32_t x0 = (int32_t)(kx * l->dil_w) - (int32_t)l->pad_l;
  uint32_t y_lo, y_hi, x_lo, x_hi;
  inside(y0, l->stride_h, l->h_in, l->h_out, &y_lo, &y_hi);
  inside(x0, l->stride_w, l->w_in, l->w_out, &x_lo, &x_hi);
  if (y_lo == y_hi || x_lo == x_hi) return 0;
  bool down = l->h_out > l->w_out;
  uint32_t x_row = l->stride_h * l->w_in;
  uint32_t first = (channel * l->h_in + (uint32_t)((int32_t)(y_lo * l->stride_h) + y0)) * l->w_in +
                   (uint32_t)((int32_t)(x_lo * l->stride_w) + x0);
  uint32_t out = (o * l->h_out + y_lo) * l->w_out + x_lo;
  uint32_t lines = down ? x_hi - x_lo : y_hi - y_lo, length = down ? y_hi - y_lo : x_hi - x_lo;
  int64_t g = 0;
  for (uint32_t b = 0; b < n; b++) {
    for (uint32_t line = 0; line < lines; line++) {
      uint32_t at = b * l->in_size + first + line * (down ? l->stride_w : x_row);
      const int8_t* d = dy + (size_t)b * l->out_size + out + line * (down ? 1u : l->w_out);
      g += one(x, l->x_dtype, at, down ? x_row : l->stride_w, d, down ? l->w_out : 1u, length);
    }
  }
  return g;
}

static void conv_gradient(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                          odt_update_t* u) {
  uint32_t index = 0;
  for (uint32_t o = 0; o < l->n_out; o++) {
    for (uint32_t c = 0; c < l->c_group; c++) {
      uint32_t channel = o / l->o_group * l->c_group + c;
      for (uint32_t ky = 0; ky < l->k_h; ky++) {
        for (uint32_t kx = 0; kx < l->k_w; kx++, index++) {
          odt_update_one(u, index, index, tap_gradient(l, x, dy, n, o, channel, ky, kx));
        }
      }
    }
  }
}

void odt_ti_gradient_pass(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                          odt_update_t* u) {
  if (l->conv) {
    conv_gradient(l, x, dy, n, u);
  } else {
    linear_gradient(l, x, dy, n, u);
  }
}

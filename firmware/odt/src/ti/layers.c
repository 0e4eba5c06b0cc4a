/* Loops over TI's layouts, in place: linear [in,out], convolutions [O,I/g,kH,kW].
 *
 * Sizes are uint16: 65535 products of 255 * 128 fit 32 bits. Where activations have two bytes, at
 * most 256 products (2^30) are summed before they go to 64. */
#include "round.h"
#include "ti_internal.h"

#define BLOCK 16u /* outputs of a linear layer at a time: 192 bytes of sums */

static void put(const odt_ti_layer_t* l, uint8_t* y, uint32_t at, uint32_t o, int64_t acc) {
  int64_t v = acc + l->offset[o];
  if (v > INT32_MAX) v = INT32_MAX;
  if (v < INT32_MIN) v = INT32_MIN;
  if (l->mult) v *= l->mult[o];
  v >>= l->k[o];
  odt_store(y, l->y_dtype, at, v < l->lo ? l->lo : v > l->hi ? l->hi : (int32_t)v);
}

/* Inputs [i0, i1) against n outputs from o0 on. */
static void linear_block(const odt_ti_layer_t* l, const uint8_t* x, uint32_t i0, uint32_t i1,
                         uint32_t o0, uint32_t n, int64_t* sum) {
  int32_t acc[BLOCK] = {0};
  for (uint32_t i = i0; i < i1; i++) {
    int32_t v = odt_load(x, l->x_dtype, i);
    const int8_t* w = l->weights + (size_t)i * l->n_out + o0;
    for (uint32_t o = 0; o < n; o++) acc[o] += v * w[o];
  }
  for (uint32_t o = 0; o < n; o++) sum[o] += acc[o];
}

static void linear_forward(const odt_ti_layer_t* l, const uint8_t* x, uint8_t* y) {
  uint32_t chunk = l->x_dtype == ODT_S16 ? 256u : 65535u;
  for (uint32_t o0 = 0; o0 < l->n_out; o0 += BLOCK) {
    uint32_t n = l->n_out - o0 < BLOCK ? l->n_out - o0 : BLOCK;
    int64_t sum[BLOCK] = {0};
    for (uint32_t i = 0; i < l->in_size; i += chunk) {
      uint32_t end = l->in_size - i < chunk ? l->in_size : i + chunk;
      linear_block(l, x, i, end, o0, n, sum);
    }
    for (uint32_t o = 0; o < n; o++) put(l, y, o0 + o, o0 + o, sum[o]);
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
  int64_t sum = 0;
  for (uint32_t c = 0; c < l->c_group; c++) {
    const int8_t* w = l->weights + ((size_t)o * l->c_group + c) * l->k_h * l->k_w;
    for (uint32_t ky = y_lo; ky < y_hi; ky++) {
      int32_t iy = y0 + (int32_t)(ky * l->dil_h);
      int32_t at = (int32_t)(((c0 + c) * l->h_in + (uint32_t)iy) * l->w_in) + x0;
      int32_t acc = 0;
      for (uint32_t kx = x_lo; kx < x_hi; kx++) {
        acc += odt_load(x, l->x_dtype, (uint32_t)(at + (int32_t)(kx * l->dil_w))) *
               w[ky * l->k_w + kx];
      }
      sum += acc;
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

static void delta_put(odt_ti_delta_t* d, uint32_t b, uint32_t i, int32_t v) {
  if (d->mask && !odt_ti_bit(d->mask + (size_t)b * d->mask_bytes, i)) v = 0;
  if (!d->store) {
    d->or_abs |= v < 0 ? 0u - (uint32_t)v : (uint32_t)v;
    return;
  }
  int64_t r = odt_half_up(v, d->s);
  if (r == 0) d->zeros++;
  d->out[(size_t)b * d->count + i] = (int8_t)(r > 127 ? 127 : r < -127 ? -127 : r);
}

static void linear_delta(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, odt_ti_delta_t* d) {
  for (uint32_t i = 0; i < l->in_size; i++) {
    const int8_t* w = l->weights + (size_t)i * l->n_out;
    for (uint32_t b = 0; b < n; b++) {
      const int8_t* row = dy + (size_t)b * l->n_out;
      int32_t sum = 0;
      for (uint32_t o = 0; o < l->n_out; o++) sum += w[o] * row[o];
      delta_put(d, b, i, sum);
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
      delta_put(d, b, i, conv_delta_at(l, row, i / plane, in_plane / l->w_in, in_plane % l->w_in));
    }
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

static const uint8_t* sample(const odt_ti_layer_t* l, const uint8_t* x, uint32_t b) {
  return x + (size_t)b * l->in_size * odt_elem_bytes(l->x_dtype);
}

/* At most ODT_MAX_BATCH samples: 2^8 products of 2^15 * 2^7 are within odt_update_row's 2^30. */
static void linear_gradient(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                            odt_update_t* u) {
  for (uint32_t i = 0; i < l->in_size; i++) {
    for (uint32_t o0 = 0; o0 < l->n_out; o0 += BLOCK) {
      uint32_t width = l->n_out - o0 < BLOCK ? l->n_out - o0 : BLOCK;
      int32_t g[BLOCK] = {0};
      for (uint32_t b = 0; b < n; b++) {
        int32_t v = odt_load(sample(l, x, b), l->x_dtype, i);
        const int8_t* row = dy + (size_t)b * l->n_out + o0;
        if (v == 0) continue;
        for (uint32_t o = 0; o < width; o++) g[o] += v * row[o];
      }
      odt_update_row(u, i * l->n_out + o0, g, width);
    }
  }
}

static int64_t tap_gradient(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                            uint32_t o, uint32_t channel, uint32_t ky, uint32_t kx) {
  int64_t g = 0;
  for (uint32_t oy = 0; oy < l->h_out; oy++) {
    int32_t iy = (int32_t)(oy * l->stride_h + ky * l->dil_h) - (int32_t)l->pad_t;
    if (iy < 0 || iy >= (int32_t)l->h_in) continue;
    for (uint32_t ox = 0; ox < l->w_out; ox++) {
      int32_t ix = (int32_t)(ox * l->stride_w + kx * l->dil_w) - (int32_t)l->pad_l;
      if (ix < 0 || ix >= (int32_t)l->w_in) continue;
      uint32_t at = (channel * l->h_in + (uint32_t)iy) * l->w_in + (uint32_t)ix;
      uint32_t out = (o * l->h_out + oy) * l->w_out + ox;
      int32_t sum = 0; /* at most 2^8 samples, 2^22 each */
      for (uint32_t b = 0; b < n; b++) {
        sum += odt_load(sample(l, x, b), l->x_dtype, at) * dy[(size_t)b * l->out_size + out];
      }
      g += sum;
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
        for (uint32_t kx = 0; kx < l->k_w; kx++) {
          odt_update_one(u, index, index, tap_gradient(l, x, dy, n, o, channel, ky, kx));
          index++;
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

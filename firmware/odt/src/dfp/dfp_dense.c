/* Dense layers of rule 1.13 in plain C. */
#include <string.h>

#include "dfp/dfp_dense_dsp.h"

/* With the DSP extension dfp_dense_dsp.c does the work. */
#ifdef ODT_DFP_DSP
#pragma GCC optimize("Os")
#endif

/* ---- pairs of values in words: what most of the time is spent on
 * ---------------------------------
 */

static inline int32_t word_at(const int16_t* p) {
  int32_t v;
  memcpy(&v, p, 4);
  return v;
}
#ifndef ODT_DFP_DSP

static inline int32_t low(int32_t pair) {
  return (int32_t)((uint32_t)pair << 16) >> (16 + ODT_DFP_CHAIN / 2);
}
static inline int32_t high(int32_t pair) { return pair >> (16 + ODT_DFP_CHAIN / 2); }

/* sum[2 r + c] += a_r * b_c over pairs; a: [pairs][2] pairs, b: the same of operands. */
#ifdef ODT_DFP_CHAIN32
/* Of halved operands eight products fit an int32: all eight at -2^14 * -2^14 make 2^31, one too
 * many, so a chain starts at -1. */
static void tile(const int32_t* a, const int16_t* b, uint32_t pairs, int64_t sum[4]) {
  for (uint32_t links; pairs > 0; pairs -= links) {
    links = pairs < 4u ? pairs : 4u;
    int32_t c0 = -1, c1 = -1, c2 = -1, c3 = -1;
    for (const int32_t* end = a + 2u * links; a != end; a += 2, b += 4) {
      int32_t a0 = low(a[0]), a1 = low(a[1]), v = b[0];
      c0 += a0 * v;
      c2 += a1 * v;
      v = b[2];
      c1 += a0 * v;
      c3 += a1 * v;
      a0 = high(a[0]);
      a1 = high(a[1]);
      v = b[1];
      c0 += a0 * v;
      c2 += a1 * v;
      v = b[3];
      c1 += a0 * v;
      c3 += a1 * v;
    }
    sum[0] += (int64_t)c0 + 1;
    sum[1] += (int64_t)c1 + 1;
    sum[2] += (int64_t)c2 + 1;
    sum[3] += (int64_t)c3 + 1;
  }
}
#else
static void tile(const int32_t* a, const int16_t* b, uint32_t pairs, int64_t sum[4]) {
  int64_t s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  for (const int32_t* end = a + 2u * pairs; a != end; a += 2, b += 4) {
    int32_t a0 = low(a[0]), a1 = high(a[0]), a2 = low(a[1]), a3 = high(a[1]);
    int32_t first = word_at(b), second = word_at(b + 2), v = low(first), u = high(first);
    s0 += (int64_t)a0 * v;
    s0 += (int64_t)a1 * u;
    s2 += (int64_t)a2 * v;
    s2 += (int64_t)a3 * u;
    v = low(second);
    u = high(second);
    s1 += (int64_t)a0 * v;
    s1 += (int64_t)a1 * u;
    s3 += (int64_t)a2 * v;
    s3 += (int64_t)a3 * u;
  }
  sum[0] = s0;
  sum[1] = s1;
  sum[2] = s2;
  sum[3] = s3;
}
#endif

/* Pairs to operands, in place. */
static void to_operands(int32_t* pairs, uint32_t n) {
  for (uint32_t i = 0; ODT_DFP_CHAIN && i < n; i++) {
    pairs[i] = (int32_t)(((uint32_t)low(pairs[i]) & 0xFFFFu) | (uint32_t)high(pairs[i]) << 16);
  }
}

/* Two samples side by side: [pair of inputs][2]. */
static void interleave(const int16_t* a, const int16_t* b, uint32_t pairs, int32_t* out) {
  for (; pairs > 0; pairs--, a += 2, b += 2) {
    *out++ = word_at(a);
    *out++ = word_at(b);
  }
}

#endif

/* ---- values wherever they lie -------------------------------------------------------------------
 */

/* Sum over pairs: a[p * sa] * b[p * sb] + a[p * sa + a1] * b[p * sb + b1]. Chains
 * as above. */
static inline int64_t dot_pairs(const int16_t* a, uint32_t sa, uint32_t a1, const int16_t* b,
                                uint32_t sb, uint32_t b1, uint32_t pairs) {
  int64_t sum = 0;
#ifdef ODT_DFP_CHAIN32
  while (pairs > 0) {
    uint32_t links = pairs < 4u ? pairs : 4u;
    int32_t chain = -1;
    pairs -= links;
    for (; links > 0; links--, a += sa, b += sb) {
      chain += (a[0] >> 1) * (b[0] >> 1) + (a[a1] >> 1) * (b[b1] >> 1);
    }
    sum += (int64_t)chain + 1;
  }
#else
  for (; pairs > 0; pairs--, a += sa, b += sb) sum += a[0] * b[0] + a[a1] * b[b1];
#endif
  return sum;
}

static inline int64_t product(int16_t a, int16_t b) {
  return odt_dfp_operand(a) * odt_dfp_operand(b);
}

/* ---- forward ------------------------------------------------------------------------------------
 */

#ifndef ODT_DFP_DSP
static void forward_panels(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                           const int16_t* x, uint32_t b, uint32_t n, odt_dfp_sink_t* sink) {
  uint32_t across = (n_in + 1u) >> 1;
  const int32_t* panel = (const int32_t*)(const void*)w->w;
  for (uint32_t o = 0; o < n_out; o += 2u, panel += 2u * across) {
    int64_t first = odt_dfp_bias(w, o), second = o + 1u < n_out ? odt_dfp_bias(w, o + 1u) : 0;
    int64_t sum[4] = {first, first, second, second};
    tile(panel, x, across, sum);
    for (uint32_t j = 0; j < 4u; j++) {
      uint32_t out = o + (j >> 1), sample = b + (j & 1u);
      if (out >= n_out || sample >= n) continue;
      odt_dfp_put(sink, sample, out, odt_dfp_half_up(sum[j], odt_dfp_below(w, out)));
    }
  }
}
#endif

/* Frozen layers are read as they lie in the image, [in][out]. */
static void forward_image(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                          const int16_t* x, uint32_t x_stride, uint32_t n, odt_dfp_sink_t* sink) {
  for (uint32_t o = 0; o < n_out; o++) {
    int64_t bias = odt_dfp_bias(w, o);
    for (uint32_t b = 0; b < n; b++) {
      const int16_t* xb = x + (size_t)b * x_stride;
      int64_t sum = bias + dot_pairs(xb, 2, 1, w->w + o, 2 * n_out, n_out, n_in >> 1);
      if (n_in & 1u) sum += product(xb[n_in - 1u], w->w[(n_in - 1u) * n_out + o]);
      odt_dfp_put(sink, b, o, odt_dfp_half_up(sum, odt_dfp_below(w, o)));
    }
  }
}

void odt_dfp_dense_forward(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                           const int16_t* x, uint32_t x_stride, uint32_t n, odt_dfp_sink_t* sink,
                           void* scratch) {
#ifdef ODT_DFP_DSP
  if (odt_dfp_dense_forward_dsp(w, n_in, n_out, x, x_stride, n, sink, scratch)) return;
#endif
  if (!w->panels) {
    forward_image(w, n_in, n_out, x, x_stride, n, sink);
    return;
  }
#ifndef ODT_DFP_DSP
  for (uint32_t b = 0; b < n; b += 2u) {
    const int16_t* row = x + (size_t)b * x_stride;
    interleave(row, b + 1u < n ? row + x_stride : row, (n_in + 1u) >> 1, scratch);
    to_operands(scratch, (n_in + 1u) & ~1u);
    forward_panels(w, n_in, n_out, scratch, b, n, sink);
  }
#endif
}

/* ---- delta --------------------------------------------------------------------------------------
 */

/* Blocked layers: each weight is brought to the common exponent first. */
static int64_t delta_sum_blocked(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                                 uint32_t i, const int16_t* dy) {
  int64_t sum = 0;
  for (uint32_t o = 0; o < n_out; o++) {
    int below = odt_dfp_below(w, o);
    uint32_t at = w->panels ? odt_dfp_panel_at(n_in, i, o) : i * n_out + o;
    if (below <= 15) sum += product((int16_t)odt_dfp_half_up(w->w[at], below), dy[o]);
  }
  return sum;
}

static int64_t delta_sum(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out, uint32_t i,
                         const int16_t* dy) {
  if (w->e) return delta_sum_blocked(w, n_in, n_out, i, dy);
  if (w->panels) {
    uint32_t panel = odt_dfp_even(n_in) * 2u;
    return dot_pairs(dy, 2, 1, w->w + odt_dfp_panel_at(n_in, i, 0), panel, 2, (n_out + 1u) >> 1);
  }
  const int16_t* row = w->w + i * n_out;
  int64_t sum = dot_pairs(dy, 2, 1, row, 2, 1, n_out >> 1);
  return n_out & 1u ? sum + product(dy[n_out - 1u], row[n_out - 1u]) : sum;
}

void odt_dfp_dense_delta(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                         const int16_t* dy, uint32_t dy_stride, uint32_t n, odt_dfp_sink_t* sink,
                         void* scratch) {
#ifdef ODT_DFP_DSP
  if (odt_dfp_dense_delta_dsp(w, n_in, n_out, dy, dy_stride, n, sink, scratch)) return;
#endif
  (void)scratch;
  for (uint32_t i = 0; i < n_in; i++) {
    for (uint32_t b = 0; b < n; b++) {
      odt_dfp_put(sink, b, i, delta_sum(w, n_in, n_out, i, dy + b * dy_stride));
    }
  }
}

/* ---- update -------------------------------------------------------------------------------------
 */

#ifndef ODT_DFP_DSP
/* Values 2p and 2p+1 of two columns, paired over samples; one beyond the batch counts as 0. */
static void pair_samples(const int16_t* x, uint32_t stride, uint32_t n, int32_t* out) {
  for (uint32_t b = 0; b < n; b += 2u, x += 2u * stride, out += 2) {
    uint32_t even = (uint32_t)word_at(x), odd = b + 1u < n ? (uint32_t)word_at(x + stride) : 0;
    out[0] = (int32_t)((even & 0xFFFFu) | odd << 16);
    out[1] = (int32_t)(even >> 16 | (odd & 0xFFFF0000u));
  }
}

static uint32_t update_panels(uint32_t n_in, const int16_t* x, uint32_t x_stride, const int16_t* dy,
                              uint32_t dy_stride, uint32_t n, odt_dfp_update_t* u,
                              int32_t* scratch) {
  uint32_t across = (n_in + 1u) >> 1, pairs = (n + 1u) >> 1, panel = ODT_NONE;
  int32_t *dy_pairs = scratch, *x_pairs = scratch + 2u * pairs;
  for (uint32_t i = 0; i < across; i++) {
    pair_samples(x + 2u * i, x_stride, n, x_pairs + (size_t)i * pairs * 2u);
  }
  to_operands(x_pairs, across * pairs * 2u);
  const int16_t* operands = (const int16_t*)x_pairs;
  for (uint32_t p = u->from; p < u->to; p++) {
    int64_t sum[4] = {0, 0, 0, 0};
    if (panel != p / across) {
      panel = p / across;
      pair_samples(dy + 2u * panel, dy_stride, n, dy_pairs);
    }
    tile(dy_pairs, operands + (size_t)(p - panel * across) * pairs * 4u, pairs, sum);
    if (!odt_dfp_apply(u, u->w + 4u * (size_t)p, sum, 4)) return p;
  }
  return u->to;
}
#endif

/* Inputs i and i+1 of one output. */
static void lane_sums(const int16_t* x, uint32_t x_stride, const int16_t* dy, uint32_t dy_stride,
                      uint32_t n, int64_t sum[2]) {
  for (uint32_t l = 0; l < 2u; l++) {
    sum[l] = dot_pairs(x + l, 2 * x_stride, x_stride, dy, 2 * dy_stride, dy_stride, n >> 1);
    if (n & 1u) sum[l] += product(x[(n - 1u) * x_stride + l], dy[(n - 1u) * dy_stride]);
  }
}

uint32_t odt_dfp_dense_update(uint32_t n_in, uint32_t n_out, const int16_t* x, uint32_t x_stride,
                              const int16_t* dy, uint32_t dy_stride, uint32_t n,
                              odt_dfp_update_t* u, void* scratch) {
  (void)n_out;
  if (u->lane < 0) {
#ifdef ODT_DFP_DSP
    return odt_dfp_dense_update_dsp(n_in, x, x_stride, dy, dy_stride, n, u, scratch);
#else
    return update_panels(n_in, x, x_stride, dy, dy_stride, n, u, scratch);
#endif
  }
  uint32_t across = (n_in + 1u) >> 1, lane = (uint32_t)u->lane;
  for (uint32_t p = u->from; p < u->to; p++) {
    int64_t sum[2];
    uint32_t panel = p / across, i = 2u * (p - panel * across);
    lane_sums(x + i, x_stride, dy + 2u * panel + lane, dy_stride, n, sum);
    if (!odt_dfp_apply(u, u->w + 4u * (size_t)p + 2u * lane, sum, 2)) return p;
  }
  return u->to;
}

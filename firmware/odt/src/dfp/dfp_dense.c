/* Dense layers of rule 1.13 in plain C. */
#include "dfp/dfp_dense_dsp.h"

/* Sum over pairs: a[p * sa] * b[p * sb] + a[p * sa + a1] * b[p * sb + b1]. Two products of 15 bits
 * fit an int32; of halved operands eight do: all eight at -2^14 * -2^14 make 2^31, one too many,
 * so a chain starts at -1. */
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

/* Frozen layers are read as they lie in the image, [in][out]. */
static int64_t forward_sum(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out, uint32_t o,
                           const int16_t* x) {
  uint32_t pairs = n_in >> 1;
  if (w->panels) {
    return dot_pairs(x, 2, 1, w->w + odt_dfp_panel_at(n_in, 0, o), 4, 1, (n_in + 1u) >> 1);
  }
  int64_t sum = dot_pairs(x, 2, 1, w->w + o, 2 * n_out, n_out, pairs);
  return n_in & 1u ? sum + product(x[n_in - 1u], w->w[(n_in - 1u) * n_out + o]) : sum;
}

void odt_dfp_dense_forward(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                           const int16_t* x, uint32_t x_stride, uint32_t n, odt_dfp_sink_t* sink,
                           void* scratch) {
#ifdef ODT_DFP_DSP
  if (odt_dfp_dense_forward_dsp(w, n_in, n_out, x, x_stride, n, sink, scratch)) return;
#endif
  (void)scratch;
  for (uint32_t o = 0; o < n_out; o++) {
    int64_t bias = odt_dfp_bias(w, o);
    int below = odt_dfp_below(w, o);
    for (uint32_t b = 0; b < n; b++) {
      int64_t sum = bias + forward_sum(w, n_in, n_out, o, x + b * x_stride);
      odt_dfp_put(sink, b, o, odt_dfp_half_up(sum, below));
    }
  }
}

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
  if (odt_dfp_dense_delta_dsp(w, n_in, n_out, dy, dy_stride, n, sink)) return;
#endif
  (void)scratch;
  for (uint32_t i = 0; i < n_in; i++) {
    for (uint32_t b = 0; b < n; b++) {
      odt_dfp_put(sink, b, i, delta_sum(w, n_in, n_out, i, dy + b * dy_stride));
    }
  }
}

/* The four sums of a block; x and dy stand at its first input and output. */
static void block_sums(const int16_t* x, uint32_t x_stride, const int16_t* dy, uint32_t dy_stride,
                       uint32_t n, int64_t sum[4]) {
  uint32_t pairs = n >> 1;
  for (uint32_t l = 0; l < 4; l++) {
    const int16_t *a = x + (l & 1u), *d = dy + (l >> 1);
    sum[l] = dot_pairs(a, 2 * x_stride, x_stride, d, 2 * dy_stride, dy_stride, pairs);
    if (n & 1u) sum[l] += product(a[(n - 1u) * x_stride], d[(n - 1u) * dy_stride]);
  }
}

uint32_t odt_dfp_dense_update(uint32_t n_in, uint32_t n_out, const int16_t* x, uint32_t x_stride,
                              const int16_t* dy, uint32_t dy_stride, uint32_t n,
                              odt_dfp_update_t* u, void* scratch) {
#ifdef ODT_DFP_DSP
  if (u->lane < 0) {
    return odt_dfp_dense_update_dsp(n_in, x, x_stride, dy, dy_stride, n, u, scratch);
  }
#endif
  (void)n_out;
  (void)scratch;
  uint32_t across = (n_in + 1u) >> 1, o = u->from / across * 2u, i = u->from % across * 2u;
  for (uint32_t p = u->from; p < u->to; p++) {
    int64_t sum[4];
    int16_t* w = u->w + 4u * p;
    block_sums(x + i, x_stride, dy + o, dy_stride, n, sum);
    bool fits = u->lane < 0 ? odt_dfp_apply(u, w, sum, 4)
                            : odt_dfp_apply(u, w + 2 * u->lane, sum + 2 * u->lane, 2);
    if (!fits) return p;
    i += 2u;
    if (i >= n_in) {
      i = 0;
      o += 2u;
    }
  }
  return u->to;
}

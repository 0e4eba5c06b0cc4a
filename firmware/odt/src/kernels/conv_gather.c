/* The inputs of a convolution's positions, as the inner loops take them: rows of the input are
 * widened a band at a time, and every tap picks its values out of them. */
#include <string.h>

#include "kernels/conv.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t up4(uint32_t n) { return (n + 3u) & ~3u; }

#define BAND 96u /* values of an input row at a time */

static void zero(int16_t* p, uint32_t n) {
  for (; n > 0; n--) {
    *p++ = 0;
    __asm__(""); /* a few values: no call of memset */
  }
}

/* Values [first, first + n) of an input row (NULL: there is none), zeros outside of it. */
static void take_band(int16_t* band, const uint8_t* row, uint8_t dtype, uint32_t w_in,
                      int32_t first, uint32_t n) {
  uint32_t lo = first < 0 ? least(n, (uint32_t)-first) : 0, hi = lo;
  if (row && first + (int32_t)lo < (int32_t)w_in) {
    hi = least(n, (uint32_t)((int32_t)w_in - first));
  }
  zero(band, lo);
  zero(band + hi, n - hi);
  if (hi == lo) return;
  odt_spread(band + lo, 1, row + (first + (int32_t)lo) * (int32_t)odt_elem_bytes(dtype), dtype, 1,
             hi - lo);
}

/* Taps [j, j + taps) of a segment out of a band. */
static void place_outer(const odt_conv_t* c, const odt_gather_t* g, const odt_segment_t* s,
                        const int16_t* band, uint32_t j, uint32_t taps) {
  int16_t* to = g->to + 8u * j + s->at;
  uint32_t stride = c->stride_w, dil = c->dil_w;
  const int16_t* end = band + taps * dil;
  if (s->n == 8u && stride == 1) {
    for (; band != end; band += dil, to += 8) memcpy(to, band, 16);
  } else if (s->n == 8u) {
    for (; band != end; band += dil, to += 8) {
      const int16_t* p = band;
      for (uint32_t i = 0; i < 8u; i++, p += stride) to[i] = *p;
    }
  } else {
    for (; band != end; band += dil, to += 8) {
      for (uint32_t i = 0; i < s->n; i++) to[i] = band[i * stride];
    }
  }
}

static void place_dot(const odt_conv_t* c, const odt_gather_t* g, const odt_segment_t* s,
                      const int16_t* band, uint32_t j, uint32_t taps) {
  uint32_t tile = up4(g->n), stride = c->stride_w, dil = c->dil_w;
  const int16_t* end = band + taps * dil;
  for (; band != end; j++, band += dil) {
    if (g->order == ODT_FOR_DOT1) {
      g->to[odt_slot1(g->wide, j)] = *band;
      continue;
    }
    uint32_t step = odt_step4(tile, j);
    int16_t* to = g->to + odt_slot4(g->wide, tile, j, 0) + step * s->at;
    if (s->n == 4u) {
      to[0] = band[0];
      to[step] = band[stride];
      to[2u * step] = band[2u * stride];
      to[3u * step] = band[3u * stride];
    } else {
      for (uint32_t i = 0; i < s->n; i++) to[i * step] = band[i * stride];
    }
  }
}

/* Taps [kx, kx + taps) of row iy of a plane into slots from j on. */
static void gather_row(const odt_conv_t* c, const odt_gather_t* g, const odt_segment_t* s,
                       const uint8_t* row, uint8_t dtype, uint32_t j, uint32_t kx, uint32_t taps) {
  int16_t band[BAND];
  uint32_t reach = (s->n - 1u) * c->stride_w;
  while (taps > 0) {
    uint32_t some = taps;
    if (reach + (taps - 1u) * c->dil_w >= BAND) some = (BAND - 1u - reach) / c->dil_w + 1u;
    int32_t first = (int32_t)(s->ox * c->stride_w + kx * c->dil_w) - (int32_t)c->pad_l;
    take_band(band, row, dtype, c->w_in, first, reach + (some - 1u) * c->dil_w + 1u);
    if (g->order == ODT_FOR_OUTER) {
      place_outer(c, g, s, band, j, some);
    } else {
      place_dot(c, g, s, band, j, some);
    }
    j += some;
    kx += some;
    taps -= some;
  }
}

/* Splits the tile's positions where an output row ends, or where a band would be too short. */
static void split(const odt_conv_t* c, odt_gather_t* g) {
  uint32_t fit = (BAND - 1u) / c->stride_w + 1u;
  g->n_segments = 0;
  for (uint32_t at = 0; at < g->count;) {
    odt_segment_t* s = &g->segments[g->n_segments++];
    uint32_t p = g->first + at;
    s->at = at;
    s->oy = p / c->w_out;
    s->ox = p % c->w_out;
    s->n = least(least(c->w_out - s->ox, g->count - at), fit);
    at += s->n;
  }
}

/* True where the tile's taps are one run of input bytes for each column: filled as they are. */
static bool gather_runs(const odt_conv_t* c, const odt_gather_t* g, const uint8_t* x,
                        uint8_t dtype) {
  if (g->order != ODT_FOR_DOT4 || c->taps != c->k_w || c->dil_w != 1 || c->h_out != 1 ||
      c->pad_t != 0 || c->pad_l != 0 || (c->w_out - 1u) * c->stride_w + c->k_w > c->w_in) {
    return false;
  }
  for (uint32_t i = 0; i < 4u; i++) {
    uint32_t at = (g->first + least(i, g->count - 1u)) * c->stride_w + g->tap;
    odt_fill4(g->to, g->wide, i, x + at * odt_elem_bytes(dtype), dtype, g->n);
  }
  return true;
}

void odt_conv_gather(const odt_conv_t* c, odt_gather_t* g, const uint8_t* x, uint8_t dtype) {
  if (gather_runs(c, g, x, dtype)) return;
  uint32_t row_bytes = c->w_in * odt_elem_bytes(dtype), area = c->k_h * c->k_w;
  uint32_t channel = g->tap / area, ky = g->tap % area / c->k_w, kx = g->tap % c->k_w;
  split(c, g);
  for (uint32_t j = 0; j < g->n;) {
    uint32_t taps = least(c->k_w - kx, g->n - j);
    for (const odt_segment_t* s = g->segments; s < g->segments + g->n_segments; s++) {
      int32_t iy = (int32_t)(s->oy * c->stride_h + ky * c->dil_h) - (int32_t)c->pad_t;
      bool inside = iy >= 0 && iy < (int32_t)c->h_in;
      const uint8_t* row = inside ? x + (channel * c->h_in + (uint32_t)iy) * row_bytes : NULL;
      gather_row(c, g, s, row, dtype, j, kx, taps);
    }
    j += taps;
    kx = 0;
    if (++ky == c->k_h) {
      ky = 0;
      channel++;
    }
  }
  if (g->order == ODT_FOR_OUTER) memset(g->to + 8u * g->n, 0, 16u * (up4(g->n) - g->n));
}

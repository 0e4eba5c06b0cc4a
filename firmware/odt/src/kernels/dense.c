/* Dense layers: tiles of inputs and outputs around the inner loops of matrix.h. */
#include <string.h>

#include "kernels/matrix.h"
#include "kernels/mve.h"
#include "round.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t up4(uint32_t n) { return (n + 3u) & ~3u; }

/* What every batch needs. ODT_BLOCK_BYTES come for each eight samples, in every op alike, so that a
 * trainer's memory grows evenly with the batch. */
static uint32_t base_bytes(const odt_op_t* op, uint32_t n_in) {
  uint32_t forward = 8u * least(up4(n_in), ODT_TILE_COLS) + 16u * least(op->n_out, ODT_TILE_ROWS);
  uint32_t delta = 4u * ODT_DELTA_COLS + 2u * least(up4(op->n_out), ODT_DELTA_ROWS);
  uint32_t most = least(16u * up4(n_in), ODT_PAIR_BYTES);
  most = most > forward ? most : forward;
  return most > delta ? most : delta;
}

/* Inputs per tile of the gradient, a multiple of 4. */
static uint32_t grad_tile(const odt_op_t* op, uint32_t n_in, uint32_t blocks) {
  uint32_t bytes = base_bytes(op, n_in) + (ODT_BLOCK_BYTES - 16u) * blocks;
  return least(up4(n_in), bytes / (16u * blocks) & ~3u);
}

uint32_t odt_dense_scratch(const odt_op_t* op, uint32_t n_in, uint32_t batch) {
  return base_bytes(op, n_in) + ODT_BLOCK_BYTES * ((batch + 7u) / 8u);
}

/* ---- forward ------------------------------------------------------------------------------------
 */

/* Sums of rows outputs from o0 on by `columns` samples, `step` sums per output. */
static void store_outputs(const odt_kernel_t* k, uint32_t o0, uint32_t rows, uint32_t columns,
                          uint32_t step, const int32_t* acc, uint8_t* y) {
  uint32_t count = k->out->count;
  bool bytes = k->out->dtype != ODT_S16;
  for (uint32_t r = 0; r < rows; r++, acc += step) {
    odt_requant_t q = odt_requant_of(k->op, k->off, o0 + r, k->w.shl);
    uint32_t at = o0 + r;
    if (bytes && odt_requant_plain(&q)) {
      uint8_t* p = y + at;
      for (uint32_t c = 0; c < columns; c++, p += count)
        *p = (uint8_t)odt_requant_shift(&q, acc[c]);
      continue;
    }
    for (uint32_t c = 0; c < columns; c++, at += count) {
      int32_t v = odt_requant(&q, acc[c]);
      if (bytes) {
        y[at] = (uint8_t)v;
      } else {
        ((int16_t*)(void*)y)[at] = (int16_t)v;
      }
    }
  }
}

/* Inputs [col, col + n) of `columns` samples from b on. */
static void fill_tile(const odt_kernel_t* k, const odt_view_t* x, uint32_t b, uint32_t columns,
                      uint32_t col, uint32_t n, int16_t* tile) {
  bool wide = k->w.m16 != NULL;
  uint32_t skip = col * odt_elem_bytes(x->dtype);
  if (columns == 1u) {
    odt_fill1(tile, wide, odt_sample(x, b) + skip, x->dtype, n);
    return;
  }
  for (uint32_t c = 0; c < 4u; c++) { /* behind the last sample: that one again */
    uint32_t from = b + least(c, columns - 1u);
    odt_fill4(tile, wide, c, odt_sample(x, from) + skip, x->dtype, n);
  }
}

/* Up to four samples from b on. */
static void forward_columns(const odt_kernel_t* k, const odt_matrix_t* w, const odt_view_t* x,
                            uint32_t b, uint32_t columns, uint8_t* y) {
  int32_t* acc = k->scratch;
  int16_t* tile = (int16_t*)(acc + 4u * least(w->rows, ODT_TILE_ROWS));
  for (uint32_t o = 0; o < w->rows; o += ODT_TILE_ROWS) {
    uint32_t rows = least(w->rows - o, ODT_TILE_ROWS);
    odt_clear(acc, 4u * rows);
    for (uint32_t col = 0; col < w->cols; col += ODT_TILE_COLS) {
      uint32_t n = least(w->cols - col, ODT_TILE_COLS);
      if (o == 0 || w->cols > ODT_TILE_COLS) fill_tile(k, x, b, columns, col, n, tile);
      if (columns > 1u) {
        odt_dot4(w, o, rows, col, n, tile, acc);
      } else {
        odt_dot1(w, o, rows, col, n, tile, acc);
      }
    }
    store_outputs(k, o, rows, columns, columns > 1u ? 4u : 1u, acc, y);
  }
}

/* Weights of the image, [in][out]: a row of inputs at a time into a tile of sums. */
static void forward_image(const odt_kernel_t* k, const uint8_t* x, uint8_t dtype, uint8_t* y) {
  int32_t* acc = k->scratch;
  uint32_t n_out = k->op->n_out;
  for (uint32_t o = 0; o < n_out; o += 4u * ODT_TILE_ROWS) {
    uint32_t n = least(n_out - o, 4u * ODT_TILE_ROWS);
    const int8_t* w = k->w.m8 + o;
    for (uint32_t r = 0; r < n; r++) acc[r] = 0;
    for (uint32_t i = 0; i < k->in->count; i++, w += n_out) {
      int32_t v = odt_load(x, dtype, i);
      if (v == 0) continue;
      for (uint32_t r = 0; r < n; r++) acc[r] += v * w[r];
    }
    store_outputs(k, o, n, 1, 1, acc, y);
  }
}

void odt_dense_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y) {
  uint32_t bytes = k->out->count * odt_elem_bytes(k->out->dtype);
  if (!k->w.packed) {
    for (uint32_t b = 0; b < n; b++) forward_image(k, odt_sample(x, b), x->dtype, y + b * bytes);
    return;
  }
  odt_matrix_t w = odt_matrix_of(k, k->in->count);
#if defined(ODT_KERNELS_MVE)
  if (odt_mve_dense_forward(k, &w, x, n, y)) return;
#endif
  for (uint32_t b = 0; b < n; b += 4u) {
    forward_columns(k, &w, x, b, least(n - b, 4u), y + (size_t)b * bytes);
  }
}

/* ---- delta --------------------------------------------------------------------------------------
 */

static void widen(const int8_t* dy, uint32_t n, int16_t* out) {
  for (uint32_t i = 0; i < n; i++) out[i] = dy[i];
  for (uint32_t i = n; i < up4(n); i++) out[i] = 0;
}

/* Inputs [col, col + n) of one sample into acc. */
static void delta_tile(const odt_matrix_t* w, const int8_t* dy, uint32_t col, uint32_t n,
                       int32_t* acc) {
  int16_t* v = (int16_t*)(acc + ODT_DELTA_COLS);
  uint32_t per = odt_per_word(w), words = (n + per - 1u) / per;
  odt_clear(acc, words * per);
  for (uint32_t o = 0; o < w->rows; o += ODT_DELTA_ROWS) {
    uint32_t rows = least(w->rows - o, ODT_DELTA_ROWS);
    if (col == 0 || w->rows > ODT_DELTA_ROWS) widen(dy + o, rows, v);
    odt_dot_t(w, o, rows, col, words, v, acc);
  }
}

static int32_t dot_image(const int8_t* w, const int8_t* dy, uint32_t n) {
  int32_t acc = 0;
  for (uint32_t o = 0; o < n; o++) acc += w[o] * dy[o];
  return acc;
}

void odt_dense_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink) {
  odt_matrix_t w = odt_matrix_of(k, k->in->count);
  odt_sink_t scaled = *sink;
  scaled.shl = k->w.shl;
  uint32_t n_out = k->op->n_out, n_in = k->in->count;
  int32_t* acc = k->scratch;
  for (uint32_t b = 0; b < n; b++, dy += n_out) {
    for (uint32_t col = 0; col < n_in; col += ODT_DELTA_COLS) {
      uint32_t cols = least(n_in - col, ODT_DELTA_COLS);
      if (k->w.packed) {
        delta_tile(&w, dy, col, cols, acc);
      } else {
        for (uint32_t j = 0; j < cols; j++) {
          acc[j] = dot_image(k->w.m8 + (size_t)(col + j) * n_out, dy, n_out);
        }
      }
      odt_sink_row(&scaled, b, col, acc, cols);
    }
  }
}

/* ---- gradient -----------------------------------------------------------------------------------
 */

typedef struct {
  odt_layout_t lay;
  int16_t *dy, *x;       /* [blocks][8], [blocks][tile][8]: samples in eights */
  uint32_t blocks, tile; /* how many; inputs held */
  uint32_t col, n;       /* where the tile stands, inputs in it filled up to a multiple of 4 */
  uint64_t x_norm;       /* largest sum of squares over the samples among the tile's inputs */
  /* Sums of squares of dy up to which a row is certain to have no longer gradient than known_bits,
   * to move no weight, to need no clipping. */
  uint32_t known, none, tame;
  int known_bits;
  const int8_t* from;
  uint32_t samples;
} grad_t;

/* n inputs of samples s (even) and s + 1, zeros behind them. */
static void fill_two(const grad_t* t, uint32_t s, const uint8_t* a, const uint8_t* b, uint8_t dtype,
                     uint32_t n) {
  uint8_t* to = (uint8_t*)(t->x + (size_t)(s / 8u) * t->tile * 8u + s % 8u);
  const uint8_t* end = a + n;
  uint32_t two = 0;
  if (dtype == ODT_U8) {
    for (; a != end; to += 16) {
      two = *a++ | (uint32_t)*b++ << 16;
      memcpy(to, &two, 4);
    }
  } else {
    for (; a != end; to += 16) {
      two = ((uint32_t)(int8_t)*a++ & 0xFFFFu) | (uint32_t)(int8_t)*b++ << 16;
      memcpy(to, &two, 4);
    }
  }
  two = 0;
  for (uint32_t j = n; j < t->n; j++, to += 16) memcpy(to, &two, 4);
}

/* The tile's inputs of all samples, eight by eight. */
static void fill_pairs(const grad_t* t, const odt_view_t* x) {
  uint32_t n = least(t->lay.cols - t->col, t->n), skip = t->col * odt_elem_bytes(x->dtype);
  for (uint32_t s = 0; s < 8u * t->blocks; s++) {
    if (s + 1u < t->samples && x->dtype != ODT_S16) { /* two at once */
      fill_two(t, s, odt_sample(x, s) + skip, odt_sample(x, s + 1u) + skip, x->dtype, n);
      s++;
      continue;
    }
    int16_t* to = t->x + (size_t)(s / 8u) * t->tile * 8u + s % 8u;
    uint32_t have = s < t->samples ? n : 0;
    if (have) odt_spread(to, 8, odt_sample(x, s) + skip, x->dtype, 1, n);
    for (uint32_t j = have; j < t->n; j++) to[8u * j] = 0;
  }
}

static uint64_t largest_norm(const grad_t* t, uint8_t dtype) {
  uint64_t most = 0;
  for (uint32_t j = 0; j < t->n; j++) {
    uint64_t norm = 0;
    for (uint32_t i = 0; i < t->blocks; i++) {
      const int16_t* x = t->x + ((size_t)i * t->tile + j) * 8u;
      if (dtype != ODT_S16) {
        norm += (uint32_t)odt_squares8(x);
      } else {
        for (uint32_t r = 0; r < 8u; r++) norm += (uint32_t)(x[r] * x[r]);
      }
    }
    if (norm > most) most = norm;
  }
  return most;
}

/* dy of output o; returns the sum of its squares. */
static inline uint32_t fill_dy(const grad_t* t, uint32_t o) {
  uint32_t norm = 0, step = t->lay.rows;
  const int8_t* p = t->from + o;
  int16_t* to = t->dy;
  if (t->samples == 8u) {
    for (uint32_t s = 0; s < 8u; s++, p += step) to[s] = *p;
    return (uint32_t)odt_squares8(to);
  }
  for (uint32_t s = t->samples; s > 0; s--, p += step) {
    int32_t v = *p;
    *to++ = (int16_t)v;
    norm += (uint32_t)(v * v);
  }
  return norm;
}

static uint32_t largest_row(const grad_t* t) {
  uint32_t best = 0, most = 0;
  for (uint32_t o = 0; o < t->lay.rows; o++) {
    uint32_t norm = fill_dy(t, o);
    if (norm > most) {
      most = norm;
      best = o;
    }
  }
  return best;
}

/* Up to which sum of squares of dy |G| < 2^bits for certain: G^2 is at most the product of both. */
static uint32_t limit(const grad_t* t, int bits) {
  if (bits < 0 || t->x_norm == 0) return bits < 0 ? 0 : UINT32_MAX;
  if (bits >= 31) return UINT32_MAX;
  uint64_t most = (((uint64_t)1 << (2 * bits)) - 1u) / t->x_norm;
  return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

/* The limits of a tile. |d| <= (|G| >> s) + 1. */
static void set_limits(grad_t* t, const odt_update_t* u) {
  int none = u->rounding == ODT_ROUND_HALF_UP ? u->s - 1 : u->s / 2;
  int tame = odt_bitlen64((uint64_t)u->d_clip) - 1 + u->s;
  t->none = u->fast && !u->sum ? limit(t, none) : 0;
  t->tame = u->measure && u->s >= 0 ? limit(t, tame) : 0;
}

static void set_known(grad_t* t, const odt_update_t* u) {
  t->known_bits = u->measure ? odt_bitlen64(u->or_abs) : 31;
  t->known = limit(t, t->known_bits);
}

static void grad_row(const grad_t* t, uint32_t o, odt_update_t* u) {
  int32_t g[ODT_CHUNK];
  if (!u->apply && t->blocks == 1u) {
    u->or_abs |= odt_outer_measure(t->x, t->n, t->dy);
    return;
  }
  if (t->blocks == 1u && odt_outer_update(u, &t->lay, o, t->col, t->x, t->n, t->dy)) return;
  for (uint32_t j = 0; j < t->n; j += ODT_CHUNK) {
    uint32_t n = least(t->n - j, ODT_CHUNK);
    for (uint32_t i = 0; i < t->blocks; i++) {
      odt_outer(g, t->x + ((size_t)i * t->tile + j) * 8u, n, t->dy + 8u * i, i > 0);
    }
    odt_update_words(u, &t->lay, o, t->col + j, g, n);
  }
}

/* Row o, unless its gradients can neither be longer than what was measured nor move a weight. */
static void visit_row(grad_t* t, uint32_t o, odt_update_t* u) {
  uint32_t norm = fill_dy(t, o);
  if (norm == 0) return;
  bool known = norm <= t->known;
  if (known && (!u->apply || norm <= t->none)) return;
  u->tame = known && norm <= t->tame;
  grad_row(t, o, u);
  u->tame = false;
  if (u->measure && odt_bitlen64(u->or_abs) != t->known_bits) set_known(t, u);
}

void odt_dense_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                    odt_update_t* u) {
  grad_t t = {
      .lay = odt_layout(ODT_OP_LINEAR, k->op->n_weights, k->op->n_out, u->m16 ? ODT_S16 : ODT_S8),
      .blocks = (n + 7u) / 8u,
      .from = dy,
      .samples = n};
  t.tile = grad_tile(k->op, k->in->count, t.blocks);
  t.dy = k->scratch;
  t.x = t.dy + 8u * t.blocks;
  memset(t.dy, 0, 16u * t.blocks);
  /* The largest gradients first: the others need no measuring then. */
  uint32_t first = u->measure ? largest_row(&t) : 0;
  for (t.col = 0; t.col < t.lay.cols; t.col += t.tile) {
    t.n = least(up4(t.lay.cols - t.col), t.tile);
    if (u->kept) {
      t.x_norm = u->kept_norm;
    } else {
      fill_pairs(&t, x);
      t.x_norm = largest_norm(&t, x->dtype);
    }
    set_limits(&t, u);
    set_known(&t, u);
    visit_row(&t, first, u);
    for (uint32_t o = 0; o < t.lay.rows; o++) {
      if (o != first) visit_row(&t, o, u);
    }
  }
  u->kept = !u->apply && t.tile >= t.lay.cols;
  u->kept_norm = t.x_norm;
}

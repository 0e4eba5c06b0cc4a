/* 2-D convolutions: weights [O][I/g,kH,kW]. Positions of the output are the columns that the inner
 * loops of matrix.h work on; their inputs ("taps") are gathered a tile at a time. */
#include "kernels/conv.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t up4(uint32_t n) { return (n + 3u) & ~3u; }

odt_conv_t odt_conv(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out) {
  odt_conv_t c = {.h_in = in->dims[1],
                  .w_in = in->dims[2],
                  .h_out = out->dims[1],
                  .w_out = out->dims[2],
                  .channels = (uint32_t)in->dims[0] / op->groups,
                  .filters = (uint32_t)out->dims[0] / op->groups,
                  .k_h = op->k_h,
                  .k_w = op->k_w,
                  .stride_h = op->stride_h,
                  .stride_w = op->stride_w,
                  .dil_h = op->dil_h,
                  .dil_w = op->dil_w,
                  .pad_t = op->pad_t,
                  .pad_l = op->pad_l};
  c.taps = c.channels * c.k_h * c.k_w;
  c.positions = c.h_out * c.w_out;
  bool whole_rows = c.k_w == c.w_in && c.w_out == 1 && c.pad_l == 0 && c.pad_t == 0 &&
                    c.dil_h == 1 && c.dil_w == 1 && op->pad_b == 0;
  if (whole_rows) { /* rows are read whole: one long row */
    c.stride_w = c.stride_h * c.w_in;
    c.w_out = c.h_out;
    c.k_w *= c.k_h;
    c.w_in *= c.h_in;
    c.k_h = c.h_in = c.h_out = c.stride_h = 1;
  }
  return c;
}

/* Outputs [lo, hi) along one axis whose input for a tap at `at` (= tap * dil - pad) lies inside. */
typedef struct {
  uint32_t lo, hi;
} span_t;

static span_t span_of(int32_t at, uint32_t stride, uint32_t n_in, uint32_t n_out) {
  int32_t last = (int32_t)n_in - 1 - at;
  span_t s = {at >= 0 ? 0u : ((uint32_t)-at + stride - 1u) / stride,
              last < 0 ? 0u : (uint32_t)last / stride + 1u};
  if (s.hi > n_out) s.hi = n_out;
  if (s.lo > s.hi) s.lo = s.hi;
  return s;
}

/* No column of the tile is left as it was. */
static void clear_columns(const odt_gather_t* g) {
  if (g->order == ODT_FOR_DOT4 && g->count < 4u) odt_clear((int32_t*)(void*)g->to, 2u * up4(g->n));
}

/* ---- forward ------------------------------------------------------------------------------------
 */

typedef struct {
  const odt_kernel_t* k;
  odt_conv_t c;
  odt_matrix_t w;
  uint8_t dtype;
} run_t;

static void store_positions(const run_t* r, uint32_t o, uint32_t rows, uint32_t first,
                            uint32_t count, const int32_t* acc, uint8_t* y) {
  uint32_t step = count > 1u ? 4u : 1u;
  for (uint32_t i = 0; i < rows; i++, acc += step) {
    odt_requant_t q = odt_requant_of(r->k->op, r->k->off, o + i, r->k->w.shl);
    uint32_t at = (o + i) * r->c.positions + first;
    if (r->k->out->dtype != ODT_S16 && odt_requant_plain(&q)) {
      for (uint32_t j = 0; j < count; j++) y[at + j] = (uint8_t)odt_requant_shift(&q, acc[j]);
      continue;
    }
    for (uint32_t j = 0; j < count; j++) {
      odt_store(y, r->k->out->dtype, at + j, odt_requant(&q, acc[j]));
    }
  }
}

/* Up to four positions of the filters [o0, o0 + filters) of one group. */
static void forward_positions(const run_t* r, uint32_t o0, const uint8_t* x, uint32_t first,
                              uint32_t count, uint8_t* y) {
  int32_t* acc = r->k->scratch;
  uint32_t taps = r->c.taps, filters = r->c.filters;
  odt_gather_t g; /* segments as they are */
  g.to = (int16_t*)(acc + 4u * least(filters, ODT_TILE_ROWS));
  g.order = count > 1u ? ODT_FOR_DOT4 : ODT_FOR_DOT1;
  g.wide = r->w.wide;
  g.first = first;
  g.count = count;
  for (uint32_t o = 0; o < filters; o += ODT_TILE_ROWS) {
    uint32_t rows = least(filters - o, ODT_TILE_ROWS);
    odt_clear(acc, 4u * rows);
    for (g.tap = 0; g.tap < taps; g.tap += ODT_TILE_COLS) {
      g.n = least(taps - g.tap, ODT_TILE_COLS);
      if (o == 0 || taps > ODT_TILE_COLS) {
        clear_columns(&g);
        odt_conv_gather(&r->c, &g, x, r->dtype);
      }
      if (count > 1u) {
        odt_dot4(&r->w, o0 + o, rows, g.tap, g.n, g.to, acc);
      } else {
        odt_dot1(&r->w, o0 + o, rows, g.tap, g.n, g.to, acc);
      }
    }
    store_positions(r, o0 + o, rows, first, count, acc, y);
  }
}

void odt_conv_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y) {
  run_t r = {.k = k, .c = odt_conv(k->op, k->in, k->out), .dtype = x->dtype};
  r.w = odt_matrix_of(k, r.c.taps);
  uint32_t bytes = k->out->count * odt_elem_bytes(k->out->dtype);
  uint32_t group = r.c.channels * r.c.h_in * r.c.w_in * odt_elem_bytes(x->dtype);
  for (uint32_t b = 0; b < n; b++, y += bytes) {
    const uint8_t* xb = odt_sample(x, b);
    for (uint32_t g = 0; g < k->op->groups; g++) {
      for (uint32_t p = 0; p < r.c.positions; p += 4u) {
        forward_positions(&r, g * r.c.filters, xb + g * group, p, least(r.c.positions - p, 4u), y);
      }
    }
  }
}

/* ---- delta: every output position adds to the inputs of its window ------------------------------
 */

/* A ring of the input rows that the current output row can reach. */
typedef struct {
  const odt_kernel_t* k;
  odt_conv_t c;
  odt_matrix_t w;
  const odt_sink_t* sink;
  int32_t *ring, *sums;    /* [channels][rows][w_in]; [taps] of one position */
  int16_t* v;              /* dy of one position's filters */
  uint32_t rows;           /* in the ring */
  uint32_t b, group, done; /* done: input rows handed on */
} pull_t;

static uint32_t ring_rows(const odt_conv_t* c) {
  return least((c->k_h - 1u) * c->dil_h + 1u, c->h_in);
}

/* Hands on the rows below `end`. */
static void hand_on(pull_t* p, uint32_t end) {
  for (; p->done < end; p->done++) {
    for (uint32_t ch = 0; ch < p->c.channels; ch++) {
      int32_t* row = p->ring + (ch * p->rows + p->done % p->rows) * p->c.w_in;
      uint32_t at = ((p->group * p->c.channels + ch) * p->c.h_in + p->done) * p->c.w_in;
      odt_sink_row(p->sink, p->b, at, row, p->c.w_in);
      odt_clear(row, p->c.w_in);
    }
  }
}

/* The sums of one position into the ring. */
static void scatter(const pull_t* p, uint32_t oy, uint32_t ox) {
  const odt_conv_t* c = &p->c;
  const int32_t* sums = p->sums;
  int32_t ix0 = (int32_t)(ox * c->stride_w) - (int32_t)c->pad_l;
  bool inner = c->dil_w == 1 && ix0 >= 0 && ix0 + (int32_t)c->k_w <= (int32_t)c->w_in;
  for (uint32_t ch = 0; ch < c->channels; ch++) {
    int32_t* plane = p->ring + ch * p->rows * c->w_in;
    for (uint32_t ky = 0; ky < c->k_h; ky++, sums += c->k_w) {
      int32_t iy = (int32_t)(oy * c->stride_h + ky * c->dil_h) - (int32_t)c->pad_t;
      if (iy < 0 || iy >= (int32_t)c->h_in) continue;
      int32_t* row = plane + (uint32_t)iy % p->rows * c->w_in;
      int32_t ix = ix0;
      if (inner) {
        for (uint32_t kx = 0; kx < c->k_w; kx++) row[ix0 + (int32_t)kx] += sums[kx];
        continue;
      }
      for (uint32_t kx = 0; kx < c->k_w; kx++, ix += (int32_t)c->dil_w) {
        if (ix >= 0 && ix < (int32_t)c->w_in) row[ix] += sums[kx];
      }
    }
  }
}

/* dy of a position's filters, widened; false where all are 0. */
static bool take_dy(const pull_t* p, const int8_t* dy, uint32_t o0, uint32_t rows, uint32_t at) {
  int32_t any = 0;
  for (uint32_t o = 0; o < rows; o++) {
    int16_t d = dy[(o0 + o) * p->c.positions + at];
    p->v[o] = d;
    any |= d;
  }
  if (rows % 2u) p->v[rows] = 0;
  return any != 0;
}

static void pull_position(const pull_t* p, const int8_t* dy, uint32_t oy, uint32_t ox) {
  uint32_t per = odt_per_word(&p->w), words = odt_words(&p->w);
  bool some = false;
  for (uint32_t o = 0; o < p->c.filters; o += ODT_DELTA_ROWS) {
    uint32_t rows = least(p->c.filters - o, ODT_DELTA_ROWS), o0 = p->group * p->c.filters + o;
    if (!take_dy(p, dy, o0, rows, oy * p->c.w_out + ox)) continue;
    if (!some) odt_clear(p->sums, words * per);
    some = true;
    odt_dot_t(&p->w, o0, rows, 0, words, p->v, p->sums);
  }
  if (some) scatter(p, oy, ox);
}

static void pull_group(pull_t* p, const int8_t* dy) {
  p->done = 0;
  for (uint32_t oy = 0; oy < p->c.h_out; oy++) {
    int32_t first = (int32_t)(oy * p->c.stride_h) - (int32_t)p->c.pad_t;
    if (first > 0) hand_on(p, least((uint32_t)first, p->c.h_in));
    for (uint32_t ox = 0; ox < p->c.w_out; ox++) pull_position(p, dy, oy, ox);
  }
  hand_on(p, p->c.h_in);
}

static uint32_t ring_values(const odt_conv_t* c) { return c->channels * ring_rows(c) * c->w_in; }

void odt_conv_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink) {
  pull_t p = {.k = k, .c = odt_conv(k->op, k->in, k->out), .sink = sink, .ring = k->scratch};
  odt_sink_t scaled = *sink;
  scaled.shl = k->w.shl;
  p.sink = &scaled;
  p.w = odt_matrix_of(k, p.c.taps);
  p.rows = ring_rows(&p.c);
  p.sums = p.ring + ring_values(&p.c);
  p.v = (int16_t*)(p.sums + up4(p.c.taps));
  memset(p.ring, 0, 4u * ring_values(&p.c));
  for (p.b = 0; p.b < n; p.b++) {
    for (p.group = 0; p.group < k->op->groups; p.group++) {
      pull_group(&p, dy + (size_t)p.b * k->out->count);
    }
  }
}

/* ---- gradient -----------------------------------------------------------------------------------
 */

/* Gradients of `rows` filters by `tile` taps stay in the scratch while all positions of the batch
 * add to them. */
typedef struct {
  const odt_kernel_t* k;
  odt_conv_t c;
  odt_layout_t lay;
  const odt_view_t* x;
  const int8_t* dy;
  uint32_t n, tile, rows;
  int32_t* sums;
  int16_t *v, *to;
} grad_t;

static uint32_t grad_rows(const odt_conv_t* c, uint32_t tile) {
  uint32_t fit = 2048u / (4u * tile);
  return least(c->filters, fit);
}
static uint32_t grad_tile(const odt_conv_t* c) { return least(up4(c->taps), 32u); }

static void take_eight(const grad_t* t, const int8_t* dy, uint32_t count) {
  for (uint32_t i = 0; i < 8u; i++) t->v[i] = i < count ? dy[i] : 0;
}

/* Eight positions of one sample. */
static void grad_positions(const grad_t* t, odt_gather_t* g, uint32_t b, uint32_t o0,
                           uint32_t rows) {
  uint32_t group = o0 / t->c.filters * t->c.channels;
  const uint8_t* x =
      odt_sample(t->x, b) + (size_t)group * t->c.h_in * t->c.w_in * odt_elem_bytes(t->x->dtype);
  odt_conv_gather(&t->c, g, x, t->x->dtype);
  for (uint32_t i = 0; i < rows; i++) {
    size_t at = ((size_t)b * t->k->op->n_out + o0 + i) * t->c.positions + g->first;
    take_eight(t, t->dy + at, g->count);
    odt_outer(t->sums + i * t->tile, t->to, up4(g->n), t->v, true);
  }
}

static void grad_sums(const grad_t* t, uint32_t o0, uint32_t rows, uint32_t tap, uint32_t n) {
  odt_gather_t g;
  g.to = t->to;
  g.order = ODT_FOR_OUTER;
  g.wide = false;
  g.tap = tap;
  g.n = n;
  odt_clear(t->sums, t->rows * t->tile);
  for (uint32_t b = 0; b < t->n; b++) {
    for (g.first = 0; g.first < t->c.positions; g.first += 8u) {
      g.count = least(t->c.positions - g.first, 8u);
      grad_positions(t, &g, b, o0, rows);
    }
  }
}

static void grad_all(const grad_t* t, odt_update_t* u) {
  bool whole = t->rows == t->lay.rows && t->tile >= t->c.taps;
  for (uint32_t group = 0; group < t->k->op->groups; group++) {
    for (uint32_t o = 0; o < t->c.filters; o += t->rows) {
      uint32_t rows = least(t->c.filters - o, t->rows), o0 = group * t->c.filters + o;
      for (uint32_t tap = 0; tap < t->c.taps; tap += t->tile) {
        uint32_t n = least(t->c.taps - tap, t->tile);
        if (!u->kept) grad_sums(t, o0, rows, tap, n);
        for (uint32_t i = 0; i < rows; i++) {
          odt_update_words(u, &t->lay, o0 + i, tap, t->sums + i * t->tile, up4(n));
        }
      }
    }
  }
  u->kept = whole && !u->apply;
}

/* Where an int32 could overflow: one weight at a time, in int64. */
static int64_t tap_gradient(const grad_t* t, uint32_t o, uint32_t channel, uint32_t ky,
                            uint32_t kx) {
  const odt_conv_t* c = &t->c;
  int32_t at_y = (int32_t)(ky * c->dil_h) - (int32_t)c->pad_t;
  int32_t at_x = (int32_t)(kx * c->dil_w) - (int32_t)c->pad_l;
  span_t sy = span_of(at_y, c->stride_h, c->h_in, c->h_out);
  span_t sx = span_of(at_x, c->stride_w, c->w_in, c->w_out);
  uint32_t plane = (o / c->filters * c->channels + channel) * c->h_in;
  int64_t g = 0;
  for (uint32_t b = 0; b < t->n; b++) {
    const uint8_t* x = odt_sample(t->x, b);
    const int8_t* dy = t->dy + ((size_t)b * t->k->op->n_out + o) * c->positions;
    for (uint32_t oy = sy.lo; oy < sy.hi; oy++) {
      uint32_t row = (plane + (uint32_t)((int32_t)(oy * c->stride_h) + at_y)) * c->w_in;
      for (uint32_t ox = sx.lo; ox < sx.hi; ox++) {
        uint32_t i = row + (uint32_t)((int32_t)(ox * c->stride_w) + at_x);
        g += (int64_t)odt_load(x, t->x->dtype, i) * dy[oy * c->w_out + ox];
      }
    }
  }
  return g;
}

static void grad_long(const grad_t* t, odt_update_t* u) {
  uint32_t index = 0;
  for (uint32_t o = 0; o < t->lay.rows; o++) {
    for (uint32_t ch = 0; ch < t->c.channels; ch++) {
      for (uint32_t k = 0; k < t->c.k_h * t->c.k_w; k++) {
        int64_t g = tap_gradient(t, o, ch, k / t->c.k_w, k % t->c.k_w);
        odt_update_one(u, index, odt_layout_index(&t->lay, index), g);
        index++;
      }
    }
  }
}

void odt_conv_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                   odt_update_t* u) {
  grad_t t = {.k = k, .c = odt_conv(k->op, k->in, k->out), .x = x, .dy = dy, .n = n};
  t.lay = odt_layout(ODT_OP_CONV2D, k->op->n_weights, k->op->n_out, u->m16 ? ODT_S16 : ODT_S8);
  t.tile = grad_tile(&t.c);
  t.rows = grad_rows(&t.c, t.tile);
  t.sums = k->scratch;
  t.v = (int16_t*)(t.sums + t.rows * t.tile);
  t.to = t.v + 8;
  uint64_t largest = x->dtype == ODT_S16 ? 32768u : x->dtype == ODT_U8 ? 255u : 128u;
  if (128u * largest * n * t.c.positions <= (1u << 30)) {
    grad_all(&t, u);
  } else {
    grad_long(&t, u);
  }
}

uint32_t odt_conv_scratch(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                          uint32_t batch) {
  odt_conv_t c = odt_conv(op, in, out);
  uint32_t tile = grad_tile(&c);
  uint32_t forward = 16u * least(c.filters, ODT_TILE_ROWS) + 8u * least(up4(c.taps), ODT_TILE_COLS);
  uint32_t grad = 4u * grad_rows(&c, tile) * tile + 16u + 16u * tile;
  uint32_t delta =
      4u * ring_values(&c) + 4u * up4(c.taps) + 2u * (least(c.filters, ODT_DELTA_ROWS) + 1u);
  uint32_t most = forward > grad ? forward : grad;
  return (most > delta ? most : delta) + ODT_BLOCK_BYTES * ((batch + 7u) / 8u);
}

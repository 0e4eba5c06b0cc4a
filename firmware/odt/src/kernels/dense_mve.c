/* Forward pass of dense layers with Helium, eight bits by eight: tiles of inputs as int8 (uint8
 * less 128, made up for by 128 times the sum of the weights), sums in the scratch, rule 1.2 on four
 * outputs at once. */
#include "kernels/mve.h"

#if defined(ODT_KERNELS_MVE)

#include <arm_mve.h>

#define TILE ODT_TILE_COLS /* a multiple of 16 */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

typedef struct {
  const odt_kernel_t* k;
  const odt_matrix_t* w;
  bool is_unsigned;
  uint32_t bytes; /* of a row of weights */
  int8_t* tile;   /* [blocks of 16 inputs][columns][16] */
  int32_t* acc;   /* [rows][columns] */
} run_t;

static void fill(const run_t* r, const uint8_t* x, uint32_t n, uint32_t columns, uint32_t c) {
  const uint8x16_t flip = vdupq_n_u8(r->is_unsigned ? 0x80 : 0);
  uint8_t* to = (uint8_t*)r->tile + 16u * c;
  for (uint32_t j = 0; j < n; j += 16u, to += 16u * columns) {
    vstrbq_u8(to, veorq_u8(vldrbq_z_u8(x + j, vctp8q(n - j)), flip));
  }
}

static int32_t row_sum(const uint8_t* w, uint32_t n) {
  int32_t sum = 0;
  for (uint32_t j = 0; j < n; j += 16u) {
    sum = vaddvaq_s8(sum, vldrbq_z_s8((const int8_t*)w + j, vctp8q(n - j)));
  }
  return sum;
}

/* Where the sums of a tile begin: at the first tile 0, with uint8 inputs what was taken off. */
static void begin(const run_t* r, const uint8_t* w, uint32_t rows, uint32_t n, uint32_t columns,
                  bool first) {
  int32_t* a = r->acc;
  for (uint32_t i = 0; i < rows; i++, w += r->bytes) {
    int32_t start = r->is_unsigned ? 128 * row_sum(w, n) : 0;
    for (uint32_t c = 0; c < columns; c++, a++) *a = first ? start : *a + start;
  }
}

static void dot_four(const run_t* r, const uint8_t* w, uint32_t rows, uint32_t n) {
  int32_t last[8] = {0};
  odt_mve_dot_t d = {.x = r->tile, .end = r->tile + (n & ~15u) * 4u, .tail = n & 15u};
  int32_t* acc = r->acc;
  for (uint32_t i = 0; i < rows; i += 2u, w += 2u * r->bytes, acc += 8) {
    bool both = i + 1u < rows;
    d.w0 = w;
    d.w1 = both ? w + r->bytes : w;
    d.acc = both ? acc : last;
    for (uint32_t c = 0; !both && c < 4u; c++) last[c] = acc[c];
    odt_mve_dot8(&d);
    for (uint32_t c = 0; !both && c < 4u; c++) acc[c] = last[c];
  }
}

static void dot_one(const run_t* r, const uint8_t* w, uint32_t rows, uint32_t n) {
  for (uint32_t i = 0; i < rows; i += 2u, w += 2u * r->bytes) {
    const int8_t *p = (const int8_t*)w, *q = i + 1u < rows ? p + r->bytes : p, *x = r->tile;
    int32_t a = r->acc[i], b = 0;
    for (uint32_t j = 0; j < n; j += 16u) {
      mve_pred16_t some = vctp8q(n - j);
      int8x16_t v = vldrbq_s8(x + j);
      a = vmladavaq_s8(a, vldrbq_z_s8(p + j, some), v);
      b = vmladavaq_s8(b, vldrbq_z_s8(q + j, some), v);
    }
    r->acc[i] = a;
    if (i + 1u < rows) r->acc[i + 1u] += b;
  }
}

/* Rule 1.2 for outputs [o, o + rows) of one column. */
static void store(const run_t* r, uint32_t o, uint32_t rows, uint32_t columns, uint32_t c,
                  uint8_t* y) {
  const odt_op_t* op = r->k->op;
  const uint32x4_t at = vmulq_n_u32(vidupq_n_u32(0, 1), columns);
  const int32x4_t lo = vdupq_n_s32(op->clip_lo), hi = vdupq_n_s32(op->clip_hi);
  for (uint32_t i = 0; i < rows; i += 4u) {
    mve_pred16_t some = vctp32q(rows - i);
    int32x4_t a = vldrwq_gather_shifted_offset_z_s32(r->acc + i * columns + c, at, some);
    a = vqaddq_s32(vshlq_r_s32(a, r->k->w.shl), vldrwq_z_s32(r->k->off + o + i, some));
    a = vshlq_s32(a, vnegq_s32(vldrbq_z_s32(op->k_out + o + i, some)));
    a = vminq_s32(vmaxq_s32(a, lo), hi);
    if (r->k->out->dtype == ODT_S16) {
      vstrhq_p_s32((int16_t*)(void*)y + o + i, a, some);
    } else {
      vstrbq_p_s32((int8_t*)y + o + i, a, some);
    }
  }
}

/* One or four samples from b on. */
static void run(const run_t* r, const odt_view_t* x, uint32_t b, uint32_t columns, uint8_t* y) {
  uint32_t rows = r->w->rows, cols = r->w->cols;
  uint32_t y_bytes = r->k->out->count * odt_elem_bytes(r->k->out->dtype);
  for (uint32_t o = 0; o < rows; o += ODT_TILE_ROWS) {
    uint32_t some = least(rows - o, ODT_TILE_ROWS);
    for (uint32_t col = 0; col < cols; col += TILE) {
      uint32_t n = least(cols - col, TILE);
      const uint8_t* w = r->w->base + (size_t)o * r->bytes + col;
      for (uint32_t c = 0; (o == 0 || cols > TILE) && c < columns; c++) {
        fill(r, odt_sample(x, b + c) + col, n, columns, c);
      }
      begin(r, w, some, n, columns, col == 0);
      if (columns == 4u) {
        dot_four(r, w, some, n);
      } else {
        dot_one(r, w, some, n);
      }
    }
    for (uint32_t c = 0; c < columns; c++) store(r, o, some, columns, c, y + c * y_bytes);
  }
}

bool odt_mve_dense_forward(const odt_kernel_t* k, const odt_matrix_t* w, const odt_view_t* x,
                           uint32_t n, uint8_t* y) {
  if (w->wide || !w->packed || x->dtype == ODT_S16 || k->op->mult) return false;
  uint32_t y_bytes = k->out->count * odt_elem_bytes(k->out->dtype);
  run_t r = {.k = k, .w = w, .is_unsigned = x->dtype == ODT_U8, .bytes = 4u * odt_words(w)};
  r.acc = k->scratch;
  r.tile = (int8_t*)(r.acc + 4u * least(w->rows, ODT_TILE_ROWS));
  uint32_t b = 0;
  for (; b + 4u <= n; b += 4u) run(&r, x, b, 4, y + (size_t)b * y_bytes);
  for (; b < n; b++) run(&r, x, b, 1, y + (size_t)b * y_bytes);
  return true;
}

#endif

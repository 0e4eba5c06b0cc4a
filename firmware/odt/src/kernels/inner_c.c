/* The inner loops in plain C, for any core. */
#include "kernels/matrix.h"

#if !defined(ODT_KERNELS_DSP) && !defined(ODT_KERNELS_MVE) && !defined(ODT_KERNELS_X86)

/* One row from a column on; its words follow each other (ODT_PANEL is 1). */
static const uint8_t* row_at(const odt_matrix_t* w, uint32_t row, uint32_t col) {
  uint32_t bytes = w->packed ? 4u * odt_words(w) : w->cols;
  return w->base + (size_t)row * bytes + (size_t)col * (w->wide ? 2u : 1u);
}

static inline int32_t value(const odt_matrix_t* w, const uint8_t* p, uint32_t j) {
  if (w->wide) return (((const int16_t*)(const void*)p)[j] + w->half) >> w->f;
  return ((const int8_t*)p)[j];
}

void odt_fill4(int16_t* x, bool wide, uint32_t c, const uint8_t* from, uint8_t dtype, uint32_t n) {
  (void)wide;
  odt_spread(x + c, 4, from, dtype, 1, n);
  for (; n % 4u; n++) x[4u * n + c] = 0;
}

void odt_fill1(int16_t* x, bool wide, const uint8_t* from, uint8_t dtype, uint32_t n) {
  (void)wide;
  odt_spread(x, 1, from, dtype, 1, n);
  for (; n % 4u; n++) x[n] = 0;
}

void odt_dot4(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  for (uint32_t r = 0; r < rows; r++, acc += 4) {
    const uint8_t* p = row_at(w, row + r, col);
    int32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    const int16_t* xj = x;
    for (uint32_t j = 0; j < n; j++, xj += 4) {
      int32_t v = value(w, p, j);
      a0 += v * xj[0];
      a1 += v * xj[1];
      a2 += v * xj[2];
      a3 += v * xj[3];
    }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
  }
}

void odt_dot1(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t* p = row_at(w, row + r, col);
    int32_t a = acc[r];
    for (uint32_t j = 0; j < n; j++) a += value(w, p, j) * x[j];
    acc[r] = a;
  }
}

void odt_dot_t(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t words,
               const int16_t* v, int32_t* acc) {
  uint32_t left = w->cols - col, n = words * odt_per_word(w);
  if (n > left) n = left;
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t* p = row_at(w, row + r, col);
    int32_t d = v[r];
    if (d == 0) continue;
    for (uint32_t j = 0; j < n; j++) acc[j] += value(w, p, j) * d;
  }
}

void odt_outer(int32_t* g, const int16_t* x, uint32_t n, const int16_t* dy, bool add) {
  for (uint32_t j = 0; j < n; j++, x += 8) {
    int32_t a = add ? g[j] : 0;
    for (uint32_t s = 0; s < 8u; s++) a += x[s] * dy[s];
    g[j] = a;
  }
}

uint32_t odt_outer_measure(const int16_t* x, uint32_t n, const int16_t* dy) {
  uint32_t or_abs = 0;
  for (uint32_t j = 0; j < n; j++, x += 8) {
    int32_t a = 0;
    for (uint32_t s = 0; s < 8u; s++) a += x[s] * dy[s];
    or_abs |= a < 0 ? 0u - (uint32_t)a : (uint32_t)a;
  }
  return or_abs;
}

void odt_update_prepare(odt_update_t* u) { u->fast = false; }

bool odt_outer_update(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int16_t* x, uint32_t n, const int16_t* dy) {
  (void)u, (void)lay, (void)o, (void)col, (void)x, (void)n, (void)dy;
  return false;
}

void odt_update_words(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int32_t* g, uint32_t n) {
  odt_update_values(u, lay, o, col, g, n);
}

#endif

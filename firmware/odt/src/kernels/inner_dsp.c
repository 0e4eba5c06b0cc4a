/* The inner loops with the DSP extension: SXTB16 makes two pairs of int16 out of a word of weights,
 * SMLAD multiplies and adds a pair. The loops that take most of the time are written out for the
 * registers of an Arm core; beside each stands what it does, for other machines. */
#include "kernels/matrix.h"

#if defined(ODT_KERNELS_DSP)

#include "kernels/dsp.h"

/* ---- operands -----------------------------------------------------------------------------------
 */

static inline uint32_t zero_extend(uint32_t w) { return w & 0x00FF00FFu; }

/* Words of four bytes as pairs (0, 2) and (1, 3), `gap` words apart. Returns how many values. */
static uint32_t fill_words(uint32_t* x, uint32_t step, uint32_t gap, const uint8_t* from,
                           uint8_t dtype, uint32_t n) {
  const uint8_t* end = from + n / 4u * 4u;
  if (dtype == ODT_U8) {
    for (; from != end; from += 4, x += step) {
      uint32_t w = dsp_load(from);
      x[0] = zero_extend(w);
      x[gap] = zero_extend(w >> 8);
    }
  } else {
    for (; from != end; from += 4, x += step) {
      uint32_t w = dsp_load(from);
      x[0] = dsp_sxtb16(w);
      x[gap] = dsp_sxtb16_ror8(w);
    }
  }
  return n / 4u * 4u;
}

void odt_fill4(int16_t* x, bool wide, uint32_t c, const uint8_t* from, uint8_t dtype, uint32_t n) {
  uint32_t j = 0, tile = (n + 3u) & ~3u;
  if (!wide && dtype != ODT_S16) {
    j = fill_words((uint32_t*)(void*)x + c, 8, 4, from, dtype, n);
  }
  for (; j < tile; j++) {
    x[odt_slot4(wide, tile, j, c)] = (int16_t)(j < n ? odt_load(from, dtype, j) : 0);
  }
}

void odt_fill1(int16_t* x, bool wide, const uint8_t* from, uint8_t dtype, uint32_t n) {
  uint32_t j = 0, tile = (n + 3u) & ~3u;
  if (!wide && dtype != ODT_S16) j = fill_words((uint32_t*)(void*)x, 2, 1, from, dtype, n);
  for (; j < tile; j++) {
    x[odt_slot1(wide, j)] = (int16_t)(j < n ? odt_load(from, dtype, j) : 0);
  }
}

/* ---- dot products of rows -----------------------------------------------------------------------
 */

/* Where a row's words lie. */
typedef struct {
  const uint8_t* p;
  uint32_t step; /* bytes from one to the next */
} words_t;

static words_t words_of(const odt_matrix_t* w, uint32_t row, uint32_t col) {
  words_t r = {w->base, 4};
  if (!w->packed) {
    r.p += (size_t)row * w->cols + col;
    return r;
  }
  uint32_t rows = odt_panel_rows(w->rows, row);
  r.step = 4u * rows;
  r.p += 4u * (odt_row_word(w->rows, odt_words(w), row) + col / odt_per_word(w) * rows);
  return r;
}

/* A word of int8 weights times four columns; acc: four sums. */
static inline void mac4(uint32_t w, const uint32_t* x, int32_t* acc) {
  uint32_t even = dsp_sxtb16(w), odd = dsp_sxtb16_ror8(w);
  for (uint32_t c = 0; c < 4; c++) {
    acc[c] = dsp_smlad(odd, x[4 + c], dsp_smlad(even, x[c], acc[c]));
  }
}

#if defined(__ARM_FEATURE_DSP)
#define MAC4_STEP(step)               \
  "ldr %[w], [%[p]], #" step          \
  "\n\t"                              \
  "ldmia %[x]!, {r2, r3, r4, r5}\n\t" \
  "sxtb16 %[t], %[w], ror #8\n\t"     \
  "sxtb16 %[w], %[w]\n\t"             \
  "smlad %[a0], %[w], r2, %[a0]\n\t"  \
  "smlad %[a1], %[w], r3, %[a1]\n\t"  \
  "smlad %[a2], %[w], r4, %[a2]\n\t"  \
  "smlad %[a3], %[w], r5, %[a3]\n\t"  \
  "ldmia %[x]!, {r2, r3, r4, r5}\n\t" \
  "smlad %[a0], %[t], r2, %[a0]\n\t"  \
  "smlad %[a1], %[t], r3, %[a1]\n\t"  \
  "smlad %[a2], %[t], r4, %[a2]\n\t"  \
  "smlad %[a3], %[t], r5, %[a3]\n\t"
#define DEFINE_DOT4(name, step)                                                                   \
  static void name(const uint8_t* p, const uint32_t* x, uint32_t words, int32_t* acc) {           \
    int32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];                                   \
    const uint32_t* end = x + 8u * words;                                                         \
    uint32_t w, t;                                                                                \
    if (words % 2u) {                                                                             \
      __asm__ volatile(MAC4_STEP(step)                                                            \
                       : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [p] "+r"(p), \
                         [x] "+r"(x), [w] "=&r"(w), [t] "=&r"(t)                                  \
                       :                                                                          \
                       : "r2", "r3", "r4", "r5", "memory");                                       \
    }                                                                                             \
    if (x != end) {                                                                               \
      __asm__ volatile("1:\n\t" MAC4_STEP(step) MAC4_STEP(step) "cmp %[x], %[end]\n\t"     \
                       "bne 1b"                                                            \
                       : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3),       \
                         [p] "+r"(p), [x] "+r"(x), [w] "=&r"(w), [t] "=&r"(t)              \
                       : [end] "r"(end)                                                    \
                       : "r2", "r3", "r4", "r5", "cc", "memory");      \
    }                                                                                             \
    acc[0] = a0;                                                                                  \
    acc[1] = a1;                                                                                  \
    acc[2] = a2;                                                                                  \
    acc[3] = a3;                                                                                  \
  }
#else
#define DEFINE_DOT4(name, step)                                                               \
  static void name(const uint8_t* p, const uint32_t* x, uint32_t words, int32_t* acc) {       \
    for (uint32_t i = 0; i < words; i++, p += atoi_##name, x += 8) mac4(dsp_load(p), x, acc); \
  }
enum { atoi_dot4_by4 = 4, atoi_dot4_by8 = 8, atoi_dot4_by12 = 12, atoi_dot4_by16 = 16 };
#endif
DEFINE_DOT4(dot4_by4, "4")
DEFINE_DOT4(dot4_by8, "8")
DEFINE_DOT4(dot4_by12, "12")
DEFINE_DOT4(dot4_by16, "16")

/* int16 weights M: the view (M + half) >> f of both halves at once. (M + half) << (8 - f) has it in
 * the upper bytes; what runs from the lower into the upper half stays below them. */
static inline uint32_t view2(uint32_t m, uint32_t half, uint32_t left) {
  return dsp_sxtb16_ror8(dsp_sadd16(m, half) << left);
}

static void dot4_wide(const odt_matrix_t* w, words_t r, const uint32_t* x, uint32_t words,
                      int32_t* acc) {
  uint32_t half = (uint32_t)w->half * 0x10001u, left = 8u - (uint32_t)w->f;
  int32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
  for (uint32_t i = 0; i < words; i++, r.p += r.step, x += 4) {
    uint32_t v = view2(dsp_load(r.p), half, left);
    a0 = dsp_smlad(v, x[0], a0);
    a1 = dsp_smlad(v, x[1], a1);
    a2 = dsp_smlad(v, x[2], a2);
    a3 = dsp_smlad(v, x[3], a3);
  }
  acc[0] = a0;
  acc[1] = a1;
  acc[2] = a2;
  acc[3] = a3;
}

/* The last values of a row of the image, which has no padding to run into. */
static uint32_t tail_word(const uint8_t* p, uint32_t n) {
  uint32_t w = 0;
  for (uint32_t i = 0; i < n; i++) w |= (uint32_t)p[i] << (8u * i);
  return w;
}

void odt_dot4(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  const uint32_t* x2 = (const uint32_t*)(const void*)x;
  for (uint32_t r = 0; r < rows; r++, acc += 4) {
    words_t at = words_of(w, row + r, col);
    if (w->wide) {
      dot4_wide(w, at, x2, (n + 1u) / 2u, acc);
    } else if (!w->packed) {
      dot4_by4(at.p, x2, n / 4u, acc);
      if (n % 4u) mac4(tail_word(at.p + n / 4u * 4u, n % 4u), x2 + n / 4u * 8u, acc);
    } else if (at.step == 16u) {
      dot4_by16(at.p, x2, (n + 3u) / 4u, acc);
    } else if (at.step == 12u) {
      dot4_by12(at.p, x2, (n + 3u) / 4u, acc);
    } else if (at.step == 8u) {
      dot4_by8(at.p, x2, (n + 3u) / 4u, acc);
    } else {
      dot4_by4(at.p, x2, (n + 3u) / 4u, acc);
    }
  }
}

/* One row, one column. */
static int32_t dot_row(const odt_matrix_t* w, words_t r, const uint32_t* x, uint32_t n,
                       int32_t acc) {
  uint32_t half = (uint32_t)w->half * 0x10001u, left = 8u - (uint32_t)w->f;
  if (w->wide) {
    for (uint32_t i = 0; i < n; i += 2u, r.p += r.step) {
      acc = dsp_smlad(view2(dsp_load(r.p), half, left), *x++, acc);
    }
    return acc;
  }
  for (uint32_t i = 0; i < n; i += 4u, r.p += r.step, x += 2) {
    uint32_t v = w->packed || n - i >= 4u ? dsp_load(r.p) : tail_word(r.p, n - i);
    acc = dsp_smlad(dsp_sxtb16(v), x[0], acc);
    acc = dsp_smlad(dsp_sxtb16_ror8(v), x[1], acc);
  }
  return acc;
}

/* A whole panel of int8 rows, one column. */
static void dot_panel(const uint8_t* p, const uint32_t* x, uint32_t words, int32_t* acc) {
  int32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
#if defined(__ARM_FEATURE_DSP)
  const uint32_t* end = x + 2u * words;
  uint32_t v, t;
  __asm__ volatile(
      "1:\n\t"
      "ldmia %[p]!, {r2, r3, r4, r5}\n\t"
      "ldr %[v], [%[x]], #4\n\t"
      "sxtb16 %[t], r2\n\t"
      "smlad %[a0], %[t], %[v], %[a0]\n\t"
      "sxtb16 %[t], r3\n\t"
      "smlad %[a1], %[t], %[v], %[a1]\n\t"
      "sxtb16 %[t], r4\n\t"
      "smlad %[a2], %[t], %[v], %[a2]\n\t"
      "sxtb16 %[t], r5\n\t"
      "smlad %[a3], %[t], %[v], %[a3]\n\t"
      "ldr %[v], [%[x]], #4\n\t"
      "sxtb16 %[t], r2, ror #8\n\t"
      "smlad %[a0], %[t], %[v], %[a0]\n\t"
      "sxtb16 %[t], r3, ror #8\n\t"
      "smlad %[a1], %[t], %[v], %[a1]\n\t"
      "sxtb16 %[t], r4, ror #8\n\t"
      "smlad %[a2], %[t], %[v], %[a2]\n\t"
      "sxtb16 %[t], r5, ror #8\n\t"
      "smlad %[a3], %[t], %[v], %[a3]\n\t"
      "cmp %[x], %[end]\n\t"
      "bne 1b"
      : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [p] "+r"(p), [x] "+r"(x),
        [v] "=&r"(v), [t] "=&r"(t)
      : [end] "r"(end)
      : "r2", "r3", "r4", "r5", "cc", "memory");
#else
  for (uint32_t i = 0; i < words; i++, p += 16, x += 2) {
    a0 =
        dsp_smlad(dsp_sxtb16_ror8(dsp_load(p)), x[1], dsp_smlad(dsp_sxtb16(dsp_load(p)), x[0], a0));
    a1 = dsp_smlad(dsp_sxtb16_ror8(dsp_load(p + 4)), x[1],
                   dsp_smlad(dsp_sxtb16(dsp_load(p + 4)), x[0], a1));
    a2 = dsp_smlad(dsp_sxtb16_ror8(dsp_load(p + 8)), x[1],
                   dsp_smlad(dsp_sxtb16(dsp_load(p + 8)), x[0], a2));
    a3 = dsp_smlad(dsp_sxtb16_ror8(dsp_load(p + 12)), x[1],
                   dsp_smlad(dsp_sxtb16(dsp_load(p + 12)), x[0], a3));
  }
#endif
  acc[0] = a0;
  acc[1] = a1;
  acc[2] = a2;
  acc[3] = a3;
}

void odt_dot1(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  const uint32_t* x2 = (const uint32_t*)(const void*)x;
  for (uint32_t r = 0; r < rows;) {
    words_t at = words_of(w, row + r, col);
    if (w->packed && !w->wide && at.step == 16u && (row + r) % 4u == 0 && rows - r >= 4u) {
      dot_panel(at.p, x2, (n + 3u) / 4u, acc + r);
      r += 4u;
    } else {
      acc[r] = dot_row(w, at, x2, n, acc[r]);
      r++;
    }
  }
}

/* ---- transposed: columns of words times a value per row -----------------------------------------
 */

static inline void axpy4(uint32_t w, uint32_t v, int32_t* a) {
  uint32_t even = dsp_sxtb16(w), odd = dsp_sxtb16_ror8(w);
  a[0] = dsp_smlabb(even, v, a[0]);
  a[2] = dsp_smlatb(even, v, a[2]);
  a[1] = dsp_smlabb(odd, v, a[1]);
  a[3] = dsp_smlatb(odd, v, a[3]);
}
#if !defined(__ARM_FEATURE_DSP)
static inline void axpy4_top(uint32_t w, uint32_t v, int32_t* a) {
  uint32_t even = dsp_sxtb16(w), odd = dsp_sxtb16_ror8(w);
  a[0] = dsp_smlabt(even, v, a[0]);
  a[2] = dsp_smlatt(even, v, a[2]);
  a[1] = dsp_smlabt(odd, v, a[1]);
  a[3] = dsp_smlatt(odd, v, a[3]);
}
#endif

/* Whole panels of int8 rows: one word of each row at a time; v: pairs of rows. */
static void columns_of_panels(const uint8_t* p, uint32_t panel_bytes, uint32_t panels,
                              const int16_t* v, int32_t* acc) {
  int32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
#if defined(__ARM_FEATURE_DSP)
#define COLUMNS(row, half)        \
  "sxtb16 %[t], " row             \
  "\n\t"                          \
  "smlab" half                    \
  " %[a0], %[t], %[d], %[a0]\n\t" \
  "smlat" half                    \
  " %[a2], %[t], %[d], %[a2]\n\t" \
  "sxtb16 %[t], " row             \
  ", ror #8\n\t"                  \
  "smlab" half                    \
  " %[a1], %[t], %[d], %[a1]\n\t" \
  "smlat" half " %[a3], %[t], %[d], %[a3]\n\t"
  const int16_t* end = v + 4u * panels;
  uint32_t d, t;
  __asm__ volatile("1:\n\t"
                   "ldmia %[p], {r2, r3, r4, r5}\n\t"
                   "ldr %[d], [%[v]], #4\n\t"
                   "add %[p], %[p], %[step]\n\t" COLUMNS("r2", "b") COLUMNS("r3", "t")
                   "ldr %[d], [%[v]], #4\n\t" COLUMNS("r4", "b") COLUMNS("r5", "t")
                   "cmp %[v], %[end]\n\t"
                   "bne 1b"
                   : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [p] "+r"(p),
                     [v] "+r"(v), [d] "=&r"(d), [t] "=&r"(t)
                   : [end] "r"(end), [step] "r"(panel_bytes)
                   : "r2", "r3", "r4", "r5", "cc", "memory");
#undef COLUMNS
#else
  int32_t a[4] = {a0, a1, a2, a3};
  for (uint32_t i = 0; i < panels; i++, p += panel_bytes, v += 4) {
    uint32_t v01 = dsp_load(v), v23 = dsp_load(v + 2);
    axpy4(dsp_load(p), v01, a);
    axpy4_top(dsp_load(p + 4), v01, a);
    axpy4(dsp_load(p + 8), v23, a);
    axpy4_top(dsp_load(p + 12), v23, a);
  }
  a0 = a[0];
  a1 = a[1];
  a2 = a[2];
  a3 = a[3];
#endif
  acc[0] = a0;
  acc[1] = a1;
  acc[2] = a2;
  acc[3] = a3;
}

/* The same for the one to three rows of a last panel. */
static void columns_of_rest(const uint8_t* p, uint32_t rows, uint32_t words, const int16_t* v,
                            int32_t* acc) {
  for (uint32_t i = 0; i < words; i++, acc += 4) {
    int32_t a[4] = {acc[0], acc[1], acc[2], acc[3]};
    for (uint32_t r = 0; r < rows; r++, p += 4) axpy4(dsp_load(p), (uint32_t)(int32_t)v[r], a);
    acc[0] = a[0];
    acc[1] = a[1];
    acc[2] = a[2];
    acc[3] = a[3];
  }
}

static void add_row(const odt_matrix_t* w, words_t r, uint32_t n, uint32_t v, int32_t* acc) {
  uint32_t half = (uint32_t)w->half * 0x10001u, left = 8u - (uint32_t)w->f;
  if (w->wide) {
    for (uint32_t i = 0; i < n; i += 2u, r.p += r.step, acc += 2) {
      uint32_t m = view2(dsp_load(r.p), half, left);
      acc[0] = dsp_smlabb(m, v, acc[0]);
      acc[1] = dsp_smlatb(m, v, acc[1]);
    }
    return;
  }
  for (uint32_t i = 0; i < n; i += 4u, r.p += r.step, acc += 4) {
    axpy4(w->packed || n - i >= 4u ? dsp_load(r.p) : tail_word(r.p, n - i), v, acc);
  }
}

void odt_dot_t(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t words,
               const int16_t* v, int32_t* acc) {
  uint32_t per = odt_per_word(w), n = words * per, r = 0;
  if (n > w->cols - col) n = w->cols - col;
  if (w->packed && !w->wide && row % 4u == 0 && rows >= 4u) {
    const uint8_t* p = w->base + 4u * (row * odt_words(w) + col);
    r = rows / 4u * 4u;
    for (uint32_t i = 0; i < words; i++) {
      columns_of_panels(p + 16u * i, 16u * odt_words(w), r / 4u, v, acc + 4u * i);
    }
  }
  uint32_t left = rows - r;
  if (w->packed && !w->wide && left > 0 && (row + r) % 4u == 0 && row + rows == w->rows) {
    words_t at = words_of(w, row + r, col);
    columns_of_rest(at.p, left, words, v + r, acc);
    r = rows;
  }
  for (; r < rows; r++) {
    if (v[r] != 0) add_row(w, words_of(w, row + r, col), n, (uint32_t)(int32_t)v[r], acc);
  }
}

/* ---- outer products -----------------------------------------------------------------------------
 */

#if defined(__ARM_FEATURE_DSP)
#define OUTER_STEP(first)                   \
  "ldmia %[x]!, {r2, r3, r4, r5}\n\t" first \
  "smlad %[a], r3, %[d1], %[a]\n\t"         \
  "smlad %[a], r4, %[d2], %[a]\n\t"         \
  "smlad %[a], r5, %[d3], %[a]\n\t"         \
  "str %[a], [%[g]], #4\n\t"
#define OUTER_ADD        \
  "ldr %[a], [%[g]]\n\t" \
  "smlad %[a], r2, %[d0], %[a]\n\t"
#define OUTER_SET "smuad %[a], r2, %[d0]\n\t"
#define OUTER_LOOP(first) \
  __asm__ volatile("1:\n\t" OUTER_STEP(first) OUTER_STEP(first) OUTER_STEP(first) OUTER_STEP(first) \
                   "cmp %[g], %[end]\n\t"                                                        \
                   "bne 1b"                                                                      \
                   : [g] "+r"(g), [x] "+r"(x), [a] "=&r"(a)                                      \
                   : [end] "r"(end), [d0] "r"(d0), [d1] "r"(d1), [d2] "r"(d2), [d3] "r"(d3)      \
                   : "r2", "r3", "r4", "r5", "cc", "memory")
#endif

void odt_outer(int32_t* g, const int16_t* x, uint32_t n, const int16_t* dy, bool add) {
  const uint32_t* d = (const uint32_t*)(const void*)dy;
  uint32_t d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
  int32_t* end = g + n;
#if defined(__ARM_FEATURE_DSP)
  int32_t a;
  if (add) {
    OUTER_LOOP(OUTER_ADD);
  } else {
    OUTER_LOOP(OUTER_SET);
  }
#else
  for (const uint32_t* p = (const uint32_t*)(const void*)x; g != end; g++, p += 4) {
    int32_t a = dsp_smlad(p[0], d0, add ? *g : 0);
    *g = dsp_smlad(p[3], d3, dsp_smlad(p[2], d2, dsp_smlad(p[1], d1, a)));
  }
#endif
}

uint32_t odt_outer_measure(const int16_t* x, uint32_t n, const int16_t* dy) {
  const uint32_t* d = (const uint32_t*)(const void*)dy;
  uint32_t d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3], or_abs = 0;
  const uint32_t *p = (const uint32_t*)(const void*)x, *end = p + 4u * n;
#if defined(__ARM_FEATURE_DSP)
  int32_t a, t;
#define MEASURE_STEP                  \
  "ldmia %[p]!, {r2, r3, r4, r5}\n\t" \
  "smuad %[a], r2, %[d0]\n\t"         \
  "smlad %[a], r3, %[d1], %[a]\n\t"   \
  "smlad %[a], r4, %[d2], %[a]\n\t"   \
  "smlad %[a], r5, %[d3], %[a]\n\t"   \
  "eor %[t], %[a], %[a], asr #31\n\t" \
  "sub %[t], %[t], %[a], asr #31\n\t" \
  "orr %[o], %[o], %[t]\n\t"
  __asm__ volatile("1:\n\t" MEASURE_STEP MEASURE_STEP MEASURE_STEP MEASURE_STEP
                   "cmp %[p], %[end]\n\t"
                   "bne 1b"
                   : [p] "+r"(p), [o] "+r"(or_abs), [a] "=&r"(a), [t] "=&r"(t)
                   : [end] "r"(end), [d0] "r"(d0), [d1] "r"(d1), [d2] "r"(d2), [d3] "r"(d3)
                   : "r2", "r3", "r4", "r5", "cc", "memory");
#undef MEASURE_STEP
#else
  for (; p != end; p += 4) {
    int32_t a =
        dsp_smlad(p[3], d3, dsp_smlad(p[2], d2, dsp_smlad(p[1], d1, dsp_smlad(p[0], d0, 0))));
    or_abs |= a < 0 ? 0u - (uint32_t)a : (uint32_t)a;
  }
#endif
  return or_abs;
}

#endif

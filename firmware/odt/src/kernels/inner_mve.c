/* The inner loops with Helium: dot products of int8 and int16 vectors into core registers. The dot
 * products are written out for the registers of the core, since they take all of them. */
#include "kernels/matrix.h"

#if defined(ODT_KERNELS_MVE)

#include <arm_mve.h>
#include <stddef.h>

#include "kernels/mve.h"

/* ---- two rows by four columns -------------------------------------------------------------------
 */

_Static_assert(offsetof(odt_mve_dot_t, shift) == 16 && offsetof(odt_mve_dot_t, tail) == 24,
               "the assembly knows where these lie");

/* Sums in the even registers; r1, r3: weights, r5: columns, r7: their end, r9: shift. */
#define ENTER                 \
  "push {r0, r4-r11, lr}\n"   \
  "ldrd r1, r3, [r0]\n"       \
  "ldrd r5, r7, [r0, #8]\n"   \
  "ldrd r9, r11, [r0, #16]\n" \
  "ldr r0, [r11]\n"           \
  "ldr r2, [r11, #4]\n"       \
  "ldr r4, [r11, #8]\n"       \
  "ldr r6, [r11, #12]\n"      \
  "ldr r8, [r11, #16]\n"      \
  "ldr r10, [r11, #20]\n"     \
  "ldr r12, [r11, #24]\n"     \
  "ldr lr, [r11, #28]\n"      \
  "cmp r5, r7\n"              \
  "beq 2f\n"                  \
  "1:\n"
#define TAIL                   \
  "cmp r5, r7\n"               \
  "bne 1b\n"                   \
  "2:\n"                       \
  "ldr r11, [sp]\n"            \
  "ldrd r11, r7, [r11, #24]\n" \
  "cmp r11, #0\n"              \
  "beq 3f\n"
#define LEAVE             \
  "3:\n"                  \
  "ldr r11, [sp]\n"       \
  "ldr r11, [r11, #20]\n" \
  "str r0, [r11]\n"       \
  "str r2, [r11, #4]\n"   \
  "str r4, [r11, #8]\n"   \
  "str r6, [r11, #12]\n"  \
  "str r8, [r11, #16]\n"  \
  "str r10, [r11, #20]\n" \
  "str r12, [r11, #24]\n" \
  "str lr, [r11, #28]\n"  \
  "add sp, #4\n"          \
  "pop {r4-r11, pc}\n"
#define COLUMN(load, op, q, a, b) \
  load " " q ", [r5], #16\n" op " " a ", q0, " q "\n" op " " b ", q1, " q "\n"
#define COLUMNS(load, op)             \
  COLUMN(load, op, "q2", "r0", "r8")  \
  COLUMN(load, op, "q3", "r2", "r10") \
  COLUMN(load, op, "q2", "r4", "r12") \
  COLUMN(load, op, "q3", "r6", "lr")
/* Behind the whole eights: r7 from one column to the next. */
#define SHORT_COLUMN(q, a, b)  \
  "vpst\n vldrht.u16 " q       \
  ", [r5]\n"                   \
  "vmladava.s16 " a ", q0, " q \
  "\n"                         \
  "vmladava.s16 " b ", q1, " q \
  "\n"                         \
  "add r5, r5, r7\n"
#define SHORT_COLUMNS             \
  SHORT_COLUMN("q2", "r0", "r8")  \
  SHORT_COLUMN("q3", "r2", "r10") \
  SHORT_COLUMN("q2", "r4", "r12") \
  SHORT_COLUMN("q3", "r6", "lr")

__attribute__((naked, noinline)) void odt_mve_dot8(__attribute__((unused)) const odt_mve_dot_t* d) {
  __asm__ volatile(ENTER
                   "vldrb.u8 q0, [r1], #16\n"
                   "vldrb.u8 q1, [r3], #16\n" COLUMNS("vldrb.u8", "vmladava.s8") TAIL
                   "vctp.8 r11\n"
                   "vpstt\n"
                   "vldrbt.u8 q0, [r1]\n"
                   "vldrbt.u8 q1, [r3]\n" COLUMNS("vldrb.u8", "vmladava.s8") LEAVE);
}

__attribute__((naked, noinline)) static void dot16(__attribute__((unused)) const odt_mve_dot_t* d) {
  __asm__ volatile(ENTER
                   "vldrb.s16 q0, [r1], #8\n"
                   "vldrb.s16 q1, [r3], #8\n" COLUMNS("vldrh.u16", "vmladava.s16") TAIL
                   "vctp.16 r11\n"
                   "vpstt\n"
                   "vldrbt.s16 q0, [r1]\n"
                   "vldrbt.s16 q1, [r3]\n" SHORT_COLUMNS LEAVE);
}

__attribute__((naked, noinline)) static void dot_wide(__attribute__((unused))
                                                      const odt_mve_dot_t* d) {
  __asm__ volatile(ENTER
                   "vldrh.u16 q0, [r1], #16\n"
                   "vldrh.u16 q1, [r3], #16\n"
                   "vrshl.s16 q0, r9\n"
                   "vrshl.s16 q1, r9\n" COLUMNS("vldrh.u16", "vmladava.s16") TAIL
                   "vctp.16 r11\n"
                   "vpstt\n"
                   "vldrht.u16 q0, [r1]\n"
                   "vldrht.u16 q1, [r3]\n"
                   "vrshl.s16 q0, r9\n"
                   "vrshl.s16 q1, r9\n" SHORT_COLUMNS LEAVE);
}

static uint32_t row_bytes(const odt_matrix_t* w) { return w->packed ? 4u * odt_words(w) : w->cols; }

/* One row from a column on; its words follow each other (ODT_PANEL is 1). */
static const uint8_t* row_at(const odt_matrix_t* w, uint32_t row, uint32_t col) {
  return w->base + (size_t)row * row_bytes(w) + (size_t)col * (w->wide ? 2u : 1u);
}

void odt_fill4(int16_t* x, bool wide, uint32_t c, const uint8_t* from, uint8_t dtype, uint32_t n) {
  uint32_t tile = (n + 3u) & ~3u, j = 0;
  (void)wide;
  for (int16_t* to = x + 8u * c; j + 8u <= n; j += 8u, to += 32) {
    if (dtype == ODT_U8) {
      vstrhq_u16((uint16_t*)to, vldrbq_u16(from + j));
    } else if (dtype == ODT_S8) {
      vstrhq_s16(to, vldrbq_s16((const int8_t*)from + j));
    } else {
      vstrhq_s16(to, vldrhq_s16((const int16_t*)(const void*)from + j));
    }
  }
  for (; j < tile; j++) {
    x[odt_slot4(wide, tile, j, c)] = (int16_t)(j < n ? odt_load(from, dtype, j) : 0);
  }
}

void odt_fill1(int16_t* x, bool wide, const uint8_t* from, uint8_t dtype, uint32_t n) {
  (void)wide;
  odt_spread(x, 1, from, dtype, 1, n);
  for (; n % 4u; n++) x[n] = 0;
}

void odt_dot4(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  int32_t last[8] = {0};
  odt_mve_dot_t d = {.x = x, .end = x + (n & ~7u) * 4u, .shift = -w->f, .tail = n & 7u};
  d.step = n % 8u > 4u ? 16u : 8u; /* odt_slot4 */
  for (uint32_t r = 0; r < rows; r += 2u, acc += 8) {
    bool both = r + 1u < rows;
    d.w0 = row_at(w, row + r, col);
    d.w1 = both ? d.w0 + row_bytes(w) : d.w0;
    d.acc = both ? acc : last;
    for (uint32_t c = 0; !both && c < 4u; c++) last[c] = acc[c];
    if (w->wide) {
      dot_wide(&d);
    } else {
      dot16(&d);
    }
    for (uint32_t c = 0; !both && c < 4u; c++) acc[c] = last[c];
  }
}

/* Eight values of a row as int16, those beyond n 0. */
static inline int16x8_t load8(const odt_matrix_t* w, const uint8_t* p, mve_pred16_t some) {
  if (!w->wide) return vldrbq_z_s16((const int8_t*)p, some);
  return vrshlq_n_s16(vldrhq_z_s16((const int16_t*)(const void*)p, some), -w->f);
}

void odt_dot1(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc) {
  uint32_t bytes = w->wide ? 16u : 8u;
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t* p = row_at(w, row + r, col);
    int32_t a = acc[r];
    for (uint32_t j = 0; j < n; j += 8u, p += bytes) {
      mve_pred16_t some = vctp16q(n - j);
      a = vmladavaq_s16(a, load8(w, p, some), vldrhq_z_s16(x + j, some));
    }
    acc[r] = a;
  }
}

/* ---- transposed ---------------------------------------------------------------------------------
 */

/* Four columns as int32. */
static inline int32x4_t load4(const odt_matrix_t* w, const uint8_t* p, mve_pred16_t some) {
  if (!w->wide) return vldrbq_z_s32((const int8_t*)p, some);
  return vrshlq_n_s32(vldrhq_z_s32((const int16_t*)(const void*)p, some), -w->f);
}

/* Columns [0, 16) of the rows at p. */
static void add_rows(const odt_matrix_t* w, const uint8_t* p, uint32_t rows, const int16_t* v,
                     uint32_t n, int32_t* acc) {
  const mve_pred16_t s0 = vctp32q(n), s1 = vctp32q(n > 4u ? n - 4u : 0u);
  const mve_pred16_t s2 = vctp32q(n > 8u ? n - 8u : 0u), s3 = vctp32q(n > 12u ? n - 12u : 0u);
  const uint32_t step = row_bytes(w), four = w->wide ? 8u : 4u;
  int32x4_t a = vldrwq_z_s32(acc, s0), b = vldrwq_z_s32(acc + 4, s1);
  int32x4_t c = vldrwq_z_s32(acc + 8, s2), d = vldrwq_z_s32(acc + 12, s3);
  for (; rows > 0; rows--, p += step, v++) {
    a = vmlaq_n_s32(a, load4(w, p, s0), *v);
    b = vmlaq_n_s32(b, load4(w, p + four, s1), *v);
    c = vmlaq_n_s32(c, load4(w, p + 2u * four, s2), *v);
    d = vmlaq_n_s32(d, load4(w, p + 3u * four, s3), *v);
  }
  vstrwq_p_s32(acc, a, s0);
  vstrwq_p_s32(acc + 4, b, s1);
  vstrwq_p_s32(acc + 8, c, s2);
  vstrwq_p_s32(acc + 12, d, s3);
}

void odt_dot_t(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t words,
               const int16_t* v, int32_t* acc) {
  uint32_t left = w->cols - col, n = words * odt_per_word(w);
  if (n > left) n = left;
  for (uint32_t j = 0; j < n; j += 16u) {
    add_rows(w, row_at(w, row, col + j), rows, v, n - j, acc + j);
  }
}

/* ---- outer products -----------------------------------------------------------------------------
 */

void odt_outer(int32_t* g, const int16_t* x, uint32_t n, const int16_t* dy, bool add) {
  const int16x8_t d = vldrhq_s16(dy);
  for (uint32_t j = 0; !add && j < n; j += 4u) vstrwq_s32(g + j, vdupq_n_s32(0));
  for (const int32_t* end = g + n; g != end; g += 4, x += 32) {
    g[0] = vmladavaq_s16(g[0], vldrhq_s16(x), d);
    g[1] = vmladavaq_s16(g[1], vldrhq_s16(x + 8), d);
    g[2] = vmladavaq_s16(g[2], vldrhq_s16(x + 16), d);
    g[3] = vmladavaq_s16(g[3], vldrhq_s16(x + 24), d);
  }
}

static inline uint32_t magnitude(int32_t v) { return v < 0 ? 0u - (uint32_t)v : (uint32_t)v; }

uint32_t odt_outer_measure(const int16_t* x, uint32_t n, const int16_t* dy) {
  const int16x8_t d = vldrhq_s16(dy);
  uint32_t or_abs = 0;
  for (const int16_t* end = x + 8u * n; x != end; x += 32) {
    or_abs |= magnitude(vmladavq_s16(vldrhq_s16(x), d));
    or_abs |= magnitude(vmladavq_s16(vldrhq_s16(x + 8), d));
    or_abs |= magnitude(vmladavq_s16(vldrhq_s16(x + 16), d));
    or_abs |= magnitude(vmladavq_s16(vldrhq_s16(x + 24), d));
  }
  return or_abs;
}

/* ---- gradients and their rounding at once -------------------------------------------------------
 */

static inline int32x4_t four_gradients(const int16_t* x, int16x8_t dy) {
  int32x4_t g = {vmladavq_s16(vldrhq_s16(x), dy), vmladavq_s16(vldrhq_s16(x + 8), dy),
                 vmladavq_s16(vldrhq_s16(x + 16), dy), vmladavq_s16(vldrhq_s16(x + 24), dy)};
  return g;
}

/* q + (hi > lo) = ((|g| >> h) + 2^top - 1 - lo) >> top, where lo is doubled if s is odd, and top is
 * the length of hi. */
void odt_mve_psto_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                            uint32_t* d) {
  const int16x8_t v = vldrhq_s16((const int16_t*)(const void*)dy);
  const int32_t h = -(int32_t)(s / 2u), top = (int32_t)(s + 1u) / 2, odd = (int32_t)(s % 2u);
  const uint32x4_t mask = vdupq_n_u32((1u << top) - 1u);
  const int16_t* p = (const int16_t*)(const void*)x;
  for (int8_t *to = (int8_t*)d, *end = to + n; to != end; to += 4, p += 32) {
    int32x4_t g = four_gradients(p, v);
    uint32x4_t a = vreinterpretq_u32_s32(vabsq_s32(g));
    uint32x4_t q = vaddq_u32(vshlq_r_u32(a, h), vbicq_u32(mask, vshlq_r_u32(a, odd)));
    int32x4_t r = vreinterpretq_s32_u32(vshlq_r_u32(q, -top));
    vstrbq_s32(to, vnegq_m_s32(r, r, vcmpltq_n_s32(g, 0)));
  }
}

void odt_mve_half_up_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                               uint32_t* d) {
  const int16x8_t v = vldrhq_s16((const int16_t*)(const void*)dy);
  const int16_t* p = (const int16_t*)(const void*)x;
  for (int8_t *to = (int8_t*)d, *end = to + n; to != end; to += 4, p += 32) {
    vstrbq_s32(to, vrshlq_n_s32(four_gradients(p, v), -(int32_t)s));
  }
}

#endif

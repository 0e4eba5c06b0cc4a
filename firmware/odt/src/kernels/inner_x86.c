/* The inner loops for x86-64 hosts: replays and simulated boards run on them. Plain loops that the
 * compiler turns into vector instructions, for AVX2 and for any x86-64; SSE2 where it does not see
 * how. */
#include "kernels/matrix.h"

#if defined(ODT_KERNELS_X86)

#include <emmintrin.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define CLONES /* resolvers run before the sanitizer is set up; clang 14 names the clones' symbol \
                  otherwise */
#else
#define CLONES __attribute__((target_clones("avx2", "default")))
#endif

/* ---- dot products -------------------------------------------------------------------------------
 */

/* One row from a column on; its words follow each other (ODT_PANEL is 1). */
static const uint8_t* row_at(const odt_matrix_t* w, uint32_t row, uint32_t col) {
  uint32_t bytes = w->packed ? 4u * odt_words(w) : w->cols;
  return w->base + (size_t)row * bytes + (size_t)col * (w->wide ? 2u : 1u);
}

static inline void view_row(const odt_matrix_t* w, const uint8_t* p, uint32_t n, int16_t* out) {
  if (w->wide) {
    const int16_t* m = (const int16_t*)(const void*)p;
    for (uint32_t j = 0; j < n; j++) out[j] = (int16_t)((m[j] + w->half) >> w->f);
  } else {
    for (uint32_t j = 0; j < n; j++) out[j] = (int8_t)p[j];
  }
}

static inline int32_t dot(const int16_t* a, const int16_t* b, uint32_t n) {
  int32_t sum = 0;
  for (uint32_t j = 0; j < n; j++) sum += a[j] * b[j];
  return sum;
}

void odt_fill4(int16_t* x, bool wide, uint32_t c, const uint8_t* from, uint8_t dtype, uint32_t n) {
  uint32_t tile = (n + 3u) & ~3u;
  (void)wide;
  odt_spread(x + c * tile, 1, from, dtype, 1, n);
  for (; n < tile; n++) x[c * tile + n] = 0;
}

void odt_fill1(int16_t* x, bool wide, const uint8_t* from, uint8_t dtype, uint32_t n) {
  odt_fill4(x, wide, 0, from, dtype, n);
}

CLONES void odt_dot4(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
                     const int16_t* x, int32_t* acc) {
  int16_t view[ODT_TILE_COLS];
  uint32_t tile = (n + 3u) & ~3u;
  for (uint32_t r = 0; r < rows; r++, acc += 4) {
    view_row(w, row_at(w, row + r, col), n, view);
    for (uint32_t c = 0; c < 4u; c++) acc[c] += dot(view, x + c * tile, n);
  }
}

CLONES void odt_dot1(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
                     const int16_t* x, int32_t* acc) {
  int16_t view[ODT_TILE_COLS];
  for (uint32_t r = 0; r < rows; r++) {
    view_row(w, row_at(w, row + r, col), n, view);
    acc[r] += dot(view, x, n);
  }
}

CLONES void odt_dot_t(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col,
                      uint32_t words, const int16_t* v, int32_t* acc) {
  uint32_t left = w->cols - col, n = words * odt_per_word(w);
  if (n > left) n = left;
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t* p = row_at(w, row + r, col);
    int32_t d = v[r];
    if (d == 0) continue;
    if (w->wide) {
      const int16_t* m = (const int16_t*)(const void*)p;
      for (uint32_t j = 0; j < n; j++) acc[j] += ((m[j] + w->half) >> w->f) * d;
    } else {
      for (uint32_t j = 0; j < n; j++) acc[j] += (int8_t)p[j] * d;
    }
  }
}

/* ---- outer products -----------------------------------------------------------------------------
 */

/* Four gradients of eight samples each. */
static inline __m128i four(const int16_t* x, __m128i d) {
  __m128i a = _mm_madd_epi16(_mm_loadu_si128((const __m128i*)(const void*)x), d);
  __m128i b = _mm_madd_epi16(_mm_loadu_si128((const __m128i*)(const void*)(x + 8)), d);
  __m128i c = _mm_madd_epi16(_mm_loadu_si128((const __m128i*)(const void*)(x + 16)), d);
  __m128i e = _mm_madd_epi16(_mm_loadu_si128((const __m128i*)(const void*)(x + 24)), d);
  __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
  __m128i ce = _mm_add_epi32(_mm_unpacklo_epi32(c, e), _mm_unpackhi_epi32(c, e));
  return _mm_add_epi32(_mm_unpacklo_epi64(ab, ce), _mm_unpackhi_epi64(ab, ce));
}

void odt_outer(int32_t* g, const int16_t* x, uint32_t n, const int16_t* dy, bool add) {
  __m128i d = _mm_loadu_si128((const __m128i*)(const void*)dy);
  for (uint32_t j = 0; j < n; j += 4u, x += 32) {
    __m128i* to = (__m128i*)(void*)(g + j);
    __m128i sum = four(x, d);
    _mm_storeu_si128(to, add ? _mm_add_epi32(sum, _mm_loadu_si128(to)) : sum);
  }
}

uint32_t odt_outer_measure(const int16_t* x, uint32_t n, const int16_t* dy) {
  __m128i d = _mm_loadu_si128((const __m128i*)(const void*)dy), seen = _mm_setzero_si128();
  for (uint32_t j = 0; j < n; j += 4u, x += 32) {
    __m128i g = four(x, d), sign = _mm_srai_epi32(g, 31);
    seen = _mm_or_si128(seen, _mm_sub_epi32(_mm_xor_si128(g, sign), sign));
  }
  uint32_t lanes[4];
  memcpy(lanes, &seen, sizeof lanes);
  return lanes[0] | lanes[1] | lanes[2] | lanes[3];
}

/* ---- updates ------------------------------------------------------------------------------------
 */

static inline int32_t rounded(int32_t g, bool psto, uint32_t s) {
  if (!psto) return (g + (int32_t)(1u << (s - 1u))) >> s;
  /* q + (hi > lo) = ((|g| >> h) + 2^top - 1 - lo) >> top, lo doubled where s is odd */
  uint32_t odd = s % 2u, top = s / 2u + odd, mask = (1u << top) - 1u;
  int32_t sign = g >> 31;
  uint32_t a = (uint32_t)(g ^ sign) - (uint32_t)sign;
  uint32_t q = ((a >> (s / 2u)) + (mask & ~(a << odd))) >> top;
  return (int32_t)((q ^ (uint32_t)sign) - (uint32_t)sign);
}

/* Deltas of n gradients; their counts. */
static inline void deltas(odt_update_t* u, const int32_t* g, uint32_t n, bool psto, int32_t* d) {
  uint32_t nonzero = 0, abs_delta = 0, s = (uint32_t)u->s;
  int32_t hi = u->d_clip, lo = -u->d_clip;
  for (uint32_t j = 0; j < n; j++) {
    int32_t v = rounded(g[j], psto, s);
    v = v > hi ? hi : v < lo ? lo : v;
    d[j] = v;
    nonzero += v != 0 ? 1u : 0u;
    abs_delta += (uint32_t)(v < 0 ? -v : v);
  }
  u->nonzero += nonzero;
  u->abs_delta += abs_delta;
}

/* A -128 of the file stays while its delta is 0. */
static inline int32_t moved(int32_t m, int32_t d, int32_t lo, int32_t hi) {
  int32_t v = m - d;
  v = v > hi ? hi : v < lo ? lo : v;
  return d == 0 ? m : v;
}

CLONES static void apply(odt_update_t* u, uint32_t at, const int32_t* g, uint32_t n) {
  int32_t d[ODT_CHUNK], lo = u->m_lo, hi = u->m_hi;
  if (u->rounding == ODT_ROUND_PSTO) {
    deltas(u, g, n, true, d);
  } else {
    deltas(u, g, n, false, d);
  }
  if (u->m16) {
    int16_t* m = u->m16 + at;
    for (uint32_t j = 0; j < n; j++) m[j] = (int16_t)moved(m[j], d[j], lo, hi);
  } else {
    int8_t* m = u->m8 + at;
    for (uint32_t j = 0; j < n; j++) m[j] = (int8_t)moved(m[j], d[j], lo, hi);
  }
}

CLONES static uint32_t magnitudes(const int32_t* g, uint32_t n, uint64_t* sum) {
  uint32_t or_abs = 0;
  uint64_t all = 0;
  for (uint32_t j = 0; j < n; j++) {
    uint32_t a = g[j] < 0 ? 0u - (uint32_t)g[j] : (uint32_t)g[j];
    or_abs |= a;
    all += a;
  }
  *sum = all;
  return or_abs;
}

void odt_update_prepare(odt_update_t* u) {
  bool rounding = u->rounding == ODT_ROUND_PSTO || u->rounding == ODT_ROUND_HALF_UP;
  u->fast = u->apply && !u->literal && u->s >= 1 && u->s <= 30 && rounding;
}

bool odt_outer_update(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int16_t* x, uint32_t n, const int16_t* dy) {
  (void)u, (void)lay, (void)o, (void)col, (void)x, (void)n, (void)dy;
  return false;
}

void odt_update_words(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int32_t* g, uint32_t n) {
  if (!u->fast) {
    odt_update_values(u, lay, o, col, g, n);
    return;
  }
  if (n > lay->cols - col) n = lay->cols - col;
  if (u->measure || u->sum) {
    uint64_t sum;
    uint32_t or_abs = magnitudes(g, n, &sum);
    if (u->measure) u->or_abs |= or_abs;
    if (u->sum) u->sum_abs += sum;
  }
  apply(u, odt_layout_at(lay, o, col), g, n);
}

#endif

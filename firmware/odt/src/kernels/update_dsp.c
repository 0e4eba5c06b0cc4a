/* Weight updates four at a time, for int8 weights and the usual settings; the rest goes to
 * odt_update_values. */
#include "kernels/matrix.h"

#if defined(ODT_KERNELS_DSP) || defined(ODT_KERNELS_MVE)

#include "kernels/dsp.h"

#define WORDS (ODT_CHUNK / 4u)
#define BYTES(v) (0x01010101u * (uint32_t)(v))

static inline uint32_t magnitude(int32_t g) {
  int32_t sign = g >> 31;
  return (uint32_t)(g ^ sign) - (uint32_t)sign;
}

/* PSTO: q + (hi > lo) = ((|g| >> h) + 2^top - 1 - lo) >> top, where lo is doubled if s is odd, and
 * top is the length of hi. */
typedef struct {
  uint32_t h, top, mask;
} psto_t;

static inline int32_t psto(int32_t g, const psto_t* p, uint32_t odd, bool clip, uint32_t* or_abs) {
  uint32_t a = magnitude(g);
  if (clip) *or_abs |= a;
  uint32_t q = ((a >> p->h) + (p->mask & ~(a << odd))) >> p->top;
  if (clip && q > 127u) q = 127u;
  int32_t sign = g >> 31;
  return (int32_t)((q ^ (uint32_t)sign) - (uint32_t)sign);
}

static inline int32_t half_up(int32_t g, int32_t half, uint32_t s, bool clip, uint32_t* or_abs) {
  if (clip) *or_abs |= magnitude(g);
  int32_t d = (g + half) >> s;
  if (clip) DSP_SSAT8(d);
  return d;
}

static inline uint32_t pack(int32_t d0, int32_t d1, int32_t d2, int32_t d3) {
  uint32_t word = (uint32_t)d0;
  DSP_BFI8(word, d1, 8);
  DSP_BFI8(word, d2, 16);
  DSP_BFI8(word, d3, 24);
  return word;
}

static inline __attribute__((always_inline)) uint32_t psto_words(const int32_t* g, uint32_t words,
                                                                 uint32_t s, uint32_t odd,
                                                                 bool clip, uint32_t* d) {
  psto_t p = {s / 2u, s / 2u + odd, (1u << (s / 2u + odd)) - 1u};
  uint32_t or_abs = 0;
  for (uint32_t i = 0; i < words; i++, g += 4) {
    int32_t d0 = psto(g[0], &p, odd, clip, &or_abs), d1 = psto(g[1], &p, odd, clip, &or_abs);
    int32_t d2 = psto(g[2], &p, odd, clip, &or_abs), d3 = psto(g[3], &p, odd, clip, &or_abs);
    d[i] = pack(d0, d1, d2, d3);
  }
  return or_abs;
}

static inline __attribute__((always_inline)) uint32_t half_up_words(const int32_t* g,
                                                                    uint32_t words, uint32_t s,
                                                                    bool clip, uint32_t* d) {
  uint32_t or_abs = 0;
  int32_t half = (int32_t)(1u << (s - 1u));
  for (uint32_t i = 0; i < words; i++, g += 4) {
    int32_t d0 = half_up(g[0], half, s, clip, &or_abs), d1 = half_up(g[1], half, s, clip, &or_abs);
    int32_t d2 = half_up(g[2], half, s, clip, &or_abs), d3 = half_up(g[3], half, s, clip, &or_abs);
    d[i] = pack(d0, d1, d2, d3);
  }
  return or_abs;
}

/* Deltas as bytes; OR of |g| where they are clipped, which goes with measuring. */
static uint32_t round_words(const odt_update_t* u, const int32_t* g, uint32_t words, uint32_t* d) {
  uint32_t s = (uint32_t)u->s;
  if (u->rounding == ODT_ROUND_HALF_UP) {
    return u->measure ? half_up_words(g, words, s, true, d) : half_up_words(g, words, s, false, d);
  }
  if (s % 2u) {
    return u->measure ? psto_words(g, words, s, 1, true, d) : psto_words(g, words, s, 1, false, d);
  }
  return u->measure ? psto_words(g, words, s, 0, true, d) : psto_words(g, words, s, 0, false, d);
}

/* Every byte within +-limit. */
static inline uint32_t clip_bytes(uint32_t v, uint32_t above, uint32_t below) {
  v = dsp_ssub8(dsp_qadd8(v, above), above);
  return dsp_sadd8(dsp_qsub8(v, below), below);
}

/* One by one: where a weight meets its limit, or is a -128 of the file, which stays while d is 0.
 */
static uint32_t update_slowly(uint32_t m, uint32_t d, int32_t m_hi) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < 32u; i += 8u) {
    int32_t v = (int8_t)(m >> i), di = (int8_t)(d >> i);
    v -= di;
    if (di != 0) v = v > m_hi ? m_hi : v < -m_hi ? -m_hi : v;
    out |= ((uint32_t)v & 0xFFu) << i;
  }
  return out;
}

/* M - d for whole words `step` bytes apart, with its counts. */
static void apply_words(odt_update_t* u, uint8_t* m, uint32_t step, const uint32_t* d,
                        uint32_t words) {
  uint32_t above = BYTES(127 - u->m_hi), below = BYTES(128 - u->m_hi);
  uint32_t nonzero = 0, abs_delta = 0;
  for (uint32_t i = 0; i < words; i++, m += step) {
    uint32_t di = d[i];
    if (di == 0) continue;
    nonzero = dsp_usada8(dsp_nonzero8(di, 0xFFFFFFFFu, 0x01010101u, 0), 0, nonzero);
    abs_delta = dsp_usada8(di ^ 0x80808080u, 0x80808080u, abs_delta);
    uint32_t old, now, clipped;
    memcpy(&old, m, 4);
    now = dsp_qsub8(old, di);
    clipped = clip_bytes(now, above, below);
    if (clipped != now) now = update_slowly(old, di, u->m_hi);
    memcpy(m, &now, 4);
  }
  u->nonzero += nonzero;
  u->abs_delta += abs_delta;
}

static bool usual(const odt_update_t* u) {
  if (!u->apply || u->literal || u->m16 || u->s < 1 || u->s > 30) return false;
  if (u->rounding != ODT_ROUND_PSTO && u->rounding != ODT_ROUND_HALF_UP) return false;
  /* Deltas must fit a byte: by the limit of stale shifts, or by what was measured before. */
  return u->measure ? u->d_clip <= 126 : u->d_clip == INT32_MAX && u->or_abs >> u->s < 126;
}

void odt_update_words(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int32_t* g, uint32_t n) {
  uint32_t d[WORDS];
  if (!usual(u)) {
    odt_update_values(u, lay, o, col, g, n);
    return;
  }
  uint32_t rows = odt_panel_rows(lay->rows, o), words = n / 4u;
  uint8_t* m = (uint8_t*)u->m8 + 4u * (odt_row_word(lay->rows, lay->words, o) + col / 4u * rows);
  uint32_t or_abs = round_words(u, g, words, d);
  if (u->measure) {
    u->or_abs |= or_abs;
    uint32_t above = BYTES(127 - u->d_clip), below = BYTES(128 - u->d_clip);
    for (uint32_t i = 0; i < words; i++) d[i] = clip_bytes(d[i], above, below);
  }
  if (u->sum) {
    for (uint32_t i = 0; i < n; i++) u->sum_abs += magnitude(g[i]);
  }
  apply_words(u, m, 4u * rows, d, words);
}

#endif

/* Weight updates four at a time, for int8 weights and the usual settings; the rest goes to
 * odt_update_values. */
#include "kernels/matrix.h"

#if defined(ODT_KERNELS_DSP) || defined(ODT_KERNELS_MVE)

#include "kernels/dsp.h"
#include "kernels/mve.h"
#include "round.h"

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
static uint32_t round_words(const odt_update_t* u, bool measure, const int32_t* g, uint32_t words,
                            uint32_t* d) {
  uint32_t s = (uint32_t)u->s;
  if (u->rounding == ODT_ROUND_HALF_UP) {
    return measure ? half_up_words(g, words, s, true, d) : half_up_words(g, words, s, false, d);
  }
  if (s % 2u) {
    return measure ? psto_words(g, words, s, 1, true, d) : psto_words(g, words, s, 1, false, d);
  }
  return measure ? psto_words(g, words, s, 0, true, d) : psto_words(g, words, s, 0, false, d);
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

/* Keeps a constant in its register. */
#define HELD(name, value)  \
  uint32_t name = (value); \
  __asm__("" : "+r"(name))

/* M - d for whole words `step` bytes apart, with its counts. full: the limit is 127. */
static inline __attribute__((always_inline)) void apply_words(odt_update_t* u, uint8_t* m,
                                                              uint32_t step, const uint32_t* d,
                                                              uint32_t words, bool full) {
  HELD(above, BYTES(127 - u->m_hi));
  HELD(below, BYTES(128 - u->m_hi));
  HELD(ff, 0xFFFFFFFFu);
  HELD(ones, 0x01010101u);
  HELD(zero, 0);
  HELD(middle, 0x80808080u);
  uint32_t nonzero = 0, abs_delta = 0;
  for (const uint32_t* end = d + words; d != end; m += step) {
    uint32_t di = *d++;
    if (di == 0) continue;
    uint32_t old, now, clipped;
    memcpy(&old, m, 4);
    nonzero = dsp_usada8(dsp_nonzero8(di, ff, ones, zero), zero, nonzero);
    abs_delta = dsp_usada8(di ^ middle, middle, abs_delta);
    now = dsp_qsub8(old, di);
    clipped = full ? dsp_sadd8(dsp_qsub8(now, ones), ones) : clip_bytes(now, above, below);
    if (__builtin_expect(clipped != now, 0)) now = update_slowly(old, di, u->m_hi);
    memcpy(m, &now, 4);
  }
  u->nonzero += nonzero;
  u->abs_delta += abs_delta;
}

void odt_update_prepare(odt_update_t* u) {
  bool rounding = u->rounding == ODT_ROUND_PSTO || u->rounding == ODT_ROUND_HALF_UP;
  /* Deltas must fit a byte: by the limit of stale shifts, or by what was measured before. */
  bool small =
      u->measure ? u->d_clip <= 126 : u->d_clip == INT32_MAX && odt_bitlen64(u->or_abs) <= u->s + 6;
  u->fast = u->apply && !u->literal && !u->m16 && u->s >= 1 && u->s <= 30 && rounding && small;
}

/* ---- gradients of eight samples and their rounding at once --------------------------------------
 */

#define MAX_WORDS 64u /* of a row at a time */

#if defined(__ARM_FEATURE_DSP) && defined(ODT_KERNELS_DSP)

/* The gradient in r2; x advances. */
#define GRADIENT(first)                     \
  "ldmia %[x]!, {r2, r3, r4, r5}\n\t" first \
  "smlad r2, r3, %[d1], r2\n\t"             \
  "smlad r2, r4, %[d2], r2\n\t"             \
  "smlad r2, r5, %[d3], r2\n\t"
/* As psto() above; the shifts are part of the instructions: one loop per shift. (Those that set the
 * flags are half as long.) */
#define PSTO(to)                        \
  GRADIENT("smuad r2, r2, %[d0]\n\t")   \
  "asrs r3, r2, #31\n\t"                \
  "eors r2, r3\n\t"                     \
  "subs r2, r2, r3\n\t"                 \
  "bic r4, %[mask], r2, lsl %[odd]\n\t" \
  "add r4, r4, r2, lsr %[h]\n\t"        \
  "eor r4, r3, r4, lsr %[top]\n\t"      \
  "sub " to ", r4, r3\n\t"
#define INSERT(at) "bfi %[w], r2, #" at ", #8\n\t"
#define FOUR(step) \
  step("%[w]") step("r2") INSERT("8") step("r2") INSERT("16") step("r2") INSERT("24")
#define WORD_LOOP(step, ...) \
  __asm__ volatile("1:\n\t" FOUR(step) "str %[w], [%[d]], #4\n\t"                                  \
                   "cmp %[x], %[end]\n\t"                                                          \
                   "bne 1b"                                                                        \
                   : [x] "+r"(x), [d] "+r"(d), [w] "=&r"(w)                                        \
                   : [end] "r"(x + 4u * n), [d0] "r"(dy[0]), [d1] "r"(dy[1]), [d2] "r"(dy[2]),     \
                     [d3] "r"(dy[3]), __VA_ARGS__                                                  \
                   : "r2", "r3", "r4", "r5", "cc", "memory")
#define PSTO_LOOP(s)                                                            \
  case s:                                                                       \
    WORD_LOOP(PSTO, [mask] "r"((1u << (((s) + 1) / 2)) - 1u), [h] "i"((s) / 2), \
              [top] "i"(((s) + 1) / 2), [odd] "i"((s) % 2));                    \
    return;

#define PSTO_FIRST 6
#define PSTO_LAST 16 /* |G| < 2^17: all that mu above 0 can ask for at k = 8 */

static void psto_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                           uint32_t* d) {
  uint32_t w;
  switch (s) {
    PSTO_LOOP(6)
    PSTO_LOOP(7)
    PSTO_LOOP(8)
    PSTO_LOOP(9)
    PSTO_LOOP(10)
    PSTO_LOOP(11)
    PSTO_LOOP(12)
    PSTO_LOOP(13)
    PSTO_LOOP(14)
    PSTO_LOOP(15)
    PSTO_LOOP(16)
    default:
      return;
  }
}

#define HALF_UP(to) GRADIENT("smlad r2, r2, %[d0], %[half]\n\t") "asr " to ", r2, %[s]\n\t"

static void half_up_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                              uint32_t* d) {
  uint32_t w;
  WORD_LOOP(HALF_UP, [half] "r"(1u << (s - 1u)), [s] "r"(s));
}

#elif defined(ODT_KERNELS_MVE)

#define PSTO_FIRST 1
#define PSTO_LAST 30
#define psto_gradients odt_mve_psto_gradients
#define half_up_gradients odt_mve_half_up_gradients

#else

#define PSTO_FIRST 1
#define PSTO_LAST 30

static int32_t gradient(const uint32_t* x, const uint32_t* dy) {
  int32_t g = 0;
  for (int i = 0; i < 4; i++) g = dsp_smlad(x[i], dy[i], g);
  return g;
}

static void psto_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                           uint32_t* d) {
  psto_t p = {s / 2u, (s + 1u) / 2u, (1u << ((s + 1u) / 2u)) - 1u};
  uint32_t or_abs = 0;
  for (uint32_t i = 0; i < n; i += 4u, x += 16) {
    int32_t v[4];
    for (uint32_t j = 0; j < 4u; j++) {
      v[j] = psto(gradient(x + 4u * j, dy), &p, s % 2u, false, &or_abs);
    }
    *d++ = pack(v[0], v[1], v[2], v[3]);
  }
}

static void half_up_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                              uint32_t* d) {
  uint32_t or_abs = 0;
  for (uint32_t i = 0; i < n; i += 4u, x += 16) {
    int32_t v[4];
    for (uint32_t j = 0; j < 4u; j++) {
      v[j] = half_up(gradient(x + 4u * j, dy), (int32_t)(1u << (s - 1u)), s, false, &or_abs);
    }
    *d++ = pack(v[0], v[1], v[2], v[3]);
  }
}

#endif

static uint8_t* word_of(const odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col) {
  uint32_t rows = odt_panel_rows(lay->rows, o);
  return (uint8_t*)u->m8 + 4u * (odt_row_word(lay->rows, lay->words, o) + col / 4u * rows);
}

static void apply_row(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const uint32_t* d, uint32_t words) {
  uint32_t step = 4u * odt_panel_rows(lay->rows, o);
  uint8_t* m = word_of(u, lay, o, col);
  if (u->m_hi == 127) {
    apply_words(u, m, step, d, words, true);
  } else {
    apply_words(u, m, step, d, words, false);
  }
}

bool odt_outer_update(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int16_t* x, uint32_t n, const int16_t* dy) {
  uint32_t d[MAX_WORDS], s = (uint32_t)u->s;
  bool psto = u->rounding == ODT_ROUND_PSTO;
  if (!u->fast || u->sum || (u->measure && !u->tame)) return false;
  if (psto && (u->s < PSTO_FIRST || u->s > PSTO_LAST)) return false;
  const uint32_t* x2 = (const uint32_t*)(const void*)x;
  const uint32_t* dy2 = (const uint32_t*)(const void*)dy;
  for (uint32_t j = 0; j < n; j += 4u * MAX_WORDS) {
    uint32_t left = n - j < 4u * MAX_WORDS ? n - j : 4u * MAX_WORDS;
    if (psto) {
      psto_gradients(s, x2 + 4u * j, left, dy2, d);
    } else {
      half_up_gradients(s, x2 + 4u * j, left, dy2, d);
    }
    apply_row(u, lay, o, col + j, d, left / 4u);
  }
  return true;
}

static __attribute__((noinline)) void add_magnitudes(odt_update_t* u, const int32_t* g,
                                                     uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += magnitude(g[i]);
  u->sum_abs += sum;
}

void odt_update_words(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int32_t* g, uint32_t n) {
  uint32_t d[WORDS];
  if (!u->fast) {
    odt_update_values(u, lay, o, col, g, n);
    return;
  }
  uint32_t words = n / 4u;
  bool measure = u->measure && !u->tame;
  uint32_t or_abs = round_words(u, measure, g, words, d);
  if (measure) {
    u->or_abs |= or_abs;
    HELD(above, BYTES(127 - u->d_clip));
    HELD(below, BYTES(128 - u->d_clip));
    for (uint32_t i = 0; i < words; i++) d[i] = clip_bytes(d[i], above, below);
  }
  if (u->sum) add_magnitudes(u, g, n);
  apply_row(u, lay, o, col, d, words);
}

#endif

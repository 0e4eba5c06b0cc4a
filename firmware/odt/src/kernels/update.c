/* Rules 1.1, 1.5, 1.7, 1.11: from one gradient to one stored weight. */
#include "kernels/matrix.h"
#include "round.h"

static uint64_t abs64(int64_t v) { return v < 0 ? 0u - (uint64_t)v : (uint64_t)v; }

static int64_t delta_of(const odt_update_t* u, uint32_t i, int64_t g) {
  if (u->literal) return odt_half_up(odt_half_up(g, u->s), u->s2);
  uint32_t r = u->rounding == ODT_ROUND_SR ? odt_hash32(u->sr_seed, u->step, u->layer, i) : 0;
  return odt_round(g, u->s, u->rounding, r);
}

static void apply(odt_update_t* u, uint32_t at, int64_t d) {
  if (d > u->d_clip) d = u->d_clip;
  if (d < -u->d_clip) d = -u->d_clip;
  if (d == 0) return;
  u->nonzero++;
  u->abs_delta += abs64(d);
  int64_t m = (u->m16 ? u->m16[at] : u->m8[at]) - d;
  if (m > u->m_hi) m = u->m_hi;
  if (m < u->m_lo) m = u->m_lo;
  if (u->m16) {
    u->m16[at] = (int16_t)m;
  } else {
    u->m8[at] = (int8_t)m;
  }
}

void odt_update_one(odt_update_t* u, uint32_t i, uint32_t at, int64_t g) {
  if (g == 0) return;
  if (u->measure) u->or_abs |= abs64(g);
  if (!u->apply) return;
  if (u->sum) u->sum_abs += abs64(g);
  apply(u, at, delta_of(u, i, g));
}

/* The usual case in 32 bits: 1 <= s <= 30 and |g| <= 2^30, so |g| + 2^(s-1) < 2^31. */
static int32_t delta32(const odt_update_t* u, uint32_t i, int32_t g) {
  int s = u->s;
  uint32_t half = 1u << (s - 1), mask = (half << 1) - 1u, q;
  if (u->rounding == ODT_ROUND_HALF_UP) return (g + (int32_t)half) >> s;
  uint32_t a = g < 0 ? 0u - (uint32_t)g : (uint32_t)g;
  if (u->rounding == ODT_ROUND_HALF_AWAY) {
    q = (a + half) >> s;
  } else if (u->rounding == ODT_ROUND_SR) {
    uint32_t r = odt_hash32(u->sr_seed, u->step, u->layer, i);
    q = (a >> s) + ((r & mask) < (a & mask) ? 1u : 0u);
  } else {
    int h = s / 2;
    uint32_t hi = (a & mask) >> h, lo = a & ((1u << h) - 1u);
    if (s & 1) lo <<= 1;
    q = (a >> s) + (hi > lo ? 1u : 0u);
  }
  return g < 0 ? -(int32_t)q : (int32_t)q;
}

static void measure(odt_update_t* u, const int32_t* g, uint32_t n) {
  uint32_t or_abs = 0;
  for (uint32_t j = 0; j < n; j++) or_abs |= g[j] < 0 ? 0u - (uint32_t)g[j] : (uint32_t)g[j];
  u->or_abs |= or_abs;
}

static inline void update32(odt_update_t* u, bool narrow, uint32_t i, uint32_t at, int32_t g) {
  if (g == 0) return;
  if (u->sum) u->sum_abs += abs64(g);
  int64_t d = narrow ? delta32(u, i, g) : delta_of(u, i, g);
  if (d != 0) apply(u, at, d);
}

static bool fits32(const odt_update_t* u) { return !u->literal && u->s >= 1 && u->s <= 30; }

void odt_update_values(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                       const int32_t* g, uint32_t n) {
  bool narrow = fits32(u);
  if (n > lay->cols - col) n = lay->cols - col;
  if (u->measure) measure(u, g, n);
  if (!u->apply) return;
  for (uint32_t j = 0; j < n; j++) {
    uint32_t i = lay->in_out ? (col + j) * lay->rows + o : o * lay->cols + col + j;
    update32(u, narrow, i, odt_layout_at(lay, o, col + j), g[j]);
  }
}

void odt_update_row(odt_update_t* u, uint32_t i, const int32_t* g, uint32_t n) {
  bool narrow = fits32(u);
  if (u->measure) measure(u, g, n);
  if (!u->apply) return;
  for (uint32_t j = 0; j < n; j++) update32(u, narrow, i + j, i + j, g[j]);
}

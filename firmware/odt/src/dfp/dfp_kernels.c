/* Parts of rule 1.13 that every kernel shares. */
#include "dfp/dfp_dense_dsp.h"

int64_t odt_dfp_bias(const odt_dfp_weights_t* w, uint32_t o) {
  static const int64_t kTop = (int64_t)1 << 62;
  int left = w->bias_left + odt_dfp_below(w, o);
  if (left >= 0 && left <= 30) return (int64_t)w->bias[o] * ((int64_t)1 << left);
  int64_t v = odt_half_up(w->bias[o], -left);
  return v > kTop ? kTop : v < -kTop ? -kTop : v;
}

static bool fits(const odt_dfp_update_t* u, const int16_t* w, const int32_t* d, uint32_t n) {
  if (u->revert || u->saturate) return true;
  for (uint32_t j = 0; j < n; j++) {
    int32_t v = w[j] - d[j];
    if (v > ODT_DFP_MAX || v < -ODT_DFP_MAX) return false;
  }
  return true;
}

static int16_t cut(int32_t v) {
  return (int16_t)(v > ODT_DFP_MAX ? ODT_DFP_MAX : v < -ODT_DFP_MAX ? -ODT_DFP_MAX : v);
}

/* The usual case: sums below 2^36 make steps of at most 19 bits. The product's lower word does not
 * matter, since s is above 32. */
static bool apply_usual(const odt_dfp_update_t* u, int16_t* w, const int64_t* sum, uint32_t n) {
  int32_t to[4];
  int32_t half = (int32_t)(1u << (u->s - 33)), m = u->lr_m;
  uint32_t outside = 0;
  for (uint32_t j = 0; j < n; j++) {
    int32_t low = (int32_t)((uint64_t)(uint32_t)sum[j] * (uint32_t)m >> 32);
    to[j] = w[j] - (((int32_t)(sum[j] >> 32) * m + low + half) >> (u->s - 32));
    outside |= (uint32_t)(to[j] + ODT_DFP_MAX) > 2u * ODT_DFP_MAX ? 1u : 0u;
  }
  bool in_range = outside == 0;
  for (uint32_t j = 0; in_range && j < n; j++) w[j] = (int16_t)to[j];
  return in_range;
}

bool odt_dfp_apply(odt_dfp_update_t* u, int16_t* w, const int64_t* sum, uint32_t n) {
  int32_t d[4];
  uint64_t or_abs = 0;
  for (uint32_t j = 0; j < n; j++) or_abs |= odt_dfp_abs(sum[j]);
  u->or_abs |= or_abs;
  if (!u->revert && !u->saturate && !u->stats && u->s >= 33 && u->s <= 62 && or_abs >> 36 == 0) {
    return apply_usual(u, w, sum, n);
  }
  for (uint32_t j = 0; j < n; j++) d[j] = odt_dfp_step(u, sum[j]);
  if (!fits(u, w, d, n)) return false;
  for (uint32_t j = 0; j < n; j++) w[j] = cut(u->revert ? w[j] + d[j] : w[j] - d[j]);
  for (uint32_t j = 0; u->stats && j < n; j++) {
    u->sum_abs += odt_dfp_abs(sum[j]);
    u->abs_delta += odt_dfp_abs(d[j]);
    if (d[j] != 0) u->nonzero++;
  }
  return true;
}

#ifdef ODT_DFP_DSP
/* Value + half, shifted and cut; counts zeros. */
static inline int32_t rounded(int32_t acc, int32_t half, int s, bool relu, uint32_t* zeros) {
  int32_t v = (acc + half) >> s, bits;
  if (relu) {
    __asm__("usat %0, #15, %0" : "+r"(v));
  } else {
    __asm__("ssat %0, #16, %0" : "+r"(v));
    if (v < -ODT_DFP_MAX) v = -ODT_DFP_MAX;
  }
  __asm__("clz %0, %1" : "=r"(bits) : "r"(v));
  *zeros += (uint32_t)bits >> 5;
  return v;
}

static inline uint32_t round_all(const int32_t* acc, int16_t* y, uint32_t n, int s, bool relu) {
  int32_t half = s > 0 ? 1 << (s - 1) : 0;
  uint32_t zeros = 0;
  for (; n > 1u; n -= 2u, acc += 2, y += 2) {
    int32_t a = rounded(acc[0], half, s, relu, &zeros);
    odt_dfp_pair_t both =
        odt_dfp_low((uint32_t)a, (uint32_t)rounded(acc[1], half, s, relu, &zeros));
    memcpy(y, &both, 4);
  }
  if (n > 0) y[0] = (int16_t)rounded(acc[0], half, s, relu, &zeros);
  return zeros;
}

uint32_t odt_dfp_round(const int32_t* acc, int16_t* y, uint32_t n, int s, bool relu) {
  return relu ? round_all(acc, y, n, s, true) : round_all(acc, y, n, s, false);
}
#else
uint32_t odt_dfp_round(const int32_t* acc, int16_t* y, uint32_t n, int s, bool relu) {
  int32_t half = s > 0 ? 1 << (s - 1) : 0, low = relu ? 0 : -ODT_DFP_MAX;
  uint32_t zeros = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t v = (acc[i] + half) >> s;
    v = v > ODT_DFP_MAX ? ODT_DFP_MAX : v < low ? low : v;
    zeros += v == 0 ? 1u : 0u;
    y[i] = (int16_t)v;
  }
  return zeros;
}
#endif

/* Dense layers of rule 1.13 with the DSP extension: SMLALD on 2x2 tiles. What no path here takes is
 * left to dfp_dense.c; the bits are the same. */
#include "dfp/dfp_dense_dsp.h"

#ifdef ODT_DFP_DSP

#include <arm_acle.h>
#include <stddef.h>
#include <string.h>

typedef int16x2_t pair_t;

static inline pair_t load2(const int16_t* p) {
  pair_t v;
  memcpy(&v, p, 4);
  return v;
}

/* ---- tiles of 2 outputs and 2 samples -----------------------------------------------------------
 */

typedef struct {
  int64_t start[4]; /* where the sums begin: (o, b), (o, b+1), (o+1, b), (o+1, b+1) */
  const int16_t* w; /* (o, o+1) of each pair of inputs */
  const pair_t* x;  /* (b, b+1) of each pair of inputs */
  const pair_t* end;
  const pair_t* odd; /* x behind those pairs that no whole four has */
  int64_t* sums;     /* tile: [4] */
  int32_t* acc;      /* tile_put: (o, b) */
  uint32_t stride;   /* from there to (o, b+1), bytes */
  int32_t pre;       /* tile_put: 1..31 */
  uint64_t or_abs;   /* tile_put */
} tile_t;

/* r4 to r11 hold the sums, all else is taken too: the ends of x lie on the stack. */
#define TILE_STEP            \
  "ldrd r2, r3, [r0], #8\n"  \
  "ldrd r12, lr, [r1], #8\n" \
  "smlald r4, r5, r2, r12\n" \
  "smlald r6, r7, r2, lr\n"  \
  "smlald r8, r9, r3, r12\n" \
  "smlald r10, r11, r3, lr\n"
#define TILE_SUMS                                \
  "push {r0, r4-r11, lr}\n"                      \
  "ldr r2, [r0, #40]\n"                          \
  "ldr r3, [r0, #44]\n"                          \
  "push {r2, r3}\n"                              \
  "mov r2, r0\n"                                 \
  "ldmia r2!, {r4-r11}\n"                        \
  "ldrd r0, r1, [r2]\n"                          \
  "ldr r2, [sp, #4]\n"                           \
  "cmp r1, r2\n"                                 \
  "beq 2f\n"                                     \
  "1:\n" TILE_STEP                               \
  "ldr r2, [sp, #4]\n"                           \
  "cmp r1, r2\n"                                 \
  "bne 1b\n"                                     \
  "2:\n"                                         \
  "ldr r2, [sp]\n"                               \
  "cmp r1, r2\n"                                 \
  "beq 4f\n"                                     \
  "3:\n" TILE_STEP TILE_STEP TILE_STEP TILE_STEP \
  "ldr r2, [sp]\n"                               \
  "cmp r1, r2\n"                                 \
  "bne 3b\n"                                     \
  "4:\n"

__attribute__((naked, noinline)) static void tile(__attribute__((unused)) tile_t* t) {
  __asm__ volatile(TILE_SUMS
                   "ldr r0, [sp, #8]\n"
                   "ldr r0, [r0, #48]\n"
                   "stmia r0, {r4-r11}\n"
                   "add sp, #12\n"
                   "pop {r4-r11, pc}\n");
}

/* acc = floor(sum / 2^pre), or_abs |= |sum|. */
__attribute__((naked, noinline)) static void tile_put(__attribute__((unused)) tile_t* t) {
#define PUT(lo, hi, at)      \
  "lsr r12, " lo             \
  ", r2\n"                   \
  "lsl lr, " hi              \
  ", r3\n"                   \
  "orr r12, r12, lr\n"       \
  "str r12, " at             \
  "\n"                       \
  "eor " lo ", " lo ", " hi  \
  ", asr #31\n"              \
  "eor lr, " hi ", " hi      \
  ", asr #31\n"              \
  "adds " lo ", " lo ", " hi \
  ", lsr #31\n"              \
  "adc " hi ", lr, #0\n"
  __asm__ volatile(TILE_SUMS
                   "ldr r12, [sp, #8]\n"
                   "ldrd r0, r1, [r12, #52]\n"
                   "ldr r2, [r12, #60]\n"
                   "rsb r3, r2, #32\n"
                   PUT("r4", "r5", "[r0]") PUT("r6", "r7", "[r0, r1]")
                   "adds r0, #4\n"
                   PUT("r8", "r9", "[r0]") PUT("r10", "r11", "[r0, r1]")
                   "ldr r12, [sp, #8]\n"
                   "ldrd r0, r1, [r12, #64]\n"
                   "orr r4, r4, r6\n"
                   "orr r8, r8, r10\n"
                   "orr r5, r5, r7\n"
                   "orr r9, r9, r11\n"
                   "orr r0, r0, r4\n"
                   "orr r1, r1, r5\n"
                   "orr r0, r0, r8\n"
                   "orr r1, r1, r9\n"
                   "strd r0, r1, [r12, #64]\n"
                   "add sp, #12\n"
                   "pop {r4-r11, pc}\n");
#undef PUT
}

_Static_assert(offsetof(tile_t, end) == 40 && offsetof(tile_t, sums) == 48 &&
                   offsetof(tile_t, acc) == 52 && offsetof(tile_t, or_abs) == 64,
               "the assembly knows where these lie");

static void tile_x(tile_t* t, const pair_t* x, uint32_t pairs) {
  t->x = x;
  t->odd = x + 2u * (pairs & 3u);
  t->end = x + 2u * pairs;
}

/* Two samples side by side: [pair of inputs][2]. */
static void interleave(const int16_t* a, const int16_t* b, uint32_t pairs, pair_t* out) {
  for (; pairs > 0; pairs--, a += 2, b += 2) {
    *out++ = load2(a);
    *out++ = load2(b);
  }
}

/* Any sink, at the edges too. */
static void put_tile(const odt_dfp_weights_t* w, uint32_t n_out, uint32_t n, uint32_t o, uint32_t b,
                     const int64_t* sums, odt_dfp_sink_t* k) {
  for (uint32_t j = 0; j < 4u; j++) {
    uint32_t out = o + (j >> 1), sample = b + (j & 1u);
    if (out >= n_out || sample >= n) continue;
    odt_dfp_put(k, sample, out, odt_dfp_half_up(sums[j], odt_dfp_below(w, out)));
  }
}

/* ---- forward ----------------------------------------------------------------------------------
 */

bool odt_dfp_dense_forward_dsp(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                               const int16_t* x, uint32_t x_stride, uint32_t n,
                               odt_dfp_sink_t* sink, void* scratch) {
  if (!w->panels) return false;
  uint32_t across = (n_in + 1u) >> 1;
  bool plain = !sink->mask && !sink->wide && !w->e && sink->pre >= 1 && sink->pre <= 31;
  for (uint32_t b = 0; b < n; b += 2u) {
    const int16_t* row = x + (size_t)b * x_stride;
    interleave(row, b + 1u < n ? row + x_stride : row, across, (pair_t*)scratch + b * across);
  }
  int64_t sums[4];
  tile_t t = {.w = w->w, .sums = sums, .stride = 4u * sink->stride, .pre = sink->pre};
  for (uint32_t o = 0; o < n_out; o += 2u, t.w += 4u * across) {
    bool two = o + 1u < n_out;
    t.start[0] = t.start[1] = odt_dfp_bias(w, o);
    t.start[2] = t.start[3] = two ? odt_dfp_bias(w, o + 1u) : 0;
    t.acc = sink->acc + o;
    for (uint32_t b = 0; b < n; b += 2u, t.acc += 2u * sink->stride) {
      tile_x(&t, (const pair_t*)scratch + b * across, across);
      if (plain && two && b + 1u < n) {
        tile_put(&t);
      } else {
        tile(&t);
        put_tile(w, n_out, n, o, b, sums, sink);
      }
    }
  }
  sink->or_abs |= t.or_abs;
  return true;
}

/* ---- deltas -----------------------------------------------------------------------------------
 */

/* Inputs i and i+1 of one sample: the sums over all outputs. dy in pairs; w at the first panel's
 * block. */
static void delta_block(const int16_t* w, uint32_t panel, const int16_t* dy, uint32_t pairs,
                        int64_t sum[2]) {
  int64_t a = 0, b = 0;
  for (; pairs > 0; pairs--, w += panel, dy += 2) {
    uint32_t even = (uint32_t)load2(w), odd = (uint32_t)load2(w + 2);
    pair_t d = load2(dy);
    a = __smlald((int16x2_t)((even & 0xFFFFu) | odd << 16), d, a);
    b = __smlald((int16x2_t)(even >> 16 | (odd & 0xFFFF0000u)), d, b);
  }
  sum[0] = a;
  sum[1] = b;
}

bool odt_dfp_dense_delta_dsp(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                             const int16_t* dy, uint32_t dy_stride, uint32_t n,
                             odt_dfp_sink_t* sink) {
  if (!w->panels || w->e || sink->wide) return false;
  uint32_t panel = odt_dfp_even(n_in) * 2u, pairs = (n_out + 1u) >> 1;
  uint64_t or_abs = 0;
  for (uint32_t b = 0; b < n; b++) {
    const int16_t* mask = sink->mask ? sink->mask + (size_t)b * sink->stride : NULL;
    int32_t* acc = sink->acc + (size_t)b * sink->stride;
    for (uint32_t i = 0; i < n_in; i += 2u) {
      int64_t sum[2];
      delta_block(w->w + 2u * i, panel, dy + (size_t)b * dy_stride, pairs, sum);
      for (uint32_t j = 0; j < 2u && i + j < n_in; j++) {
        if (mask && mask[i + j] <= 0) sum[j] = 0;
        or_abs |= odt_dfp_abs(sum[j]);
        acc[i + j] = (int32_t)(sum[j] >> sink->pre);
      }
    }
  }
  sink->or_abs |= or_abs;
  return true;
}

/* ---- updates ----------------------------------------------------------------------------------
 */

/* Values 2p and 2p+1 of two columns, paired over samples: (a[2p], a[2p+1]), (b[2p], b[2p+1]). A
 * sample beyond the batch counts as 0. Returns the larger of both sums of squares. */
static uint64_t pair_samples(const int16_t* x, uint32_t stride, uint32_t n, pair_t* out) {
  int64_t first = 0, second = 0;
  for (uint32_t b = 0; b < n; b += 2u, x += 2u * stride, out += 2) {
    uint32_t even = (uint32_t)load2(x), odd = b + 1u < n ? (uint32_t)load2(x + stride) : 0;
    out[0] = (pair_t)((even & 0xFFFFu) | odd << 16);
    out[1] = (pair_t)(even >> 16 | (odd & 0xFFFF0000u));
    first = __smlald(out[0], out[0], first);
    second = __smlald(out[1], out[1], second);
  }
  return (uint64_t)(first > second ? first : second);
}

/* Cauchy-Schwarz: |sum of products| <= sqrt(a * b). Below 2^31 the sum may be taken in an int32,
 * whatever it wraps to on the way. */
static bool fits32(uint64_t a, uint64_t b) {
  return ((a >> 8) + 1u) * ((b >> 8) + 1u) < (uint64_t)1 << 46;
}

typedef struct {
  const pair_t* x;  /* [block][4][2] */
  const pair_t* dy; /* [4][2] */
  int16_t *w, *end;
  int32_t m; /* lr_m * 2^(48 - s) */
  uint32_t or_abs;
} run_t;

/* Blocks of one panel, batches of 7 or 8, sums in 32 bits, 32 <= s <= 48. The step is the top half
 * of (sum * m + 2^47) >> 32: that is HALF_UP(sum * lr_m, s). Stops at the first block that would
 * overflow. */
__attribute__((naked, noinline)) static void update_run(__attribute__((unused)) run_t* r) {
#define MAC(op, at, more)                                                                  \
  "ldrd r12, lr, [r0], #8\n ldrd r10, r11, [r1, #" #at "]\n" #op                           \
  " r4, r12, r10" more(r4) "\n" #op " r5, lr, r10" more(r5) "\n" #op " r6, r12, r11" more( \
      r6) "\n" #op " r7, lr, r11" more(r7) "\n"
#define NO(r)
#define ACC(r) ", " #r
#define OR_ABS(r)        \
  "eor r10, " #r ", " #r \
  ", asr #31\n"          \
  "add r10, r10, " #r    \
  ", lsr #31\n"          \
  "orr r9, r9, r10\n"
  __asm__ volatile(
      "push {r0, r4-r11, lr}\n"
      "ldr r9, [r0, #20]\n"
      "ldr r3, [r0, #16]\n"
      "ldr r4, [r0, #12]\n"
      "ldr r2, [r0, #8]\n"
      "ldr r1, [r0, #4]\n"
      "ldr r0, [r0]\n"
      "push {r4}\n"
      "mov r8, #32768\n"
      "cmp r2, r4\n"
      "beq 2f\n"
      "1:\n"
      MAC(smuad, 0, NO) MAC(smlad, 8, ACC) MAC(smlad, 16, ACC) MAC(smlad, 24, ACC)
      OR_ABS(r4) OR_ABS(r5) OR_ABS(r6) OR_ABS(r7)
      "smmla r4, r4, r3, r8\n"
      "smmla r5, r5, r3, r8\n"
      "smmla r6, r6, r3, r8\n"
      "smmla r7, r7, r3, r8\n"
      "ldrd r10, r11, [r2]\n"
      "pkhtb r4, r5, r4, asr #16\n"
      "pkhtb r6, r7, r6, asr #16\n"
      /* Saturated W - d and d - W cancel only where both stay within +-32767. */
      "qsub16 r12, r10, r4\n"
      "qsub16 lr, r11, r6\n"
      "qsub16 r10, r4, r10\n"
      "qsub16 r11, r6, r11\n"
      "sadd16 r10, r10, r12\n"
      "sadd16 r11, r11, lr\n"
      "orrs r10, r10, r11\n"
      "bne 2f\n"
      "strd r12, lr, [r2], #8\n"
      "ldr r10, [sp]\n"
      "cmp r2, r10\n"
      "bne 1b\n"
      "2:\n"
      "pop {r4}\n"
      "pop {r0}\n"
      "str r2, [r0, #8]\n"
      "str r9, [r0, #20]\n"
      "pop {r4-r11, pc}\n");
#undef MAC
#undef NO
#undef ACC
#undef OR_ABS
}

/* One block in any case. */
static bool update_block(odt_dfp_update_t* u, const pair_t* x, const pair_t* dy, uint32_t pairs,
                         int16_t* w) {
  int64_t sum[4] = {0, 0, 0, 0};
  for (; pairs > 0; pairs--, x += 2, dy += 2) {
    sum[0] = __smlald(x[0], dy[0], sum[0]);
    sum[1] = __smlald(x[1], dy[0], sum[1]);
    sum[2] = __smlald(x[0], dy[1], sum[2]);
    sum[3] = __smlald(x[1], dy[1], sum[3]);
  }
  return odt_dfp_apply(u, w, sum, 4);
}

/* Blocks [from, to) of one panel (w at its first); returns the block that overflows, else to. */
static uint32_t update_panel(odt_dfp_update_t* u, const pair_t* x, const pair_t* dy, uint32_t pairs,
                             bool quick, int16_t* w, uint32_t from, uint32_t to) {
  x += (size_t)from * pairs * 2u;
  if (quick) {
    run_t r = {.x = x,
               .dy = dy,
               .w = w + 4u * from,
               .end = w + 4u * to,
               .m = u->lr_m * (1 << (48 - u->s))};
    update_run(&r);
    u->or_abs |= r.or_abs;
    return (uint32_t)(r.w - w) / 4u;
  }
  for (uint32_t i = from; i < to; i++, x += 2u * pairs) {
    if (!update_block(u, x, dy, pairs, w + 4u * i)) return i;
  }
  return to;
}

uint32_t odt_dfp_dense_update_dsp(uint32_t n_in, const int16_t* x, uint32_t x_stride,
                                  const int16_t* dy, uint32_t dy_stride, uint32_t n,
                                  odt_dfp_update_t* u, void* scratch) {
  uint32_t across = (n_in + 1u) >> 1, pairs = (n + 1u) >> 1;
  pair_t *dy_pairs = scratch, *x_pairs = dy_pairs + 2u * pairs;
  uint64_t x_most = 0;
  for (uint32_t i = 0; i < across; i++) {
    uint64_t squares = pair_samples(x + 2u * i, x_stride, n, x_pairs + (size_t)i * pairs * 2u);
    if (squares > x_most) x_most = squares;
  }
  bool steps = pairs == 4u && !u->revert && !u->saturate && !u->stats && u->s >= 32 && u->s <= 48;
  for (uint32_t p = u->from; p < u->to;) {
    uint32_t panel = p / across, first = panel * across;
    uint32_t to = u->to - first < across ? u->to - first : across;
    uint64_t squares = pair_samples(dy + 2u * panel, dy_stride, n, dy_pairs);
    uint32_t at = update_panel(u, x_pairs, dy_pairs, pairs, steps && fits32(x_most, squares),
                               u->w + 4u * (size_t)first, p - first, to);
    if (at < to) return first + at;
    p = first + to;
  }
  return u->to;
}

#endif

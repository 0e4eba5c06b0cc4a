/* Dense layers of rule 1.13 with the DSP extension: SMLALD on 2x2 tiles. What no path here takes is
 * left to dfp_dense.c; the bits are the same. */
#include "dfp/dfp_dense_dsp.h"

#ifdef ODT_DFP_DSP

#include <stddef.h>
#include <string.h>

typedef odt_dfp_pair_t pair_t;
#define load2 odt_dfp_load2

/* ---- tiles of 2 outputs and 2 samples -----------------------------------------------------------
 */

typedef struct {
  int64_t start[4]; /* where the sums begin: (o, b), (o, b+1), (o+1, b), (o+1, b+1) */
  const int16_t* w; /* (o, o+1) of each pair of inputs */
  const pair_t* x;  /* (b, b+1) of each pair of inputs */
  const pair_t* end;
  union {
    const pair_t* odd; /* x behind those pairs that no whole eight has */
    uint32_t panel;    /* tile_turned: bytes */
  };
  int64_t* sums;   /* tile: [4] */
  int32_t* acc;    /* tile_put: (o, b) */
  uint32_t stride; /* from there to (o, b+1), bytes */
  int32_t pre;     /* tile_put: 1..31 */
  uint64_t or_abs; /* tile_put */
} tile_t;

/* r4 to r11 hold the sums, all else is taken too: the ends of x lie on the stack. */
#define TILE_STEP            \
  "ldrd r2, r3, [r0], #8\n"  \
  "ldrd r12, lr, [r1], #8\n" \
  "smlald r4, r5, r2, r12\n" \
  "smlald r6, r7, r2, lr\n"  \
  "smlald r8, r9, r3, r12\n" \
  "smlald r10, r11, r3, lr\n"
#define TILE_FOUR TILE_STEP TILE_STEP TILE_STEP TILE_STEP
#define TILE_SUMS            \
  "push {r0, r4-r11, lr}\n"  \
  "ldr r2, [r0, #40]\n"      \
  "ldr r3, [r0, #44]\n"      \
  "push {r2, r3}\n"          \
  "mov r2, r0\n"             \
  "ldmia r2!, {r4-r11}\n"    \
  "ldrd r0, r1, [r2]\n"      \
  "ldr r2, [sp, #4]\n"       \
  "cmp r1, r2\n"             \
  "beq 2f\n"                 \
  "1:\n" TILE_STEP           \
  "ldr r2, [sp, #4]\n"       \
  "cmp r1, r2\n"             \
  "bne 1b\n"                 \
  "2:\n"                     \
  "ldr r2, [sp]\n"           \
  "cmp r1, r2\n"             \
  "beq 4f\n"                 \
  "3:\n" TILE_FOUR TILE_FOUR \
  "ldr r2, [sp]\n"           \
  "cmp r1, r2\n"             \
  "bne 3b\n"                 \
  "4:\n"

__attribute__((naked, noinline)) static void tile(__attribute__((unused)) tile_t* t) {
  __asm__ volatile(TILE_SUMS
                   "ldr r0, [sp, #8]\n"
                   "ldr r0, [r0, #48]\n"
                   "stmia r0, {r4-r11}\n"
                   "add sp, #12\n"
                   "pop {r4-r11, pc}\n");
}

/* The same for deltas: w is the block of the first panel, the next lies `panel` bytes on; x has
 * pairs of outputs. Sums of (i, b), (i, b+1), (i+1, b), (i+1, b+1). */
__attribute__((naked, noinline)) static void tile_turned(__attribute__((unused)) tile_t* t) {
#define TURNED_STEP              \
  "ldrd r2, r3, [r0]\n"          \
  "pkhbt r12, r2, r3, lsl #16\n" \
  "pkhtb r3, r3, r2, asr #16\n"  \
  "ldr r2, [sp, #4]\n"           \
  "add r0, r0, r2\n"             \
  "ldrd r2, lr, [r1], #8\n"      \
  "smlald r4, r5, r12, r2\n"     \
  "smlald r6, r7, r12, lr\n"     \
  "smlald r8, r9, r3, r2\n"      \
  "smlald r10, r11, r3, lr\n"
  __asm__ volatile(
      "push {r0, r4-r11, lr}\n"
      "ldrd r2, r3, [r0, #40]\n"
      "push {r2, r3}\n"
      "mov r12, r2\n"
      "mov r2, r0\n"
      "ldmia r2!, {r4-r11}\n"
      "ldrd r0, r1, [r2]\n"
      "sub r12, r12, r1\n"
      "tst r12, #8\n"
      "bne 5f\n"
      "1:\n" TURNED_STEP "5:\n" TURNED_STEP
      "ldr r2, [sp]\n"
      "cmp r1, r2\n"
      "bne 1b\n"
      "ldr r0, [sp, #8]\n"
      "ldr r0, [r0, #48]\n"
      "stmia r0, {r4-r11}\n"
      "add sp, #12\n"
      "pop {r4-r11, pc}\n");
#undef TURNED_STEP
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

/* To the next two samples. */
static inline void next_pair(tile_t* t, uint32_t across) {
  t->x = t->end;
  t->odd += 2u * across;
  t->end += 2u * across;
  t->acc += t->stride / 2u;
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
    t.x = scratch;
    t.odd = t.x + 2u * (across & 7u);
    t.end = t.x + 2u * across;
    uint32_t b = 0;
    for (; plain && two && b + 1u < n; b += 2u) {
      tile_put(&t);
      next_pair(&t, across);
    }
    for (; b < n; b += 2u) {
      tile(&t);
      put_tile(w, n_out, n, o, b, sums, sink);
      next_pair(&t, across);
    }
  }
  sink->or_abs |= t.or_abs;
  return true;
}

/* ---- deltas -----------------------------------------------------------------------------------
 */

/* (w[i][o], w[i][o+1]) and the same of i+1, from a block. */
static inline void turn(const int16_t* block, pair_t* first, pair_t* second) {
  uint32_t even = (uint32_t)load2(block), odd = (uint32_t)load2(block + 2);
  *first = odt_dfp_low(even, odd);
  *second = odt_dfp_high(even, odd);
}

/* Two outputs at most, an even number of inputs: sums of two products fit 32 bits. */
static void delta_narrow(const int16_t* w, uint32_t n_in, const int16_t* dy, uint32_t dy_stride,
                         uint32_t n, odt_dfp_sink_t* k) {
  uint32_t or_abs = 0;
  int pre = k->pre < 31 ? k->pre : 31;
  for (uint32_t b = 0; b < n; b++, dy += dy_stride) {
    const int16_t *mask = k->mask ? k->mask + (size_t)b * k->stride : NULL, *block = w;
    int32_t *acc = k->acc + (size_t)b * k->stride, *end = acc + n_in;
    pair_t d = load2(dy);
    for (; acc != end; acc += 2, block += 4) {
      pair_t first, second;
      turn(block, &first, &second);
      int32_t even = __smuad(first, d), odd = __smuad(second, d);
      if (mask) {
        pair_t m = load2(mask);
        mask += 2;
        if ((int16_t)m <= 0) even = 0;
        if (m >> 16 <= 0) odd = 0;
      }
      or_abs |= (uint32_t)(even < 0 ? -even : even) | (uint32_t)(odd < 0 ? -odd : odd);
      acc[0] = even >> pre;
      acc[1] = odd >> pre;
    }
  }
  k->or_abs |= or_abs;
}

/* Inputs i and i+1 of samples b and b+1. */
static inline uint64_t delta_put(const int64_t sums[4], uint32_t n_in, uint32_t n, uint32_t i,
                                 uint32_t b, const odt_dfp_sink_t* k) {
  uint64_t or_abs = 0;
  for (uint32_t c = 0; c < 2u && b + c < n; c++) {
    uint32_t at = (b + c) * k->stride + i;
    for (uint32_t j = 0; j < 2u && i + j < n_in; j++, at++) {
      int64_t sum = k->mask && k->mask[at] <= 0 ? 0 : sums[2u * j + c];
      or_abs |= odt_dfp_abs(sum);
      k->acc[at] = (int32_t)(sum >> k->pre);
    }
  }
  return or_abs;
}

bool odt_dfp_dense_delta_dsp(const odt_dfp_weights_t* w, uint32_t n_in, uint32_t n_out,
                             const int16_t* dy, uint32_t dy_stride, uint32_t n,
                             odt_dfp_sink_t* sink, void* scratch) {
  if (!w->panels || w->e || sink->wide) return false;
  if (n_out <= 2u && n_in % 2u == 0) {
    delta_narrow(w->w, n_in, dy, dy_stride, n, sink);
    return true;
  }
  uint32_t pairs = (n_out + 1u) >> 1;
  int64_t sums[4];
  tile_t t = {.x = scratch, .sums = sums, .panel = 4u * odt_dfp_even(n_in)};
  t.end = t.x + 2u * pairs;
  uint64_t or_abs = 0;
  for (uint32_t b = 0; b < n; b += 2u) {
    const int16_t* row = dy + (size_t)b * dy_stride;
    interleave(row, b + 1u < n ? row + dy_stride : row, pairs, scratch);
    for (uint32_t i = 0; i < n_in; i += 2u) {
      t.w = w->w + 2u * i;
      tile_turned(&t);
      or_abs |= delta_put(sums, n_in, n, i, b, sink);
    }
  }
  sink->or_abs |= or_abs;
  return true;
}

#endif

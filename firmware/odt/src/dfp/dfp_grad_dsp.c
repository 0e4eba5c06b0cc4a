/* Weight updates of rule 1.13 with the DSP extension: batches in pairs of samples, a 2x2 block of
 * weights at a time. The usual case, batches of up to 8 and sums within 32 bits, is one run of
 * assembly over a panel; it stops at any block that is not usual, and that one is done in C. */
#include "dfp/dfp_dense_dsp.h"

#ifdef ODT_DFP_DSP

#include <stddef.h>

typedef odt_dfp_pair_t pair_t;
#define load2 odt_dfp_load2
#define RUN_PAIRS 4u

/* Values 2p and 2p+1 of two columns, paired over samples: (a[2p], a[2p+1]), (b[2p], b[2p+1]). A
 * sample beyond the batch counts as 0. */
static void pair_samples(const int16_t* x, uint32_t stride, uint32_t n, uint32_t pairs,
                         pair_t* out) {
  const pair_t* end = out + 2u * pairs;
  for (; n > 1u; n -= 2u, x += 2u * stride, out += 2) {
    uint32_t even = (uint32_t)load2(x), odd = (uint32_t)load2(x + stride);
    out[0] = odt_dfp_low(even, odd);
    out[1] = odt_dfp_high(even, odd);
  }
  if (n > 0) {
    uint32_t last = (uint32_t)load2(x);
    *out++ = (pair_t)(last & 0xFFFFu);
    *out++ = (pair_t)(last >> 16);
  }
  while (out != end) *out++ = 0;
}

typedef struct {
  const pair_t* x;  /* [block][4][2] */
  const pair_t* dy; /* [4][2] */
  int16_t *w, *end; /* after a run: where it stopped */
  int32_t m;        /* lr_m * 2^(48 - s), 0 beyond */
  int32_t room;     /* 2^31 - (32767 - largest step)^2 */
  uint32_t or_abs;  /* OR of |sum| */
  pair_t* d;        /* with stats: the steps, in pairs as W lies */
  uint64_t sum_abs; /* with stats */
} run_t;

_Static_assert(offsetof(run_t, m) == 16 && offsetof(run_t, d) == 28 &&
                   offsetof(run_t, sum_abs) == 32,
               "the assembly knows where these lie");

/* On the stack: end, d, sum_abs, dy, then r. r0: x, r1: room, r2: w, r3: m, r8: 2^15, r9: OR. */
#define ENTER                \
  "push {r0, r4-r11, lr}\n"  \
  "ldr r1, [r0, #4]\n"       \
  "ldmia r1, {r2-r9}\n"      \
  "push {r2-r9}\n"           \
  "ldrd r2, r3, [r0, #32]\n" \
  "push {r2, r3}\n"          \
  "ldr r3, [r0, #28]\n"      \
  "ldr r2, [r0, #12]\n"      \
  "push {r2, r3}\n"          \
  "ldrd r3, r1, [r0, #16]\n" \
  "ldr r2, [r0, #8]\n"       \
  "ldr r9, [r0, #24]\n"      \
  "ldr r0, [r0]\n"           \
  "mov r8, #32768\n"         \
  "mov r10, #0\n"            \
  "msr APSR_nzcvq, r10\n"    \
  "1:\n"
#define LEAVE                \
  "ldr r10, [sp]\n"          \
  "cmp r2, r10\n"            \
  "bne 1b\n"                 \
  "2:\n"                     \
  "ldr r0, [sp, #48]\n"      \
  "ldrd r4, r5, [sp, #8]\n"  \
  "str r2, [r0, #8]\n"       \
  "str r9, [r0, #24]\n"      \
  "strd r4, r5, [r0, #32]\n" \
  "add sp, #52\n"            \
  "pop {r4-r11, pc}\n"
#define MAC(op, at, c4, c5, c6, c7)                                                        \
  "ldrd r12, lr, [r0], #8\n"                                                               \
  "ldrd r10, r11, [sp, #" at "]\n" op " r4, r12, r10" c4 "\n" op " r5, lr, r10" c5 "\n" op \
  " r6, r12, r11" c6 "\n" op " r7, lr, r11" c7 "\n"
#define MAC_ON(at) MAC("smlad", at, ", r4", ", r5", ", r6", ", r7")
/* SMLAD sets Q where a sum leaves its 32 bits. */
#define SUMS MAC("smuad", "16", "", "", "", "") MAC_ON("24") MAC_ON("32") MAC_ON("40")
/* Also where two weights side by side are so large that a step could take one out of its range:
 * they are, if the sum of their squares is below the square of what the largest step leaves, both
 * safe. */
#define ROOM                  \
  "ldrd r10, r11, [r2]\n"     \
  "smlad r12, r10, r10, r1\n" \
  "smlad r12, r11, r11, r1\n"
#define LEAVE_IF_Q      \
  "mrs r12, APSR\n"     \
  "lsls r12, r12, #4\n" \
  "bmi 2f\n"
#define ABS(to, r)         \
  "eor " to ", " r ", " r  \
  ", asr #31\n"            \
  "add " to ", " to ", " r \
  ", lsr #31\n"            \
  "orr r9, r9, " to "\n"
#define ABS_SUM(r) ABS("r10", r) "adds r12, r12, r10\n adc lr, lr, #0\n"
/* The step is the top half of (sum * m + 2^47) >> 32: that is HALF_UP(sum * lr_m, s). */
#define STEPS                   \
  "smmla r4, r4, r3, r8\n"      \
  "smmla r5, r5, r3, r8\n"      \
  "smmla r6, r6, r3, r8\n"      \
  "smmla r7, r7, r3, r8\n"      \
  "pkhtb r4, r5, r4, asr #16\n" \
  "pkhtb r6, r7, r6, asr #16\n"

#define USUAL SUMS ROOM LEAVE_IF_Q

#define BLOCK                                                                     \
  USUAL ABS("r12", "r4") ABS("r12", "r5") ABS("r12", "r6") ABS("r12", "r7") STEPS \
      "ssub16 r10, r10, r4\n"                                                     \
      "ssub16 r11, r11, r6\n"                                                     \
      "strd r10, r11, [r2], #8\n"

/* An even number of blocks. */
__attribute__((naked, noinline)) static void run(__attribute__((unused)) run_t* r) {
  __asm__ volatile(ENTER BLOCK BLOCK LEAVE);
}

/* The same where weights fill their range: saturated W - d and d - W cancel only where both stay
 * within
 * +-32767. */
__attribute__((naked, noinline)) static void run_near(__attribute__((unused)) run_t* r) {
  __asm__ volatile(ENTER SUMS LEAVE_IF_Q ABS("r12", "r4") ABS("r12", "r5") ABS("r12", "r6")
                       ABS("r12", "r7") STEPS
                   "ldrd r10, r11, [r2]\n"
                   "qsub16 r12, r10, r4\n"
                   "qsub16 lr, r11, r6\n"
                   "qsub16 r10, r4, r10\n"
                   "qsub16 r11, r6, r11\n"
                   "sadd16 r10, r10, r12\n"
                   "sadd16 r11, r11, lr\n"
                   "orrs r10, r10, r11\n"
                   "bne 2f\n"
                   "strd r12, lr, [r2], #8\n" LEAVE);
}

__attribute__((naked, noinline)) static void run_stats(__attribute__((unused)) run_t* r) {
  __asm__ volatile(ENTER USUAL "ldrd r12, lr, [sp, #8]\n" ABS_SUM("r4") ABS_SUM("r5") ABS_SUM("r6")
                       ABS_SUM("r7") "strd r12, lr, [sp, #8]\n" STEPS
                                     "ldr r12, [sp, #4]\n"
                                     "ldrd r10, r11, [r2]\n"
                                     "strd r4, r6, [r12], #8\n"
                                     "str r12, [sp, #4]\n"
                                     "ssub16 r10, r10, r4\n"
                                     "ssub16 r11, r11, r6\n"
                                     "strd r10, r11, [r2], #8\n" LEAVE);
}

/* n is even; lanes that are not 0 are counted in halfwords. */
static void count_steps(odt_dfp_update_t* u, const pair_t* d, uint32_t n) {
  const uint32_t one = 0x00010001u, minus = 0xFFFFFFFFu, zero = 0;
  uint32_t nonzero = 0, sum = 0, t; /* steps have at most 2^14, a panel at most 2^16 */
  for (const pair_t* end = d + n; d != end; d += 2) {
#define COUNT(v)                                                    \
  __asm__(                                                          \
      "uadd16 %2, %3, %5\n\tsel %2, %4, %6\n\tadd %1, %1, %2\n\t"   \
      "ssub16 %2, %3, %6\n\tsel %2, %4, %5\n\tsmlad %0, %3, %2, %0" \
      : "+r"(sum), "+r"(nonzero), "=&r"(t)                          \
      : "r"(v), "r"(one), "r"(minus), "r"(zero))
    COUNT(d[0]);
    COUNT(d[1]);
#undef COUNT
  }
  u->nonzero += (nonzero & 0xFFFFu) + (nonzero >> 16);
  u->abs_delta += sum;
}

/* One block in any case. */
static bool update_block(odt_dfp_update_t* u, const pair_t* x, const pair_t* dy, uint32_t pairs,
                         int16_t* w) {
  int64_t a = 0, b = 0, c = 0, d = 0;
  for (; pairs > 0; pairs--, x += 2, dy += 2) {
    a = __smlald(x[0], dy[0], a);
    b = __smlald(x[1], dy[0], b);
    c = __smlald(x[0], dy[1], c);
    d = __smlald(x[1], dy[1], d);
  }
  const int64_t sum[4] = {a, b, c, d};
  return odt_dfp_apply(u, w, sum, 4);
}

typedef struct {
  odt_dfp_update_t* u;
  const pair_t *x, *dy; /* of the layer's inputs; of the panel's outputs */
  uint32_t pairs;
  bool quick, near;
  int32_t m, room;
  pair_t* d;
} job_t;

/* Blocks [i, to) by `blocks`; returns where it stopped. */
static uint32_t run_blocks(const job_t* j, void (*blocks)(run_t*), int16_t* w, uint32_t i,
                           uint32_t to) {
  run_t r = {.x = j->x + (size_t)i * 2u * RUN_PAIRS,
             .dy = j->dy,
             .w = w + 4u * i,
             .end = w + 4u * to,
             .m = j->m,
             .room = j->room,
             .or_abs = 0,
             .d = j->d,
             .sum_abs = 0};
  blocks(&r);
  j->u->or_abs |= r.or_abs;
  j->u->sum_abs += r.sum_abs;
  return (uint32_t)(r.w - w) / 4u;
}

/* From block i on, as far as it goes without C. */
static uint32_t run_panel(const job_t* j, int16_t* w, uint32_t i, uint32_t to) {
  uint32_t even = i + ((to - i) & ~1u), end;
  if (j->u->stats) {
    end = run_blocks(j, run_stats, w, i, to);
    count_steps(j->u, j->d, 2u * (end - i));
    return end;
  }
  if (!j->near && even > i) {
    i = run_blocks(j, run, w, i, even);
    if (i < even || i == to) return i;
  }
  return run_blocks(j, run_near, w, i, to);
}

/* What makes run() stop at a block. */
static bool is_large(const job_t* j, const int16_t* w) {
  uint32_t least = 0x80000000u - (uint32_t)j->room;
  return (uint32_t)(w[0] * w[0]) + (uint32_t)(w[1] * w[1]) >= least ||
         (uint32_t)(w[2] * w[2]) + (uint32_t)(w[3] * w[3]) >= least;
}

/* Blocks [i, to) of one panel (w at its first); returns the block that overflows, else to. */
static uint32_t update_panel(job_t* j, int16_t* w, uint32_t i, uint32_t to) {
  uint32_t large = 0;
  while (i < to) {
    if (j->quick) i = run_panel(j, w, i, to);
    if (i == to) break;
    if (j->quick && is_large(j, w + 4u * i)) large++;
    if (!update_block(j->u, j->x + (size_t)i * 2u * j->pairs, j->dy, j->pairs, w + 4u * i)) break;
    i++;
  }
  if (large > 4u) j->near = true;
  return i;
}

/* Sums within 32 bits make steps up to 2^31 * lr_m / 2^s: from s = 48 on all are 0. */
static void choose(job_t* j, uint32_t across) {
  const odt_dfp_update_t* u = j->u;
  bool steps = !u->revert && !u->saturate && u->s >= 33;
  j->quick =
      steps && j->pairs == RUN_PAIRS && across < 32768u; /* halfwords count a panel's steps */
  if (!j->quick) return;
  int s = u->s < 49 ? u->s : 49;
  int32_t largest = (u->lr_m >> (s - 31)) + 1, left = ODT_DFP_MAX - largest;
  j->m = s < 49 ? u->lr_m * (1 << (48 - s)) : 0;
  j->room = (int32_t)(0x80000000u - (uint32_t)(left * left));
}

uint32_t odt_dfp_dense_update_dsp(uint32_t n_in, const int16_t* x, uint32_t x_stride,
                                  const int16_t* dy, uint32_t dy_stride, uint32_t n,
                                  odt_dfp_update_t* u, void* scratch) {
  uint32_t across = (n_in + 1u) >> 1, pairs = (n + 1u) >> 1;
  if (pairs < RUN_PAIRS) pairs = RUN_PAIRS;
  pair_t *dy_pairs = scratch, *x_pairs = dy_pairs + 2u * pairs;
  job_t j = {.u = u,
             .x = x_pairs,
             .dy = dy_pairs,
             .pairs = pairs,
             .d = x_pairs + (size_t)across * pairs * 2u};
  choose(&j, across);
  for (uint32_t i = 0; i < across; i++) {
    pair_samples(x + 2u * i, x_stride, n, pairs, x_pairs + (size_t)i * pairs * 2u);
  }
  for (uint32_t p = u->from; p < u->to;) {
    uint32_t panel = p / across, first = panel * across;
    uint32_t to = u->to - first < across ? u->to - first : across;
    pair_samples(dy + 2u * panel, dy_stride, n, pairs, dy_pairs);
    uint32_t at = update_panel(&j, u->w + 4u * (size_t)first, p - first, to);
    if (at < to) return first + at;
    p = first + to;
  }
  return u->to;
}

#endif

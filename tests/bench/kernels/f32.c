/* One float32 training step of 147->160(ReLU)->2, batch 8, and its parts. */
#include <string.h>

#include "bench.h"
#include "f32_dense.h"

#define BATCH 8u
#define N_IN 148u /* 147 and a zero */
#define HIDDEN 160u
#define N_OUT 4u /* 2 and two zeros */
#define CLASSES 2u

static float w1[N_IN * HIDDEN], bias1[HIDDEN], w2[HIDDEN * N_OUT], bias2[N_OUT];
static float x[BATCH * N_IN], packed[BATCH * HIDDEN], hidden[BATCH * HIDDEN], z[BATCH * N_OUT];
static float dz[BATCH * N_OUT], dh[BATCH * HIDDEN];

static float uniform(uint32_t* state) {
  return (float)(int32_t)bench_random(state) * (1.0f / 2147483648.0f);
}

static void fill(void) {
  uint32_t state = 0x3C6EF372u;
  for (uint32_t b = 0; b < BATCH; b++) {
    for (uint32_t i = 0; i < 147u; i++) x[b * N_IN + i] = uniform(&state);
  }
  for (uint32_t o = 0; o < HIDDEN; o++) {
    for (uint32_t i = 0; i < 147u; i++) {
      w1[((o / 4u) * N_IN + i) * 4u + o % 4u] = 0.125f * uniform(&state);
    }
    bias1[o] = 2.0f; /* nearly every unit is above 0, as in the integer models */
    for (uint32_t c = 0; c < CLASSES; c++) w2[o * 4u + c] = 0.125f * uniform(&state);
  }
}

static void loss(void) {
  for (uint32_t b = 0; b < BATCH; b++) {
    for (uint32_t c = 0; c < CLASSES; c++) {
      dz[b * N_OUT + c] = z[b * N_OUT + c] - (c == b % CLASSES ? 1.0f : 0.0f);
    }
  }
}

static void step(const f32_dense_t* one, const f32_dense_t* two, float rate) {
  f32_pack(x, BATCH, N_IN, packed);
  f32_forward(one, packed, BATCH, 1, hidden);
  f32_pack(hidden, BATCH, HIDDEN, packed);
  f32_forward(two, packed, BATCH, 0, z);
  loss();
  f32_delta(two, dz, BATCH, hidden, dh);
  f32_update(two, hidden, dz, BATCH, rate);
  f32_update(one, x, dh, BATCH, rate);
}

void bench_f32(void) {
  const f32_dense_t one = {N_IN, HIDDEN, w1, bias1}, two = {HIDDEN, N_OUT, w2, bias2};
  fill();
  for (uint32_t i = 0; i < 3; i++) {
    bench_start();
    step(&one, &two, 0.0005f);
    bench_measured("f32_step", i, bench_stop());
  }
  f32_pack(x, BATCH, N_IN, packed);
  bench_start();
  f32_forward(&one, packed, BATCH, 1, hidden);
  bench_measured("f32_fwd", 0, bench_stop());
  bench_start();
  f32_update(&one, x, dh, BATCH, 0.0005f);
  bench_measured("f32_grad", 0, bench_stop());
}

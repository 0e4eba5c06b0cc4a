/* DFP16's dense kernels alone: counts for 147x160, batch 8, and hashes over sizes, batches and
 * shifts that take every path. */
#include "dfp/dfp_kernels.h"

#include <string.h>

#include "bench.h"

#define MOST 160u
#define BATCH 9u

static int16_t w[MOST * MOST], x[BATCH * MOST], dy[BATCH * MOST], mask[BATCH * MOST];
static int32_t bias[MOST], acc[BATCH * MOST];
static int64_t wide[MOST];
static int8_t e[MOST];
static uint64_t scratch[4096];

typedef struct {
  uint32_t n_in, n_out, n;
  int s, half; /* shift of the update; sums of x * dy about 2^half */
  bool blocked, masked;
} case_t;

static int16_t value(uint32_t* state, int bits) {
  return (int16_t)((int32_t)bench_random(state) >> (32 - bits));
}

static void fill(const case_t* c, uint32_t* state) {
  memset(w, 0, sizeof w);
  memset(x, 0, sizeof x);
  memset(dy, 0, sizeof dy);
  for (uint32_t o = 0; o < c->n_out; o++) {
    for (uint32_t i = 0; i < c->n_in; i++) {
      w[odt_dfp_panel_at(c->n_in, i, o)] = (int16_t)(value(state, 16) / 3 * 2);
    }
    bias[o] = (int32_t)bench_random(state) >> 8;
    e[o] = (int8_t) - (int32_t)(bench_random(state) % 5u);
  }
  for (uint32_t b = 0; b < c->n; b++) {
    for (uint32_t i = 0; i < c->n_in; i++) x[b * odt_dfp_even(c->n_in) + i] = value(state, 16) | 1;
    for (uint32_t o = 0; o < c->n_out; o++) {
      dy[b * odt_dfp_even(c->n_out) + o] = value(state, c->half - 15) | 1;
    }
    for (uint32_t i = 0; i < c->n_in; i++) mask[b * odt_dfp_even(c->n_in) + i] = value(state, 16);
  }
}

static void hash(odt_sha256_t* h, const char* name) {
  uint8_t out[32];
  odt_sha256_final(h, out);
  bench_hash(name, out, 32);
}

static void forward(const case_t* c, const odt_dfp_weights_t* wr, odt_sha256_t* h, bool measured) {
  uint32_t stride = odt_dfp_even(c->n_out);
  odt_dfp_sink_t k = {.acc = acc, .stride = stride, .pre = 10};
  memset(acc, 0, sizeof acc);
  bench_start();
  odt_dfp_dense_forward(wr, c->n_in, c->n_out, x, odt_dfp_even(c->n_in), c->n, &k, scratch);
  uint32_t insns = bench_stop();
  bench_measured(measured ? "dfp_fwd" : "dfp_case", 0, insns);
  odt_sha256_update(h, acc, sizeof acc);
  odt_sha256_update(h, &k.or_abs, 8);
}

static void delta(const case_t* c, const odt_dfp_weights_t* wr, odt_sha256_t* h, bool measured) {
  odt_dfp_sink_t k = {
      .acc = acc, .mask = c->masked ? mask : NULL, .stride = odt_dfp_even(c->n_in), .pre = 7};
  memset(acc, 0, sizeof acc);
  bench_start();
  odt_dfp_dense_delta(wr, c->n_in, c->n_out, dy, odt_dfp_even(c->n_out), c->n, &k, scratch);
  uint32_t insns = bench_stop();
  bench_measured(measured ? "dfp_delta" : "dfp_case", 0, insns);
  odt_sha256_update(h, acc, sizeof acc);
  odt_sha256_update(h, &k.or_abs, 8);
  memset(wide, 0, sizeof wide);
  odt_dfp_sink_t add = {.wide = wide, .stride = odt_dfp_even(c->n_in), .shift = 3};
  odt_dfp_dense_delta(wr, c->n_in, c->n_out, dy, odt_dfp_even(c->n_out), 1, &add, scratch);
  odt_sha256_update(h, wide, sizeof wide);
}

/* Runs to the end over overflows, skipping one block at each; then a part is taken back. */
static void update(const case_t* c, odt_sha256_t* h, bool measured) {
  uint32_t blocks = odt_dfp_panel_values(c->n_in, c->n_out) / 4u, at = 0;
  odt_dfp_update_t u = {.w = w, .lane = -1, .lr_m = 20972, .s = c->s, .stats = c->masked};
  while (at < blocks) {
    u.from = at;
    u.to = blocks;
    bench_start();
    at = odt_dfp_dense_update(c->n_in, c->n_out, x, odt_dfp_even(c->n_in), dy,
                              odt_dfp_even(c->n_out), c->n, &u, scratch);
    uint32_t insns = bench_stop();
    bench_measured(measured ? "dfp_update" : "dfp_case", 0, insns);
    odt_sha256_update(h, &at, 4);
    if (at < blocks) at += blocks / 7u + 1u;
  }
  odt_sha256_update(h, w, sizeof w);
  u.from = blocks / 3u;
  u.to = blocks / 2u;
  u.revert = true;
  odt_dfp_dense_update(c->n_in, c->n_out, x, odt_dfp_even(c->n_in), dy, odt_dfp_even(c->n_out),
                       c->n, &u, scratch);
  odt_sha256_update(h, w, sizeof w);
  odt_sha256_update(h, &u.or_abs, 8);
  odt_sha256_update(h, &u.sum_abs, 24);
}

static void run(const case_t* c, const char* name, bool measured) {
  uint32_t state = 0x6A09E667u;
  odt_sha256_t h;
  odt_sha256_init(&h);
  fill(c, &state);
  odt_dfp_weights_t wr = {
      .w = w, .panels = true, .e = c->blocked ? e : NULL, .bias = bias, .bias_left = 6};
  forward(c, &wr, &h, measured);
  delta(c, &wr, &h, measured);
  update(c, &h, measured);
  hash(&h, name);
}

void bench_dfp_kernels(void) {
  static const case_t kMain = {147, 160, 8, 37, 29, false, false};
  static const case_t kCases[] = {
      {147, 160, 8, 37, 31, false, false}, {147, 160, 8, 40, 31, false, true},
      {33, 17, 7, 36, 28, false, true},    {33, 17, 7, 36, 28, false, false},
      {5, 3, 9, 33, 30, true, false},      {64, 10, 8, 32, 30, false, false},
      {64, 10, 8, 48, 30, false, false},   {64, 10, 8, 31, 22, false, false},
      {64, 10, 8, 49, 31, false, false},   {1, 1, 1, 34, 31, false, false},
      {16, 16, 3, 34, 31, true, true},     {147, 160, 8, 33, 31, false, false}};
  run(&kMain, "dfp_main", true);
  char name[] = "dfp_case_a";
  for (uint32_t i = 0; i < sizeof kCases / sizeof *kCases; i++, name[9]++) {
    run(&kCases[i], name, false);
  }
}

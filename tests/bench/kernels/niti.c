/* NITI: training steps, forward passes and the arena of the arc-fault model. */
#include <string.h>

#include "bench.h"
#include "internal.h" /* odt_forward: a forward pass of a batch alone */

#define BATCH 8u
#define MAX_STEPS 17u
#define MAX_INPUT 1024u

static odt_model_t model;
static odt_trainer_t trainer;
static uint8_t inputs[MAX_STEPS * BATCH * MAX_INPUT] __attribute__((aligned(4)));
static int8_t labels[MAX_STEPS * BATCH];

static odt_run_spec_t spec_of(uint32_t steps, uint8_t rounding, uint8_t shift_source, uint8_t k) {
  odt_run_spec_t s = {.rule_set = ODT_RULE_NITI,
                      .rounding = rounding,
                      .loss = ODT_LOSS_MSE,
                      .shift_source = shift_source,
                      .mu_weight = {1, 1, 1},
                      .mu_offset = 1,
                      .k = k,
                      .batch = BATCH,
                      .epochs = 1,
                      .train_samples = steps * BATCH,
                      .order_seed = 1};
  memset(s.class_weights, 64, sizeof s.class_weights);
  return s;
}

static void make_samples(const odt_model_t* m, uint32_t n) {
  uint32_t state = 0x2545F491u, len = m->tensors[m->input].count;
  len *= odt_elem_bytes(m->tensors[m->input].dtype);
  if (len > MAX_INPUT) bench_fail("input size");
  for (uint32_t i = 0; i < n * len; i++) inputs[i] = (uint8_t)(bench_random(&state) >> 8);
  for (uint32_t i = 0; i < n; i++) {
    labels[i] = (int8_t)((bench_random(&state) >> 8) % m->n_classes);
  }
}

static void open_model(const uint8_t* image, uint32_t bytes, const odt_run_spec_t* spec) {
  odt_error_t err;
  if (odt_model_open(&model, image, bytes, &err) != ODT_OK) bench_fail(err.what);
  if (odt_trainer_init(&trainer, &model, spec, false, bench_arena, BENCH_ARENA, &err) != ODT_OK) {
    bench_fail(err.what);
  }
  make_samples(&model, spec->train_samples);
}

/* Steps 0..steps-1 one by one, the hash of the state after them, and how many deltas were not 0. */
void bench_steps(const char* name, const uint8_t* image, uint32_t bytes,
                 const odt_run_spec_t* spec) {
  open_model(image, bytes, spec);
  const odt_tensor_t* in = &model.tensors[model.input];
  uint32_t bytes_each = odt_elem_bytes(in->dtype);
  for (uint32_t step = 0; step * BATCH < spec->train_samples; step++) {
    uint32_t left = spec->train_samples - step * BATCH;
    odt_samples_t batch = {.dtype = in->dtype,
                           .count = left < BATCH ? left : BATCH,
                           .sample_len = in->count,
                           .label_len = 1,
                           .labels = labels + step * BATCH,
                           .data = inputs + (size_t)step * BATCH * in->count * bytes_each};
    odt_step_record_t rec;
    odt_error_t err;
    bench_start();
    odt_status_t st = odt_trainer_step(&trainer, &batch, &rec, &err);
    uint32_t insns = bench_stop();
    if (st != ODT_OK) bench_fail(err.what);
    bench_measured(name, step, insns);
  }
  uint8_t hash[32];
  odt_state_hash(&trainer, hash);
  bench_hash(name, hash, sizeof hash);
  bench_text("D ");
  bench_text(name);
  bench_text(" ");
  bench_number((uint32_t)trainer.layers[0].stats.propagated);
  bench_text(" ");
  bench_number((uint32_t)trainer.layers[0].stats.zero_propagated);
  bench_text("\n");
}

/* Forward passes alone: those of the head are taken off by run.py. */
static void measure_forward(const char* name, const uint8_t* image, uint32_t bytes) {
  odt_run_spec_t spec = spec_of(1, ODT_ROUND_PSTO, ODT_SHIFT_EXACT, 8);
  open_model(image, bytes, &spec);
  const odt_tensor_t* in = &model.tensors[model.input];
  odt_view_t x = {.base = inputs, .stride = in->count, .dtype = in->dtype};
  bench_start();
  odt_forward(&trainer, &x, BATCH);
  bench_measured(name, 0, bench_stop());
}

static void arena_of_arc(void) {
  odt_run_spec_t spec = spec_of(1, ODT_ROUND_PSTO, ODT_SHIFT_EXACT, 8);
  odt_error_t err;
  odt_memory_plan_t plan;
  if (odt_model_open(&model, kModelArc, kModelArcBytes, &err) != ODT_OK) bench_fail(err.what);
  odt_trainer_plan(&model, &spec, false, &plan);
  bench_value("arc_total_bytes", plan.total_bytes);
  bench_value("arc_weights_bytes", plan.weights_bytes);
  bench_value("arc_activation_bytes", plan.activation_bytes);
  bench_value("arc_gradient_bytes", plan.gradient_bytes);
}

/* Sizes that fill no tile, other precisions and roundings, a last batch of 5: for the hashes. */
static void odd_runs(void) {
  static const uint8_t kRounding[] = {ODT_ROUND_PSTO, ODT_ROUND_SR, ODT_ROUND_HALF_UP,
                                      ODT_ROUND_HALF_AWAY};
  static const uint8_t kPrecision[] = {5, 8, 11, 16};
  char dense[] = "odd_dense_a", conv[] = "odd_conv_a";
  for (uint32_t i = 0; i < 8u; i++, dense[10]++, conv[9]++) {
    odt_run_spec_t s = spec_of(3, kRounding[i % 4u], i < 4u ? ODT_SHIFT_EXACT : ODT_SHIFT_STALE,
                               kPrecision[i % 4u]);
    s.train_samples -= 3u;
    bench_steps(dense, kModelOddDense, kModelOddDenseBytes, &s);
    bench_steps(conv, kModelOddConv, kModelOddConvBytes, &s);
  }
}

void bench_niti(void) {
  const uint32_t all = MAX_STEPS;
  odt_run_spec_t exact = spec_of(all, ODT_ROUND_PSTO, ODT_SHIFT_EXACT, 8);
  odt_run_spec_t stale = spec_of(all, ODT_ROUND_HALF_UP, ODT_SHIFT_STALE, 8);
  odt_run_spec_t stale_psto = spec_of(all, ODT_ROUND_PSTO, ODT_SHIFT_STALE, 8);
  odt_run_spec_t k12 = spec_of(all, ODT_ROUND_HALF_UP, ODT_SHIFT_EXACT, 12);
  odt_run_spec_t few = spec_of(3, ODT_ROUND_PSTO, ODT_SHIFT_EXACT, 8);
  bench_steps("step", kModelStep, kModelStepBytes, &exact);
  bench_steps("step_stale", kModelStep, kModelStepBytes, &stale);
  bench_steps("step_stale_psto", kModelStep, kModelStepBytes, &stale_psto);
  bench_steps("step_k12", kModelStep, kModelStepBytes, &k12);
  measure_forward("fwd", kModelStep, kModelStepBytes);
  measure_forward("fwd_head", kModelHead, kModelHeadBytes);
  bench_steps("arc", kModelArc, kModelArcBytes, &few);
  bench_steps("conv_a", kModelConvA, kModelConvABytes, &few);
  bench_steps("conv_a_head", kModelConvAHead, kModelConvAHeadBytes, &few);
  bench_steps("tail", kModelTail, kModelTailBytes, &few);
  few.k = 12;
  few.rounding = ODT_ROUND_HALF_UP;
  bench_steps("tail_k12", kModelTail, kModelTailBytes, &few);
  few = spec_of(3, ODT_ROUND_PSTO, ODT_SHIFT_EXACT, 8);
  bench_steps("conv1", kModelConv1, kModelConv1Bytes, &few);
  bench_steps("conv2", kModelConv2, kModelConv2Bytes, &few);
  odd_runs();
  arena_of_arc();
}

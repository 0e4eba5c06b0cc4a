/* A training program as TI's interface has it: epochs over TRAIN_INPUTS, a loss of one's own,
 * accuracy before and after. Beside that it checks what odtc's test_vector.h promises. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "integer_model_config.h"
#include "integer_odl.h"
#include "test_vector.h"
#include "train_data.h"
#include "tvmgen_default.h"

#ifndef EPOCHS
#define EPOCHS 12
#endif
#define CLAMP(x, lo, hi) ((x) < (lo) ? (lo) : (x) > (hi) ? (hi) : (x))

#if IS_FULL_MODEL_RETRAIN
typedef int8_t frozen_t;
#else
typedef uint8_t frozen_t;
#endif
static frozen_t frozen_out[BATCH_SIZE * FROZEN_OUTPUT_SIZE];

static void run_frozen(const float* input, frozen_t* output) {
  tvmgen_default_run(&(struct tvmgen_default_inputs){.input = input},
                     &(struct tvmgen_default_outputs){.output = output});
}

static int32_t compute_loss(IntModelCtx_t* ctx, const int8_t* labels, int32_t batch_size) {
  const IntLayerDesc_t* last = &ctx->layers[ctx->n_layers - 1];
  const int8_t* logits = (const int8_t*)last->act_buf;
  int8_t* dy = ctx->grad_buf[0];
  int32_t total = 0;
  for (int32_t b = 0; b < batch_size; b++) {
    for (int32_t c = 0; c < N_CLASSES; c++) {
      const int32_t at = b * N_CLASSES + c;
      const int32_t target = labels[b] == c ? TARGET_MAG_CORRECT[c] : TARGET_MAG_WRONG[c];
      const int32_t grad = logits[at] - target;
      total += grad * grad;
      dy[at] = (int8_t)CLAMP(grad, -128, 127);
    }
  }
  return total;
}

static int correct_of(const float inputs[][INPUT_SIZE], const int8_t* labels, int n) {
  int correct = 0;
  for (int i = 0; i < n; i++) {
    int8_t logits[N_CLASSES];
    int best = 0;
    run_frozen(inputs[i], frozen_out);
    INTODT_Infer(&INT_MODEL, frozen_out, logits);
    for (int c = 1; c < N_CLASSES; c++) {
      if (logits[c] > logits[best]) best = c;
    }
    correct += best == labels[i];
  }
  return correct;
}

static int32_t train_epoch(void) {
  int32_t loss = 0;
  for (int32_t start = 0; start < N_TRAIN_SAMPLES; start += BATCH_SIZE) {
    const int32_t left = N_TRAIN_SAMPLES - start;
    const int32_t n = left < BATCH_SIZE ? left : BATCH_SIZE;
    for (int32_t b = 0; b < n; b++) {
      run_frozen(TRAIN_INPUTS[start + b], frozen_out + b * FROZEN_OUTPUT_SIZE);
    }
    INTODT_Forward(&INT_MODEL, frozen_out, n);
    loss += compute_loss(&INT_MODEL, TRAIN_LABELS + start, n);
    INTODT_Backward(&INT_MODEL, frozen_out, n);
  }
  return loss;
}

static int check_vectors(void) {
  int faults = 0;
  for (int v = 0; v < N_TEST_VECTORS; v++) {
    int8_t logits[N_CLASSES];
    run_frozen(TEST_VECTOR_INPUTS[v], frozen_out);
    for (int i = 0; i < FROZEN_OUTPUT_SIZE; i++)
      faults += frozen_out[i] != TEST_VECTOR_FROZEN[v][i];
    INTODT_Infer(&INT_MODEL, frozen_out, logits);
    faults += memcmp(logits, TEST_VECTOR_LOGITS[v], N_CLASSES) != 0;
  }
  printf("vectors %s\n", faults == 0 ? "equal" : "DIFFER");
  return faults;
}

static void weights_hash(uint8_t hash[32]) {
  odt_ti_t t;
  if (odt_ti_init(&t, &INT_MODEL, BATCH_SIZE, NULL) != ODT_OK) printf("init FAILED\n");
  odt_ti_weights_hash(&t, INT_MODEL_HASH, hash);
}

int main(void) {
  uint8_t hash[32];
  int faults = check_vectors();
  printf("train before %d of %d\n", correct_of(TRAIN_INPUTS, TRAIN_LABELS, N_TRAIN_SAMPLES),
         N_TRAIN_SAMPLES);
  printf("test before %d of %d\n", correct_of(TEST_INPUTS, TEST_LABELS, N_TEST_SAMPLES),
         N_TEST_SAMPLES);
  for (int epoch = 0; epoch < EPOCHS; epoch++) {
    INT_MODEL.mu_weight = epoch < EPOCHS / 2 ? MU_WEIGHT_DEFAULT : 0;
    const int32_t loss = train_epoch();
    printf("epoch %d loss %ld\n", epoch, (long)loss);
    if (epoch > 0) continue;
    weights_hash(hash);
    const int same = (uint32_t)loss == TEST_VECTOR_TRAINED_LOSS &&
                     memcmp(hash, TEST_VECTOR_TRAINED_HASH, sizeof hash) == 0;
    printf("first epoch %s\n", same ? "equal" : "DIFFERS");
    faults += !same;
  }
  printf("train after %d of %d\n", correct_of(TRAIN_INPUTS, TRAIN_LABELS, N_TRAIN_SAMPLES),
         N_TRAIN_SAMPLES);
  printf("test after %d of %d\n", correct_of(TEST_INPUTS, TEST_LABELS, N_TEST_SAMPLES),
         N_TEST_SAMPLES);
  weights_hash(hash);
  printf("hash ");
  for (int i = 0; i < 32; i++) printf("%02x", hash[i]);
  printf("\n");
  return faults == 0 ? 0 : 1;
}

/* Checks odtc's test_vector.h on any model: frozen part, logits, and one pass of training. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "odt/ti.h"
#include "test_vector.h"
#include "train_data.h"
#include "tvmgen_default.h"

#define FROZEN_BYTES ((int32_t)sizeof TEST_VECTOR_FROZEN[0])

static int32_t frozen_words[(BATCH_SIZE * sizeof TEST_VECTOR_FROZEN[0] + 3) / 4];

static uint8_t* frozen_at(int32_t sample, const float* input) {
  uint8_t* at = (uint8_t*)frozen_words + sample * FROZEN_BYTES;
  tvmgen_default_run(&(struct tvmgen_default_inputs){.input = input},
                     &(struct tvmgen_default_outputs){.output = at});
  return at;
}

#ifdef IS_AUTOENCODER
static int8_t own[INPUT_SIZE];

static void read_targets(int32_t sample) { tvmgen_default_quantise(TRAIN_INPUTS[sample], own); }
static int32_t target_of(int32_t sample, int32_t c) {
  (void)sample;
  return own[c];
}
#elif defined(IS_REGRESSION)
static void read_targets(int32_t sample) { (void)sample; }
static int32_t target_of(int32_t sample, int32_t c) { return TRAIN_TARGETS[sample][c]; }
#else
static void read_targets(int32_t sample) { (void)sample; }
static int32_t target_of(int32_t sample, int32_t c) {
  return TRAIN_LABELS[sample] == c ? TARGET_MAG_CORRECT[c] : TARGET_MAG_WRONG[c];
}
#endif

/* Of n samples from `at` on. */
static uint32_t loss_of(int32_t at, int32_t n) {
  const int8_t* logits = (const int8_t*)INT_MODEL.layers[INT_MODEL.n_layers - 1].act_buf;
  uint32_t loss = 0;
  for (int32_t i = 0; i < n * N_CLASSES; i++) {
    if (i % N_CLASSES == 0) read_targets(at + i / N_CLASSES);
    const int32_t d = logits[i] - target_of(at + i / N_CLASSES, i % N_CLASSES);
    loss += (uint32_t)(d * d);
    INT_MODEL.grad_buf[0][i] = (int8_t)(d > 127 ? 127 : d < -128 ? -128 : d);
  }
  return loss;
}

int main(void) {
  int faults = 0;
  for (int v = 0; v < N_TEST_VECTORS; v++) {
    int8_t logits[N_CLASSES];
    const uint8_t* frozen = frozen_at(0, TEST_VECTOR_INPUTS[v]);
    if (memcmp(frozen, TEST_VECTOR_FROZEN[v], sizeof TEST_VECTOR_FROZEN[v]) != 0) {
      printf("vector %d: frozen part\n", v);
      faults++;
    }
    INTODT_Infer(&INT_MODEL, frozen, logits);
    if (memcmp(logits, TEST_VECTOR_LOGITS[v], N_CLASSES) != 0) {
      printf("vector %d: logits\n", v);
      faults++;
    }
  }
  odt_ti_t t;
  odt_error_t err = {.what = "none"};
  uint8_t hash[32];
  uint32_t loss = 0;
  for (int32_t at = 0; at < N_TRAIN_SAMPLES; at += BATCH_SIZE) {
    const int32_t n = N_TRAIN_SAMPLES - at < BATCH_SIZE ? N_TRAIN_SAMPLES - at : BATCH_SIZE;
    for (int32_t b = 0; b < n; b++) frozen_at(b, TRAIN_INPUTS[at + b]);
    INTODT_Forward(&INT_MODEL, frozen_words, n);
    loss += loss_of(at, n);
    INTODT_Backward(&INT_MODEL, frozen_words, n);
  }
  if (odt_ti_init(&t, &INT_MODEL, BATCH_SIZE, &err) != ODT_OK) {
    printf("init: %s\n", err.what);
    return 1;
  }
  odt_ti_weights_hash(&t, INT_MODEL_HASH, hash);
  if (loss != TEST_VECTOR_TRAINED_LOSS || memcmp(hash, TEST_VECTOR_TRAINED_HASH, 32) != 0) {
    printf("one pass of training: loss %lu\n", (unsigned long)loss);
    faults++;
  }
  return faults == 0 ? 0 : 1;
}

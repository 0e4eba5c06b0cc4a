/* The golden runs as run.py writes them down in C. */
#ifndef RULES_RUNS_H
#define RULES_RUNS_H

#include "odt/odt.h"
#include "odt/trainer.h"

typedef struct {
  const char* name;
  const uint8_t *image, *samples; /* ODTM, ODTS */
  uint32_t image_bytes, samples_bytes;
  odt_run_spec_t spec;
  const uint32_t* scores; /* held-out: before training, then of each epoch; NULL: no guard */
  const uint32_t* set_k;  /* [n_set_k]: after step, layer, k */
  uint32_t n_set_k;
} rules_run_t;

extern const rules_run_t kRuns[];
extern const uint32_t kRunCount;

#endif

/* DFP16: training steps of 147->160(ReLU)->2, the work of f32.c. */
#include <string.h>

#include "bench.h"

void bench_dfp(void) {
  odt_run_spec_t s = {.rule_set = ODT_RULE_DFP16,
                      .rounding = ODT_ROUND_HALF_UP,
                      .loss = ODT_LOSS_CE,
                      .shift_source = ODT_SHIFT_EXACT,
                      .k = 16,
                      .batch = 8,
                      .epochs = 1,
                      .train_samples = 17 * 8,
                      .order_seed = 1,
                      .lr_m = {16777, 16777, 16777}, /* 0.0005 */
                      .lr_s = 25};
  memset(s.class_weights, 64, sizeof s.class_weights);
  bench_steps("dfp_step", kModelDfp, kModelDfpBytes, &s);
  s.train_samples = 21;
  s.lr_s = 19;
  bench_steps("dfp_odd", kModelOddDfp, kModelOddDfpBytes, &s);
  s.blocked = true;
  bench_steps("dfp_odd_blocked", kModelOddDfp, kModelOddDfpBytes, &s);
}

/* Rule 1.3. */
#include "internal.h"

static const uint16_t kExp2[16] = {256, 267, 279, 292, 304, 318, 332, 347,
                                   362, 378, 395, 412, 431, 450, 470, 490};

static int32_t clip8(int32_t v) { return v < -128 ? -128 : v > 127 ? 127 : v; }

static uint32_t exp2_neg(uint32_t t) {
  uint32_t ip = t >> 8, fr = t & 255u;
  if (ip > 23) ip = 23;
  return fr == 0 ? 65536u >> ip : ((uint32_t)kExp2[(256u - fr) >> 4] << 8) >> (ip + 1u);
}

static int32_t dead_zone(const odt_run_spec_t* spec, int32_t e) {
  return e <= spec->dead_zone && e >= -spec->dead_zone ? 0 : e;
}

static int32_t mse_delta(const odt_model_t* m, const odt_run_spec_t* spec, int32_t z, uint32_t c,
                         bool correct, uint64_t* loss) {
  int32_t e = z - (correct ? m->target_correct[c] : m->target_wrong[c]);
  *loss += (uint64_t)(e * e);
  return dead_zone(spec, clip8(e));
}

uint32_t odt_predicted(uint32_t n, const int8_t* z) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < n; c++) {
    if (z[c] > z[best]) best = c;
  }
  return best;
}

uint32_t odt_loss(const odt_model_t* m, const odt_run_spec_t* spec, const int8_t* z, uint32_t label,
                  int8_t* dy, uint64_t* loss) {
  uint32_t n = m->n_classes, best = odt_predicted(n, z), sum = 0;
  bool ce = spec->loss == ODT_LOSS_CE;
  for (uint32_t c = 0; ce && c < n; c++) sum += exp2_neg((uint32_t)(z[best] - z[c]) * m->ce_scale);
  int32_t cw = spec->class_weights[label];
  for (uint32_t c = 0; c < n; c++) {
    int32_t d;
    if (ce) {
      uint32_t e = exp2_neg((uint32_t)(z[best] - z[c]) * m->ce_scale);
      d = (int32_t)((127u * e + sum / 2u) / sum) - (c == label ? 127 : 0);
      *loss += (uint64_t)(d * d);
    } else {
      d = mse_delta(m, spec, z[c], c, c == label, loss);
    }
    if (dy) dy[c] = (int8_t)clip8((d * cw + 32) >> 6);
  }
  return best;
}

void odt_loss_values(const odt_run_spec_t* spec, uint32_t n, const int8_t* z, const int8_t* target,
                     int8_t* dy, uint64_t* loss) {
  for (uint32_t c = 0; c < n; c++) {
    int32_t e = z[c] - target[c];
    *loss += (uint64_t)(e * e);
    if (dy) dy[c] = (int8_t)dead_zone(spec, clip8(e));
  }
}

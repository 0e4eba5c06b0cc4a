/* PREQUANT on float inputs: the one file of the library that may use float. Only TI-style programs
 * link it; boards receive values that the host has quantised. */
#include "odt/ti.h"

/* floor of a value within +-2^24, without libm. */
static int32_t floor_of(float v) {
  int32_t t = (int32_t)v;
  return (float)t > v ? t - 1 : t;
}

static int32_t clipped(float v, int32_t lo, int32_t hi) {
  if (!(v > (float)lo)) return lo; /* NaN too */
  if (v >= (float)hi) return hi;
  return floor_of(v);
}

void odt_ti_prequant(const IntPrequant_t* p, int32_t clip_lo, int32_t clip_hi, const float* x,
                     uint32_t n, uint8_t dtype, void* y) {
  uint32_t per_channel = p->n_ch > 1 ? n / p->n_ch : n, channel = 0, left = per_channel;
  for (uint32_t i = 0; i < n; i++, left--) {
    if (left == 0) {
      channel++;
      left = per_channel;
    }
    float sum = x[i] + p->offset[channel];
    int32_t v = clipped(sum * p->scale[channel], clip_lo, clip_hi);
    if (dtype == ODT_S16) {
      ((int16_t*)y)[i] = (int16_t)v;
    } else {
      ((uint8_t*)y)[i] = (uint8_t)v;
    }
  }
}

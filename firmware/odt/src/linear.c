/* Dense layers: weights [in,out], row by row. */
#include "internal.h"

static void mac_row8(int32_t* acc, const int8_t* m, uint32_t n, int32_t x) {
  for (uint32_t o = 0; o < n; o++) acc[o] += x * m[o];
}

static void mac_row16(int32_t* acc, const int16_t* m, uint32_t n, int32_t x, int32_t half, int f) {
  for (uint32_t o = 0; o < n; o++) acc[o] += x * ((m[o] + half) >> f);
}

static void mac_delta(int32_t* acc, const int8_t* dy, uint32_t n, int32_t x) {
  for (uint32_t o = 0; o < n; o++) acc[o] += x * dy[o];
}

static int32_t dot8(const int8_t* m, const int8_t* dy, uint32_t n) {
  int32_t acc = 0;
  for (uint32_t o = 0; o < n; o++) acc += m[o] * dy[o];
  return acc;
}

static int32_t dot16(const int16_t* m, const int8_t* dy, uint32_t n, int32_t half, int f) {
  int32_t acc = 0;
  for (uint32_t o = 0; o < n; o++) acc += ((m[o] + half) >> f) * dy[o];
  return acc;
}

void odt_linear_forward(const odt_op_t* op, uint32_t n_in, const odt_wref_t* w, const int32_t* off,
                        const uint8_t* x, uint8_t x_dtype, uint8_t* y, uint8_t y_dtype,
                        int32_t* row) {
  uint32_t n = op->n_out;
  for (uint32_t o = 0; o < n; o++) row[o] = 0;
  for (uint32_t i = 0; i < n_in; i++) {
    int32_t v = odt_load(x, x_dtype, i);
    if (v == 0) continue;
    size_t at = (size_t)i * n;
    if (w->m16) {
      mac_row16(row, w->m16 + at, n, v, w->half, w->f);
    } else {
      mac_row8(row, w->m8 + at, n, v * (1 << w->shl));
    }
  }
  for (uint32_t o = 0; o < n; o++) odt_store(y, y_dtype, o, odt_requant(op, off, o, row[o]));
}

void odt_linear_delta(const odt_op_t* op, uint32_t n_in, const odt_wref_t* w, const int8_t* dy,
                      uint32_t n, odt_delta_t* d) {
  uint32_t n_out = op->n_out;
  for (uint32_t i = 0; i < n_in; i++) {
    size_t at = (size_t)i * n_out;
    for (uint32_t b = 0; b < n; b++) {
      const int8_t* dyb = dy + (size_t)b * n_out;
      int32_t v = w->m16 ? dot16(w->m16 + at, dyb, n_out, w->half, w->f)
                         : dot8(w->m8 + at, dyb, n_out) * (1 << w->shl);
      odt_delta_put(d, b, i, v);
    }
  }
}

void odt_linear_grad(const odt_op_t* op, uint32_t n_in, const odt_view_t* x, const int8_t* dy,
                     uint32_t n, int32_t* row, odt_update_t* u) {
  uint32_t n_out = op->n_out;
  for (uint32_t i = 0; i < n_in; i++) {
    bool any = false;
    for (uint32_t o = 0; o < n_out; o++) row[o] = 0;
    for (uint32_t b = 0; b < n; b++) {
      int32_t v = odt_load(odt_sample(x, b), x->dtype, i);
      if (v == 0) continue;
      any = true;
      mac_delta(row, dy + (size_t)b * n_out, n_out, v);
    }
    if (any) odt_update_row(u, i * n_out, row, n_out);
  }
}

/* Dense layers: weights [in,out], row by row. */
#include "kernels/kernels.h"

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

void odt_dense_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y) {
  const odt_wref_t* w = &k->w;
  uint32_t n_out = k->op->n_out, bytes = n_out * odt_elem_bytes(k->out->dtype);
  int32_t* row = k->scratch;
  for (uint32_t b = 0; b < n; b++, y += bytes) {
    const uint8_t* xb = odt_sample(x, b);
    for (uint32_t o = 0; o < n_out; o++) row[o] = 0;
    for (uint32_t i = 0; i < k->in->count; i++) {
      int32_t v = odt_load(xb, x->dtype, i);
      if (v == 0) continue;
      size_t at = (size_t)i * n_out;
      if (w->m16) {
        mac_row16(row, w->m16 + at, n_out, v, w->half, w->f);
      } else {
        mac_row8(row, w->m8 + at, n_out, v * (1 << w->shl));
      }
    }
    for (uint32_t o = 0; o < n_out; o++) {
      odt_store(y, k->out->dtype, o, odt_requant(k->op, k->off, o, row[o]));
    }
  }
}

void odt_dense_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink) {
  const odt_wref_t* w = &k->w;
  uint32_t n_out = k->op->n_out;
  for (uint32_t i = 0; i < k->in->count; i++) {
    size_t at = (size_t)i * n_out;
    for (uint32_t b = 0; b < n; b++) {
      const int8_t* dyb = dy + (size_t)b * n_out;
      int32_t v = w->m16 ? dot16(w->m16 + at, dyb, n_out, w->half, w->f)
                         : dot8(w->m8 + at, dyb, n_out) * (1 << w->shl);
      odt_sink_put(sink, b, i, v);
    }
  }
}

void odt_dense_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                    odt_update_t* u) {
  uint32_t n_out = k->op->n_out;
  int32_t* row = k->scratch;
  for (uint32_t i = 0; i < k->in->count; i++) {
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

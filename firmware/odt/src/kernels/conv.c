/* 2-D convolutions: weights [O,I/g,kH,kW], a row of outputs at a time. */
#include "kernels/kernels.h"

/* Where one kernel tap meets the input along one axis: in = out * stride + at. */
typedef struct {
  int32_t at, stride;
  uint32_t lo, hi; /* outputs [lo, hi) whose input lies inside */
} span_t;

static span_t span_of(uint32_t tap, uint32_t dil, uint32_t pad, uint32_t stride, uint32_t n_in,
                      uint32_t n_out) {
  span_t s = {.at = (int32_t)(tap * dil) - (int32_t)pad, .stride = (int32_t)stride};
  int32_t last = (int32_t)n_in - 1 - s.at;
  s.lo = s.at >= 0 ? 0u : ((uint32_t)-s.at + stride - 1u) / stride;
  s.hi = last < 0 ? 0u : (uint32_t)last / stride + 1u;
  if (s.hi > n_out) s.hi = n_out;
  if (s.lo > s.hi) s.lo = s.hi;
  return s;
}

typedef struct {
  uint32_t h_in, w_in, h_out, w_out, c_group, o_group;
} shape_t;

static shape_t shape_of(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out) {
  shape_t s = {in->dims[1],
               in->dims[2],
               out->dims[1],
               out->dims[2],
               (uint32_t)in->dims[0] / op->groups,
               (uint32_t)out->dims[0] / op->groups};
  return s;
}

/* acc[o] += w * x[o * stride + at] over the span; x is one input row. */
static void mac_row(int32_t* acc, const uint8_t* x, uint8_t dtype, const span_t* s, int32_t w) {
  int32_t ix = (int32_t)s->lo * s->stride + s->at;
  if (dtype == ODT_U8) {
    for (uint32_t o = s->lo; o < s->hi; o++, ix += s->stride) acc[o] += w * x[ix];
  } else if (dtype == ODT_S8) {
    const int8_t* p = (const int8_t*)x;
    for (uint32_t o = s->lo; o < s->hi; o++, ix += s->stride) acc[o] += w * p[ix];
  } else {
    const int16_t* p = (const int16_t*)(const void*)x;
    for (uint32_t o = s->lo; o < s->hi; o++, ix += s->stride) acc[o] += w * p[ix];
  }
}

static void accumulate_row(const odt_op_t* op, const odt_tensor_t* in, const shape_t* s,
                           const odt_wref_t* w, const uint8_t* x, uint32_t o, uint32_t oy,
                           int32_t* row) {
  uint32_t c0 = o / s->o_group * s->c_group, elem = odt_elem_bytes(in->dtype);
  for (uint32_t c = 0; c < s->c_group; c++) {
    for (uint32_t ky = 0; ky < op->k_h; ky++) {
      int32_t iy = (int32_t)(oy * op->stride_h + ky * op->dil_h) - op->pad_t;
      if (iy < 0 || iy >= (int32_t)s->h_in) continue;
      const uint8_t* line = x + (((size_t)(c0 + c) * s->h_in + (uint32_t)iy) * s->w_in) * elem;
      uint32_t base = ((o * s->c_group + c) * op->k_h + ky) * op->k_w;
      for (uint32_t kx = 0; kx < op->k_w; kx++) {
        span_t sp = span_of(kx, op->dil_w, op->pad_l, op->stride_w, s->w_in, s->w_out);
        mac_row(row, line, in->dtype, &sp, odt_weight(w, base + kx));
      }
    }
  }
}

static void forward_sample(const odt_kernel_t* k, const shape_t* s, const uint8_t* x, uint8_t* y) {
  int32_t* row = k->scratch;
  for (uint32_t o = 0; o < k->op->n_out; o++) {
    for (uint32_t oy = 0; oy < s->h_out; oy++) {
      for (uint32_t ox = 0; ox < s->w_out; ox++) row[ox] = 0;
      accumulate_row(k->op, k->in, s, &k->w, x, o, oy, row);
      uint32_t at = (o * s->h_out + oy) * s->w_out;
      for (uint32_t ox = 0; ox < s->w_out; ox++) {
        odt_store(y, k->out->dtype, at + ox, odt_requant(k->op, k->off, o, row[ox]));
      }
    }
  }
}

void odt_conv_forward(const odt_kernel_t* k, const odt_view_t* x, uint32_t n, uint8_t* y) {
  shape_t s = shape_of(k->op, k->in, k->out);
  uint32_t bytes = k->out->count * odt_elem_bytes(k->out->dtype);
  for (uint32_t b = 0; b < n; b++) forward_sample(k, &s, odt_sample(x, b), y + (size_t)b * bytes);
}

/* Contributions of output channel o to row iy of input channel c (of its group). */
static void scatter_row(const odt_op_t* op, const shape_t* s, const odt_wref_t* w, const int8_t* dy,
                        uint32_t o, uint32_t c, uint32_t iy, int32_t* row) {
  for (uint32_t ky = 0; ky < op->k_h; ky++) {
    int32_t num = (int32_t)(iy + op->pad_t) - (int32_t)(ky * op->dil_h);
    if (num < 0 || num % op->stride_h != 0) continue;
    uint32_t oy = (uint32_t)num / op->stride_h;
    if (oy >= s->h_out) continue;
    const int8_t* line = dy + ((size_t)o * s->h_out + oy) * s->w_out;
    uint32_t base = ((o * s->c_group + c) * op->k_h + ky) * op->k_w;
    for (uint32_t kx = 0; kx < op->k_w; kx++) {
      int32_t v = odt_weight(w, base + kx);
      span_t sp = span_of(kx, op->dil_w, op->pad_l, op->stride_w, s->w_in, s->w_out);
      int32_t ix = (int32_t)sp.lo * sp.stride + sp.at;
      for (uint32_t ox = sp.lo; ox < sp.hi; ox++, ix += sp.stride) row[ix] += v * line[ox];
    }
  }
}

void odt_conv_delta(const odt_kernel_t* k, const int8_t* dy, uint32_t n, const odt_sink_t* sink) {
  shape_t s = shape_of(k->op, k->in, k->out);
  int32_t* row = k->scratch;
  for (uint32_t b = 0; b < n; b++) {
    const int8_t* dyb = dy + (size_t)b * k->out->count;
    for (uint32_t c = 0; c < k->in->dims[0]; c++) {
      uint32_t o0 = c / s.c_group * s.o_group;
      for (uint32_t iy = 0; iy < s.h_in; iy++) {
        for (uint32_t ix = 0; ix < s.w_in; ix++) row[ix] = 0;
        for (uint32_t o = o0; o < o0 + s.o_group; o++) {
          scatter_row(k->op, &s, &k->w, dyb, o, c % s.c_group, iy, row);
        }
        uint32_t at = (c * s.h_in + iy) * s.w_in;
        for (uint32_t ix = 0; ix < s.w_in; ix++) odt_sink_put(sink, b, at + ix, row[ix]);
      }
    }
  }
}

/* Sum of x * dy over one output row's span. 256 products of 2^22 fit an int32. */
static int64_t dot_row(const uint8_t* x, uint8_t dtype, const int8_t* dy, const span_t* s) {
  int64_t sum = 0;
  int32_t ix = (int32_t)s->lo * s->stride + s->at;
  for (uint32_t o = s->lo; o < s->hi;) {
    uint32_t end = s->hi - o > 256u ? o + 256u : s->hi;
    int32_t acc = 0;
    if (dtype == ODT_U8) {
      for (; o < end; o++, ix += s->stride) acc += x[ix] * dy[o];
    } else if (dtype == ODT_S8) {
      for (; o < end; o++, ix += s->stride) acc += ((const int8_t*)x)[ix] * dy[o];
    } else {
      const int16_t* p = (const int16_t*)(const void*)x;
      for (; o < end; o++, ix += s->stride) acc += p[ix] * dy[o];
    }
    sum += acc;
  }
  return sum;
}

static int64_t tap_gradient(const odt_op_t* op, const shape_t* s, const odt_view_t* x,
                            const int8_t* dy, uint32_t n, uint32_t o, uint32_t c, uint32_t ky,
                            uint32_t kx) {
  span_t sy = span_of(ky, op->dil_h, op->pad_t, op->stride_h, s->h_in, s->h_out);
  span_t sx = span_of(kx, op->dil_w, op->pad_l, op->stride_w, s->w_in, s->w_out);
  uint32_t elem = odt_elem_bytes(x->dtype), channel = o / s->o_group * s->c_group + c;
  size_t per_sample = (size_t)op->n_out * s->h_out * s->w_out;
  int64_t g = 0;
  for (uint32_t b = 0; b < n; b++) {
    const uint8_t* plane = odt_sample(x, b) + (size_t)channel * s->h_in * s->w_in * elem;
    const int8_t* dplane = dy + b * per_sample + (size_t)o * s->h_out * s->w_out;
    for (uint32_t oy = sy.lo; oy < sy.hi; oy++) {
      uint32_t iy = (uint32_t)((int32_t)oy * sy.stride + sy.at);
      g += dot_row(plane + (size_t)iy * s->w_in * elem, x->dtype, dplane + (size_t)oy * s->w_out,
                   &sx);
    }
  }
  return g;
}

void odt_conv_grad(const odt_kernel_t* k, const odt_view_t* x, const int8_t* dy, uint32_t n,
                   odt_update_t* u) {
  const odt_op_t* op = k->op;
  shape_t s = shape_of(op, k->in, k->out);
  uint32_t index = 0;
  for (uint32_t o = 0; o < op->n_out; o++) {
    for (uint32_t c = 0; c < s.c_group; c++) {
      for (uint32_t ky = 0; ky < op->k_h; ky++) {
        for (uint32_t kx = 0; kx < op->k_w; kx++) {
          odt_update_one(u, index++, tap_gradient(op, &s, x, dy, n, o, c, ky, kx));
        }
      }
    }
  }
}

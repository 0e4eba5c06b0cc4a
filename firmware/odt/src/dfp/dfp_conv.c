/* Convolutions of rule 1.13 in plain C: a row of sums at a time. */
#include "dfp_kernels.h"

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
  uint32_t h_in, w_in, h_out, w_out, c_group, o_group, x_stride, y_stride;
} shape_t;

static shape_t shape_of(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out) {
  shape_t s = {in->dims[1],
               in->dims[2],
               out->dims[1],
               out->dims[2],
               (uint32_t)in->dims[0] / op->groups,
               (uint32_t)out->dims[0] / op->groups,
               odt_dfp_even(in->count),
               odt_dfp_even(out->count)};
  return s;
}

uint32_t odt_dfp_scratch_bytes(const odt_model_t* m, const odt_op_t* op, uint32_t batch) {
  if (op->kind == ODT_OP_LINEAR) {
    /* The batch's inputs and two outputs' deltas in pairs of samples, and two outputs' steps; or
     * two samples' deltas. */
    uint32_t across = (m->tensors[op->in0].count + 1u) >> 1;
    uint32_t pairs = batch > 8u ? (batch + 1u) >> 1 : 4u;
    uint32_t update = pairs * (across + 1u) + across, delta = (op->n_out + 1u) >> 1;
    return 8u * (update > delta ? update : delta);
  }
  if (op->kind != ODT_OP_CONV2D) return 0;
  uint32_t in = m->tensors[op->in0].dims[2], out = m->tensors[op->out].dims[2];
  return 8u * (in > out ? in : out) + op->k_w * (uint32_t)sizeof(span_t);
}

/* The scratch: a row of sums, then the spans of a kernel row's taps. */
static const span_t* spans_of(const odt_op_t* op, const shape_t* s, void* scratch) {
  uint32_t widest = s->w_in > s->w_out ? s->w_in : s->w_out;
  span_t* spans = (span_t*)(void*)((int64_t*)scratch + widest);
  for (uint32_t kx = 0; kx < op->k_w; kx++) {
    spans[kx] = span_of(kx, op->dil_w, op->pad_l, op->stride_w, s->w_in, s->w_out);
  }
  return spans;
}

/* One kernel tap's part in a row of sums: row[j] += v * line[j * stride + at] for j in [lo, hi). */
typedef struct {
  int32_t v, at;
  uint32_t lo, hi;
} tap_t;

static void mac_one(int64_t* row, const int16_t* line, int32_t stride, const tap_t* t, uint32_t lo,
                    uint32_t hi) {
  int32_t i = (int32_t)lo * stride + t->at;
  for (uint32_t j = lo; j < hi; j++, i += stride) row[j] += t->v * odt_dfp_operand(line[i]);
}

/* Up to four taps at once where all have a part: two products of 16 bits make at most 32. */
static void mac_taps(int64_t* row, const int16_t* line, int32_t stride, const tap_t* t,
                     uint32_t n) {
  uint32_t lo = t[0].lo, hi = t[0].hi;
  for (uint32_t k = 1; k < n; k++) {
    lo = t[k].lo > lo ? t[k].lo : lo;
    hi = t[k].hi < hi ? t[k].hi : hi;
  }
  if (n < 2 || lo >= hi) lo = hi = 0;
  for (uint32_t k = 0; k < n; k++) {
    mac_one(row, line, stride, &t[k], t[k].lo, lo > t[k].lo ? lo : t[k].lo);
    mac_one(row, line, stride, &t[k], t[k].lo > hi ? t[k].lo : hi, t[k].hi);
  }
  if (lo == hi) return;
  const int16_t* x[4];
  int32_t v[4];
  for (uint32_t k = 0; k < 4u; k++) {
    x[k] = line + (int32_t)lo * stride + t[k < n ? k : 0].at;
    v[k] = k < n ? t[k].v : 0;
  }
  for (uint32_t j = lo; j < hi; j++) {
    int32_t first = v[0] * odt_dfp_operand(*x[0]) + v[1] * odt_dfp_operand(*x[1]);
    int32_t second = v[2] * odt_dfp_operand(*x[2]) + v[3] * odt_dfp_operand(*x[3]);
    row[j] += (int64_t)first + second;
    for (uint32_t k = 0; k < 4u; k++) x[k] += stride;
  }
}

/* One kernel row of one channel; line is the input row it meets. */
static void forward_taps(const odt_op_t* op, const span_t* spans, const int16_t* w,
                         const int16_t* line, int64_t* row) {
  tap_t t[4];
  uint32_t n = 0;
  for (uint32_t kx = 0; kx < op->k_w; kx++) {
    span_t sp = spans[kx];
    tap_t tap = {odt_dfp_operand(w[kx]), sp.at, sp.lo, sp.hi};
    if (tap.v != 0 && tap.lo < tap.hi) t[n++] = tap;
    if (n == 4u || (n > 0 && kx + 1u == op->k_w)) {
      mac_taps(row, line, op->stride_w, t, n);
      n = 0;
    }
  }
}

static void forward_row(const odt_dfp_weights_t* w, const odt_op_t* op, const shape_t* s,
                        const span_t* spans, const int16_t* x, uint32_t o, uint32_t oy,
                        int64_t* row) {
  uint32_t c0 = o / s->o_group * s->c_group;
  for (uint32_t c = 0; c < s->c_group; c++) {
    for (uint32_t ky = 0; ky < op->k_h; ky++) {
      int32_t iy = (int32_t)(oy * op->stride_h + ky * op->dil_h) - op->pad_t;
      if (iy < 0 || iy >= (int32_t)s->h_in) continue;
      const int16_t* line = x + ((size_t)(c0 + c) * s->h_in + (uint32_t)iy) * s->w_in;
      uint32_t base = ((o * s->c_group + c) * op->k_h + ky) * op->k_w;
      forward_taps(op, spans, w->w + base, line, row);
    }
  }
}

void odt_dfp_conv_forward(const odt_dfp_weights_t* w, const odt_op_t* op, const odt_tensor_t* in,
                          const odt_tensor_t* out, const int16_t* x, uint32_t n,
                          odt_dfp_sink_t* sink, void* scratch) {
  shape_t s = shape_of(op, in, out);
  int64_t* row = scratch;
  const span_t* spans = spans_of(op, &s, scratch);
  for (uint32_t o = 0; o < op->n_out; o++) {
    int64_t bias = odt_dfp_bias(w, o);
    int below = odt_dfp_below(w, o);
    for (uint32_t b = 0; b < n; b++) {
      for (uint32_t oy = 0; oy < s.h_out; oy++) {
        for (uint32_t ox = 0; ox < s.w_out; ox++) row[ox] = bias;
        forward_row(w, op, &s, spans, x + (size_t)b * s.x_stride, o, oy, row);
        uint32_t at = (o * s.h_out + oy) * s.w_out;
        for (uint32_t ox = 0; ox < s.w_out; ox++) {
          odt_dfp_put(sink, b, at + ox, odt_dfp_half_up(row[ox], below));
        }
      }
    }
  }
}

/* The same against the flow: line is a row of dy. With stride 1 each input gathers its taps. */
static void back_taps(const odt_op_t* op, const span_t* spans, const int16_t* w, int below,
                      const int16_t* line, int64_t* row) {
  tap_t t[4];
  uint32_t n = 0;
  for (uint32_t kx = 0; kx < op->k_w; kx++) {
    span_t sp = spans[kx];
    int32_t v = odt_dfp_operand((int16_t)odt_dfp_half_up(w[kx], below));
    if (op->stride_w == 1) {
      tap_t tap = {v, -sp.at, (uint32_t)((int32_t)sp.lo + sp.at),
                   (uint32_t)((int32_t)sp.hi + sp.at)};
      if (v != 0 && sp.lo < sp.hi) t[n++] = tap;
    } else {
      int32_t ix = (int32_t)sp.lo * sp.stride + sp.at;
      for (uint32_t ox = sp.lo; ox < sp.hi; ox++, ix += sp.stride) {
        row[ix] += v * odt_dfp_operand(line[ox]);
      }
    }
    if (n == 4u || (n > 0 && kx + 1u == op->k_w)) {
      mac_taps(row, line, 1, t, n);
      n = 0;
    }
  }
}

/* Contributions of output channel o to row iy of input channel c (of its group). */
static void scatter_row(const odt_dfp_weights_t* w, const odt_op_t* op, const shape_t* s,
                        const span_t* spans, const int16_t* dy, uint32_t o, uint32_t c, uint32_t iy,
                        int64_t* row) {
  int below = odt_dfp_below(w, o);
  if (below > 15) return;
  for (uint32_t ky = 0; ky < op->k_h; ky++) {
    int32_t num = (int32_t)(iy + op->pad_t) - (int32_t)(ky * op->dil_h);
    if (num < 0 || num % op->stride_h != 0) continue;
    uint32_t oy = (uint32_t)num / op->stride_h;
    if (oy >= s->h_out) continue;
    const int16_t* line = dy + ((size_t)o * s->h_out + oy) * s->w_out;
    uint32_t base = ((o * s->c_group + c) * op->k_h + ky) * op->k_w;
    back_taps(op, spans, w->w + base, below, line, row);
  }
}

void odt_dfp_conv_delta(const odt_dfp_weights_t* w, const odt_op_t* op, const odt_tensor_t* in,
                        const odt_tensor_t* out, const int16_t* dy, uint32_t n,
                        odt_dfp_sink_t* sink, void* scratch) {
  shape_t s = shape_of(op, in, out);
  int64_t* row = scratch;
  const span_t* spans = spans_of(op, &s, scratch);
  for (uint32_t b = 0; b < n; b++) {
    const int16_t* dyb = dy + (size_t)b * s.y_stride;
    for (uint32_t c = 0; c < in->dims[0]; c++) {
      uint32_t o0 = c / s.c_group * s.o_group;
      for (uint32_t iy = 0; iy < s.h_in; iy++) {
        for (uint32_t ix = 0; ix < s.w_in; ix++) row[ix] = 0;
        for (uint32_t o = o0; o < o0 + s.o_group; o++) {
          scatter_row(w, op, &s, spans, dyb, o, c % s.c_group, iy, row);
        }
        uint32_t at = (c * s.h_in + iy) * s.w_in;
        for (uint32_t ix = 0; ix < s.w_in; ix++) odt_dfp_put(sink, b, at + ix, row[ix]);
      }
    }
  }
}

static int64_t dot_row(const int16_t* x, int32_t stride, const int16_t* dy, uint32_t n) {
  int64_t sum = 0;
  for (; n >= 2u; n -= 2u, x += 2 * stride, dy += 2) {
    sum += odt_dfp_operand(x[0]) * odt_dfp_operand(dy[0]) +
           odt_dfp_operand(x[stride]) * odt_dfp_operand(dy[1]);
  }
  return n ? sum + odt_dfp_operand(*x) * odt_dfp_operand(*dy) : sum;
}

/* Sum of x * dy over batch and positions for one weight. */
static int64_t tap_sum(const odt_op_t* op, const shape_t* s, const int16_t* x, const int16_t* dy,
                       uint32_t n, uint32_t index) {
  uint32_t kx = index % op->k_w, ky = index / op->k_w % op->k_h;
  uint32_t c = index / op->k_w / op->k_h % s->c_group;
  uint32_t o = index / op->k_w / op->k_h / s->c_group, channel = o / s->o_group * s->c_group + c;
  span_t sy = span_of(ky, op->dil_h, op->pad_t, op->stride_h, s->h_in, s->h_out);
  span_t sx = span_of(kx, op->dil_w, op->pad_l, op->stride_w, s->w_in, s->w_out);
  int64_t sum = 0;
  for (uint32_t b = 0; b < n; b++) {
    const int16_t* plane = x + (size_t)b * s->x_stride + (size_t)channel * s->h_in * s->w_in;
    const int16_t* dplane = dy + (size_t)b * s->y_stride + (size_t)o * s->h_out * s->w_out;
    for (uint32_t oy = sy.lo; oy < sy.hi; oy++) {
      uint32_t iy = (uint32_t)((int32_t)oy * sy.stride + sy.at);
      const int16_t *line = plane + (size_t)iy * s->w_in, *dline = dplane + (size_t)oy * s->w_out;
      sum += dot_row(line + (int32_t)sx.lo * sx.stride + sx.at, sx.stride, dline + sx.lo,
                     sx.hi - sx.lo);
    }
  }
  return sum;
}

uint32_t odt_dfp_conv_update(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out,
                             const int16_t* x, const int16_t* dy, uint32_t n, odt_dfp_update_t* u,
                             void* scratch) {
  (void)scratch;
  shape_t s = shape_of(op, in, out);
  for (uint32_t i = u->from; i < u->to; i++) {
    int64_t sum = tap_sum(op, &s, x, dy, n, i);
    if (!odt_dfp_apply(u, u->w + i, &sum, 1)) return i;
  }
  return u->to;
}

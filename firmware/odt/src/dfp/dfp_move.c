/* Rule 1.13: pools, ADD, CONCAT, RESIZE, both ways. */
#include <string.h>

#include "dfp.h"

/* A window that moves over planes; GAP's is the whole plane. */
typedef struct {
  uint32_t planes, h_in, w_in, h_out, w_out, k_h, k_w, stride_h, stride_w;
  int32_t pad_t, pad_l;
} window_t;

typedef struct {
  uint32_t y0, y1, x0, x1; /* inputs [y0, y1) x [x0, x1) */
} area_t;

static window_t window_of(const odt_model_t* m, const odt_op_t* op) {
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  window_t w = {in->dims[0], in->dims[1], in->dims[2], 1, 1, in->dims[1], in->dims[2], 1, 1, 0, 0};
  if (op->kind == ODT_OP_GAP) return w;
  w.h_out = out->dims[1];
  w.w_out = out->dims[2];
  w.k_h = op->k_h;
  w.k_w = op->k_w;
  w.stride_h = op->stride_h;
  w.stride_w = op->stride_w;
  w.pad_t = op->pad_t;
  w.pad_l = op->pad_l;
  return w;
}

static void cut(uint32_t at, uint32_t stride, int32_t pad, uint32_t k, uint32_t n, uint32_t* lo,
                uint32_t* hi) {
  int64_t from = (int64_t)at * stride - pad, to = from + k;
  *lo = from < 0 ? 0u : (uint32_t)from;
  *hi = to < 0 ? 0u : to > n ? n : (uint32_t)to;
}

static area_t area_of(const window_t* w, uint32_t oy, uint32_t ox) {
  area_t a;
  cut(oy, w->stride_h, w->pad_t, w->k_h, w->h_in, &a.y0, &a.y1);
  cut(ox, w->stride_w, w->pad_l, w->k_w, w->w_in, &a.x0, &a.x1);
  return a;
}

int32_t odt_dfp_factor(const odt_model_t* m, const odt_op_t* op) {
  if (op->kind != ODT_OP_AVGPOOL && op->kind != ODT_OP_GAP) return 1;
  window_t w = window_of(m, op);
  uint64_t area = (uint64_t)w.k_h * w.k_w;
  return (int32_t)((65536u + area) / (2u * area));
}

/* First largest value in row-major order: its position in the plane. */
static uint32_t first_max(const window_t* w, const area_t* a, const int16_t* plane) {
  uint32_t best = a->y0 * w->w_in + a->x0;
  for (uint32_t y = a->y0; y < a->y1; y++) {
    for (uint32_t x = a->x0; x < a->x1; x++) {
      if (plane[y * w->w_in + x] > plane[best]) best = y * w->w_in + x;
    }
  }
  return best;
}

static int64_t sum_area(const window_t* w, const area_t* a, const int16_t* plane) {
  int64_t sum = 0;
  for (uint32_t y = a->y0; y < a->y1; y++) {
    for (uint32_t x = a->x0; x < a->x1; x++) sum += plane[y * w->w_in + x];
  }
  return sum;
}

static void pool_sample(const window_t* w, bool max, int32_t factor, const int16_t* x, uint32_t b,
                        int16_t* y, odt_dfp_sink_t* k) {
  uint32_t at = 0;
  for (uint32_t c = 0; c < w->planes; c++) {
    const int16_t* plane = x + (size_t)c * w->h_in * w->w_in;
    for (uint32_t oy = 0; oy < w->h_out; oy++) {
      for (uint32_t ox = 0; ox < w->w_out; ox++, at++) {
        area_t a = area_of(w, oy, ox);
        if (max) {
          y[at] = plane[first_max(w, &a, plane)];
        } else {
          odt_dfp_put(k, b, at, sum_area(w, &a, plane) * factor);
        }
      }
    }
  }
}

static void pool(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  const odt_model_t* m = t->model;
  odt_dfp_t* d = &t->dfp;
  window_t w = window_of(m, op);
  bool max = op->kind == ODT_OP_MAXPOOL;
  int32_t factor = odt_dfp_factor(m, op);
  uint32_t count = m->tensors[op->out].count, stride = odt_dfp_even(count);
  uint32_t x_stride = odt_dfp_even(m->tensors[op->in0].count);
  odt_dfp_sink_t k = {.acc = d->acc,
                      .stride = stride,
                      .pre = odt_dfp_pre(((uint64_t)w.k_h * w.k_w * (uint32_t)factor) << 15)};
  do {
    for (uint32_t b = 0; b < n; b++) {
      pool_sample(&w, max, factor, odt_dfp_act(d, op->in0) + (size_t)b * x_stride, b,
                  odt_dfp_act(d, op->out) + (size_t)b * stride, &k);
    }
  } while (!max && odt_dfp_again(&k));
  if (max) {
    d->e_act[op->out] = d->e_act[op->in0];
    for (uint32_t b = 0; stride > count && b < n; b++)
      odt_dfp_act(d, op->out)[b * stride + count] = 0;
    return;
  }
  odt_dfp_convert(&k, n, count, d->e_act[op->in0] - 15, false, odt_dfp_act(d, op->out),
                  &d->e_act[op->out]);
}

/* The two inputs of ADD and CONCAT at the larger of their exponents. */
typedef struct {
  const int16_t *a, *b;
  uint32_t a_count, b_count, a_stride, b_stride;
  int a_down, b_down;
  int8_t e;
} pair_t;

static pair_t pair_of(const odt_trainer_t* t, const odt_op_t* op) {
  const odt_dfp_t* d = &t->dfp;
  int8_t ea = d->e_act[op->in0], eb = d->e_act[op->in1], e = ea > eb ? ea : eb;
  pair_t p = {.a = odt_dfp_act(d, op->in0),
              .b = odt_dfp_act(d, op->in1),
              .a_count = t->model->tensors[op->in0].count,
              .b_count = t->model->tensors[op->in1].count,
              .a_down = e - ea,
              .b_down = e - eb,
              .e = e};
  p.a_stride = odt_dfp_even(p.a_count);
  p.b_stride = odt_dfp_even(p.b_count);
  return p;
}

static void add(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  odt_dfp_t* d = &t->dfp;
  pair_t p = pair_of(t, op);
  odt_dfp_sink_t k = {.acc = d->acc, .stride = p.a_stride};
  for (uint32_t b = 0; b < n; b++) {
    for (uint32_t i = 0; i < p.a_count; i++) {
      uint32_t at = b * p.a_stride + i;
      odt_dfp_put(&k, b, i,
                  odt_dfp_half_up(p.a[at], p.a_down) + odt_dfp_half_up(p.b[at], p.b_down));
    }
  }
  odt_dfp_convert(&k, n, p.a_count, p.e, (op->flags & ODT_OP_FLAG_RELU) != 0,
                  odt_dfp_act(d, op->out), &d->e_act[op->out]);
}

static void concat(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  pair_t p = pair_of(t, op);
  uint32_t count = p.a_count + p.b_count, stride = odt_dfp_even(count);
  for (uint32_t b = 0; b < n; b++) {
    int16_t* y = odt_dfp_act(&t->dfp, op->out) + (size_t)b * stride;
    for (uint32_t i = 0; i < p.a_count; i++) {
      y[i] = (int16_t)odt_dfp_half_up(p.a[b * p.a_stride + i], p.a_down);
    }
    for (uint32_t i = 0; i < p.b_count; i++) {
      y[p.a_count + i] = (int16_t)odt_dfp_half_up(p.b[b * p.b_stride + i], p.b_down);
    }
    if (stride > count) y[count] = 0;
  }
  t->dfp.e_act[op->out] = p.e;
}

/* Position in the input plane that output (oy, ox) of a RESIZE copies. */
static uint32_t nearest(const odt_tensor_t* in, const odt_tensor_t* out, uint32_t oy, uint32_t ox) {
  return oy * in->dims[1] / out->dims[1] * in->dims[2] + ox * in->dims[2] / out->dims[2];
}

static void resize(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  const odt_tensor_t *in = &t->model->tensors[op->in0], *out = &t->model->tensors[op->out];
  uint32_t plane = (uint32_t)in->dims[1] * in->dims[2], stride = odt_dfp_even(out->count);
  for (uint32_t b = 0; b < n; b++) {
    const int16_t* x = odt_dfp_act(&t->dfp, op->in0) + (size_t)b * odt_dfp_even(in->count);
    int16_t* y = odt_dfp_act(&t->dfp, op->out) + (size_t)b * stride;
    uint32_t at = 0;
    for (uint32_t c = 0; c < in->dims[0]; c++) {
      for (uint32_t oy = 0; oy < out->dims[1]; oy++) {
        for (uint32_t ox = 0; ox < out->dims[2]; ox++) {
          y[at++] = x[c * plane + nearest(in, out, oy, ox)];
        }
      }
    }
    if (stride > out->count) y[out->count] = 0;
  }
  t->dfp.e_act[op->out] = t->dfp.e_act[op->in0];
}

void odt_dfp_move(odt_trainer_t* t, const odt_op_t* op, uint32_t n) {
  switch (op->kind) {
    case ODT_OP_ADD:
      add(t, op, n);
      break;
    case ODT_OP_CONCAT:
      concat(t, op, n);
      break;
    case ODT_OP_RESIZE:
      resize(t, op, n);
      break;
    default:
      pool(t, op, n);
  }
}

uint32_t odt_dfp_fan_out(const odt_model_t* m, const odt_op_t* op) {
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  if (op->kind == ODT_OP_MAXPOOL || op->kind == ODT_OP_AVGPOOL) return (uint32_t)op->k_h * op->k_w;
  if (op->kind != ODT_OP_RESIZE) return 1;
  return ((uint32_t)out->dims[1] / in->dims[1] + 1u) * ((uint32_t)out->dims[2] / in->dims[2] + 1u);
}

static void pool_back(const window_t* w, bool max, const int16_t* x, const int16_t* dy,
                      int32_t* sum) {
  uint32_t at = 0;
  for (uint32_t c = 0; c < w->planes; c++) {
    size_t base = (size_t)c * w->h_in * w->w_in;
    for (uint32_t oy = 0; oy < w->h_out; oy++) {
      for (uint32_t ox = 0; ox < w->w_out; ox++, at++) {
        area_t a = area_of(w, oy, ox);
        if (max) {
          sum[base + first_max(w, &a, x + base)] += dy[at];
          continue;
        }
        for (uint32_t y = a.y0; y < a.y1; y++) {
          for (uint32_t i = a.x0; i < a.x1; i++) sum[base + y * w->w_in + i] += dy[at];
        }
      }
    }
  }
}

static void resize_back(const odt_tensor_t* in, const odt_tensor_t* out, const int16_t* dy,
                        int32_t* sum) {
  uint32_t plane = (uint32_t)in->dims[1] * in->dims[2], at = 0;
  for (uint32_t c = 0; c < in->dims[0]; c++) {
    for (uint32_t oy = 0; oy < out->dims[1]; oy++) {
      for (uint32_t ox = 0; ox < out->dims[2]; ox++) {
        sum[c * plane + nearest(in, out, oy, ox)] += dy[at++];
      }
    }
  }
}

/* At most 65535 outputs of 15 bits meet in one input: an int32 holds them. */
void odt_dfp_move_back(const odt_trainer_t* t, const odt_op_t* op, int which, uint32_t b,
                       int32_t* sum) {
  const odt_model_t* m = t->model;
  const odt_tensor_t *in0 = &m->tensors[op->in0], *out = &m->tensors[op->out];
  const odt_tensor_t* in = which ? &m->tensors[op->in1] : in0;
  const int16_t* dy = odt_dfp_delta(&t->dfp, op->out) + (size_t)b * odt_dfp_even(out->count);
  memset(sum, 0, 4u * (size_t)in->count);
  if (op->kind == ODT_OP_RESIZE) {
    resize_back(in, out, dy, sum);
  } else if (op->kind == ODT_OP_ADD || op->kind == ODT_OP_CONCAT || op->kind == ODT_OP_FLATTEN) {
    if (op->kind == ODT_OP_CONCAT && which) dy += in0->count;
    for (uint32_t i = 0; i < in->count; i++) sum[i] = dy[i];
  } else {
    window_t w = window_of(m, op);
    pool_back(&w, op->kind == ODT_OP_MAXPOOL,
              odt_dfp_act(&t->dfp, op->in0) + (size_t)b * odt_dfp_even(in->count), dy, sum);
  }
}

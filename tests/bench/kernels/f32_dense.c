#include "f32_dense.h"

#define TILE 4u

#define ROW(acc, a, w0, w1, w2, w3) \
  acc##0 += (a) * (w0);             \
  acc##1 += (a) * (w1);             \
  acc##2 += (a) * (w2);             \
  acc##3 += (a) * (w3)

static float clamp(float v, int relu) { return relu && v < 0.0f ? 0.0f : v; }

static void store_row(float* y, const float* bias, int relu, float a, float b, float c, float d) {
  y[0] = clamp(a + bias[0], relu);
  y[1] = clamp(b + bias[1], relu);
  y[2] = clamp(c + bias[2], relu);
  y[3] = clamp(d + bias[3], relu);
}

static void forward_tile(const float* x, const float* w, uint32_t n_in, const float* bias, int relu,
                         float* y, uint32_t stride) {
  float a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  const float* end = x + TILE * n_in;
  do {
    float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
    ROW(a, x[0], w0, w1, w2, w3);
    ROW(b, x[1], w0, w1, w2, w3);
    ROW(c, x[2], w0, w1, w2, w3);
    ROW(d, x[3], w0, w1, w2, w3);
    w0 = w[4], w1 = w[5], w2 = w[6], w3 = w[7];
    ROW(a, x[4], w0, w1, w2, w3);
    ROW(b, x[5], w0, w1, w2, w3);
    ROW(c, x[6], w0, w1, w2, w3);
    ROW(d, x[7], w0, w1, w2, w3);
    x += 2u * TILE;
    w += 2u * TILE;
  } while (x != end);
  store_row(y, bias, relu, a0, a1, a2, a3);
  store_row(y + stride, bias, relu, b0, b1, b2, b3);
  store_row(y + 2u * stride, bias, relu, c0, c1, c2, c3);
  store_row(y + 3u * stride, bias, relu, d0, d1, d2, d3);
}

void f32_forward(const f32_dense_t* l, const float* x, uint32_t batch, int relu, float* y) {
  for (uint32_t o = 0; o < l->n_out; o += TILE) {
    for (uint32_t b = 0; b < batch; b += TILE) {
      forward_tile(x + b * l->n_in, l->w + o * l->n_in, l->n_in, l->bias + o, relu,
                   y + b * l->n_out + o, l->n_out);
    }
  }
}

void f32_delta(const f32_dense_t* l, const float* dy, uint32_t batch, const float* y_in,
               float* dx) {
  for (uint32_t b = 0; b < batch; b++) {
    const float* d = dy + b * l->n_out;
    for (uint32_t i = 0; i < l->n_in; i++) {
      float sum = 0;
      if (y_in[b * l->n_in + i] > 0.0f) {
        for (uint32_t o = 0; o < l->n_out; o += TILE) {
          const float* w = l->w + (o * l->n_in + i * TILE);
          sum += d[o] * w[0] + d[o + 1] * w[1] + d[o + 2] * w[2] + d[o + 3] * w[3];
        }
      }
      dx[b * l->n_in + i] = sum;
    }
  }
}

static void apply_row(float* w, float rate, float a, float b, float c, float d) {
  w[0] -= rate * a;
  w[1] -= rate * b;
  w[2] -= rate * c;
  w[3] -= rate * d;
}

/* Inputs i..i+3 times outputs o..o+3: 16 weights that lie together. */
static void update_tile(const float* x, uint32_t n_in, const float* dy, uint32_t n_out,
                        uint32_t batch, float rate, float* w) {
  float a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  do {
    float w0 = dy[0], w1 = dy[1], w2 = dy[2], w3 = dy[3];
    ROW(a, x[0], w0, w1, w2, w3);
    ROW(b, x[1], w0, w1, w2, w3);
    ROW(c, x[2], w0, w1, w2, w3);
    ROW(d, x[3], w0, w1, w2, w3);
    x += n_in;
    dy += n_out;
  } while (--batch != 0);
  apply_row(w, rate, a0, a1, a2, a3);
  apply_row(w + 4, rate, b0, b1, b2, b3);
  apply_row(w + 8, rate, c0, c1, c2, c3);
  apply_row(w + 12, rate, d0, d1, d2, d3);
}

void f32_update(const f32_dense_t* l, const float* x, const float* dy, uint32_t batch, float rate) {
  for (uint32_t o = 0; o < l->n_out; o++) {
    float sum = 0;
    for (uint32_t b = 0; b < batch; b++) sum += dy[b * l->n_out + o];
    l->bias[o] -= rate * sum;
  }
  for (uint32_t o = 0; o < l->n_out; o += TILE) {
    for (uint32_t i = 0; i < l->n_in; i += TILE) {
      update_tile(x + i, l->n_in, dy + o, l->n_out, batch, rate, l->w + (o * l->n_in + i * TILE));
    }
  }
}

void f32_pack(const float* x, uint32_t batch, uint32_t n, float* out) {
  for (uint32_t b = 0; b < batch; b += TILE) {
    for (uint32_t i = 0; i < n; i++) {
      for (uint32_t j = 0; j < TILE; j++) *out++ = x[(b + j) * n + i];
    }
  }
}

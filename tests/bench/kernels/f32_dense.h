/* The float32 baseline: the same training step as the integer ones, as good as plain C with an FPU
 * gets it. Weights are packed in panels of four outputs, [outputs/4][inputs][4]; every loop keeps a
 * 4x4 tile of sums in FPU registers. Sizes are padded to multiples of 4 with zeros, the batch is
 * one too. */
#ifndef F32_DENSE_H
#define F32_DENSE_H

#include <stdint.h>

typedef struct {
  uint32_t n_in, n_out; /* multiples of 4 */
  float* w;
  float* bias;
} f32_dense_t;

/* x [batch/4][n_in][4] (panels of four samples), y [batch][n_out]; relu: max(0, y). */
void f32_forward(const f32_dense_t* l, const float* x, uint32_t batch, int relu, float* y);
/* dx [batch][n_in] = dy [batch][n_out] * W^T, 0 where y_in [batch][n_in] <= 0. */
void f32_delta(const f32_dense_t* l, const float* dy, uint32_t batch, const float* y_in, float* dx);
/* W -= rate * sum over the batch of dy * x, x [batch][n_in]; the same for the bias. */
void f32_update(const f32_dense_t* l, const float* x, const float* dy, uint32_t batch, float rate);
/* [batch][n] to panels of four samples. */
void f32_pack(const float* x, uint32_t batch, uint32_t n, float* out);

#endif

#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir.h"

namespace odt::worker {

// Windows over planes for training, one sample at a time, values in the order [H,W,C].
struct Plane {
  int c = 0, h = 0, w = 0;  // of the input
  int out_h = 0, out_w = 0;
  compiler::ConvGeometry g;

  int taps() const { return g.k_h * g.k_w; }
  int positions() const { return out_h * out_w; }
};

// Rows of one output position each: values [from, from + n) of the channels at every tap, 0 in the
// padding. cols: [positions][taps * n].
void im2col(const Plane& p, const float* x, int from, int n, float* cols);
// The transpose: adds to dx.
void col2im(const Plane& p, const float* cols, int from, int n, float* dx);

// w, gw: [taps][c]; y: [positions][c].
void depthwise(const Plane& p, const float* x, const float* w, float* y);
void depthwise_back(const Plane& p, const float* x, const float* w, const float* dy, float* gw,
                    float* dx);

// First maximum in row-major order; which: its position in the plane for every output.
void max_pool(const Plane& p, const float* x, float* y, std::uint16_t* which);
void max_pool_back(const Plane& p, const float* dy, const std::uint16_t* which, float* dx);
// Sums; padding is 0.
void sum_pool(const Plane& p, const float* x, float* y);
void sum_pool_back(const Plane& p, const float* dy, float gain, float* dx);
// Nearest, by whole factors k_h, k_w.
void resize(const Plane& p, const float* x, float* y);
void resize_back(const Plane& p, const float* dy, float* dx);

// [H,W,C] to [C,H,W] and back.
void flatten(int c, int positions, const float* x, float* y);
void flatten_back(int c, int positions, const float* dy, float* dx);

// e^x for x <= 0 from basic operations only: the same bits on every machine.
double exp_portable(double x);

}  // namespace odt::worker

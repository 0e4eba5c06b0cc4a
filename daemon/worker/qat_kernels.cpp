#include "worker/qat_kernels.h"

#include <algorithm>
#include <cmath>

namespace odt::worker {
namespace {

// Calls f(output position, tap, input position) for every tap inside the plane, row-major.
template <typename F>
void each_tap(const Plane& p, F&& f) {
  for (int oy = 0; oy < p.out_h; ++oy)
    for (int ox = 0; ox < p.out_w; ++ox)
      for (int ky = 0; ky < p.g.k_h; ++ky) {
        const int y = oy * p.g.stride_h - p.g.pad_t + ky * p.g.dil_h;
        if (y < 0 || y >= p.h) continue;
        for (int kx = 0; kx < p.g.k_w; ++kx) {
          const int x = ox * p.g.stride_w - p.g.pad_l + kx * p.g.dil_w;
          if (x >= 0 && x < p.w) f(oy * p.out_w + ox, ky * p.g.k_w + kx, y * p.w + x);
        }
      }
}

bool padded(const Plane& p) { return p.g.pad_t + p.g.pad_l + p.g.pad_b + p.g.pad_r > 0; }

}  // namespace

void im2col(const Plane& p, const float* x, int from, int n, float* cols) {
  const auto row = static_cast<std::size_t>(p.taps() * n);
  if (padded(p)) std::fill_n(cols, static_cast<std::size_t>(p.positions()) * row, 0.0f);
  each_tap(p, [&](int out, int tap, int in) {
    const float* src = x + in * p.c + from;
    float* dst = cols + static_cast<std::size_t>(out) * row + static_cast<std::size_t>(tap * n);
    for (int c = 0; c < n; ++c) dst[c] = src[c];
  });
}

void col2im(const Plane& p, const float* cols, int from, int n, float* dx) {
  const auto row = static_cast<std::size_t>(p.taps() * n);
  each_tap(p, [&](int out, int tap, int in) {
    const float* src =
        cols + static_cast<std::size_t>(out) * row + static_cast<std::size_t>(tap * n);
    float* dst = dx + in * p.c + from;
    for (int c = 0; c < n; ++c) dst[c] += src[c];
  });
}

void depthwise(const Plane& p, const float* x, const float* w, float* y) {
  std::fill_n(y, p.positions() * p.c, 0.0f);
  each_tap(p, [&](int out, int tap, int in) {
    const float *xi = x + in * p.c, *wi = w + tap * p.c;
    float* yo = y + out * p.c;
    for (int c = 0; c < p.c; ++c) yo[c] += xi[c] * wi[c];
  });
}

void depthwise_back(const Plane& p, const float* x, const float* w, const float* dy, float* gw,
                    float* dx) {
  each_tap(p, [&](int out, int tap, int in) {
    const float *xi = x + in * p.c, *d = dy + out * p.c;
    float* g = gw + tap * p.c;
    for (int c = 0; c < p.c; ++c) g[c] += xi[c] * d[c];
  });
  if (dx == nullptr) return;
  each_tap(p, [&](int out, int tap, int in) {
    const float *wi = w + tap * p.c, *d = dy + out * p.c;
    float* o = dx + in * p.c;
    for (int c = 0; c < p.c; ++c) o[c] += wi[c] * d[c];
  });
}

void max_pool(const Plane& p, const float* x, float* y, std::uint16_t* which) {
  std::fill_n(y, p.positions() * p.c, -INFINITY);
  each_tap(p, [&](int out, int, int in) {
    for (int c = 0; c < p.c; ++c) {
      const float v = x[in * p.c + c];
      if (v <= y[out * p.c + c]) continue;
      y[out * p.c + c] = v;
      which[out * p.c + c] = static_cast<std::uint16_t>(in);
    }
  });
}

void max_pool_back(const Plane& p, const float* dy, const std::uint16_t* which, float* dx) {
  for (int out = 0; out < p.positions(); ++out)
    for (int c = 0; c < p.c; ++c) dx[which[out * p.c + c] * p.c + c] += dy[out * p.c + c];
}

void sum_pool(const Plane& p, const float* x, float* y) {
  std::fill_n(y, p.positions() * p.c, 0.0f);
  each_tap(p, [&](int out, int, int in) {
    for (int c = 0; c < p.c; ++c) y[out * p.c + c] += x[in * p.c + c];
  });
}

void sum_pool_back(const Plane& p, const float* dy, float gain, float* dx) {
  each_tap(p, [&](int out, int, int in) {
    for (int c = 0; c < p.c; ++c) dx[in * p.c + c] += gain * dy[out * p.c + c];
  });
}

void resize(const Plane& p, const float* x, float* y) {
  for (int oy = 0; oy < p.out_h; ++oy)
    for (int ox = 0; ox < p.out_w; ++ox)
      std::copy_n(x + (oy / p.g.k_h * p.w + ox / p.g.k_w) * p.c, p.c,
                  y + (oy * p.out_w + ox) * p.c);
}

void resize_back(const Plane& p, const float* dy, float* dx) {
  for (int oy = 0; oy < p.out_h; ++oy)
    for (int ox = 0; ox < p.out_w; ++ox) {
      float* d = dx + (oy / p.g.k_h * p.w + ox / p.g.k_w) * p.c;
      for (int c = 0; c < p.c; ++c) d[c] += dy[(oy * p.out_w + ox) * p.c + c];
    }
}

void flatten(int c, int positions, const float* x, float* y) {
  for (int at = 0; at < positions; ++at)
    for (int n = 0; n < c; ++n) y[n * positions + at] = x[at * c + n];
}

void flatten_back(int c, int positions, const float* dy, float* dx) {
  for (int at = 0; at < positions; ++at)
    for (int n = 0; n < c; ++n) dx[at * c + n] += dy[n * positions + at];
}

double exp_portable(double x) {
  if (x < -700) return 0;
  constexpr double kLog2e = 1.4426950408889634, kLn2High = 0.693147180369123816490,
                   kLn2Low = 1.90821492927058770002e-10;
  const double n = std::floor(x * kLog2e + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;  // Horner of the series up to r^13 / 13!; |r| <= ln 2 / 2
  for (int i = 13; i > 0; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace odt::worker

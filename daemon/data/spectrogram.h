#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::data {

struct SpectrogramOptions {
  std::uint32_t frames = 16, bands = 16;  // of the result: [frames][bands]
  std::uint32_t window = 256, hop = 64;   // steps; window a power of two, 16..8192
  bool mel = true;                        // spacing of the bands; else linear
  double low_hz = 60, high_hz = 0;        // high 0: half the sample rate
  double range_db = 60;                   // 1..100: below the reference; 0 of the result
  bool peak =
      true;  // reference: the loudest band of the clip (at least -100 dB + range); else 0 dB
  bool as_u8 = true;  // 0..255 over the range; else dB below the reference, -range..0
};

// Log spectrogram of a clip, the same bytes on every machine: its sine, logarithm and exponential
// are series of its own, and the file is compiled without fused multiply-add. In double, in this
// order (x in units of full_scale):
//  1. zeros behind a clip shorter than window + (frames - 1) * hop; n = 1 + (steps - window) / hop.
//  2. X = DFT of x[t * hop + i] * (0.5 - 0.5 cos(2 pi i / window)), i < window; radix 2 in place.
//  3. power p[k] = |X[k]|^2 * (4 / window)^2, k <= window / 2: a sine of full scale has 1.
//  4. band b: sum over k of p[k] * w_b(k); w_b: triangle over (e_b, e_b+1, e_b+2), top 1, at the
//     frequency k * rate / window. Edges e_0..e_bands+1 are evenly spaced from low to high, in Hz
//     or in mel = 2595 log10(1 + f / 700).
//  5. L = 10 log10(max(band, 1e-10)), then max(L, reference - range).
//  6. frame j of the result: mean of L over [j n / frames, (j + 1) n / frames), parts of a column
//     by their share.
//  7. as_u8: floor((mean - reference + range) * 255 / range + 0.5).
class Spectrogram {
 public:
  // Errors: INVALID_ARGUMENT (a field out of its range, edges above half the rate or not rising, a
  // band that no bin falls into).
  static Result<Spectrogram> create(const SpectrogramOptions& options, double sample_rate);

  const SpectrogramOptions& options() const { return options_; }
  // x: steps values, `stride` apart. Appends frames * bands values to out. Errors: INVALID_ARGUMENT
  // (above 2^22 values before step 6).
  Status append(const float* x, std::size_t steps, std::size_t stride, double full_scale,
                std::vector<float>& out);

 private:
  struct Weight {
    std::uint32_t bin, band;
    double weight;
  };
  void transform();

  SpectrogramOptions options_;
  std::vector<double> window_, cos_, sin_, re_, im_, power_, columns_;
  std::vector<Weight> weights_;
};

}  // namespace odt::data

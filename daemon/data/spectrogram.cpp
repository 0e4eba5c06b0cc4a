#include "data/spectrogram.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

namespace odt::data {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLog10Of2 = 0.30102999566398119521;
constexpr std::size_t kMaxColumnValues = std::size_t{1} << 22;
constexpr double kFloorPower = 1e-10, kFloorDb = -100;

// The C library's functions differ in the last bit between machines; these use + - * / alone.

// Sine and cosine of a for |a| <= pi / 4.
double sine(double a) {
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = 1 - a * a / ((n + 1.0) * (n + 2.0)) * sum;
  return a * sum;
}
double cosine(double a) {
  double sum = 1;
  for (int n = 20; n >= 0; n -= 2) sum = 1 - a * a / ((n + 1.0) * (n + 2.0)) * sum;
  return sum;
}

// cos(2 pi k / n), n a multiple of 8.
double cos_of_turn(std::uint32_t k, std::uint32_t n) {
  k %= n;
  if (2 * k > n) k = n - k;
  if (4 * k > n) return -cos_of_turn(n / 2 - k, n);
  if (8 * k > n) return sine(2 * kPi * (n / 4 - k) / n);
  return cosine(2 * kPi * k / n);
}
double sin_of_turn(std::uint32_t k, std::uint32_t n) { return cos_of_turn(k + 3 * (n / 4), n); }

double log10_of(double x) {
  int e = 0;
  double m = std::frexp(x, &e);  // exact
  if (m < 0.70710678118654752440) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = 1.0 / n + s2 * sum;
  return (2 * s * sum / kLn2 + e) * kLog10Of2;
}

double pow10_of(double y) {
  const double t = y / kLog10Of2;
  const double whole = std::floor(t + 0.5);
  const double a = (t - whole) * kLn2;
  double sum = 1;
  for (int n = 18; n >= 1; --n) sum = 1 + a / n * sum;
  return std::ldexp(sum, static_cast<int>(whole));
}

double mel_of(double hz) { return 2595 * log10_of(1 + hz / 700); }
double hz_of(double mel) { return 700 * (pow10_of(mel / 2595) - 1); }

Status bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("spectrogram: ", what));
}

Status check(const SpectrogramOptions& o, double rate) {
  if (o.frames < 1 || o.frames > 1024 || o.bands < 1 || o.bands > 256)
    return bad(absl::StrCat(o.frames, " frames x ", o.bands, " bands; expected 1..1024 x 1..256"));
  if (o.window < 16 || o.window > 8192 || (o.window & (o.window - 1)) != 0)
    return bad(absl::StrCat("window ", o.window, "; expected a power of two, 16..8192"));
  if (o.hop < 1 || o.hop > o.window)
    return bad(absl::StrCat("hop ", o.hop, "; expected 1..", o.window, " (the window)"));
  if (!(o.range_db >= 1 && o.range_db <= 100))
    return bad(absl::StrCat("range ", o.range_db, " dB; expected 1..100"));
  if (!(o.low_hz >= 0 && o.low_hz < o.high_hz && o.high_hz <= rate / 2))
    return bad(absl::StrCat("bands from ", o.low_hz, " to ", o.high_hz,
                            " Hz; expected 0 <= low < high <= ", rate / 2,
                            " Hz (half the sample rate)"));
  return absl::OkStatus();
}

}  // namespace

Result<Spectrogram> Spectrogram::create(const SpectrogramOptions& options, double rate) {
  if (!(rate > 0 && rate <= 1e8))
    return bad("the sample rate is not known (or above 100 MHz); give it");
  Spectrogram s;
  s.options_ = options;
  SpectrogramOptions& o = s.options_;
  if (o.high_hz == 0) o.high_hz = rate / 2;
  ODT_TRY(check(o, rate));
  for (std::uint32_t i = 0; i < o.window; ++i)
    s.window_.push_back(0.5 - 0.5 * cos_of_turn(i, o.window));
  for (std::uint32_t i = 0; i < o.window / 2; ++i) {
    s.cos_.push_back(cos_of_turn(i, o.window));
    s.sin_.push_back(sin_of_turn(i, o.window));
  }
  std::vector<double> edges;
  const double from = o.mel ? mel_of(o.low_hz) : o.low_hz;
  const double to = o.mel ? mel_of(o.high_hz) : o.high_hz;
  for (std::uint32_t i = 0; i < o.bands + 2; ++i) {
    const double at = from + (to - from) * i / (o.bands + 1.0);
    edges.push_back(o.mel ? hz_of(at) : at);
  }
  for (std::uint32_t b = 0; b < o.bands; ++b) {
    const std::size_t before = s.weights_.size();
    for (std::uint32_t k = 0; k <= o.window / 2; ++k) {
      const double f = k * rate / o.window;
      const double w = std::min((f - edges[b]) / (edges[b + 1] - edges[b]),
                                (edges[b + 2] - f) / (edges[b + 2] - edges[b + 1]));
      if (w > 0) s.weights_.push_back({k, b, w});
    }
    if (s.weights_.size() == before)
      return bad(absl::StrCat("no frequency bin falls into band ", b, " (", std::floor(edges[b]),
                              " to ", std::ceil(edges[b + 2]), " Hz; bins are ", rate / o.window,
                              " Hz apart): use fewer bands or a longer window"));
  }
  s.re_.resize(o.window);
  s.im_.resize(o.window);
  s.power_.resize(o.window / 2 + 1);
  return s;
}

// DFT in place of re_ (im_ is set to 0), decimation in time.
void Spectrogram::transform() {
  const std::uint32_t n = options_.window;
  std::fill(im_.begin(), im_.end(), 0.0);
  for (std::uint32_t i = 1, j = 0; i < n; ++i) {
    std::uint32_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(re_[i], re_[j]);
  }
  for (std::uint32_t half = 1; half < n; half *= 2) {
    const std::uint32_t step = n / (2 * half);
    for (std::uint32_t block = 0; block < n; block += 2 * half)
      for (std::uint32_t i = 0; i < half; ++i) {
        const std::uint32_t a = block + i, b = a + half;
        const double c = cos_[i * step], s = -sin_[i * step];
        const double re = re_[b] * c - im_[b] * s, im = re_[b] * s + im_[b] * c;
        re_[b] = re_[a] - re;
        im_[b] = im_[a] - im;
        re_[a] += re;
        im_[a] += im;
      }
  }
}

Status Spectrogram::append(const float* x, std::size_t steps, std::size_t stride, double full_scale,
                           std::vector<float>& out) {
  const SpectrogramOptions& o = options_;
  const std::size_t padded = std::max(steps, o.window + std::size_t{o.frames - 1} * o.hop);
  const std::size_t n = 1 + (padded - o.window) / o.hop;
  if (n * o.bands > kMaxColumnValues)
    return bad(absl::StrCat("a clip of ", steps, " steps; at most ",
                            kMaxColumnValues / o.bands * o.hop,
                            " with this hop: cut it into windows"));
  const double scale = 4.0 / o.window;
  columns_.assign(n * o.bands, 0);
  double top = kFloorDb + o.range_db;
  for (std::size_t t = 0; t < n; ++t) {
    for (std::uint32_t i = 0; i < o.window; ++i) {
      const std::size_t at = t * o.hop + i;
      re_[i] = at < steps ? x[at * stride] / full_scale * window_[i] : 0;
    }
    transform();
    for (std::uint32_t k = 0; k <= o.window / 2; ++k)
      power_[k] = (re_[k] * re_[k] + im_[k] * im_[k]) * (scale * scale);
    double* column = columns_.data() + t * o.bands;
    for (const Weight& w : weights_) column[w.band] += power_[w.bin] * w.weight;
    for (std::uint32_t b = 0; b < o.bands; ++b) {
      column[b] = 10 * log10_of(std::max(column[b], kFloorPower));
      top = std::max(top, column[b]);
    }
  }
  if (!o.peak) top = 0;
  for (double& v : columns_) v = std::clamp(v, top - o.range_db, top);
  const std::uint64_t frames = o.frames;
  for (std::uint64_t j = 0; j < frames; ++j)
    for (std::uint32_t b = 0; b < o.bands; ++b) {
      // Shares in units of 1 / frames of a column, so that they are whole.
      const std::uint64_t lo = j * n, hi = (j + 1) * n;
      double sum = 0;
      for (std::uint64_t t = lo / frames; t * frames < hi; ++t) {
        const std::uint64_t share = std::min((t + 1) * frames, hi) - std::max(t * frames, lo);
        sum += columns_[t * o.bands + b] * static_cast<double>(share);
      }
      const double below = sum / static_cast<double>(n) - top;
      const double v = o.as_u8 ? std::floor((below + o.range_db) * 255 / o.range_db + 0.5) : below;
      out.push_back(static_cast<float>(v));
    }
  return absl::OkStatus();
}

}  // namespace odt::data

// The bench's data: small grey images, and what a drifting sensor makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace odt::learn {

struct Images {
  std::uint32_t side = 0;  // pixels of a row
  int white = 0;           // largest pixel value
  std::vector<std::uint8_t> pixels, labels;

  std::uint32_t count() const { return static_cast<std::uint32_t>(labels.size()); }
  std::uint32_t len() const { return side * side; }
  // Those of these numbers.
  Images pick(const std::vector<std::uint32_t>& rows) const;
  Images slice(std::uint32_t first, std::uint32_t n) const;
};

// export_digits.py's file. Throws std::runtime_error with what is missing.
Images load_digits(const std::string& path);
// IDX files of Debian's dataset-fashion-mnist, 28x28 averaged to 14x14 half up.
Images load_fashion(const std::string& folder, bool test);

// The shifts of the bars, two that nobody tunes on (rot30, noise), and three for tuning alone.
enum class Shift { kNone, kGain, kFlip, kInversion, kRot90, kRot30, kNoise, kRot15, kDim, kBlur };
const char* shift_name(Shift shift);
// gain: 0.4 x + 60 (digits: + 4); dim: 0.25 x + 90; blur: mean of 3x3; rot30, rot15: bilinear
// around the middle, black outside; noise: normal with a standard deviation of white / 6, drawn
// from seed and the pixel's number.
Images shifted(const Images& images, Shift shift, std::uint32_t seed = 1);

// A seeded order of 0..n-1.
std::vector<std::uint32_t> shuffled(std::uint32_t n, std::uint32_t seed);

// What a network reads: int8, and the same values as real numbers by 2^-7.
struct Set {
  std::uint32_t count = 0, len = 0;
  std::vector<std::int8_t> x;
  std::vector<std::int8_t> y;
  std::vector<std::uint8_t> blob() const;  // ODTS
};
// Pixels spread over int8: digits (x - 8) * 15.875, bytes x - 128.
Set to_set(const Images& images);

}  // namespace odt::learn

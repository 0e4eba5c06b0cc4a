#include "data.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>

#include "data/sampling.h"
#include "image_builder.h"

namespace odt::learn {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::vector<std::uint8_t> read_gz(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr)
    throw std::runtime_error(path + " is not here: apt install dataset-fashion-mnist");
  std::vector<std::uint8_t> out;
  std::vector<std::uint8_t> part(1 << 20);
  int n;
  while ((n = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0)
    out.insert(out.end(), part.begin(), part.begin() + n);
  gzclose(file);
  if (n < 0 || out.size() < 16) throw std::runtime_error(path + " is damaged");
  return out;
}

// Pixel (x, y) of an image, black outside.
double pixel(const std::uint8_t* p, int side, int x, int y) {
  return x < 0 || y < 0 || x >= side || y >= side ? 0 : p[y * side + x];
}

double bilinear(const std::uint8_t* p, int side, double x, double y) {
  const int x0 = static_cast<int>(std::floor(x)), y0 = static_cast<int>(std::floor(y));
  const double fx = x - x0, fy = y - y0;
  return (pixel(p, side, x0, y0) * (1 - fx) + pixel(p, side, x0 + 1, y0) * fx) * (1 - fy) +
         (pixel(p, side, x0, y0 + 1) * (1 - fx) + pixel(p, side, x0 + 1, y0 + 1) * fx) * fy;
}

double moved(const std::uint8_t* p, int side, int white, Shift shift, int x, int y) {
  const double v = p[y * side + x];
  switch (shift) {
    case Shift::kGain:
      return 0.4 * v + (white == 255 ? 60 : 4);
    case Shift::kFlip:
      return p[y * side + side - 1 - x];
    case Shift::kInversion:
      return white - v;
    case Shift::kRot90:
      return p[(side - 1 - x) * side + y];
    case Shift::kDim:
      return 0.25 * v + 90 * white / 255.0;
    case Shift::kBlur: {
      double sum = 0;
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j) sum += pixel(p, side, x + j, y + i);
      return sum / 9;
    }
    case Shift::kRot30:
    case Shift::kRot15: {
      const double angle = shift == Shift::kRot30 ? kPi / 6 : kPi / 12;
      const double c = std::cos(angle), s = std::sin(angle), m = (side - 1) / 2.0;
      return bilinear(p, side, m + c * (x - m) - s * (y - m), m + s * (x - m) + c * (y - m));
    }
    default:
      return v;
  }
}

}  // namespace

Images Images::pick(const std::vector<std::uint32_t>& rows) const {
  Images out;
  out.side = side;
  out.white = white;
  for (const auto row : rows) {
    out.labels.push_back(labels[row]);
    const auto from = pixels.begin() + static_cast<std::ptrdiff_t>(row) * len();
    out.pixels.insert(out.pixels.end(), from, from + len());
  }
  return out;
}

Images Images::slice(std::uint32_t first, std::uint32_t n) const {
  std::vector<std::uint32_t> rows(n);
  std::iota(rows.begin(), rows.end(), first);
  return pick(rows);
}

Images load_digits(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.empty() || bytes.size() % 65 != 0)
    throw std::runtime_error(path + " is no file of export_digits.py");
  Images out;
  out.side = 8;
  out.white = 16;
  for (std::size_t i = 0; i < bytes.size(); i += 65) {
    out.pixels.insert(out.pixels.end(), bytes.begin() + i, bytes.begin() + i + 64);
    out.labels.push_back(static_cast<std::uint8_t>(bytes[i + 64]));
  }
  return out;
}

Images load_fashion(const std::string& folder, bool test) {
  const std::string stem = folder + (test ? "/t10k-" : "/train-");
  const auto images = read_gz(stem + "images-idx3-ubyte.gz");
  const auto labels = read_gz(stem + "labels-idx1-ubyte.gz");
  const std::size_t n = labels.size() - 8;
  if (images.size() != 16 + n * 784) throw std::runtime_error(stem + ": images and labels differ");
  Images out;
  out.side = 14;
  out.white = 255;
  out.labels.assign(labels.begin() + 8, labels.end());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t y = 0; y < 14; ++y)
      for (std::size_t x = 0; x < 14; ++x) {
        const std::uint8_t* p = images.data() + 16 + i * 784 + y * 56 + x * 2;
        out.pixels.push_back(static_cast<std::uint8_t>((p[0] + p[1] + p[28] + p[29] + 2) / 4));
      }
  return out;
}

const char* shift_name(Shift shift) {
  static constexpr const char* kNames[] = {"none",  "gain",  "flip",  "inversion", "rot90",
                                           "rot30", "noise", "rot15", "dim",       "blur"};
  return kNames[static_cast<int>(shift)];
}

Images shifted(const Images& images, Shift shift, std::uint32_t seed) {
  if (shift == Shift::kNone) return images;
  Images out = images;
  const int side = static_cast<int>(images.side);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, images.white / 6.0);
  for (std::uint32_t i = 0; i < images.count(); ++i) {
    const std::size_t at = std::size_t{i} * images.len();
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        double v = moved(images.pixels.data() + at, side, images.white, shift, x, y);
        if (shift == Shift::kNoise) v += noise(random);
        out.pixels[at + static_cast<std::size_t>(y * side + x)] = static_cast<std::uint8_t>(
            std::clamp(std::floor(v + 0.5), 0.0, static_cast<double>(images.white)));
      }
  }
  return out;
}

std::vector<std::uint32_t> shuffled(std::uint32_t n, std::uint32_t seed) {
  return data::shuffled(n, seed);
}

Set to_set(const Images& images) {
  Set out;
  out.count = images.count();
  out.len = images.len();
  for (const auto v : images.pixels)
    out.x.push_back(
        static_cast<std::int8_t>(images.white == 255 ? v - 128 : std::lround((v - 8) * 15.875)));
  out.y.assign(images.labels.begin(), images.labels.end());
  return out;
}

std::vector<std::uint8_t> Set::blob() const {
  const std::vector<std::uint8_t> bytes(x.begin(), x.end());
  return testing::build_samples(testing::DType::kS8, len, y, bytes);
}

}  // namespace odt::learn

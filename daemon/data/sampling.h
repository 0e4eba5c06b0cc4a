#pragma once

#include <cstdint>
#include <vector>

namespace odt::data {

// xorshift32 of rule 1.8: seed 0 becomes 0x9E3779B9, the first 4 outputs are discarded; the output
// is the state after the step.
class Xorshift32 {
 public:
  explicit Xorshift32(std::uint32_t seed) : x_(seed == 0 ? 0x9E3779B9u : seed) {
    for (int i = 0; i < 4; ++i) next();
  }
  std::uint32_t next() {
    x_ ^= x_ << 13;
    x_ ^= x_ >> 17;
    x_ ^= x_ << 5;
    return x_;
  }
  // Uniform below n (n > 0).
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
  }

 private:
  std::uint32_t x_;
};

// Seeded Fisher-Yates over 0..n-1; the same seed and n give the same order on every machine.
inline std::vector<std::uint32_t> shuffled(std::uint32_t n, std::uint32_t seed) {
  std::vector<std::uint32_t> p(n);
  for (std::uint32_t i = 0; i < n; ++i) p[i] = i;
  Xorshift32 random(seed * 0x9E3779B1u + 0x7F4A7C15u);
  for (std::uint32_t i = n; i > 1; --i) std::swap(p[i - 1], p[random.below(i)]);
  return p;
}

}  // namespace odt::data

#pragma once

#include <cstdint>
#include <vector>

// Order of training samples, rule 1.8: seeded, afresh every epoch, the same on board and host.
namespace odt::data {

class Xorshift32 {
 public:
  explicit Xorshift32(std::uint32_t state) : state_(state) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

 private:
  std::uint32_t state_;
};

// The generator of epoch `epoch` (from 0), its first outputs already discarded.
Xorshift32 epoch_generator(std::uint32_t order_seed, std::uint32_t epoch);
// Permutation of 0..n-1 for that epoch; n at most 65535.
std::vector<std::uint32_t> epoch_order(std::uint32_t order_seed, std::uint32_t epoch,
                                       std::uint32_t n);
// Steps of one epoch; the last, partial batch counts. batch >= 1.
constexpr std::uint32_t steps_per_epoch(std::uint32_t samples, std::uint32_t batch) {
  return samples / batch + (samples % batch != 0 ? 1 : 0);
}

}  // namespace odt::data

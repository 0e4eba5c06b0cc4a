#pragma once

#include <cstdint>
#include <vector>

// Order of training samples, rule 1.8: seeded, afresh every epoch, the same on board and host.
namespace odt::data {

// Permutation of 0..n-1 for epoch `epoch` (from 0); n at most 65535.
std::vector<std::uint32_t> epoch_order(std::uint32_t order_seed, std::uint32_t epoch,
                                       std::uint32_t n);
// Steps of one epoch; the last, partial batch counts. batch >= 1.
constexpr std::uint32_t steps_per_epoch(std::uint32_t samples, std::uint32_t batch) {
  return samples / batch + (samples % batch != 0 ? 1 : 0);
}
// Samples in step `step` (from 0, counted over all epochs): the last one of an epoch may be
// partial.
constexpr std::uint32_t samples_of_step(std::uint32_t step, std::uint32_t samples,
                                        std::uint32_t batch) {
  const std::uint32_t first = step % steps_per_epoch(samples, batch) * batch;
  return samples - first < batch ? samples - first : batch;
}

}  // namespace odt::data

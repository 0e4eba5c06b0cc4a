#include "data/order.h"

#include <numeric>
#include <utility>

namespace odt::data {

Xorshift32 epoch_generator(std::uint32_t order_seed, std::uint32_t epoch) {
  std::uint32_t state = order_seed ^ ((epoch + 1) * 0x9E3779B1u);
  if (state == 0) state = 0x9E3779B9u;
  Xorshift32 random(state);
  for (int i = 0; i < 4; ++i) random.next();
  return random;
}

std::vector<std::uint32_t> epoch_order(std::uint32_t order_seed, std::uint32_t epoch,
                                       std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Xorshift32 random = epoch_generator(order_seed, epoch);
  for (std::uint32_t i = n; i-- > 1;) {
    const auto j = static_cast<std::uint32_t>((std::uint64_t{random.next()} * (i + 1)) >> 32);
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace odt::data

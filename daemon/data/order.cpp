#include "data/order.h"

#include <numeric>
#include <utility>

#include "data/sampling.h"

namespace odt::data {

std::vector<std::uint32_t> epoch_order(std::uint32_t order_seed, std::uint32_t epoch,
                                       std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Xorshift32 random(order_seed ^ ((epoch + 1) * 0x9E3779B1u));
  for (std::uint32_t i = n; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

}  // namespace odt::data

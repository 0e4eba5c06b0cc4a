#include "session/backoff.h"

#include <algorithm>
#include <memory>
#include <random>

namespace odt::session {

Random system_random() {
  std::random_device device;
  const std::uint64_t seed = std::uint64_t{device()} << 32 | device();
  return [engine = std::make_shared<std::mt19937_64>(seed)] { return (*engine)(); };
}

Backoff::Backoff(std::chrono::milliseconds min, std::chrono::milliseconds max, Random random)
    : min_(min), max_(max), current_(min), random_(std::move(random)) {}

std::chrono::milliseconds Backoff::next() {
  const std::int64_t base = current_.count();
  current_ = std::min(current_ * 2, max_);
  const std::int64_t spread = base / 2;
  const std::int64_t jitter =
      spread == 0 ? 0 : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(spread));
  return std::min(std::chrono::milliseconds(base - spread / 2 + jitter), max_);
}

}  // namespace odt::session

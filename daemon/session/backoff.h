#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace odt::session {

using Random = std::function<std::uint64_t()>;

// A generator seeded by the system.
Random system_random();

// Waits that double from `min` to `max`, each jittered by a quarter either way, so that a fleet
// does not come back in step.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds min, std::chrono::milliseconds max, Random random);
  std::chrono::milliseconds next();  // at most max
  void reset() { current_ = min_; }

 private:
  std::chrono::milliseconds min_, max_, current_;
  Random random_;
};

}  // namespace odt::session

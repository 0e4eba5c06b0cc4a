#pragma once

#include <chrono>
#include <cstdint>

namespace odt::session {

// Lets `burst` lines through at once and `per_second` after that. Pure.
class LogLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit LogLimiter(Time now, std::uint32_t burst = 100, std::uint32_t per_second = 20)
      : burst_(burst), per_second_(per_second), tokens_(burst), last_(now) {}

  bool allow(Time now);
  // Lines refused since the last call, once lines pass again.
  std::uint32_t take_suppressed();

 private:
  double burst_, per_second_, tokens_;
  Time last_;
  std::uint32_t suppressed_ = 0;
};

}  // namespace odt::session

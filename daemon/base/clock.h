#pragma once

#include <chrono>
#include <cstdint>

namespace odt {

// Wall time for columns, steady time for every timer. Injected, so that tests own time.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_us() const = 0;  // microseconds UTC
  virtual std::chrono::steady_clock::time_point steady_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::int64_t now_us() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace odt

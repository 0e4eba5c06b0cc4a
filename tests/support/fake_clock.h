#pragma once

#include "base/clock.h"

namespace odt::test {

// Time that moves only when told.
class FakeClock final : public Clock {
 public:
  std::int64_t now_us() const override { return wall_us_; }
  std::chrono::steady_clock::time_point steady_now() const override { return steady_; }
  void advance(std::chrono::microseconds by) {
    wall_us_ += by.count();
    steady_ += by;
  }

 private:
  std::int64_t wall_us_ = 1'700'000'000'000'000;
  std::chrono::steady_clock::time_point steady_{std::chrono::hours(1)};
};

}  // namespace odt::test

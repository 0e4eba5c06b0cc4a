#pragma once

#include <cstdint>
#include <functional>
#include <random>

#include "base/clock.h"

namespace odt::test {

// Time that belongs to the test, for the daemon's own code as it is: while one exists, its thread
// gets virtual time from the C library (steady and system clock), a blocking epoll_wait() of that
// thread passes time instead of waiting, and std::random_device and RAND_bytes() are seeded. Other
// threads (the stores') keep the real ones. One at a time.
class VirtualTime final : public Clock {
 public:
  explicit VirtualTime(std::uint64_t seed);
  ~VirtualTime() override;
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  // What happens outside of the daemon: passes time with set() up to `until` (microseconds) at
  // most, and comes back earlier where it has made something ready for the daemon.
  std::function<void(std::int64_t until)> world;
  // Waits, really, until other threads owe the daemon nothing; before time passes.
  std::function<void()> settle;

  std::int64_t elapsed_us() const { return now_us_; }  // since it was made
  void set(std::int64_t us) { now_us_ = us; }
  std::uint64_t random() { return random_(); }

  std::int64_t now_us() const override;
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::now();
  }
  std::chrono::steady_clock::time_point at(std::int64_t us) const;

 private:
  std::int64_t now_us_ = 0;
  std::mt19937_64 random_;
};

}  // namespace odt::test

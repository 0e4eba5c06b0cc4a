#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace odt::api {

// So many calls a second of one address, with a burst. Thread-safe; remembers at most 4096
// addresses: beyond that those that have rested longest are forgotten, and the rest share one.
class RateCap {
 public:
  using Time = std::chrono::steady_clock::time_point;
  RateCap(double per_second, double burst) : rate_(per_second), burst_(burst) {}

  bool take(const std::string& address, Time now) {
    const std::lock_guard lock(mutex_);
    if (buckets_.size() >= kMost && !buckets_.contains(address)) forget_rested(now);
    Bucket& bucket =
        buckets_[buckets_.size() >= kMost && !buckets_.contains(address) ? kShared : address];
    if (bucket.since == Time{}) bucket = {burst_, now};
    const std::chrono::duration<double> rested = now - bucket.since;
    bucket.left = std::min(burst_, bucket.left + rested.count() * rate_);
    bucket.since = now;
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;
  static constexpr char kShared[] = "";
  struct Bucket {
    double left = 0;
    Time since{};
  };
  void forget_rested(Time now) {
    std::erase_if(buckets_, [&](const auto& item) {
      const std::chrono::duration<double> rested = now - item.second.since;
      return rested.count() * rate_ >= burst_;
    });
  }

  const double rate_, burst_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace odt::api

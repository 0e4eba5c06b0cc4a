#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "fleet/async.h"
#include "model/board.h"

namespace odt::training {

// A board to oneself, for a time that progress moves on. A holder that does not renew in time can
// be put out by expire(): its guard is void then, and the next one gets the board. Links thread.
class BoardLease {
 public:
  BoardLease(asio::io_context& io, const Clock& clock, std::chrono::milliseconds time)
      : signal_(io), clock_(clock), time_(time) {}

  class Guard {
   public:
    Guard() = default;
    Guard(BoardLease* lease, std::uint64_t term) : lease_(lease), term_(term) {}
    Guard(Guard&& other) noexcept
        : lease_(std::exchange(other.lease_, nullptr)), term_(other.term_) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(lease_, other.lease_);
      std::swap(term_, other.term_);
      return *this;
    }
    ~Guard() {
      if (valid()) lease_->release();
    }
    bool valid() const { return lease_ != nullptr && lease_->locked_ && lease_->term_ == term_; }

   private:
    BoardLease* lease_ = nullptr;
    std::uint64_t term_ = 0;
  };

  bool locked() const { return locked_; }
  const model::Lease& holder() const { return lease_; }  // what is empty: nobody

  // Waits for the board. holder: run or job, zero: neither.
  asio::awaitable<Guard> lock(Uuid holder, std::string what, std::string actor) {
    while (locked_) co_await signal_.wait();
    locked_ = true;
    ++term_;
    lease_ = {holder, std::move(what), std::move(actor), clock_.now_us(), 0};
    renew();
    co_return Guard(this, term_);
  }
  // Progress. more: beyond the usual time, for what is known to take long.
  void renew(std::chrono::microseconds more = std::chrono::microseconds{0}) {
    if (!locked_) return;
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(time_) + more;
    lease_.expire_us = clock_.now_us() + time.count();
    expires_ = clock_.steady_now() + time;
  }
  bool expired() const { return locked_ && clock_.steady_now() > expires_; }
  // Puts the holder out. The caller has seen to it that it can do nothing more to the board.
  void expire() {
    if (locked_) release();
  }

 private:
  void release() {
    locked_ = false;
    ++term_;
    lease_ = {};
    signal_.notify();
  }
  fleet::Signal signal_;
  const Clock& clock_;
  std::chrono::milliseconds time_;
  bool locked_ = false;
  std::uint64_t term_ = 0;
  model::Lease lease_;
  std::chrono::steady_clock::time_point expires_;
};

}  // namespace odt::training

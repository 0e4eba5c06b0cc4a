#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/asio.h"

// What Asio 1.74 has not: an event and a lock for coroutines of one thread.
namespace odt::session {

using SteadyTime = std::chrono::steady_clock::time_point;

// Wakes its one waiter. A notify() without waiter is lost: wait only for a condition that was
// looked at just before, and look again after.
class Signal {
 public:
  explicit Signal(asio::io_context& io) : timer_(io) {}

  void notify() { timer_.cancel(); }

  asio::awaitable<void> wait_until(SteadyTime until) {
    timer_.expires_at(until);
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  asio::awaitable<void> wait() { return wait_until(SteadyTime::max()); }

 private:
  asio::steady_timer timer_;
};

// First come, first served. Waiters beyond kMaxWaiting are refused, as are all after close().
class FifoLock {
 public:
  static constexpr std::size_t kMaxWaiting = 64;

  class Guard {
   public:
    explicit Guard(FifoLock* lock) : lock_(lock) {}
    Guard(Guard&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(lock_, other.lock_);
      return *this;
    }
    ~Guard() {
      if (lock_ != nullptr) lock_->unlock();
    }

   private:
    FifoLock* lock_;
  };

  explicit FifoLock(asio::io_context& io) : io_(io) {}

  // Nothing: closed, or too many wait.
  asio::awaitable<std::optional<Guard>> lock() {
    if (closed_ || waiting_.size() >= kMaxWaiting) co_return std::nullopt;
    if (!locked_) {
      locked_ = true;
      co_return Guard(this);
    }
    auto waiter = std::make_shared<Waiter>(io_);
    waiting_.push_back(waiter);
    while (!waiter->granted && !closed_) co_await waiter->signal.wait();
    if (!waiter->granted) co_return std::nullopt;
    co_return Guard(this);
  }

  void close() {
    closed_ = true;
    for (const auto& waiter : waiting_) waiter->signal.notify();
    waiting_.clear();
  }

 private:
  struct Waiter {
    explicit Waiter(asio::io_context& io) : signal(io) {}
    Signal signal;
    bool granted = false;
  };

  void unlock() {
    if (waiting_.empty()) {
      locked_ = false;
      return;
    }
    const auto next = waiting_.front();
    waiting_.pop_front();
    next->granted = true;
    next->signal.notify();
  }

  asio::io_context& io_;
  std::deque<std::shared_ptr<Waiter>> waiting_;
  bool locked_ = false;
  bool closed_ = false;
};

}  // namespace odt::session

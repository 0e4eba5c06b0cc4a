#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/asio.h"

// What Asio 1.74 has not: an event and a lock for coroutines of one thread.
namespace odt::session {

using SteadyTime = std::chrono::steady_clock::time_point;

// An event without memory: wakes whoever waits now. Wait only for a condition that was looked at
// just before, and look again after.
class Signal {
 public:
  explicit Signal(asio::io_context& io) : io_(io) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void notify() {
    // A waiter that wakes may wait again at once: it belongs to the next notify.
    auto waiters = std::move(waiters_);
    waiters_.clear();
    for (auto& timer : waiters) timer->cancel();
  }
  // Each waiter has a timer of its own: setting the time of one must not wake another.
  asio::awaitable<void> wait_until(SteadyTime until) {
    auto timer = std::make_shared<asio::steady_timer>(io_, until);
    std::erase_if(waiters_, [](const auto& w) { return w.use_count() == 1; });
    waiters_.push_back(timer);
    boost::system::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  asio::awaitable<void> wait_for(std::chrono::steady_clock::duration time) {
    return wait_until(std::chrono::steady_clock::now() + time);
  }
  asio::awaitable<void> wait() { return wait_until(SteadyTime::max()); }

 private:
  asio::io_context& io_;
  std::vector<std::shared_ptr<asio::steady_timer>> waiters_;
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

#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/asio.h"

// Waiting on one thread: what Asio 1.74 lacks. All calls on the thread that runs the io_context.
namespace odt::fleet {

// An event without memory: wakes whoever waits now. Check the condition before every wait.
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
  asio::awaitable<void> wait_until(std::chrono::steady_clock::time_point deadline) {
    auto timer = std::make_shared<asio::steady_timer>(io_, deadline);
    std::erase_if(waiters_, [](const auto& w) { return w.use_count() == 1; });
    waiters_.push_back(timer);
    boost::system::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  asio::awaitable<void> wait_for(std::chrono::steady_clock::duration time) {
    return wait_until(std::chrono::steady_clock::now() + time);
  }
  asio::awaitable<void> wait() { return wait_until(std::chrono::steady_clock::time_point::max()); }

 private:
  asio::io_context& io_;
  std::vector<std::shared_ptr<asio::steady_timer>> waiters_;
};

// Mutual exclusion between coroutines of one thread; fair enough: waiters retry in order.
class AsyncMutex {
 public:
  explicit AsyncMutex(asio::io_context& io) : signal_(io) {}

  class Guard {
   public:
    Guard() = default;
    explicit Guard(AsyncMutex* mutex) : mutex_(mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(mutex_, other.mutex_);
      return *this;
    }
    ~Guard() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    AsyncMutex* mutex_ = nullptr;
  };

  bool locked() const { return locked_; }
  asio::awaitable<Guard> lock() {
    while (locked_) co_await signal_.wait();
    locked_ = true;
    co_return Guard(this);
  }

 private:
  void unlock() {
    locked_ = false;
    signal_.notify();
  }
  bool locked_ = false;
  Signal signal_;
};

// Completion handler for co_spawn: a coroutine's exception must not end the daemon silently.
struct Detached {
  void operator()(std::exception_ptr error) const {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace odt::fleet

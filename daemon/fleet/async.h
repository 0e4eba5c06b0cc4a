#pragma once

#include <exception>
#include <utility>

#include "session/async.h"

// Waiting on one thread: what Asio 1.74 lacks. All calls on the thread that runs the io_context.
namespace odt::fleet {

using session::Signal;

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

#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "base/asio.h"
#include "base/result.h"

namespace odt::test {

// Runs the io context until `task` has ended, and returns what it returned. A task that is not done
// within `limit` fails the test and yields a default value.
template <typename T>
T run(asio::io_context& io, asio::awaitable<T> task,
      std::chrono::seconds limit = std::chrono::seconds(30)) {
  std::optional<T> out;
  std::exception_ptr failed;
  bool done = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr error, T value) {
    failed = error;
    out = std::move(value);
    done = true;
  });
  const auto until = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!done && std::chrono::steady_clock::now() < until) {
    io.run_one_for(std::chrono::milliseconds(50));
    if (io.stopped()) io.restart();
  }
  if (!done) {
    ADD_FAILURE() << "not done within " << limit.count() << " s";
    return T{};
  }
  if (failed) std::rethrow_exception(failed);
  return std::move(*out);
}

inline void run(asio::io_context& io, asio::awaitable<void> task,
                std::chrono::seconds limit = std::chrono::seconds(30)) {
  struct Wrap {
    static asio::awaitable<bool> wrap(asio::awaitable<void> inner) {
      co_await std::move(inner);
      co_return true;
    }
  };
  run(io, Wrap::wrap(std::move(task)), limit);
}

// Runs the io context until `condition` holds; false after `limit`.
template <typename Condition>
bool run_until(asio::io_context& io, Condition condition,
               std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  io.restart();
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    io.run_one_for(std::chrono::milliseconds(5));
    if (io.stopped()) io.restart();
  }
  return true;
}

// Runs the io context for a time.
inline void run_for(asio::io_context& io, std::chrono::milliseconds time) {
  run_until(
      io, [] { return false; }, time);
}

}  // namespace odt::test

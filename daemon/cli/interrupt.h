#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace odt::cli {

// Ctrl-C (SIGINT) and SIGTERM as a flag, for commands that wait. A second one ends the process with
// 130. start() before any other thread is made.
class Interrupt {
 public:
  Interrupt() = default;
  ~Interrupt();
  void start();
  void raise();  // as if the signal had come
  bool seen() const { return seen_; }
  // Sleeps; true at once where it has been or is interrupted.
  bool wait(std::chrono::milliseconds time);
  // Called on the signal's thread; an empty function takes it away again.
  void on_interrupt(std::function<void()> fn);

 private:
  std::atomic<bool> seen_{false}, ending_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> fn_;
  std::thread thread_;
};

}  // namespace odt::cli

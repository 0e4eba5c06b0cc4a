#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "model/lab.h"

namespace odt::lab {

// Runs power commands, each on a thread of its own: never on one that must not block.
class PowerRunner {
 public:
  PowerRunner() = default;
  ~PowerRunner() { stop(); }

  // done: on that thread; profile and automatic are left for the caller. A command that hangs is
  // killed at the timeout, with everything that it has started.
  void run(std::vector<std::string> argv, std::uint32_t timeout_s,
           std::function<void(model::PowerResult)> done);
  // Kills what is under way; every `done` has been called then. Nothing begins afterwards.
  void stop();

 private:
  struct Work {
    std::thread thread;
    std::atomic<bool> over{false};
  };
  std::mutex mutex_;
  std::atomic<bool> stopping_{false};
  std::list<Work> works_;
};

// On the calling thread, to its end or until `stop`.
model::PowerResult run_power_command(const std::vector<std::string>& argv, std::uint32_t timeout_s,
                                     const std::atomic<bool>& stop);

}  // namespace odt::lab

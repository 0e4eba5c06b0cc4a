#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::jobs {

struct ChildSpec {
  std::string program, argument;
  std::uint64_t memory_limit_bytes = 0;  // RLIMIT_AS; 0: none
  std::chrono::seconds deadline{900};    // wall time; CPU time is limited to the same
  std::vector<std::string> more{};       // arguments after `argument`
};

struct ChildEnd {
  enum class Kind : std::uint8_t { kExit, kSignal, kDeadline, kStopped };
  Kind kind = Kind::kExit;
  int code = 0;       // exit code or signal
  std::string error;  // last lines of standard error, printable
};

// Runs a program to its end. It dies with the calling thread (PR_SET_PDEATHSIG), inherits only the
// three standard descriptors, and is killed at the deadline or when `stop` becomes true (looked at
// every 50 ms). What it has started and left behind does not keep the call waiting: once it has
// ended, or was killed, only what has come is read. on_line: each line of its standard output (at
// most 64 KB), on this thread. Errors: INTERNAL (no pipe, no process). A program that cannot be
// started ends with exit code 127.
Result<ChildEnd> run_child(const ChildSpec& spec, const std::atomic<bool>& stop,
                           const std::function<void(const std::string&)>& on_line);

}  // namespace odt::jobs

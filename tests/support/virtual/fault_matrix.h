#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/virtual/virtual_daemon.h"

namespace odt::test {

// One operation of the daemon on one board while one kind of fault happens, in virtual time, and
// what became of it. The same seed gives the same faults.
enum class Fault : std::uint8_t {
  kNone,
  kDrop,
  kFlip,
  kBurst,
  kTruncate,
  kDuplicate,
  kGarbage,
  kDelay,
  kStall,
  kCut,
  kReset,
  kPowerCycle,
  kDaemonKill
};
enum class Operation : std::uint8_t { kTrain, kPull, kPush, kCommit };

const std::vector<std::pair<Fault, const char*>>& faults();  // without kNone
const std::vector<std::pair<Operation, const char*>>& operations();

struct Outcome {
  std::vector<std::string> wrong;  // states or contents that differ from the undisturbed run's
  std::vector<std::string> lost;   // acknowledged, and not there
  std::string hang;                // not empty: what did not end
  std::uint64_t injected = 0;      // damaged frames, or events such as resets
  double seconds = 0;              // virtual
  bool sound() const { return wrong.empty() && lost.empty() && hang.empty(); }
  std::string text() const;
};

class FaultMatrix {
 public:
  explicit FaultMatrix(const std::string& golden_dir);
  Outcome run(Fault fault, Operation operation, std::uint64_t seed);

 private:
  struct Case;
  Outcome play(Fault fault, Operation operation, std::uint64_t seed, std::int64_t duration_us,
               std::int64_t* took_us);
  void learn_reference();

  std::unique_ptr<VirtualData> empty_, trained_;
  Hash state_, weights_;  // of the undisturbed run
  Hash older_;            // weights of a shorter one
  std::map<std::pair<Operation, std::uint64_t>, std::int64_t> durations_;
};

}  // namespace odt::test

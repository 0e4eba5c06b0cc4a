#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/access.h"
#include "store/store_thread.h"

namespace odt::auth {

struct AuditOptions {
  std::uint64_t most = 200'000;  // entries that are kept
  std::uint32_t days = 400;
};

// What was done, and what was refused, in control.db. There is no way to change or remove an entry
// but retention.
//
// Concurrency: thread-safe. A flood of refusals from an address becomes few entries: the first 5 in
// 10 s as they are, the others as one with their number.
class AuditLog {
 public:
  AuditLog(store::ControlThread& control, const Clock& clock, AuditOptions options);

  // `done` on the store thread when it is durable, or is not (the disk is full).
  void append(model::AuditEntry entry, std::function<void(const Status&)> done);
  // Adds it to a transaction that is made anyway.
  void add_to(store::Batch& batch, model::AuditEntry entry);
  // A call that was not let in. True: it is worth a line in the log too.
  bool refused(model::AuditEntry entry);
  // Every few seconds: writes what refused() has counted, and does the retention.
  void tick();

 private:
  struct Flood {
    std::int64_t since_us = 0;
    std::uint32_t seen = 0;
    std::uint32_t held = 0;
    model::AuditEntry last;
  };

  store::ControlThread& control_;
  const Clock& clock_;
  const AuditOptions options_;
  std::mutex mutex_;
  std::map<std::string, Flood> floods_;  // by address
  std::int64_t pruned_us_ = 0;
};

}  // namespace odt::auth

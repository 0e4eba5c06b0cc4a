#pragma once

#include <memory>
#include <string>

#include "store/store_thread.h"

// Keeps the data directory able to hold what matters: a ballast that is released when the disk is
// full, old telemetry that makes room for new, trash that goes after its time.
namespace odt::store {

enum class DiskState : std::uint8_t { kOk = 1, kLow = 2, kFull = 3 };
struct DiskReport {
  DiskState state = DiskState::kOk;
  std::string text;  // not OK: what it means, and what to do
  std::uint64_t ballast_bytes = 0;
  std::uint64_t frames_refused = 0;  // telemetry that did not fit, since start
};

struct DiskOptions {
  std::uint64_t ballast_bytes = 64 << 20;
  std::chrono::milliseconds period{2000};
  std::int64_t trash_kept_us = kTrashKeptUs;
};

// Concurrency: a thread of its own, which uses the stores through their threads.
class DiskGuard {
 public:
  DiskGuard(std::string data_dir, ControlThread& control, TelemetryThread& telemetry,
            BlobStore& blobs, const Clock& clock, DiskOptions options = {});
  ~DiskGuard();
  void start();
  void stop();                // before the stores stop; idempotent
  DiskReport report() const;  // any thread
  void check();               // what the thread does every period; for tests

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::store

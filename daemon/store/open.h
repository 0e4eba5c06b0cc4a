#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

// The data directory: control.db, telemetry.db, blobs/, lock.
namespace odt::store {

// Holds "<data_dir>/lock" (flock) until destroyed; a killed process loses it by itself.
class DataDirLock {
 public:
  // FAILED_PRECONDITION: another process has it (its pid is named).
  static Result<std::unique_ptr<DataDirLock>> take(const std::string& data_dir);
  ~DataDirLock();
  DataDirLock(const DataDirLock&) = delete;
  DataDirLock& operator=(const DataDirLock&) = delete;

 private:
  explicit DataDirLock(int fd) : fd_(fd) {}
  int fd_;
};

struct StoreOptions {
  // Quota of telemetry.db; 0: min(20 GB, 20 % of the free space now).
  std::uint64_t telemetry_quota_bytes = 0;
};

// Destroy in reverse order of the members (as the language does): the lock goes last.
struct OpenedStores {
  std::unique_ptr<DataDirLock> lock;
  std::unique_ptr<BlobStore> blobs;
  std::unique_ptr<TelemetryStore> telemetry;
  std::unique_ptr<ControlStore> control;
  Identity identity;
  std::vector<model::Warning> warnings;  // for AppendWarning and the log
};

// A database that cannot be read keeps its bytes as "<path>.damaged-<time>", its -wal and -shm with
// it. FAILED_PRECONDITION: cannot be renamed.
Status set_aside(const std::string& path, std::int64_t time_us);

// Makes the directory if missing. A telemetry.db that is damaged is set aside
// ("telemetry.db.damaged-<time>") and made anew; one that cannot be used at all is replaced by
// memory; both leave a warning. Errors: FAILED_PRECONDITION (locked by another odtd, newer
// control.db, no access), DATA_LOSS (control.db damaged), RESOURCE_EXHAUSTED.
Result<OpenedStores> open_stores(const std::string& data_dir, const Clock& clock,
                                 const StoreOptions& options = {});

}  // namespace odt::store

#include "store/open.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/backup.h"
#include "store/fs_blob_store.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

model::Warning warning(const char* code, std::string text, const char* remedy) {
  model::Warning out;
  out.reason = {code, std::move(text), remedy};
  return out;
}

std::uint64_t default_quota(const std::string& data_dir) {
  constexpr std::uint64_t kMost = 20ULL * 1000 * 1000 * 1000;
  std::error_code ec;
  const fs::space_info space = fs::space(data_dir, ec);
  return ec ? kMost : std::min<std::uint64_t>(kMost, space.available / 5);
}

std::unique_ptr<TelemetryStore> open_telemetry(const std::string& path, const Clock& clock,
                                               std::uint64_t quota,
                                               std::vector<model::Warning>& warnings) {
  auto store = SqliteTelemetryStore::open(path, quota);
  if (absl::IsDataLoss(store.status())) {
    const std::string damage(store.status().message());
    Status aside = set_aside(path, clock.now_us());
    store = aside.ok() ? SqliteTelemetryStore::open(path, quota) : aside;
    if (store.ok())
      warnings.push_back(warning("TELEMETRY_DAMAGED", damage,
                                 "it was set aside and begun anew; runs and weights are not hurt"));
  }
  if (store.ok()) return std::move(*store);
  warnings.push_back(warning("TELEMETRY_IN_MEMORY", std::string(store.status().message()),
                             "telemetry is lost at the end of odtd; repair the file and restart"));
  return std::make_unique<MemoryTelemetryStore>();
}

// SQLite takes an empty file for a new store: right on the first start, wrong where a copy or a
// full disk has cut an old one to nothing.
Status refuse_emptied(const std::string& data_dir) {
  std::error_code ec;
  const std::string control = data_dir + "/control.db";
  if (!fs::exists(control, ec) || fs::file_size(control, ec) != 0) return {};
  const std::uintmax_t wal = fs::file_size(control + "-wal", ec);
  if (!ec && wal > 0) return {};
  const std::string telemetry = data_dir + "/telemetry.db";
  bool used = fs::is_regular_file(telemetry, ec) && fs::file_size(telemetry, ec) > 0;
  for (const auto& entry : fs::recursive_directory_iterator(data_dir + "/blobs", ec))
    used = used || entry.is_regular_file(ec);
  if (!used) return {};
  return absl::DataLossError(control +
                             " is empty (0 bytes), but this data directory was in use; restore it "
                             "from a backup, or move the directory away to begin anew");
}

}  // namespace

Status set_aside(const std::string& path, std::int64_t time_us) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ec;
    const std::string from = path + suffix;
    if (!fs::exists(from, ec)) continue;
    fs::rename(from, absl::StrCat(path, ".damaged-", time_us, suffix), ec);
    if (ec) return absl::FailedPreconditionError(from + ": " + ec.message());
  }
  return {};
}

Result<std::unique_ptr<DataDirLock>> DataDirLock::take(const std::string& data_dir) {
  const std::string path = data_dir + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0)
    return absl::FailedPreconditionError(path + ": " + std::strerror(errno) +
                                         "; check that odtd may write to its data directory");
  std::unique_ptr<DataDirLock> lock(new DataDirLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t n = ::pread(fd, pid, sizeof pid - 1, 0);
    return absl::FailedPreconditionError(
        absl::StrCat(data_dir, " is in use by another odtd (pid ", n > 0 ? pid : "unknown",
                     "); stop that one, or give this one another data_dir"));
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0)
    return absl::ResourceExhaustedError(path + ": " + std::strerror(errno));
  return lock;
}

DataDirLock::~DataDirLock() { ::close(fd_); }

Result<OpenedStores> open_stores(const std::string& data_dir, const Clock& clock,
                                 const StoreOptions& options) {
  std::error_code ec;
  fs::create_directories(data_dir, ec);
  if (ec)
    return absl::FailedPreconditionError(data_dir + ": " + ec.message() +
                                         "; check the path and its owner");
  OpenedStores out;
  ODT_ASSIGN(out.lock, DataDirLock::take(data_dir));
  ODT_TRY(refuse_emptied(data_dir));
  if (const Status left = remove_stale_copies(data_dir); !left.ok())
    out.warnings.push_back(warning("BACKUP_LEFT", std::string(left.message()),
                                   "remove it by hand: it takes room and nothing reads it"));
  ODT_ASSIGN(out.blobs, FsBlobStore::open(data_dir + "/blobs"));
  ODT_ASSIGN(std::unique_ptr<SqliteControlStore> control,
             SqliteControlStore::open(data_dir + "/control.db", clock));
  if (!control->identity_warning().empty())
    out.warnings.push_back(warning("STORE_RESTORED", control->identity_warning(),
                                   "watchers read everything afresh by themselves"));
  out.identity = control->identity();
  out.control = std::move(control);
  const std::uint64_t quota =
      options.telemetry_quota_bytes != 0 ? options.telemetry_quota_bytes : default_quota(data_dir);
  out.telemetry = open_telemetry(data_dir + "/telemetry.db", clock, quota, out.warnings);
  return out;
}

}  // namespace odt::store

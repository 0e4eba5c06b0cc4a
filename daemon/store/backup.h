#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

// One tar file (ustar) of control.db, telemetry.db and blobs/, taken while the stores are written.
namespace odt::store {

// Reads a data directory as a tar file, piece by piece. Both databases are copied first, each as it
// stands at one moment, into a folder of their own beside them, which goes with this. Blobs are
// never changed once written; those that are freed while this reads are left out. Concurrency: one
// thread at a time; not one of the stores' threads.
class BackupReader {
 public:
  // Errors: those of SqliteDb (disk full, damaged), FAILED_PRECONDITION (a folder or file that
  // cannot be read). Nothing is left out of a backup because of an error.
  static Result<std::unique_ptr<BackupReader>> open(const std::string& data_dir);
  ~BackupReader();
  std::uint64_t total_bytes() const { return total_; }
  // The next bytes, at most `most`; empty: the end.
  Result<std::string> read(std::size_t most);

 private:
  struct File {
    std::string name, path;  // in the tar; on disk
    std::uint64_t bytes = 0;
  };
  explicit BackupReader(std::string copies) : copies_(std::move(copies)) {}
  Status find_blobs(const std::string& folder);
  Status measure();
  Status next_file();
  std::string copies_;
  std::vector<File> files_;
  std::size_t at_ = 0;      // file to come
  std::uint64_t left_ = 0;  // of the file being read
  std::uint64_t total_ = 0;
  std::string pending_;  // headers and padding
  std::ifstream in_;
  bool ended_ = false;
};

// Copies that a reader left behind when its process was killed. For whoever holds the lock of the
// data directory. Errors: FAILED_PRECONDITION.
Status remove_stale_copies(const std::string& data_dir);

// Puts a backup into `data_dir`, which must be missing or empty: whole and checked (both databases,
// every blob's hash) and durable, or nothing is left of it. The store gets a new store_epoch at its
// first start. Errors: ALREADY_EXISTS (not empty), NOT_FOUND, DATA_LOSS (what is damaged),
// RESOURCE_EXHAUSTED.
struct Restored {
  std::uint64_t blobs = 0, bytes = 0;
};
Result<Restored> restore_backup(const std::string& file, const std::string& data_dir);

}  // namespace odt::store

#pragma once

#include <memory>
#include <string>

#include "store/sqlite_rows.h"
#include "store/store.h"

namespace odt::store {

// Random gateway_id and store_epoch.
Identity new_identity();
std::uint64_t new_store_epoch();

// What tells this host from a clone of its disk: machine-id, product UUID and serial numbers,
// permanent addresses of built-in network devices. Unreadable parts are left out.
Hash host_fingerprint();

// Identity in control.db, checked against the host fingerprint file beside it ("<db>.host"). A new
// store_epoch is given where file and database do not belong together: the database was restored,
// replaced or copied, or the host is another one.
//
// Every opening writes a new random mark into both, so that an older copy of the database is known
// by its mark. The file first accepts the old and the new mark: a crash in between is no restore.
class IdentityGuard {
 public:
  struct Opened {
    Identity identity;
    std::string warning;  // not empty: why there is a new store_epoch
  };
  IdentityGuard(std::string db_path, Hash fingerprint);
  Result<Opened> open(SqliteRows& rows);
  // At a clean end: an older copy with the same mark is then known by its events.
  void close(std::int64_t next_seq);

 private:
  Status write_file(const std::string& marks, std::int64_t next_seq);
  std::string why_restored(SqliteRows& rows, const std::string& mark);

  std::string db_path_, file_path_;
  Hash fingerprint_;
  std::string mark_;
  bool open_ = false;
};

}  // namespace odt::store

#pragma once

#include <memory>
#include <string>

#include "store/control_engine.h"
#include "store/identity.h"
#include "store/sqlite_telemetry.h"

namespace odt::store {

struct ControlOptions {
  std::uint64_t max_bytes = 0;            // quota of the file; 0: none
  Hash fingerprint = host_fingerprint();  // of this host
};

// control.db: WAL, synchronous=FULL.
class SqliteControlStore final : public ControlEngine {
 public:
  // Creates, migrates, checks identity. Errors: FAILED_PRECONDITION (newer schema, no access),
  // DATA_LOSS (corrupt), RESOURCE_EXHAUSTED.
  static Result<std::unique_ptr<SqliteControlStore>> open(const std::string& path,
                                                          const Clock& clock,
                                                          const ControlOptions& options = {});
  ~SqliteControlStore() override;
  // Not empty: there is a new store_epoch, and why.
  const std::string& identity_warning() const { return identity_warning_; }

 private:
  SqliteControlStore(std::unique_ptr<SqliteRows> rows, const Clock& clock,
                     const IdentityGuard::Opened& opened, IdentityGuard guard);
  std::string identity_warning_;
  IdentityGuard guard_;
};

}  // namespace odt::store

#include "store/sqlite_store.h"

#include <absl/strings/str_cat.h>

#include "store/migrate.h"

namespace odt::store {

SqliteControlStore::SqliteControlStore(std::unique_ptr<SqliteRows> rows, const Clock& clock,
                                       const IdentityGuard::Opened& opened, IdentityGuard guard)
    : ControlEngine(std::move(rows), clock, opened.identity),
      identity_warning_(opened.warning),
      guard_(std::move(guard)) {}

SqliteControlStore::~SqliteControlStore() { guard_.close(next_seq()); }

Result<std::unique_ptr<SqliteControlStore>> SqliteControlStore::open(
    const std::string& path, const Clock& clock, const ControlOptions& options) {
  ODT_ASSIGN(std::unique_ptr<SqliteDb> db, SqliteDb::open(path, "FULL"));
  ODT_TRY(migrate(*db, control_migrations()));
  ODT_ASSIGN(const std::int64_t broken,
             db->query_int("SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check<>'ok'"));
  if (broken != 0)
    return absl::DataLossError(path + ": quick_check found damage; restore it from a backup");
  if (options.max_bytes != 0) {
    ODT_ASSIGN(const std::int64_t page_size, db->query_int("PRAGMA page_size"));
    ODT_TRY(db->exec(absl::StrCat("PRAGMA max_page_count=",
                                  options.max_bytes / static_cast<std::uint64_t>(page_size))));
  }
  ODT_ASSIGN(std::unique_ptr<SqliteRows> rows, SqliteRows::create(std::move(db)));
  IdentityGuard guard(path, options.fingerprint);
  ODT_ASSIGN(const IdentityGuard::Opened opened, guard.open(*rows));
  std::unique_ptr<SqliteControlStore> store(
      new SqliteControlStore(std::move(rows), clock, opened, std::move(guard)));
  ODT_TRY(store->load());
  return store;
}

}  // namespace odt::store

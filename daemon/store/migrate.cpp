#include "store/migrate.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include "base/failpoint.h"

namespace odt::store {
namespace {

Status copy_before(SqliteDb& db, std::int64_t version) {
  const std::string copy = absl::StrCat(db.path(), ".v", version);
  ::unlink(copy.c_str());  // of a migration that was interrupted; VACUUM INTO refuses a file
  ODT_ASSIGN(Statement vacuum, db.prepare("VACUUM INTO ?1"));
  return vacuum.bind_text(1, copy).run();
}

Status apply(SqliteDb& db, const std::vector<Migration>& migrations, std::int64_t version) {
  for (const Migration& migration : migrations) {
    if (migration.number <= version) continue;
    ODT_TRY(db.exec(std::string(migration.sql)));
    ODT_TRY(db.exec(absl::StrCat("PRAGMA user_version=", migration.number)));
  }
  return {};
}

}  // namespace

Status migrate(SqliteDb& db, const std::vector<Migration>& migrations) {
  ODT_ASSIGN(const std::int64_t version, db.query_int("PRAGMA user_version"));
  const std::int64_t supported = migrations.back().number;
  if (version > supported)
    return absl::FailedPreconditionError(
        absl::StrCat(db.path(), " has schema version ", version, ", this odtd supports up to ",
                     supported, "; install the newer odt-fleet, or restore ", db.path(), ".v",
                     supported, " that it left behind"));
  if (version == supported) return {};
  if (version > 0) ODT_TRY(copy_before(db, version));
  ODT_TRY(db.begin());
  Status status = apply(db, migrations, version);
  fail_here("migrate");
  if (status.ok()) status = db.commit();
  if (!status.ok()) db.rollback();
  return status;
}

}  // namespace odt::store

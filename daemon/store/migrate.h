#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite_db.h"

// Schema versions: PRAGMA user_version = number of the last migration carried out.
namespace odt::store {

struct Migration {
  int number;  // from 1, without holes
  std::string_view name;
  std::string_view sql;
};

// migrations/control/*.sql and migrations/telemetry/*.sql, embedded at build time.
const std::vector<Migration>& control_migrations();
const std::vector<Migration>& telemetry_migrations();

// Brings `db` to the last migration, all in one transaction. A database with content is first
// copied to "<file>.v<old version>". Errors: FAILED_PRECONDITION (newer than this program: file,
// version, supported version, remedy); those of SqliteDb, with nothing changed.
Status migrate(SqliteDb& db, const std::vector<Migration>& migrations);

}  // namespace odt::store

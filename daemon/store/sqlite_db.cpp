#include "store/sqlite_db.h"

#include <absl/strings/str_cat.h>
#include <sqlite3.h>

namespace odt::store {

Statement& Statement::bind(int index, std::int64_t value) {
  const int rc = sqlite3_bind_int64(stmt_.get(), index, value);
  if (rc != SQLITE_OK) bind_error_ = db_->error(rc, "bind");
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view value) {
  // A null pointer would bind NULL, not an empty blob.
  const char* data = value.empty() ? "" : value.data();
  const int rc = sqlite3_bind_blob64(stmt_.get(), index, data, value.size(), SQLITE_TRANSIENT);
  if (rc != SQLITE_OK) bind_error_ = db_->error(rc, "bind");
  return *this;
}

Statement& Statement::bind_text(int index, std::string_view value) {
  const char* data = value.empty() ? "" : value.data();
  const int rc =
      sqlite3_bind_text64(stmt_.get(), index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (rc != SQLITE_OK) bind_error_ = db_->error(rc, "bind");
  return *this;
}

Result<bool> Statement::step() {
  if (!bind_error_.ok()) {
    const Status status = bind_error_;
    reset();
    return status;
  }
  const int rc = sqlite3_step(stmt_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  const Status status = db_->error(rc, sqlite3_sql(stmt_.get()));
  reset();
  return status;
}

Status Statement::run() {
  auto row = step();
  reset();
  return row.status();
}

void Statement::reset() {
  sqlite3_reset(stmt_.get());
  sqlite3_clear_bindings(stmt_.get());
  bind_error_ = Status();
}

std::int64_t Statement::column_int(int column) const {
  return sqlite3_column_int64(stmt_.get(), column);
}

std::string Statement::column_bytes(int column) const {
  const void* data = sqlite3_column_blob(stmt_.get(), column);
  const int size = sqlite3_column_bytes(stmt_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return std::string(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(stmt_.get(), column) == SQLITE_NULL;
}

std::string_view Statement::column_view(int column) const {
  const void* data = sqlite3_column_blob(stmt_.get(), column);
  const int size = sqlite3_column_bytes(stmt_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

void Statement::Finalize::operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }

SqliteDb::SqliteDb(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

SqliteDb::~SqliteDb() { sqlite3_close_v2(db_); }

Result<std::unique_ptr<SqliteDb>> SqliteDb::open(const std::string& path,
                                                 const std::string& synchronous) {
  sqlite3* raw = nullptr;
  const int rc =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteDb> db(new SqliteDb(raw, path));
  if (rc != SQLITE_OK) return db->error(rc, "open");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, 5000);
  ODT_TRY(db->exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=" + synchronous +
                   "; PRAGMA journal_size_limit=16777216; PRAGMA foreign_keys=ON;"));
  return db;
}

Result<Statement> SqliteDb::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (rc != SQLITE_OK) return error(rc, sql);
  Statement statement;
  statement.stmt_.reset(raw);
  statement.db_ = this;
  return statement;
}

Status SqliteDb::exec(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return error(rc, std::string_view(sql).substr(0, 80));
  return {};
}

Result<std::int64_t> SqliteDb::query_int(const std::string& sql) {
  ODT_ASSIGN(Statement statement, prepare(sql));
  ODT_ASSIGN(const bool row, statement.step());
  return row ? statement.column_int(0) : 0;
}

Status SqliteDb::backup(const std::string& path) {
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  const std::unique_ptr<SqliteDb> to(new SqliteDb(raw, path));
  if (opened != SQLITE_OK) return to->error(opened, "open");
  sqlite3_backup* copy = sqlite3_backup_init(raw, "main", db_, "main");
  if (copy == nullptr) return to->error(sqlite3_errcode(raw), "backup");
  const int stepped = sqlite3_backup_step(copy, -1);
  sqlite3_backup_finish(copy);
  if (stepped != SQLITE_DONE) return to->error(stepped, "backup");
  return to->exec("PRAGMA journal_mode=DELETE");  // one file: no -wal beside it
}

Status SqliteDb::begin() { return exec("BEGIN IMMEDIATE"); }

Status SqliteDb::commit() { return exec("COMMIT"); }

void SqliteDb::rollback() {
  if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Status SqliteDb::error(int code, std::string_view what) const {
  const std::string text =
      absl::StrCat(path_, ": ", db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_),
                   " (SQLite code ", code, ", ", std::string(what), ")");
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return with_reason(
          absl::ResourceExhaustedError(text + "; free disk space or raise the quota"), "DISK_FULL",
          "free space in the data directory");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text + "; the file is damaged: restore it from a backup");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::FailedPreconditionError(
          text + "; check that the folder exists and that odtd may write to it");
    default:
      return absl::InternalError(text);
  }
}

}  // namespace odt::store

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

// Thin RAII over SQLite: Status instead of exceptions.
//
// Codes: RESOURCE_EXHAUSTED (disk full, page quota), DATA_LOSS (corrupt, not a database),
// UNAVAILABLE (locked), FAILED_PRECONDITION (read-only), INTERNAL otherwise. Every message names
// the file.
namespace odt::store {

class SqliteDb;

// A prepared statement. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement() = default;
  Statement& bind(int index, std::int64_t value);
  Statement& bind_blob(int index, std::string_view value);
  Statement& bind_text(int index, std::string_view value);
  // True: a row is there. Errors reset the statement.
  Result<bool> step();
  // Runs a statement that gives no rows, then resets it.
  Status run();
  void reset();

  std::int64_t column_int(int column) const;
  bool is_null(int column) const;
  std::string_view column_view(int column) const;  // BLOB or TEXT; until the next step or reset
  std::string column_bytes(int column) const;      // BLOB or TEXT

 private:
  friend class SqliteDb;
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
  SqliteDb* db_ = nullptr;
  Status bind_error_;
};

class SqliteDb {
 public:
  // Creates the file if missing; WAL. synchronous: "FULL" or "NORMAL".
  static Result<std::unique_ptr<SqliteDb>> open(const std::string& path,
                                                const std::string& synchronous);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  Result<Statement> prepare(std::string_view sql);
  Status exec(const std::string& sql);  // any number of statements
  Result<std::int64_t> query_int(const std::string& sql);

  // Copies the whole database into a new file, page by page, while others write.
  Status backup(const std::string& path);

  Status begin();  // BEGIN IMMEDIATE
  Status commit();
  void rollback();  // also after SQLite rolled back by itself (disk full)

  const std::string& path() const { return path_; }
  Status error(int code, std::string_view what) const;

 private:
  SqliteDb(sqlite3* db, std::string path);
  sqlite3* db_;
  std::string path_;
};

}  // namespace odt::store

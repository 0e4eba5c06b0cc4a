#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/console_book.h"
#include "store/sqlite_db.h"

namespace odt::store {

// Lines of consoles in SQLite. One thread.
class ConsoleTable {
 public:
  // Errors: SqliteDb's.
  static Result<std::unique_ptr<ConsoleTable>> open(const std::string& path, ConsoleLimits limits);

  // All or nothing.
  Status append(const std::vector<model::ConsoleLine>& lines);
  Result<ConsolePage> list(const ConsoleQuery& query);

 private:
  ConsoleTable(std::unique_ptr<SqliteDb> db, ConsoleLimits limits)
      : db_(std::move(db)), limits_(limits) {}
  Status prepare();
  Status read_counts();
  Result<std::int64_t> board_number(const BoardUid& uid);
  Status append_all(const std::vector<model::ConsoleLine>& lines);
  Status trim(std::int64_t board);
  Status trim_all();

  std::unique_ptr<SqliteDb> db_;
  ConsoleLimits limits_;
  Statement insert_;
  std::map<BoardUid, std::int64_t> numbers_;
  std::map<std::int64_t, BoardUid> uids_;
  std::map<std::int64_t, std::uint64_t> counts_;  // lines by board
  std::uint64_t all_ = 0, next_seq_ = 1, epoch_ = 0;
};

}  // namespace odt::store

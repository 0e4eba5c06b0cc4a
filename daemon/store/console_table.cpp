#include "store/console_table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <random>
#include <set>

namespace odt::store {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS board (id INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS line (seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL,"
    " board INTEGER NOT NULL, source INTEGER NOT NULL, level INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS line_board ON line (board, seq);";

// A limit is overstepped by an eighth before lines go: deleting one by one costs too much.
std::uint64_t with_slack(std::uint64_t limit) { return limit + limit / 8; }

// The lines that match, without order and limit. `words`: values for ?1 and on.
std::string condition(const ConsoleQuery& query, const std::vector<std::int64_t>& boards,
                      std::vector<std::string>& words) {
  std::string where = "WHERE 1";
  if (!query.boards.empty())
    absl::StrAppend(&where, " AND board IN (", absl::StrJoin(boards, ","), ")");
  if (query.least_level > 0) absl::StrAppend(&where, " AND level>=", query.least_level);
  if (query.after_seq > 0) absl::StrAppend(&where, " AND seq>", query.after_seq);
  if (query.before_seq > 0) absl::StrAppend(&where, " AND seq<", query.before_seq);
  for (const bool with : {true, false})
    for (const auto& word : with ? query.with : query.without) {
      words.push_back(absl::AsciiStrToLower(word));
      absl::StrAppend(&where, " AND instr(lower(text),?", words.size(), ")", with ? ">0" : "=0");
    }
  return where;
}

}  // namespace

Result<std::unique_ptr<ConsoleTable>> ConsoleTable::open(const std::string& path,
                                                         ConsoleLimits limits) {
  ODT_ASSIGN(auto db, SqliteDb::open(path, "NORMAL"));
  std::unique_ptr<ConsoleTable> table(new ConsoleTable(std::move(db), limits));
  ODT_TRY(table->prepare());
  return table;
}

Status ConsoleTable::prepare() {
  ODT_TRY(db_->exec(kSchema));
  // Random, and greater than 0 as SQLite has it: so that a reader sees that the file is another.
  std::random_device random;
  const std::uint64_t fresh =
      ((std::uint64_t{random()} << 32 | random()) & 0x7FFF'FFFF'FFFF'FFFF) | 1;
  ODT_TRY(db_->exec(absl::StrCat("INSERT OR IGNORE INTO meta VALUES ('epoch', ", fresh, ")")));
  ODT_ASSIGN(const auto epoch, db_->query_int("SELECT value FROM meta WHERE key='epoch'"));
  ODT_ASSIGN(const auto newest, db_->query_int("SELECT ifnull(max(seq), 0) FROM line"));
  epoch_ = static_cast<std::uint64_t>(epoch);
  next_seq_ = static_cast<std::uint64_t>(newest) + 1;
  ODT_ASSIGN(insert_, db_->prepare("INSERT INTO line (seq, time_us, board, source, level, text) "
                                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  ODT_ASSIGN(Statement boards, db_->prepare("SELECT id, uid FROM board"));
  while (true) {
    ODT_ASSIGN(const bool more, boards.step());
    if (!more) break;
    ODT_ASSIGN(const BoardUid uid, BoardUid::from_bytes(boards.column_bytes(1)));
    numbers_[uid] = boards.column_int(0);
    uids_[boards.column_int(0)] = uid;
  }
  return read_counts();
}

Status ConsoleTable::read_counts() {
  counts_.clear();
  all_ = 0;
  ODT_ASSIGN(Statement count, db_->prepare("SELECT board, count(*) FROM line GROUP BY board"));
  while (true) {
    ODT_ASSIGN(const bool more, count.step());
    if (!more) return {};
    all_ += counts_[count.column_int(0)] = static_cast<std::uint64_t>(count.column_int(1));
  }
}

Result<std::int64_t> ConsoleTable::board_number(const BoardUid& uid) {
  if (const auto it = numbers_.find(uid); it != numbers_.end()) return it->second;
  ODT_ASSIGN(Statement insert, db_->prepare("INSERT OR IGNORE INTO board (uid) VALUES (?1)"));
  ODT_TRY(insert.bind_blob(1, uid.str()).run());
  ODT_ASSIGN(Statement read, db_->prepare("SELECT id FROM board WHERE uid=?1"));
  read.bind_blob(1, uid.str());
  ODT_TRY(read.step().status());
  const std::int64_t number = read.column_int(0);
  numbers_[uid] = number;
  uids_[number] = uid;
  return number;
}

Status ConsoleTable::append(const std::vector<model::ConsoleLine>& lines) {
  ODT_TRY(db_->begin());
  const std::uint64_t next = next_seq_;
  Status status = append_all(lines);
  if (status.ok()) status = db_->commit();
  if (status.ok()) return {};
  db_->rollback();
  // What was counted and numbered is not there.
  next_seq_ = next;
  numbers_.clear();
  uids_.clear();
  prepare().IgnoreError();
  return status;
}

Status ConsoleTable::append_all(const std::vector<model::ConsoleLine>& lines) {
  std::set<std::int64_t> touched;
  for (const auto& line : lines) {
    ODT_ASSIGN(const std::int64_t board, board_number(line.board_uid));
    ODT_TRY(insert_.bind(1, static_cast<std::int64_t>(next_seq_))
                .bind(2, line.time_us)
                .bind(3, board)
                .bind(4, static_cast<std::int64_t>(line.source))
                .bind(5, line.level)
                .bind_text(6, line.text)
                .run());
    ++next_seq_;
    ++counts_[board];
    ++all_;
    touched.insert(board);
  }
  for (const std::int64_t board : touched)
    if (counts_[board] > with_slack(limits_.per_board)) ODT_TRY(trim(board));
  return all_ > with_slack(limits_.of_all) ? trim_all() : Status();
}

Status ConsoleTable::trim(std::int64_t board) {
  ODT_TRY(db_->exec(absl::StrCat("DELETE FROM line WHERE board=", board,
                                 " AND seq<=(SELECT seq FROM line WHERE board=", board,
                                 " ORDER BY seq DESC LIMIT 1 OFFSET ", limits_.per_board, ")")));
  all_ -= counts_[board] - limits_.per_board;
  counts_[board] = limits_.per_board;
  return {};
}

Status ConsoleTable::trim_all() {
  ODT_TRY(
      db_->exec(absl::StrCat("DELETE FROM line WHERE seq<=(SELECT seq FROM line ORDER BY seq "
                             "DESC LIMIT 1 OFFSET ",
                             limits_.of_all, ")")));
  return read_counts();
}

Result<ConsolePage> ConsoleTable::list(const ConsoleQuery& query) {
  ConsolePage page;
  page.newest_seq = next_seq_ - 1;
  page.epoch = epoch_;
  std::vector<std::int64_t> boards;
  for (const auto& uid : query.boards)
    if (const auto it = numbers_.find(uid); it != numbers_.end()) {
      boards.push_back(it->second);
      page.kept += counts_[it->second];
    }
  if (query.boards.empty()) page.kept = all_;
  if (!query.boards.empty() && boards.empty()) return page;
  std::vector<std::string> words;
  const bool up = query.after_seq > 0 || query.begin;
  const std::string sql = absl::StrCat("SELECT seq, time_us, board, source, level, text FROM line ",
                                       condition(query, boards, words), " ORDER BY seq ",
                                       up ? "ASC" : "DESC", " LIMIT ", query.page_size + 1);
  ODT_ASSIGN(Statement read, db_->prepare(sql));
  for (std::size_t i = 0; i < words.size(); ++i) read.bind_text(static_cast<int>(i) + 1, words[i]);
  while (true) {
    ODT_ASSIGN(const bool more, read.step());
    if (!more) break;
    if (page.lines.size() == query.page_size) {
      page.more = true;
      break;
    }
    model::ConsoleLine line;
    line.seq = static_cast<std::uint64_t>(read.column_int(0));
    line.time_us = read.column_int(1);
    line.board_uid = uids_[read.column_int(2)];
    line.source = static_cast<model::ConsoleSource>(read.column_int(3));
    line.level = static_cast<std::uint8_t>(read.column_int(4));
    line.text = read.column_bytes(5);
    page.lines.push_back(std::move(line));
  }
  if (!up) std::reverse(page.lines.begin(), page.lines.end());
  return page;
}

}  // namespace odt::store

#include "store/sqlite_telemetry.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "store/frame_choice.h"
#include "store/migrate.h"
#include "store/telemetry_codec.h"

namespace odt::store {

Result<std::unique_ptr<SqliteTelemetryStore>> SqliteTelemetryStore::open(
    const std::string& path, std::uint64_t quota_bytes) {
  ODT_ASSIGN(std::unique_ptr<SqliteDb> db, SqliteDb::open(path, "NORMAL"));
  ODT_TRY(migrate(*db, telemetry_migrations()));
  ODT_ASSIGN(const std::int64_t broken,
             db->query_int("SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check<>'ok'"));
  if (broken != 0) return absl::DataLossError(path + ": quick_check found damage");
  std::unique_ptr<SqliteTelemetryStore> store(new SqliteTelemetryStore(std::move(db)));
  ODT_TRY(store->set_quota(quota_bytes));
  ODT_TRY(store->prepare());
  return store;
}

Status SqliteTelemetryStore::set_quota(std::uint64_t quota_bytes) {
  ODT_ASSIGN(const std::int64_t page_size, db_->query_int("PRAGMA page_size"));
  const std::uint64_t bytes = std::max<std::uint64_t>(quota_bytes, 1 << 20);
  return db_->exec(
      absl::StrCat("PRAGMA max_page_count=", bytes / static_cast<std::uint64_t>(page_size)));
}

Status SqliteTelemetryStore::prepare() {
  const std::string row =
      "SELECT f.attempt, f.step, s.board_uid, s.boot_id, f.time_us, f.data "
      "FROM frame f JOIN source s ON s.id=f.source ";
  const std::string newest =
      "FROM (SELECT step AS n_step, max(attempt) AS n_attempt FROM frame "
      "WHERE run=?1 AND step BETWEEN ?2 AND ?3 GROUP BY step) ";
  const std::pair<Statement*, std::string> statements[] = {
      {&find_run_, "SELECT id FROM run WHERE run_id=?1"},
      {&add_run_, "INSERT INTO run (run_id) VALUES (?1) RETURNING id"},
      {&find_source_, "SELECT id FROM source WHERE board_uid=?1 AND boot_id=?2"},
      {&add_source_, "INSERT INTO source (board_uid, boot_id) VALUES (?1, ?2) RETURNING id"},
      {&insert_,
       "INSERT OR REPLACE INTO frame (run, attempt, step, source, time_us, data) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
      {&get_, row + "WHERE f.run=?1 AND f.attempt=?2 AND f.step=?3"},
      {&count_attempt_,
       "SELECT count(*) FROM frame WHERE run=?1 AND step BETWEEN ?2 AND ?3 AND attempt=?4"},
      {&count_newest_, "SELECT count(*) " + newest},
      {&range_attempt_,
       row + "WHERE f.run=?1 AND f.step BETWEEN ?2 AND ?3 AND f.attempt=?4 ORDER BY f.step"},
      {&range_newest_, "SELECT f.attempt, f.step, s.board_uid, s.boot_id, f.time_us, f.data " +
                           newest +
                           "JOIN frame f ON f.run=?1 AND f.attempt=n_attempt AND f.step=n_step "
                           "JOIN source s ON s.id=f.source ORDER BY f.step"},
  };
  for (const auto& [statement, sql] : statements) {
    ODT_ASSIGN(*statement, db_->prepare(sql));
  }
  return {};
}

Status SqliteTelemetryStore::append(const std::vector<model::TelemetryFrame>& frames) {
  ODT_TRY(db_->begin());
  Status status = append_all(frames);
  if (status.ok()) status = db_->commit();
  if (!status.ok()) {
    db_->rollback();
    runs_.clear();  // may hold numbers that were rolled back
    sources_.clear();
  }
  return status;
}

Status SqliteTelemetryStore::append_all(const std::vector<model::TelemetryFrame>& frames) {
  for (const model::TelemetryFrame& frame : frames) ODT_TRY(append_one(frame));
  return {};
}

Status SqliteTelemetryStore::append_one(const model::TelemetryFrame& frame) {
  ODT_ASSIGN(const std::int64_t run, run_number(frame.run_id, true));
  ODT_ASSIGN(const std::optional<model::TelemetryFrame> old, stored(run, frame));
  if (!old) return insert(run, frame);
  switch (merge_frame(*old, frame)) {
    case Merge::kIgnore:
      return {};
    case Merge::kDiverged:
      return diverged(frame);
    case Merge::kReplace:
      break;
  }
  if (frame.gap == 0 && old->gap > 1) {
    const model::TelemetryFrame rest = rest_of_gap(*old);
    ODT_ASSIGN(const std::optional<model::TelemetryFrame> next, stored(run, rest));
    if (!next) ODT_TRY(insert(run, rest));
  }
  return insert(run, frame);
}

Status SqliteTelemetryStore::insert(std::int64_t run, const model::TelemetryFrame& frame) {
  ODT_ASSIGN(const std::int64_t source, source_number(frame.board_uid, frame.boot_id));
  return insert_.bind(1, run)
      .bind(2, frame.attempt)
      .bind(3, frame.step)
      .bind(4, source)
      .bind(5, frame.time_us)
      .bind_blob(6, encode_frame(frame))
      .run();
}

Result<std::int64_t> SqliteTelemetryStore::run_number(const Uuid& run, bool create) {
  if (const auto it = runs_.find(run); it != runs_.end()) return it->second;
  for (Statement* statement : {&find_run_, &add_run_}) {
    if (statement == &add_run_ && !create) return 0;
    statement->bind_blob(1, run.str());
    ODT_ASSIGN(const bool row, statement->step());
    const std::int64_t id = row ? statement->column_int(0) : 0;
    statement->reset();
    if (row) return runs_[run] = id;
  }
  return absl::InternalError(db_->path() + ": no number for a run");
}

Result<std::int64_t> SqliteTelemetryStore::source_number(const BoardUid& uid,
                                                         std::uint64_t boot_id) {
  const auto key = std::pair(uid, boot_id);
  if (const auto it = sources_.find(key); it != sources_.end()) return it->second;
  for (Statement* statement : {&find_source_, &add_source_}) {
    statement->bind_blob(1, uid.str()).bind(2, static_cast<std::int64_t>(boot_id));
    ODT_ASSIGN(const bool row, statement->step());
    const std::int64_t id = row ? statement->column_int(0) : 0;
    statement->reset();
    if (row) return sources_[key] = id;
  }
  return absl::InternalError(db_->path() + ": no number for a board's boot");
}

Result<std::optional<model::TelemetryFrame>> SqliteTelemetryStore::stored(
    std::int64_t run, const model::TelemetryFrame& frame) {
  get_.bind(1, run).bind(2, frame.attempt).bind(3, frame.step);
  ODT_ASSIGN(const bool row, get_.step());
  std::optional<model::TelemetryFrame> out;
  Status status;
  if (row) {
    model::TelemetryFrame& found = out.emplace();
    found.run_id = frame.run_id;
    status = read_row(get_, found);
  }
  get_.reset();
  ODT_TRY(status);
  return out;
}

Status SqliteTelemetryStore::read_row(Statement& statement, model::TelemetryFrame& frame) {
  frame.attempt = static_cast<std::uint32_t>(statement.column_int(0));
  frame.step = static_cast<std::uint32_t>(statement.column_int(1));
  const std::string uid = statement.column_bytes(2);
  frame.board_uid.bytes.assign(uid.begin(), uid.end());
  frame.boot_id = static_cast<std::uint64_t>(statement.column_int(3));
  frame.time_us = statement.column_int(4);
  return decode_frame(statement.column_bytes(5), frame);
}

Result<TelemetryStore::Frames> SqliteTelemetryStore::read(const Range& range) {
  Frames out;
  ODT_ASSIGN(const std::int64_t run, run_number(range.run, false));
  if (run == 0) return out;
  const auto bind = [&](Statement& statement) -> Statement& {
    statement.bind(1, run).bind(2, range.first_step).bind(3, range.last_step);
    if (range.attempt != 0) statement.bind(4, range.attempt);
    return statement;
  };
  Statement& count = bind(range.attempt != 0 ? count_attempt_ : count_newest_);
  ODT_TRY(count.step().status());
  out.total = static_cast<std::uint32_t>(count.column_int(0));
  count.reset();
  FrameChoice choice(out.total, range.max_frames);
  Statement& rows = bind(range.attempt != 0 ? range_attempt_ : range_newest_);
  Status status;
  for (std::uint32_t index = 0; status.ok(); ++index) {
    ODT_ASSIGN(const bool more, rows.step());
    if (!more) break;
    if (!choice.takes(index)) continue;
    model::TelemetryFrame& frame = out.frames.emplace_back();
    frame.run_id = range.run;
    status = read_row(rows, frame);
  }
  rows.reset();
  ODT_TRY(status);
  return out;
}

Result<std::uint64_t> SqliteTelemetryStore::erase(const Uuid& id) {
  ODT_ASSIGN(const std::int64_t run, run_number(id, false));
  if (run == 0) return 0;
  ODT_TRY(db_->exec(absl::StrCat("DELETE FROM frame WHERE run=", run)));
  return db_->query_int("SELECT changes()");
}

Result<std::uint64_t> SqliteTelemetryStore::size_bytes() {
  ODT_ASSIGN(const std::int64_t pages, db_->query_int("PRAGMA page_count"));
  ODT_ASSIGN(const std::int64_t page_size, db_->query_int("PRAGMA page_size"));
  return static_cast<std::uint64_t>(pages * page_size);
}

}  // namespace odt::store

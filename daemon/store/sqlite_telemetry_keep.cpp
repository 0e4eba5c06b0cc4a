// What keeps telemetry.db in order: start, old layouts, thinning, erasing, copies.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "base/failpoint.h"
#include "store/sqlite_telemetry.h"
#include "store/telemetry_codec.h"

namespace odt::store {

// Puts the log's records that no chunk has back into memory.
Status SqliteTelemetryStore::load_recent() {
  ODT_ASSIGN(next_log_, db_->query_int("SELECT coalesce(max(id), 0) + 1 FROM recent"));
  ODT_ASSIGN(next_run_, db_->query_int("SELECT coalesce(max(id), 0) + 1 FROM run"));
  std::set<Number> known;
  ODT_ASSIGN(Statement runs, db_->prepare("SELECT id FROM run"));
  while (true) {
    ODT_ASSIGN(const bool more, runs.step());
    if (!more) break;
    known.insert(runs.column_int(0));
  }
  ODT_ASSIGN(Statement rows, db_->prepare("SELECT id, data FROM recent ORDER BY id"));
  while (true) {
    ODT_ASSIGN(const bool more, rows.step());
    if (!more) break;
    const std::int64_t id = rows.column_int(0);
    ODT_ASSIGN(const std::vector<LogEntry> entries, decode_log(rows.column_view(1)));
    for (const LogEntry& e : entries) {
      const LineKey key{static_cast<Number>(e.run), e.attempt};
      // A run that was erased; its number is not given again while the log names it.
      next_run_ = std::max(next_run_, key.first + 1);
      if (!known.contains(key.first)) continue;
      ODT_ASSIGN(Line* const line, line_of(key));
      if (e.point.step <= line->last_closed) {
        ODT_ASSIGN(const std::optional<Chunk> chunk, chunk_of(key, e.point.step));
        if (chunk) continue;
      }
      Point point = e.point;
      point.log = id;
      if (line->open.rows.empty()) line->oldest_log = id;
      line->open.place(point, e.layers);
    }
  }
  return {};
}

// Before version 2 every record was a row. Interrupted: the old table is still there whole.
Status SqliteTelemetryStore::move_old_rows() {
  ODT_ASSIGN(const std::int64_t old,
             db_->query_int("SELECT count(*) FROM sqlite_master WHERE name='frame_v1'"));
  if (old == 0) return {};
  ODT_TRY(db_->begin());
  Status status;
  {
    ODT_ASSIGN(Statement runs, db_->prepare("SELECT DISTINCT run FROM frame_v1"));
    while (status.ok()) {
      const auto more = runs.step();
      status.Update(more.status());
      if (!more.ok() || !*more) break;
      status.Update(move_old_run(runs.column_int(0)));
    }
  }
  if (status.ok()) status = db_->exec("DROP TABLE frame_v1");
  fail_here("migrate.rows");
  if (status.ok()) status = db_->commit();
  if (!status.ok()) db_->rollback();
  return status;
}

Status SqliteTelemetryStore::move_old_run(Number run) {
  ODT_ASSIGN(Statement rows,
             db_->prepare("SELECT attempt, step, source, time_us, data FROM frame_v1 "
                          "WHERE run=?1 ORDER BY attempt, step"));
  rows.bind(1, run);
  Points points;
  std::uint32_t attempt = 0;
  const auto close = [&]() -> Status {
    if (points.rows.empty()) return {};
    ODT_TRY(write_chunk({run, attempt}, points));
    points = Points();
    return {};
  };
  while (true) {
    ODT_ASSIGN(const bool more, rows.step());
    if (!more) break;
    model::TelemetryFrame frame;
    frame.attempt = static_cast<std::uint32_t>(rows.column_int(0));
    frame.step = static_cast<std::uint32_t>(rows.column_int(1));
    frame.time_us = rows.column_int(3);
    ODT_TRY(decode_frame(rows.column_view(4), frame));
    if (frame.attempt != attempt ||
        (!points.rows.empty() &&
         frame.step / kLargeWindow != points.rows.front().step / kLargeWindow))
      ODT_TRY(close());
    attempt = frame.attempt;
    std::string layers;
    Point point = point_of(frame, layers);
    point.source = static_cast<std::uint32_t>(rows.column_int(2));
    points.place(point, layers);
  }
  return close();
}

Result<TelemetryStore::Use> SqliteTelemetryStore::use_where(const std::string& where) {
  ODT_ASSIGN(Statement sums,
             db_->prepare("SELECT coalesce(sum(records * (raw_bytes > 0)), 0), "
                          "coalesce(sum(records * (raw_bytes = 0)), 0), "
                          "coalesce(sum(raw_bytes), 0), coalesce(sum(rollup_bytes), 0) FROM chunk" +
                          where));
  ODT_TRY(sums.step().status());
  const auto column = [&](int i) { return static_cast<std::uint64_t>(sums.column_int(i)); };
  return Use{column(0), column(1), column(2), column(3)};
}

Result<TelemetryStore::Use> SqliteTelemetryStore::use(const Uuid& id) {
  ODT_ASSIGN(const Number run, run_number(id, false));
  if (run == 0) return Use{};
  ODT_ASSIGN(Use use, use_where(absl::StrCat(" WHERE run=", run)));
  for (auto it = lines_.lower_bound({run, 0}); it != lines_.end() && it->first.first == run; ++it) {
    use.raw_frames += it->second.open.rows.size();
    use.raw_bytes += it->second.open.layer_bytes.size() + 8 * it->second.open.rows.size();
  }
  return use;
}

Result<TelemetryStore::Use> SqliteTelemetryStore::use_of_all() {
  ODT_ASSIGN(Use use, use_where(""));
  for (const auto& [key, line] : lines_) use.raw_frames += line.open.rows.size();
  return use;
}

Result<std::uint64_t> SqliteTelemetryStore::runs_thinned() {
  ODT_ASSIGN(const std::int64_t runs,
             db_->query_int("SELECT count(DISTINCT run) FROM chunk WHERE raw_bytes=0"));
  return static_cast<std::uint64_t>(runs);
}

Result<std::uint64_t> SqliteTelemetryStore::thin(const Uuid& id) {
  ODT_ASSIGN(const Number run, run_number(id, false));
  if (run == 0) return 0;
  ODT_ASSIGN(const Use before, use(id));
  ODT_TRY(begin_write());
  Status status;
  for (const auto& [key, line] : lines_)
    if (key.first == run && !line.open.rows.empty() && status.ok())
      status = close_front(key, line, line.open.rows.size());
  if (status.ok()) status = forget_log();
  if (status.ok())
    status = db_->exec(absl::StrCat(
        "UPDATE chunk_data SET raw=NULL WHERE id IN (SELECT data FROM chunk WHERE run=", run,
        "); UPDATE chunk SET raw_bytes=0 WHERE run=", run));
  if (status.ok()) status = db_->commit();
  if (!status.ok()) {
    db_->rollback();
    undo();
    return status;
  }
  cached_data_ = 0;
  settle();
  ++cuts_[id];
  return before.raw_bytes;
}

Result<std::uint64_t> SqliteTelemetryStore::erase(const Uuid& id) {
  ODT_ASSIGN(const Number run, run_number(id, false));
  if (run == 0) return 0;
  ODT_ASSIGN(const Use gone, use(id));
  ODT_TRY(db_->begin());
  Status status = db_->exec(
      absl::StrCat("DELETE FROM chunk_data WHERE id IN (SELECT data FROM chunk WHERE run=", run,
                   "); DELETE FROM chunk WHERE run=", run, "; DELETE FROM run WHERE id=", run));
  if (status.ok()) status = db_->commit();
  if (!status.ok()) {
    db_->rollback();
    return status;
  }
  std::erase_if(lines_, [&](const auto& line) { return line.first.first == run; });
  runs_.clear();
  routes_.clear();
  cached_data_ = 0;
  ++cuts_[id];
  return gone.raw_frames + gone.thinned_frames;
}

Result<TelemetryStore::Room> SqliteTelemetryStore::room() {
  ODT_ASSIGN(const std::int64_t page, db_->query_int("PRAGMA page_size"));
  ODT_ASSIGN(const std::int64_t pages, db_->query_int("PRAGMA page_count"));
  ODT_ASSIGN(const std::int64_t unused, db_->query_int("PRAGMA freelist_count"));
  return Room{static_cast<std::uint64_t>(page * pages),
              static_cast<std::uint64_t>(page * (pages - unused)), quota_bytes_};
}

Result<std::uint64_t> SqliteTelemetryStore::size_bytes() {
  ODT_ASSIGN(const Room now, room());
  return now.file_bytes;
}

}  // namespace odt::store

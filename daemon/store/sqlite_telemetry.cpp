#include "store/sqlite_telemetry.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "store/migrate.h"
#include "store/telemetry_codec.h"

namespace odt::store {
namespace {

// A chunk closes at a boundary of large windows, with at least this many records.
constexpr std::size_t kFullChunk = kLargeWindow * 3 / 4;
// Lines with records older than this many commits are closed as they are.
constexpr std::int64_t kMostLog = 3000;
constexpr std::size_t kIdleLines = 4096;

std::int64_t i64(std::size_t value) { return static_cast<std::int64_t>(value); }

Points slice(const Points& points, std::size_t first, std::size_t end) {
  Points out;
  if (end - first > 1) out.rows.reserve(end - first);
  for (std::size_t i = first; i < end; ++i) {
    const Point& p = points.rows[i];
    out.place(p, points.layers_of(p));
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<SqliteTelemetryStore>> SqliteTelemetryStore::open(
    const std::string& path, std::uint64_t quota_bytes) {
  ODT_ASSIGN(std::unique_ptr<SqliteDb> db, SqliteDb::open(path, "NORMAL"));
  ODT_TRY(migrate(*db, telemetry_migrations()));
  ODT_ASSIGN(const std::int64_t broken,
             db->query_int("SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check<>'ok'"));
  if (broken != 0) return absl::DataLossError(path + ": quick_check found damage");
  std::unique_ptr<SqliteTelemetryStore> store(new SqliteTelemetryStore(std::move(db)));
  ODT_TRY(store->prepare());
  ODT_TRY(store->load_recent());
  ODT_TRY(store->move_old_rows());
  ODT_TRY(store->set_quota(quota_bytes));
  return store;
}

Status SqliteTelemetryStore::set_quota(std::uint64_t quota_bytes) {
  ODT_ASSIGN(const std::int64_t page_size, db_->query_int("PRAGMA page_size"));
  quota_bytes_ = std::max<std::uint64_t>(quota_bytes, 1 << 20);
  return db_->exec(
      absl::StrCat("PRAGMA max_page_count=", quota_bytes_ / static_cast<std::uint64_t>(page_size)));
}

Status SqliteTelemetryStore::prepare() {
  const std::string chunk =
      "SELECT attempt, first_step, last_step, records, data, raw_bytes=0, x256 FROM chunk ";
  const std::pair<Statement*, std::string> statements[] = {
      {&find_run_, "SELECT id FROM run WHERE run_id=?1"},
      {&add_run_, "INSERT INTO run (id, run_id) VALUES (?2, ?1) RETURNING id"},
      {&find_source_, "SELECT id FROM source WHERE board_uid=?1 AND boot_id=?2"},
      {&add_source_, "INSERT INTO source (board_uid, boot_id) VALUES (?1, ?2) RETURNING id"},
      {&get_source_, "SELECT board_uid, boot_id FROM source WHERE id=?1"},
      {&add_log_, "INSERT INTO recent (id, data) VALUES (?1, ?2)"},
      {&drop_log_, "DELETE FROM recent WHERE id<?1"},
      {&last_closed_, "SELECT max(last_step) FROM chunk WHERE run=?1 AND attempt=?2"},
      {&covering_, chunk + "WHERE run=?1 AND attempt=?2 AND first_step<=?3 "
                           "ORDER BY first_step DESC LIMIT 1"},
      {&other_between_,
       "SELECT 1 FROM chunk WHERE run=?1 AND attempt=?2 AND first_step>?3 AND first_step<?4"},
      {&add_chunk_,
       "INSERT INTO chunk (run, attempt, first_step, last_step, data, records, raw_bytes, "
       "rollup_bytes, x256) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
      {&update_chunk_,
       "UPDATE chunk SET records=?4, raw_bytes=?5, rollup_bytes=?6, x256=?7 "
       "WHERE run=?1 AND attempt=?2 AND first_step=?3"},
      {&add_data_, "INSERT INTO chunk_data (x16, raw) VALUES (?1, ?2) RETURNING id"},
      {&update_data_, "UPDATE chunk_data SET x16=?2, raw=?3 WHERE id=?1"},
      {&attempts_, "SELECT DISTINCT attempt FROM chunk WHERE run=?1"},
      // From the chunk that may cover the first step on: those before are not looked at.
      {&range_, chunk + "WHERE run=?1 AND attempt=?2 AND first_step<=?4 AND last_step>=?3 AND "
                        "first_step>=coalesce((SELECT max(first_step) FROM chunk WHERE run=?1 "
                        "AND attempt=?2 AND first_step<=?3), 0) ORDER BY first_step"},
      {&raw_, "SELECT raw FROM chunk_data WHERE id=?1"},
      {&x16_, "SELECT x16 FROM chunk_data WHERE id=?1"},
  };
  for (const auto& [statement, sql] : statements) {
    ODT_ASSIGN(*statement, db_->prepare(sql));
  }
  return {};
}

// ---- writing ----------------------------------------------------------------------------------

Status SqliteTelemetryStore::append(const std::vector<model::TelemetryFrame>& frames) {
  ODT_TRY(begin_write());
  Status status = append_all(frames);
  if (status.ok()) status = db_->commit();
  if (status.ok()) {
    settle();
    return status;
  }
  db_->rollback();
  undo();
  return status;
}

// What undo() and settle() go by is of this transaction alone.
Status SqliteTelemetryStore::begin_write() {
  ODT_TRY(db_->begin());
  ++transaction_;
  before_.clear();
  closing_.clear();
  log_.clear();
  forgotten_ = 0;
  return {};
}

Status SqliteTelemetryStore::append_all(const std::vector<model::TelemetryFrame>& frames) {
  for (const model::TelemetryFrame& frame : frames) ODT_TRY(append_one(frame));
  ODT_TRY(write_log());
  ODT_TRY(close_due());
  return forget_log();
}

Status SqliteTelemetryStore::append_one(const model::TelemetryFrame& frame) {
  if (follow_route(frame)) return {};
  ODT_ASSIGN(const Number run, run_number(frame.run_id, true));
  model::TelemetryFrame old;
  ODT_ASSIGN(const Found found, stored(run, frame, old));
  if (found == Found::kThinned) return {};
  if (found == Found::kNo) return place(run, frame);
  switch (merge_frame(old, frame)) {
    case Merge::kIgnore:
      return {};
    case Merge::kDiverged:
      return diverged(frame);
    case Merge::kReplace:
      break;
  }
  if (frame.gap == 0 && old.gap > 1) {
    const model::TelemetryFrame rest = rest_of_gap(old);
    model::TelemetryFrame next;
    ODT_ASSIGN(const Found there, stored(run, rest, next));
    if (there == Found::kNo) ODT_TRY(place(run, rest));
  }
  return place(run, frame);
}

bool SqliteTelemetryStore::follow_route(const model::TelemetryFrame& frame) {
  const auto it = routes_.find(frame.run_id);
  if (it == routes_.end()) return false;
  const Route& route = it->second;
  Line& line = *route.line;
  const bool newest = frame.step > line.last_closed &&
                      (line.open.rows.empty() || line.open.rows.back().step < frame.step);
  if (!newest || frame.attempt != route.attempt || frame.boot_id != route.from.boot_id ||
      frame.board_uid != route.from.board)
    return false;
  Point point = point_of(frame, layers_);
  point.source = route.source;
  place_open({route.run, route.attempt}, line, point, layers_);
  return true;
}

Result<SqliteTelemetryStore::Found> SqliteTelemetryStore::stored(Number run,
                                                                 const model::TelemetryFrame& like,
                                                                 model::TelemetryFrame& out) {
  const LineKey key{run, like.attempt};
  ODT_ASSIGN(const Line* line, line_of(key));
  const Points* points = &line->open;
  if (like.step <= line->last_closed) {
    ODT_ASSIGN(const std::optional<Chunk> chunk, chunk_of(key, like.step));
    if (chunk && chunk->thinned) return Found::kThinned;
    if (chunk) {
      if (cached_data_ != chunk->data) {
        cached_data_ = 0;
        ODT_ASSIGN(cached_, raw_of(*chunk));
        cached_data_ = chunk->data;
      }
      points = &cached_;
    }
  }
  const Point* point = points->find(like.step);
  if (point == nullptr) return Found::kNo;
  ODT_ASSIGN(out, frame_of(like.run_id, like.attempt, *points, *point));
  return Found::kYes;
}

// New, or in the place of the one with its step.
Status SqliteTelemetryStore::place(Number run, const model::TelemetryFrame& frame) {
  const LineKey key{run, frame.attempt};
  ODT_ASSIGN(Line* const line, line_of(key));
  Point point = point_of(frame, layers_);
  ODT_ASSIGN(point.source, source_number(frame.board_uid, frame.boot_id));
  if (frame.step <= line->last_closed) {
    ODT_ASSIGN(const std::optional<Chunk> chunk, chunk_of(key, frame.step));
    if (chunk) {
      ODT_ASSIGN(Points points, raw_of(*chunk));
      points.place(point, layers_);
      return rewrite_chunk(key, *chunk, points);
    }
  }
  place_open(key, *line, point, layers_);
  routes_[frame.run_id] = {
      run, frame.attempt, point.source, {frame.board_uid, frame.boot_id}, line};
  return {};
}

void SqliteTelemetryStore::place_open(const LineKey& key, Line& line, Point point,
                                      std::string_view layers) {
  const bool at_end = line.open.rows.empty() || line.open.rows.back().step < point.step;
  keep_before(key, line, !at_end);
  if (line.open.rows.empty()) line.oldest_log = next_log_;
  point.log = next_log_;
  line.open.place(point, layers);
  log_.add(static_cast<std::uint64_t>(key.first), key.second, point, layers);
}

Status SqliteTelemetryStore::write_log() {
  if (log_.empty()) return {};
  return add_log_.bind(1, next_log_).bind_blob(2, log_.encode()).run();
}

// Closes the fronts of lines that have enough, or that hold up the log.
Status SqliteTelemetryStore::close_due() {
  const std::int64_t held = next_log_ - kMostLog;
  for (auto& [key, line] : lines_) {
    const std::vector<Point>& rows = line.open.rows;
    if (rows.empty()) continue;
    std::size_t count = 0;
    if (line.oldest_log < held) {
      count = rows.size();
    } else if (rows.size() > kFullChunk) {
      const std::uint32_t boundary = rows.back().step / kLargeWindow * kLargeWindow;
      count = line.open.at_or_after(boundary);
      if (count < kFullChunk) count = 0;
    }
    if (count != 0) ODT_TRY(close_front(key, line, count));
  }
  return {};
}

Status SqliteTelemetryStore::close_front(const LineKey& key, const Line& line, std::size_t count) {
  const Points front = slice(line.open, 0, count);
  if (front.rows.front().step > line.last_closed)
    ODT_TRY(write_chunk(key, front));
  else
    ODT_TRY(close_out_of_order(key, front));
  Closing closing{key, count, std::max<std::int64_t>(line.last_closed, front.rows.back().step), 0};
  for (std::size_t i = count; i < line.open.rows.size(); ++i)
    closing.oldest_log =
        i == count ? line.open.rows[i].log : std::min(closing.oldest_log, line.open.rows[i].log);
  closing_.push_back(closing);
  return {};
}

// Records that came after later ones were closed: chunks must not enclose each other.
Status SqliteTelemetryStore::close_out_of_order(const LineKey& key, const Points& points) {
  std::size_t first = 0;
  for (std::size_t i = 1; i <= points.rows.size(); ++i) {
    bool cut = i == points.rows.size();
    if (!cut) {
      other_between_.bind(1, key.first).bind(2, key.second);
      other_between_.bind(3, points.rows[i - 1].step).bind(4, points.rows[i].step);
      ODT_ASSIGN(cut, other_between_.step());
      other_between_.reset();
    }
    if (!cut) continue;
    ODT_TRY(write_chunk(key, slice(points, first, i)));
    first = i;
  }
  return {};
}

Status SqliteTelemetryStore::write_chunk(const LineKey& key, const Points& points) {
  const Rollup small = roll_up(points, kSmallWindow);
  const std::string x16 = encode_rollup(small), raw = encode_chunk(points);
  const std::string x256 = encode_rollup(roll_up(small, kLargeWindow / kSmallWindow));
  add_data_.bind_blob(1, x16).bind_blob(2, raw);
  ODT_ASSIGN(const bool row, add_data_.step());
  const std::int64_t data = row ? add_data_.column_int(0) : 0;
  add_data_.reset();
  return add_chunk_.bind(1, key.first)
      .bind(2, key.second)
      .bind(3, points.rows.front().step)
      .bind(4, points.rows.back().step)
      .bind(5, data)
      .bind(6, i64(points.rows.size()))
      .bind(7, i64(raw.size()))
      .bind(8, i64(x16.size() + x256.size()))
      .bind_blob(9, x256)
      .run();
}

Status SqliteTelemetryStore::rewrite_chunk(const LineKey& key, const Chunk& chunk,
                                           const Points& points) {
  cached_data_ = 0;
  const Rollup small = roll_up(points, kSmallWindow);
  const std::string x16 = encode_rollup(small), raw = encode_chunk(points);
  const std::string x256 = encode_rollup(roll_up(small, kLargeWindow / kSmallWindow));
  ODT_TRY(update_data_.bind(1, chunk.data).bind_blob(2, x16).bind_blob(3, raw).run());
  return update_chunk_.bind(1, key.first)
      .bind(2, key.second)
      .bind(3, chunk.first)
      .bind(4, i64(points.rows.size()))
      .bind(5, i64(raw.size()))
      .bind(6, i64(x16.size() + x256.size()))
      .bind_blob(7, x256)
      .run();
}

// Rows of the log whose records are all in chunks.
Status SqliteTelemetryStore::forget_log() {
  std::int64_t oldest = next_log_ + (log_.empty() ? 0 : 1);
  std::map<LineKey, const Closing*> closed;
  for (const Closing& c : closing_) closed[c.key] = &c;
  for (const auto& [key, line] : lines_) {
    std::size_t left = line.open.rows.size();
    std::int64_t first = line.oldest_log;
    if (const auto it = closed.find(key); it != closed.end()) {
      left -= it->second->rows;
      first = it->second->oldest_log;
    }
    if (left != 0) oldest = std::min(oldest, first);
  }
  if (oldest <= first_log_) return {};
  forgotten_ = oldest;
  return drop_log_.bind(1, oldest).run();
}

void SqliteTelemetryStore::keep_before(const LineKey& key, Line& line, bool whole) {
  if (line.kept_in != transaction_) {
    line.kept_in = transaction_;
    line.kept_at = before_.size();
    before_.push_back(
        {key, line.open.rows.size(), line.open.layer_bytes.size(), nullptr, line.oldest_log});
  }
  Before& before = before_[line.kept_at];
  if (!whole || before.whole) return;
  before.whole = std::make_unique<Points>(line.open);
  before.whole->rows.resize(before.rows);
  before.whole->layer_bytes.resize(before.bytes);
}

void SqliteTelemetryStore::undo() {
  for (Before& before : before_) {
    Line& line = lines_[before.key];
    if (before.whole) {
      line.open = std::move(*before.whole);
    } else {
      line.open.rows.resize(before.rows);
      line.open.layer_bytes.resize(before.bytes);
    }
    line.oldest_log = before.oldest_log;
  }
  runs_.clear();  // may hold numbers that were rolled back
  sources_.clear();
  source_names_.clear();
  routes_.clear();
  std::erase_if(lines_, [](const auto& l) { return l.second.open.rows.empty(); });
  cached_data_ = 0;
}

void SqliteTelemetryStore::settle() {
  if (!log_.empty()) ++next_log_;
  first_log_ = std::max(first_log_, forgotten_);
  for (const Closing& closing : closing_) {
    Line& line = lines_[closing.key];
    line.open = slice(line.open, closing.rows, line.open.rows.size());
    line.last_closed = closing.last_closed;
    line.oldest_log = closing.oldest_log;
  }
  if (lines_.size() <= kIdleLines) return;
  routes_.clear();
  std::erase_if(lines_, [](const auto& l) { return l.second.open.rows.empty(); });
}

// ---- numbers ----------------------------------------------------------------------------------

Result<SqliteTelemetryStore::Line*> SqliteTelemetryStore::line_of(const LineKey& key) {
  if (const auto it = lines_.find(key); it != lines_.end()) return &it->second;
  last_closed_.bind(1, key.first).bind(2, key.second);
  ODT_ASSIGN(const bool row, last_closed_.step());
  const std::int64_t last = row && !last_closed_.is_null(0) ? last_closed_.column_int(0) : -1;
  last_closed_.reset();
  Line& line = lines_[key];
  line.last_closed = last;
  return &line;
}

Result<std::optional<SqliteTelemetryStore::Chunk>> SqliteTelemetryStore::chunk_of(
    const LineKey& key, std::uint32_t step) {
  covering_.bind(1, key.first).bind(2, key.second).bind(3, step);
  ODT_ASSIGN(const bool row, covering_.step());
  std::optional<Chunk> out;
  if (row && covering_.column_int(2) >= step)
    out = Chunk{key.second,
                static_cast<std::uint32_t>(covering_.column_int(1)),
                static_cast<std::uint32_t>(covering_.column_int(2)),
                static_cast<std::uint32_t>(covering_.column_int(3)),
                covering_.column_int(4),
                covering_.column_int(5) != 0,
                {}};
  covering_.reset();
  return out;
}

Result<SqliteTelemetryStore::Number> SqliteTelemetryStore::run_number(const Uuid& run,
                                                                      bool create) {
  if (const auto it = runs_.find(run); it != runs_.end()) return it->second;
  for (Statement* statement : {&find_run_, &add_run_}) {
    if (statement == &add_run_ && !create) return 0;
    statement->bind_blob(1, run.str());
    if (statement == &add_run_) statement->bind(2, next_run_++);
    ODT_ASSIGN(const bool row, statement->step());
    const std::int64_t id = row ? statement->column_int(0) : 0;
    statement->reset();
    if (row) return runs_[run] = id;
  }
  return absl::InternalError(db_->path() + ": no number for a run");
}

Result<std::uint32_t> SqliteTelemetryStore::source_number(const BoardUid& uid,
                                                          std::uint64_t boot_id) {
  const auto key = std::pair(uid, boot_id);
  if (const auto it = sources_.find(key); it != sources_.end()) return it->second;
  for (Statement* statement : {&find_source_, &add_source_}) {
    statement->bind_blob(1, uid.str()).bind(2, static_cast<std::int64_t>(boot_id));
    ODT_ASSIGN(const bool row, statement->step());
    const auto id = static_cast<std::uint32_t>(row ? statement->column_int(0) : 0);
    statement->reset();
    if (!row) continue;
    source_names_[id] = {uid, boot_id};
    return sources_[key] = id;
  }
  return absl::InternalError(db_->path() + ": no number for a board's boot");
}

Result<const SqliteTelemetryStore::Source*> SqliteTelemetryStore::source(std::uint32_t number) {
  if (const auto it = source_names_.find(number); it != source_names_.end()) return &it->second;
  get_source_.bind(1, number);
  ODT_ASSIGN(const bool row, get_source_.step());
  Source found;
  if (row) {
    const std::string uid = get_source_.column_bytes(0);
    found.board.bytes.assign(uid.begin(), uid.end());
    found.boot_id = static_cast<std::uint64_t>(get_source_.column_int(1));
  }
  get_source_.reset();
  if (!row) return absl::DataLossError(db_->path() + ": a record is of a board that is not there");
  return &(source_names_[number] = found);
}

}  // namespace odt::store

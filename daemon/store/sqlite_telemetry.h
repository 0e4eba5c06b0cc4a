#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "store/sqlite_db.h"
#include "store/store.h"
#include "store/telemetry_points.h"
#include "store/telemetry_series.h"

namespace odt::store {

// telemetry.db: synchronous=NORMAL; records in chunks of 256 steps, the newest ones in a log and in
// memory. Concurrency: one thread.
class SqliteTelemetryStore final : public TelemetryStore {
 public:
  // quota_bytes: upper bound of the file; at least 1 MiB. Errors: DATA_LOSS (corrupt),
  // FAILED_PRECONDITION (newer schema), those of SqliteDb.
  static Result<std::unique_ptr<SqliteTelemetryStore>> open(const std::string& path,
                                                            std::uint64_t quota_bytes);
  Status append(const std::vector<model::TelemetryFrame>& frames) override;
  Result<Frames> read(const Range& range) override;
  Result<Part> read_part(const Range& range) override;
  Result<SeriesAnswer> series(const SeriesQuery& query) override;
  Result<Use> use(const Uuid& run) override;
  Result<Use> use_of_all() override;
  Result<std::uint64_t> thin(const Uuid& run) override;
  Result<std::uint64_t> runs_thinned() override;
  Result<Room> room() override;
  Result<std::uint64_t> size_bytes() override;
  Result<std::uint64_t> erase(const Uuid& run) override;

 private:
  using Number = std::int64_t;
  // Records of a (run, attempt) that no chunk has yet.
  struct Line {
    Points open;
    std::int64_t last_closed = -1;  // highest step of its chunks
    std::int64_t oldest_log = 0;    // row of `recent` that holds the oldest of `open`
    std::int64_t kept_in = 0;       // transaction that has a Before of it, and where
    std::size_t kept_at = 0;
  };
  using LineKey = std::pair<Number, std::uint32_t>;
  // A line as it was before this append.
  struct Before {
    LineKey key;
    std::size_t rows = 0, bytes = 0;
    std::unique_ptr<Points> whole;  // where more was done than to append
    std::int64_t oldest_log = 0;
  };
  struct Closing {
    LineKey key;
    std::size_t rows = 0;  // from the front
    std::int64_t last_closed = 0, oldest_log = 0;
  };
  struct Chunk {
    std::uint32_t attempt = 0, first = 0, last = 0, records = 0;
    std::int64_t data = 0;
    bool thinned = false;
    std::string x256;
  };
  struct Source {
    BoardUid board;
    std::uint64_t boot_id = 0;
  };
  // Where the last record of a run went; the next one mostly goes behind it.
  struct Route {
    Number run = 0;
    std::uint32_t attempt = 0, source = 0;
    Source from;
    Line* line = nullptr;
  };
  using Visit = std::function<void(const Points&, const Point&)>;

  explicit SqliteTelemetryStore(std::unique_ptr<SqliteDb> db) : db_(std::move(db)) {}
  Status prepare();
  Status set_quota(std::uint64_t quota_bytes);
  Status load_recent();
  Status move_old_rows();
  Status move_old_run(Number run);

  // sqlite_telemetry.cpp: writing.
  Status begin_write();
  Status append_all(const std::vector<model::TelemetryFrame>& frames);
  Status append_one(const model::TelemetryFrame& frame);
  Status write_log();
  Status place(Number run, const model::TelemetryFrame& frame);
  void place_open(const LineKey& key, Line& line, Point point, std::string_view layers);
  // True: it is the newest record of its run, and is in its place.
  bool follow_route(const model::TelemetryFrame& frame);
  Status close_due();
  Status close_front(const LineKey& key, const Line& line, std::size_t rows);
  Status close_out_of_order(const LineKey& key, const Points& points);
  Status write_chunk(const LineKey& key, const Points& points);
  Status rewrite_chunk(const LineKey& key, const Chunk& chunk, const Points& points);
  Status forget_log();
  void keep_before(const LineKey& key, Line& line, bool whole);
  void undo();
  void settle();
  Result<Line*> line_of(const LineKey& key);
  Result<Number> run_number(const Uuid& run, bool create);
  Result<std::uint32_t> source_number(const BoardUid& uid, std::uint64_t boot_id);
  Result<const Source*> source(std::uint32_t number);
  Result<std::optional<Chunk>> chunk_of(const LineKey& key, std::uint32_t step);
  // The record of a step, wherever it is. kThinned: its chunk has no raw records any more.
  enum class Found { kNo, kYes, kThinned };
  Result<Found> stored(Number run, const model::TelemetryFrame& like, model::TelemetryFrame& out);

  // sqlite_telemetry_read.cpp: reading.
  Result<std::vector<std::uint32_t>> attempts_of(Number run, std::uint32_t attempt);
  Result<std::vector<Chunk>> chunks_in(Number run, std::uint32_t attempt, std::uint32_t first,
                                       std::uint32_t last);
  // Where a part of the attempt ends that begins with the range and has about max_frames.
  Result<std::uint32_t> part_end(Number run, std::uint32_t attempt, const Range& range);
  Result<Points> raw_of(const Chunk& chunk);
  Result<Rollup> small_windows_of(const Chunk& chunk, const std::vector<std::size_t>& wanted);
  const Points& open_of(Number run, std::uint32_t attempt) const;
  // In order of steps. wants: whether any of the next `records` is needed; they are passed over
  // where it says no.
  Status visit(Number run, std::uint32_t attempt, std::uint32_t first, std::uint32_t last,
               const Visit& fn, const std::function<bool(std::uint32_t records)>& wants = {});
  Result<std::uint32_t> count(Number run, std::uint32_t attempt, std::uint32_t first,
                              std::uint32_t last);
  Result<Frames> read_newest(const Range& range, Number run,
                             const std::vector<std::uint32_t>& attempts);
  Result<model::TelemetryFrame> frame_of(const Uuid& run, std::uint32_t attempt,
                                         const Points& points, const Point& point);
  Result<Use> use_where(const std::string& where);

  // sqlite_telemetry_series.cpp
  struct SeriesJob;
  Status add_bounds(SeriesJob& job);
  Status add_chunk(SeriesJob& job, const Chunk& chunk);
  Status add_small_windows(SeriesJob& job, const Chunk& chunk, const std::vector<bool>& large,
                           const Rollup& coarse);
  Status add_contested(SeriesJob& job);

  std::unique_ptr<SqliteDb> db_;
  std::uint64_t quota_bytes_ = 0;
  Statement find_run_, add_run_, find_source_, add_source_, get_source_;
  Statement add_log_, drop_log_, last_closed_, covering_, add_chunk_, update_chunk_, add_data_,
      update_data_;
  Statement attempts_, range_, raw_, x16_, other_between_;
  std::map<Uuid, Number> runs_;
  std::map<std::pair<BoardUid, std::uint64_t>, std::uint32_t> sources_;
  std::map<std::uint32_t, Source> source_names_;
  std::map<LineKey, Line> lines_;
  std::map<Uuid, std::uint64_t> cuts_;  // Part::cuts
  std::int64_t next_log_ = 1, first_log_ = 0;
  Number next_run_ = 1;
  // One transaction under way.
  std::int64_t transaction_ = 0;
  std::vector<Before> before_;
  std::vector<Closing> closing_;
  LogWriter log_;
  std::int64_t forgotten_ = 0;
  std::unordered_map<Uuid, Route, IdHash> routes_;
  std::string layers_;  // of one record
  // The chunk that was last looked into for a record.
  std::int64_t cached_data_ = 0;
  Points cached_;
};

}  // namespace odt::store

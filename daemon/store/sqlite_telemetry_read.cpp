#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "store/frame_choice.h"
#include "store/sqlite_telemetry.h"

namespace odt::store {
namespace {

constexpr std::uint32_t kLastStep = 0xFFFFFFFF;

}  // namespace

const Points& SqliteTelemetryStore::open_of(Number run, std::uint32_t attempt) const {
  static const Points kNone;
  const auto it = lines_.find({run, attempt});
  return it == lines_.end() ? kNone : it->second.open;
}

// Ascending.
Result<std::vector<std::uint32_t>> SqliteTelemetryStore::attempts_of(Number run,
                                                                     std::uint32_t attempt) {
  if (attempt != 0) return std::vector<std::uint32_t>{attempt};
  std::set<std::uint32_t> found;
  attempts_.bind(1, run);
  while (true) {
    ODT_ASSIGN(const bool more, attempts_.step());
    if (!more) break;
    found.insert(static_cast<std::uint32_t>(attempts_.column_int(0)));
  }
  attempts_.reset();
  for (auto it = lines_.lower_bound({run, 0}); it != lines_.end() && it->first.first == run; ++it)
    if (!it->second.open.rows.empty()) found.insert(it->first.second);
  return std::vector<std::uint32_t>(found.begin(), found.end());
}

Result<std::vector<SqliteTelemetryStore::Chunk>> SqliteTelemetryStore::chunks_in(
    Number run, std::uint32_t attempt, std::uint32_t first, std::uint32_t last) {
  std::vector<Chunk> out;
  range_.bind(1, run).bind(2, attempt).bind(3, first).bind(4, last);
  while (true) {
    ODT_ASSIGN(const bool more, range_.step());
    if (!more) break;
    out.push_back({attempt, static_cast<std::uint32_t>(range_.column_int(1)),
                   static_cast<std::uint32_t>(range_.column_int(2)),
                   static_cast<std::uint32_t>(range_.column_int(3)), range_.column_int(4),
                   range_.column_int(5) != 0, std::string(range_.column_view(6))});
  }
  range_.reset();
  return out;
}

Result<Points> SqliteTelemetryStore::raw_of(const Chunk& chunk) {
  raw_.bind(1, chunk.data);
  ODT_ASSIGN(const bool row, raw_.step());
  Result<Points> points = absl::DataLossError(db_->path() + ": a chunk has no records");
  if (row) points = decode_chunk(raw_.column_view(0));
  raw_.reset();
  return points;
}

Result<Rollup> SqliteTelemetryStore::small_windows_of(const Chunk& chunk,
                                                      const std::vector<std::size_t>& wanted) {
  x16_.bind(1, chunk.data);
  ODT_ASSIGN(const bool row, x16_.step());
  Result<Rollup> rollup = absl::DataLossError(db_->path() + ": a chunk has no rollups");
  if (row) rollup = decode_rollup(x16_.column_view(0), wanted);
  x16_.reset();
  return rollup;
}

Result<model::TelemetryFrame> SqliteTelemetryStore::frame_of(const Uuid& run, std::uint32_t attempt,
                                                             const Points& points,
                                                             const Point& point) {
  ODT_ASSIGN(const Source* from, source(point.source));
  model::TelemetryFrame frame;
  frame.run_id = run;
  frame.attempt = attempt;
  frame.board_uid = from->board;
  frame.boot_id = from->boot_id;
  fill_frame(points, point, frame);
  return frame;
}

Status SqliteTelemetryStore::visit(Number run, std::uint32_t attempt, std::uint32_t first,
                                   std::uint32_t last, const Visit& fn,
                                   const std::function<bool(std::uint32_t records)>& wants) {
  ODT_ASSIGN(const std::vector<Chunk> chunks, chunks_in(run, attempt, first, last));
  const Points& open = open_of(run, attempt);
  std::size_t next = open.at_or_after(first);
  const auto open_up_to = [&](std::uint64_t end) {
    for (; next < open.rows.size() && open.rows[next].step < end; ++next)
      if (open.rows[next].step <= last) fn(open, open.rows[next]);
  };
  for (const Chunk& chunk : chunks) {
    open_up_to(chunk.first);
    const bool whole = chunk.first >= first && chunk.last <= last;
    if (chunk.thinned || (whole && wants && !wants(chunk.records))) continue;
    ODT_ASSIGN(const Points points, raw_of(chunk));
    for (std::size_t i = points.at_or_after(first);
         i < points.rows.size() && points.rows[i].step <= last; ++i)
      fn(points, points.rows[i]);
  }
  open_up_to(std::uint64_t{last} + 1);
  return {};
}

Result<std::uint32_t> SqliteTelemetryStore::count(Number run, std::uint32_t attempt,
                                                  std::uint32_t first, std::uint32_t last) {
  std::uint32_t total = 0;
  ODT_TRY(visit(
      run, attempt, first, last, [&](const Points&, const Point&) { ++total; },
      [&](std::uint32_t records) {
        total += records;
        return false;
      }));
  return total;
}

Result<TelemetryStore::Frames> SqliteTelemetryStore::read(const Range& range) {
  Frames out;
  ODT_ASSIGN(const Number run, run_number(range.run, false));
  if (run == 0) return out;
  ODT_ASSIGN(const std::vector<std::uint32_t> attempts, attempts_of(run, range.attempt));
  if (attempts.size() > 1) return read_newest(range, run, attempts);
  if (attempts.empty()) return out;
  const std::uint32_t attempt = attempts.front();
  ODT_ASSIGN(out.total, count(run, attempt, range.first_step, range.last_step));
  FrameChoice choice(out.total, range.max_frames);
  std::uint32_t index = 0;
  Status status;
  ODT_TRY(visit(
      run, attempt, range.first_step, range.last_step,
      [&](const Points& points, const Point& point) {
        if (!choice.takes(index++) || !status.ok()) return;
        auto frame = frame_of(range.run, attempt, points, point);
        if (frame.ok()) out.frames.push_back(std::move(*frame));
        status.Update(frame.status());
      },
      [&](std::uint32_t records) {
        if (choice.takes_within(index, records)) return true;
        index += records;
        return false;
      }));
  ODT_TRY(status);
  return out;
}

// Of every step the record of the newest attempt that has it.
Result<TelemetryStore::Frames> SqliteTelemetryStore::read_newest(
    const Range& range, Number run, const std::vector<std::uint32_t>& attempts) {
  std::map<std::uint32_t, std::uint32_t> newest;
  for (const std::uint32_t attempt : attempts)
    ODT_TRY(visit(run, attempt, range.first_step, range.last_step,
                  [&](const Points&, const Point& p) { newest[p.step] = attempt; }));
  Frames out;
  out.total = static_cast<std::uint32_t>(newest.size());
  FrameChoice choice(out.total, range.max_frames);
  std::map<std::uint32_t, std::uint32_t> chosen;
  std::uint32_t index = 0;
  for (const auto& [step, attempt] : newest)
    if (choice.takes(index++)) chosen[step] = attempt;
  Status status;
  for (const std::uint32_t attempt : attempts)
    ODT_TRY(visit(run, attempt, range.first_step, range.last_step,
                  [&](const Points& points, const Point& p) {
                    const auto it = chosen.find(p.step);
                    if (it == chosen.end() || it->second != attempt || !status.ok()) return;
                    auto frame = frame_of(range.run, attempt, points, p);
                    if (frame.ok()) out.frames.push_back(std::move(*frame));
                    status.Update(frame.status());
                  }));
  ODT_TRY(status);
  std::sort(out.frames.begin(), out.frames.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

Result<std::uint32_t> SqliteTelemetryStore::part_end(Number run, std::uint32_t attempt,
                                                     const Range& range) {
  std::uint32_t end = range.last_step;
  std::uint64_t records = 0;
  range_.bind(1, run).bind(2, attempt).bind(3, range.first_step).bind(4, range.last_step);
  while (true) {
    ODT_ASSIGN(const bool more, range_.step());
    if (!more) break;
    if (range_.column_int(5) == 0) records += static_cast<std::uint64_t>(range_.column_int(3));
    if (records < range.max_frames) continue;
    end = std::min(end, static_cast<std::uint32_t>(range_.column_int(2)));
    break;
  }
  range_.reset();
  return end;
}

Result<TelemetryStore::Part> SqliteTelemetryStore::read_part(const Range& range) {
  Part out;
  out.next_step = std::uint64_t{kLastStep} + 1;
  if (const auto cuts = cuts_.find(range.run); cuts != cuts_.end()) out.cuts = cuts->second;
  ODT_ASSIGN(const Number run, run_number(range.run, false));
  if (run == 0) return out;
  ODT_ASSIGN(const std::vector<std::uint32_t> attempts, attempts_of(run, range.attempt));
  // The part ends where every attempt's next chunk has enough before it.
  std::uint32_t end = range.last_step;
  for (const std::uint32_t attempt : attempts) {
    ODT_ASSIGN(const std::uint32_t enough, part_end(run, attempt, range));
    end = std::min(end, enough);
  }
  ODT_ASSIGN(Frames frames, read({range.run, range.attempt, range.first_step, end, kLastStep}));
  out.frames = std::move(frames.frames);
  if (end < range.last_step) out.next_step = std::uint64_t{end} + 1;
  return out;
}

}  // namespace odt::store

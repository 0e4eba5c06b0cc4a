#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "store/sqlite_telemetry.h"

// Series from rollups: large windows inside of a bucket, small ones at its edges, records at the
// ends of the range and where several attempts have the same steps.
namespace odt::store {
namespace {

bool apart(std::uint64_t first, std::uint64_t last, const Buckets& buckets) {
  return last < buckets.first() || first > buckets.last();
}

}  // namespace

struct SqliteTelemetryStore::SeriesJob {
  const SeriesQuery& query;
  Number run = 0;
  std::vector<std::uint32_t> attempts;  // ascending
  std::vector<Chunk> chunks;            // in the range, of all attempts
  std::optional<Buckets> buckets;
  std::vector<std::size_t> wanted;  // series indices; never empty, which would mean all
  // Large windows that more than one attempt has records in.
  std::set<std::uint32_t> contested;

  bool is_contested(std::uint32_t step) const {
    return !contested.empty() && contested.contains(step / kLargeWindow);
  }
};

// First and last record in the range, and which windows are contested.
Status SqliteTelemetryStore::add_bounds(SeriesJob& job) {
  const SeriesQuery& q = job.query;
  std::uint32_t first = 0xFFFFFFFF, last = 0;
  bool thinned = false, any = false;
  std::map<std::uint32_t, std::uint32_t> owner;  // window -> attempt
  const auto seen = [&](std::uint32_t from, std::uint32_t to) {
    any = true;
    first = std::min(first, from);
    last = std::max(last, to);
  };
  const auto claim = [&](std::uint32_t attempt, std::uint32_t window) {
    if (job.attempts.size() < 2) return;
    const auto [it, fresh] = owner.try_emplace(window, attempt);
    if (!fresh && it->second != attempt) job.contested.insert(window);
  };
  for (const Chunk& chunk : job.chunks) {
    thinned = thinned || chunk.thinned;
    for (std::uint64_t w = chunk.first / kLargeWindow; w <= chunk.last / kLargeWindow; ++w)
      claim(chunk.attempt, static_cast<std::uint32_t>(w));
    if ((chunk.first >= q.first_step && chunk.last <= q.last_step) || chunk.thinned) {
      seen(std::max(chunk.first, q.first_step), std::min(chunk.last, q.last_step));
      continue;
    }
    ODT_ASSIGN(const Points points, raw_of(chunk));
    for (const Point& p : points.rows)
      if (p.step >= q.first_step && p.step <= q.last_step) seen(p.step, p.step);
  }
  for (const std::uint32_t attempt : job.attempts)
    for (const Point& p : open_of(job.run, attempt).rows) {
      if (p.step < q.first_step || p.step > q.last_step) continue;
      seen(p.step, p.step);
      claim(attempt, p.step / kLargeWindow);
    }
  if (!any) return {};
  job.buckets.emplace(q, first, last, thinned);
  constexpr std::size_t kMostSeries = 2 + 3 * 255;
  job.wanted = job.buckets->wanted(kMostSeries);
  if (job.wanted.empty()) job.wanted.push_back(kMostSeries);
  return {};
}

Status SqliteTelemetryStore::add_chunk(SeriesJob& job, const Chunk& chunk) {
  Buckets& buckets = *job.buckets;
  ODT_ASSIGN(const Rollup large, decode_rollup(chunk.x256, job.wanted));
  std::vector<bool> split(large.windows.size());
  bool any_split = false;
  for (std::size_t w = 0; w < large.windows.size(); ++w) {
    const std::uint32_t start = large.windows[w].index * kLargeWindow;
    const std::uint32_t first = std::max(start, chunk.first);
    const std::uint32_t last = std::min(start + (kLargeWindow - 1), chunk.last);
    if (apart(first, last, buckets) || job.is_contested(start)) continue;
    if (buckets.holds(first, last)) {
      buckets.add(large, w, first, chunk.thinned);
    } else {
      split[w] = any_split = true;
    }
  }
  return any_split ? add_small_windows(job, chunk, split, large) : Status();
}

Status SqliteTelemetryStore::add_small_windows(SeriesJob& job, const Chunk& chunk,
                                               const std::vector<bool>& split,
                                               const Rollup& large) {
  Buckets& buckets = *job.buckets;
  std::set<std::uint32_t> inside;
  for (std::size_t w = 0; w < split.size(); ++w)
    if (split[w]) inside.insert(large.windows[w].index);
  ODT_ASSIGN(const Rollup small, small_windows_of(chunk, job.wanted));
  std::optional<Points> points;
  for (std::size_t w = 0; w < small.windows.size(); ++w) {
    const std::uint32_t start = small.windows[w].index * kSmallWindow;
    if (!inside.contains(start / kLargeWindow)) continue;
    const std::uint32_t first = std::max(start, chunk.first);
    const std::uint32_t last = std::min(start + (kSmallWindow - 1), chunk.last);
    if (apart(first, last, buckets)) continue;
    if (chunk.thinned || buckets.holds(first, last)) {
      buckets.add(small, w, first, chunk.thinned);
      continue;
    }
    if (!points) {
      ODT_ASSIGN(points, raw_of(chunk));
    }
    const std::uint32_t from = std::max(first, buckets.first());
    const std::uint32_t to = std::min(last, buckets.last());
    for (std::size_t i = points->at_or_after(from);
         i < points->rows.size() && points->rows[i].step <= to; ++i)
      buckets.add(*points, points->rows[i]);
  }
  return {};
}

// Newest attempt first; a step that a newer one has is passed over. Of thinned chunks only small
// windows are known: a newer attempt's takes the place of the older ones' whole window.
Status SqliteTelemetryStore::add_contested(SeriesJob& job) {
  Buckets& buckets = *job.buckets;
  std::set<std::uint32_t> taken, taken_windows;
  for (auto attempt = job.attempts.rbegin(); attempt != job.attempts.rend(); ++attempt) {
    std::vector<std::uint32_t> steps, windows;
    const auto add = [&](const Points& points, const Point& p) {
      if (p.step < buckets.first() || p.step > buckets.last() || !job.is_contested(p.step) ||
          taken.contains(p.step) || taken_windows.contains(p.step / kSmallWindow))
        return;
      buckets.add(points, p);
      steps.push_back(p.step);
    };
    for (const Chunk& chunk : job.chunks) {
      if (chunk.attempt != *attempt) continue;
      bool any = false;
      for (std::uint64_t w = chunk.first / kLargeWindow; w <= chunk.last / kLargeWindow; ++w)
        any = any || job.contested.contains(static_cast<std::uint32_t>(w));
      if (!any) continue;
      if (!chunk.thinned) {
        ODT_ASSIGN(const Points points, raw_of(chunk));
        for (const Point& p : points.rows) add(points, p);
        continue;
      }
      ODT_ASSIGN(const Rollup small, small_windows_of(chunk, job.wanted));
      for (std::size_t w = 0; w < small.windows.size(); ++w) {
        const std::uint32_t index = small.windows[w].index, start = index * kSmallWindow;
        if (!job.is_contested(start) || taken_windows.contains(index) ||
            apart(start, std::uint64_t{start} + kSmallWindow - 1, buckets))
          continue;
        buckets.add(small, w, start, true);
        windows.push_back(index);
      }
    }
    const Points& open = open_of(job.run, *attempt);
    for (const Point& p : open.rows) add(open, p);
    taken.insert(steps.begin(), steps.end());
    taken_windows.insert(windows.begin(), windows.end());
  }
  return {};
}

Result<SeriesAnswer> SqliteTelemetryStore::series(const SeriesQuery& query) {
  SeriesJob job{query, 0, {}, {}, {}, {}, {}};
  ODT_ASSIGN(job.run, run_number(query.run, false));
  if (job.run == 0) return SeriesAnswer{};
  ODT_ASSIGN(job.attempts, attempts_of(job.run, query.attempt));
  for (const std::uint32_t attempt : job.attempts) {
    ODT_ASSIGN(std::vector<Chunk> chunks,
               chunks_in(job.run, attempt, query.first_step, query.last_step));
    std::move(chunks.begin(), chunks.end(), std::back_inserter(job.chunks));
  }
  ODT_TRY(add_bounds(job));
  if (!job.buckets) return SeriesAnswer{};
  Buckets& buckets = *job.buckets;
  for (const Chunk& chunk : job.chunks) ODT_TRY(add_chunk(job, chunk));
  for (const std::uint32_t attempt : job.attempts) {
    const Points& open = open_of(job.run, attempt);
    for (const Point& p : open.rows)
      if (p.step >= buckets.first() && p.step <= buckets.last() && !job.is_contested(p.step))
        buckets.add(open, p);
  }
  if (!job.contested.empty()) ODT_TRY(add_contested(job));
  return std::move(buckets).finish();
}

}  // namespace odt::store

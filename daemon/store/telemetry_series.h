#pragma once

#include <map>

#include "store/store.h"
#include "store/telemetry_points.h"

// Series of a run for charts: buckets, and the rollups that make them quick. Inside of the room.
namespace odt::store {

inline constexpr std::uint32_t kSmallWindow = 16,
                               kLargeWindow = 256;  // steps of a rollup's windows

// Minimum, maximum, sum and number of a series' values.
struct Stat {
  std::int64_t min = 0, max = 0, sum = 0;
  std::uint32_t count = 0;
  void add(std::int64_t value) { add({value, value, value, 1}); }
  void add(const Stat& s) {
    if (s.count == 0) return;
    min = count == 0 ? s.min : std::min(min, s.min);
    max = count == 0 ? s.max : std::max(max, s.max);
    sum += s.sum;
    count += s.count;
  }
  bool operator==(const Stat&) const = default;
};

// SERIES_KIND_LOSS of the API: floor(sum * 2^(exp2 + 16) / count), within +-2^40.
std::int64_t loss_q16(std::int64_t sum, int exp2, std::uint32_t count);

// Columns of a record in this order: loss, correct, then of each layer bits, shift, k.
inline std::size_t series_index(SeriesKind kind, std::uint32_t layer) {
  if (kind == SeriesKind::kLoss) return 0;
  if (kind == SeriesKind::kCorrect) return 1;
  return 2 + 3 * std::size_t{layer} +
         (static_cast<std::size_t>(kind) - static_cast<std::size_t>(SeriesKind::kBits));
}

// Windows of `width` steps of a chunk, in order; only those that hold records.
struct Rollup {
  struct Window {
    std::uint32_t index = 0;    // first step / width
    std::uint32_t records = 0;  // with those of gaps
    std::uint64_t gap_steps = 0;
  };
  std::vector<Window> windows;
  std::vector<std::vector<Stat>> series;  // [series_index][window]; empty: not asked for
};
Rollup roll_up(const Points& points, std::uint32_t width);
Rollup roll_up(const Rollup& fine, std::uint32_t factor);  // of windows `factor` times as wide
// u8 version 1, varints windows, series; per window index delta, records, gap steps; bytes of each
// series; series (constant ones are one value). Errors: DATA_LOSS.
std::string encode_rollup(const Rollup& rollup);
// wanted: series indices, ascending; empty: all.
Result<Rollup> decode_rollup(std::string_view data, const std::vector<std::size_t>& wanted);

// Collects a query's answer: bounds first, then values in any order.
class Buckets {
 public:
  // Records from step `first` to `last` that there are. thinned: boundaries are multiples of 16.
  Buckets(const SeriesQuery& query, std::uint32_t first, std::uint32_t last, bool thinned);
  // Bucket of a step within the bounds.
  std::size_t of(std::uint32_t step);
  // All of these steps are in one bucket, and within the bounds.
  bool holds(std::uint32_t first, std::uint32_t last);
  std::uint32_t first() const { return answer_.first_step; }
  std::uint32_t last() const { return answer_.last_step; }

  void add(const Points& points, const Point& point);
  // Window w of a rollup. thinned: its raw records are gone.
  void add(const Rollup& rollup, std::size_t w, std::uint32_t step, bool thinned);
  // Series that are wanted, as far as they are known to exist.
  std::vector<std::size_t> wanted(std::size_t series) const;
  SeriesAnswer finish() &&;

 private:
  struct Column {
    SeriesKind kind;
    std::uint32_t layer;
    std::vector<Stat> stats;
  };
  bool is_wanted(SeriesKind kind, std::uint32_t layer) const;
  Column& column(SeriesKind kind, std::uint32_t layer);
  void count(std::size_t bucket, std::uint32_t records, std::uint64_t gap_steps);

  const SeriesQuery& query_;
  SeriesAnswer answer_;
  std::size_t last_bucket_ = 0;
  std::vector<Column> columns_;                // by kind and layer as met
  std::map<std::size_t, std::size_t> places_;  // series_index -> columns_
};

}  // namespace odt::store

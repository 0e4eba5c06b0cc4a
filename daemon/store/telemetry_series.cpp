#include "store/telemetry_series.h"

#include <algorithm>

namespace odt::store {
namespace {

constexpr std::int64_t kMostLoss = std::int64_t{1} << 40;

struct SeriesName {
  SeriesKind kind;
  std::uint32_t layer;
};
SeriesName name_of_series(std::size_t index) {
  if (index < 2) return {static_cast<SeriesKind>(index + 1), 0};
  const std::size_t i = index - 2;
  return {static_cast<SeriesKind>(static_cast<std::size_t>(SeriesKind::kBits) + i % 3),
          static_cast<std::uint32_t>(i / 3)};
}

}  // namespace

std::int64_t loss_q16(std::int64_t sum, int exp2, std::uint32_t count) {
  if (count == 0) return 0;
  const int shift = exp2 + 16;
  __int128 top = sum, bottom = count;
  if (shift >= 62) {
    if (sum != 0) return sum > 0 ? kMostLoss : -kMostLoss;
  } else if (shift >= 0) {
    top <<= shift;
  } else {
    bottom <<= std::min(-shift, 90);
  }
  __int128 quotient = top / bottom;
  if (top % bottom < 0) quotient -= 1;
  return static_cast<std::int64_t>(
      std::clamp<__int128>(quotient, -__int128{kMostLoss}, __int128{kMostLoss}));
}

Buckets::Buckets(const SeriesQuery& query, std::uint32_t first, std::uint32_t last, bool thinned)
    : query_(query) {
  answer_.first_step = first;
  answer_.last_step = last;
  const std::uint64_t span = std::uint64_t{last} - first + 1;
  const std::uint64_t most = std::clamp<std::uint64_t>(query.buckets, 1, span);
  const std::uint32_t grain = thinned || span / most > kSmallWindow ? kSmallWindow : 1;
  for (std::uint64_t i = 0; i < most; ++i) {
    auto start = static_cast<std::uint32_t>(first + i * span / most);
    if (i != 0) start -= start % grain;
    if (i == 0 || start > answer_.bucket_first.back()) answer_.bucket_first.push_back(start);
  }
  answer_.count.resize(answer_.bucket_first.size());
}

std::size_t Buckets::of(std::uint32_t step) {
  const std::vector<std::uint32_t>& starts = answer_.bucket_first;
  // Values come mostly in order.
  if (starts[last_bucket_] <= step &&
      (last_bucket_ + 1 == starts.size() || step < starts[last_bucket_ + 1]))
    return last_bucket_;
  const auto after = std::upper_bound(starts.begin(), starts.end(), step);
  last_bucket_ = after == starts.begin() ? 0 : static_cast<std::size_t>(after - starts.begin() - 1);
  return last_bucket_;
}

bool Buckets::holds(std::uint32_t first, std::uint32_t last) {
  return first >= answer_.first_step && last <= answer_.last_step && of(first) == of(last);
}

bool Buckets::is_wanted(SeriesKind kind, std::uint32_t layer) const {
  const auto has = [](const auto& list, auto value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  if (!has(query_.kinds, kind)) return false;
  return kind == SeriesKind::kLoss || kind == SeriesKind::kCorrect || has(query_.layers, layer);
}

std::vector<std::size_t> Buckets::wanted(std::size_t series) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < series; ++i)
    if (const SeriesName name = name_of_series(i); is_wanted(name.kind, name.layer))
      out.push_back(i);
  return out;
}

Buckets::Column& Buckets::column(SeriesKind kind, std::uint32_t layer) {
  const auto [place, fresh] = places_.try_emplace(series_index(kind, layer), columns_.size());
  if (fresh) columns_.push_back({kind, layer, std::vector<Stat>(answer_.bucket_first.size())});
  return columns_[place->second];
}

void Buckets::count(std::size_t bucket, std::uint32_t records, std::uint64_t gap_steps) {
  answer_.count[bucket] += records;
  answer_.points += records;
  answer_.gap_steps += gap_steps;
}

void Buckets::add(const Points& points, const Point& p) {
  const std::size_t bucket = of(p.step);
  count(bucket, 1, p.gap);
  if (p.gap != 0) return;
  const auto put = [&](SeriesKind kind, std::uint32_t layer, std::int64_t value) {
    if (is_wanted(kind, layer)) column(kind, layer).stats[bucket].add(value);
  };
  if (p.loss_count != 0) put(SeriesKind::kLoss, 0, loss_q16(p.loss_sum, p.loss_exp2, p.loss_count));
  put(SeriesKind::kCorrect, 0, p.correct);
  for (std::uint32_t i = 0; i < p.layers; ++i) {
    const model::LayerStep layer = points.layer(p, i);
    put(SeriesKind::kBits, i, layer.bits);
    put(SeriesKind::kShift, i, layer.shift);
    put(SeriesKind::kK, i, layer.k);
  }
}

void Buckets::add(const Rollup& rollup, std::size_t w, std::uint32_t step, bool thinned) {
  const std::size_t bucket = of(std::clamp(step, first(), last()));
  const Rollup::Window& window = rollup.windows[w];
  count(bucket, window.records, window.gap_steps);
  if (thinned) answer_.thinned_points += window.records;
  for (std::size_t i = 0; i < rollup.series.size(); ++i) {
    if (rollup.series[i].empty() || rollup.series[i][w].count == 0) continue;
    const SeriesName name = name_of_series(i);
    column(name.kind, name.layer).stats[bucket].add(rollup.series[i][w]);
  }
}

SeriesAnswer Buckets::finish() && {
  for (const auto& [index, place] : places_) {
    const Column& from = columns_[place];
    Series& to = answer_.series.emplace_back();
    to.kind = from.kind;
    to.layer = from.layer;
    bool own_counts = false;
    for (std::size_t i = 0; i < from.stats.size(); ++i) {
      const Stat& s = from.stats[i];
      to.min.push_back(s.min);
      to.max.push_back(s.max);
      to.sum.push_back(s.sum);
      to.count.push_back(s.count);
      own_counts = own_counts || s.count != answer_.count[i];
    }
    if (!own_counts) to.count.clear();
  }
  return std::move(answer_);
}

}  // namespace odt::store

#include <algorithm>

#include "store/bytes.h"
#include "store/telemetry_series.h"

namespace odt::store {
namespace {

constexpr std::uint8_t kRollupVersion = 1;
// What a series' bytes begin with.
enum Form : std::uint8_t { kNone = 0, kConstant = 1, kEach = 2, kOwnCounts = 4 };

Rollup::Window& window_at(Rollup& rollup, std::uint32_t index) {
  if (rollup.windows.empty() || rollup.windows.back().index != index) {
    rollup.windows.push_back({index, 0, 0});
    for (auto& stats : rollup.series) stats.emplace_back();
  }
  return rollup.windows.back();
}

Status bad_rollup() {
  return absl::DataLossError("telemetry.db: a rollup is truncated or too long");
}

// Values of a window where each record that is no gap has one.
std::uint32_t usual_count(const Rollup& rollup, std::size_t w) {
  return rollup.series.size() > 1 ? rollup.series[1][w].count : 0;  // correct: every such record
}

void put_series(std::string& out, const Rollup& rollup, std::size_t index) {
  const std::vector<Stat>& stats = rollup.series[index];
  bool own = index == 1, any = false, constant = true;
  std::int64_t value = 0;
  for (std::size_t w = 0; w < stats.size(); ++w) {
    const Stat& s = stats[w];
    own = own || s.count != usual_count(rollup, w);
    if (s.count == 0) continue;
    if (!any) value = s.min;
    any = true;
    constant = constant && s.min == value && s.max == value;
  }
  if (!any) return out.push_back(static_cast<char>(kNone));
  out.push_back(static_cast<char>((constant ? kConstant : kEach) | (own ? kOwnCounts : 0)));
  if (own)
    for (const Stat& s : stats) put_varint(out, s.count);
  if (constant) return put_varint(out, zigzag(value));
  for (const Stat& s : stats) put_varint(out, zigzag(s.min));
  for (const Stat& s : stats) put_varint(out, static_cast<std::uint64_t>(s.max - s.min));
  for (const Stat& s : stats)
    put_varint(out, static_cast<std::uint64_t>(s.sum - s.min * std::int64_t{s.count}));
}

// counts: of series 1, or null where this is series 1.
bool read_series(ByteReader& in, const std::vector<std::uint32_t>& counts,
                 std::vector<Stat>& stats) {
  const std::uint8_t form = in.byte();
  if (form == kNone) return in.left() == 0;
  for (std::size_t w = 0; w < stats.size(); ++w)
    stats[w].count = (form & kOwnCounts) != 0 ? static_cast<std::uint32_t>(in.varint()) : counts[w];
  if ((form & kConstant) != 0) {
    const std::int64_t value = in.signed_varint();
    for (Stat& s : stats)
      if (s.count != 0) s = {value, value, value * std::int64_t{s.count}, s.count};
  } else {
    for (Stat& s : stats) s.min = in.signed_varint();
    for (Stat& s : stats) s.max = s.min + static_cast<std::int64_t>(in.varint());
    for (Stat& s : stats)
      s.sum = s.min * std::int64_t{s.count} + static_cast<std::int64_t>(in.varint());
  }
  return in.ok() && in.left() == 0;
}

}  // namespace

Rollup roll_up(const Points& points, std::uint32_t width) {
  std::size_t layers = 0;
  for (const Point& p : points.rows) layers = std::max<std::size_t>(layers, p.layers);
  Rollup out;
  out.series.resize(2 + 3 * layers);
  for (const Point& p : points.rows) {
    Rollup::Window& window = window_at(out, p.step / width);
    window.records += 1;
    window.gap_steps += p.gap;
    if (p.gap != 0) continue;
    if (p.loss_count != 0)
      out.series[0].back().add(loss_q16(p.loss_sum, p.loss_exp2, p.loss_count));
    out.series[1].back().add(p.correct);
    for (std::size_t i = 0; i < p.layers; ++i) {
      const model::LayerStep layer = points.layer(p, i);
      out.series[2 + 3 * i].back().add(layer.bits);
      out.series[3 + 3 * i].back().add(layer.shift);
      out.series[4 + 3 * i].back().add(layer.k);
    }
  }
  return out;
}

Rollup roll_up(const Rollup& fine, std::uint32_t factor) {
  Rollup out;
  out.series.resize(fine.series.size());
  for (std::size_t w = 0; w < fine.windows.size(); ++w) {
    Rollup::Window& window = window_at(out, fine.windows[w].index / factor);
    window.records += fine.windows[w].records;
    window.gap_steps += fine.windows[w].gap_steps;
    for (std::size_t i = 0; i < fine.series.size(); ++i)
      out.series[i].back().add(fine.series[i][w]);
  }
  return out;
}

std::string encode_rollup(const Rollup& rollup) {
  std::string out, bodies;
  out.push_back(static_cast<char>(kRollupVersion));
  put_varint(out, rollup.windows.size());
  put_varint(out, rollup.series.size());
  std::uint32_t before = 0;
  for (const Rollup::Window& w : rollup.windows) {
    put_varint(out, w.index - before);
    put_varint(out, w.records);
    put_varint(out, w.gap_steps);
    before = w.index;
  }
  for (std::size_t i = 0; i < rollup.series.size(); ++i) {
    const std::size_t at = bodies.size();
    put_series(bodies, rollup, i);
    put_varint(out, bodies.size() - at);
  }
  return out + bodies;
}

Result<Rollup> decode_rollup(std::string_view data, const std::vector<std::size_t>& wanted) {
  ByteReader in(data);
  if (in.byte() != kRollupVersion)
    return absl::DataLossError("telemetry.db: a rollup has an unknown layout version");
  Rollup out;
  const std::uint64_t windows = in.varint(), series = in.varint();
  if (windows > data.size() || series > data.size()) return bad_rollup();
  out.windows.resize(windows);
  std::uint32_t index = 0;
  for (Rollup::Window& w : out.windows) {
    w.index = index += static_cast<std::uint32_t>(in.varint());
    w.records = static_cast<std::uint32_t>(in.varint());
    w.gap_steps = in.varint();
  }
  std::vector<std::size_t> sizes(series);
  for (std::size_t& size : sizes) size = in.varint();
  out.series.resize(series);
  std::vector<std::uint32_t> counts(windows);
  std::string_view first;  // bytes of series 0, which is read once the counts are known
  auto next = wanted.begin();
  const auto takes = [&](std::size_t i) {
    if (wanted.empty()) return true;
    while (next != wanted.end() && *next < i) ++next;
    return next != wanted.end() && *next == i;
  };
  const bool want_first = takes(0), want_second = takes(1);
  for (std::size_t i = 0; i < series; ++i) {
    const std::string_view body = in.bytes(sizes[i]);
    if (!in.ok()) return bad_rollup();
    if (i == 0) {
      first = body;
      continue;
    }
    if (i != 1 && !takes(i)) continue;
    ByteReader reader(body);
    std::vector<Stat>& stats = out.series[i];
    stats.resize(windows);
    if (!read_series(reader, counts, stats)) return bad_rollup();
    if (i != 1) continue;
    for (std::size_t w = 0; w < windows; ++w) counts[w] = stats[w].count;
    if (!want_second) stats.clear();
  }
  if (want_first && series > 0) {
    ByteReader reader(first);
    out.series[0].resize(windows);
    if (!read_series(reader, counts, out.series[0])) return bad_rollup();
  }
  if (in.left() != 0) return bad_rollup();
  return out;
}

}  // namespace odt::store

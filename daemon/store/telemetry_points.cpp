#include "store/telemetry_points.h"

#include <absl/strings/str_cat.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "store/bytes.h"

namespace odt::store {
namespace {

constexpr std::uint8_t kPointsVersion = 1;
constexpr int kChunkLevel = 3, kLogLevel = 1;
constexpr std::size_t kGrowBy = 64;             // records
constexpr std::uint64_t kMostBytes = 64 << 20;  // decoded; far above any chunk

struct FreeContext {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
  void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
};

std::string compress(std::string_view plain, int level) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  std::string out(1 + ZSTD_compressBound(plain.size()), '\0');
  out[0] = static_cast<char>(kPointsVersion);
  const std::size_t size = ZSTD_compressCCtx(context.get(), out.data() + 1, out.size() - 1,
                                             plain.data(), plain.size(), level);
  out.resize(ZSTD_isError(size) ? 0 : 1 + size);
  return out;
}

Result<std::string> decompress(std::string_view data) {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (data.empty() || static_cast<std::uint8_t>(data[0]) != kPointsVersion)
    return absl::DataLossError(
        absl::StrCat("telemetry.db: layout version ",
                     data.empty() ? 0 : static_cast<int>(static_cast<std::uint8_t>(data[0])),
                     ", supported is ", kPointsVersion));
  const std::uint64_t size = ZSTD_getFrameContentSize(data.data() + 1, data.size() - 1);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > kMostBytes)
    return absl::DataLossError("telemetry.db: records are damaged: no length");
  std::string plain(size, '\0');
  const std::size_t got = ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(),
                                              data.data() + 1, data.size() - 1);
  if (ZSTD_isError(got) || got != size)
    return absl::DataLossError("telemetry.db: records are damaged");
  return plain;
}

Status bad_points() {
  return absl::DataLossError("telemetry.db: records are truncated or too long");
}

// Differences of neighbours, zigzag: works for any u32 or i64 column.
template <typename Get>
void put_column(std::string& out, const std::vector<Point>& rows, Get get) {
  std::int64_t before = 0;
  for (const Point& row : rows) {
    const auto value = static_cast<std::int64_t>(get(row));
    put_varint(out, zigzag(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) -
                                                     static_cast<std::uint64_t>(before))));
    before = value;
  }
}

template <typename Set>
void read_column(ByteReader& in, std::vector<Point>& rows, Set set) {
  std::int64_t value = 0;
  for (Point& row : rows) {
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) +
                                      static_cast<std::uint64_t>(in.signed_varint()));
    set(row, value);
  }
}

template <typename T>
auto setter(T Point::*field) {
  return [field](Point& p, std::int64_t value) { p.*field = static_cast<T>(value); };
}

}  // namespace

std::size_t Points::at_or_after(std::uint32_t step) const {
  // Records come in order: the end is the place looked for most.
  if (rows.empty() || rows.back().step < step) return rows.size();
  const auto it = std::lower_bound(rows.begin(), rows.end(), step,
                                   [](const Point& p, std::uint32_t s) { return p.step < s; });
  return static_cast<std::size_t>(it - rows.begin());
}

const Point* Points::find(std::uint32_t step) const {
  const std::size_t at = at_or_after(step);
  return at < rows.size() && rows[at].step == step ? &rows[at] : nullptr;
}

// In steps: in a thousand open chunks what doubling adds would be most of the memory.
void Points::grow(std::size_t layers_size) {
  if (rows.size() == rows.capacity()) rows.reserve(rows.size() + kGrowBy);
  if (layer_bytes.size() + layers_size <= layer_bytes.capacity()) return;
  std::string larger;  // a string's own reserve() doubles
  larger.reserve(layer_bytes.size() + kGrowBy * layers_size);
  larger += layer_bytes;
  layer_bytes = std::move(larger);
}

void Points::place(Point point, std::string_view layers) {
  const std::size_t at = at_or_after(point.step);
  point.layers = static_cast<std::uint8_t>(layers.size() / 3);
  point.layers_at = static_cast<std::uint32_t>(layer_bytes.size());
  grow(layers.size());
  layer_bytes += layers;
  if (at < rows.size() && rows[at].step == point.step)
    rows[at] = point;
  else
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(at), point);
}

Point point_of(const model::TelemetryFrame& frame, std::string& layers) {
  Point p;
  p.time_us = frame.time_us;
  p.loss_sum = frame.loss.sum;
  p.step = frame.step;
  p.event_id = frame.event_id;
  p.correct = frame.correct;
  p.gap = frame.gap;
  p.loss_count = frame.loss.count;
  p.loss_exp2 = frame.loss.exp2;
  p.loss_kind = static_cast<std::uint8_t>(frame.loss.kind);
  p.layers = static_cast<std::uint8_t>(std::min<std::size_t>(frame.layers.size(), 255));
  layers.clear();
  for (std::size_t i = 0; i < p.layers; ++i) {
    layers.push_back(static_cast<char>(frame.layers[i].bits));
    layers.push_back(static_cast<char>(frame.layers[i].shift));
    layers.push_back(static_cast<char>(frame.layers[i].k));
  }
  return p;
}

void fill_frame(const Points& points, const Point& p, model::TelemetryFrame& frame) {
  frame.step = p.step;
  frame.time_us = p.time_us;
  frame.event_id = p.event_id;
  frame.loss = {p.loss_sum, p.loss_exp2, p.loss_count, static_cast<model::LossKind>(p.loss_kind)};
  frame.correct = p.correct;
  frame.gap = p.gap;
  frame.layers.resize(p.layers);
  for (std::size_t i = 0; i < p.layers; ++i) frame.layers[i] = points.layer(p, i);
}

std::string encode_chunk(const Points& points) {
  const std::vector<Point>& rows = points.rows;
  std::string plain;
  plain.reserve(rows.size() * 48 + points.layer_bytes.size());
  put_varint(plain, rows.size());
  put_column(plain, rows, [](const Point& p) { return p.step; });
  put_column(plain, rows, [](const Point& p) { return p.source; });
  put_column(plain, rows, [](const Point& p) { return p.time_us; });
  put_column(plain, rows, [](const Point& p) { return p.event_id; });
  put_column(plain, rows, [](const Point& p) { return p.loss_sum; });
  put_column(plain, rows, [](const Point& p) { return p.loss_exp2; });
  put_column(plain, rows, [](const Point& p) { return p.loss_count; });
  put_column(plain, rows, [](const Point& p) { return p.loss_kind; });
  put_column(plain, rows, [](const Point& p) { return p.correct; });
  put_column(plain, rows, [](const Point& p) { return p.gap; });
  put_column(plain, rows, [](const Point& p) { return p.layers; });
  std::size_t most = 0;
  for (const Point& p : rows) most = std::max<std::size_t>(most, p.layers);
  for (std::size_t byte = 0; byte < 3 * most; ++byte)
    for (const Point& p : rows)
      if (byte < 3 * std::size_t{p.layers}) plain.push_back(points.layer_bytes[p.layers_at + byte]);
  return compress(plain, kChunkLevel);
}

Result<Points> decode_chunk(std::string_view data) {
  ODT_ASSIGN(const std::string plain, decompress(data));
  ByteReader in(plain);
  Points points;
  const std::uint64_t count = in.varint();
  if (count > plain.size()) return bad_points();
  std::vector<Point>& rows = points.rows;
  rows.resize(count);
  read_column(in, rows, setter(&Point::step));
  read_column(in, rows, setter(&Point::source));
  read_column(in, rows, setter(&Point::time_us));
  read_column(in, rows, setter(&Point::event_id));
  read_column(in, rows, setter(&Point::loss_sum));
  read_column(in, rows, setter(&Point::loss_exp2));
  read_column(in, rows, setter(&Point::loss_count));
  read_column(in, rows, setter(&Point::loss_kind));
  read_column(in, rows, setter(&Point::correct));
  read_column(in, rows, setter(&Point::gap));
  read_column(in, rows, setter(&Point::layers));
  std::size_t bytes = 0, most = 0;
  for (Point& p : rows) {
    p.layers_at = static_cast<std::uint32_t>(bytes);
    bytes += 3 * std::size_t{p.layers};
    most = std::max<std::size_t>(most, p.layers);
  }
  if (!in.ok() || in.left() != bytes) return bad_points();
  points.layer_bytes.resize(bytes);
  for (std::size_t byte = 0; byte < 3 * most; ++byte)
    for (const Point& p : rows)
      if (byte < 3 * std::size_t{p.layers})
        points.layer_bytes[p.layers_at + byte] = static_cast<char>(in.byte());
  return points;
}

void LogWriter::add(std::uint64_t run, std::uint32_t attempt, const Point& p,
                    std::string_view layers) {
  ++count_;
  put_varint(body_, run);
  put_varint(body_, attempt);
  put_varint(body_, p.step);
  put_varint(body_, p.source);
  put_varint(body_, zigzag(p.time_us - time_));
  time_ = p.time_us;
  put_varint(body_, p.event_id);
  put_varint(body_, zigzag(p.loss_sum));
  put_varint(body_, zigzag(p.loss_exp2));
  put_varint(body_, p.loss_count);
  put_varint(body_, p.loss_kind);
  put_varint(body_, p.correct);
  put_varint(body_, p.gap);
  put_varint(body_, layers.size());
  body_ += layers;
}

std::string LogWriter::encode() const {
  std::string plain;
  plain.reserve(body_.size() + 10);
  put_varint(plain, count_);
  plain += body_;
  return compress(plain, kLogLevel);
}

void LogWriter::clear() {
  body_.clear();
  count_ = 0;
  time_ = 0;
}

Result<std::vector<LogEntry>> decode_log(std::string_view data) {
  ODT_ASSIGN(const std::string plain, decompress(data));
  ByteReader in(plain);
  const std::uint64_t count = in.varint();
  if (count > plain.size()) return bad_points();
  std::vector<LogEntry> entries(count);
  std::int64_t time = 0;
  for (LogEntry& e : entries) {
    Point& p = e.point;
    e.run = in.varint();
    e.attempt = static_cast<std::uint32_t>(in.varint());
    p.step = static_cast<std::uint32_t>(in.varint());
    p.source = static_cast<std::uint32_t>(in.varint());
    p.time_us = time += in.signed_varint();
    p.event_id = static_cast<std::uint32_t>(in.varint());
    p.loss_sum = in.signed_varint();
    p.loss_exp2 = static_cast<std::int8_t>(in.signed_varint());
    p.loss_count = static_cast<std::uint32_t>(in.varint());
    p.loss_kind = static_cast<std::uint8_t>(in.varint());
    p.correct = static_cast<std::uint32_t>(in.varint());
    p.gap = static_cast<std::uint32_t>(in.varint());
    e.layers = in.bytes(in.varint());
    p.layers = static_cast<std::uint8_t>(e.layers.size() / 3);
  }
  if (!in.ok() || in.left() != 0) return bad_points();
  return entries;
}

}  // namespace odt::store

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"

// Records of one (run, attempt) in little room, and their two forms on disk: a chunk (columns,
// zstd) and a part of the log of recent ones. Inside of the room.
namespace odt::store {

// A record without its run and attempt. Limits: 255 layers.
struct Point {
  std::int64_t time_us = 0;
  std::int64_t loss_sum = 0;
  std::int64_t log = 0;  // row of the log that it came with; not part of a chunk
  std::uint32_t step = 0;
  std::uint32_t source = 0;  // number of (board, boot) in this database
  std::uint32_t event_id = 0, correct = 0, gap = 0, loss_count = 0;
  std::uint32_t layers_at = 0;  // of Points::layer_bytes
  std::uint8_t layers = 0;
  std::int8_t loss_exp2 = 0;
  std::uint8_t loss_kind = 0;
};

struct Points {
  std::vector<Point> rows;  // ascending by step
  std::string layer_bytes;  // 3 a layer: bits, shift, k

  model::LayerStep layer(const Point& p, std::size_t index) const {
    const std::size_t at = p.layers_at + 3 * index;
    return {static_cast<std::uint8_t>(layer_bytes[at]),
            static_cast<std::int8_t>(layer_bytes[at + 1]),
            static_cast<std::uint8_t>(layer_bytes[at + 2])};
  }
  // Index of the first record at or after `step`.
  std::size_t at_or_after(std::uint32_t step) const;
  const Point* find(std::uint32_t step) const;
  // Puts it in its place; one that is there with the same step is replaced.
  void place(Point point, std::string_view layers);
  void grow(std::size_t layers_size);  // room for one more
  std::string_view layers_of(const Point& p) const {
    return std::string_view(layer_bytes).substr(p.layers_at, 3 * std::size_t{p.layers});
  }
};

// Of a frame: everything but run, attempt, source. `layers` gets its layer bytes.
Point point_of(const model::TelemetryFrame& frame, std::string& layers);
// Fills everything but run, attempt, board, boot.
void fill_frame(const Points& points, const Point& point, model::TelemetryFrame& frame);

// A chunk: u8 version 1, varint records, then columns (deltas as varints, layers as planes), all
// but the version as one zstd frame.
std::string encode_chunk(const Points& points);
// Errors: DATA_LOSS (damaged, unknown version).
Result<Points> decode_chunk(std::string_view data);

// One commit's records in order of arrival.
struct LogEntry {
  std::uint64_t run = 0;  // number in this database
  std::uint32_t attempt = 0;
  Point point;
  std::string layers;
};
class LogWriter {
 public:
  void add(std::uint64_t run, std::uint32_t attempt, const Point& point, std::string_view layers);
  bool empty() const { return count_ == 0; }
  std::string encode() const;
  void clear();

 private:
  std::string body_;
  std::uint64_t count_ = 0;
  std::int64_t time_ = 0;  // of the last
};
Result<std::vector<LogEntry>> decode_log(std::string_view data);

}  // namespace odt::store

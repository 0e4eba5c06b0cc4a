#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "wire/device_codec.h"
#include "wire/frame_stream.h"

// What boards of earlier versions said (tests/fixtures/v0.1/README.md) still decodes, to the
// values that an independent decoder wrote beside it.
namespace odt::wire {
namespace {

using nlohmann::json;

constexpr std::uint8_t kToHost = 1;

struct Recording {
  std::vector<Frame> board;
  int bad = 0;
};

std::uint32_t u32_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

// Format: tests/support/conversation.py.
Recording read_recording(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Recording recording;
  FrameStream stream({[&](Frame f) { recording.board.push_back(std::move(f)); },
                      [&](const std::string&) { ++recording.bad; },
                      [&](const char*) { ++recording.bad; }});
  if (bytes.substr(0, 8) != std::string("ODTR\1\0\0\0", 8)) return recording;
  for (std::size_t at = 8; at + 8 <= bytes.size();) {
    const std::uint32_t length = u32_at(bytes, at + 4);
    if (length > bytes.size() - at - 8) ++recording.bad;
    if (bytes[at] == kToHost) stream.feed(std::string_view(bytes).substr(at + 8, length));
    at += 8 + length;
  }
  return recording;
}

template <typename Id>
std::string hex(const Id& id) {
  return id.is_zero() ? "" : id.hex();
}

json values(const model::TelemetryFrame& step) {
  Bytes layers;
  for (const model::LayerStep& l : step.layers) {
    layers.push_back(l.bits);
    layers.push_back(static_cast<std::uint8_t>(l.shift));
    layers.push_back(l.k);
  }
  return {{"step", step.step},
          {"loss", step.loss.sum},
          {"correct", step.correct},
          {"layers", to_hex(layers.data(), layers.size())}};
}

json values(const model::EvalReport& e) {
  return {{"id", e.eval_id},
          {"correct", e.accuracy.correct},
          {"total", e.accuracy.total},
          {"loss", e.loss},
          {"done", e.done},
          {"next_seq", e.next_seq}};
}

json values(const model::DeviceState& s) {
  return {{"model", hex(s.model_hash)},
          {"run", hex(s.run_id)},
          {"attempt", s.attempt},
          {"job", static_cast<int>(s.job)},
          {"step", s.step},
          {"epoch", s.epoch},
          {"state", hex(s.state_hash)},
          {"weights", hex(s.weights_hash)},
          {"train", s.samples_train},
          {"ram", s.ram_bytes},
          {"sample_set", hex(s.sample_set_hash)},
          {"has_weights", s.has_weights}};
}

json values(const XferOpened& x) {
  return {{"offset", x.offset}, {"window", x.window}, {"chunk", x.chunk},
          {"size", x.size},     {"crc32", x.crc32},   {"version", x.version}};
}

json values(const model::InferReport& i) {
  return {
      {"logits", to_hex(reinterpret_cast<const std::uint8_t*>(i.logits.data()), i.logits.size())},
      {"predicted", i.predicted}};
}

json values(const model::EpochResult& e) {
  json layers = json::array();
  for (const model::LayerEpoch& l : e.layers) {
    layers.push_back({l.bits_min, l.bits_mean_q8, l.bits_max, l.shift, l.nonzero_deltas_ppm,
                      l.mean_abs_delta_q8, l.zero_propagated_ppm, l.saturated, l.dead_units, l.k,
                      l.u_q8});
  }
  return {{"epoch", e.epoch},           {"step", e.step},         {"loss", e.loss.sum},
          {"correct", e.train.correct}, {"total", e.train.total}, {"alarms", e.alarms},
          {"state", hex(e.state_hash)}, {"step_us", e.step_us},   {"layers", layers}};
}

json values(const model::JobChanged& j) {
  return {{"run", hex(j.run_id)}, {"attempt", j.attempt},       {"job", static_cast<int>(j.job)},
          {"step", j.step},       {"state", hex(j.state_hash)}, {"weights", hex(j.weights_hash)},
          {"text", j.text}};
}

// The name of a variant's kind and its values.
template <typename Variant>
void put(json& out, const Variant& variant, const std::vector<const char*>& names) {
  out["kind"] = names.at(variant.index());
  std::visit(
      [&](const auto& v) {
        // What came later than the recordings is in none of them.
        if constexpr (requires { values(v); }) {
          out["value"] = values(v);
        }
      },
      variant);
}

json hello(const HelloAck& ack) {
  const model::HelloInfo& i = ack.info;
  return {{"proto", ack.proto},
          {"uid", i.uid.hex()},
          {"board", i.board_type},
          {"core", i.core},
          {"fw_version", i.fw_version},
          {"boot_id", i.boot_id},
          {"reset_reason", i.reset_reason},
          {"mtu", i.mtu},
          {"rx_window", i.rx_window_bytes},
          {"caps", i.caps},
          {"max_layers", i.max_layers},
          {"max_batch", i.max_batch},
          {"ram", i.ram_bytes},
          {"rules", i.rules_version},
          {"job", static_cast<int>(i.job)},
          {"next_event", i.next_event}};
}

Result<json> link_values(const Frame& frame) {
  switch (frame.type) {
    case FRAME_HELLO_ACK: {
      ODT_ASSIGN(const HelloAck ack, decode_hello_ack(frame.payload));
      return hello(ack);
    }
    case FRAME_PONG: {
      ODT_ASSIGN(const Pong p, decode_pong(frame.payload));
      return json{{"uptime_ms", p.uptime_ms},
                  {"job", static_cast<int>(p.job)},
                  {"step", p.step},
                  {"next_event", p.next_event}};
    }
    case FRAME_LOG: {
      ODT_ASSIGN(const Log log, decode_log(frame.payload));
      return json{{"level", log.level}, {"text", log.text}};
    }
    case FRAME_CHUNK_TO_HOST: {
      ODT_ASSIGN(const Chunk c, decode_chunk(frame.payload));
      return json{{"offset", c.offset}, {"bytes", c.data.size()}, {"crc32", crc32(c.data)}};
    }
    case FRAME_WINDOW_TO_HOST: {
      ODT_ASSIGN(const Window w, decode_window(frame.payload));
      return json{{"offset", w.offset},
                  {"end", w.end},
                  {"retransmit", w.retransmit},
                  {"status", static_cast<int>(w.status)}};
    }
    default:
      return absl::UnimplementedError("a frame of another type");
  }
}

Result<json> frame_values(const Frame& frame) {
  json out;
  if (frame.type == FRAME_RSP) {
    ODT_ASSIGN(const Answer answer, decode_response(frame.payload));
    out = {{"error", static_cast<int>(answer.error.code())}, {"limit", answer.limit}};
    put(out, answer.result, {"none", "state", "xfer_opened", "step", "eval", "infer", "telemetry"});
  } else if (frame.type == FRAME_EVENT) {
    ODT_ASSIGN(const EventBody event, decode_event(frame.payload));
    put(out, event, {"unknown", "step", "epoch", "job", "eval"});
  } else {
    ODT_ASSIGN(out, link_values(frame));
  }
  out["type"] = frame.type;
  out["id"] = frame.id;
  return out;
}

TEST(RecordedConversation, EveryFrameOfTheBoardDecodesToTheSameValues) {
  const std::string folder = ODT_FIXTURES "/v0.1/";
  const Recording recording = read_recording(folder + "conversation.bin");
  EXPECT_EQ(recording.bad, 0);
  std::ifstream in(folder + "conversation.json");
  const json expected = json::parse(in);
  ASSERT_GT(expected.size(), 100u);
  ASSERT_EQ(recording.board.size(), expected.size());
  std::map<int, int> seen;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Result<json> got = frame_values(recording.board[i]);
    ASSERT_TRUE(got.ok()) << "frame " << i << ": " << got.status();
    EXPECT_EQ(*got, expected[i]) << "frame " << i;
    ++seen[recording.board[i].type];
  }
  for (const int type : {FRAME_HELLO_ACK, FRAME_RSP, FRAME_PONG, FRAME_EVENT, FRAME_CHUNK_TO_HOST,
                         FRAME_WINDOW_TO_HOST}) {
    EXPECT_GT(seen[type], 0) << "no frame of type " << type;
  }
}

}  // namespace
}  // namespace odt::wire

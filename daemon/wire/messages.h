#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "model/device.h"

// The messages of the link that are not the model's business, without protobuf. Meanings:
// proto/odt/device/v1/device.proto.
namespace odt::wire {

struct Hello {
  std::uint32_t proto_min = 1, proto_max = 1;
  GatewayId host_id;
  std::uint64_t session64 = 0;
  std::uint32_t mtu = 0;
  std::uint64_t nonce = 0;
};

struct HelloAck {
  std::uint32_t proto = 0;  // 0: none in common
  model::HelloInfo info;
};

struct NeedHello {
  std::uint64_t boot_id = 0;
  std::string reset_reason;
};

struct LinkErr {
  enum class Reason : std::uint8_t {
    kUnknown = 0,
    kOversize = 1,
    kUnknownType = 2,
    kUndecodable = 3
  };
  Reason reason = Reason::kUnknown;
  std::uint32_t limit = 0, got = 0;
};

struct Pong {
  std::uint32_t uptime_ms = 0;
  model::JobState job = model::JobState::kNone;
  std::uint32_t step = 0, rx_errors = 0, events_dropped = 0, logs_dropped = 0;
  std::uint32_t next_event = 0;  // 0: unknown
};

struct Log {
  int level = 2;
  std::string text;  // sanitised
  std::uint32_t dropped = 0;
};

struct Chunk {
  std::uint32_t offset = 0;
  std::string data;
};

struct Window {
  std::uint32_t offset = 0, end = 0;
  bool retransmit = false;
  absl::StatusCode status = absl::StatusCode::kOk;
};

struct XferOpen {
  std::uint32_t xfer_id = 0;
  model::Resource resource{};
  std::uint32_t index = 0;
  bool to_board = true;
  std::uint32_t size = 0, crc32 = 0, resume_offset = 0, prefix_crc = 0, batch_id = 0;
  Hash expect;  // zero: any
};

struct XferOpened {
  std::uint32_t offset = 0, prefix_crc = 0, window = 0, chunk = 0, size = 0, crc32 = 0, version = 0;
};

struct TelemetryRange {
  std::uint32_t first = 0, next = 0;
};

// Response. Result is monostate where the answer has none, or one of a kind unknown to this daemon.
struct Answer {
  Status error;             // OK: none
  std::uint32_t limit = 0;  // with an error
  std::uint32_t accepted_ms = 0;
  std::variant<std::monostate, model::DeviceState, XferOpened, model::TelemetryFrame,
               model::EvalReport, model::InferReport, TelemetryRange, model::CaptureState,
               model::NvmInfo>
      result;
};

// Event. Monostate: of a kind unknown to this daemon.
using EventBody = std::variant<std::monostate, model::TelemetryFrame, model::EpochResult,
                               model::JobChanged, model::EvalReport, model::NvmCommitted>;

}  // namespace odt::wire

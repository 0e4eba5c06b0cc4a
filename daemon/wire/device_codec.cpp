#include "wire/device_codec.h"

#include "odt/device/v1/device.pb.h"
#include "wire/codec_parts.h"
#include "wire/text.h"

namespace odt::wire {
namespace {

constexpr std::size_t kMaxName = 32;
constexpr std::size_t kMaxLogText = 240;
// What no firmware can do (ODT_MAX_LAYERS, ODT_MAX_BATCH) and no board answers within: said all the
// same, it is taken for the most that there is. Others plan with these figures.
constexpr std::uint32_t kMaxLayers = 16, kMaxBatch = 256, kMaxPollMs = 60'000;

std::string reset_reason(pb::ResetReason reason) {
  switch (reason) {
    case pb::RESET_REASON_POWER_ON:
      return "POWER_ON";
    case pb::RESET_REASON_REQUESTED:
      return "REQUESTED";
    case pb::RESET_REASON_WATCHDOG:
      return "WATCHDOG";
    case pb::RESET_REASON_FAULT:
      return "FAULT";
    default:
      return "UNKNOWN";
  }
}

}  // namespace

std::string encode(const Hello& hello) {
  pb::Hello m;
  m.set_proto_min(hello.proto_min);
  m.set_proto_max(hello.proto_max);
  m.set_host_id(hello.host_id.str());
  m.set_session64(hello.session64);
  m.set_mtu(hello.mtu);
  m.set_nonce(hello.nonce);
  return m.SerializeAsString();
}

std::string encode(const Window& window) {
  pb::Window m;
  m.set_offset(window.offset);
  m.set_end(window.end);
  m.set_retransmit(window.retransmit);
  m.set_status(static_cast<pb::StatusCode>(window.status));
  return m.SerializeAsString();
}

std::string encode_chunk(std::uint32_t offset, std::string_view data) {
  pb::Chunk m;
  m.set_offset(offset);
  m.set_data(data.data(), data.size());
  return m.SerializeAsString();
}

Result<HelloAck> decode_hello_ack(std::string_view payload) {
  ODT_ASSIGN(const pb::HelloAck m, parse<pb::HelloAck>(payload, "HELLO_ACK"));
  HelloAck ack;
  ack.proto = m.proto();
  ODT_ASSIGN(ack.info.uid, BoardUid::from_bytes(m.uid()));
  model::HelloInfo& info = ack.info;
  info.board_type = sanitise(m.board(), kMaxName);
  info.core = sanitise(m.core(), kMaxName);
  info.fw_version = sanitise(m.fw_version(), kMaxName);
  info.boot_id = m.boot_id();
  info.reset_reason = reset_reason(m.reset_reason());
  info.uptime_ms = m.uptime_ms();
  info.max_poll_ms = std::min(m.max_poll_ms(), kMaxPollMs);
  info.mtu = m.mtu();
  info.rx_window_bytes = m.rx_window_bytes();
  info.caps = m.caps();
  info.max_layers = std::min(m.max_layers(), kMaxLayers);
  info.max_batch = std::min(m.max_batch(), kMaxBatch);
  info.ram_bytes = m.ram_bytes();
  info.rules_version = m.rules_version();
  info.model_hash16 = prefix16(m.model_hash());
  info.state_hash16 = prefix16(m.state_hash());
  info.run_id = id_or_zero<Uuid>(m.run_id());
  info.attempt = m.attempt();
  info.last_step = m.last_step();
  info.job = job_state(m.job());
  info.first_event = m.first_event();
  info.next_event = std::max(m.next_event(), info.first_event);
  info.restored = m.restored();
  return ack;
}

Result<NeedHello> decode_need_hello(std::string_view payload) {
  ODT_ASSIGN(const pb::NeedHello m, parse<pb::NeedHello>(payload, "NEED_HELLO"));
  return NeedHello{m.boot_id(), reset_reason(m.reset_reason())};
}

Result<LinkErr> decode_link_err(std::string_view payload) {
  ODT_ASSIGN(const pb::LinkErr m, parse<pb::LinkErr>(payload, "LINK_ERR"));
  LinkErr e;
  const int reason = m.reason();
  if (reason > 0 && reason <= 3) e.reason = static_cast<LinkErr::Reason>(reason);
  e.limit = m.limit();
  e.got = m.got();
  return e;
}

Result<std::uint32_t> decode_busy(std::string_view payload) {
  ODT_ASSIGN(const pb::Busy m, parse<pb::Busy>(payload, "BUSY"));
  return m.until_ms();
}

Result<Pong> decode_pong(std::string_view payload) {
  ODT_ASSIGN(const pb::Pong m, parse<pb::Pong>(payload, "PONG"));
  Pong pong;
  pong.uptime_ms = m.uptime_ms();
  pong.job = job_state(m.job());
  pong.step = m.step();
  pong.rx_errors = m.rx_errors();
  pong.events_dropped = m.events_dropped();
  pong.logs_dropped = m.logs_dropped();
  pong.next_event = m.next_event();
  return pong;
}

Result<Log> decode_log(std::string_view payload) {
  ODT_ASSIGN(const pb::Log m, parse<pb::Log>(payload, "LOG"));
  Log log;
  log.level = static_cast<int>(std::min<std::uint32_t>(m.level(), 5));
  log.text = sanitise(m.text(), kMaxLogText);
  log.dropped = m.dropped();
  return log;
}

Result<Chunk> decode_chunk(std::string_view payload) {
  ODT_ASSIGN(pb::Chunk m, parse<pb::Chunk>(payload, "CHUNK"));
  return Chunk{m.offset(), std::move(*m.mutable_data())};
}

Result<Window> decode_window(std::string_view payload) {
  ODT_ASSIGN(const pb::Window m, parse<pb::Window>(payload, "WINDOW"));
  return Window{m.offset(), m.end(), m.retransmit(), status_code(m.status())};
}

}  // namespace odt::wire

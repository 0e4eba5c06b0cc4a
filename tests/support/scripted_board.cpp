#include "support/scripted_board.h"

#include <algorithm>
#include <array>

#include "odt/device/v1/device.pb.h"

namespace odt::test {
namespace {

namespace pb = ::odt::device::v1;

// True, and one less, where `count` is left.
bool take(int& count) {
  if (count == 0) return false;
  --count;
  return true;
}

template <typename M>
M parse(const std::string& payload) {
  M m;
  m.ParseFromString(payload);
  return m;
}

}  // namespace

ScriptedBoard::ScriptedBoard(asio::io_context& io, std::shared_ptr<link::ByteLink> link)
    : io_(io),
      link_(std::move(link)),
      stream_(
          {[this](wire::Frame f) { on_frame(f); }, [](const std::string&) {}, [](const char*) {}}),
      writable_(io) {}

void ScriptedBoard::start() {
  const auto ended = [self = shared_from_this()](std::exception_ptr) {};
  asio::co_spawn(io_, read_loop(shared_from_this()), ended);
  asio::co_spawn(io_, write_loop(shared_from_this()), ended);
}

asio::awaitable<void> ScriptedBoard::read_loop(
    [[maybe_unused]] std::shared_ptr<ScriptedBoard> self) {
  std::array<char, 4096> buffer;
  for (;;) {
    const Result<std::size_t> n = co_await link_->read(asio::buffer(buffer));
    if (!n.ok()) {
      link_->close();
      writable_.cancel();
      co_return;
    }
    stream_.feed({buffer.data(), *n});
  }
}

asio::awaitable<void> ScriptedBoard::write_loop(
    [[maybe_unused]] std::shared_ptr<ScriptedBoard> self) {
  for (;;) {
    if (outbox_.empty()) {
      writable_.expires_at(std::chrono::steady_clock::time_point::max());
      boost::system::error_code ignored;
      co_await writable_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    const std::string bytes = std::exchange(outbox_, {});
    const Status written = co_await link_->write(asio::buffer(bytes));
    if (!written.ok()) co_return;
  }
}

int ScriptedBoard::count(std::uint8_t type) const {
  return static_cast<int>(std::count_if(frames.begin(), frames.end(),
                                        [&](const wire::Frame& f) { return f.type == type; }));
}

void ScriptedBoard::send_raw(std::string bytes) {
  if (mute) return;
  outbox_ += bytes;
  writable_.cancel();
}

void ScriptedBoard::send_frame_of(std::uint16_t of, std::uint8_t type, std::uint32_t id,
                                  std::string payload) {
  send_raw(wire::encode_frame({type, of, id, std::move(payload)}));
}

void ScriptedBoard::send_frame(std::uint8_t type, std::uint32_t id, std::string payload) {
  send_frame_of(session, type, id, std::move(payload));
}

void ScriptedBoard::forget_session() { session = 0; }

void ScriptedBoard::reboot() {
  session = 0;
  ++boot_id;
  held.clear();
  events_.clear();
  next_event = 0;
  in_ = {};
  out_ = {};
}

void ScriptedBoard::on_frame(const wire::Frame& frame) {
  frames.push_back(frame);
  if (mute) return;
  if (frame.type == FRAME_HELLO) return on_hello(frame);
  if (session == 0 || frame.session != session) {
    pb::NeedHello need;
    need.set_boot_id(boot_id);
    return send_frame_of(0, FRAME_NEED_HELLO, 0, need.SerializeAsString());
  }
  switch (frame.type) {
    case FRAME_REQ:
      return on_req(frame);
    case FRAME_CHUNK_TO_BOARD:
      return on_chunk(frame);
    case FRAME_WINDOW_TO_BOARD:
      return on_window(frame);
    case FRAME_PING:
      ++pings;
      if (!mute_pong) emit_pong(frame.id);
      return;
    case FRAME_BYE:
      ++byes;
      session = 0;
      return;
    default:
      return;
  }
}

void ScriptedBoard::on_hello(const wire::Frame& frame) {
  ++hellos;
  if (take(drop_hellos)) return;
  const auto hello = parse<pb::Hello>(frame.payload);
  session = frame.session;
  last_request_ = 0;
  pb::HelloAck ack;
  ack.set_proto(proto);
  ack.set_uid(uid);
  ack.set_board(board_name);
  if (max_layers != 0) ack.set_max_layers(max_layers);
  ack.set_core("host");
  ack.set_fw_version("0.1.0");
  ack.set_boot_id(boot_id);
  ack.set_max_poll_ms(max_poll_ms);
  ack.set_mtu(std::min(mtu, hello.mtu()));
  ack.set_rx_window_bytes(window);
  ack.set_rules_version(1);
  ack.set_first_event(events_.empty() ? next_event : events_.begin()->first);
  ack.set_next_event(next_event);
  send_frame(FRAME_HELLO_ACK, frame.id, ack.SerializeAsString());
}

void ScriptedBoard::respond(std::uint32_t id) {
  if (take(drop_responses)) return;
  if (delay_response.count() == 0) return send_frame(FRAME_RSP, id, cached_);
  auto timer = std::make_shared<asio::steady_timer>(io_, delay_response);
  timer->async_wait([self = shared_from_this(), timer, id, of = session,
                     payload = cached_](boost::system::error_code) {
    self->send_frame_of(of, FRAME_RSP, id, payload);
  });
}

void ScriptedBoard::on_req(const wire::Frame& frame) {
  ++requests;
  if (last_request_ != 0 && frame.id < last_request_) return;
  if (frame.id != last_request_) {
    last_request_ = frame.id;
    ++executed;
    const auto request = parse<pb::Request>(frame.payload);
    pb::Response response;
    if (take(accept_first)) {
      response.set_accepted_ms(10);
    } else if (!on_request || !on_request(request, response)) {
      answer(request, response);
    }
    cached_ = response.SerializeAsString();
    ready_ = std::chrono::steady_clock::now();
    if (request.has_xfer_open()) ready_ += slow_open;
    if (request.has_xfer_commit()) ready_ += slow_commit;
  }
  if (std::chrono::steady_clock::now() >= ready_) respond(frame.id);
}

void ScriptedBoard::answer(const Request& request, Response& response) {
  switch (request.op_case()) {
    case pb::Request::kGetState:
      response.mutable_state()->set_step(42);
      return;
    case pb::Request::kXferOpen:
      return open(request.xfer_open(), response);
    case pb::Request::kXferCommit:
      return commit(request.xfer_commit().xfer_id(), request.xfer_commit().crc32(), response);
    case pb::Request::kXferAbort:
      in_ = {};
      out_.active = false;
      return;
    case pb::Request::kGetTelemetryFrom: {
      const std::uint32_t first = events_.empty() ? next_event : events_.begin()->first;
      const std::uint32_t from = std::max(request.get_telemetry_from().event_id(), first);
      response.mutable_telemetry()->set_first(from);
      response.mutable_telemetry()->set_next(next_event);
      for (std::uint32_t id = from; id < next_event; ++id) send_event(id);
      return;
    }
    default:
      return;
  }
}

void ScriptedBoard::open(const device::v1::XferOpen& o, Response& response) {
  pb::XferOpened& opened = *response.mutable_xfer_opened();
  opened.set_window(window);
  opened.set_chunk(chunk);
  if (o.direction() == pb::DIRECTION_TO_HOST) {
    out_ = {true, o.xfer_id(), 0, 0, offered};
    opened.set_size(static_cast<std::uint32_t>(offered.size()));
    opened.set_crc32(wire::crc32(offered));
    opened.set_version(offered_version);
    return;
  }
  last_resume_offset = o.resume_offset();
  const bool same = in_.active && in_.resource == o.resource() && in_.size == o.size() &&
                    in_.crc == o.crc32() && o.resume_offset() <= in_.content.size();
  std::string kept;
  if (same) kept = in_.content.substr(0, o.resume_offset());
  in_ = {true, false, o.xfer_id(), o.size(), o.crc32(), o.resource(), kept};
  opened.set_offset(static_cast<std::uint32_t>(kept.size()));
  opened.set_prefix_crc(wire::crc32(kept) + (lie_about_prefix ? 1 : 0));
  if (lie_about_prefix) lie_about_prefix = false;
}

void ScriptedBoard::commit(std::uint32_t id, std::uint32_t crc, Response& response) {
  if (out_.active && id == out_.id) {
    out_.active = false;
    return;
  }
  if (id == last_committed_) return;
  const bool sound = in_.active && id == in_.id && in_.content.size() == in_.size &&
                     wire::crc32(in_.content) == crc;
  if (!sound) {
    response.mutable_error()->set_code(pb::STATUS_CODE_DATA_LOSS);
    response.mutable_error()->set_text("CRC differs");
    in_ = {};
    return;
  }
  held[in_.resource] = std::move(in_.content);
  last_committed_ = id;
  in_ = {};
}

void ScriptedBoard::on_chunk(const wire::Frame& frame) {
  ++chunks;
  if (take(drop_chunks_in) || !in_.active || frame.id != in_.id) return;
  const auto chunk_in = parse<pb::Chunk>(frame.payload);
  if (chunk_in.offset() == in_.content.size()) {
    in_.content += chunk_in.data();
    in_.gap = false;
    send_window(false);
  } else if (chunk_in.offset() < in_.content.size()) {
    send_window(false);
  } else if (!in_.gap) {
    in_.gap = true;
    send_window(true);
  }
}

void ScriptedBoard::send_window(bool retransmit) {
  if (take(drop_windows)) return;
  pb::Window w;
  const auto at = static_cast<std::uint32_t>(in_.content.size());
  w.set_offset(at);
  w.set_end(std::min(at + window, in_.size));
  w.set_retransmit(retransmit);
  send_frame(FRAME_WINDOW_TO_HOST, in_.id, w.SerializeAsString());
}

void ScriptedBoard::on_window(const wire::Frame& frame) {
  const auto w = parse<pb::Window>(frame.payload);
  if (!out_.active || frame.id != out_.id) return;
  if (w.retransmit()) out_.at = w.offset();
  out_.end = w.end();
  while (out_.at < out_.end) {
    pb::Chunk c;
    c.set_offset(out_.at);
    c.set_data(out_.content.substr(out_.at, std::min(chunk, out_.end - out_.at)));
    out_.at += static_cast<std::uint32_t>(c.data().size());
    if (!take(drop_chunks_out)) send_frame(FRAME_CHUNK_TO_HOST, out_.id, c.SerializeAsString());
  }
}

void ScriptedBoard::emit_event(std::string payload) {
  const std::uint32_t id = next_event++;
  events_[id] = std::move(payload);
  while (events_.size() > ring) events_.erase(events_.begin());
  if (session != 0 && !take(drop_events)) send_event(id);
}

void ScriptedBoard::send_event(std::uint32_t id) {
  const auto found = events_.find(id);
  if (found != events_.end()) send_frame(FRAME_EVENT, id, found->second);
}

void ScriptedBoard::emit_step(std::uint32_t step) {
  pb::Event event;
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(1000 - step);
  event.mutable_step()->set_layers(std::string("\x07\xff\x08", 3));
  emit_event(event.SerializeAsString());
}

void ScriptedBoard::emit_log(const std::string& text, std::uint32_t level) {
  pb::Log log;
  log.set_text(text);
  log.set_level(level);
  send_frame(FRAME_LOG, 0, log.SerializeAsString());
}

void ScriptedBoard::emit_busy(std::uint32_t ms) {
  pb::Busy busy;
  busy.set_until_ms(ms);
  send_frame(FRAME_BUSY, 0, busy.SerializeAsString());
}

void ScriptedBoard::emit_pong(std::uint32_t id) {
  pb::Pong pong;
  pong.set_next_event(next_event);
  send_frame(FRAME_PONG, id, pong.SerializeAsString());
}

}  // namespace odt::test

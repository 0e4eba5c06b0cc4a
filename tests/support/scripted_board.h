#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "link/byte_link.h"
#include "wire/frame_stream.h"

namespace odt::device::v1 {
class Request;
class Response;
class XferOpen;
}  // namespace odt::device::v1

namespace odt::test {

// A board for tests of the host's end: speaks the link by the book over any ByteLink, holds what is
// sent to it, and misbehaves where told. Written apart from the firmware, from proto/README.md.
class ScriptedBoard : public std::enable_shared_from_this<ScriptedBoard> {
 public:
  using Request = device::v1::Request;
  using Response = device::v1::Response;

  ScriptedBoard(asio::io_context& io, std::shared_ptr<link::ByteLink> link);
  void start();

  // ---- what it is
  std::string uid = "board-01";
  std::uint64_t boot_id = 0x1111;
  std::uint32_t mtu = 576, window = 2048, chunk = 512, max_poll_ms = 5, proto = 1;
  std::map<int, std::string> held;  // by resource: committed content
  std::string offered;              // what a transfer to the host reads
  std::uint32_t offered_version = 7;
  std::size_t ring = 16;
  std::string board_name = "scripted";
  std::uint32_t max_layers = 0;  // 0: does not say

  // ---- misbehaviour
  bool mute = false;  // says nothing
  bool mute_pong = false;
  int drop_hellos = 0, drop_responses = 0, drop_chunks_in = 0, drop_windows = 0, drop_events = 0;
  int drop_chunks_out = 0, accept_first = 0;  // answers ACCEPTED so many times before the result
  bool lie_about_prefix = false;
  std::chrono::milliseconds delay_response{0};
  // XFER_OPEN and COMMIT are worked on so long, unanswered; PINGs are answered.
  std::chrono::milliseconds slow_open{0}, slow_commit{0};
  // Replaces the answer where it returns true.
  std::function<bool(const Request&, Response&)> on_request;

  // ---- actions
  void emit_step(std::uint32_t step);    // EVENT of one step, into the ring
  void emit_event(std::string payload);  // EVENT as given
  void emit_log(const std::string& text, std::uint32_t level = 2);
  void emit_busy(std::uint32_t ms);
  void emit_pong(std::uint32_t id);
  void send_frame(std::uint8_t type, std::uint32_t id, std::string payload);
  void send_frame_of(std::uint16_t session, std::uint8_t type, std::uint32_t id,
                     std::string payload);
  void send_raw(std::string bytes);
  void forget_session();  // next frame: NEED_HELLO
  void reboot();          // and another boot_id, RAM lost
  void hang_up() { link_->close(); }

  // ---- what it saw
  std::vector<wire::Frame> frames;
  int hellos = 0, requests = 0, executed = 0, byes = 0, pings = 0, chunks = 0;
  std::uint16_t session = 0;
  std::uint32_t last_resume_offset = 0;
  std::uint32_t next_event = 0;

  int count(std::uint8_t type) const;

 private:
  struct Incoming {
    bool active = false, gap = false;
    std::uint32_t id = 0, size = 0, crc = 0;
    int resource = 0;
    std::string content;
  };
  struct Outgoing {
    bool active = false;
    std::uint32_t id = 0, at = 0, end = 0;
    std::string content;
  };

  asio::awaitable<void> read_loop(std::shared_ptr<ScriptedBoard> self);
  asio::awaitable<void> write_loop(std::shared_ptr<ScriptedBoard> self);
  void on_frame(const wire::Frame& frame);
  void on_hello(const wire::Frame& frame);
  void on_req(const wire::Frame& frame);
  void answer(const Request& request, Response& response);
  void open(const device::v1::XferOpen& open, Response& response);
  void commit(std::uint32_t id, std::uint32_t crc, Response& response);
  void on_chunk(const wire::Frame& frame);
  void on_window(const wire::Frame& frame);
  void send_window(bool retransmit);
  void respond(std::uint32_t id);
  void send_event(std::uint32_t id);

  asio::io_context& io_;
  std::shared_ptr<link::ByteLink> link_;
  wire::FrameStream stream_;
  std::string outbox_;
  asio::steady_timer writable_;
  std::uint32_t last_request_ = 0, last_committed_ = 0;
  std::string cached_;
  std::chrono::steady_clock::time_point ready_{};  // of the cached answer
  Incoming in_;
  Outgoing out_;
  std::map<std::uint32_t, std::string> events_;
};

}  // namespace odt::test

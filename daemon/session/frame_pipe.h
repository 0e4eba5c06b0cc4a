#pragma once

#include <deque>
#include <memory>

#include "link/byte_link.h"
#include "session/async.h"
#include "wire/frame_stream.h"

namespace odt::session {

// Frames over one byte link: a reader, a writer with two lanes, and counts. Shared, because its
// reader and writer outlive whoever closes it. Nothing that a peer sends ends anything but this
// pipe.
class FramePipe : public std::enable_shared_from_this<FramePipe> {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_frame(const wire::Frame& frame) = 0;  // direction and version are sound
    virtual void on_console(const std::string& line) = 0;
    virtual void on_pipe_closed(const Status& why) = 0;  // once
  };

  // strict: a bad frame ends the pipe (TCP does not damage bytes).
  FramePipe(asio::io_context& io, std::shared_ptr<link::ByteLink> link, bool strict);

  void start();
  // nullptr: frames are dropped.
  void set_handler(Handler* handler) { handler_ = handler; }
  // Stamped on every frame that is given without a session.
  void set_session(std::uint16_t session) { session_ = session; }

  enum class Lane : std::uint8_t { kControl, kBulk };
  // Control goes before bulk. Control is bounded: the oldest frame is dropped (a retry follows).
  void send(wire::Frame frame, Lane lane = Lane::kControl);
  // Waits until the bulk lane is nearly empty or the pipe is closed. One waiter.
  asio::awaitable<void> bulk_room();
  void clear_bulk() {
    bulk_.clear();
    room_.notify();
  }
  // While held nothing is written.
  void hold(bool held);

  void flush_console() { stream_.flush(); }
  void reset_decoder() { stream_.reset(); }

  bool open() const { return !closed_; }
  void close(const Status& why);
  // Writes what is queued (BYE), at most 200 ms, then closes.
  void close_after_flush(const Status& why);

  std::uint64_t rx_frames() const { return stream_.frames(); }
  std::uint64_t rx_bytes() const { return stream_.bytes(); }
  std::uint64_t rx_errors() const { return stream_.errors() + wrong_direction_; }
  // Frames of our own that came back: receiver and transmitter are joined, or a tty echoes.
  std::uint64_t echoes() const { return wrong_direction_; }
  // The last line of text that came between frames, sanitised; empty: none.
  const std::string& last_line() const { return last_line_; }
  std::uint64_t text_bytes() const { return text_bytes_; }
  std::uint64_t tx_frames() const { return tx_frames_; }
  std::uint64_t tx_bytes() const { return tx_bytes_; }
  link::ByteLink& link() { return *link_; }

 private:
  asio::awaitable<void> read_loop(std::shared_ptr<FramePipe> self);
  asio::awaitable<void> write_loop(std::shared_ptr<FramePipe> self);
  bool sendable() const { return !held_ && (!control_.empty() || !bulk_.empty()); }
  std::string take_bytes();
  void on_frame(const wire::Frame& frame);
  void on_console(const std::string& line);

  asio::io_context& io_;
  std::shared_ptr<link::ByteLink> link_;
  bool strict_;
  wire::FrameStream stream_;
  Handler* handler_ = nullptr;
  std::deque<wire::Frame> control_, bulk_;
  Signal work_, room_;
  asio::steady_timer flush_timer_;
  std::uint16_t session_ = 0;
  std::uint64_t tx_frames_ = 0, tx_bytes_ = 0, wrong_direction_ = 0, text_bytes_ = 0;
  std::string last_line_;
  bool held_ = false, closed_ = false, closing_ = false;
  Status closing_why_, bad_frame_;
  // Ends whatever the receiver holds half of (a modem prober's text, a frame cut off).
  std::string lead_ = std::string(2, '\0');
};

}  // namespace odt::session

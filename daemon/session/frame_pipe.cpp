#include "session/frame_pipe.h"

#include <array>

namespace odt::session {
namespace {

constexpr std::size_t kMaxControl = 64;
constexpr std::size_t kBulkRoom = 2;  // frames queued before the sender waits
constexpr std::size_t kWriteAtOnce = 1400;
constexpr std::chrono::milliseconds kFlushTime{200};

}  // namespace

FramePipe::FramePipe(asio::io_context& io, std::shared_ptr<link::ByteLink> link, bool strict)
    : io_(io),
      link_(std::move(link)),
      strict_(strict),
      stream_({[this](const wire::Frame& frame) { on_frame(frame); },
               [this](const std::string& line) { on_console(line); },
               [this](const char* why) {
                 if (strict_) bad_frame_ = absl::UnavailableError(link_->name() + ": " + why);
               }}),
      work_(io),
      room_(io),
      flush_timer_(io) {}

void FramePipe::start() {
  const auto ended = [self = shared_from_this()](std::exception_ptr error) {
    if (error) self->close(absl::InternalError(self->link_->name() + ": link failed"));
  };
  asio::co_spawn(io_, read_loop(shared_from_this()), ended);
  asio::co_spawn(io_, write_loop(shared_from_this()), ended);
}

void FramePipe::send(wire::Frame frame, Lane lane) {
  if (closed_ || closing_) return;
  if (lane == Lane::kBulk) {
    bulk_.push_back(std::move(frame));
  } else {
    if (control_.size() >= kMaxControl) control_.pop_front();
    control_.push_back(std::move(frame));
  }
  if (!held_) work_.notify();
}

asio::awaitable<void> FramePipe::bulk_room() {
  while (!closed_ && bulk_.size() >= kBulkRoom) co_await room_.wait();
}

void FramePipe::hold(bool held) {
  held_ = held;
  if (!held) work_.notify();
}

void FramePipe::close(const Status& why) {
  if (closed_) return;
  closed_ = true;
  link_->close();
  work_.notify();
  room_.notify();
  flush_timer_.cancel();
  control_.clear();
  bulk_.clear();
  if (Handler* handler = std::exchange(handler_, nullptr)) handler->on_pipe_closed(why);
}

void FramePipe::close_after_flush(const Status& why) {
  if (closed_ || closing_) return;
  closing_ = true;
  closing_why_ = why;
  held_ = false;
  bulk_.clear();
  flush_timer_.expires_after(kFlushTime);
  flush_timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    if (!ec) self->close(self->closing_why_);
  });
  work_.notify();
}

asio::awaitable<void> FramePipe::read_loop([[maybe_unused]] std::shared_ptr<FramePipe> self) {
  std::array<char, 4096> buffer;
  while (!closed_) {
    const Result<std::size_t> n = co_await link_->read(asio::buffer(buffer));
    if (closed_) co_return;
    if (!n.ok()) {
      stream_.flush();  // a last console line, such as a panic
      close(n.status());
      co_return;
    }
    stream_.feed({buffer.data(), *n});
    if (!bad_frame_.ok()) close(bad_frame_);
  }
}

asio::awaitable<void> FramePipe::write_loop([[maybe_unused]] std::shared_ptr<FramePipe> self) {
  while (!closed_) {
    if (!sendable()) {
      if (closing_) {
        close(closing_why_);
        co_return;
      }
      co_await work_.wait();
      continue;
    }
    const std::string bytes = take_bytes();
    room_.notify();
    const Status written = co_await link_->write(asio::buffer(bytes));
    if (!written.ok()) {
      close(written);
      co_return;
    }
    tx_bytes_ += bytes.size();
  }
}

std::string FramePipe::take_bytes() {
  std::string bytes = std::exchange(lead_, {});
  while (bytes.size() < kWriteAtOnce && sendable()) {
    auto& lane = control_.empty() ? bulk_ : control_;
    wire::Frame& frame = lane.front();
    if (frame.session == 0) frame.session = session_;
    bytes += wire::encode_frame(frame);
    lane.pop_front();
    ++tx_frames_;
  }
  return bytes;
}

void FramePipe::on_frame(const wire::Frame& frame) {
  if ((frame.type & FRAME_TO_HOST) == 0) {
    ++wrong_direction_;  // our own bytes, echoed by a tty that was not raw yet
    return;
  }
  if (handler_ != nullptr) handler_->on_frame(frame);
}

void FramePipe::on_console(const std::string& line) {
  text_bytes_ += line.size();
  last_line_ = line;
  if (handler_ != nullptr) handler_->on_console(line);
}

}  // namespace odt::session

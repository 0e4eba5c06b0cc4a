#pragma once

#include <cstdint>
#include <optional>

#include "wire/messages.h"

// The two ends of a bulk transfer: receiver-driven window, go-back-N. Pure.
namespace odt::session {

// Sender.
class SendWindow {
 public:
  // Sends [offset, size) in chunks of at most `chunk` bytes, at first up to offset + window.
  SendWindow(std::uint32_t offset, std::uint32_t size, std::uint32_t window, std::uint32_t chunk);

  struct Span {
    std::uint32_t offset = 0, size = 0;
  };
  // The next piece that may be sent now, if any; records it as sent.
  std::optional<Span> next();

  enum class Outcome : std::uint8_t { kStale, kProgress, kRetransmit };
  Outcome on_window(const wire::Window& window);
  // Nothing was heard: sends again from what is acknowledged, one chunk until the receiver answers.
  void on_timeout();

  std::uint32_t acked() const { return acked_; }
  bool done() const { return acked_ == size_; }

 private:
  std::uint32_t size_, chunk_, acked_, next_, end_;
};

// Receiver.
class ReceiveWindow {
 public:
  ReceiveWindow(std::uint32_t offset, std::uint32_t size, std::uint32_t window);

  struct Outcome {
    bool accept = false;                 // append the chunk's data
    std::optional<wire::Window> answer;  // send this
  };
  // A gap is answered once; then the receiver is silent until there is progress.
  Outcome on_chunk(const wire::Chunk& chunk);
  wire::Window open() const;  // opens or repeats the window
  wire::Window on_timeout();

  std::uint32_t next() const { return next_; }
  bool done() const { return next_ == size_; }

 private:
  wire::Window make(bool retransmit) const;
  std::uint32_t size_, window_, next_;
  bool asked_ = false;
};

}  // namespace odt::session

#include "session/windows.h"

#include <algorithm>

namespace odt::session {
namespace {

std::uint32_t add_capped(std::uint32_t a, std::uint32_t b, std::uint32_t cap) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} + b, cap));
}

}  // namespace

SendWindow::SendWindow(std::uint32_t offset, std::uint32_t size, std::uint32_t window,
                       std::uint32_t chunk)
    : size_(size),
      chunk_(chunk),
      acked_(offset),
      next_(offset),
      end_(add_capped(offset, std::max(window, chunk), size)) {}

std::optional<SendWindow::Span> SendWindow::next() {
  if (next_ >= end_) return std::nullopt;
  const Span span{next_, std::min(chunk_, end_ - next_)};
  // A full window ends between two chunks: a short chunk would cost the receiver a frame more.
  if (span.size < chunk_ && end_ < size_ && next_ > acked_) return std::nullopt;
  next_ += span.size;
  return span;
}

SendWindow::Outcome SendWindow::on_window(const wire::Window& window) {
  if (window.offset < acked_ || window.offset > size_) return Outcome::kStale;
  const bool progress = window.offset > acked_;
  acked_ = window.offset;
  end_ = std::clamp(window.end, acked_, size_);
  next_ = std::max(next_, acked_);
  if (window.retransmit) {
    next_ = acked_;
    return Outcome::kRetransmit;
  }
  return progress ? Outcome::kProgress : Outcome::kStale;
}

void SendWindow::on_timeout() {
  next_ = acked_;
  end_ = add_capped(acked_, chunk_, size_);
}

ReceiveWindow::ReceiveWindow(std::uint32_t offset, std::uint32_t size, std::uint32_t window)
    : size_(size), window_(window), next_(offset) {}

ReceiveWindow::Outcome ReceiveWindow::on_chunk(const wire::Chunk& chunk) {
  Outcome out;
  const bool fits = chunk.data.size() <= size_ - next_;
  if (chunk.offset == next_ && fits && !chunk.data.empty()) {
    next_ += static_cast<std::uint32_t>(chunk.data.size());
    asked_ = false;
    out.accept = true;
    out.answer = make(false);
  } else if (chunk.offset < next_) {
    out.answer = make(false);
  } else if (!asked_) {
    asked_ = true;
    out.answer = make(true);
  }
  return out;
}

wire::Window ReceiveWindow::open() const { return make(false); }

wire::Window ReceiveWindow::on_timeout() {
  asked_ = true;
  return make(true);
}

wire::Window ReceiveWindow::make(bool retransmit) const {
  wire::Window window;
  window.offset = next_;
  window.end = add_capped(next_, window_, size_);
  window.retransmit = retransmit;
  return window;
}

}  // namespace odt::session

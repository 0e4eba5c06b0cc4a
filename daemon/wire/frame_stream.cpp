#include "wire/frame_stream.h"

#include "wire/text.h"

namespace odt::wire {
namespace {

constexpr std::size_t kMaxLine = 240;

std::string_view payload_of(const frame_t& frame) {
  if (frame.payload == nullptr) return {};
  return {reinterpret_cast<const char*>(frame.payload), frame.payload_size};
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  std::string out(FRAME_WIRE_SIZE(frame.payload.size()), '\0');
  const frame_t f{frame.type, frame.session, frame.id,
                  reinterpret_cast<const std::uint8_t*>(frame.payload.data()),
                  static_cast<std::uint32_t>(frame.payload.size())};
  out.resize(frame_encode(&f, reinterpret_cast<std::uint8_t*>(out.data()), out.size()));
  return out;
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t crc) {
  return frame_crc32(crc, bytes.data(), bytes.size());
}

FrameStream::FrameStream(Handler handler)
    : handler_(std::move(handler)), buffer_(FRAME_DECODER_SIZE(FRAME_MTU_MAX)) {
  reset();
}

void FrameStream::reset() {
  const frame_counters_t counters = decoder_.counters;
  frame_decoder_init(&decoder_, buffer_.data(), static_cast<std::uint32_t>(buffer_.size()),
                     FRAME_MTU_MAX);
  decoder_.counters = counters;
  line_.clear();
}

std::uint64_t FrameStream::errors() const {
  const frame_counters_t& c = decoder_.counters;
  return std::uint64_t{c.crc_errors} + c.short_errors + c.version_errors + c.oversize;
}

void FrameStream::feed(std::string_view bytes) {
  bytes_ += bytes.size();
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t n = bytes.size();
  frame_t frame{};
  for (;;) {
    const frame_event_t event = frame_decoder_feed(&decoder_, &data, &n, &frame);
    if (event == FRAME_NONE) return;
    on_event(event, frame);
  }
}

void FrameStream::flush() {
  frame_t frame{};
  if (frame_decoder_flush(&decoder_, &frame) == FRAME_TEXT) on_text(payload_of(frame));
}

void FrameStream::on_event(frame_event_t event, const frame_t& frame) {
  switch (event) {
    case FRAME_OK:
      frame_.type = frame.type;
      frame_.session = frame.session;
      frame_.id = frame.id;
      frame_.payload = payload_of(frame);
      handler_.on_frame(frame_);
      return;
    case FRAME_TEXT:
      on_text(payload_of(frame));
      return;
    case FRAME_BAD:
      handler_.on_bad("broken frame");
      return;
    case FRAME_BAD_VERSION:
      handler_.on_bad("unknown framing version");
      return;
    case FRAME_OVERSIZE:
      handler_.on_bad("frame too long");
      return;
    case FRAME_NONE:
      return;
  }
}

void FrameStream::on_text(std::string_view text) {
  const auto emit = [this] {
    if (!line_.empty()) handler_.on_console(sanitise(line_, kMaxLine));
    line_.clear();
  };
  for (const char c : text) {
    if (c == '\n' || c == '\r' || line_.size() >= kMaxLine) emit();
    if (c != '\n' && c != '\r') line_.push_back(c == '\t' ? ' ' : c);
  }
  emit();
}

}  // namespace odt::wire

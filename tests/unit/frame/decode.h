#pragma once

#include <string>
#include <vector>

#include "frame/frame.h"

namespace odt::testing {

using Bytes = std::vector<std::uint8_t>;

struct Seen {
  frame_event_t event;
  std::uint8_t type = 0;
  std::uint16_t session = 0;
  std::uint32_t id = 0;
  std::uint32_t size = 0;
  Bytes payload;
};

// A decoder with its buffer.
class Decoder {
 public:
  explicit Decoder(std::uint32_t mtu) : buffer_(FRAME_DECODER_SIZE(mtu)) {
    frame_decoder_init(&d_, buffer_.data(), static_cast<std::uint32_t>(buffer_.size()), mtu);
  }
  // Feeds in pieces of `step` bytes; each piece is a buffer of its own, so that sanitizers see it.
  std::vector<Seen> feed(const Bytes& wire, std::size_t step = SIZE_MAX) {
    std::vector<Seen> seen;
    for (std::size_t at = 0; at < wire.size(); at += std::min(step, wire.size() - at)) {
      const std::size_t n = std::min(step, wire.size() - at);
      const Bytes piece(wire.begin() + static_cast<long>(at),
                        wire.begin() + static_cast<long>(at + n));
      const std::uint8_t* data = piece.data();
      std::size_t left = n;
      frame_t f;
      frame_event_t event;
      while ((event = frame_decoder_feed(&d_, &data, &left, &f)) != FRAME_NONE) {
        seen.push_back(keep(event, f));
      }
      EXPECT_EQ(left, 0u);
    }
    return seen;
  }
  std::vector<Seen> flush() {
    frame_t f;
    const frame_event_t event = frame_decoder_flush(&d_, &f);
    return event == FRAME_NONE ? std::vector<Seen>{} : std::vector<Seen>{keep(event, f)};
  }
  const frame_counters_t& counters() const { return d_.counters; }
  frame_decoder_t& raw() { return d_; }

 private:
  static Seen keep(frame_event_t event, const frame_t& f) {
    Seen s{event, f.type, f.session, f.id, f.payload_size, {}};
    if (f.payload != nullptr) s.payload.assign(f.payload, f.payload + f.payload_size);
    return s;
  }
  Bytes buffer_;
  frame_decoder_t d_;
};

inline Bytes encode(std::uint8_t type, std::uint16_t session, std::uint32_t id,
                    const Bytes& payload) {
  Bytes out(FRAME_WIRE_SIZE(payload.size()));
  const frame_t f{type, session, id, payload.data(), static_cast<std::uint32_t>(payload.size())};
  out.resize(frame_encode(&f, out.data(), out.size()));
  return out;
}

inline std::string text(const Seen& s) { return {s.payload.begin(), s.payload.end()}; }

}  // namespace odt::testing

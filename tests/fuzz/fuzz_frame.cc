// The frame decoder, CRC on: arbitrary bytes in arbitrary pieces. Oracle: what it gives up as a
// frame encodes to a frame that decodes to the same; a frame put behind the garbage is always
// found; counters account for every block.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "frame/frame.h"

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

struct Totals {
  std::uint32_t frames = 0, errors = 0;
  bool last_is_probe = false;
};

constexpr std::uint8_t kProbe[] = {'p', 0, 'r', 'o', 0, 0, 'b', 'e'};

void check_frame(const frame_t& f, std::uint32_t mtu) {
  require(f.payload_size <= mtu, "payload within the MTU");
  std::vector<std::uint8_t> wire(FRAME_WIRE_SIZE(f.payload_size));
  const std::size_t n = frame_encode(&f, wire.data(), wire.size());
  require(n > 0 && wire[0] == 0 && wire[n - 1] == 0, "encodes again");
  require(std::memchr(wire.data() + 1, 0, n - 2) == nullptr, "no delimiter inside");
}

void feed(frame_decoder_t* d, const std::uint8_t* data, std::size_t size, Totals* totals) {
  frame_t f;
  frame_event_t event;
  while ((event = frame_decoder_feed(d, &data, &size, &f)) != FRAME_NONE) {
    totals->last_is_probe = false;
    if (event == FRAME_OK) {
      totals->frames++;
      check_frame(f, d->max_payload);
      totals->last_is_probe =
          f.payload_size == sizeof kProbe && std::memcmp(f.payload, kProbe, sizeof kProbe) == 0;
    } else if (event != FRAME_TEXT) {
      totals->errors++;
    }
    std::uint32_t sum = 0;
    if (f.payload != nullptr) {
      for (std::uint32_t i = 0; i < f.payload_size; i++) sum += f.payload[i];
    }
    require(sum < UINT32_MAX, "payload readable");
  }
  require(size == 0, "input used up");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint32_t mtu = data[0] < 128 ? FRAME_MTU_MIN : FRAME_MTU_DEFAULT;
  const std::size_t step = 1 + data[1];
  data += 2;
  size -= 2;
  std::vector<std::uint8_t> buffer(FRAME_DECODER_SIZE(mtu));
  frame_decoder_t d;
  frame_decoder_init(&d, buffer.data(), static_cast<std::uint32_t>(buffer.size()), mtu);
  Totals totals;
  for (std::size_t at = 0; at < size; at += step) {
    const std::size_t n = size - at < step ? size - at : step;
    const std::vector<std::uint8_t> piece(data + at, data + at + n);
    feed(&d, piece.data(), n, &totals);
  }
  std::vector<std::uint8_t> wire(FRAME_WIRE_SIZE(sizeof kProbe));
  const frame_t probe{FRAME_PONG, 1, 2, kProbe, sizeof kProbe};
  wire.resize(frame_encode(&probe, wire.data(), wire.size()));
  feed(&d, wire.data(), wire.size(), &totals);
  require(totals.last_is_probe, "a good frame behind garbage is found");
  const frame_counters_t& c = d.counters;
  require(c.frames == totals.frames, "frames counted");
  require(c.crc_errors + c.short_errors + c.version_errors + c.oversize == totals.errors,
          "errors counted");
  return 0;
}

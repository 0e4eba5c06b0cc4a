#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/frame.h"

namespace odt::wire {

// One frame of the device link; type is a FRAME_* number.
struct Frame {
  std::uint8_t type = 0;
  std::uint16_t session = 0;
  std::uint32_t id = 0;
  std::string payload;
};

// The frame's bytes with both delimiters. The payload is at most FRAME_MTU_MAX bytes.
std::string encode_frame(const Frame& frame);

std::uint32_t crc32(std::string_view bytes, std::uint32_t crc = 0);

// Bytes from a board -> frames and console lines, by the C codec.
class FrameStream {
 public:
  struct Handler {
    std::function<void(const Frame&)> on_frame;
    std::function<void(const std::string&)> on_console;  // one line, sanitised
    std::function<void(const char* why)> on_bad;         // a frame was lost: CRC, length, version
  };

  explicit FrameStream(Handler handler);

  void feed(std::string_view bytes);
  // The line has been quiet: what is held may be a console line without an end.
  void flush();
  // Forgets what is held (another speed, another connection).
  void reset();

  std::uint64_t frames() const { return decoder_.counters.frames; }
  // Frames lost: CRC or structure, length, version.
  std::uint64_t errors() const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  void on_event(frame_event_t event, const frame_t& frame);
  void on_text(std::string_view text);

  Handler handler_;
  std::vector<std::uint8_t> buffer_;
  frame_decoder_t decoder_{};
  std::uint64_t bytes_ = 0;
  std::string line_;  // console line under way
  Frame frame_;       // given away last; keeps its memory
};

}  // namespace odt::wire

#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>

namespace odt::test {

// Per mille of the frames that enter; each frame has one fate.
struct WireFaults {
  int drop = 0, flip = 0, burst = 0, truncate = 0, duplicate = 0, garbage = 0, delay = 0;
  std::int64_t delay_us = 2'000'000;  // the line stands still before the frame
};

// One direction of a UART: ten bits a byte, a time on the way, and damage. Times in microseconds
// of the world's clock.
class Wire {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  Wire(std::uint64_t seed, std::uint32_t baud, std::int64_t one_way_us);

  void put(const void* data, std::size_t size, std::int64_t now);
  // What has arrived by now; at most `size` bytes. Where more than `ring` bytes have arrived and
  // were not taken, the last ones are lost, as in a receiver's ring.
  std::size_t take(void* out, std::size_t size, std::int64_t now, std::size_t ring = SIZE_MAX);
  // When the next bytes, put at once, have arrived all.
  std::int64_t next_arrival() const;
  // When no more than `bytes` wait for the line.
  std::int64_t room_at(std::size_t bytes) const;
  std::size_t waiting(std::int64_t now) const;  // bytes that wait for the line
  void clear();

  WireFaults faults;
  std::uint64_t injected = 0;  // faults so far

 private:
  enum class Fate : std::uint8_t { kPass, kDrop, kFlip, kBurst, kTruncate, kDuplicate };
  struct Segment {
    std::int64_t start_ns = 0;  // arrival of the byte before the first
    std::string bytes;
    std::size_t taken = 0;
  };
  void begin_frame(std::int64_t now);
  void content_byte(char byte);
  void end_frame();
  void flush(std::int64_t now);
  bool chance(int per_mille) { return static_cast<int>(random_() % 1000) < per_mille; }
  std::int64_t arrival_us(const Segment& segment, std::size_t index) const;

  std::mt19937_64 random_;
  std::int64_t byte_ns_, one_way_ns_, free_ns_ = 0;
  std::deque<Segment> segments_;
  std::string out_, copy_;
  Fate fate_ = Fate::kPass;
  bool in_frame_ = false, hit_ = false;
  std::size_t at_ = 0, fate_at_ = 0, fate_size_ = 0;
};

}  // namespace odt::test

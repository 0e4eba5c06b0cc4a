// Where random nets, settings and samples come from: a seeded generator, or bytes of a fuzzer.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace odt::testing {

class Choices {
 public:
  explicit Choices(uint32_t seed) : engine_(seed) {}
  // Takes its decisions from the bytes in order; 0 where they have run out.
  Choices(const uint8_t* data, size_t size)
      : bytes_(data, data + size), from_bytes_(true), engine_(0) {}

  int range(int lo, int hi) {  // both included
    auto span = static_cast<uint32_t>(hi - lo + 1);
    return lo + static_cast<int>((from_bytes_ && span <= 256 ? byte() : word()) % span);
  }
  bool chance(int percent) { return range(0, 99) < percent; }
  uint32_t word() {
    if (!from_bytes_) return static_cast<uint32_t>(engine_());
    uint32_t w = 0;
    for (int i = 0; i < 4; i++) w = w * 256 + byte();
    return w;
  }

 private:
  uint32_t byte() { return next_ < bytes_.size() ? bytes_[next_++] : 0; }

  std::vector<uint8_t> bytes_;
  size_t next_ = 0;
  bool from_bytes_ = false;
  std::mt19937 engine_;
};

}  // namespace odt::testing

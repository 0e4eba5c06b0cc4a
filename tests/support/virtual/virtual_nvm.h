#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include "hal/hal.h"

namespace odt::test {

// bytes 0: none. The rest as in hal_nvm_t.
struct NvmSetup {
  std::uint32_t bytes = 0, page = 128, unit = 0, write_us = 5000, erase_us = 20000;
};

// A board's non-volatile memory in virtual time: what is under way when the power goes is torn at
// any byte, what was to come after it has not begun. Times in microseconds.
class VirtualNvm {
 public:
  VirtualNvm(const NvmSetup& setup, std::uint64_t seed);

  // Sizes and times; nullptr: there is none. The board adds its calls.
  hal_nvm_t* hal() { return setup_.bytes == 0 ? nullptr : &hal_; }
  bool read(std::uint32_t at, std::uint8_t* out, std::uint32_t n) const;
  bool write(std::uint32_t at, const std::uint8_t* data, std::uint32_t n);
  bool erase(std::uint32_t at);

  void begin(std::int64_t now) { at_ = now; }  // of a turn of the board
  std::int64_t end() const { return at_; }     // now, and the time of the writes since
  void cut(std::int64_t now);                  // the power goes

 private:
  struct Write {
    std::int64_t from, to;
    std::uint32_t at;
    std::string before;
  };
  void put(std::uint32_t at, std::string data, std::uint32_t took_us);

  NvmSetup setup_;
  hal_nvm_t hal_{};
  std::string memory_;
  std::deque<Write> under_way_;
  std::mt19937_64 random_;
  std::int64_t at_ = 0;
};

}  // namespace odt::test

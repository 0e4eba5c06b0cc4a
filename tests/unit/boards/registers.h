// REG32 of firmware/boards, answered by a model of the chip: a driver's .c file is compiled for the
// host behind it.
#ifndef ODT_TESTS_BOARDS_REGISTERS_H
#define ODT_TESTS_BOARDS_REGISTERS_H

#include <cstddef>
#include <cstdint>

#define ODT_BOARD_H  // instead of board.h

namespace odt::test {

class Chip {
 public:
  virtual ~Chip() = default;
  virtual std::uint32_t load(std::uint32_t address) = 0;
  virtual void store(std::uint32_t address, std::uint32_t value) = 0;
};

// The chip that the drivers speak to.
extern Chip* chip;

struct Register {
  std::uint32_t address;
  operator std::uint32_t() const { return chip->load(address); }  // NOLINT
  void operator=(std::uint32_t value) const { chip->store(address, value); }
  void operator|=(std::uint32_t bits) const { chip->store(address, chip->load(address) | bits); }
};

}  // namespace odt::test

#define REG32(a) (odt::test::Register{static_cast<std::uint32_t>(a)})

#endif

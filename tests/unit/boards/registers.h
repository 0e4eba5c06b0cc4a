// REG32 of firmware/boards, answered by a model of the chip: a driver's .c file is compiled for the
// host behind it.
#ifndef ODT_TESTS_BOARDS_REGISTERS_H
#define ODT_TESTS_BOARDS_REGISTERS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#define _Noreturn [[noreturn]]
#define _Static_assert static_assert
#include "board.h"
#undef REG32

namespace odt::test {

class Chip {
 public:
  virtual ~Chip() = default;
  virtual std::uint32_t load(std::uint32_t address) = 0;
  virtual void store(std::uint32_t address, std::uint32_t value) = 0;
};

// The chip that the drivers speak to.
extern Chip* chip;
// What was handed to irq_enable().
extern std::vector<std::uint32_t> enabled_irqs;

// The functions of a board's board.c under test.
struct Port {
  const board_info_t* info;
  void (*clock_init)();
  void (*uart_init)();
  bool (*uart_put)(std::uint8_t);
  void (*irq)();
  void (*led)(bool);
  std::uint8_t (*uid)(std::uint8_t*);
  bool (*entropy)(std::uint64_t*);
  std::uint32_t (*reset_cause)();
  void (*watchdog_start)();
  void (*watchdog_feed)();
};
extern const Port stm32u575, nrf52840;

struct Register {
  std::uint32_t address;
  operator std::uint32_t() const { return chip->load(address); }  // NOLINT
  void operator=(std::uint32_t value) const { chip->store(address, value); }
  void operator|=(std::uint32_t bits) const { chip->store(address, chip->load(address) | bits); }
};

}  // namespace odt::test

#define REG32(a) (odt::test::Register{static_cast<std::uint32_t>(a)})

#endif

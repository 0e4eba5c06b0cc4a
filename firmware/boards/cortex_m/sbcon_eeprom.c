#include "sbcon_eeprom.h"

#include <stddef.h>

#include "board.h"

#define CHIP 65536u
#define PAGE 128u
#define CHIPS 8u
#define BUSY_MS 20u /* a page's write takes at most 5 ms; the clock counts in steps of 10 */

/* SBCon: read, or write to set, at 0; write to clear at 4. Released pins are pulled up. */
#define SCL 1u
#define SDA 2u

/* Of the one bus that a board uses for its memory. */
static uint32_t bus;

/* Half a period of 400 kHz is 1.25 us: 32 cycles of the fastest core here, with the access itself.
 */
static void half(void) {
  for (uint32_t i = 0; i < 8; i++) __asm__ volatile("nop");
}

static void pin(uint32_t mask, bool high) {
  REG32(bus + (high ? 0u : 4u)) = mask;
  half();
}

static void start(void) {
  pin(SDA, true);
  pin(SCL, true);
  pin(SDA, false);
  pin(SCL, false);
}

static void stop(void) {
  pin(SDA, false);
  pin(SCL, true);
  pin(SDA, true);
}

static bool put(uint32_t byte) {
  for (uint32_t bit = 0x80u; bit != 0; bit >>= 1) {
    pin(SDA, (byte & bit) != 0);
    pin(SCL, true);
    pin(SCL, false);
  }
  pin(SDA, true);
  pin(SCL, true);
  const bool taken = (REG32(bus) & SDA) == 0;
  pin(SCL, false);
  return taken;
}

static uint8_t get(bool more) {
  uint32_t byte = 0;
  pin(SDA, true);
  for (uint32_t i = 0; i < 8; i++) {
    pin(SCL, true);
    byte = (byte << 1) | ((REG32(bus) & SDA) != 0 ? 1u : 0u);
    pin(SCL, false);
  }
  pin(SDA, !more);
  pin(SCL, true);
  pin(SCL, false);
  return (uint8_t)byte;
}

/* Addresses byte `at`; the transfer is open then. The chip is silent while it writes. */
static bool select_byte(uint32_t at) {
  const uint32_t begin = clock_ms();
  do {
    start();
    if (put(0xA0u | (at / CHIP) << 1)) return put(at >> 8 & 0xFFu) && put(at & 0xFFu);
    stop();
  } while (clock_ms() - begin < BUSY_MS);
  return false;
}

static bool read(void* ctx, uint32_t at, uint8_t* out, uint32_t n) {
  (void)ctx;
  while (n > 0) {
    const uint32_t left = CHIP - at % CHIP, part = n < left ? n : left;
    if (!select_byte(at)) return false;
    start();
    const bool there = put(0xA1u | (at / CHIP) << 1);
    for (uint32_t i = 0; there && i < part; i++) out[i] = get(i + 1 < part);
    stop();
    if (!there) return false;
    at += part;
    out += part;
    n -= part;
  }
  return true;
}

/* One page, or a part of it. Not inlined and not static: tests stop QEMU here. */
bool sbcon_eeprom_write_page(void* ctx, uint32_t at, const uint8_t* data, uint32_t n);
__attribute__((noinline)) bool sbcon_eeprom_write_page(void* ctx, uint32_t at, const uint8_t* data,
                                                       uint32_t n) {
  bool taken = select_byte(at);
  for (uint32_t i = 0; taken && i < n; i++) taken = put(data[i]);
  stop();
  /* The next select waits until the page is written. */
  uint8_t back[PAGE];
  if (!taken || !read(ctx, at, back, n)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (back[i] != data[i]) return false;
  }
  return true;
}

static bool write(void* ctx, uint32_t at, const uint8_t* data, uint32_t n) {
  return n <= PAGE && at / PAGE == (at + n - 1u) / PAGE &&
         sbcon_eeprom_write_page(ctx, at, data, n);
}

/* A reset in the middle of a read leaves a chip that holds SDA: clocks bring it to its end. */
static void free_bus(void) {
  pin(SDA, true);
  for (uint32_t i = 0; i < 9; i++) {
    pin(SCL, false);
    pin(SCL, true);
  }
  stop();
}

static bool answers(uint32_t chip) {
  start();
  const bool there = put(0xA0u | chip << 1);
  stop();
  return there;
}

const hal_nvm_t* sbcon_eeprom(uint32_t base) {
  static hal_nvm_t memory = {.page = PAGE, .write_us = 5000, .read = read, .write = write};
  bus = base;
  uint32_t chips = 0;
  free_bus();
  while (chips < CHIPS && answers(chips)) chips++;
  memory.size = chips * CHIP;
  return chips > 0 ? &memory : NULL;
}

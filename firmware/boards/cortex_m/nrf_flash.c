#include "nrf_flash.h"

#include "board.h"
#include "memory_map.h"

#define READY 0x4001E400u
#define CONFIG 0x4001E504u
#define ERASEPAGE 0x4001E508u
#define READ_ONLY 0u
#define WRITE 1u
#define ERASE 2u

#define PAGE 128u

static bool ready(void) {
  for (uint32_t tries = 0; tries < 10000000u; tries++) {
    if ((REG32(READY) & 1u) != 0) return true;
  }
  return false;
}

static bool inside(uint32_t at, uint32_t n) { return at <= NRF_NVM_SIZE && n <= NRF_NVM_SIZE - at; }

static bool read(void* ctx, uint32_t at, uint8_t* out, uint32_t n) {
  (void)ctx;
  if (!inside(at, n)) return false;
  mapped_read(NRF_NVM_BASE + at, out, n);
  return true;
}

static bool write(void* ctx, uint32_t at, const uint8_t* data, uint32_t n) {
  (void)ctx;
  if (!inside(at, n) || (at | n) % 4u != 0) return false;
  const uint32_t to = NRF_NVM_BASE + at;
  bool done = ready();
  REG32(CONFIG) = WRITE;
  for (uint32_t i = 0; done && i < n; i += 4) {
    REG32(to + i) = (uint32_t)data[i] | (uint32_t)data[i + 1] << 8 | (uint32_t)data[i + 2] << 16 |
                    (uint32_t)data[i + 3] << 24;
    done = ready();
  }
  REG32(CONFIG) = READ_ONLY;
  return done && mapped_equals(to, data, n);
}

static bool erase(void* ctx, uint32_t at) {
  (void)ctx;
  if (!inside(at, NRF_NVM_UNIT) || at % NRF_NVM_UNIT != 0 || !ready()) return false;
  REG32(CONFIG) = ERASE;
  REG32(ERASEPAGE) = NRF_NVM_BASE + at;
  const bool done = ready();
  REG32(CONFIG) = READ_ONLY;
  return done && mapped_blank(NRF_NVM_BASE + at, NRF_NVM_UNIT);
}

const hal_nvm_t* nrf_flash(void) {
  static const hal_nvm_t kMemory = {.size = NRF_NVM_SIZE,
                                    .page = PAGE,
                                    .unit = NRF_NVM_UNIT,
                                    .write_us = 2000,
                                    .erase_us = 90000,
                                    .read = read,
                                    .write = write,
                                    .erase = erase};
  return &kMemory;
}

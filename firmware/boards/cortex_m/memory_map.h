/* For non-volatile memory that is read like RAM. */
#ifndef ODT_MEMORY_MAP_H
#define ODT_MEMORY_MAP_H

#include <stdbool.h>
#include <stdint.h>

static inline void mapped_read(uint32_t address, uint8_t* out, uint32_t n) {
  const volatile uint8_t* from = (const volatile uint8_t*)(uintptr_t)address;
  for (uint32_t i = 0; i < n; i++) out[i] = from[i];
}

static inline bool mapped_equals(uint32_t address, const uint8_t* data, uint32_t n) {
  const volatile uint8_t* here = (const volatile uint8_t*)(uintptr_t)address;
  for (uint32_t i = 0; i < n; i++) {
    if (here[i] != data[i]) return false;
  }
  return true;
}

static inline bool mapped_blank(uint32_t address, uint32_t n) {
  const volatile uint8_t* here = (const volatile uint8_t*)(uintptr_t)address;
  for (uint32_t i = 0; i < n; i++) {
    if (here[i] != 0xFFu) return false;
  }
  return true;
}

#endif

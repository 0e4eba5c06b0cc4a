#include "cmsdk_watchdog.h"

#include "board.h"

#define LOAD 0x000u
#define CTRL 0x008u
#define INTCLR 0x00Cu
#define LOCK 0xC00u
#define UNLOCK 0x1ACCE551u

void cmsdk_watchdog_start(uint32_t base, uint32_t clock_hz) {
  REG32(base + LOCK) = UNLOCK;
  REG32(base + LOAD) = clock_hz * WATCHDOG_S;
  REG32(base + CTRL) = 3u; /* interrupt, then reset */
  REG32(base + LOCK) = 0;
}

void cmsdk_watchdog_feed(uint32_t base) {
  REG32(base + LOCK) = UNLOCK;
  REG32(base + INTCLR) = 1; /* starts from LOAD again */
  REG32(base + LOCK) = 0;
}

#include "stm32_iwdg.h"

#include "board.h"

#define KR 0x40003000u
#define PR 0x40003004u
#define RLR 0x40003008u
#define SR 0x4000300Cu
#define DIVIDE_BY_256 6u
#define COUNT (WATCHDOG_S * 32000u / 256u)

_Static_assert(COUNT <= 0xFFFu, "12 bits");

void stm32_iwdg_start(void) {
  REG32(KR) = 0xCCCCu; /* starts the oscillator, too */
  REG32(KR) = 0x5555u;
  REG32(PR) = DIVIDE_BY_256;
  REG32(RLR) = COUNT;
  for (uint32_t tries = 0; REG32(SR) != 0 && tries < 1000000u; tries++) {}
  stm32_iwdg_feed();
}

void stm32_iwdg_feed(void) { REG32(KR) = 0xAAAAu; }

/* Time from TIMER0: the nRF51's core has no SysTick. It counts microseconds in 32 bits; an
 * interrupt every 10 ms ends a sleep. */
#include "board.h"

#define HFCLKSTART 0x40000000u
#define HFCLKSTARTED 0x40000100u
#define TIMER0 0x40008000u
#define START (TIMER0 + 0x000u)
#define CAPTURE0 (TIMER0 + 0x040u)
#define COMPARE1 (TIMER0 + 0x144u)
#define TIMER_INTENSET (TIMER0 + 0x304u)
#define BITMODE (TIMER0 + 0x508u)
#define PRESCALER (TIMER0 + 0x510u)
#define CC0 (TIMER0 + 0x540u)
#define CC1 (TIMER0 + 0x544u)
#define NVIC_ISER 0xE000E100u
#define TICK_US 10000u

static uint64_t latest_us; /* read by the main loop only, far more often than the counter wraps */

void clock_irq(void);
void clock_tick(void);
void clock_tick(void) {}

void irq_enable(uint32_t number) { REG32(NVIC_ISER) = 1u << number; }

void clock_irq(void) {
  if (REG32(COMPARE1) == 0) return;
  REG32(COMPARE1) = 0;
  REG32(CC1) = REG32(CC1) + TICK_US;
}

void clock_init(uint32_t cpu_hz) {
  (void)cpu_hz; /* 16 MHz; the prescaler makes 1 of it */
  REG32(HFCLKSTART) = 1;
  while (REG32(HFCLKSTARTED) == 0) {}
  REG32(BITMODE) = 3;
  REG32(PRESCALER) = 4;
  REG32(CC1) = TICK_US;
  REG32(TIMER_INTENSET) = 1u << 17;
  REG32(START) = 1;
  irq_enable(8);
}

static uint64_t now(void) {
  REG32(CAPTURE0) = 1;
  latest_us += REG32(CC0) - (uint32_t)latest_us;
  return latest_us;
}

uint32_t clock_us(void) { return (uint32_t)now(); }
uint32_t clock_ms(void) { return (uint32_t)(now() / 1000u); }

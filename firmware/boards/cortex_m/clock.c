/* Time from SysTick: 100 interrupts a second, the counter gives the rest. */
#include "board.h"

#define SYST_CSR 0xE000E010u
#define SYST_RVR 0xE000E014u
#define SYST_CVR 0xE000E018u
#define NVIC_ISER 0xE000E100u
#define NVIC_IPR 0xE000E400u
#define TICK_US 10000u

static volatile uint32_t ticks;
static uint32_t per_us;
static uint64_t latest_us; /* read by the main loop only */

void clock_tick(void);
void clock_tick(void) { ticks++; }

void clock_init(uint32_t cpu_hz) {
  per_us = cpu_hz / 1000000u;
  REG32(SYST_RVR) = cpu_hz / 100u - 1u;
  REG32(SYST_CVR) = 0;
  REG32(SYST_CSR) = 7;
}

/* The tick is read twice: it may pass between tick and counter. The counter may also have started
 * anew while its interrupt is still to come: time then stands still for a moment, it never goes
 * back. */
static uint64_t now(void) {
  uint32_t before;
  uint32_t tick;
  uint32_t us;
  do {
    before = ticks;
    us = (REG32(SYST_RVR) - REG32(SYST_CVR)) / per_us;
    tick = ticks;
  } while (before != tick);
  const uint64_t t = (uint64_t)tick * TICK_US + us;
  if (t > latest_us) latest_us = t;
  return latest_us;
}

uint32_t clock_us(void) { return (uint32_t)now(); }
uint32_t clock_ms(void) { return (uint32_t)(now() / 1000u); }

void irq_enable(uint32_t number) {
#ifdef BOARD_WATCHDOG_IRQ
  const uint32_t priority = number == BOARD_WATCHDOG_IRQ ? 0u : 0x40u;
#else
  const uint32_t priority = 0x40u;
#endif
  const uint32_t shift = number % 4u * 8u;
  const uint32_t word = NVIC_IPR + number / 4u * 4u;
  REG32(word) = (REG32(word) & ~(0xFFu << shift)) | priority << shift;
  REG32(NVIC_ISER + number / 32u * 4u) = 1u << (number % 32u);
}

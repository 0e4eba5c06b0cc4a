/* Stellaris LM3S6965 evaluation board: Cortex-M3, 64 KB RAM, PL011 UART with 16-byte FIFOs. */
#include "board.h"

#include <stddef.h>

#include "cmsdk_watchdog.h"

#define UART0 0x4000C000u
#define DR (UART0 + 0x00u)
#define FR (UART0 + 0x18u)
#define IBRD (UART0 + 0x24u)
#define FBRD (UART0 + 0x28u)
#define LCRH (UART0 + 0x2Cu)
#define CTL (UART0 + 0x30u)
#define IMSC (UART0 + 0x38u)
#define ICR (UART0 + 0x44u)
#define FR_RX_EMPTY 0x10u
#define FR_TX_FULL 0x20u

#define WATCHDOG 0x40000000u
#define SYSCTL_RESC 0x400FE05Cu
#define SYSCTL_RCGC0 0x400FE100u
#define SYSCTL_RCGC1 0x400FE104u
#define SYSCTL_RCGC2 0x400FE108u
#define GPIOA_AFSEL 0x40004420u
#define GPIOA_DEN 0x4000451Cu
#define GPIOF_DIR 0x40025400u
#define GPIOF_DEN 0x4002551Cu
#define GPIOF_LED 0x40025004u /* PF0 through the address mask */

const board_info_t kBoard = {.name = "lm3s6965evb", .core = "cortex-m3", .cpu_hz = 12500000u};

void board_uart_init(void) {
  REG32(SYSCTL_RCGC1) |= 1u;         /* UART0 */
  REG32(SYSCTL_RCGC2) |= 1u | 0x20u; /* GPIO A and F */
  REG32(GPIOA_AFSEL) |= 3u;
  REG32(GPIOA_DEN) |= 3u;
  REG32(GPIOF_DIR) |= 1u;
  REG32(GPIOF_DEN) |= 1u;
  const uint32_t divider = kBoard.cpu_hz * 4u / 115200u; /* in 1/64, of 16 samples a bit */
  REG32(CTL) = 0;
  REG32(IBRD) = divider / 64u;
  REG32(FBRD) = divider % 64u;
  REG32(LCRH) = 0x70u; /* 8 bits, FIFOs */
  REG32(IMSC) = 0x50u; /* receive, receive time-out */
  REG32(CTL) = 0x301u; /* enable, TX, RX */
  irq_enable(5);
}

void board_irq(void) {
  REG32(ICR) = 0x7FFu;
  while ((REG32(FR) & FR_RX_EMPTY) == 0) uart_received((uint8_t)REG32(DR));
}

bool board_uart_put(uint8_t byte) {
  if ((REG32(FR) & FR_TX_FULL) != 0) return false;
  REG32(DR) = byte;
  return true;
}

void board_led(bool on) { REG32(GPIOF_LED) = on ? 1u : 0u; }

/* QEMU's model sets no flag. */
uint32_t board_reset_cause(void) {
  const uint32_t flags = REG32(SYSCTL_RESC);
  REG32(SYSCTL_RESC) = 0;
  if ((flags & 8u) != 0) return RESET_WATCHDOG;
  return (flags & 6u) != 0 ? RESET_POWER_ON : RESET_UNKNOWN; /* brown-out too */
}

void board_watchdog_start(void) {
  REG32(SYSCTL_RCGC0) |= 8u;
  cmsdk_watchdog_start(WATCHDOG, kBoard.cpu_hz);
  irq_enable(BOARD_WATCHDOG_IRQ);
}

void board_watchdog_feed(void) { cmsdk_watchdog_feed(WATCHDOG); }

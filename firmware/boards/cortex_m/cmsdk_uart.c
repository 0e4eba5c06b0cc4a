/* UART of Arm's CMSDK (the MPS2 boards): one byte of buffer each way. */
#include "cmsdk_uart.h"

#include "board.h"

#define DATA 0x00u
#define STATE 0x04u
#define CTRL 0x08u
#define INT 0x0Cu
#define BAUDDIV 0x10u
#define TX_FULL 1u
#define RX_FULL 2u

void cmsdk_uart_init(uint32_t base, uint32_t clock_hz, uint32_t baud) {
  const uint32_t divider = clock_hz / baud;
  REG32(base + BAUDDIV) = divider < 16u ? 16u : divider;
  REG32(base + CTRL) = 1u | 2u | 8u; /* TX, RX, RX interrupt */
  (void)REG32(base + DATA);          /* lets QEMU's model start to receive */
}

void cmsdk_uart_irq(uint32_t base) {
  REG32(base + INT) = 3u;
  while ((REG32(base + STATE) & RX_FULL) != 0) uart_received((uint8_t)REG32(base + DATA));
}

bool cmsdk_uart_put(uint32_t base, uint8_t byte) {
  if ((REG32(base + STATE) & TX_FULL) != 0) return false;
  REG32(base + DATA) = byte;
  return true;
}

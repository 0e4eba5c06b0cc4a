#include "nrf_uart.h"

#include "board.h"

#define UART0 0x40002000u
#define STARTRX (UART0 + 0x000u)
#define STARTTX (UART0 + 0x008u)
#define RXDRDY (UART0 + 0x108u)
#define TXDRDY (UART0 + 0x11Cu)
#define ERROR (UART0 + 0x124u)
#define INTENSET (UART0 + 0x304u)
#define ERRORSRC (UART0 + 0x480u)
#define ENABLE (UART0 + 0x500u)
#define PSELTXD (UART0 + 0x50Cu)
#define PSELRXD (UART0 + 0x514u)
#define RXD (UART0 + 0x518u)
#define TXD (UART0 + 0x51Cu)
#define BAUDRATE (UART0 + 0x524u)
#define GPIO_OUTSET 0x50000508u
#define GPIO_DIRSET 0x50000518u

static bool sending; /* a byte that TXDRDY has not been seen of */

/* Pins of port 0. */
void nrf_uart_init(uint32_t tx_pin, uint32_t rx_pin, uint32_t baud) {
  REG32(GPIO_OUTSET) = 1u << tx_pin;
  REG32(GPIO_DIRSET) = 1u << tx_pin;
  REG32(0x50000700u + 4u * rx_pin) = 0; /* PIN_CNF: input, connected */
  REG32(PSELTXD) = tx_pin;
  REG32(PSELRXD) = rx_pin;
  REG32(BAUDRATE) = baud;
  REG32(ENABLE) = 4;
  REG32(INTENSET) = 1u << 2; /* RXDRDY */
  REG32(STARTTX) = 1;
  REG32(STARTRX) = 1;
  irq_enable(NRF_UART_IRQ);
}

/* The event is cleared first: reading RXD moves the FIFO on, which raises it again. */
void nrf_uart_irq(void) {
  while (REG32(RXDRDY) != 0) {
    REG32(RXDRDY) = 0;
    uart_received((uint8_t)REG32(RXD));
  }
  if (REG32(ERROR) != 0) {
    REG32(ERROR) = 0;
    REG32(ERRORSRC) = 0xFu;
  }
}

bool nrf_uart_put(uint8_t byte) {
  if (sending && REG32(TXDRDY) == 0) return false;
  REG32(TXDRDY) = 0;
  sending = true;
  REG32(TXD) = byte;
  return true;
}

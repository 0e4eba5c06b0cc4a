/* BBC micro:bit 1: nRF51822, UART through the interface chip at 115200 baud. */
#include "board.h"

#include "nrf_flash.h"
#include "nrf_uart.h"

#define GPIO_OUTSET 0x50000508u
#define GPIO_OUTCLR 0x5000050Cu
#define GPIO_DIRSET 0x50000518u
#define LED_ROW (1u << 13)
#define LED_COLUMN (1u << 4)
#define PIN_TX 24u
#define PIN_RX 25u

const board_info_t kBoard = {.name = "microbit", .core = "cortex-m0", .cpu_hz = 16000000u};

void clock_irq(void); /* clock.c */

void board_uart_init(void) {
  REG32(GPIO_OUTCLR) = LED_ROW | LED_COLUMN;
  REG32(GPIO_DIRSET) = LED_ROW | LED_COLUMN;
  nrf_uart_init(PIN_TX, PIN_RX, NRF_BAUD_115200);
}

void board_irq(void) {
  clock_irq();
  nrf_uart_irq();
}

bool board_uart_put(uint8_t byte) { return nrf_uart_put(byte); }
/* The first of the 25: row 1, column 1. */
void board_led(bool on) { REG32(on ? GPIO_OUTSET : GPIO_OUTCLR) = LED_ROW; }
const hal_nvm_t* board_nvm(void) { return nrf_flash(); }

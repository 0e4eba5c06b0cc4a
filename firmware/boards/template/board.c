/* Copy to boards/NAME/board.c and replace every line that says so. Builds, and does nothing. */
#include "board.h"

#include <stddef.h>

/* Name (at most 16 characters) and core as HELLO_ACK reports them; clock of SysTick. */
const board_info_t kBoard = {.name = "template", .core = "cortex-m33", .cpu_hz = 16000000u};

/* Clocks, pins, 8N1, receive interrupt; then irq_enable(number). */
void board_uart_init(void) {}

/* Every external interrupt comes here: clear the UART's, hand each byte to uart_received(). */
void board_irq(void) {}

/* True if the transmitter has taken the byte; never waits. */
bool board_uart_put(uint8_t byte) {
  (void)byte;
  return true;
}

/* IDENTIFY blinks it. */
void board_led(bool on) { (void)on; }

/* Non-volatile memory (hal.h), if there is any: then set(BOARD_NVM ON) in board.cmake. */
const hal_nvm_t* board_nvm(void) { return NULL; }

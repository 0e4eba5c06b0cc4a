/* Copy to boards/NAME/board.c and replace every line that says so. Builds, and does nothing.
 * firmware/PORTING.md says what each of these has to hold to. */
#include "board.h"

/* Name (at most 16 characters) and core as HELLO_ACK reports them; clock of SysTick. */
const board_info_t kBoard = {.name = "template", .core = "cortex-m33", .cpu_hz = 80000000u};

/* ---- needed ---- */

/* Pins, 8N1, receive interrupt; then irq_enable(number). */
void board_uart_init(void) {}

/* Every external interrupt comes here: clear the UART's, hand each byte to uart_received(). */
void board_irq(void) {}

/* True if the transmitter has taken the byte; never waits. */
bool board_uart_put(uint8_t byte) {
  (void)byte;
  return true;
}

/* ---- may be left out: cortex_m/defaults.c ---- */

/* Clocks, power, caches: kBoard.cpu_hz from here on. A wait for hardware has an end. */
void board_clock_init(void) {}

/* IDENTIFY blinks it. */
void board_led(bool on) { (void)on; }

/* The chip's unique id and 64 bits of its random number generator. */
uint8_t board_uid(uint8_t uid[16]) {
  (void)uid;
  return 0;
}
bool board_entropy(uint64_t* out) {
  (void)out;
  return false;
}

/* The chip's flags: RESET_POWER_ON, RESET_WATCHDOG or RESET_UNKNOWN; then clear them. */
uint32_t board_reset_cause(void) { return RESET_UNKNOWN; }

/* A hardware watchdog of WATCHDOG_S. Where it interrupts first, name the interrupt in board.cmake
 * (BOARD_WATCHDOG_IRQ): the place of the hang is recorded then. */
void board_watchdog_start(void) {}
void board_watchdog_feed(void) {}

/* Non-volatile memory (hal.h): then set(BOARD_NVM ON) in board.cmake. */
const hal_nvm_t* board_nvm(void) { return NULL; }

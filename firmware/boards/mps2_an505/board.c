/* Arm MPS2 with AN505: Cortex-M33, secure world only (the secure aliases). */
#include "board.h"

#include "cmsdk_uart.h"
#include "sbcon_eeprom.h"

#define UART0 0x50200000u
#define SHIELD1_I2C 0x5020D000u
#define FPGAIO_LED 0x50302000u

const board_info_t kBoard = {.name = "mps2_an505", .core = "cortex-m33", .cpu_hz = 20000000u};

void board_uart_init(void) {
  cmsdk_uart_init(UART0, kBoard.cpu_hz, 921600u);
  irq_enable(32); /* RX; 33 before QEMU 7.2.14: both have the same handler */
  irq_enable(33);
}

void board_irq(void) { cmsdk_uart_irq(UART0); }
bool board_uart_put(uint8_t byte) { return cmsdk_uart_put(UART0, byte); }
void board_led(bool on) { REG32(FPGAIO_LED) = on ? 1u : 0u; }

const hal_nvm_t* board_nvm(void) { return sbcon_eeprom(SHIELD1_I2C); }

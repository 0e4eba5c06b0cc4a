/* Arm MPS3 with AN547: Cortex-M55 with Helium, secure world only (the secure aliases). */
#include "board.h"

#include "cmsdk_uart.h"
#include "sbcon_eeprom.h"

#define UART0 0x59303000u
#define SHIELD1_I2C 0x59206000u
#define UART_HZ 25000000u /* the peripherals' clock; the core and SysTick run at 32 MHz */
#define FPGAIO_LED 0x59302000u

const board_info_t kBoard = {.name = "mps3_an547", .core = "cortex-m55", .cpu_hz = 32000000u};

void board_uart_init(void) {
  cmsdk_uart_init(UART0, UART_HZ, 921600u);
  irq_enable(33); /* RX */
  irq_enable(34);
}

void board_irq(void) { cmsdk_uart_irq(UART0); }
bool board_uart_put(uint8_t byte) { return cmsdk_uart_put(UART0, byte); }
void board_led(bool on) { REG32(FPGAIO_LED) = on ? 1u : 0u; }

const hal_nvm_t* board_nvm(void) { return sbcon_eeprom(SHIELD1_I2C); }

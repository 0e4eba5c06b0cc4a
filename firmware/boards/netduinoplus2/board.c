/* STM32F405 (Cortex-M4, 128 KB) as QEMU's netduinoplus2 has it: USART1; no clock tree, no
 * non-volatile memory, no watchdog, no LED. */
#include "board.h"

#include "stm32_usart.h"

#define USART1_IRQ 37u

static const stm32_usart_t kUart = {.base = 0x40011000u, .clock_hz = 84000000u};

const board_info_t kBoard = {.name = "netduinoplus2", .core = "cortex-m4", .cpu_hz = 168000000u};

void board_uart_init(void) {
  stm32_usart_init(&kUart, 921600u);
  irq_enable(USART1_IRQ);
}

void board_irq(void) { stm32_usart_irq(&kUart); }
bool board_uart_put(uint8_t byte) { return stm32_usart_put(&kUart, byte); }

#include "mps.h"

#include "board.h"
#include "cmsdk_uart.h"
#include "cmsdk_watchdog.h"
#include "sbcon_eeprom.h"

void board_uart_init(void) {
  cmsdk_uart_init(kMps.uart0, kMps.uart_hz, 921600u);
  irq_enable(kMps.rx_irq);
  irq_enable(kMps.rx_irq + 1u);
}

void board_irq(void) { cmsdk_uart_irq(kMps.uart0); }
bool board_uart_put(uint8_t byte) { return cmsdk_uart_put(kMps.uart0, byte); }
void board_led(bool on) { REG32(kMps.fpgaio) = on ? 1u : 0u; }
const hal_nvm_t* board_nvm(void) { return sbcon_eeprom(kMps.shield1_i2c); }

void board_watchdog_start(void) { cmsdk_watchdog_start(kMps.watchdog, kMps.watchdog_hz); }
void board_watchdog_feed(void) { cmsdk_watchdog_feed(kMps.watchdog); }

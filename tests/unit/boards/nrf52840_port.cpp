#define BOARD_WATCHDOG_IRQ 16
#include "nrf_flash.h"
#include "nrf_uart.h"
#include "registers.h"

// Its drivers and the port itself; a namespace for each port, as all have the same names.
#include "nrf_uart.c"  // NOLINT
namespace odt::test::nrf52840_port {
#include "nrf52840/board.c"  // NOLINT
}  // namespace odt::test::nrf52840_port

namespace odt::test {
const Port nrf52840 = {&nrf52840_port::kBoard,
                       nrf52840_port::board_clock_init,
                       nrf52840_port::board_uart_init,
                       nrf52840_port::board_uart_put,
                       nrf52840_port::board_irq,
                       nrf52840_port::board_led,
                       nrf52840_port::board_uid,
                       nrf52840_port::board_entropy,
                       nrf52840_port::board_reset_cause,
                       nrf52840_port::board_watchdog_start,
                       nrf52840_port::board_watchdog_feed};
}  // namespace odt::test

#include "registers.h"
#include "stm32_iwdg.h"
#include "stm32_usart.h"
#include "stm32u5_flash.h"

// Its drivers and the port itself; a namespace for each port, as all have the same names.
#include "stm32_iwdg.c"   // NOLINT
#include "stm32_usart.c"  // NOLINT
namespace odt::test::stm32u575_port {
#include "stm32u575/board.c"  // NOLINT
}  // namespace odt::test::stm32u575_port

namespace odt::test {
const Port stm32u575 = {&stm32u575_port::kBoard,
                        stm32u575_port::board_clock_init,
                        stm32u575_port::board_uart_init,
                        stm32u575_port::board_uart_put,
                        stm32u575_port::board_irq,
                        stm32u575_port::board_led,
                        stm32u575_port::board_uid,
                        stm32u575_port::board_entropy,
                        stm32u575_port::board_reset_cause,
                        stm32u575_port::board_watchdog_start,
                        stm32u575_port::board_watchdog_feed};
}  // namespace odt::test

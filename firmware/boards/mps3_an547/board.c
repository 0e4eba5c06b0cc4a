/* Arm MPS3 with AN547: Cortex-M55 with Helium, secure world only (the secure aliases). The
 * peripherals run at 25 MHz, the watchdog at the slow clock. */
#include "board.h"

#include "mps.h"

const board_info_t kBoard = {.name = "mps3_an547", .core = "cortex-m55", .cpu_hz = 32000000u};
const mps_t kMps = {.uart0 = 0x59303000u,
                    .uart_hz = 25000000u,
                    .rx_irq = 33u,
                    .fpgaio = 0x59302000u,
                    .shield1_i2c = 0x59206000u,
                    .watchdog = 0x5802E000u,
                    .watchdog_hz = 32768u};

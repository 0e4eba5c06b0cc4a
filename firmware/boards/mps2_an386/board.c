/* Arm MPS2 with AN386: Cortex-M4. */
#include "board.h"

#include "mps.h"

const board_info_t kBoard = {.name = "mps2_an386", .core = "cortex-m4", .cpu_hz = 25000000u};
const mps_t kMps = {.uart0 = 0x40004000u,
                    .uart_hz = 25000000u,
                    .rx_irq = 0u,
                    .fpgaio = 0x40028000u,
                    .shield1_i2c = 0x4002A000u,
                    .watchdog = 0x40008000u,
                    .watchdog_hz = 25000000u};

/* Arm MPS2 with AN505: Cortex-M33, secure world only (the secure aliases). */
#include "board.h"

#include "mps.h"

const board_info_t kBoard = {.name = "mps2_an505", .core = "cortex-m33", .cpu_hz = 20000000u};
const mps_t kMps = {.uart0 = 0x50200000u,
                    .uart_hz = 20000000u,
                    .rx_irq = 32u,
                    .fpgaio = 0x50302000u,
                    .shield1_i2c = 0x5020D000u,
                    .watchdog = 0x50081000u,
                    .watchdog_hz = 20000000u};

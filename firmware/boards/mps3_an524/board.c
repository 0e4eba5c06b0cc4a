/* Arm MPS3 with AN524: Cortex-M33 without DSP extension and FPU, secure world only (the secure
 * aliases). */
#include "board.h"

#include "mps.h"

const board_info_t kBoard = {.name = "mps3_an524", .core = "cortex-m33", .cpu_hz = 32000000u};
const mps_t kMps = {.uart0 = 0x51303000u,
                    .uart_hz = 32000000u,
                    .rx_irq = 32u,
                    .fpgaio = 0x51302000u,
                    .shield1_i2c = 0x51206000u,
                    .watchdog = 0x50081000u,
                    .watchdog_hz = 32000000u};

/* What the images for Arm's MPS2 and MPS3 have in common: CMSDK UART and watchdog, LED, EEPROM at
 * the shield's I2C. mps.c is every board_...() of such a board; its board.c says the addresses. */
#ifndef ODT_MPS_H
#define ODT_MPS_H

#include <stdint.h>

typedef struct {
  uint32_t uart0, uart_hz;
  uint32_t rx_irq; /* transmit has the next one; swapped before QEMU 7.2.14: both are enabled */
  uint32_t fpgaio;
  uint32_t shield1_i2c;
  uint32_t watchdog, watchdog_hz; /* interrupts as NMI */
} mps_t;

extern const mps_t kMps;

#endif

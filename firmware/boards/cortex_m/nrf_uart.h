/* UART of Nordic's nRF51 and nRF52 (not UARTE): 6 bytes of receive FIFO, byte by byte. */
#ifndef ODT_NRF_UART_H
#define ODT_NRF_UART_H

#include <stdbool.h>
#include <stdint.h>

#define NRF_UART_IRQ 2u
#define NRF_BAUD_115200 0x01D7E000u
#define NRF_BAUD_921600 0x0EBED000u

void nrf_uart_init(uint32_t tx_pin, uint32_t rx_pin, uint32_t baud);
void nrf_uart_irq(void);
bool nrf_uart_put(uint8_t byte);

#endif

#ifndef ODT_CMSDK_UART_H
#define ODT_CMSDK_UART_H

#include <stdbool.h>
#include <stdint.h>

void cmsdk_uart_init(uint32_t base, uint32_t clock_hz, uint32_t baud);
void cmsdk_uart_irq(uint32_t base);
bool cmsdk_uart_put(uint32_t base, uint8_t byte);

#endif

/* ST's USART in its first layout (F1, F2, F4: SR and DR) and its later one with FIFOs (G0, G4, H7,
 * L5, U5: ISR, RDR, TDR). Clocks and pins are the board's. */
#ifndef ODT_STM32_USART_H
#define ODT_STM32_USART_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint32_t base;
  uint32_t clock_hz; /* of its bus */
  bool later;        /* the later layout */
} stm32_usart_t;

void stm32_usart_init(const stm32_usart_t* u, uint32_t baud);
void stm32_usart_irq(const stm32_usart_t* u);
bool stm32_usart_put(const stm32_usart_t* u, uint8_t byte);

#endif

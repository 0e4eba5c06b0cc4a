#include "stm32_usart.h"

#include "board.h"

#define RX_ERRORS 0xFu /* overrun, noise, framing, parity: the same bits in SR, ISR and ICR */
#define RX_READY 0x20u
#define TX_EMPTY 0x80u

typedef struct {
  uint32_t cr1, brr, status, rx, tx;
  uint32_t enable, tx_rx; /* bits of CR1; the later one has FIFOs */
} layout_t;

static const layout_t kFirst = {0x0C, 0x08, 0x00, 0x04, 0x04, 1u << 13, 0x2Cu};
static const layout_t kLater = {0x00, 0x0C, 0x1C, 0x24, 0x28, 1u << 29 | 1u, 0x2Cu};
#define ICR 0x20u

static const layout_t* layout(const stm32_usart_t* u) { return u->later ? &kLater : &kFirst; }

void stm32_usart_init(const stm32_usart_t* u, uint32_t baud) {
  const layout_t* r = layout(u);
  REG32(u->base + r->cr1) = 0;
  REG32(u->base + r->brr) = (u->clock_hz + baud / 2u) / baud;
  REG32(u->base + r->cr1) = r->enable | r->tx_rx; /* TX, RX, RX interrupt */
  (void)REG32(u->base + r->rx);                   /* lets QEMU's model start to receive */
}

void stm32_usart_irq(const stm32_usart_t* u) {
  const layout_t* r = layout(u);
  for (;;) {
    const uint32_t status = REG32(u->base + r->status);
    /* The first layout clears its errors by reading SR, then DR; the later one has a register. An
     * overrun that stays set would keep the interrupt pending for ever. */
    if ((status & RX_ERRORS) != 0 && u->later) REG32(u->base + ICR) = RX_ERRORS;
    if ((status & RX_READY) == 0) {
      if ((status & RX_ERRORS) != 0) (void)REG32(u->base + r->rx);
      return;
    }
    uart_received((uint8_t)REG32(u->base + r->rx));
  }
}

bool stm32_usart_put(const stm32_usart_t* u, uint8_t byte) {
  const layout_t* r = layout(u);
  if ((REG32(u->base + r->status) & TX_EMPTY) == 0) return false;
  REG32(u->base + r->tx) = byte;
  return true;
}

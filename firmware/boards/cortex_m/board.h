/* What a Cortex-M board supplies; boards/template shows a port. Startup, clock, main loop and
 * identity are shared (this folder). */
#ifndef ODT_BOARD_H
#define ODT_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"

#define REG32(address) (*(volatile uint32_t*)(uintptr_t)(address))

typedef struct {
  const char* name; /* at most 16 characters */
  const char* core; /* "cortex-m33", ... */
  uint32_t cpu_hz;  /* clock of SysTick */
} board_info_t;

extern const board_info_t kBoard;

/* UART with receive interrupt; calls uart_received() for every byte. */
void board_uart_init(void);
/* From every external interrupt. */
void board_irq(void);
/* Sends one byte if the transmitter takes it now. */
bool board_uart_put(uint8_t byte);
void board_led(bool on);
/* After clock_init(). NULL: none, or it does not answer. */
const hal_nvm_t* board_nvm(void);

/* ---- supplied by cortex_m/ ---- */
void uart_received(uint8_t byte); /* from the interrupt */
void irq_enable(uint32_t number);
void clock_init(uint32_t cpu_hz);
uint32_t clock_us(void);
uint32_t clock_ms(void);

/* Reset and who we are, kept in RAM that no start-up code touches. */
typedef struct {
  uint8_t uid[16];
  uint8_t uid_size;
  uint8_t reset_reason; /* odt.device.v1.ResetReason */
  bool has_seed;
  uint64_t seed;
  uint32_t reset_count;
} board_identity_t;
void identity_read(board_identity_t* id);
/* Notes the reason and resets the core. */
_Noreturn void board_restart(uint32_t reset_reason);
#define RESET_REQUESTED 2u
#define RESET_FAULT 4u

uint32_t stack_used(void);

#endif

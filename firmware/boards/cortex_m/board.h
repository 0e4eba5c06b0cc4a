/* What a Cortex-M board supplies; boards/template shows a port. Startup, clock, main loop and
 * identity are shared (this folder). */
#ifndef ODT_BOARD_H
#define ODT_BOARD_H

#include <stdbool.h>
#include <stddef.h>
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

/* ---- what a board may leave out: defaults.c does nothing for it ---- */
/* First of all: clocks, power, caches. */
void board_clock_init(void);
void board_led(bool on);
/* The chip's unique id: its size, 8 to 16 bytes. 0: none, the starter has loaded one. */
uint8_t board_uid(uint8_t uid[16]);
/* 64 bits of the chip's random number generator. False: none. */
bool board_entropy(uint64_t* out);
/* RESET_... by the chip's own flags, which this call clears. */
uint32_t board_reset_cause(void);
/* From then on the board restarts when nobody feeds it for WATCHDOG_S; fed by the main loop alone.
 * Longer than any turn of the loop: nothing feeds it within a training step. */
void board_watchdog_start(void);
void board_watchdog_feed(void);
#define WATCHDOG_S 30u
/* With BOARD_NMI: what an NMI means. It is no watchdog, then; a fault ends in fault_handler(). */
void board_nmi(void);
/* After clock_init(). NULL: none, or it does not answer. */
const hal_nvm_t* board_nvm(void);

/* ---- supplied by cortex_m/ ---- */
void uart_received(uint8_t byte); /* from the interrupt */
void irq_enable(uint32_t number); /* a watchdog's comes before all others */
void clock_init(uint32_t cpu_hz);
uint32_t clock_us(void);
uint32_t clock_ms(void);

typedef struct {
  uint8_t uid[16];
  uint8_t uid_size;
  bool has_seed;
  uint64_t seed;
} board_identity_t;
void identity_read(board_identity_t* id);

/* odt.device.v1.ResetReason */
#define RESET_UNKNOWN 0u
#define RESET_POWER_ON 1u
#define RESET_REQUESTED 2u
#define RESET_WATCHDOG 3u
#define RESET_FAULT 4u
typedef struct {
  uint32_t reason;
  uint32_t count; /* resets since power-on */
} board_reset_t;
void reset_read(board_reset_t* r); /* once a boot */
/* Notes the reason and resets the core. */
_Noreturn void board_restart(uint32_t reason);
/* The fault or hang that the last boot ended with, as a line of text; false: none, or forgotten. */
#define FAULT_TEXT 96u
bool fault_text(char out[FAULT_TEXT]);
void fault_forget(void);

uint32_t stack_used(void);

#endif

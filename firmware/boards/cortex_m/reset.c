/* Why the board starts: the reason and the fault's record, in RAM that no start-up code touches. */
#include "board.h"

#define AIRCR 0xE000ED0Cu
#define CFSR 0xE000ED28u /* reads as zero on a Cortex-M0 */
#define HFSR 0xE000ED2Cu
#define MMFAR 0xE000ED34u
#define BFAR 0xE000ED38u
#ifdef BOARD_NMI
#define WATCHDOG_NMI 0u /* no exception's number */
#else
#define WATCHDOG_NMI 2u
#endif

#ifndef BOARD_WATCHDOG_IRQ
#define BOARD_WATCHDOG_IRQ 0xFFFFu
#endif

#define BOOT_MAGIC 0x544F4F42u
typedef struct {
  uint32_t magic;
  uint32_t count;
  uint32_t reason;
} boot_t;

#define FAULT_MAGIC 0x544C4146u
typedef struct {
  uint32_t magic;
  uint32_t watchdog; /* it was one, that nobody fed */
  uint32_t cfsr, hfsr, at, pc, lr, sp;
} fault_t;

__attribute__((section(".noinit"))) static volatile boot_t boot;
__attribute__((section(".noinit"))) static volatile fault_t fault;

/* ---- boot ---- */

void reset_read(board_reset_t* r) {
  const uint32_t cause = board_reset_cause();
  const bool again = boot.magic == BOOT_MAGIC && cause != RESET_POWER_ON;
  if (!again) fault.magic = 0;
  r->count = again ? boot.count + 1u : 0u;
  r->reason = !again ? RESET_POWER_ON : boot.reason != RESET_UNKNOWN ? boot.reason : cause;
  boot.magic = BOOT_MAGIC;
  boot.count = r->count;
  boot.reason = RESET_UNKNOWN; /* unless somebody says so */
}

_Noreturn void board_restart(uint32_t reason) {
  boot.reason = reason;
  __asm__ volatile("dsb" ::: "memory");
  REG32(AIRCR) = 0x05FA0004u;
  for (;;) {}
}

/* ---- the record as a line of text ---- */

static uint32_t append(char* out, uint32_t at, const char* text) {
  while (*text != 0) out[at++] = *text++;
  out[at] = 0;
  return at;
}

static uint32_t append_hex(char* out, uint32_t at, const char* name, uint32_t value) {
  static const char kHex[] = "0123456789abcdef";
  at = append(out, at, name);
  for (int32_t shift = 28; shift >= 0; shift -= 4) out[at++] = kHex[(value >> shift) & 15u];
  out[at] = 0;
  return at;
}

bool fault_text(char out[FAULT_TEXT]) {
  if (fault.magic != FAULT_MAGIC) return false;
  uint32_t at = append(out, 0, fault.watchdog ? "HUNG" : "FAULT");
  at = append_hex(out, at, " cfsr=", fault.cfsr);
  at = append_hex(out, at, " hfsr=", fault.hfsr);
  at = append_hex(out, at, " at=", fault.at);
  at = append_hex(out, at, " pc=", fault.pc);
  at = append_hex(out, at, " lr=", fault.lr);
  append_hex(out, at, " sp=", fault.sp);
  return true;
}

void fault_forget(void) { fault.magic = 0; }

/* ---- the fault ---- */

/* The transmitter may be stuck: a byte that is not taken ends the report, not the reset. */
static bool put(uint8_t byte) {
  for (uint32_t tries = 0; tries < 1000000u; tries++) {
    if (board_uart_put(byte)) return true;
  }
  return false;
}

/* Plain text on the line: the host shows it as raw console output. */
static void print(const char* text) {
  bool taken = put('\r') && put('\n') && put('!');
  while (taken && *text != 0) taken = put((uint8_t)*text++);
  if (taken && put('\n')) put(0);
}

static uint32_t faulted_address(uint32_t cfsr) {
  if ((cfsr & 0x8000u) != 0) return REG32(BFAR);
  return (cfsr & 0x80u) != 0 ? REG32(MMFAR) : 0;
}

_Noreturn void fault_report(const uint32_t* frame);
_Noreturn void fault_report(const uint32_t* frame) {
  uint32_t number;
  __asm__ volatile("mrs %0, ipsr" : "=r"(number));
  const bool watchdog = number == WATCHDOG_NMI || number == 16u + BOARD_WATCHDOG_IRQ;
  fault.watchdog = watchdog;
  fault.cfsr = REG32(CFSR);
  fault.hfsr = REG32(HFSR);
  fault.at = faulted_address(fault.cfsr);
  fault.lr = frame != NULL ? frame[5] : 0;
  fault.pc = frame != NULL ? frame[6] : 0;
  fault.sp = (uint32_t)(uintptr_t)frame;
  fault.magic = FAULT_MAGIC;
  /* At once: a watchdog may not wait until the line is written. */
  boot.reason = watchdog ? RESET_WATCHDOG : RESET_FAULT;
  char text[FAULT_TEXT];
  if (fault_text(text)) print(text);
  board_restart(boot.reason);
}

/* A stack pointer that is lost would make the report fault again, which locks the core up: it
 * starts anew then, without the frame. So does a stack that ran over its limit (startup.c). */
#ifdef __ARM_ARCH_8M_MAIN__
#define NO_STACK_LIMIT "movs r1, #0\n msr msplim, r1\n"
#else
#define NO_STACK_LIMIT
#endif
__attribute__((naked)) void fault_handler(void) {
  __asm__ volatile(NO_STACK_LIMIT
                   "mrs r0, msp\n"
                   "ldr r1, =__arena_start\n"
                   "cmp r0, r1\n"
                   "blo 1f\n"
                   "ldr r1, =__stack_top - 32\n"
                   "cmp r0, r1\n"
                   "bls 2f\n"
                   "1:\n"
                   "ldr r1, =__stack_top\n"
                   "mov sp, r1\n"
                   "movs r0, #0\n"
                   "2:\n"
                   "ldr r1, =fault_report\n"
                   "bx r1\n"
                   ".ltorg\n");
}

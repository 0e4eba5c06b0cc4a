/* Vectors, memory set-up and the fault report. */
#include "board.h"

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint32_t __stack_limit[], __stack_top[];

int main(void);
_Noreturn void reset_handler(void);
void fault_handler(void);
void clock_tick(void);

static void idle_handler(void) {}

#define STACK_FILL 0xA5A5A5A5u
#define AIRCR 0xE000ED0Cu
#define CFSR 0xE000ED28u
#define HFSR 0xE000ED2Cu

typedef void (*vector_t)(void);
typedef struct {
  const uint32_t* stack;
  vector_t core[15];
  vector_t irq[48];
} vectors_t;

__attribute__((section(".vectors"), used)) const vectors_t kVectors = {
    .stack = __stack_top,
    .core = {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler,
             fault_handler, fault_handler, 0, 0, 0, fault_handler, idle_handler, 0, idle_handler,
             clock_tick},
    .irq = {[0 ... 47] = board_irq},
};

/* FPU and Helium are off after reset; until they are on, the compiler may not use their registers.
 */
#ifdef __ARM_FP
#define CPACR 0xE000ED88u
#define CORE_REGISTERS_ONLY __attribute__((target("general-regs-only")))
static inline CORE_REGISTERS_ONLY void fpu_on(void) {
  REG32(CPACR) |= 0xFu << 20;
  __asm__ volatile("dsb\n isb" ::: "memory");
}
#else
#define CORE_REGISTERS_ONLY
static inline void fpu_on(void) {}
#endif

CORE_REGISTERS_ONLY _Noreturn void reset_handler(void) {
  fpu_on();
  const uint32_t* from = __data_load;
  for (uint32_t* p = __data_start; p < __data_end; p++) *p = *from++;
  for (uint32_t* p = __bss_start; p < __bss_end; p++) *p = 0;
  uint32_t* here = (uint32_t*)__builtin_frame_address(0);
  for (uint32_t* p = __stack_limit; p < here - 16; p++) *p = STACK_FILL;
  main();
  for (;;) {}
}

uint32_t stack_used(void) {
  const uint32_t* p = __stack_limit;
  while (p < __stack_top && *p == STACK_FILL) p++;
  return (uint32_t)((const uint8_t*)__stack_top - (const uint8_t*)p);
}

static void report(const char* name, uint32_t value) {
  static const char kHex[] = "0123456789abcdef";
  while (*name != 0) {
    while (!board_uart_put((uint8_t)*name)) {}
    name++;
  }
  for (int32_t shift = 28; shift >= 0; shift -= 4) {
    while (!board_uart_put((uint8_t)kHex[(value >> shift) & 15u])) {}
  }
}

/* Plain text on the line: the host shows it as raw console output. */
__attribute__((used)) _Noreturn static void fault_report(const uint32_t* frame) {
  report("\r\n!FAULT cfsr=", REG32(CFSR));
  report(" hfsr=", REG32(HFSR));
  report(" lr=", frame[5]);
  report(" pc=", frame[6]);
  while (!board_uart_put('\n')) {}
  while (!board_uart_put(0)) {}
  board_restart(RESET_FAULT);
}

__attribute__((naked)) void fault_handler(void) {
  __asm__ volatile("mrs r0, msp\n b fault_report\n");
}

_Noreturn static void core_reset(void) {
  __asm__ volatile("dsb" ::: "memory");
  REG32(AIRCR) = 0x05FA0004u;
  for (;;) {}
}

/* ---- identity ---- */

/* Written before start by whoever starts a board that has no uid register of its own (QEMU's
 * generic loader: deploy/qemu-board.sh). On silicon: the chip's uid and TRNG. */
#define ID_MAGIC 0x3144494Fu /* "OID1" */
typedef struct {
  uint32_t magic;
  uint32_t uid_size;
  uint8_t uid[16];
  uint64_t seed;
} loaded_id_t;

#define BOOT_MAGIC 0x544F4F42u
typedef struct {
  uint32_t magic;
  uint32_t count;
  uint32_t reason;
} boot_t;

__attribute__((section(".identity"))) static volatile loaded_id_t loaded_id;
__attribute__((section(".noinit"))) static volatile boot_t boot;

void identity_read(board_identity_t* id) {
  const bool again = boot.magic == BOOT_MAGIC;
  id->reset_count = again ? boot.count + 1u : 0u;
  id->reset_reason = (uint8_t)(again ? boot.reason : 1u /* power on */);
  boot.magic = BOOT_MAGIC;
  boot.count = id->reset_count;
  boot.reason = 0; /* unknown, unless somebody says so */

  const bool loaded =
      loaded_id.magic == ID_MAGIC && loaded_id.uid_size >= 8 && loaded_id.uid_size <= 16;
  id->has_seed = loaded;
  id->seed = loaded ? loaded_id.seed : 0;
  id->uid_size = (uint8_t)(loaded ? loaded_id.uid_size : 8u);
  for (uint32_t i = 0; i < 16; i++) id->uid[i] = loaded ? loaded_id.uid[i] : (uint8_t)(0xE0u + i);
}

_Noreturn void board_restart(uint32_t reset_reason) {
  boot.reason = reset_reason;
  core_reset();
}

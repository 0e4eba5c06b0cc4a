/* Vectors and memory set-up. */
#include "board.h"

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint32_t __stack_limit[], __stack_top[];

int main(void);
_Noreturn void reset_handler(void);
void fault_handler(void);
void clock_tick(void);

static void idle_handler(void) {}

#ifdef BOARD_NMI
#define NMI_HANDLER board_nmi
#else
#define NMI_HANDLER fault_handler
#endif

#define STACK_FILL 0xA5A5A5A5u
#ifndef BOARD_IRQS
#define BOARD_IRQS 48
#endif

typedef void (*vector_t)(void);
typedef struct {
  const uint32_t* stack;
  vector_t core[15];
  vector_t irq[BOARD_IRQS];
} vectors_t;

__attribute__((section(".vectors"), used)) const vectors_t kVectors = {
    .stack = __stack_top,
    .core = {reset_handler, NMI_HANDLER, fault_handler, fault_handler, fault_handler, fault_handler,
             fault_handler, 0, 0, 0, fault_handler, idle_handler, 0, idle_handler, clock_tick},
#ifdef BOARD_WATCHDOG_IRQ
    .irq = {[0 ... BOARD_WATCHDOG_IRQ - 1] = board_irq,
            [BOARD_WATCHDOG_IRQ] = fault_handler,
            [BOARD_WATCHDOG_IRQ + 1 ... BOARD_IRQS - 1] = board_irq},
#else
    .irq = {[0 ... BOARD_IRQS - 1] = board_irq},
#endif
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

/* Armv8-M faults when the stack grows into the arena; older cores go on, on somebody's weights. */
static inline void guard_stack(void) {
#ifdef __ARM_ARCH_8M_MAIN__
  __asm__ volatile("msr msplim, %0" ::"r"(__stack_limit));
#endif
}

CORE_REGISTERS_ONLY _Noreturn void reset_handler(void) {
  fpu_on();
  guard_stack();
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

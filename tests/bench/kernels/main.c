/* A bench image: everything once, then END. Needs QEMU's -icount shift=6: an instruction then takes
 * exactly 64 ns, and SysTick counts them. */
#include "bench.h"
#include "board.h"

#define SYST_CSR 0xE000E010u
#define SYST_RVR 0xE000E014u
#define SYST_CVR 0xE000E018u
#define CPACR 0xE000ED88u
#define TICKS 0x1000000u
#define INSN_NS 64u

uint8_t bench_arena[BENCH_ARENA] __attribute__((aligned(8)));

static volatile uint32_t wraps; /* 5 instructions more in 13 million */
static uint32_t start_ticks;
static uint32_t overhead; /* of an empty region */

void clock_tick(void);
void clock_tick(void) { wraps++; }
void uart_received(uint8_t byte) { (void)byte; }
void irq_enable(uint32_t number) { (void)number; }

/* noinline: the plugin takes the first instruction of both as the region's limits. */
__attribute__((noinline)) void bench_start(void) {
  REG32(SYST_CVR) = 0;
  wraps = 0;
  start_ticks = REG32(SYST_CVR);
}

__attribute__((noinline)) uint32_t bench_stop(void) {
  uint32_t now = REG32(SYST_CVR);
  uint64_t ticks = (uint64_t)wraps * TICKS + start_ticks - now;
  return (uint32_t)(ticks * 1000u / (kBoard.cpu_hz / 1000000u) / INSN_NS) - overhead;
}

static void put(uint8_t byte) {
  while (!board_uart_put(byte)) {}
}

void bench_text(const char* text) {
  while (*text) put((uint8_t)*text++);
}

void bench_number(uint32_t value) {
  char digits[10];
  uint32_t n = 0;
  do {
    digits[n++] = (char)('0' + value % 10u);
    value /= 10u;
  } while (value != 0);
  while (n > 0) put((uint8_t)digits[--n]);
}

void bench_measured(const char* name, uint32_t index, uint32_t instructions) {
  bench_text("M ");
  bench_text(name);
  put('/');
  bench_number(index);
  put(' ');
  bench_number(instructions);
  put('\n');
}

void bench_value(const char* name, uint32_t value) {
  bench_text("N ");
  bench_text(name);
  put(' ');
  bench_number(value);
  put('\n');
}

void bench_hash(const char* name, const uint8_t* hash, uint32_t bytes) {
  static const char kHex[] = "0123456789abcdef";
  bench_text("H ");
  bench_text(name);
  put(' ');
  for (uint32_t i = 0; i < bytes; i++) {
    put((uint8_t)kHex[hash[i] >> 4]);
    put((uint8_t)kHex[hash[i] & 15]);
  }
  put('\n');
}

_Noreturn void bench_fail(const char* what) {
  bench_text("FAIL ");
  bench_text(what);
  bench_text("\nEND\n");
  for (;;) {}
}

uint32_t bench_random(uint32_t* state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

/* Two loops of known length: the second's 15,000,000 instructions also pass the counter's wrap. */
static void calibrate(void) {
  bench_start();
  overhead = bench_stop();
  bench_measured("empty", 0, overhead);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t n = i == 0 ? 1000u : 5000000u;
    bench_start();
    __asm__ volatile("1: nop\n subs %0, %0, #1\n bne 1b\n" : "+r"(n)::"cc");
    bench_measured("loop", i, bench_stop());
  }
}

int main(void);
int main(void) {
  REG32(CPACR) |= 0xFu << 20;
  __asm__ volatile("dsb\n isb" ::: "memory");
  REG32(SYST_RVR) = TICKS - 1u;
  REG32(SYST_CVR) = 0;
  REG32(SYST_CSR) = 7; /* the core's clock; its wrap is the only interrupt */
  board_uart_init();
  calibrate();
#ifndef BENCH_SMALL_CORE
  bench_niti();
  bench_f32();
#endif
  bench_dfp_kernels();
  bench_dfp();
  bench_text("END\n");
  for (;;) __asm__ volatile("wfi");
}

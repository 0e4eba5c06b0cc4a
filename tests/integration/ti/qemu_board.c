/* What the board set-up is under QEMU: printf and the end by semihosting. main.c's main is ti_main
 * here; start-up code is the boards' own. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SYS_WRITEC 0x03
#define SYS_EXIT_EXTENDED 0x20
#define APPLICATION_EXIT 0x20026u

int ti_main(void);
void clock_tick(void);
void board_irq(void);
bool board_uart_put(uint8_t byte);
int _write(int file, const char* text, int n);
int main(void);

static void semihost(uint32_t what, const void* with) {
  register uint32_t r0 __asm__("r0") = what;
  register const void* r1 __asm__("r1") = with;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void clock_tick(void) {}
void board_irq(void) {}
bool board_uart_put(uint8_t byte) {
  semihost(SYS_WRITEC, &byte);
  return true;
}

int _write(int file, const char* text, int n) {
  (void)file;
  for (int i = 0; i < n; i++) semihost(SYS_WRITEC, text + i);
  return n;
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  const uint32_t end[2] = {APPLICATION_EXIT, (uint32_t)ti_main()};
  semihost(SYS_EXIT_EXTENDED, end);
  return 0;
}

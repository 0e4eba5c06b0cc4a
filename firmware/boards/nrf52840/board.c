/* nRF52840 (Cortex-M4) on an nRF52840 DK: UART at the J-Link's port. Written from the product
 * specification; untested on hardware. */
#include "board.h"

#include "nrf_flash.h"
#include "nrf_uart.h"

#define HFCLKSTART 0x40000000u
#define HFCLKSTARTED 0x40000100u
#define RESETREAS 0x40000400u
#define RNG_START 0x4000D000u
#define RNG_STOP 0x4000D004u
#define RNG_VALRDY 0x4000D100u
#define RNG_CONFIG 0x4000D504u
#define RNG_VALUE 0x4000D508u
#define WDT_START 0x40010000u
#define WDT_INTENSET 0x40010304u
#define WDT_CRV 0x40010504u
#define WDT_RREN 0x40010508u
#define WDT_CONFIG 0x4001050Cu
#define WDT_RR0 0x40010600u
#define WDT_RELOAD 0x6E524635u
#define ICACHECNF 0x4001E540u
#define DEVICEID 0x10000060u
#define GPIO_OUTSET 0x50000508u
#define GPIO_OUTCLR 0x5000050Cu
#define GPIO_DIRSET 0x50000518u
#define LED (1u << 13) /* lit when low */
#define PIN_TX 6u
#define PIN_RX 8u

/* HELLO says by its name that nobody has run it yet. */
const board_info_t kBoard = {.name = "nrf52840-untest", .core = "cortex-m4", .cpu_hz = 64000000u};

static bool wait_for_event(uint32_t address) {
  for (uint32_t tries = 0; tries < 1000000u; tries++) {
    if (REG32(address) != 0) return true;
  }
  return false;
}

/* The crystal: the UART's speed comes from it. */
void board_clock_init(void) {
  REG32(HFCLKSTARTED) = 0;
  REG32(HFCLKSTART) = 1;
  wait_for_event(HFCLKSTARTED);
  REG32(ICACHECNF) = 1;
}

void board_uart_init(void) {
  REG32(GPIO_OUTSET) = LED;
  REG32(GPIO_DIRSET) = LED;
  nrf_uart_init(PIN_TX, PIN_RX, NRF_BAUD_921600);
}

void board_irq(void) { nrf_uart_irq(); }
bool board_uart_put(uint8_t byte) { return nrf_uart_put(byte); }
void board_led(bool on) { REG32(on ? GPIO_OUTCLR : GPIO_OUTSET) = LED; }
const hal_nvm_t* board_nvm(void) { return nrf_flash(); }

/* Between its interrupt and the reset lie two cycles of 32 kHz: enough to record where it hangs,
 * not to print it. */
void board_watchdog_start(void) {
  REG32(WDT_CONFIG) = 1; /* goes on in sleep, not while a debugger has stopped the core */
  REG32(WDT_CRV) = WATCHDOG_S * 32768u - 1u;
  REG32(WDT_RREN) = 1;
  REG32(WDT_INTENSET) = 1;
  irq_enable(BOARD_WATCHDOG_IRQ);
  REG32(WDT_START) = 1;
}

void board_watchdog_feed(void) { REG32(WDT_RR0) = WDT_RELOAD; }

uint32_t board_reset_cause(void) {
  const uint32_t flags = REG32(RESETREAS);
  REG32(RESETREAS) = flags;
  if ((flags & 2u) != 0) return RESET_WATCHDOG;
  return flags == 0 ? RESET_POWER_ON : RESET_UNKNOWN; /* brown-out too */
}

uint8_t board_uid(uint8_t uid[16]) {
  for (uint32_t i = 0; i < 8; i++) {
    uid[i] = (uint8_t)(REG32(DEVICEID + i / 4u * 4u) >> (i % 4u * 8u));
  }
  return 8;
}

bool board_entropy(uint64_t* out) {
  bool taken = true;
  *out = 0;
  REG32(RNG_CONFIG) = 1; /* bias correction */
  REG32(RNG_VALRDY) = 0;
  REG32(RNG_START) = 1;
  for (uint32_t i = 0; taken && i < 8; i++) {
    taken = wait_for_event(RNG_VALRDY);
    REG32(RNG_VALRDY) = 0;
    *out = *out << 8 | (REG32(RNG_VALUE) & 0xFFu);
  }
  REG32(RNG_STOP) = 1;
  return taken;
}

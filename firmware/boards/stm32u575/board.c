/* STM32U575ZI (Cortex-M33) on a NUCLEO-U575ZI-Q: USART1 at the ST-LINK's port, 160 MHz. Written
 * from the reference manual RM0456; untested on hardware. */
#include "board.h"

#include "stm32_iwdg.h"
#include "stm32_usart.h"
#include "stm32u5_flash.h"

#define RCC 0x46020C00u
#define RCC_CR (RCC + 0x00u)
#define HSION (1u << 8)
#define HSIRDY (1u << 10)
#define HSI48ON (1u << 12)
#define HSI48RDY (1u << 13)
#define PLL1ON (1u << 24)
#define PLL1RDY (1u << 25)
#define RCC_CFGR1 (RCC + 0x1Cu)
#define RCC_CFGR2 (RCC + 0x20u)
#define RCC_PLL1CFGR (RCC + 0x28u)
#define RCC_PLL1DIVR (RCC + 0x34u)
#define RCC_AHB2ENR1 (RCC + 0x8Cu)
#define RCC_AHB3ENR (RCC + 0x94u)
#define RCC_APB2ENR (RCC + 0xA4u)
#define RCC_CSR (RCC + 0xF4u)
#define PWR_VOSR 0x4602080Cu
#define BOOSTRDY (1u << 14)
#define VOSRDY (1u << 15)
#define VOS_RANGE_1 (3u << 16)
#define BOOSTEN (1u << 18)
#define FLASH_ACR 0x40022000u
#define ICACHE_CR 0x40030400u
#define RNG 0x420C0800u
#define UID 0x0BFA0700u

#define GPIOA 0x42020000u
#define GPIOB 0x42020400u
#define MODER 0x00u
#define BSRR 0x18u
#define AFRH 0x24u
#define LED 7u /* PB7, blue */

#define USART1_IRQ 61u

static const stm32_usart_t kUart = {.base = 0x40013800u, .clock_hz = 160000000u, .later = true};

/* HELLO says by its name that nobody has run it yet. */
const board_info_t kBoard = {
    .name = "stm32u575-untest", .core = "cortex-m33", .cpu_hz = 160000000u};

static bool wait_for(uint32_t address, uint32_t mask) {
  for (uint32_t tries = 0; tries < 1000000u; tries++) {
    if ((REG32(address) & mask) == mask) return true;
  }
  return false;
}

/* HSI16, which is within 1 % and so good for the UART, x 20 / 2. Above 55 MHz the core's supply
 * needs the booster, at 4..16 MHz: HSI16 / 2. */
void board_clock_init(void) {
  REG32(RCC_AHB3ENR) |= 1u << 2; /* PWR */
  REG32(RCC_CR) |= HSION;
  wait_for(RCC_CR, HSIRDY);
  REG32(RCC_PLL1CFGR) = 2u /* HSI16 */ | 3u << 2 /* 8..16 MHz */ | 1u << 12 /* booster: / 2 */ |
                        1u << 18 /* output R */;
  REG32(RCC_PLL1DIVR) = (20u - 1u) | (2u - 1u) << 9 | (2u - 1u) << 16 | (2u - 1u) << 24;
  REG32(PWR_VOSR) |= VOS_RANGE_1;
  wait_for(PWR_VOSR, VOSRDY);
  REG32(PWR_VOSR) |= BOOSTEN;
  wait_for(PWR_VOSR, BOOSTRDY);
  REG32(FLASH_ACR) = 4u | 1u << 8; /* wait states, prefetch */
  REG32(RCC_CR) |= PLL1ON;
  wait_for(RCC_CR, PLL1RDY);
  REG32(RCC_CFGR2) = 8u; /* half the clock first: the step up is limited */
  REG32(RCC_CFGR1) |= 3u;
  wait_for(RCC_CFGR1, 3u << 2);
  for (uint32_t i = 0; i < 200; i++) __asm__ volatile("nop");
  REG32(RCC_CFGR2) = 0;
  REG32(ICACHE_CR) |= 1u;
}

static void pin_mode(uint32_t port, uint32_t pin, uint32_t mode) {
  REG32(port + MODER) = (REG32(port + MODER) & ~(3u << (2u * pin))) | mode << (2u * pin);
}

void board_uart_init(void) {
  REG32(RCC_AHB2ENR1) |= 1u | 2u; /* GPIO A and B */
  REG32(RCC_APB2ENR) |= 1u << 14; /* USART1 */
  (void)REG32(RCC_APB2ENR);       /* the clock is there when this has been read */
  REG32(GPIOA + AFRH) = (REG32(GPIOA + AFRH) & ~0xFF0u) | 0x770u; /* PA9, PA10: AF7 */
  pin_mode(GPIOA, 9, 2);
  pin_mode(GPIOA, 10, 2);
  pin_mode(GPIOB, LED, 1);
  stm32_usart_init(&kUart, 921600u);
  irq_enable(USART1_IRQ);
}

void board_irq(void) { stm32_usart_irq(&kUart); }
bool board_uart_put(uint8_t byte) { return stm32_usart_put(&kUart, byte); }
void board_led(bool on) { REG32(GPIOB + BSRR) = 1u << (on ? LED : LED + 16u); }
void board_watchdog_start(void) { stm32_iwdg_start(); }
void board_watchdog_feed(void) { stm32_iwdg_feed(); }
const hal_nvm_t* board_nvm(void) { return stm32u5_flash(); }

uint32_t board_reset_cause(void) {
  const uint32_t flags = REG32(RCC_CSR);
  REG32(RCC_CSR) = flags | 1u << 23;                               /* clears them */
  if ((flags & 1u << 29) != 0) return RESET_WATCHDOG;              /* IWDG */
  return (flags & 1u << 27) != 0 ? RESET_POWER_ON : RESET_UNKNOWN; /* brown-out and power-on */
}

uint8_t board_uid(uint8_t uid[16]) {
  for (uint32_t i = 0; i < 12; i++) uid[i] = (uint8_t)(REG32(UID + i / 4u * 4u) >> (i % 4u * 8u));
  return 12;
}

bool board_entropy(uint64_t* out) {
  REG32(RCC_CR) |= HSI48ON;
  REG32(RCC_AHB2ENR1) |= 1u << 18;
  if (!wait_for(RCC_CR, HSI48RDY)) return false;
  REG32(RNG) |= 4u;
  *out = 0;
  for (uint32_t i = 0; i < 2; i++) {
    if (!wait_for(RNG + 4u, 1u)) return false; /* no data, or a seed or clock error */
    *out = *out << 32 | REG32(RNG + 8u);
  }
  return *out != 0;
}

/* The vector of BOARD_NMI. What is not the flash's is a fault, which wants the stack as the core
 * left it. */
#ifdef __arm__
__attribute__((naked)) void board_nmi(void) {
  __asm__ volatile(
      "push {r4, lr}\n"
      "bl stm32u5_flash_torn\n"
      "pop {r4, lr}\n"
      "cbz r0, 1f\n"
      "bx lr\n"
      "1:\n"
      "b fault_handler\n");
}
#endif

#include "stm32u5_flash.h"

#include "board.h"
#include "memory_map.h"

/* RM0456: embedded flash memory, instruction cache. */
#define FLASH 0x40022000u
#define NSKEYR (FLASH + 0x08u)
#define NSSR (FLASH + 0x20u)
#define NSCR (FLASH + 0x28u)
#define ECCR (FLASH + 0x30u)
#define BUSY 0x30000u            /* BSY, WDW */
#define ERRORS 0x20FAu           /* OPERR, PROGERR, WRPERR, PGAERR, SIZERR, PGSERR, OPTWERR */
#define ECC_INTERRUPT (1u << 24) /* of corrected errors: stays as it is */
#define ECC_TWO_BITS (1u << 31)  /* ECCD: detected, not corrected; NMI; cleared by writing 1 */
#define PG 1u
#define PER 2u
#define PAGE_NUMBER(n) ((n) << 3)
#define BANK_2 (1u << 11)
#define START (1u << 16)
#define LOCK (1u << 31)
#define ICACHE_CR 0x40030400u
#define ICACHE_SR 0x40030404u

#define BANK_2_BASE 0x08100000u
#define ERASE_UNIT 8192u
#define WRITE_PAGE 128u
#define QUAD_WORD 16u /* written at once, and only once after an erase */

static void wait_while(uint32_t address, uint32_t mask) {
  for (uint32_t tries = 0; (REG32(address) & mask) != 0 && tries < 10000000u; tries++) {}
}

static void begin(void) {
  wait_while(NSSR, BUSY);
  if ((REG32(NSCR) & LOCK) != 0) {
    REG32(NSKEYR) = 0x45670123u;
    REG32(NSKEYR) = 0xCDEF89ABu;
  }
  REG32(NSSR) = ERRORS;
}

/* The instruction cache holds what the program reads from flash, too. */
static bool end(void) {
  wait_while(NSSR, BUSY);
  const bool done = (REG32(NSSR) & (BUSY | ERRORS)) == 0;
  REG32(NSCR) = LOCK;
  REG32(ICACHE_CR) |= 2u;
  wait_while(ICACHE_SR, 1u);
  return done;
}

/* ---- reads that may meet a torn quad-word ----
 * Anywhere else two wrong bits are in the program, and the NMI is a fault. */
static volatile bool reading, torn;

static void read_begin(void) {
  torn = false;
  reading = true;
  __asm__ volatile("" ::: "memory");
}

/* The NMI comes before the last load is over. */
static bool read_end(void) {
#ifdef __arm__
  __asm__ volatile("dsb\n isb" ::: "memory");
#else
  __asm__ volatile("" ::: "memory");
#endif
  reading = false;
  return !torn;
}

bool stm32u5_flash_torn(void) {
  const uint32_t status = REG32(ECCR);
  if (!reading || (status & ECC_TWO_BITS) == 0) return false;
  REG32(ECCR) = (status & ECC_INTERRUPT) | ECC_TWO_BITS;
  torn = true;
  return true;
}

static bool reads_as(uint32_t from, const uint8_t* data, uint32_t n) {
  read_begin();
  const bool same = data != NULL ? mapped_equals(from, data, n) : mapped_blank(from, n);
  return read_end() && same;
}

static bool inside(uint32_t at, uint32_t n) {
  return at <= STM32U5_NVM_SIZE && n <= STM32U5_NVM_SIZE - at;
}

static bool read(void* ctx, uint32_t at, uint8_t* out, uint32_t n) {
  (void)ctx;
  if (!inside(at, n)) return false;
  read_begin();
  mapped_read(STM32U5_NVM_BASE + at, out, n);
  return read_end();
}

static bool write(void* ctx, uint32_t at, const uint8_t* data, uint32_t n) {
  (void)ctx;
  if (!inside(at, n) || (at | n) % QUAD_WORD != 0) return false;
  const uint32_t to = STM32U5_NVM_BASE + at;
  begin();
  REG32(NSCR) = PG;
  for (uint32_t i = 0; i < n; i += 4) {
    REG32(to + i) = (uint32_t)data[i] | (uint32_t)data[i + 1] << 8 | (uint32_t)data[i + 2] << 16 |
                    (uint32_t)data[i + 3] << 24;
    if (i % QUAD_WORD == QUAD_WORD - 4u) wait_while(NSSR, BUSY);
  }
  return end() && reads_as(to, data, n);
}

static bool erase(void* ctx, uint32_t at) {
  (void)ctx;
  if (!inside(at, ERASE_UNIT) || at % ERASE_UNIT != 0) return false;
  const uint32_t from = STM32U5_NVM_BASE + at;
  const uint32_t page = (from - BANK_2_BASE) / ERASE_UNIT;
  begin();
  REG32(NSCR) = PER | PAGE_NUMBER(page) | BANK_2;
  REG32(NSCR) = PER | PAGE_NUMBER(page) | BANK_2 | START;
  return end() && reads_as(from, NULL, ERASE_UNIT);
}

const hal_nvm_t* stm32u5_flash(void) {
  static const hal_nvm_t kMemory = {.size = STM32U5_NVM_SIZE,
                                    .page = WRITE_PAGE,
                                    .unit = ERASE_UNIT,
                                    .write_us = 2000,
                                    .erase_us = 5000,
                                    .read = read,
                                    .write = write,
                                    .erase = erase};
  return &kMemory;
}

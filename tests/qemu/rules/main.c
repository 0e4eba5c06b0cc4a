/* Trains every golden run and prints "R name weights-sha256 loss-sum" for each, then END. */
#include <string.h>

#include "board.h"
#include "runs.h"

#define CPACR 0xE000ED88u
#define ARENA (384u * 1024u)

static uint8_t arena[ARENA] __attribute__((aligned(8)));
static odt_model_t model;
static odt_trainer_t trainer;

void clock_tick(void);
void clock_tick(void) {}
void uart_received(uint8_t byte) { (void)byte; }
void irq_enable(uint32_t number) { (void)number; }

static void put(uint8_t byte) {
  while (!board_uart_put(byte)) {}
}

static void text(const char* s) {
  while (*s) put((uint8_t)*s++);
}

static void hex(const uint8_t* bytes, uint32_t n) {
  static const char kHex[] = "0123456789abcdef";
  for (uint32_t i = 0; i < n; i++) {
    put((uint8_t)kHex[bytes[i] >> 4]);
    put((uint8_t)kHex[bytes[i] & 15]);
  }
}

static const char* end_epoch(const rules_run_t* r, odt_error_t* err) {
  odt_epoch_record_t epoch;
  uint32_t score = r->scores ? r->scores[odt_trainer_epoch_count(&trainer) + 1u] : 0;
  uint32_t total = r->scores ? r->spec.heldout_samples : 0;
  return odt_trainer_end_epoch(&trainer, score, total, &epoch, err) ? "end_epoch" : NULL;
}

static const char* step(const rules_run_t* r, const odt_samples_t* samples, uint64_t* loss,
                        odt_error_t* err) {
  odt_step_record_t record;
  if (odt_trainer_step_resident(&trainer, samples, &record, err)) return "step";
  *loss = *loss * 3u + record.loss;
  if (odt_trainer_epoch_complete(&trainer)) return end_epoch(r, err);
  for (uint32_t i = 0; i < r->n_set_k; i++) {
    const uint32_t* s = r->set_k + 3u * i;
    if (s[0] == record.step && odt_trainer_set_k(&trainer, s[1], (uint8_t)s[2], err)) {
      return "set_k";
    }
  }
  return NULL;
}

static const char* train(const rules_run_t* r, uint64_t* loss) {
  odt_error_t err;
  odt_samples_t samples;
  memset(arena, 0xA5, sizeof arena);
  if (odt_model_open(&model, r->image, r->image_bytes, &err)) return err.what;
  if (odt_trainer_init(&trainer, &model, &r->spec, true, arena, ARENA, &err)) return err.what;
  if (odt_samples_open(&samples, r->samples, r->samples_bytes, &err)) return err.what;
  if (r->scores) odt_trainer_set_start(&trainer, r->scores[0], r->spec.heldout_samples);
  while (!odt_trainer_done(&trainer)) {
    const char* failed = step(r, &samples, loss, &err);
    if (failed) return failed;
  }
  return NULL;
}

int main(void);
int main(void) {
#if defined(__ARM_FEATURE_MVE)
  REG32(CPACR) |= 0xFu << 20;
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  board_uart_init();
  for (uint32_t i = 0; i < kRunCount; i++) {
    uint64_t loss = 0;
    uint8_t hash[32];
    const char* failed = train(&kRuns[i], &loss);
    text(failed ? "FAIL " : "R ");
    text(kRuns[i].name);
    put(' ');
    if (failed) {
      text(failed);
    } else {
      odt_weights_hash(&trainer, false, hash);
      hex(hash, sizeof hash);
      put(' ');
      hex((const uint8_t*)&loss, 8); /* little-endian */
    }
    put('\n');
  }
  text("END\n");
  for (;;) __asm__ volatile("wfi");
}

/* What a board may leave out. */
#include "board.h"

#define OPTIONAL __attribute__((weak))

OPTIONAL void board_clock_init(void) {}
OPTIONAL void board_led(bool on) { (void)on; }
OPTIONAL uint8_t board_uid(uint8_t uid[16]) {
  (void)uid;
  return 0;
}
OPTIONAL bool board_entropy(uint64_t* out) {
  (void)out;
  return false;
}
OPTIONAL uint32_t board_reset_cause(void) { return RESET_UNKNOWN; }
OPTIONAL void board_watchdog_start(void) {}
OPTIONAL void board_watchdog_feed(void) {}
OPTIONAL const hal_nvm_t* board_nvm(void) { return NULL; }

/* What a board gives to the firmware. Every call gets ctx first, so that several boards fit in one
 * process; none blocks and none is called from an interrupt.
 */
#ifndef ODT_HAL_H
#define ODT_HAL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  void* ctx;
  /* Takes at most capacity bytes out of the receive ring; returns how many. */
  uint32_t (*uart_read)(void* ctx, uint8_t* out, uint32_t capacity);
  /* Hands over at most n bytes; returns how many were taken (short when the transmitter is full).
   */
  uint32_t (*uart_write)(void* ctx, const uint8_t* data, uint32_t n);
  /* Milliseconds and microseconds since boot; both wrap. */
  uint32_t (*now_ms)(void* ctx);
  uint32_t (*now_us)(void* ctx);
  /* 64 bits that differ from boot to boot as well as the board can do. */
  uint64_t (*entropy)(void* ctx);
  /* Restarts the board. May return (the simulator), then app_init is called anew. */
  void (*reset)(void* ctx);
  void (*led)(void* ctx, bool on);         /* NULL: none */
  void (*watchdog_feed)(void* ctx);        /* NULL: none */
  uint32_t (*stack_high_water)(void* ctx); /* bytes ever used; NULL: unknown */
} hal_t;

#ifdef __cplusplus
}
#endif
#endif

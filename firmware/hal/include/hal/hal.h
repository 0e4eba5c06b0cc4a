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

/* Non-volatile memory, addressed from 0. Its calls may block, each for the time it says. */
typedef struct {
  uint32_t size; /* bytes */
  uint32_t
      page; /* bytes: a write stays within one page; a power cut tears at its edges or inside */
  uint32_t unit; /* bytes that are erased at once, to 0xFF, before a page in them is written again;
                  * 0: written in place (EEPROM, FRAM) */
  uint32_t write_us; /* longest time of one page's write */
  uint32_t erase_us; /* of one unit's erase */
  /* False: the memory did not answer, or what was written does not read back. */
  bool (*read)(void* ctx, uint32_t at, uint8_t* out, uint32_t n);
  bool (*write)(void* ctx, uint32_t at, const uint8_t* data, uint32_t n);
  bool (*erase)(void* ctx, uint32_t at); /* the unit that begins there; NULL with unit = 0 */
} hal_nvm_t;

/* A sensor that samples by itself; one time step is `channels` values of one moment. */
typedef struct {
  uint16_t channels;
  uint8_t dtype; /* as a model's input: ODT_U8, ODT_S8 or ODT_S16 */
  uint32_t rate_milli_hz;
  /* Takes at most `steps` whole time steps that have come since the last call; returns how many.
   * *lost: time steps that came and found no room, since the last call. */
  uint32_t (*read)(void* ctx, void* out, uint32_t steps, uint32_t* lost);
} hal_sensor_t;

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
  bool (*button)(void* ctx);               /* pressed now; NULL: none */
  const hal_nvm_t* nvm;                    /* NULL: none */
  const hal_sensor_t* sensor;              /* NULL: none */
} hal_t;

#ifdef __cplusplus
}
#endif
#endif

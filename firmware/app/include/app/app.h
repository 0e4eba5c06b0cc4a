/* The board-independent firmware: device link, sample store and job engine over one arena.
 *
 * One app_t is one board. All its memory is the caller's; nothing here is static. Life:
 * app_init(), then app_poll() for ever. Not re-entrant, no threads.
 */
#ifndef ODT_APP_H
#define ODT_APP_H

#include "app/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* config and what it points to must outlive app. Arena: 8-byte aligned. */
void app_init(app_t* app, const app_config_t* config, const hal_t* hal);

/* One turn: takes what the link brought, does one slice of work (a training step, a few samples of
 * an evaluation), sends what the link takes. Returns true where there is more to do at once; false:
 * the caller may sleep until a byte comes, at most APP_IDLE_MS. */
bool app_poll(app_t* app);

/* The link itself was closed and opened again (TCP): forgets the session and half-sent frames. */
void app_link_reset(app_t* app);

/* Announces that nothing will be received for `ms` (NVM work), so that the host waits. Sent by the
 * following app_poll(); app_busy_over() sends the PONG that ends it. */
void app_busy(app_t* app, uint32_t ms);
void app_busy_over(app_t* app);

/* Level as spdlog (0 trace .. 5 critical). Best effort: a full queue counts the loss. */
void app_log(app_t* app, uint8_t level, const char* text);

#ifdef __cplusplus
}
#endif
#endif

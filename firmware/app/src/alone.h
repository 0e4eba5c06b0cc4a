/* A trained board without a host: between capture and non-volatile memory. */
#ifndef ODT_APP_ALONE_H
#define ODT_APP_ALONE_H

#include "capture.h"

#define APP_ALONE (APP_NVM && APP_CAPTURE)

#if APP_ALONE

/* Bytes of a commit that say how windows are made: u8 version = 1, channels, dtype, shift, n_mul,
 * n_add, trigger, trigger_channel, u32 window_steps, stride_steps, trigger_level, i32 mul[8],
 * i64 add[8], 12 bytes 0. */
#define ALONE_SETTINGS 128u
/* From line to line; the LED (on: another class than 0) has no limit. */
#define ALONE_SAY_MS 1000u

/* False: the board makes no windows, or none that have a class. */
bool alone_settings(app_t* app, uint8_t out[ALONE_SETTINGS]);
/* At boot, when the weights are back. */
void alone_begin(app_t* app, const uint8_t in[ALONE_SETTINGS]);
/* A window has come together. */
void alone_window(app_t* app, uint32_t slot);

#endif
#endif

/* Between the sources of capture: what the region APP_REGION_CAPTURE holds. */
#ifndef ODT_APP_CAPTURE_H
#define ODT_APP_CAPTURE_H

#include "internal.h"

#if APP_CAPTURE

#define CAPTURE_CHANNELS 64u /* most that a sensor has */

typedef odt_device_v1_CaptureStart settings_t;

/* Of GET_WINDOWS, field entries. */
enum { WINDOW_TRAIN = 1, WINDOW_HELDOUT = 2, WINDOW_RULE = 4, WINDOW_BUTTON = 8 };

typedef struct {
  uint32_t id; /* 0: empty */
  uint32_t time_ms;
  int8_t label; /* -1: none */
  uint8_t flags;
  uint16_t zero;
} window_t;

/* At the region's start; behind it window_t[slots], the history, the windows' values. */
typedef struct {
  settings_t set;
  uint32_t channels, steps;  /* of a window */
  uint32_t window_bytes;     /* as a sample of the model */
  uint8_t dtype, value_size; /* of the sensor */
  bool active, recording;    /* recording: a level or a pressed button has begun it */
  bool pressed;              /* at the last step */
  /* History: a ring of `steps` time steps as the sensor gave them. */
  uint32_t next, filled, since;
  uint64_t taken;
  uint32_t captured, lost_windows, lost_steps, kept_train, kept_heldout, not_kept;
  uint32_t for_training; /* that keep = TRAIN has met: every n-th is held out */
  /* Begun at boot, from a commit (alone.c): windows are classified; the last line about it. */
  bool alone, said;
  uint32_t said_ms, unsaid;
} capture_t;

static inline uint32_t capture_align(uint32_t n) { return (n + 7u) & ~7u; }
static inline capture_t* capture_of(app_t* app) {
  return (capture_t*)(void*)region_data(app, APP_REGION_CAPTURE);
}
static inline window_t* capture_windows(capture_t* c) {
  return (window_t*)(void*)((uint8_t*)c + capture_align(sizeof *c));
}
static inline uint8_t* capture_history(capture_t* c) {
  return (uint8_t*)c + capture_align(sizeof *c) + capture_align(c->set.slots * sizeof(window_t));
}
static inline uint32_t capture_history_bytes(const capture_t* c) {
  return capture_align(c->steps * c->channels * c->value_size);
}
static inline uint8_t* capture_values(capture_t* c, uint32_t slot) {
  return capture_history(c) + capture_history_bytes(c) + slot * capture_align(c->window_bytes);
}
static inline uint32_t capture_bytes(const capture_t* c) {
  return capture_align(sizeof *c) + capture_align(c->set.slots * (uint32_t)sizeof(window_t)) +
         capture_history_bytes(c) + c->set.slots * capture_align(c->window_bytes);
}

/* Of the window that has just come together; step 0 is its first. */
int32_t capture_value(capture_t* c, uint32_t step, uint32_t channel);
/* One time step as the sensor gave it. */
void capture_step(app_t* app, const uint8_t* step);
/* Slot of a window; UINT32_MAX: it is not here any more. */
uint32_t capture_find(capture_t* c, uint32_t id);
/* False: refused. Of settings that are in force already: without effect. */
bool capture_begin(app_t* app, const settings_t* set, response_t* r);
/* Makes a sample of the window in `slot`. */
bool capture_keep(app_t* app, uint32_t slot, app_region_id_t set, odt_error_t* err);

#endif
#endif

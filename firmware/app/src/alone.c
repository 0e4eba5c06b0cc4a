#include "alone.h"

#if APP_ALONE

/* A board that was given a trained model and is left to itself: a commit says how windows of the
 * sensor were made, too; after boot they are made again, and each one's class goes to the log, the
 * console and the LED. */

enum { kVersion = 1, kMost = 8, kMul = 20, kAdd = kMul + 4 * kMost, kConsole = 64 };

/* The record has room for what device.options lets a request hold. */
_Static_assert(sizeof((settings_t*)0)->mul == 4u * kMost, "CaptureStart.mul");
_Static_assert(sizeof((settings_t*)0)->add == 8u * kMost, "CaptureStart.add");
_Static_assert(kAdd + 8 * kMost <= ALONE_SETTINGS, "the record is longer than its room");

static void put_u64(uint8_t* p, uint64_t v) {
  put_u32(p, (uint32_t)v);
  put_u32(p + 4, (uint32_t)(v >> 32));
}
static uint64_t get_u64(const uint8_t* p) { return get_u32(p) | (uint64_t)get_u32(p + 4) << 32; }

bool alone_settings(app_t* app, uint8_t out[ALONE_SETTINGS]) {
  const bool sees = app->region[APP_REGION_CAPTURE].valid && app->model.task == ODT_TASK_CLASSIFY;
  if (!sees) return false;
  const settings_t* s = &capture_of(app)->set;
  memset(out, 0, ALONE_SETTINGS);
  out[0] = kVersion;
  out[1] = (uint8_t)s->channels;
  out[2] = (uint8_t)s->dtype;
  out[3] = (uint8_t)s->shift;
  out[4] = (uint8_t)s->mul_count;
  out[5] = (uint8_t)s->add_count;
  out[6] = (uint8_t)s->trigger;
  out[7] = (uint8_t)s->trigger_channel;
  put_u32(out + 8, s->window_steps);
  put_u32(out + 12, s->stride_steps);
  put_u32(out + 16, s->trigger_level);
  for (uint32_t i = 0; i < s->mul_count; i++) put_u32(out + kMul + 4 * i, (uint32_t)s->mul[i]);
  for (uint32_t i = 0; i < s->add_count; i++) put_u64(out + kAdd + 8 * i, (uint64_t)s->add[i]);
  return true;
}

void alone_begin(app_t* app, const uint8_t in[ALONE_SETTINGS]) {
  settings_t s;
  memset(&s, 0, sizeof s);
  if (in[0] != kVersion || in[4] > kMost || in[5] > kMost) {
    app_log(app, 3, "the sensor's settings that were committed are of another version");
    return;
  }
  s.slots = 2;
  s.channels = in[1];
  s.dtype = in[2];
  s.shift = in[3];
  s.mul_count = in[4];
  s.add_count = in[5];
  s.trigger = (odt_device_v1_CaptureStart_Trigger)in[6];
  s.trigger_channel = in[7];
  s.window_steps = get_u32(in + 8);
  s.stride_steps = get_u32(in + 12);
  s.trigger_level = get_u32(in + 16);
  for (uint32_t i = 0; i < s.mul_count; i++) s.mul[i] = (int32_t)get_u32(in + kMul + 4 * i);
  for (uint32_t i = 0; i < s.add_count; i++) s.add[i] = (int64_t)get_u64(in + kAdd + 8 * i);
  response_t r = odt_device_v1_Response_init_zero;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!trainer_ensure(app, &err)) { /* of a commit without weights: the image's */
    refuse_odt(&r, &err);
  } else if (capture_begin(app, &s, &r)) {
    capture_of(app)->alone = true;
  }
  if (r.has_error) app_log(app, 3, r.error.text);
}

/* Nobody has begun a session: text between frames, as a boot loader's. */
static void console(app_t* app, const char* text) {
  char line[kConsole];
  text_t t;
  if (app->link.pending != 0 || app->link.tx_size != 0) return;
  text_begin(&t, line, sizeof line);
  text_str(&t, text);
  text_str(&t, "\r\n");
  (void)app->hal.uart_write(app->hal.ctx, (const uint8_t*)line, t.size);
}

static void say(app_t* app, uint32_t window, uint32_t class) {
  capture_t* c = capture_of(app);
  const uint32_t now = app_now(app);
  if (c->said && now - c->said_ms < ALONE_SAY_MS) {
    c->unsaid++;
    return;
  }
  char line[kConsole - 2];
  text_t t;
  text_begin(&t, line, sizeof line);
  text_str(&t, "window ");
  text_i64(&t, window);
  text_str(&t, ": class ");
  text_i64(&t, class);
  if (c->unsaid > 0) {
    text_str(&t, ", ");
    text_i64(&t, c->unsaid);
    text_str(&t, " windows before it not shown");
  }
  c->said = true;
  c->said_ms = now;
  c->unsaid = 0;
  if (app_live(app)) {
    app_log(app, 2, line);
  } else {
    console(app, line);
  }
}

void alone_window(app_t* app, uint32_t slot) {
  capture_t* c = capture_of(app);
  if (!c->alone || job_active(app) || app->eval.active || nvm_busy(app)) return;
  int8_t logits[ODT_MAX_CLASSES];
  if (app->trainer_kind == APP_TRAINER_NONE ||
      odt_trainer_infer(&app->trainer, capture_values(c, slot), logits) != ODT_OK) {
    return;
  }
  const uint32_t best = eval_largest(logits, app->model.n_classes);
  if (app->hal.led != NULL && !app->identifying) app->hal.led(app->hal.ctx, best != 0);
  say(app, capture_windows(c)[slot].id, best);
}

#endif

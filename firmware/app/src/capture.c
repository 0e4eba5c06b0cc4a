#include "alone.h"

#if APP_CAPTURE

/* Windows of a sensor: a ring of time steps, and the windows made of it. */

enum { kRawBytes = 128 };

static int32_t value_at(const capture_t* c, const uint8_t* p) {
  if (c->dtype == ODT_U8) return *p;
  if (c->dtype == ODT_S8) return (int8_t)*p;
  return (int16_t)get_u16(p);
}

int32_t capture_value(capture_t* c, uint32_t step, uint32_t channel) {
  uint32_t at = c->next + step; /* the ring is full: its oldest step is the next to go */
  if (at >= c->steps) at -= c->steps;
  return value_at(c, capture_history(c) + (at * c->channels + channel) * c->value_size);
}

/* ---- from the sensor's values to a sample ---- */

static int32_t limit(int64_t v, int32_t lo, int32_t hi) {
  return v < lo ? lo : v > hi ? hi : (int32_t)v;
}

static void convert(const app_t* app, capture_t* c, uint8_t* out) {
  const settings_t* s = &c->set;
  const uint8_t dtype = app->model.tensors[app->model.input].dtype;
  for (uint32_t ch = 0; ch < c->channels; ch++) {
    const int64_t mul = s->mul_count == 0 ? 1 : s->mul[s->mul_count == 1 ? 0 : ch];
    const int64_t add = s->add_count == 0 ? 0 : s->add[s->add_count == 1 ? 0 : ch];
    for (uint32_t t = 0; t < c->steps; t++) {
      const int64_t v = (capture_value(c, t, ch) * mul + add) >> s->shift;
      const uint32_t at = ch * c->steps + t;
      if (dtype == ODT_U8) {
        out[at] = (uint8_t)limit(v, 0, 255);
      } else if (dtype == ODT_S8) {
        out[at] = (uint8_t)limit(v, -128, 127);
      } else {
        const uint32_t x = (uint32_t)limit(v, -INT16_MAX, INT16_MAX);
        out[2 * at] = (uint8_t)x;
        out[2 * at + 1] = (uint8_t)(x >> 8);
      }
    }
  }
}

/* ---- labels ---- */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

static bool rule_holds(capture_t* c, const odt_device_v1_LabelRule* rule) {
  int64_t sum = 0;
  int32_t min = INT32_MAX, max = INT32_MIN;
  for (uint32_t t = 0; t < c->steps; t++) {
    const int32_t v = capture_value(c, t, rule->channel);
    sum += v;
    if (v < min) min = v;
    if (v > max) max = v;
  }
  int64_t of = floor_div(sum, c->steps);
  if (rule->of == odt_device_v1_LabelRule_Of_OF_MAX) of = max;
  if (rule->of == odt_device_v1_LabelRule_Of_OF_RANGE) of = (int64_t)max - min;
  return rule->min <= of && of <= rule->max;
}

static void label_window(capture_t* c, window_t* w) {
  for (uint32_t i = 0; i < c->set.rules_count; i++) {
    if (!rule_holds(c, &c->set.rules[i])) continue;
    w->label = (int8_t)c->set.rules[i].label;
    w->flags |= WINDOW_RULE;
    return;
  }
  if (c->pressed && c->set.button_label > 0) {
    w->label = (int8_t)(c->set.button_label - 1);
    w->flags |= WINDOW_BUTTON;
    return;
  }
  w->label = (int8_t)((int32_t)c->set.label - 1);
}

/* ---- windows ---- */

static bool is_sample(const window_t* w) {
  return (w->flags & (WINDOW_TRAIN | WINDOW_HELDOUT)) != 0;
}

uint32_t capture_find(capture_t* c, uint32_t id) {
  const window_t* w = capture_windows(c);
  for (uint32_t i = 0; id != 0 && i < c->set.slots; i++) {
    if (w[i].id == id) return i;
  }
  return UINT32_MAX;
}

static uint32_t place_for(capture_t* c) {
  const window_t* w = capture_windows(c);
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < c->set.slots; i++) {
    if (w[i].id == 0) return i;
    if (w[i].label >= 0 && !is_sample(&w[i])) continue;
    if (best == UINT32_MAX || w[i].id < w[best].id) best = i;
  }
  return best;
}

static void keep_by_itself(app_t* app, uint32_t slot) {
  capture_t* c = capture_of(app);
  if (c->set.keep == odt_device_v1_SampleRole_SAMPLE_ROLE_UNSPECIFIED) return;
  app_region_id_t set = c->set.keep == odt_device_v1_SampleRole_SAMPLE_ROLE_HELDOUT
                            ? APP_REGION_HELDOUT
                            : APP_REGION_TRAIN;
  if (set == APP_REGION_TRAIN && c->set.heldout_every > 0 &&
      ++c->for_training % c->set.heldout_every == 0) {
    set = APP_REGION_HELDOUT;
  }
  odt_error_t err;
  if (!capture_keep(app, slot, set, &err)) capture_of(app)->not_kept++;
}

static void window_complete(app_t* app) {
  capture_t* c = capture_of(app);
  c->captured++;
  const uint32_t slot = place_for(c);
  if (slot == UINT32_MAX) {
    c->lost_windows++;
    return;
  }
  window_t* w = &capture_windows(c)[slot];
  *w = (window_t){.id = c->captured, .time_ms = app_now(app), .label = -1};
  convert(app, c, capture_values(c, slot));
  label_window(c, w);
  if (w->label >= 0) keep_by_itself(app, slot);
#if APP_ALONE
  alone_window(app, slot);
#endif
}

/* ---- time steps ---- */

static bool level_reached(const capture_t* c, const uint8_t* step) {
  const int32_t v = value_at(c, step + c->set.trigger_channel * c->value_size);
  return (uint32_t)(v < 0 ? -v : v) >= c->set.trigger_level;
}

/* Whether this step belongs to a window. */
static bool wanted(capture_t* c, const uint8_t* step) {
  bool begins = true;
  switch (c->set.trigger) {
    case odt_device_v1_CaptureStart_Trigger_TRIGGER_LEVEL:
      if (c->recording) return true;
      begins = level_reached(c, step);
      break;
    case odt_device_v1_CaptureStart_Trigger_TRIGGER_BUTTON:
      if (c->recording && c->pressed) return true;
      begins = c->pressed;
      break;
    default:
      return true;
  }
  c->recording = begins;
  c->filled = 0; /* a window has no gap */
  c->since = 0;
  return begins;
}

void capture_step(app_t* app, const uint8_t* step) {
  capture_t* c = capture_of(app);
  c->taken++;
  c->pressed = app->hal.button != NULL && app->hal.button(app->hal.ctx);
  if (!wanted(c, step)) return;
  const uint32_t bytes = c->channels * c->value_size;
  memcpy(capture_history(c) + c->next * bytes, step, bytes);
  c->next = c->next + 1 == c->steps ? 0 : c->next + 1;
  if (c->filled < c->steps) c->filled++;
  const bool filling = c->filled < c->steps;
  if (c->since > 0) c->since--;
  if (filling || c->since > 0) return;
  c->since = c->set.stride_steps > 0 ? c->set.stride_steps : c->steps;
  if (c->set.trigger == odt_device_v1_CaptureStart_Trigger_TRIGGER_LEVEL) c->recording = false;
  window_complete(app);
}

bool capture_poll(app_t* app) {
  const hal_sensor_t* sensor = app->hal.sensor;
  if (!capture_active(app) || sensor == NULL) return false;
  const capture_t* c = capture_of(app);
  uint8_t raw[kRawBytes] __attribute__((aligned(4)));
  const uint32_t bytes = c->channels * c->value_size;
  uint32_t lost = 0;
  const uint32_t n = sensor->read(app->hal.ctx, raw, kRawBytes / bytes, &lost);
  capture_of(app)->lost_steps += lost;
  if (lost > 0) {
    capture_of(app)->filled = 0;
    capture_of(app)->since = 0;
  }
  for (uint32_t i = 0; i < n; i++) capture_step(app, raw + i * bytes);
  return n > 0;
}

const uint8_t* capture_window(app_t* app, uint32_t id, uint32_t* bytes) {
  if (!app->region[APP_REGION_CAPTURE].valid) return NULL;
  capture_t* c = capture_of(app);
  const uint32_t slot = capture_find(c, id);
  *bytes = c->window_bytes;
  return slot == UINT32_MAX ? NULL : capture_values(c, slot);
}

bool capture_active(app_t* app) {
  return app->region[APP_REGION_CAPTURE].valid && capture_of(app)->active;
}

#endif

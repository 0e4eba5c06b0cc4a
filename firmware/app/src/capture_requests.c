#include "capture.h"

#if APP_CAPTURE

static const status_code_t kInvalid = odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT;
static const status_code_t kNotNow = odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION;

/* ---- settings ---- */

static bool in_range(response_t* r, const char* what, int64_t got, int64_t lo, int64_t hi) {
  if (got >= lo && got <= hi) return true;
  refuse_limit(r, kInvalid, what, got, got < lo ? ", at least " : ", at most ", got < lo ? lo : hi);
  return false;
}

static bool sensor_of(const app_t* app, capture_t* c, response_t* r) {
  const hal_sensor_t* sensor = app->hal.sensor;
  if (sensor != NULL) {
    c->channels = sensor->channels;
    c->dtype = sensor->dtype;
    if (c->set.channels == 0 && c->set.dtype == 0) return true;
    refuse(r, kInvalid, "channels, dtype: this board has a sensor of its own");
    return false;
  }
  if (!in_range(r, "channels: of the sensor that the host feeds", c->set.channels, 1,
                CAPTURE_CHANNELS) ||
      !in_range(r, "dtype: of the sensor that the host feeds", c->set.dtype, ODT_S8, ODT_S16)) {
    return false;
  }
  c->channels = c->set.channels;
  c->dtype = (uint8_t)c->set.dtype;
  return true;
}

static bool per_channel(response_t* r, const char* what, uint32_t n, uint32_t channels) {
  if (n <= 1 || n == channels) return true;
  refuse_limit(r, kInvalid, what, n, " values, wanted one or one per channel: ", channels);
  return false;
}

static bool adds_ok(const settings_t* s, response_t* r) {
  const int64_t limit = (int64_t)1 << 60;
  for (uint32_t i = 0; i < s->add_count; i++) {
    if (!in_range(r, "add", s->add[i], -limit, limit)) return false;
  }
  return true;
}

/* What a sample is to the loss: nothing to label where there are no classes. */
static uint32_t labels_of(const app_t* app) {
  return app->model.task == ODT_TASK_CLASSIFY ? app->model.n_classes : 1;
}

static bool rules_ok(const app_t* app, const capture_t* c, response_t* r) {
  for (uint32_t i = 0; i < c->set.rules_count; i++) {
    const odt_device_v1_LabelRule* rule = &c->set.rules[i];
    if (!in_range(r, "rule: of", rule->of, odt_device_v1_LabelRule_Of_OF_MEAN,
                  odt_device_v1_LabelRule_Of_OF_RANGE) ||
        !in_range(r, "rule: channel", rule->channel, 0, (int64_t)c->channels - 1) ||
        !in_range(r, "rule: label", rule->label, 0, (int64_t)labels_of(app) - 1) ||
        !in_range(r, "rule: max", rule->max, rule->min, INT32_MAX)) {
      return false;
    }
  }
  return true;
}

static bool button_ok(const app_t* app, const settings_t* s, response_t* r) {
  const bool wanted =
      s->button_label > 0 || s->trigger == odt_device_v1_CaptureStart_Trigger_TRIGGER_BUTTON;
  if (!wanted || app->hal.button != NULL) return true;
  refuse(r, odt_device_v1_StatusCode_STATUS_CODE_UNIMPLEMENTED, "this board has no button");
  return false;
}

static bool keep_ok(const app_t* app, odt_device_v1_SampleRole keep, response_t* r) {
  if (keep == odt_device_v1_SampleRole_SAMPLE_ROLE_UNSPECIFIED) return true;
  if (app->model.task == ODT_TASK_REGRESS) {
    refuse(r, kNotNow, "keep: a regression's samples have targets, windows have none");
    return false;
  }
  return in_range(r, "keep: role", keep, odt_device_v1_SampleRole_SAMPLE_ROLE_TRAIN,
                  odt_device_v1_SampleRole_SAMPLE_ROLE_HELDOUT);
}

/* 1 + class, or 0 for none. */
static bool label_ok(response_t* r, const char* what, uint32_t label, int64_t labels) {
  return label == 0 || in_range(r, what, (int64_t)label - 1, 0, labels - 1);
}

static bool settings_ok(const app_t* app, capture_t* c, response_t* r) {
  if (app->model.tail) {
    refuse(r, kNotNow, "a tail image takes frozen outputs, not what a sensor sees");
    return false;
  }
  const settings_t* s = &c->set;
  const odt_tensor_t* in = &app->model.tensors[app->model.input];
  const int64_t labels = labels_of(app);
  if (!sensor_of(app, c, r) || !in_range(r, "slots", s->slots, 1, 255) ||
      !in_range(r, "window_steps", s->window_steps, 1, INT32_MAX)) {
    return false;
  }
  if ((uint64_t)s->window_steps * c->channels != in->count) {
    refuse_limit(r, kInvalid, "window_steps * channels", (int64_t)s->window_steps * c->channels,
                 ", values of the model's input: ", in->count);
    return false;
  }
  c->steps = s->window_steps;
  c->value_size = c->dtype == ODT_S16 ? 2 : 1;
  c->window_bytes = in->count * (in->dtype == ODT_S16 ? 2u : 1u);
  return per_channel(r, "mul", s->mul_count, c->channels) &&
         per_channel(r, "add", s->add_count, c->channels) && adds_ok(s, r) &&
         in_range(r, "shift", s->shift, 0, 40) &&
         in_range(r, "trigger", s->trigger, 0, odt_device_v1_CaptureStart_Trigger_TRIGGER_BUTTON) &&
         in_range(r, "trigger_channel", s->trigger_channel, 0, (int64_t)c->channels - 1) &&
         label_ok(r, "button_label", s->button_label, labels) &&
         label_ok(r, "label", s->label, labels) && rules_ok(app, c, r) && button_ok(app, s, r) &&
         keep_ok(app, s->keep, r);
}

/* ---- answers ---- */

static uint32_t next_id(capture_t* c, uint32_t from) {
  const window_t* w = capture_windows(c);
  uint32_t best = 0;
  for (uint32_t i = 0; i < c->set.slots; i++) {
    if (w[i].id >= from && w[i].id != 0 && (best == 0 || w[i].id < best)) best = w[i].id;
  }
  return best;
}

static void fill_entries(capture_t* c, uint32_t from, odt_device_v1_Windows* a) {
  uint32_t n = 0;
  for (uint32_t id = next_id(c, from); id != 0; id = next_id(c, id + 1)) {
    if (12u * (n + 1) > sizeof a->entries.bytes) {
      a->more = true;
      break;
    }
    const window_t* w = &capture_windows(c)[capture_find(c, id)];
    uint8_t* p = a->entries.bytes + 12u * n++;
    put_u32(p, w->id);
    put_u32(p + 4, w->time_ms);
    p[8] = (uint8_t)w->label;
    p[9] = w->flags;
  }
  a->entries.size = (pb_size_t)(12u * n);
}

static void answer(app_t* app, uint32_t from, response_t* r) {
  r->which_result = odt_device_v1_Response_windows_tag;
  odt_device_v1_Windows* a = &r->result.windows;
  if (!app->region[APP_REGION_CAPTURE].valid) return;
  capture_t* c = capture_of(app);
  a->active = c->active;
  a->captured = c->captured;
  a->lost_windows = c->lost_windows;
  a->lost_steps = c->lost_steps;
  a->steps = c->taken;
  a->kept_train = c->kept_train;
  a->kept_heldout = c->kept_heldout;
  a->not_kept = c->not_kept;
  a->window_steps = c->steps;
  a->channels = c->channels;
  a->dtype = c->dtype;
  if (from != UINT32_MAX) fill_entries(c, from, a);
}

/* ---- requests ---- */

bool capture_begin(app_t* app, const settings_t* set, response_t* r) {
  capture_t c;
  memset(&c, 0, sizeof c);
  memcpy(&c.set, set, sizeof c.set);
  if (!settings_ok(app, &c, r)) return false;
  if (capture_active(app) && memcmp(&capture_of(app)->set, &c.set, sizeof c.set) == 0) return true;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  const uint64_t bytes = (uint64_t)c.set.slots * (c.window_bytes + 20u) + c.window_bytes;
  if (bytes > UINT32_MAX / 4 || !arena_reserve(app, APP_REGION_CAPTURE, capture_bytes(&c), &err)) {
    if (err.status == ODT_OK) {
      refuse(r, odt_device_v1_StatusCode_STATUS_CODE_RESOURCE_EXHAUSTED, "slots: beyond memory");
    } else {
      refuse_odt(r, &err);
    }
    return false;
  }
  c.active = true;
  memset(capture_of(app), 0, capture_bytes(&c));
  memcpy(capture_of(app), &c, sizeof c);
  app->region[APP_REGION_CAPTURE].valid = true;
  if (app->hal.sensor != NULL) {
    /* What was sampled before the start is not of this capture. */
    uint8_t raw[128];
    uint32_t lost = 0;
    const uint32_t steps = (uint32_t)sizeof raw / (c.channels * c.value_size);
    while (app->hal.sensor->read(app->hal.ctx, raw, steps, &lost) == steps) {}
  }
  return true;
}

void capture_start(app_t* app, const request_t* q, response_t* r) {
  if (!app->has_model) {
    refuse(r, kNotNow, "no model image: send one first");
    return;
  }
  if (capture_begin(app, &q->op.capture_start, r)) answer(app, 0, r);
}

void capture_stop(app_t* app, const request_t* q, response_t* r) {
  (void)q;
  if (app->region[APP_REGION_CAPTURE].valid) capture_of(app)->active = false;
  answer(app, 0, r);
}

void capture_get_windows(app_t* app, const request_t* q, response_t* r) {
  answer(app, q->op.get_windows.from_id, r);
}

void capture_label(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_LabelWindow* l = &q->op.label_window;
  const bool valid = app->region[APP_REGION_CAPTURE].valid;
  const uint32_t slot = valid ? capture_find(capture_of(app), l->window_id) : UINT32_MAX;
  if (slot == UINT32_MAX) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_NOT_FOUND, "window is not in memory",
                 l->window_id, ", captured: ", valid ? capture_of(app)->captured : 0);
    return;
  }
  if (!in_range(r, "label", l->label, 0, (int64_t)labels_of(app) - 1) ||
      !keep_ok(app, l->keep, r)) {
    return;
  }
  window_t* w = &capture_windows(capture_of(app))[slot];
  const bool sample = (w->flags & (WINDOW_TRAIN | WINDOW_HELDOUT)) != 0;
  if (sample) {
    const uint8_t as =
        l->keep == odt_device_v1_SampleRole_SAMPLE_ROLE_HELDOUT ? WINDOW_HELDOUT : WINDOW_TRAIN;
    if (w->label != (int8_t)l->label || (l->keep != 0 && (w->flags & as) == 0)) {
      refuse(r, kNotNow, "this window is a sample already, with another label or role");
      return;
    }
  } else {
    w->label = (int8_t)l->label;
    w->flags &= (uint8_t) ~(WINDOW_RULE | WINDOW_BUTTON);
    odt_error_t err = {.status = ODT_OK, .index = -1};
    const app_region_id_t set = l->keep == odt_device_v1_SampleRole_SAMPLE_ROLE_HELDOUT
                                    ? APP_REGION_HELDOUT
                                    : APP_REGION_TRAIN;
    if (l->keep != 0 && !capture_keep(app, slot, set, &err)) {
      refuse_odt(r, &err);
      return;
    }
  }
  answer(app, l->window_id, r);
}

void capture_feed(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_FeedSensor* f = &q->op.feed_sensor;
  if (app->hal.sensor != NULL) {
    refuse(r, kNotNow, "this board has a sensor of its own");
    return;
  }
  if (!capture_active(app)) {
    refuse(r, kNotNow, "no capture is under way: start one first");
    return;
  }
  const capture_t* c = capture_of(app);
  const uint32_t bytes = c->channels * c->value_size;
  if (f->steps.size % bytes != 0) {
    refuse_limit(r, kInvalid, "steps: bytes", f->steps.size, ", a multiple of ", bytes);
    return;
  }
  if (f->first > c->taken) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_OUT_OF_RANGE, "first", (int64_t)f->first,
                 ", steps taken: ", (int64_t)c->taken);
    return;
  }
  const uint32_t n = f->steps.size / bytes;
  for (uint64_t i = c->taken - f->first; i < n; i++) capture_step(app, f->steps.bytes + i * bytes);
  answer(app, UINT32_MAX, r);
}

#endif

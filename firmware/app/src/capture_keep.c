#include "capture.h"

#if APP_CAPTURE

/* A window becomes the last sample of a resident set. */

static bool in_transfer(const app_t* app, app_region_id_t set) {
  const uint8_t samples = odt_device_v1_Resource_RESOURCE_SAMPLES;
  const uint8_t role = (uint8_t)(set - APP_REGION_IMAGE);
  return (app->in.active && app->in.resource == samples && app->in.index == role) ||
         (app->out.active && app->out.resource == samples && app->out.index == role);
}

/* An empty set, or one whose samples are like the windows. */
static bool takes_windows(app_t* app, const capture_t* c, app_region_id_t set, odt_samples_t* s,
                          odt_error_t* err) {
  const odt_tensor_t* in = &app->model.tensors[app->model.input];
  memset(s, 0, sizeof *s);
  if (!app->region[set].valid) return true;
  if (!arena_samples(app, set, s) || s->flags != 0 || s->dtype != in->dtype ||
      s->sample_len * (in->dtype == ODT_S16 ? 2u : 1u) != c->window_bytes) {
    return fail(err, ODT_FAILED_PRECONDITION,
                "the samples here are not like the model's input: windows cannot join them");
  }
  return true;
}

static void write_head(const app_t* app, uint8_t* p, uint32_t count) {
  const odt_tensor_t* in = &app->model.tensors[app->model.input];
  memcpy(p, "ODTS", 4);
  p[4] = 1;
  p[5] = 0;
  p[6] = in->dtype;
  p[7] = 0;
  put_u32(p + 8, count);
  put_u32(p + 12, in->count);
}

bool capture_keep(app_t* app, uint32_t slot, app_region_id_t set, odt_error_t* err) {
  capture_t* c = capture_of(app);
  odt_samples_t s;
  if (samples_in_use(app, set) || in_transfer(app, set)) {
    return fail(err, ODT_FAILED_PRECONDITION, "these samples are in use: stop the run first");
  }
  if (!takes_windows(app, c, set, &s, err)) return false;
  const uint32_t old = s.count, bytes = c->window_bytes;
  const uint32_t labels = (old + 3u) & ~3u, more = (old + 4u) & ~3u;
  const uint64_t size = 16u + more + (uint64_t)(old + 1) * bytes;
  if (size > INT32_MAX) return fail(err, ODT_RESOURCE_EXHAUSTED, "samples: beyond memory");
  if (!arena_reserve(app, set, (uint32_t)size, err)) return false;
  /* The capture lies behind the samples: it has moved. */
  c = capture_of(app);
  uint8_t* p = region_data(app, set);
  if (more != labels) {
    memmove(p + 16 + more, p + 16 + labels, old * bytes);
    memset(p + 16 + labels, 0, more - labels);
  }
  window_t* w = &capture_windows(c)[slot];
  p[16 + old] = (uint8_t)w->label;
  memcpy(p + 16 + more + old * bytes, capture_values(c, slot), bytes);
  write_head(app, p, old + 1);
  app->region[set].valid = true;
  app->set_stale |= (uint8_t)(1u << (set - APP_REGION_TRAIN));
  if (set == APP_REGION_TRAIN) {
    w->flags |= WINDOW_TRAIN;
    c->kept_train++;
  } else {
    w->flags |= WINDOW_HELDOUT;
    c->kept_heldout++;
  }
  return true;
}

#endif

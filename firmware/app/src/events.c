#include <pb_encode.h>

#include "internal.h"

static void evict(app_t* app) {
  app_events_t* v = &app->events;
  const uint32_t size = v->entry[0].size;
  if (v->send == events_first(app)) {
    v->send++;
    v->dropped++;
  }
  v->used -= size;
  memmove(v->bytes, v->bytes + size, v->used);
  v->count--;
  memmove(v->entry, v->entry + 1, v->count * sizeof v->entry[0]);
}

void events_push(app_t* app, const odt_device_v1_Event* e) {
  app_events_t* v = &app->events;
  size_t size = 0;
  if (!pb_get_encoded_size(&size, odt_device_v1_Event_fields, e) || size > APP_EVENT_BYTES) return;
  while (v->count == APP_EVENTS || v->used + size > APP_EVENT_BYTES) evict(app);
  pb_ostream_t out = pb_ostream_from_buffer(v->bytes + v->used, size);
  if (!pb_encode(&out, odt_device_v1_Event_fields, e)) return;
  v->entry[v->count].size = (uint16_t)size;
  v->entry[v->count].epoch = 0;
  v->used += (uint32_t)size;
  v->count++;
  v->next++;
}

void events_push_epoch(app_t* app, uint32_t step_us) {
  app_events_t* v = &app->events;
  if (epochs_full(app)) return; /* the job holds before this can happen */
  app_epoch_t* kept = epochs_next(app);
  kept->event_id = v->next;
  kept->step_us = step_us;
  app->epoch_count++;
  if (v->count == APP_EVENTS) evict(app);
  v->entry[v->count].size = 0;
  v->entry[v->count].epoch = kept->record.epoch;
  v->count++;
  v->next++;
}

/* An epoch's record that does not fit the MTU loses its later fields, then its last layers. */
static bool encode_epoch(app_t* app, const app_epoch_t* kept, pb_ostream_t* out) {
  odt_device_v1_Event e = odt_device_v1_Event_init_zero;
  e.which_event = odt_device_v1_Event_epoch_tag;
  epoch_to_wire(app, kept, &e.event.epoch);
  for (bool whole = true;;) {
    size_t size = 0;
    if (!pb_get_encoded_size(&size, odt_device_v1_Event_fields, &e)) return false;
    if (size <= out->max_size) return pb_encode(out, odt_device_v1_Event_fields, &e);
    if (e.event.epoch.layers_count == 0) return false;
    if (whole) {
      epoch_shorten(&e.event.epoch);
      whole = false;
    } else {
      e.event.epoch.layers_count--;
    }
  }
}

bool events_encode_next(app_t* app, pb_ostream_t* out, uint32_t* id) {
  app_events_t* v = &app->events;
  while (v->send != v->next) {
    const uint32_t index = v->send - events_first(app);
    *id = v->send++;
    if (v->entry[index].size == 0) {
      app_epoch_t* kept = epochs_find(app, v->entry[index].epoch);
      /* Acknowledged: sent empty, or the host would take its id for lost. */
      if (kept == NULL || kept->event_id != *id) return true;
      return encode_epoch(app, kept, out);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < index; i++) at += v->entry[i].size;
    return pb_write(out, v->bytes + at, v->entry[index].size);
  }
  return false;
}

bool epochs_encode(app_t* app, uint32_t epoch, pb_ostream_t* out, uint32_t* id) {
  const app_epoch_t* kept = epochs_find(app, epoch);
  if (kept == NULL) return false;
  *id = kept->event_id;
  return encode_epoch(app, kept, out);
}

/* A record has the layers of the model, and with another model there are no records. */
uint32_t epochs_capacity(const app_t* app) {
  return min_u32(app->config->epoch_capacity,
                 app->config->epoch_bytes / APP_EPOCH_BYTES(app->model.n_layers));
}

/* The i-th from the oldest on. */
static app_epoch_t* epoch_at(const app_t* app, uint32_t i) {
  const uint32_t place = (app->epoch_first + i) % epochs_capacity(app);
  uint8_t* base = app->config->epochs;
  return (app_epoch_t*)(void*)(base + place * APP_EPOCH_BYTES(app->model.n_layers));
}

app_epoch_t* epochs_find(app_t* app, uint32_t epoch) {
  for (uint32_t i = 0; i < app->epoch_count; i++) {
    app_epoch_t* kept = epoch_at(app, i);
    if (kept->record.epoch == epoch) return kept;
  }
  return NULL;
}

uint32_t epochs_oldest(const app_t* app) { return epoch_at(app, 0)->record.epoch; }

app_epoch_t* epochs_next(app_t* app) { return epoch_at(app, app->epoch_count); }

bool epochs_full(const app_t* app) { return app->epoch_count == epochs_capacity(app); }

void epochs_ack(app_t* app, uint32_t epoch) {
  while (app->epoch_count > 0 && epochs_oldest(app) <= epoch) {
    app->epoch_first = (app->epoch_first + 1) % epochs_capacity(app);
    app->epoch_count--;
  }
}

void epochs_clear(app_t* app) {
  app->epoch_first = 0;
  app->epoch_count = 0;
}

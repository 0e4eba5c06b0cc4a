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

void events_push(app_t* app, uint32_t tag, const coder_message_t* m, const void* message) {
  app_events_t* v = &app->events;
  coder_out_t out = {0}; /* only counts */
  coder_put_message(&out, tag, m, message);
  const uint32_t size = out.used;
  if (size > APP_EVENT_BYTES) return;
  while (v->count == APP_EVENTS || v->used + size > APP_EVENT_BYTES) evict(app);
  out = (coder_out_t){.bytes = v->bytes + v->used, .limit = size};
  coder_put_message(&out, tag, m, message);
  v->entry[v->count].size = (uint16_t)size;
  v->entry[v->count].epoch = 0;
  v->used += size;
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

/* How much of an epoch's record is told. */
typedef struct {
  const app_t* app;
  const app_epoch_t* kept;
  uint32_t layers;
  bool whole;
} telling_t;

/* The layers are the record's last field: one at a time, for their size. */
static void put_epoch(const telling_t* t, const odt_device_v1_EpochRecord* w, coder_out_t* out) {
  const uint32_t at = coder_open(out, odt_device_v1_Event_epoch_tag);
  coder_put(out, &odt_device_v1_EpochRecord_coder, w);
  for (uint32_t i = 0; i < t->layers; i++) {
    odt_device_v1_LayerEpoch l;
    layer_to_wire(t->app, &t->kept->record, i, t->whole, &l);
    coder_put_message(out, odt_device_v1_EpochRecord_layers_tag, &odt_device_v1_LayerEpoch_coder,
                      &l);
  }
  coder_close(out, at);
}

/* A record that does not fit the MTU loses its later fields, then its last layers. */
static bool encode_epoch(const app_t* app, const app_epoch_t* kept, coder_out_t* out) {
  telling_t t = {.app = app, .kept = kept, .layers = app->model.n_layers, .whole = true};
  odt_device_v1_EpochRecord w = odt_device_v1_EpochRecord_init_zero;
  epoch_to_wire(kept, &w);
  const uint32_t from = out->used;
  for (;;) {
    put_epoch(&t, &w, out);
    if (out->used <= out->limit) return true;
    out->used = from;
    if (t.layers == 0) return false;
    if (t.whole) {
      t.whole = false;
    } else {
      t.layers--;
    }
  }
}

bool events_encode_next(app_t* app, coder_out_t* out, uint32_t* id) {
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
    coder_put_bytes(out, v->bytes + at, v->entry[index].size);
    return true;
  }
  return false;
}

bool epochs_encode(app_t* app, uint32_t epoch, coder_out_t* out, uint32_t* id) {
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

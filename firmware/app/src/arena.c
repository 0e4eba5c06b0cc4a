#include "internal.h"

static uint32_t align8(uint32_t n) { return (n + 7u) & ~7u; }

static uint32_t regions_end(const app_t* app) {
  const app_region_t* last = &app->region[APP_REGIONS - 1];
  return last->at + last->capacity;
}

uint32_t arena_free(const app_t* app) {
  return app->config->arena_size - app->trainer_bytes - regions_end(app);
}

/* Gives region `id` the capacity wanted and moves what lies behind it. The caller has checked that
 * it fits. */
static void resize(app_t* app, app_region_id_t id, uint32_t capacity) {
  app_region_t* r = &app->region[id];
  const uint32_t from = r->at + r->capacity;
  const uint32_t to = r->at + capacity;
  if (from == to) return;
  memmove(app->config->arena + to, app->config->arena + from, regions_end(app) - from);
  r->capacity = capacity;
  for (uint32_t i = (uint32_t)id + 1; i < APP_REGIONS; i++) {
    app->region[i].at = app->region[i].at - from + to;
  }
}

bool arena_reserve(app_t* app, app_region_id_t id, uint32_t bytes, odt_error_t* err) {
  app_region_t* r = &app->region[id];
  /* A run's slots keep their room; before one, a smaller batch makes room for the trainer. */
  const bool grows_only = id >= APP_REGION_SLOT0 && (app->trainer_kind == APP_TRAINER_RUN ||
                                                     app->trainer_kind == APP_TRAINER_STATE);
  const uint32_t want = bytes > app->config->arena_size ? UINT32_MAX : align8(bytes);
  if (want > r->capacity && want - r->capacity > arena_free(app) &&
      app->trainer_kind == APP_TRAINER_IMAGE) {
    trainer_drop(app);
  }
  const uint32_t limit = r->capacity + arena_free(app);
  if (want > limit) {
    *err = (odt_error_t){.status = ODT_RESOURCE_EXHAUSTED,
                         .what = "memory: bytes wanted for this content",
                         .got = (int32_t)min_u32(bytes, INT32_MAX),
                         .limit_hi = (int32_t)limit,
                         .index = -1};
    return false;
  }
  r->valid = false;
  if (want > r->capacity || !grows_only) resize(app, id, want);
  r->size = bytes;
  return true;
}

void arena_drop(app_t* app, app_region_id_t from) {
  trainer_drop(app);
  const uint32_t at = app->region[from].at;
  for (uint32_t i = from; i < APP_REGIONS; i++) app->region[i] = (app_region_t){.at = at};
}

bool arena_samples(app_t* app, app_region_id_t id, odt_samples_t* s) {
  const app_region_t* r = &app->region[id];
  if (!r->valid) return false;
  /* Checked when it was committed; only the place may have changed since. */
  return odt_samples_open(s, region_data(app, id), r->size, NULL) == ODT_OK;
}

static void rehash(app_t* app, uint32_t set) {
  const app_region_id_t id = (app_region_id_t)(APP_REGION_TRAIN + set);
  odt_sha256_t s;
  odt_sha256_init(&s);
  odt_sha256_update(&s, region_data(app, id), app->region[id].size);
  odt_sha256_final(&s, app->set_hash[set]);
}

void arena_set_hash(app_t* app, uint8_t hash[32]) {
  static const uint8_t kNone[32] = {0};
  odt_sha256_t s;
  for (uint32_t i = 0; i < 2; i++) {
    if ((app->set_stale & (1u << i)) != 0) rehash(app, i);
  }
  app->set_stale = 0;
  odt_sha256_init(&s);
  odt_sha256_update(&s, app->set_hash[0], 32);
  odt_sha256_update(&s, app->region[APP_REGION_HELDOUT].valid ? app->set_hash[1] : kNone, 32);
  odt_sha256_final(&s, hash);
}

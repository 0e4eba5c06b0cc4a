#include "nvm.h"

/* Boot: the newest commit that is whole comes back as if the host had just sent it. */

#if APP_NVM

static void feed_watchdog(app_t* app) {
  if (app->hal.watchdog_feed != NULL) app->hal.watchdog_feed(app->hal.ctx);
}

static bool body_whole(app_t* app, uint32_t slot, const app_nvm_head_t* h) {
  uint8_t part[APP_NVM_HEAD];
  uint32_t crc = 0;
  for (uint32_t at = 0; at < h->body; at += sizeof part) {
    const uint32_t n = min_u32(sizeof part, h->body - at);
    const uint32_t from = nvm_slot_at(app, slot) + APP_NVM_HEAD + at;
    if (!app->hal.nvm->read(app->hal.ctx, from, part, n)) return false;
    crc = frame_crc32(crc, part, n);
    feed_watchdog(app);
  }
  return crc == h->crc;
}

/* One content by the way that transfers take. at: within the body. */
static bool feed(app_t* app, odt_device_v1_Resource resource, uint32_t index, uint32_t at,
                 uint32_t size, odt_error_t* err) {
  const odt_device_v1_XferOpen o = {.resource = resource, .index = index, .size = size};
  app_xfer_t* x = &app->in;
  xfer_in_abort(app);
  if (!xfer_in_begin(app, &o, err)) return false;
  memset(x, 0, sizeof *x);
  x->resource = (uint8_t)resource;
  x->index = (uint8_t)index;
  x->size = size;
  const uint32_t body = nvm_slot_at(app, app->nvm.slot) + APP_NVM_HEAD;
  for (uint8_t part[APP_NVM_HEAD]; x->at < size;) {
    const uint32_t n = min_u32(sizeof part, size - x->at);
    if (!app->hal.nvm->read(app->hal.ctx, body + at + x->at, part, n)) {
      return fail(err, ODT_DATA_LOSS, "NVM: it does not answer");
    }
    xfer_in_data(app, part, n);
    x->at += n;
    feed_watchdog(app);
    if (x->error.status != ODT_OK) {
      *err = x->error;
      return false;
    }
  }
  err->status = ODT_OK;
  xfer_in_end(app, err);
  return err->status == ODT_OK;
}

/* Where the best are the weights that are there, they were not written twice. */
static bool copy_best(app_t* app, odt_error_t* err) {
  odt_trainer_t* t = &app->trainer;
  uint8_t part[APP_NVM_HEAD];
  odt_weights_hash(t, false, part);
  if (memcmp(part, t->best_hash, 32) != 0) return true; /* the host may have it */
  const uint32_t size = odt_weights_size(t);
  for (uint32_t at = 0; at < size; at += sizeof part) {
    const uint32_t n = min_u32(sizeof part, size - at);
    odt_weights_read(t, false, at, part, n);
    if (odt_weights_write(t, true, at, part, n, err) != ODT_OK) return false;
  }
  return odt_weights_write_end(t, true, err) == ODT_OK;
}

static bool load_state(app_t* app, const app_nvm_head_t* h, odt_error_t* err) {
  app_nvm_t* v = &app->nvm;
  const uint32_t at = h->classes + h->image;
  uint8_t hash[32];
  memset(app->trainer_spec.class_weights, 64, sizeof app->trainer_spec.class_weights);
  if (h->classes > 0 && !app->hal.nvm->read(app->hal.ctx, nvm_slot_at(app, v->slot) + APP_NVM_HEAD,
                                            app->trainer_spec.class_weights, h->classes)) {
    return fail(err, ODT_DATA_LOSS, "NVM: it does not answer");
  }
  v->restoring_resident = (h->flags & NVM_RESIDENT) != 0;
  const bool there = feed(app, odt_device_v1_Resource_RESOURCE_STATE,
                          (h->flags & NVM_BEST_ON_HOST) != 0, at, h->content, err);
  v->restoring_resident = false;
  if (!there) return false;
  if (h->best > 0) {
    if (!feed(app, odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS, 0, at + h->content, h->best,
              err)) {
      return false;
    }
  } else if (app->trainer.best_missing && !copy_best(app, err)) {
    return false;
  }
  odt_state_hash(&app->trainer, hash);
  if (memcmp(hash, h->hash, 32) != 0) {
    return fail(err, ODT_DATA_LOSS, "NVM: the state has another hash than its head says");
  }
  memcpy(app->job.run_id, h->run_id, 16);
  app->job.attempt = h->attempt;
  return true;
}

static bool of_model(const app_t* app, const app_nvm_head_t* h, odt_error_t* err) {
  if (memcmp(app->model.hash, h->model, sizeof h->model) == 0) return true;
  return fail(err, ODT_FAILED_PRECONDITION, "NVM: the commit belongs to another model");
}

static bool load(app_t* app, const app_nvm_head_t* h, odt_error_t* err) {
  if (h->image > 0) {
    if (!feed(app, odt_device_v1_Resource_RESOURCE_MODEL_IMAGE, 0, h->classes, h->image, err)) {
      return false;
    }
  }
  if (!of_model(app, h, err)) return false;
  if (h->kind == NVM_KIND(STATE)) return load_state(app, h, err);
  if (h->kind == NVM_KIND(IMAGE)) return true;
  return feed(app, odt_device_v1_Resource_RESOURCE_WEIGHTS, 0, h->classes + h->image, h->content,
              err);
}

bool nvm_restore(app_t* app, odt_error_t* err) {
  app_nvm_t* v = &app->nvm;
  const app_nvm_head_t* h = &v->newest;
  if (h->sequence == 0) return fail(err, ODT_NOT_FOUND, "NVM: nothing is committed");
  /* Refused before anything is touched. */
  if (h->image == 0 && !app->has_model) {
    return fail(err, ODT_FAILED_PRECONDITION,
                "NVM: the commit has no model image: send it, then restore");
  }
  if (h->image == 0 && !of_model(app, h, err)) return false;
  if (!load(app, h, err)) {
    /* Nothing half: weights and run are gone, the image where the slot has one of its own. */
    trainer_drop(app);
    if (h->image > 0) {
      app->has_model = false;
      arena_drop(app, APP_REGION_IMAGE);
    }
    job_clear(app);
    return false;
  }
  memset(&app->in, 0, sizeof app->in);
  v->restored = true;
  return true;
}

/* ---- boot ---- */

static const char* complaint(nvm_slot_state_t s) {
  switch (s) {
    case NVM_SLOT_FOREIGN:
      return "NVM: a commit of another version is ignored";
    case NVM_SLOT_UNREAD:
      return "NVM: it does not answer";
    case NVM_SLOT_GARBAGE:
      return "NVM: a slot with other content or a torn head is ignored";
    default:
      return NULL;
  }
}

/* Newest of those that are whole; *says: what was wrong with another. */
static void scan(app_t* app, const char** says) {
  app_nvm_t* v = &app->nvm;
  app_nvm_head_t heads[2];
  for (uint32_t slot = 0; slot < 2; slot++) {
    const nvm_slot_state_t s = nvm_head_read(app, slot, &heads[slot]);
    if (complaint(s) != NULL) *says = complaint(s);
    v->writes[slot] = heads[slot].writes;
    if (heads[slot].sequence > v->sequence) v->sequence = heads[slot].sequence;
  }
  /* A slot whose count is lost was written about as often as the other. */
  for (uint32_t slot = 0; slot < 2; slot++) {
    if (v->writes[slot] == 0 && v->writes[1 - slot] > 1) v->writes[slot] = v->writes[1 - slot] - 1;
  }
  const uint32_t first = heads[1].sequence > heads[0].sequence ? 1 : 0;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t slot = i == 0 ? first : 1 - first;
    const app_nvm_head_t* h = &heads[slot];
    if (h->sequence == 0 || h->kind == 0) continue; /* none, or erased */
    if (body_whole(app, slot, h)) {
      v->newest = *h;
      v->slot = (uint8_t)slot;
      return;
    }
    *says = "NVM: a torn commit is ignored";
  }
}

#if APP_ALONE
static void stand_alone(app_t* app) {
  const app_nvm_head_t* h = &app->nvm.newest;
  uint8_t sensor[ALONE_SETTINGS];
  if (h->sensor != sizeof sensor) return;
  const uint32_t at = nvm_slot_at(app, app->nvm.slot) + APP_NVM_HEAD + h->body - h->sensor;
  if (app->hal.nvm->read(app->hal.ctx, at, sensor, sizeof sensor) &&
      frame_crc32(0, sensor, sizeof sensor) == h->sensor_crc) {
    alone_begin(app, sensor);
  }
}
#else
static void stand_alone(app_t* app) { (void)app; }
#endif

void nvm_boot(app_t* app) {
  odt_error_t err = {.status = ODT_OK, .index = -1};
  const char* says = NULL;
  if (!nvm_usable(app)) return;
  scan(app, &says);
  if (app->nvm.newest.sequence != 0 && !nvm_restore(app, &err)) {
    response_t r = odt_device_v1_Response_init_zero;
    refuse_odt(&r, &err);
    app_log(app, 3, r.error.text);
  } else if (says != NULL) {
    app_log(app, 3, says);
  }
  if (app->nvm.restored) stand_alone(app);
}

#endif

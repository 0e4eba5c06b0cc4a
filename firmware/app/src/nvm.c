#include "nvm.h"

/* What is committed, what would be, and the requests. */

#if APP_NVM

#define CODE(name) odt_device_v1_StatusCode_STATUS_CODE_##name
enum { kVersion = 1, kVersionSensor = 2, kHeadCrc = APP_NVM_HEAD - 4 };
static const uint8_t kMagic[4] = {'O', 'D', 'T', 'N'};

/* ---- geometry ---- */

static uint32_t alignment(const hal_nvm_t* m) {
  const uint32_t big = m->unit > m->page ? m->unit : m->page;
  return big > APP_NVM_HEAD ? big : APP_NVM_HEAD;
}

bool nvm_usable(const app_t* app) {
  const hal_nvm_t* m = app->hal.nvm;
  if (m == NULL || m->page == 0) return false;
  const bool divides = APP_NVM_HEAD % m->page == 0 || m->page % APP_NVM_HEAD == 0;
  return divides && alignment(m) % m->page == 0 && m->size / 2 >= alignment(m) &&
         m->size / 2 > APP_NVM_HEAD;
}

static uint32_t slot_size(const app_t* app) {
  const hal_nvm_t* m = app->hal.nvm;
  return m->size / 2 - m->size / 2 % alignment(m);
}

uint32_t nvm_slot_at(const app_t* app, uint32_t slot) { return slot * slot_size(app); }
uint32_t nvm_slot_bytes(const app_t* app) { return slot_size(app) - APP_NVM_HEAD; }

/* ---- head ---- */

void nvm_head_encode(const app_nvm_head_t* h, uint8_t out[APP_NVM_HEAD]) {
  const uint32_t words[] = {h->sequence, h->body, h->crc,  h->classes, h->image,
                            h->content,  h->best, h->step, h->attempt, h->writes};
  memset(out, 0, APP_NVM_HEAD);
  memcpy(out, kMagic, 4);
  out[4] = h->sensor > 0 ? kVersionSensor : kVersion;
  out[6] = h->kind;
  out[7] = h->flags;
  for (uint32_t i = 0; i < 10; i++) put_u32(out + 8 + 4 * i, words[i]);
  memcpy(out + 48, h->run_id, 16);
  memcpy(out + 64, h->hash, 32);
  memcpy(out + 96, h->model, 16);
  put_u32(out + 112, h->sensor);
  put_u32(out + 116, h->sensor_crc);
  put_u32(out + kHeadCrc, frame_crc32(0, out, kHeadCrc));
}

static void decode(const uint8_t* in, app_nvm_head_t* h) {
  uint32_t* const words[] = {&h->sequence, &h->body, &h->crc,  &h->classes, &h->image,
                             &h->content,  &h->best, &h->step, &h->attempt, &h->writes};
  h->kind = in[6];
  h->flags = in[7];
  for (uint32_t i = 0; i < 10; i++) *words[i] = get_u32(in + 8 + 4 * i);
  memcpy(h->run_id, in + 48, 16);
  memcpy(h->hash, in + 64, 32);
  memcpy(h->model, in + 96, 16);
  h->sensor = get_u32(in + 112);
  h->sensor_crc = get_u32(in + 116);
}

static bool blank(const uint8_t* in) {
  for (uint32_t i = 1; i < APP_NVM_HEAD; i++) {
    if (in[i] != in[0]) return false;
  }
  return in[0] == 0xFFu || in[0] == 0;
}

static bool sums_up(const app_t* app, const app_nvm_head_t* h) {
  const uint32_t limit = nvm_slot_bytes(app);
  if (h->classes > limit || h->image > limit || h->content > limit || h->best > limit) return false;
  if (h->sensor > limit) return false;
  return h->body <= limit && h->body == h->classes + h->image + h->content + h->best + h->sensor &&
         h->kind <= NVM_KIND(STATE) && h->sequence != 0 && h->classes <= ODT_MAX_CLASSES;
}

nvm_slot_state_t nvm_head_read(app_t* app, uint32_t slot, app_nvm_head_t* h) {
  uint8_t in[APP_NVM_HEAD];
  memset(h, 0, sizeof *h);
  if (!app->hal.nvm->read(app->hal.ctx, nvm_slot_at(app, slot), in, sizeof in)) {
    return NVM_SLOT_UNREAD;
  }
  if (blank(in)) return NVM_SLOT_BLANK;
  if (memcmp(in, kMagic, 4) != 0 || get_u32(in + kHeadCrc) != frame_crc32(0, in, kHeadCrc)) {
    return NVM_SLOT_GARBAGE;
  }
  if (in[4] < kVersion || in[4] > kVersionSensor || in[5] != 0) return NVM_SLOT_FOREIGN;
  decode(in, h);
  if (sums_up(app, h)) return NVM_SLOT_HERE;
  memset(h, 0, sizeof *h);
  return NVM_SLOT_GARBAGE;
}

/* ---- what would be committed ---- */

static bool weighs_classes(const app_t* app) {
  const odt_model_t* m = &app->model;
  if (m->task != ODT_TASK_CLASSIFY) return false;
  for (uint32_t i = 0; i < m->n_classes; i++) {
    if (app->trainer_spec.class_weights[i] != 64) return true;
  }
  return false;
}

static void measure_state(app_t* app, app_nvm_head_t* h) {
  const odt_trainer_t* t = &app->trainer;
  const bool done = odt_trainer_done(t);
  h->kind = NVM_KIND(STATE);
  h->content = odt_state_size(t);
  h->classes = weighs_classes(app) ? app->model.n_classes : 0;
  h->step = odt_trainer_step_count(t);
  h->attempt = app->job.attempt;
  memcpy(h->run_id, app->job.run_id, 16);
  if (t->resident) h->flags |= NVM_RESIDENT;
  if (t->spec.best_on_host) h->flags |= NVM_BEST_ON_HOST;
  if (done) h->flags |= NVM_DONE; /* its best are its weights */
  if (!done && t->spec.guard && !t->spec.best_on_host && t->best_correct != UINT32_MAX &&
      !t->best_missing) {
    h->best = odt_best_size(t);
  }
}

void nvm_measure(app_t* app, app_nvm_head_t* h) {
  memset(h, 0, sizeof *h);
  if (!app->has_model) return;
  h->image = app->region[APP_REGION_IMAGE].size;
  memcpy(h->model, app->model.hash, sizeof h->model);
  if (trainer_has_state(app)) {
    measure_state(app, h);
  } else if (app->trainer_kind == APP_TRAINER_WEIGHTS) {
    h->kind = NVM_KIND(WEIGHTS);
    h->content = odt_weights_size(&app->trainer);
  } else {
    h->kind = NVM_KIND(IMAGE);
  }
#if APP_ALONE
  uint8_t sensor[ALONE_SETTINGS];
  if (!alone_settings(app, sensor)) return;
  h->sensor = sizeof sensor;
  h->sensor_crc = frame_crc32(0, sensor, sizeof sensor);
#endif
}

bool nvm_choose(const app_t* app, app_nvm_head_t* h, odt_error_t* err) {
  const uint32_t limit = nvm_slot_bytes(app);
  const uint32_t must = h->kind == NVM_KIND(IMAGE) ? h->image : h->classes + h->content;
  if (must > limit) {
    *err = (odt_error_t){.status = ODT_RESOURCE_EXHAUSTED,
                         .what = "NVM: bytes wanted of one of its two slots",
                         .got = (int32_t)min_u32(must, INT32_MAX),
                         .limit_hi = (int32_t)limit,
                         .index = -1};
    return false;
  }
  h->body = must;
  if (h->best > limit - h->body) h->best = 0;
  h->body += h->best;
  if (h->kind != NVM_KIND(IMAGE)) {
    if (h->image > limit - h->body) h->image = 0;
    h->body += h->image;
  }
  if (h->sensor > limit - h->body) h->sensor = h->sensor_crc = 0;
  h->body += h->sensor;
  return true;
}

void nvm_body_read(app_t* app, const app_nvm_head_t* h, uint32_t at, uint8_t* out, uint32_t n) {
  const uint32_t behind = h->body - h->sensor;
  const uint32_t ends[5] = {h->classes, h->classes + h->image, behind - h->best, behind, h->body};
  uint32_t begin = 0;
  for (uint32_t i = 0; i < 5 && n > 0; begin = ends[i++]) {
    if (at >= ends[i]) continue;
    const uint32_t part = min_u32(n, ends[i] - at), from = at - begin;
    if (i == 0) {
      memcpy(out, app->trainer_spec.class_weights + from, part);
    } else if (i == 1) {
      memcpy(out, region_data(app, APP_REGION_IMAGE) + from, part);
    } else if (i == 2 && h->kind == NVM_KIND(STATE)) {
      odt_state_read(&app->trainer, from, out, part);
    } else if (i == 4) {
#if APP_ALONE
      uint8_t sensor[ALONE_SETTINGS] = {0};
      (void)alone_settings(app, sensor); /* gone meanwhile: the CRC in the head tells */
      memcpy(out, sensor + from, part);
#endif
    } else {
      odt_weights_read(&app->trainer, i == 3, from, out, part);
    }
    at += part;
    out += part;
    n -= part;
  }
}

/* ---- requests ---- */

bool nvm_wait(const app_t* app, response_t* r) {
  if (!nvm_busy(app)) return false;
  r->accepted_ms = nvm_left_ms(app);
  return true;
}

static void copy_error(const odt_error_t* from, odt_device_v1_NvmStatus* s) {
  if (from->status == ODT_OK) return;
  response_t r = odt_device_v1_Response_init_zero;
  refuse_odt(&r, from);
  s->has_error = true;
  s->error = r.error;
}

static void fill(app_t* app, response_t* r) {
  const app_nvm_t* v = &app->nvm;
  const app_nvm_head_t* h = &v->newest;
  r->which_result = odt_device_v1_Response_nvm_tag;
  odt_device_v1_NvmStatus* s = &r->result.nvm;
  s->size = app->hal.nvm->size;
  s->slot_bytes = nvm_slot_bytes(app);
  s->sequence = h->sequence;
  s->writes_0 = v->writes[0];
  s->writes_1 = v->writes[1];
  s->commit_id = v->commit_id;
  copy_error(&v->error, s);
  if (h->sequence != 0) {
    s->kind = (odt_device_v1_NvmKind)h->kind;
    s->bytes = h->body;
    s->step = h->step;
    s->attempt = h->attempt;
    s->run_id.size = s->model_hash.size = 16;
    memcpy(s->run_id.bytes, h->run_id, 16);
    memcpy(s->model_hash.bytes, h->model, 16);
    s->hash.size = 32;
    memcpy(s->hash.bytes, h->hash, 32);
    s->has_image = h->image != 0;
    s->has_best = h->best != 0;
  }
  app_nvm_head_t want;
  nvm_measure(app, &want);
  s->want_state = want.content;
  s->want_best = want.best;
  s->want_image = want.image;
}

void nvm_fill_state(const app_t* app, odt_device_v1_State* s) {
  s->nvm_sequence = app->nvm.newest.sequence;
  s->nvm_step = app->nvm.newest.step;
  s->restored = app->nvm.restored;
}

/* True: there is nothing to do but to answer. */
static bool answered(app_t* app, uint32_t id, response_t* r) {
  const app_nvm_t* v = &app->nvm;
  if (!nvm_usable(app)) {
    refuse(r, CODE(UNIMPLEMENTED), "this board has no non-volatile memory");
  } else if (id == 0) {
    refuse(r, CODE(INVALID_ARGUMENT), "commit_id must not be 0");
  } else if (nvm_busy(app)) {
    r->accepted_ms = nvm_left_ms(app); /* this one, or another that it waits for */
  } else if (v->commit_id == id) {
    if (v->error.status != ODT_OK) {
      refuse_odt(r, &v->error);
    } else {
      fill(app, r);
    }
  } else {
    return false;
  }
  return true;
}

void nvm_commit(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_NvmCommit* c = &q->op.nvm_commit;
  app_nvm_t* v = &app->nvm;
  if (answered(app, c->commit_id, r)) return;
  if (c->expect_hash.size == 32) {
    uint8_t held[32] = {0};
    if (trainer_has_state(app)) {
      odt_state_hash(&app->trainer, held);
    } else if (app->trainer_kind != APP_TRAINER_NONE && app->trainer.weights_valid) {
      odt_weights_hash(&app->trainer, false, held);
    }
    if (memcmp(held, c->expect_hash.bytes, 32) != 0) {
      refuse(r, CODE(FAILED_PRECONDITION), "expect_hash: the board holds another content");
      return;
    }
  }
  odt_error_t err = {.status = ODT_OK, .index = -1};
  const bool begun = nvm_begin(app, c->commit_id, &err);
  v->commit_id = c->commit_id;
  v->error = err;
  if (!begun) {
    refuse_odt(r, &err);
  } else if (!nvm_wait(app, r)) {
    fill(app, r); /* committed already */
  }
}

void nvm_erase(app_t* app, const request_t* q, response_t* r) {
  const uint32_t id = q->op.nvm_erase.commit_id;
  if (answered(app, id, r)) return;
  app->nvm.commit_id = id;
  app->nvm.error = (odt_error_t){.status = ODT_OK, .index = -1};
  nvm_erase_begin(app, id);
  nvm_wait(app, r);
}

void nvm_status(app_t* app, const request_t* q, response_t* r) {
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!nvm_usable(app)) {
    refuse(r, CODE(UNIMPLEMENTED), "this board has no non-volatile memory");
    return;
  }
  if (q->op.nvm_status.restore) {
    if (nvm_wait(app, r)) return;
    if (job_active(app) || app->eval.active) {
      refuse(r, CODE(FAILED_PRECONDITION), "a run or an evaluation is active: stop it first");
      return;
    }
    if (!nvm_restore(app, &err)) {
      refuse_odt(r, &err);
      return;
    }
  }
  fill(app, r);
}

#endif

#include "nvm.h"

/* A commit, one page a turn: the link is polled between them. */

#if APP_NVM

enum { kAskFirst, kAsked, kGoes };

bool nvm_busy(const app_t* app) { return app->nvm.work != NVM_IDLE; }

static uint32_t pages(const app_t* app, uint32_t bytes) {
  const uint32_t page = app->hal.nvm->page;
  return (bytes + page - 1u) / page;
}

static uint32_t units(const app_t* app, uint32_t bytes) {
  const uint32_t unit = app->hal.nvm->unit;
  return unit == 0 ? 0 : (bytes + unit - 1u) / unit;
}

uint32_t nvm_left_ms(const app_t* app) {
  const app_nvm_t* v = &app->nvm;
  const hal_nvm_t* m = app->hal.nvm;
  if (v->work == NVM_IDLE) return 0;
  uint32_t left = 2u * APP_NVM_HEAD;
  uint32_t erases = m->unit == 0 ? 0 : 2u;
  if (v->work == NVM_BODY) {
    left = v->next.body - v->at + APP_NVM_HEAD;
    erases = units(app, v->next.body + APP_NVM_HEAD) - units(app, v->erased);
  }
  const uint64_t us = (uint64_t)pages(app, left) * m->write_us + (uint64_t)erases * m->erase_us;
  const uint64_t ms = us / 1000u + us / 4000u + 10u; /* the link takes its share */
  return ms > 60000u ? 60000u : (uint32_t)ms;
}

static void finish(app_t* app, const char* failed) {
  app_nvm_t* v = &app->nvm;
  const bool erase = v->work >= NVM_ERASE_OLD;
  odt_device_v1_NvmCommitted c = odt_device_v1_NvmCommitted_init_zero;
  text_t t;
  text_begin(&t, c.text, sizeof c.text);
  v->work = NVM_IDLE;
  if (failed != NULL) {
    const odt_error_t err = {.status = ODT_DATA_LOSS, .what = failed, .index = -1};
    if (v->under_way != 0) v->error = err;
    text_str(&t, failed);
    app_log(app, 4, failed);
  } else if (!erase) {
    v->newest = v->next;
    v->slot = (uint8_t)(1u - v->slot);
  }
  c.commit_id = v->under_way;
  c.sequence = v->sequence;
  c.erased = erase && failed == NULL;
  c.took_ms = app_now(app) - v->begin_ms;
  if (!erase) {
    const app_nvm_head_t* h = &v->next;
    c.kind = (odt_device_v1_NvmKind)h->kind;
    c.step = h->step;
    c.attempt = h->attempt;
    c.bytes = h->body;
    c.run_id.size = 16;
    memcpy(c.run_id.bytes, h->run_id, 16);
    c.hash.size = 32;
    memcpy(c.hash.bytes, h->hash, 32);
  }
  events_push(app, odt_device_v1_Event_nvm_tag, &odt_device_v1_NvmCommitted_coder, &c);
  app_busy_over(app);
}

static bool write_at(app_t* app, uint32_t at, const uint8_t* data, uint32_t n) {
  const hal_nvm_t* m = app->hal.nvm;
  const uint32_t part = nvm_part(app);
  for (uint32_t i = 0; i < n; i += part) {
    if (!m->write(app->hal.ctx, at + i, data + i, part)) return false;
  }
  return true;
}

/* The head of `slot`, at once: it is one page, or torn by its CRC-32. */
static bool write_head(app_t* app, uint32_t slot, const app_nvm_head_t* h) {
  uint8_t out[APP_NVM_HEAD];
  nvm_head_encode(h, out);
  return write_at(app, nvm_slot_at(app, slot), out, sizeof out);
}

static void body_turn(app_t* app) {
  app_nvm_t* v = &app->nvm;
  const hal_nvm_t* m = app->hal.nvm;
  const uint32_t slot = nvm_slot_at(app, 1u - v->slot);
  const uint32_t part = nvm_part(app);
  if (m->unit != 0 && APP_NVM_HEAD + v->at + part > v->erased) {
    if (!m->erase(app->hal.ctx, slot + v->erased)) {
      finish(app, "NVM: erase failed; the commit before it is still there");
    }
    v->erased += m->unit;
    return;
  }
  uint8_t out[APP_NVM_HEAD];
  const uint32_t n = min_u32(part, v->next.body - v->at);
  memset(out, 0xFF, sizeof out);
  nvm_body_read(app, &v->next, v->at, out, n);
  v->next.crc = frame_crc32(v->next.crc, out, n);
  if (!write_at(app, slot + APP_NVM_HEAD + v->at, out, part)) {
    finish(app, "NVM: a page does not read back; the commit before it is still there");
    return;
  }
  v->at += n;
  if (v->at == v->next.body) v->work = NVM_HEAD;
}

/* Hash of what a commit of this kind writes; false: it is not there, or not any more. */
static bool content_hash(app_t* app, uint8_t kind, uint8_t hash[32]) {
  memset(hash, 0, 32);
  if (!app->has_model) return false;
  if (kind == NVM_KIND(IMAGE)) return true;
  if (app->trainer_kind == APP_TRAINER_NONE || !app->trainer.weights_valid ||
      (kind == NVM_KIND(STATE)) != trainer_has_state(app)) {
    return false;
  }
  if (kind == NVM_KIND(STATE)) {
    odt_state_hash(&app->trainer, hash);
  } else {
    odt_weights_hash(&app->trainer, false, hash);
  }
  return true;
}

static void head_turn(app_t* app) {
  app_nvm_t* v = &app->nvm;
  const uint32_t slot = 1u - v->slot;
  uint8_t hash[32];
  app_nvm_head_t now;
  nvm_measure(app, &now);
  /* A capture may start meanwhile: its settings are part of the body. */
  const bool sensor_changed = v->next.sensor > 0 && now.sensor_crc != v->next.sensor_crc;
  if (sensor_changed || !content_hash(app, v->next.kind, hash) ||
      memcmp(hash, v->next.hash, sizeof hash) != 0) {
    finish(app, "NVM: the content has changed meanwhile; the commit before it is still there");
    return;
  }
  v->next.sequence = ++v->sequence;
  v->next.writes = ++v->writes[slot];
  const bool written = write_head(app, slot, &v->next);
  finish(app,
         written ? NULL : "NVM: a page does not read back; the commit before it is still there");
}

/* A head without content: it keeps sequence and wear. */
static void erase_turn(app_t* app) {
  app_nvm_t* v = &app->nvm;
  const hal_nvm_t* m = app->hal.nvm;
  const uint32_t slot = v->work == NVM_ERASE_OLD ? 1u - v->slot : v->slot;
  const uint32_t at = nvm_slot_at(app, slot);
  if (v->work == NVM_ERASE_NEWEST) memset(&v->newest, 0, sizeof v->newest); /* gone from here on */
  const app_nvm_head_t empty = {.sequence = ++v->sequence, .writes = ++v->writes[slot]};
  if ((m->unit != 0 && !m->erase(app->hal.ctx, at)) || !write_head(app, slot, &empty)) {
    finish(app, "NVM: erase failed");
  } else if (v->work == NVM_ERASE_OLD) {
    v->work = NVM_ERASE_NEWEST;
  } else {
    finish(app, NULL);
  }
}

bool nvm_work(app_t* app) {
  app_nvm_t* v = &app->nvm;
  if (v->work == NVM_IDLE) return false;
  if (v->said == kAskFirst) {
    app_busy(app, nvm_left_ms(app));
    v->said = kAsked;
    return true;
  }
  if (v->said == kAsked) {
    /* The host hears of it first. */
    const bool sent =
        (app->link.pending & (APP_TX_RSP | APP_TX_BUSY)) == 0 && app->link.tx_size == 0;
    if (!sent && app_live(app)) return true;
    v->said = kGoes;
  }
  if (v->work == NVM_BODY) {
    body_turn(app);
  } else if (v->work == NVM_HEAD) {
    head_turn(app);
  } else {
    erase_turn(app);
  }
  return true;
}

/* ---- begin ---- */

static void start(app_t* app, nvm_work_t work, uint32_t commit_id) {
  app_nvm_t* v = &app->nvm;
  v->work = (uint8_t)work;
  v->said = kAskFirst;
  v->at = 0;
  v->erased = 0;
  v->begin_ms = app_now(app);
  v->under_way = commit_id;
}

void nvm_erase_begin(app_t* app, uint32_t commit_id) { start(app, NVM_ERASE_OLD, commit_id); }

static bool may_begin(app_t* app, odt_error_t* err) {
  *err = (odt_error_t){.status = ODT_FAILED_PRECONDITION, .index = -1};
  if (!app->has_model) {
    err->what = "NVM: there is nothing to commit: send a model image first";
  } else if (app->trainer_kind != APP_TRAINER_NONE && !app->trainer.weights_valid) {
    err->what = "NVM: weights are not valid: a transfer of them is under way, or did not end well";
  } else if (app->trainer_kind != APP_TRAINER_NONE &&
             odt_trainer_best_waits(&app->trainer) != ODT_BEST_HERE) {
    err->what = "NVM: the run waits for the host to keep its best weights: try again";
  } else {
    err->status = ODT_OK;
    return true;
  }
  return false;
}

/* The same content, whole, is there already. */
static bool committed(const app_nvm_t* v) {
  const app_nvm_head_t *a = &v->newest, *b = &v->next;
  return a->sequence != 0 && a->kind == b->kind && a->flags == b->flags && a->body == b->body &&
         a->attempt == b->attempt && a->sensor_crc == b->sensor_crc &&
         memcmp(a->run_id, b->run_id, 16) == 0 && memcmp(a->hash, b->hash, 32) == 0 &&
         memcmp(a->model, b->model, 16) == 0;
}

bool nvm_begin(app_t* app, uint32_t commit_id, odt_error_t* err) {
  app_nvm_t* v = &app->nvm;
  if (!may_begin(app, err)) return false;
  nvm_measure(app, &v->next);
  (void)content_hash(app, v->next.kind, v->next.hash);
  if (!nvm_choose(app, &v->next, err)) return false;
  if (!committed(v)) start(app, NVM_BODY, commit_id);
  return true;
}

/* ---- commits of a run ---- */

bool nvm_run_starts(app_t* app, uint32_t every, odt_error_t* err) {
  app->nvm.every = 0;
  if (every == 0) return true;
  if (!nvm_usable(app)) {
    *err = (odt_error_t){.status = ODT_UNIMPLEMENTED,
                         .what = "commit_every: this board has no non-volatile memory",
                         .index = -1};
    return false;
  }
  app_nvm_head_t h;
  nvm_measure(app, &h);
  if (!nvm_choose(app, &h, err)) return false;
  app->nvm.every = every;
  return true;
}

static void begin_by_itself(app_t* app) {
  odt_error_t err;
  if (nvm_busy(app) || nvm_begin(app, 0, &err)) return;
  app_log(app, 3, err.what); /* the run goes on; the next time may do */
}

void nvm_after_step(app_t* app) {
  const uint32_t every = app->nvm.every;
  if (every != 0 && odt_trainer_step_count(&app->trainer) % every == 0) begin_by_itself(app);
}

void nvm_run_done(app_t* app) {
  if (app->nvm.every != 0) begin_by_itself(app);
}

#endif

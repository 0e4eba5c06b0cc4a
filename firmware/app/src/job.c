#include "internal.h"

/* The job engine: one slice a turn. What is due follows from the trainer's position, so that a run
 * resumed from a state goes on where it stopped. */

typedef odt_device_v1_JobState state_t;
#define JOB(name) odt_device_v1_JobState_JOB_STATE_##name

bool job_active(const app_t* app) {
  const uint8_t s = app->job.state;
  return s == JOB(READY) || s == JOB(RUNNING) || s == JOB(PAUSED) || s == JOB(EPOCH_HOLD);
}

uint8_t job_reported_state(const app_t* app) {
  const bool evaluating = app->eval.active && app->eval.role != 0;
  if (evaluating && app->job.state != JOB(RUNNING)) return JOB(EVALUATING);
  return app->job.state;
}

bool job_is_run(const app_t* app, const void* bytes, uint32_t n) {
  return app->job.state != JOB(UNSPECIFIED) && n == 16 && memcmp(app->job.run_id, bytes, 16) == 0;
}

void job_clear(app_t* app) {
  memset(&app->job, 0, sizeof app->job);
  nvm_forget_restored(app);
  epochs_clear(app);
}

void job_enter(app_t* app, state_t state, const char* text) {
  app_job_t* j = &app->job;
  j->state = (uint8_t)state;
  odt_device_v1_JobChanged c = odt_device_v1_JobChanged_init_zero;
  c.run_id.size = 16;
  memcpy(c.run_id.bytes, j->run_id, 16);
  c.attempt = j->attempt;
  c.job = state;
  if (trainer_has_state(app)) {
    c.step = odt_trainer_step_count(&app->trainer);
    if (state == JOB(DONE) || state == JOB(PAUSED) || state == JOB(STOPPED)) {
      c.state_hash.size = 32;
      odt_state_hash(&app->trainer, c.state_hash.bytes);
      c.weights_hash.size = 32;
      odt_weights_hash(&app->trainer, false, c.weights_hash.bytes);
    }
  }
  text_t t;
  text_begin(&t, c.text, sizeof c.text);
  text_str(&t, text);
  events_push(app, odt_device_v1_Event_job_tag, &odt_device_v1_JobChanged_coder, &c);
}

void job_fail(app_t* app, const odt_error_t* err) {
  char text[APP_LOG_TEXT];
  text_t t;
  text_begin(&t, text, sizeof text);
  text_error(&t, err);
  app_log(app, 4, text);
  job_enter(app, JOB(FAILED), text);
}

bool job_start_due(const app_t* app) {
  return app->job.spec.heldout_samples > 0 && odt_trainer_step_count(&app->trainer) == 0 &&
         app->trainer.start_correct == UINT32_MAX;
}

/* ---- end of an epoch ---- */

static bool release_hold(app_t* app) {
  const app_job_t* j = &app->job;
  if (epochs_full(app)) return false; /* a record would be lost */
  if (!j->hold_at_epoch || app->epoch_count == 0) return true;
  return !app_live(app) || app_now(app) - j->hold_since_ms >= APP_HOLD_MS;
}

static void after_epoch(app_t* app) {
  app_job_t* j = &app->job;
  if (odt_trainer_done(&app->trainer)) {
    job_enter(app, JOB(DONE), "");
    nvm_run_done(app);
    return;
  }
  j->hold_since_ms = app_now(app);
  if (!j->streamed && !release_hold(app)) j->state = JOB(EPOCH_HOLD);
}

/* The record that was made in epochs_next(). */
static void publish_epoch(app_t* app) {
  app_job_t* j = &app->job;
  const uint64_t us = j->epoch_steps > 0 ? j->epoch_us / j->epoch_steps : 0;
  events_push_epoch(app, us > UINT32_MAX ? UINT32_MAX : (uint32_t)us);
  j->epoch_us = 0;
  j->epoch_steps = 0;
  after_epoch(app);
}

bool job_epoch_end(app_t* app, uint32_t correct, uint32_t total, odt_error_t* err) {
  /* Made in its place, which callers have made sure of: with the best on the host the last one
   * waits there for its state hash. */
  odt_epoch_record_t* record = &epochs_next(app)->record;
  if (odt_trainer_end_epoch(&app->trainer, correct, total, record, err) != ODT_OK) return false;
  if (!job_best_wanted(app)) publish_epoch(app);
  return true;
}

void job_best_written(app_t* app) {
  odt_error_t err = {.status = ODT_OK, .index = -1};
  odt_epoch_record_t* record = &epochs_next(app)->record;
  if (odt_trainer_roll_back(&app->trainer, record, &err) == ODT_OK) {
    publish_epoch(app);
  } else {
    job_fail(app, &err);
  }
}

bool job_waits_for_best(const app_t* app) {
  return job_active(app) && odt_trainer_best_waits(&app->trainer) != ODT_BEST_HERE;
}

bool job_best_wanted(const app_t* app) {
  return job_active(app) && odt_trainer_best_waits(&app->trainer) == ODT_BEST_WANTED;
}

/* ---- resident training ---- */

static void push_step(app_t* app, const odt_step_record_t* rec) {
  if (app->job.telemetry_every == 0 || rec->step % app->job.telemetry_every != 0) return;
  odt_device_v1_StepRecord w = odt_device_v1_StepRecord_init_zero;
  step_to_wire(app, rec, &w);
  events_push(app, odt_device_v1_Event_step_tag, &odt_device_v1_StepRecord_coder, &w);
}

/* Held-out evaluation of the guard: before the first step and at the end of each epoch. */
static bool guard_turn(app_t* app, bool start) {
  app_job_t* j = &app->job;
  app_eval_t* e = &j->guard_eval;
  odt_error_t err = {.status = ODT_INTERNAL, .what = "held-out evaluation failed", .index = -1};
  if (j->spec.heldout_samples > 0) {
    if (!j->guard_eval_active) {
      eval_begin(e, 0, odt_device_v1_SampleRole_SAMPLE_ROLE_HELDOUT, j->spec.heldout_samples, 0);
      j->guard_eval_active = true;
    }
    if (!eval_slice(app, e)) return true;
    j->guard_eval_active = false;
    if (!e->done) {
      job_fail(app, &err);
      return true;
    }
  } else {
    memset(e, 0, sizeof *e);
  }
  if (start) {
    if (odt_trainer_set_start(&app->trainer, eval_score(app, e), e->next) != ODT_OK) {
      job_fail(app, &err);
    }
  } else if (!job_epoch_end(app, eval_score(app, e), e->next, &err)) {
    job_fail(app, &err);
  }
  return true;
}

static bool step_turn(app_t* app) {
  app_job_t* j = &app->job;
  odt_samples_t train;
  odt_error_t err = {.status = ODT_INTERNAL, .what = "training samples are gone", .index = -1};
  const uint32_t begin = app->hal.now_us(app->hal.ctx);
  if (!arena_samples(app, APP_REGION_TRAIN, &train) || !steer_due(app, &err) ||
      odt_trainer_step_resident(&app->trainer, &train, &j->last, &err) != ODT_OK) {
    job_fail(app, &err);
    return true;
  }
  j->has_last = true;
  j->last_step_ms = app_now(app);
  j->epoch_us += app->hal.now_us(app->hal.ctx) - begin;
  j->epoch_steps++;
  push_step(app, &j->last);
  nvm_after_step(app);
  return true;
}

/* Telemetry goes before speed while the link takes it; a link that stalls for 1 s costs records. */
static bool telemetry_waits(app_t* app) {
  const app_events_t* v = &app->events;
  return v->next - v->send >= APP_EVENTS - 4u && app_live(app) &&
         app_now(app) - app->link.tx_progress_ms < 1000u;
}

bool job_work(app_t* app) {
  app_job_t* j = &app->job;
  if (xfer_freezes(app)) return false;
  if (j->streamed) return job_step_later(app);
  if (job_waits_for_best(app)) {
    if (j->state == JOB(RUNNING)) job_enter(app, JOB(EPOCH_HOLD), "the best waits for the host");
    return false;
  }
  if (j->state == JOB(EPOCH_HOLD)) {
    if (!release_hold(app)) return false;
    j->state = JOB(RUNNING);
  }
  if (j->state != JOB(RUNNING) || telemetry_waits(app)) return false;
  if (job_start_due(app)) return guard_turn(app, true);
  if (odt_trainer_epoch_complete(&app->trainer)) {
    return !epochs_full(app) && guard_turn(app, false); /* its record needs a place */
  }
  if (odt_trainer_done(&app->trainer)) {
    job_enter(app, JOB(DONE), "");
    return true;
  }
  if (app->config->step_delay_ms > 0 && j->has_last &&
      app_now(app) - j->last_step_ms < app->config->step_delay_ms) {
    return false;
  }
  return step_turn(app);
}

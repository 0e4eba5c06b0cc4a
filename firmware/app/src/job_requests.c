#include "internal.h"

#define JOB(name) odt_device_v1_JobState_JOB_STATE_##name
#define CODE(name) odt_device_v1_StatusCode_STATUS_CODE_##name

/* ---- START_RUN ---- */

static bool samples_match(app_t* app, const odt_run_spec_t* spec, response_t* r) {
  static const char* const kWhat[2] = {"training samples on the board",
                                       "held-out samples on the board"};
  for (uint32_t i = 0; i < 2; i++) {
    odt_samples_t s = {0};
    const uint32_t want = i == 0 ? spec->train_samples : spec->heldout_samples;
    const bool here = arena_samples(app, (app_region_id_t)(APP_REGION_TRAIN + i), &s);
    if ((here ? s.count : 0) != want) {
      refuse_limit(r, CODE(FAILED_PRECONDITION), kWhat[i], here ? s.count : 0, ", the run wants ",
                   want);
      return false;
    }
  }
  uint8_t hash[32];
  arena_set_hash(app, hash);
  if (memcmp(hash, spec->sample_set_hash, 32) != 0) {
    refuse(r, CODE(FAILED_PRECONDITION),
           "sample_set_hash: the samples on the board are not those of the run: send them again");
    return false;
  }
  return true;
}

static bool resume(app_t* app, const odt_device_v1_StartRun* s, const odt_run_spec_t* spec,
                   response_t* r) {
  uint8_t held[32];
  if (!trainer_has_state(app)) {
    refuse(r, CODE(FAILED_PRECONDITION), "no training state to resume from: send it first");
    return false;
  }
  odt_state_hash(&app->trainer, held);
  if (memcmp(held, s->expect_state_hash.bytes, 32) != 0) {
    refuse(r, CODE(FAILED_PRECONDITION), "expect_state_hash: the board holds another state");
    return false;
  }
  if (memcmp(&app->trainer_spec, spec, sizeof *spec) != 0) {
    refuse(r, CODE(FAILED_PRECONDITION), "spec: the state held belongs to other settings");
    return false;
  }
  if (!s->spec.streamed && !app->trainer.resident) {
    refuse(r, CODE(FAILED_PRECONDITION),
           "state was laid out for streamed batches: send the samples, then the state again");
    return false;
  }
  if (app->trainer.best_missing) {
    refuse(r, CODE(FAILED_PRECONDITION),
           "the guard's best weights are missing: send RESOURCE_BEST_WEIGHTS first");
    return false;
  }
  return true;
}

static bool keep_weights(app_t* app, const odt_device_v1_StartRun* s, const odt_run_spec_t* spec,
                         response_t* r) {
  odt_error_t err = {.status = ODT_OK, .index = -1};
  uint8_t held[32];
  if (!trainer_ensure(app, &err)) {
    refuse_odt(r, &err);
    return false;
  }
  odt_weights_hash(&app->trainer, false, held);
  if (s->expect_weights_hash.size == 32 && memcmp(held, s->expect_weights_hash.bytes, 32) != 0) {
    refuse(r, CODE(FAILED_PRECONDITION), "expect_weights_hash: the board holds other weights");
    return false;
  }
  if (!trainer_remake(app, spec, !s->spec.streamed, &err)) {
    refuse_odt(r, &err);
    return false;
  }
  return true;
}

static bool is_same(const app_t* app, const odt_device_v1_StartRun* s, const odt_run_spec_t* spec) {
  const app_job_t* j = &app->job;
  return job_is_run(app, s->run_id.bytes, s->run_id.size) && j->attempt == s->attempt &&
         j->streamed == s->spec.streamed && memcmp(&j->spec, spec, sizeof *spec) == 0;
}

static bool may_start(app_t* app, const odt_device_v1_StartRun* s, response_t* r) {
  const bool same_run = job_is_run(app, s->run_id.bytes, s->run_id.size);
  if (same_run && s->attempt < app->job.attempt) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "attempt", s->attempt, ", the board is at ",
                 app->job.attempt);
    return false;
  }
  if (job_active(app) && !(same_run && s->attempt > app->job.attempt)) {
    refuse(r, CODE(FAILED_PRECONDITION),
           same_run ? "this run is active with other settings"
                    : "another run is active: stop it first");
    return false;
  }
  if (app->eval.active && app->eval.role != 0) {
    refuse(r, CODE(FAILED_PRECONDITION), "an evaluation is under way: wait for its end");
    return false;
  }
  return true;
}

static bool prepare(app_t* app, const odt_device_v1_StartRun* s, const odt_run_spec_t* spec,
                    response_t* r) {
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (odt_run_spec_check(spec, &app->model, &err) != ODT_OK) {
    refuse_odt(r, &err);
    return false;
  }
  if (!s->spec.streamed && !samples_match(app, spec, r)) return false;
  if (s->expect_state_hash.size == 32) return resume(app, s, spec, r);
  if (s->from_weights) return keep_weights(app, s, spec, r);
  if (!trainer_make(app, spec, !s->spec.streamed, APP_TRAINER_RUN, &err)) {
    refuse_odt(r, &err);
    return false;
  }
  return true;
}

void job_start(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_StartRun* s = &q->op.start_run;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  odt_run_spec_t spec;
  if (!app->has_model) {
    refuse(r, CODE(FAILED_PRECONDITION), "no model image: send one first");
    return;
  }
  if (s->run_id.size != 16) {
    refuse_limit(r, CODE(INVALID_ARGUMENT), "run_id: bytes", s->run_id.size, ", wanted ", 16);
    return;
  }
  if (!spec_from_wire(&s->spec, &app->model, &spec, &err)) {
    refuse_odt(r, &err);
    return;
  }
  if (is_same(app, s, &spec)) {
    state_fill(app, true, r);
    return;
  }
  if (nvm_wait(app, r)) return;
  if (!may_start(app, s, r) || !steer_check(app, &spec, s, r) || !prepare(app, s, &spec, r)) return;
  if (!nvm_run_starts(app, s->spec.commit_every, &err)) {
    /* A state that was pushed stays. */
    if (s->expect_state_hash.size != 32) trainer_drop(app);
    refuse_odt(r, &err);
    return;
  }
  job_clear(app);
  app->trainer_kind = APP_TRAINER_RUN;
  app_job_t* j = &app->job;
  memcpy(j->run_id, s->run_id.bytes, 16);
  j->attempt = s->attempt;
  memcpy(&j->spec, &spec, sizeof spec);
  j->streamed = s->spec.streamed;
  j->hold_at_epoch = s->spec.hold_at_epoch;
  j->telemetry_every = s->spec.telemetry_every;
  steer_take(app, s);
  const bool done = odt_trainer_done(&app->trainer);
  job_enter(app, done ? JOB(DONE) : j->streamed ? JOB(READY) : JOB(RUNNING), "");
  state_fill(app, true, r);
}

/* ---- streamed steps ---- */

bool job_run_is(app_t* app, const uint8_t* run_id, uint32_t n, uint32_t attempt, response_t* r) {
  if (!job_is_run(app, run_id, n)) {
    refuse(r, CODE(NOT_FOUND), "run_id is not the run of this board");
    return false;
  }
  if (attempt != app->job.attempt) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "attempt", attempt, ", the board is at ",
                 app->job.attempt);
    return false;
  }
  return true;
}

static void answer_step(app_t* app, response_t* r) {
  r->which_result = odt_device_v1_Response_step_tag;
  step_to_wire(app, &app->job.last, &r->result.step);
}

static bool may_step(app_t* app, const odt_device_v1_TrainStep* s, response_t* r) {
  const uint32_t done = odt_trainer_step_count(&app->trainer);
  if (app->job.state != JOB(READY) || !app->job.streamed) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "the run takes no batches: job state",
                 app->job.state, ", wanted READY ", JOB(READY));
    return false;
  }
  if (s->step != done) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "step", s->step, ", steps done ", done);
    return false;
  }
  if (xfer_freezes(app)) {
    refuse(r, CODE(FAILED_PRECONDITION), "weights or state are being read: try again");
    return false;
  }
  if (job_waits_for_best(app)) {
    refuse(r, CODE(FAILED_PRECONDITION),
           "the host has not kept the best weights: read RESOURCE_BEST_WEIGHTS first");
    return false;
  }
  if (job_start_due(app)) {
    refuse(r, CODE(FAILED_PRECONDITION),
           "the guard's start score is missing: evaluate the held-out samples first");
    return false;
  }
  return true;
}

static bool find_batch(app_t* app, uint32_t slot, uint32_t batch_id, odt_samples_t* batch) {
  const app_region_id_t id = (app_region_id_t)(APP_REGION_SLOT0 + (slot & 1u));
  return slot <= 1 && arena_samples(app, id, batch) && app->region[id].batch_id == batch_id;
}

static bool step_now(app_t* app, const odt_samples_t* batch, odt_error_t* err) {
  app_job_t* j = &app->job;
  const uint32_t begin = app->hal.now_us(app->hal.ctx);
  if (!steer_due(app, err) || odt_trainer_step(&app->trainer, batch, &j->last, err) != ODT_OK) {
    return false;
  }
  j->has_last = true;
  j->step_us = app->hal.now_us(app->hal.ctx) - begin;
  j->epoch_us += j->step_us;
  j->epoch_steps++;
  nvm_after_step(app);
  return true;
}

/* The step comes when a commit to non-volatile memory is over. Never 0, which were an answer. */
static void accept(const app_t* app, response_t* r) {
  const uint32_t ms = (app->job.step_us + 999u) / 1000u + nvm_left_ms(app);
  r->accepted_ms = ms > 0 ? ms : 1u;
}

bool job_step_later(app_t* app) {
  app_job_t* j = &app->job;
  app_later_t* l = &j->later;
  if (!l->waits) return false;
  const bool sent = (app->link.pending & APP_TX_RSP) == 0 && app->link.tx_size == 0;
  if (!sent && app_live(app)) return true; /* ACCEPTED leaves first */
  l->waits = false;
  odt_samples_t batch;
  /* Stopped or overwritten meanwhile: as if the request had not come. */
  if (j->state != JOB(READY) || l->step != odt_trainer_step_count(&app->trainer) ||
      !find_batch(app, l->slot, l->batch_id, &batch)) {
    return false;
  }
  l->error = (odt_error_t){.status = ODT_OK, .index = -1};
  l->failed = !step_now(app, &batch, &l->error);
  return true;
}

void job_train_step(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_TrainStep* s = &q->op.train_step;
  app_job_t* j = &app->job;
  app_later_t* l = &j->later;
  if (!job_run_is(app, s->run_id.bytes, s->run_id.size, s->attempt, r)) return;
  if (j->has_last && s->step == j->last.step &&
      s->step + 1 == odt_trainer_step_count(&app->trainer)) {
    answer_step(app, r);
    return;
  }
  const bool asked = s->step == l->step && s->batch_id == l->batch_id && s->slot == l->slot;
  if (l->waits && asked) {
    accept(app, r);
    return;
  }
  if (l->failed && asked) {
    l->failed = false;
    refuse_odt(r, &l->error);
    return;
  }
  if (!may_step(app, s, r)) return;
  odt_samples_t batch;
  if (!find_batch(app, s->slot, s->batch_id, &batch)) {
    const app_region_id_t slot = (app_region_id_t)(APP_REGION_SLOT0 + (s->slot & 1u));
    refuse_limit(r, CODE(FAILED_PRECONDITION), "batch is not in the slot: batch_id", s->batch_id,
                 ", held ", s->slot > 1 ? -1 : (int64_t)app->region[slot].batch_id);
    return;
  }
  if (j->step_us > APP_ACCEPT_US || nvm_busy(app)) {
    *l = (app_later_t){
        .waits = true, .slot = (uint8_t)s->slot, .step = s->step, .batch_id = s->batch_id};
    accept(app, r);
    return;
  }
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!step_now(app, &batch, &err)) {
    refuse_odt(r, &err);
    return;
  }
  answer_step(app, r);
}

void job_end_epoch(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_EndEpoch* s = &q->op.end_epoch;
  if (!job_run_is(app, s->run_id.bytes, s->run_id.size, s->attempt, r)) return;
  const uint32_t done = odt_trainer_epoch_count(&app->trainer);
  if (s->epoch + 1 == done || (s->epoch == done && job_best_wanted(app))) {
    state_fill(app, false, r);
    return; /* ended already, or but for the weights that the host has to bring */
  }
  if (nvm_wait(app, r)) return;
  if (s->epoch != done || !odt_trainer_epoch_complete(&app->trainer)) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "epoch is not complete", s->epoch, ", epochs ended ",
                 done);
    return;
  }
  if (app->job.state != JOB(READY) || xfer_freezes(app)) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "the run takes no batches: job state",
                 app->job.state, ", wanted READY ", JOB(READY));
    return;
  }
  if (epochs_full(app)) {
    refuse_limit(r, CODE(RESOURCE_EXHAUSTED), "epoch records not acknowledged", app->epoch_count,
                 ", kept at most ", epochs_capacity(app));
    return;
  }
  const app_eval_t* e = &app->eval;
  const uint32_t want = app->job.spec.heldout_samples;
  if (want > 0 && (s->eval_id == 0 || s->eval_id != e->id || !e->done || e->next != want ||
                   e->step != odt_trainer_step_count(&app->trainer))) {
    refuse_limit(r, CODE(FAILED_PRECONDITION),
                 "eval_id: no finished held-out evaluation of these weights: samples", e->next,
                 ", wanted ", want);
    return;
  }
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!job_epoch_end(app, want > 0 ? eval_score(app, e) : 0, want, &err)) {
    refuse_odt(r, &err);
    return;
  }
  state_fill(app, true, r);
}

void job_ack_epoch(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_AckEpoch* s = &q->op.ack_epoch;
  if (!job_run_is(app, s->run_id.bytes, s->run_id.size, s->attempt, r)) return;
  epochs_ack(app, s->epoch);
}

void job_best_kept(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_BestKept* s = &q->op.best_kept;
  if (!job_run_is(app, s->run_id.bytes, s->run_id.size, s->attempt, r)) return;
  const bool waited = job_waits_for_best(app);
  if (s->weights_hash.size != 32 || !trainer_has_state(app) ||
      odt_trainer_best_kept(&app->trainer, s->weights_hash.bytes) != ODT_OK) {
    refuse(r, CODE(FAILED_PRECONDITION), "weights_hash: the guard's best has other weights");
    return;
  }
  if (waited) app->job.hold_since_ms = app_now(app); /* the hold is for what comes after */
}

/* ---- PAUSE, RESUME, STOP ---- */

void job_control(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_JobControl* c = &q->op.job_control;
  app_job_t* j = &app->job;
  if (!job_is_run(app, c->run_id.bytes, c->run_id.size)) {
    refuse(r, CODE(NOT_FOUND), "run_id is not the run of this board");
    return;
  }
  const bool moving =
      j->state == JOB(RUNNING) || j->state == JOB(READY) || j->state == JOB(EPOCH_HOLD);
  const bool over = j->state == JOB(DONE) || j->state == JOB(STOPPED) || j->state == JOB(FAILED);
  switch (c->action) {
    case odt_device_v1_JobControl_Action_ACTION_PAUSE:
      if (moving) job_enter(app, JOB(PAUSED), "");
      break;
    case odt_device_v1_JobControl_Action_ACTION_RESUME:
      if (j->state == JOB(PAUSED)) {
        job_enter(app, j->streamed ? JOB(READY) : JOB(RUNNING), "");
      }
      break;
    case odt_device_v1_JobControl_Action_ACTION_STOP:
      if (!over) job_enter(app, JOB(STOPPED), "");
      break;
    default:
      refuse_limit(r, CODE(INVALID_ARGUMENT), "action", c->action, ", allowed 1..", 3);
      return;
  }
  if (over && c->action != odt_device_v1_JobControl_Action_ACTION_STOP) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "the run is over: job state", j->state,
                 ", wanted below ", JOB(DONE));
    return;
  }
  j->guard_eval_active = false;
  state_fill(app, true, r);
}

#include "internal.h"

/* Evaluations and inference: with the current weights, leaving the training state alone. */

#define EVAL_SLICE_US 5000u
#define EVAL_SLICE_MAX 64u

void eval_begin(app_eval_t* e, uint32_t id, uint8_t role, uint32_t total, uint32_t step) {
  memset(e, 0, sizeof *e);
  e->id = id;
  e->role = role;
  e->total = total;
  e->step = step;
  e->active = true;
}

static uint32_t* counts(app_t* app, const app_eval_t* e) {
  return e->confusion ? (uint32_t*)(void*)region_data(app, APP_REGION_EVAL) : NULL;
}

uint32_t eval_score(const app_t* app, const app_eval_t* e) {
  if (app->model.task == ODT_TASK_CLASSIFY) return e->correct;
  return e->loss < UINT32_MAX ? (uint32_t)e->loss : UINT32_MAX - 1u;
}

static uint32_t steps_done(const app_t* app) {
  return trainer_has_state(app) ? odt_trainer_step_count(&app->trainer) : 0;
}

bool eval_slice(app_t* app, app_eval_t* e) {
  odt_samples_t s;
  odt_error_t err;
  /* What has grown meanwhile (a window that became a sample) may have taken a trainer's place. */
  if (!trainer_ensure(app, &err) ||
      !arena_samples(app, (app_region_id_t)(APP_REGION_IMAGE + e->role), &s)) {
    e->active = false;
    return true;
  }
  const uint32_t begin = app->hal.now_us(app->hal.ctx);
  for (uint32_t n = 0; n < EVAL_SLICE_MAX && e->next < e->total; n++) {
    if (odt_trainer_eval(&app->trainer, &s, e->next, 1, &e->correct, &e->loss, counts(app, e)) !=
        ODT_OK) {
      e->active = false;
      return true;
    }
    e->next++;
    if (app->hal.now_us(app->hal.ctx) - begin > EVAL_SLICE_US) break;
  }
  if (e->next < e->total) return false;
  e->active = false;
  e->done = true;
  return true;
}

static void fill(const app_eval_t* e, odt_device_v1_EvalResult* w) {
  w->eval_id = e->id;
  w->correct = e->correct;
  w->total = e->next;
  w->loss = e->loss;
  w->done = e->done;
  w->next_seq = e->seq;
}

static void answer(const app_t* app, response_t* r) {
  r->which_result = odt_device_v1_Response_eval_tag;
  fill(&app->eval, &r->result.eval);
}

/* The evaluation that the host asked for; resident ones run by themselves. */
bool eval_work(app_t* app) {
  app_eval_t* e = &app->eval;
  if (!e->active || e->role == 0) return false;
  if (!eval_slice(app, e)) return true;
  if (!e->done) {
    app_log(app, 4, "evaluation failed: samples or weights are gone");
    return false;
  }
  odt_device_v1_EvalResult w = odt_device_v1_EvalResult_init_zero;
  fill(e, &w);
  events_push(app, odt_device_v1_Event_eval_tag, &odt_device_v1_EvalResult_coder, &w);
  return true;
}

static bool begin_counts(app_t* app, response_t* r) {
  const uint32_t c = app->model.n_classes;
  if (app->model.task != ODT_TASK_CLASSIFY) { /* nothing to count: no EVAL_RESULT */
    app->region[APP_REGION_EVAL].valid = false;
    return true;
  }
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!arena_reserve(app, APP_REGION_EVAL, 4u * c * c, &err)) {
    refuse_odt(r, &err);
    return false;
  }
  memset(region_data(app, APP_REGION_EVAL), 0, app->region[APP_REGION_EVAL].size);
  app->region[APP_REGION_EVAL].valid = true;
  return true;
}

static bool total_of(app_t* app, const odt_device_v1_Evaluate* v, uint32_t* total, response_t* r) {
  *total = v->total;
  if (v->role == odt_device_v1_SampleRole_SAMPLE_ROLE_UNSPECIFIED) {
    if (*total > 0) return true;
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT,
           "total: a streamed evaluation must say how many samples will come");
    return false;
  }
  odt_samples_t s;
  const uint32_t role = (uint32_t)v->role;
  if (role > 3 || !arena_samples(app, (app_region_id_t)(APP_REGION_IMAGE + role), &s)) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
           "no samples of this role on the board: send them first");
    return false;
  }
  *total = s.count;
  return true;
}

void eval_start(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_Evaluate* v = &q->op.evaluate;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  uint32_t total = 0;
  if (v->eval_id == 0) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT, "eval_id must not be 0");
    return;
  }
  if (v->eval_id == app->eval.id) {
    answer(app, r);
    return;
  }
  if (!app->has_model) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
           "no model image: send one first");
    return;
  }
  if (!total_of(app, v, &total, r)) return;
  if (!begin_counts(app, r)) return;
  if (!trainer_ensure(app, &err)) {
    refuse_odt(r, &err);
    return;
  }
  eval_begin(&app->eval, v->eval_id, (uint8_t)v->role, total, steps_done(app));
  app->eval.confusion = app->model.task == ODT_TASK_CLASSIFY;
  answer(app, r);
  if (v->role != odt_device_v1_SampleRole_SAMPLE_ROLE_UNSPECIFIED) r->accepted_ms = 1000;
}

/* The guard's start score of a streamed run: device.proto at Evaluate. */
static bool take_start(app_t* app) {
  const app_eval_t* e = &app->eval;
  if (app->job.state != odt_device_v1_JobState_JOB_STATE_READY || !app->job.streamed ||
      !job_start_due(app) || e->total != app->job.spec.heldout_samples) {
    return true;
  }
  return odt_trainer_set_start(&app->trainer, eval_score(app, e), e->total) == ODT_OK;
}

void eval_step(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_EvalStep* v = &q->op.eval_step;
  app_eval_t* e = &app->eval;
  odt_samples_t s;
  if (v->eval_id == 0 || v->eval_id != e->id || e->role != 0) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_NOT_FOUND, "eval_id is not under way",
                 v->eval_id, ", current ", e->id);
    return;
  }
  if (e->seq > 0 && v->seq == e->seq - 1) {
    answer(app, r);
    return;
  }
  if (v->seq != e->seq || e->done) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION, "seq", v->seq,
                 ", expected ", e->seq);
    return;
  }
  if (steps_done(app) != e->step) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_ABORTED,
                 "weights have changed since the evaluation began: step", steps_done(app),
                 ", began at ", e->step);
    return;
  }
  const app_region_id_t slot = (app_region_id_t)(APP_REGION_SLOT0 + (v->slot & 1u));
  if (v->slot > 1 || !arena_samples(app, slot, &s) || app->region[slot].batch_id != v->batch_id) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
                 "batch is not in the slot: batch_id", v->batch_id, ", held ",
                 v->slot > 1 ? -1 : (int64_t)app->region[slot].batch_id);
    return;
  }
  if (s.count > e->total - e->next) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_OUT_OF_RANGE, "samples", e->next + s.count,
                 ", total announced ", e->total);
    return;
  }
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!trainer_ensure(app, &err)) {
    refuse_odt(r, &err);
    return;
  }
  if (odt_trainer_eval(&app->trainer, &s, 0, s.count, &e->correct, &e->loss, counts(app, e)) !=
      ODT_OK) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INTERNAL, "evaluation failed");
    return;
  }
  e->next += s.count;
  e->seq++;
  if (e->next == e->total) {
    e->active = false;
    e->done = true;
    if (!take_start(app)) app_log(app, 3, "start score could not be set");
  }
  answer(app, r);
}

void eval_get(app_t* app, const request_t* q, response_t* r) {
  const uint32_t id = q->op.get_eval;
  if (id == 0 || id != app->eval.id) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_NOT_FOUND, "eval_id is unknown", id,
                 ", current ", app->eval.id);
    return;
  }
  answer(app, r);
}

uint32_t eval_largest(const int8_t* logits, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < n; c++) {
    if (logits[c] > logits[best]) best = c;
  }
  return best;
}

void infer_run(app_t* app, const request_t* q, response_t* r) {
  (void)q;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (!app->region[APP_REGION_INFER].valid) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
           "no sample: send RESOURCE_INFER_INPUT first");
    return;
  }
  if (!trainer_ensure(app, &err)) {
    refuse_odt(r, &err);
    return;
  }
  if (app->model.n_classes > sizeof r->result.infer.logits.bytes) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_OUT_OF_RANGE, "outputs of the model",
                 app->model.n_classes, ", an answer holds ",
                 (int64_t)sizeof r->result.infer.logits.bytes);
    return;
  }
  int8_t* logits = (int8_t*)r->result.infer.logits.bytes;
  if (odt_trainer_infer(&app->trainer, region_data(app, APP_REGION_INFER), logits) != ODT_OK) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION, "weights are not valid");
    return;
  }
  r->which_result = odt_device_v1_Response_infer_tag;
  r->result.infer.logits.size = app->model.n_classes;
  if (app->model.task != ODT_TASK_CLASSIFY) return;
  r->result.infer.predicted = eval_largest(logits, app->model.n_classes);
}

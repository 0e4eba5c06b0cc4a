#include "internal.h"

/* SET_PRECISION: the host moves a layer's k at a step it names, so that a replay can do the same.
 */

#define CODE(name) odt_device_v1_StatusCode_STATUS_CODE_##name

bool steer_due(app_t* app, odt_error_t* err) {
  app_job_t* j = &app->job;
  for (uint32_t i = 0; i < j->steer_count; i++) {
    app_steer_t* s = &j->steer[i];
    if (s->done || s->step != odt_trainer_step_count(&app->trainer)) continue;
    if (odt_trainer_set_k(&app->trainer, s->layer, s->k, err) != ODT_OK) return false;
    s->done = true;
  }
  return true;
}

/* steps: of the run. */
static bool in_limits(const app_t* app, uint8_t k_max, uint32_t steps, const odt_device_v1_Steer* s,
                      response_t* r) {
  if (k_max == 0) {
    refuse(r, CODE(FAILED_PRECONDITION), "precision is fixed: the run has no apt_k_max");
  } else if (s->layer >= app->model.n_layers) {
    refuse_limit(r, CODE(INVALID_ARGUMENT), "layer", s->layer, ", trainable layers ",
                 app->model.n_layers);
  } else if (s->k < 2 || s->k > k_max) {
    refuse_limit(r, CODE(INVALID_ARGUMENT), "k", s->k, ", allowed 2..", k_max);
  } else if (s->step >= steps) {
    refuse_limit(r, CODE(INVALID_ARGUMENT), "step", s->step, ", steps of the run ", steps);
  } else {
    return true;
  }
  return false;
}

/* A place for one more: behind the others, or that of the oldest one done; NULL: all wait. */
static app_steer_t* place(app_job_t* j) {
  if (j->steer_count < APP_STEER) return &j->steer[j->steer_count++];
  for (uint32_t i = 0; i < APP_STEER; i++) {
    if (!j->steer[i].done) continue;
    memmove(&j->steer[i], &j->steer[i + 1], (APP_STEER - 1u - i) * sizeof j->steer[0]);
    return &j->steer[APP_STEER - 1u];
  }
  return NULL;
}

bool steer_check(const app_t* app, const odt_run_spec_t* spec, const odt_device_v1_StartRun* s,
                 response_t* r) {
  const uint32_t steps = (spec->train_samples + spec->batch - 1u) / spec->batch * spec->epochs;
  for (uint32_t i = 0; i < s->steering_count; i++) {
    if (!in_limits(app, spec->apt.k_max, steps, &s->steering[i], r)) return false;
  }
  return true;
}

void steer_take(app_t* app, const odt_device_v1_StartRun* s) {
  app_job_t* j = &app->job;
  j->steer_count = s->steering_count;
  for (uint32_t i = 0; i < s->steering_count; i++) {
    const odt_device_v1_Steer* one = &s->steering[i];
    j->steer[i] =
        (app_steer_t){.step = one->step, .layer = (uint8_t)one->layer, .k = (uint8_t)one->k};
  }
}

void steer_set(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_SetPrecision* s = &q->op.set_precision;
  app_job_t* j = &app->job;
  if (!job_run_is(app, s->run_id.bytes, s->run_id.size, s->attempt, r)) return;
  for (uint32_t i = 0; i < j->steer_count; i++) {
    const app_steer_t* known = &j->steer[i];
    if (known->step != s->step || known->layer != s->layer) continue;
    if (known->k == s->k) {
      state_fill(app, false, r);
    } else {
      refuse_limit(r, CODE(FAILED_PRECONDITION), "this layer has another k from that step on", s->k,
                   ", set ", known->k);
    }
    return;
  }
  const odt_device_v1_Steer one = {.step = s->step, .layer = s->layer, .k = s->k};
  const uint32_t steps = odt_trainer_steps_total(&app->trainer);
  if (!in_limits(app, j->spec.apt.k_max, steps, &one, r)) return;
  const uint32_t done = odt_trainer_step_count(&app->trainer);
  if (!job_active(app) || s->step < done || (j->later.waits && s->step == done)) {
    refuse_limit(r, CODE(FAILED_PRECONDITION), "step", s->step, ", steps done or under way ",
                 done + (j->later.waits ? 1u : 0u));
    return;
  }
  app_steer_t* at = place(j);
  if (at == NULL) {
    refuse_limit(r, CODE(RESOURCE_EXHAUSTED), "changes of precision that wait", APP_STEER,
                 ", kept at most ", APP_STEER);
    return;
  }
  *at = (app_steer_t){.step = s->step, .layer = (uint8_t)s->layer, .k = (uint8_t)s->k};
  state_fill(app, false, r);
}

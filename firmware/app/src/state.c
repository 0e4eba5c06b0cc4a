#include "internal.h"

static void put_hash(const uint8_t hash[32], pb_size_t* size, uint8_t* bytes) {
  *size = 32;
  memcpy(bytes, hash, 32);
}

static uint32_t count_of(app_t* app, app_region_id_t id) {
  odt_samples_t s;
  return arena_samples(app, id, &s) ? s.count : 0;
}

static void fill_trainer(app_t* app, bool with_hash, odt_device_v1_State* s) {
  uint8_t hash[32];
  if (app->trainer_kind == APP_TRAINER_RUN) {
    s->best_wait = (uint32_t)odt_trainer_best_waits(&app->trainer);
  }
  /* A best that is wanted: even where the weights are half written. */
  if (trainer_has_state(app) || s->best_wait == ODT_BEST_WANTED) {
    s->step = odt_trainer_step_count(&app->trainer);
    s->epoch = odt_trainer_epoch_count(&app->trainer);
  }
  if (trainer_has_state(app)) {
    if (app->trainer.best_correct != UINT32_MAX) {
      s->best_step = app->trainer.best_step;
      s->best_correct = app->trainer.best_correct;
    }
    if (with_hash) {
      odt_state_hash(&app->trainer, hash);
      put_hash(hash, &s->state_hash.size, s->state_hash.bytes);
    }
  }
  odt_error_t err;
  if (with_hash && app->has_model && trainer_ensure(app, &err)) {
    odt_weights_hash(&app->trainer, false, hash);
    put_hash(hash, &s->weights_hash.size, s->weights_hash.bytes);
  }
}

void state_fill(app_t* app, bool with_hash, response_t* r) {
  r->which_result = odt_device_v1_Response_state_tag;
  odt_device_v1_State* s = &r->result.state;
  if (app->has_model) put_hash(app->model.hash, &s->model_hash.size, s->model_hash.bytes);
  if (app->job.state != odt_device_v1_JobState_JOB_STATE_UNSPECIFIED || nvm_restored(app)) {
    s->run_id.size = 16;
    memcpy(s->run_id.bytes, app->job.run_id, 16);
    s->attempt = app->job.attempt;
  }
  s->job = (odt_device_v1_JobState)job_reported_state(app);
  fill_trainer(app, with_hash, s);
  s->samples_train = count_of(app, APP_REGION_TRAIN);
  s->samples_heldout = count_of(app, APP_REGION_HELDOUT);
  s->samples_test = count_of(app, APP_REGION_TEST);
  s->ram_used_bytes = app->config->arena_size - arena_free(app);
  s->ram_bytes = app->config->arena_size;
  if (app->hal.stack_high_water != NULL) {
    s->stack_high_water_bytes = app->hal.stack_high_water(app->hal.ctx);
  }
  if (app->region[APP_REGION_TRAIN].valid) {
    uint8_t hash[32];
    arena_set_hash(app, hash);
    put_hash(hash, &s->sample_set_hash.size, s->sample_set_hash.bytes);
  }
  s->has_weights = trainer_has_weights(app);
  s->tail = app->has_model && app->model.tail;
#if APP_CAPTURE
  if (app->hal.sensor != NULL) {
    s->sensor_channels = app->hal.sensor->channels;
    s->sensor_rate_milli_hz = app->hal.sensor->rate_milli_hz;
    s->sensor_dtype = app->hal.sensor->dtype;
  }
#endif
#if APP_NVM
  nvm_fill_state(app, s);
#endif
  s->oldest_unacked_epoch = app->epoch_count > 0 ? epochs_oldest(app) : s->epoch;
}

void state_get(app_t* app, const request_t* q, response_t* r) {
  state_fill(app, q->op.get_state.with_state_hash, r);
}

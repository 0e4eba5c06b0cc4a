#include "internal.h"

void trainer_drop(app_t* app) {
  app->trainer_kind = APP_TRAINER_NONE;
  app->trainer_bytes = 0;
}

bool trainer_has_state(const app_t* app) {
  return (app->trainer_kind == APP_TRAINER_STATE || app->trainer_kind == APP_TRAINER_RUN) &&
         app->trainer.weights_valid;
}

bool trainer_has_weights(const app_t* app) {
  if (!app->has_model) return false;
  return app->trainer_kind == APP_TRAINER_NONE || app->trainer.weights_valid;
}

static bool no_memory(uint32_t need, uint32_t limit, odt_error_t* err) {
  *err = (odt_error_t){.status = ODT_RESOURCE_EXHAUSTED,
                       .what = "memory: bytes wanted for training",
                       .got = (int32_t)min_u32(need, INT32_MAX),
                       .limit_hi = (int32_t)limit,
                       .index = -1};
  return false;
}

bool trainer_make(app_t* app, const odt_run_spec_t* spec, bool resident, app_trainer_kind_t kind,
                  odt_error_t* err) {
  if (!app->has_model) {
    *err = (odt_error_t){
        .status = ODT_FAILED_PRECONDITION, .what = "no model image: send one first", .index = -1};
    return false;
  }
  if (odt_run_spec_check(spec, &app->model, err) != ODT_OK) return false;
  odt_memory_plan_t plan;
  odt_trainer_plan(&app->model, spec, resident, &plan);
  const uint32_t need = (plan.total_bytes + 7u) & ~7u;
  const uint32_t limit = (arena_free(app) + app->trainer_bytes) & ~7u;
  if (need > limit) return no_memory(need, limit, err);
  const uint32_t at = (app->config->arena_size & ~7u) - need;
  trainer_drop(app);
  if (odt_trainer_init(&app->trainer, &app->model, spec, resident, app->config->arena + at, need,
                       err) != ODT_OK) {
    return false;
  }
  memcpy(&app->trainer_spec, spec, sizeof *spec);
  app->trainer_kind = (uint8_t)kind;
  app->trainer_bytes = app->config->arena_size - at;
  return true;
}

/* Weights are taken with the k they have: the run starts with it, or can be at it. */
static bool takes_k_held(const app_t* app, const odt_run_spec_t* spec, odt_error_t* err) {
  if (spec->rule_set == ODT_RULE_DFP16) return true; /* exponents stand there */
  for (uint32_t i = 0; i < app->model.n_layers; i++) {
    const uint8_t held = (uint8_t)app->trainer.layers[i].k, want = odt_run_spec_layer_k(spec, i);
    const uint8_t k_max = spec->apt.k_max;
    if (held == want || held <= k_max) continue;
    *err = (odt_error_t){.status = ODT_FAILED_PRECONDITION,
                         .what = "k: differs from that of the weights held",
                         .got = k_max > want ? k_max : want,
                         .limit_lo = held,
                         .limit_hi = held,
                         .index = -1};
    return false;
  }
  return true;
}

bool trainer_remake(app_t* app, const odt_run_spec_t* spec, bool resident, odt_error_t* err) {
  if (odt_run_spec_check(spec, &app->model, err) != ODT_OK) return false;
  if (!takes_k_held(app, spec, err)) return false;
  odt_memory_plan_t plan;
  odt_trainer_plan(&app->model, spec, resident, &plan);
  const uint32_t keep = odt_weights_size(&app->trainer);
  const uint32_t need = ((plan.total_bytes + 7u) & ~7u) + keep;
  const uint32_t limit = (arena_free(app) + app->trainer_bytes) & ~7u;
  /* The copy lies below the old trainer and below the new one. */
  if (need > limit || keep > arena_free(app)) {
    return no_memory(need > limit ? need : keep, need > limit ? limit : arena_free(app), err);
  }
  const app_region_t* last = &app->region[APP_REGIONS - 1];
  uint8_t* copy = app->config->arena + last->at + last->capacity;
  odt_weights_read(&app->trainer, false, 0, copy, keep);
  if (!trainer_make(app, spec, resident, APP_TRAINER_RUN, err)) return false;
  return odt_weights_write(&app->trainer, false, 0, copy, keep, err) == ODT_OK &&
         odt_weights_write_end(&app->trainer, false, err) == ODT_OK;
}

void trainer_default_spec(const app_t* app, uint8_t k, odt_run_spec_t* spec) {
  memset(spec, 0, sizeof *spec);
  spec->rule_set = app->model.arith == ODT_ARITH_DFP16 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  const bool dfp16 = spec->rule_set == ODT_RULE_DFP16;
  for (uint32_t i = 0; i < 3; i++) spec->lr_m[i] = dfp16 ? 1 : 0;
  spec->rounding = ODT_ROUND_DEFAULT;
  const bool mse = app->model.task != ODT_TASK_CLASSIFY || app->model.target_correct != NULL;
  spec->loss = mse ? ODT_LOSS_MSE : ODT_LOSS_CE;
  spec->shift_source = ODT_SHIFT_EXACT;
  spec->mu_offset = 1;
  spec->k = dfp16 ? 0 : k;
  spec->batch = 1;
  spec->epochs = 1;
  spec->train_samples = 1;
  memset(spec->class_weights, 64, sizeof spec->class_weights);
}

bool trainer_ensure(app_t* app, odt_error_t* err) {
  if (app->trainer_kind == APP_TRAINER_NONE) {
    odt_run_spec_t spec;
    trainer_default_spec(app, 8, &spec);
    return trainer_make(app, &spec, false, APP_TRAINER_IMAGE, err);
  }
  if (!app->trainer.weights_valid) {
    *err = (odt_error_t){.status = ODT_FAILED_PRECONDITION,
                         .what = "weights are not valid: a transfer of them did not end well",
                         .index = -1};
    return false;
  }
  return true;
}

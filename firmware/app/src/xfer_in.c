#include "internal.h"

/* What becomes of the bytes that come in, resource by resource. */

enum { kStateHead = 184, kStateHeadLong = 208, kWeightsHead = 52 };

static bool region_of(const odt_device_v1_Resource resource, uint32_t index, app_region_id_t* id) {
  switch (resource) {
    case odt_device_v1_Resource_RESOURCE_MODEL_IMAGE:
      *id = APP_REGION_IMAGE;
      return true;
    case odt_device_v1_Resource_RESOURCE_SAMPLES:
      *id = (app_region_id_t)(APP_REGION_IMAGE + index);
      return index >= odt_device_v1_SampleRole_SAMPLE_ROLE_TRAIN &&
             index <= odt_device_v1_SampleRole_SAMPLE_ROLE_TEST;
    case odt_device_v1_Resource_RESOURCE_BATCH:
      *id = (app_region_id_t)(APP_REGION_SLOT0 + index);
      return index <= 1;
    case odt_device_v1_Resource_RESOURCE_INFER_INPUT:
      *id = APP_REGION_INFER;
      return true;
    default:
      return false;
  }
}

static bool fresh_ready(const app_t* app) {
  return app->job.state == odt_device_v1_JobState_JOB_STATE_READY &&
         odt_trainer_step_count(&app->trainer) == 0;
}

static bool begin_trainer(app_t* app, const odt_device_v1_XferOpen* o, odt_error_t* err) {
  if (!app->has_model) return fail(err, ODT_FAILED_PRECONDITION, "no model image: send one first");
  const bool best = o->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS;
  if (best) {
    if (job_best_wanted(app)) return true;
    if (!trainer_has_state(app) || !app->trainer_spec.guard) {
      return fail(err, ODT_FAILED_PRECONDITION,
                  "best weights belong to a training state with guard: send the state first");
    }
    if (job_active(app) && !fresh_ready(app)) {
      return fail(err, ODT_FAILED_PRECONDITION, "a run is active: stop it first");
    }
    return true;
  }
  const bool weights = o->resource == odt_device_v1_Resource_RESOURCE_WEIGHTS;
  if (job_active(app) && !(weights && fresh_ready(app))) {
    return fail(err, ODT_FAILED_PRECONDITION, "a run is active: stop it first");
  }
  return true;
}

bool samples_in_use(const app_t* app, app_region_id_t id) {
  const bool by_run =
      job_active(app) && !app->job.streamed && (id == APP_REGION_TRAIN || id == APP_REGION_HELDOUT);
  const bool by_eval =
      app->eval.active && app->eval.role != 0 && id == APP_REGION_IMAGE + app->eval.role;
  return by_run || by_eval;
}

static bool begin_region(app_t* app, const odt_device_v1_XferOpen* o, odt_error_t* err) {
  app_region_id_t id;
  if (!region_of(o->resource, o->index, &id)) {
    return fail(err, ODT_INVALID_ARGUMENT, "resource or index cannot be written");
  }
  if (o->size == 0) return fail(err, ODT_INVALID_ARGUMENT, "size must not be 0");
  if (id == APP_REGION_IMAGE) {
    if (job_active(app)) {
      return fail(err, ODT_FAILED_PRECONDITION, "a run is active: stop it first");
    }
    job_clear(app);
    app->has_model = false;
    app->eval = (app_eval_t){0};
    arena_drop(app, APP_REGION_IMAGE);
    return arena_reserve(app, id, o->size, err);
  }
  if (!app->has_model) return fail(err, ODT_FAILED_PRECONDITION, "no model image: send one first");
  if (samples_in_use(app, id)) {
    return fail(err, ODT_FAILED_PRECONDITION, "these samples are in use: stop the run first");
  }
  return arena_reserve(app, id, o->size, err);
}

bool xfer_in_begin(app_t* app, const odt_device_v1_XferOpen* o, odt_error_t* err) {
  app->head = (app_head_t){0};
  switch (o->resource) {
    case odt_device_v1_Resource_RESOURCE_WEIGHTS:
    case odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS:
    case odt_device_v1_Resource_RESOURCE_STATE:
      return begin_trainer(app, o, err);
    default:
      return begin_region(app, o, err);
  }
}

/* ---- laying out the trainer from the head of what comes ---- */

static bool class_weights_are(const app_t* app, const uint8_t* weights, const uint8_t prefix[4]) {
  odt_sha256_t s;
  uint8_t hash[32];
  odt_sha256_init(&s);
  const bool classes = app->model.task == ODT_TASK_CLASSIFY; /* others: of no bytes */
  odt_sha256_update(&s, weights, classes ? app->model.n_classes : 0);
  odt_sha256_final(&s, hash);
  return memcmp(hash, prefix, 4) == 0;
}

static void plan_extension(const uint8_t* h, odt_run_spec_t* spec) {
  for (uint32_t i = 0; i < 3; i++) spec->lr_m[i] = (uint16_t)get_u16(h + 2 * i);
  spec->lr_s = h[6];
  spec->blocked = h[7] != 0;
  spec->apt.mode = h[8];
  spec->apt.k_max = h[9];
  spec->apt.offsets = h[10] != 0;
  spec->k = h[11];
  spec->apt.t_min_q8 = (uint16_t)get_u16(h + 12);
  spec->apt.t_max_q8 = (uint16_t)get_u16(h + 14);
  memcpy(spec->layer_k, h + 16, sizeof spec->layer_k);
}

static bool plan_state(app_t* app, odt_error_t* err) {
  const uint8_t* h = app->head.bytes;
  odt_run_spec_t spec;
  memset(&spec, 0, sizeof spec);
  memcpy(spec.sample_set_hash, h + 40, 32);
  spec.rule_set = h[72];
  spec.rounding = h[73];
  spec.loss = h[74];
  spec.shift_source = h[75];
  memcpy(spec.mu_weight, h + 76, 3);
  spec.mu_offset = (int8_t)h[79];
  spec.dead_zone = h[80];
  spec.guard = h[82] != 0;
  spec.best_on_host = spec.guard && app->in.index == 1;
  spec.batch = (uint16_t)get_u16(h + 84);
  spec.epochs = (uint16_t)get_u16(h + 86);
  spec.train_samples = get_u32(h + 88);
  spec.heldout_samples = get_u32(h + 92);
  spec.order_seed = get_u32(h + 96);
  spec.sr_seed = get_u32(h + 100);
  if (get_u16(h + 110) == 0) {
    spec.k = h[176];
  } else {
    plan_extension(h + 176, &spec);
  }
  memset(spec.class_weights, 64, sizeof spec.class_weights);
  if (!class_weights_are(app, spec.class_weights, h + 172)) {
    /* The state names them by hash only; the run that was here may have brought them. */
    memcpy(spec.class_weights, app->trainer_spec.class_weights, sizeof spec.class_weights);
    if (!class_weights_are(app, spec.class_weights, h + 172)) {
      return fail(
          err, ODT_FAILED_PRECONDITION,
          "state has class weights unknown here: start the run afresh, stop it, send again");
    }
  }
  odt_samples_t train;
  uint8_t held[32];
  arena_set_hash(app, held);
  const bool resident = nvm_resident(app) || (arena_samples(app, APP_REGION_TRAIN, &train) &&
                                              train.count == spec.train_samples &&
                                              memcmp(held, spec.sample_set_hash, 32) == 0);
  job_clear(app);
  return trainer_make(app, &spec, resident, APP_TRAINER_STATE, err);
}

/* Bytes of odt_weights where every layer's k is 8 or less. */
static uint32_t size_k8(const app_t* app) {
  uint32_t size = 44;
  for (uint32_t i = 0; i < app->model.n_layers; i++) {
    const odt_op_t* op = &app->model.ops[app->model.layer_op[i]];
    size += 20u + ((op->n_weights + 3u) & ~3u) + 4u * op->n_out;
  }
  return size;
}

static bool plan_weights(app_t* app, odt_error_t* err) {
  const uint8_t k = app->head.bytes[46];
  if (fresh_ready(app)) {
    const odt_run_spec_t* run = &app->trainer_spec;
    if (run->rule_set == ODT_RULE_DFP16) return true; /* has exponents instead */
    if (k == odt_run_spec_layer_k(run, 0) || k <= run->apt.k_max) return true;
    *err = (odt_error_t){.status = ODT_FAILED_PRECONDITION,
                         .what = "k: of these weights differs from that of the run",
                         .got = k,
                         .limit_lo = app->trainer_spec.k,
                         .limit_hi = app->trainer_spec.k,
                         .index = -1};
    return false;
  }
  job_clear(app);
  const bool dfp16 = app->trainer_spec.rule_set == ODT_RULE_DFP16;
  /* One whose best waits for the host takes no other weights. */
  const bool same = app->trainer_kind != APP_TRAINER_NONE && (dfp16 || app->trainer_spec.k == k) &&
                    odt_trainer_best_waits(&app->trainer) == ODT_BEST_HERE &&
                    !odt_run_spec_k_varies(&app->trainer_spec);
  if (!same || app->in.size != odt_weights_size(&app->trainer)) {
    odt_run_spec_t spec;
    trainer_default_spec(app, k, &spec);
    /* Layers can differ in k: room for what the size says. */
    if (ODT_WITH_APT && spec.rule_set == ODT_RULE_NITI)
      spec.apt.k_max = app->in.size > size_k8(app) ? 16 : 8;
    return trainer_make(app, &spec, false, APP_TRAINER_WEIGHTS, err);
  }
  app->trainer_kind = APP_TRAINER_WEIGHTS;
  return true;
}

static void feed_trainer(app_t* app, const uint8_t* data, uint32_t n) {
  app_xfer_t* x = &app->in;
  if (n == 0 || x->error.status != ODT_OK) return;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  odt_status_t s;
  if (x->resource == odt_device_v1_Resource_RESOURCE_STATE) {
    s = odt_state_write(&app->trainer, app->head.fed, data, n, &err);
  } else {
    const bool best = x->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS;
    s = odt_weights_write(&app->trainer, best, app->head.fed, data, n, &err);
  }
  app->head.fed += n;
  if (s != ODT_OK) x->error = err;
}

static uint32_t head_wanted(const app_xfer_t* x, const app_head_t* h) {
  if (x->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS) return 0;
  if (x->resource != odt_device_v1_Resource_RESOURCE_STATE) return kWeightsHead;
  const bool extended = h->size >= 112 && get_u16(h->bytes + 110) != 0;
  return extended ? kStateHeadLong : kStateHead;
}

static void trainer_data(app_t* app, const uint8_t* data, uint32_t n) {
  app_xfer_t* x = &app->in;
  app_head_t* h = &app->head;
  if (!h->planned) {
    const bool state = x->resource == odt_device_v1_Resource_RESOURCE_STATE;
    uint32_t want = head_wanted(x, h);
    while (h->size < want) {
      if (n == 0) return;
      h->bytes[h->size++] = *data++;
      n--;
      want = head_wanted(x, h);
    }
    h->planned = true;
    odt_error_t err = {.status = ODT_OK, .index = -1};
    if (want > 0 && !(state ? plan_state(app, &err) : plan_weights(app, &err))) {
      x->error = err;
      return;
    }
    feed_trainer(app, h->bytes, want);
  }
  feed_trainer(app, data, n);
}

void xfer_in_data(app_t* app, const uint8_t* data, uint32_t n) {
  const app_xfer_t* x = &app->in;
  app_region_id_t id;
  if (region_of((odt_device_v1_Resource)x->resource, x->index, &id)) {
    memcpy(region_data(app, id) + x->at, data, n);
  } else {
    trainer_data(app, data, n);
  }
}

void xfer_in_abort(app_t* app) {
  app_xfer_t* x = &app->in;
  if (!x->active) return;
  x->active = false;
  app_region_id_t id;
  if (region_of((odt_device_v1_Resource)x->resource, x->index, &id)) {
    app->region[id].valid = false;
  }
}

/* ---- commit ---- */

static void end_samples(app_t* app, app_region_id_t id, odt_error_t* err) {
  app_region_t* reg = &app->region[id];
  odt_samples_t s;
  if (odt_samples_open(&s, region_data(app, id), reg->size, err) != ODT_OK ||
      odt_samples_fit(&s, &app->model, err) != ODT_OK) {
    return;
  }
  reg->valid = true;
  reg->batch_id = app->in.batch_id;
  if (id != APP_REGION_TRAIN && id != APP_REGION_HELDOUT) return;
  app->set_stale &= (uint8_t) ~(1u << (id - APP_REGION_TRAIN)); /* its hash is made here */
  if (s.source != NULL) { /* it stands for the set that it was made of */
    memcpy(app->set_hash[id - APP_REGION_TRAIN], s.source + 32, 32);
    return;
  }
  odt_sha256_t h;
  odt_sha256_init(&h);
  odt_sha256_update(&h, region_data(app, id), reg->size);
  odt_sha256_final(&h, app->set_hash[id - APP_REGION_TRAIN]);
}

static void end_infer(app_t* app, odt_error_t* err) {
  app_region_t* reg = &app->region[APP_REGION_INFER];
  const odt_tensor_t* t = &app->model.tensors[app->model.input];
  const uint32_t bytes = t->count * (t->dtype == ODT_S16 ? 2u : 1u);
  if (reg->size != bytes) {
    *err = (odt_error_t){.status = ODT_INVALID_ARGUMENT,
                         .what = "sample: bytes",
                         .got = (int32_t)reg->size,
                         .limit_lo = (int32_t)bytes,
                         .limit_hi = (int32_t)bytes,
                         .index = -1};
    return;
  }
  reg->valid = true;
}

static void end_trainer(app_t* app, odt_error_t* err) {
  const app_xfer_t* x = &app->in;
  if (!app->head.planned) {
    fail(err, ODT_INVALID_ARGUMENT, "content is shorter than its header");
    return;
  }
  if (x->resource == odt_device_v1_Resource_RESOURCE_STATE) {
    odt_state_write_end(&app->trainer, err);
    return;
  }
  const bool best = x->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS;
  if (odt_weights_write_end(&app->trainer, best, err) == ODT_OK && best && job_best_wanted(app)) {
    job_best_written(app);
  }
}

void xfer_in_end(app_t* app, odt_error_t* err) {
  const app_xfer_t* x = &app->in;
  app_region_id_t id;
  if (!region_of((odt_device_v1_Resource)x->resource, x->index, &id)) {
    end_trainer(app, err);
  } else if (id == APP_REGION_IMAGE) {
    if (odt_model_open(&app->model, region_data(app, id), app->region[id].size, err) == ODT_OK) {
      app->has_model = true;
      app->region[id].valid = true;
    }
  } else if (id == APP_REGION_INFER) {
    end_infer(app, err);
  } else {
    end_samples(app, id, err);
  }
}

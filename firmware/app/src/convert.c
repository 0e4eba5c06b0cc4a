#include "internal.h"

typedef struct {
  const char* name;
  int32_t lo, hi;
} range_t;

static bool in_range(const range_t* r, int64_t value, odt_error_t* err) {
  if (value >= r->lo && value <= r->hi) return true;
  *err = (odt_error_t){.status = ODT_INVALID_ARGUMENT,
                       .what = r->name,
                       .got = (int32_t)(value > INT32_MAX ? INT32_MAX : value),
                       .limit_lo = r->lo,
                       .limit_hi = r->hi,
                       .index = -1};
  return false;
}

static bool class_weights(const odt_device_v1_RunSpec* w, const odt_model_t* m,
                          odt_run_spec_t* spec, odt_error_t* err) {
  memset(spec->class_weights, 64, sizeof spec->class_weights);
  if (w->class_weights.size == 0) return true;
  const int32_t want = m->task == ODT_TASK_CLASSIFY ? m->n_classes : 0;
  const range_t r = {"class_weights", want, want};
  if (!in_range(&r, w->class_weights.size, err)) return false;
  memcpy(spec->class_weights, w->class_weights.bytes, w->class_weights.size);
  return true;
}

/* The ranges of the fields' types; odt_run_spec_check knows the rest. */
bool spec_from_wire(const odt_device_v1_RunSpec* w, const odt_model_t* m, odt_run_spec_t* spec,
                    odt_error_t* err) {
  static const range_t kRanges[] = {
      {"rule_set", 0, 255},
      {"rounding", 0, 255},
      {"loss", 0, 255},
      {"shift_source", 0, 255},
      {"mu_weight", -128, 127},
      {"mu_weight", -128, 127},
      {"mu_weight", -128, 127},
      {"mu_offset", -128, 127},
      {"dead_zone", 0, 255},
      {"k", 0, 255},
      {"batch", 1, ODT_MAX_BATCH},
      {"epochs", 1, 65535},
      {"apt.mode", 0, 255},
      {"apt.k_max", 0, 255},
      {"apt.t_min_q8", 0, 65535},
      {"apt.t_max_q8", 0, 65535},
      {"lr_m", 0, 65535},
      {"lr_m", 0, 65535},
      {"lr_m", 0, 65535},
      {"lr_s", 0, 255},
  };
  const int64_t values[] = {w->rule_set,    w->rounding,    w->loss,         w->shift_source,
                            w->mu_weight_0, w->mu_weight_1, w->mu_weight_2,  w->mu_offset,
                            w->dead_zone,   w->k,           w->batch,        w->epochs,
                            w->apt_mode,    w->apt_k_max,   w->apt_t_min_q8, w->apt_t_max_q8,
                            w->lr_m_0,      w->lr_m_1,      w->lr_m_2,       w->lr_s};
  _Static_assert(sizeof values / sizeof values[0] == sizeof kRanges / sizeof kRanges[0],
                 "one value a range");
  for (uint32_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    if (!in_range(&kRanges[i], values[i], err)) return false;
  }
  memset(spec, 0, sizeof *spec); /* padding too: specs are compared as bytes */
  spec->rule_set = (uint8_t)w->rule_set;
  spec->rounding = (uint8_t)w->rounding;
  spec->loss = (uint8_t)w->loss;
  spec->shift_source = (uint8_t)w->shift_source;
  spec->mu_weight[0] = (int8_t)w->mu_weight_0;
  spec->mu_weight[1] = (int8_t)w->mu_weight_1;
  spec->mu_weight[2] = (int8_t)w->mu_weight_2;
  spec->mu_offset = (int8_t)w->mu_offset;
  spec->dead_zone = (uint8_t)w->dead_zone;
  spec->k = (uint8_t)w->k;
  spec->batch = (uint16_t)w->batch;
  spec->epochs = (uint16_t)w->epochs;
  spec->train_samples = w->train_samples;
  spec->heldout_samples = w->heldout_samples;
  spec->order_seed = w->order_seed;
  spec->sr_seed = w->sr_seed;
  spec->guard = w->guard;
  for (uint32_t i = 0; i < w->layer_k.size && i < ODT_MAX_LAYERS; i++) {
    /* One spelling of the same settings: states and specs are compared as bytes. */
    spec->layer_k[i] = w->layer_k.bytes[i] == w->k ? 0 : w->layer_k.bytes[i];
  }
  spec->apt.mode = (uint8_t)w->apt_mode;
  spec->apt.k_max = (uint8_t)w->apt_k_max;
  spec->apt.offsets = w->apt_offsets;
  spec->apt.t_min_q8 = (uint16_t)w->apt_t_min_q8;
  spec->apt.t_max_q8 = (uint16_t)w->apt_t_max_q8;
  spec->lr_m[0] = (uint16_t)w->lr_m_0;
  spec->lr_m[1] = (uint16_t)w->lr_m_1;
  spec->lr_m[2] = (uint16_t)w->lr_m_2;
  spec->lr_s = (uint8_t)w->lr_s;
  spec->blocked = w->blocked;
  spec->best_on_host = w->best_on_host;
  if (spec->rule_set == ODT_RULE_DFP16) {
    /* One spelling again: exponents stand where k stands. */
    spec->k = 0;
    memset(spec->layer_k, 0, sizeof spec->layer_k);
    if (spec->rounding == ODT_ROUND_DEFAULT) spec->rounding = ODT_ROUND_HALF_UP;
  } else if (spec->rounding == ODT_ROUND_DEFAULT && !odt_run_spec_k_varies(spec)) {
    spec->rounding = w->k > 8 ? ODT_ROUND_HALF_UP : ODT_ROUND_PSTO;
  }
  memcpy(spec->sample_set_hash, w->sample_set_hash.bytes,
         min_u32(w->sample_set_hash.size, sizeof spec->sample_set_hash));
  return class_weights(w, m, spec, err);
}

void step_to_wire(const app_t* app, const odt_step_record_t* s, odt_device_v1_StepRecord* w) {
  const uint32_t layers = app->model.n_layers;
  w->step = s->step;
  w->loss = s->loss;
  w->correct = s->correct;
  w->layers.size = (pb_size_t)(3u * layers);
  for (uint32_t i = 0; i < layers; i++) {
    w->layers.bytes[3 * i] = s->layers[i].bits;
    w->layers.bytes[3 * i + 1] = (uint8_t)s->layers[i].shift;
    w->layers.bytes[3 * i + 2] = s->layers[i].k;
  }
}

/* mu_weight as the settings have it at an epoch's last step (rule 1.8). */
static int8_t scheduled_mu(const odt_run_spec_t* s, const odt_epoch_record_t* e) {
  if (s->rule_set == ODT_RULE_DFP16) return 0;
  const uint32_t steps = e->step / (e->epoch + 1u) * s->epochs;
  const uint64_t stage =
      s->epochs >= 3 ? 3ull * e->epoch / s->epochs : 3ull * (e->step - 1u) / steps;
  return s->mu_weight[stage > 2 ? 2 : stage];
}

void epoch_to_wire(const app_epoch_t* kept, odt_device_v1_EpochRecord* w) {
  const odt_epoch_record_t* e = &kept->record;
  w->epoch = e->epoch;
  w->step = e->step;
  w->loss = e->loss;
  w->correct = e->correct;
  w->total = e->total;
  w->heldout_correct = e->heldout_correct;
  w->heldout_total = e->heldout_total;
  w->best_step = e->best_step;
  w->alarms = e->alarms;
  w->state_hash.size = 32;
  memcpy(w->state_hash.bytes, e->state_hash, 32);
  w->step_us = kept->step_us;
  w->start_correct = e->start_correct;
}

void layer_to_wire(const app_t* app, const odt_epoch_record_t* e, uint32_t i, bool whole,
                   odt_device_v1_LayerEpoch* w) {
  const odt_layer_epoch_t* l = &e->layers[i];
  *w = (odt_device_v1_LayerEpoch){
      .bits_min = l->bits_min,
      .bits_mean_q8 = l->bits_mean_q8,
      .bits_max = l->bits_max,
      .shift = l->shift,
      .nonzero_deltas_ppm = l->nonzero_deltas_ppm,
      .mean_abs_delta_q8 = l->mean_abs_delta_q8,
      .zero_propagated_ppm = l->zero_propagated_ppm,
      .saturated = l->saturated,
      .dead_units = l->dead_units,
      .k = l->k,
      .u_q8 = l->u_q8,
  };
  if (!whole) return;
  const int8_t mu = app->trainer.layers[i].n_weights ? scheduled_mu(&app->job.spec, e) : l->mu;
  w->k_off = l->k_off;
  w->e_d = l->e_d;
  w->w_min = l->w_min;
  w->w_max = l->w_max;
  w->sum_abs_g = l->sum_abs_g;
  w->sum_n = l->sum_n;
  w->logical_bits = odt_trainer_layer_bits(&app->trainer, i, l->k, l->k_off);
  w->resident_bytes = odt_trainer_layer_bytes(&app->trainer, i, l->k);
  w->mu = l->mu;
  w->mu_clamped = l->mu != mu;
}

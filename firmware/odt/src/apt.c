/* Rule 1.12: the precision k of each layer, its unit steps and who asks for them. */
#include "internal.h"
#include "kernels/layout.h"
#include "round.h"

uint8_t odt_run_spec_layer_k(const odt_run_spec_t* s, uint32_t layer) {
  return s->layer_k[layer] ? s->layer_k[layer] : s->k;
}

uint8_t odt_k_limit(const odt_run_spec_t* s, uint32_t layer) {
  return s->apt.k_max ? s->apt.k_max : odt_run_spec_layer_k(s, layer);
}

bool odt_run_spec_k_varies(const odt_run_spec_t* s) {
  bool varies = s->apt.mode != ODT_APT_OFF || s->apt.k_max != 0;
  for (uint32_t i = 0; i < ODT_MAX_LAYERS; i++) {
    varies = varies || (s->layer_k[i] != 0 && s->layer_k[i] != s->k);
  }
  return varies;
}

/* ---- unit steps of rule 1.5 -------------------------------------------------------------------
 */

/* Values as stored; the padding among them is 0 and stays it. */
static uint32_t values_of(const odt_layer_t* l) {
  return odt_layer_bytes(l, l->dtype) / odt_elem_bytes(l->dtype);
}

/* M lies in memory for the layer's highest precision. */
static void step_up(odt_layer_t* l) {
  if (l->k == 8) odt_layer_widen(l);
  l->k++;
  for (uint32_t i = 0, n = values_of(l); i < n; i++) {
    odt_store(l->m, l->dtype, i, odt_load(l->m, l->dtype, i) * 2);
  }
}

static void step_down(odt_layer_t* l) {
  l->k--;
  int32_t limit = odt_m_max(l->k);
  for (uint32_t i = 0, n = values_of(l); i < n; i++) {
    int32_t v = (int32_t)odt_round(odt_load(l->m, l->dtype, i), 1, ODT_ROUND_HALF_AWAY, 0);
    odt_store(l->m, l->dtype, i, v > limit ? limit : v < -limit ? -limit : v);
  }
  if (l->k == 8) odt_layer_narrow(l);
}

void odt_layer_set_k(odt_layer_t* l, uint8_t k) {
  if (l->k == k) return;
  while (l->k < k) step_up(l);
  while (l->k > k) step_down(l);
  l->b_prev = 0;
}

odt_status_t odt_trainer_set_k(odt_trainer_t* t, uint32_t layer, uint8_t k, odt_error_t* err) {
  if (!t->weights_valid) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "weights are being written", -1, 0, 1, 1);
  }
  if (!ODT_WITH_APT || t->spec.apt.k_max == 0) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "set_k: the run has no apt.k_max", -1, 0, 2, 16);
  }
  if (odt_trainer_done(t) || odt_trainer_epoch_complete(t)) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "set_k: between steps of an epoch only; position",
                    -1, t->position, 0, (int64_t)t->spec.train_samples - 1);
  }
  if (layer >= t->model->n_layers) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "set_k: layer", -1, layer, 0,
                    t->model->n_layers - 1);
  }
  if (k < 2 || k > t->spec.apt.k_max) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "set_k: k", (int32_t)layer, k, 2, t->spec.apt.k_max);
  }
  odt_layer_t* l = &t->layers[layer];
  if (l->k == k) return ODT_OK;
  odt_layer_set_k(l, k);
  l->apt_a = l->apt_n = 0; /* they were in steps of the old grid */
  return ODT_OK;
}

/* ---- sampling and checks ----------------------------------------------------------------------
 */

/* Steps done of the current epoch. */
static uint32_t steps_done(const odt_trainer_t* t) {
  return (t->position + t->spec.batch - 1u) / t->spec.batch;
}

/* The last check at or before `done` steps of the epoch; its start counts as one. */
static uint32_t last_check(const odt_trainer_t* t, uint32_t done) {
  uint32_t s = t->steps_per_epoch, at = 0;
  uint32_t first = t->spec.apt.mode == ODT_APT_EPOCHS ? 4 : 1;
  for (uint32_t i = first; i <= 4; i++) {
    uint32_t c = (i * s + 3u) / 4u;
    if (c <= done) at = c;
  }
  return at;
}

bool odt_apt_samples(const odt_trainer_t* t) {
  if (t->spec.apt.mode == ODT_APT_OFF) return t->step % 16 == 0;
  uint32_t done = steps_done(t);
  return (done - last_check(t, done)) % 16 == 0;
}

uint64_t odt_apt_term(uint64_t sum_abs, int s) {
  if (s < 0) return sum_abs << (8 - s);
  return s > 63 ? 0 : (sum_abs << 8) >> s;
}

static uint8_t wanted_k(const odt_apt_t* apt, uint8_t k, uint64_t a, uint64_t n, uint32_t count) {
  uint64_t unit = n * count;
  if (unit == 0) return k;
  if (a < apt->t_min_q8 * unit) return (uint8_t)(k < apt->k_max ? k + 1 : k);
  if (apt->t_max_q8 != 0 && a > apt->t_max_q8 * unit && k > 2) return (uint8_t)(k - 1);
  return k;
}

static void check_layer(const odt_apt_t* apt, odt_layer_t* l) {
  odt_layer_set_k(l, wanted_k(apt, (uint8_t)l->k, l->apt_a, l->apt_n, l->n_weights));
  if (l->k_off != 0) {
    l->k_off = wanted_k(apt, l->k_off, l->apt_off_a, l->apt_off_n, l->n_offsets);
  }
  l->stats.update_q8 = l->apt_a; /* what decided, for the record */
  l->stats.update_n = (uint32_t)l->apt_n;
  l->apt_a = l->apt_n = l->apt_off_a = l->apt_off_n = 0;
}

void odt_apt_after_step(odt_trainer_t* t) {
  if (!ODT_WITH_APT || t->spec.apt.mode == ODT_APT_OFF) return;
  uint32_t done = steps_done(t);
  if (last_check(t, done) != done) return;
  for (uint32_t i = 0; i < t->model->n_layers; i++) check_layer(&t->spec.apt, &t->layers[i]);
}

uint32_t odt_apt_pending(const odt_trainer_t* t, uint32_t position) {
  uint32_t done = (position + t->spec.batch - 1u) / t->spec.batch;
  return (done - last_check(t, done) + 15u) / 16u;
}

/* ---- what depends on a layer's present k ------------------------------------------------------
 */

uint8_t odt_layer_rounding(const odt_run_spec_t* s, int k) {
  if (s->rounding != ODT_ROUND_DEFAULT) return s->rounding;
  return k <= 8 ? ODT_ROUND_PSTO : ODT_ROUND_HALF_UP;
}

int odt_layer_mu(odt_trainer_t* t, odt_layer_t* l) {
  int mu = t->spec.mu_weight[odt_stage(t)];
  int8_t lo, hi;
  odt_mu_range(l->k, odt_layer_rounding(&t->spec, l->k), t->spec.batch, &lo, &hi);
  int clamped = mu < lo ? lo : mu;
  if (clamped > hi) clamped = hi; /* where there is no range (HALF_UP, k 2 and 3) */
  l->stats.mu = (int8_t)clamped;
  if (clamped != mu) l->stats.mu_clamped = true;
  return clamped;
}

uint32_t odt_trainer_layer_bits(const odt_trainer_t* t, uint32_t layer, uint8_t k, uint8_t k_off) {
  const odt_layer_t* l = &t->layers[layer];
  return l->n_weights * (uint32_t)k + l->n_offsets * (k_off ? (uint32_t)k_off : 32u);
}

int odt_offset_grid(const odt_layer_t* l) {
  int g = l->k_off ? l->k_nom + 8 - l->k_off : 0;
  return g > 0 ? g : 0;
}

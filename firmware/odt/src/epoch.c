/* Rule 1.10: guard and alarms; rule 1.14: the epoch's record. */
#include <string.h>

#include "canonical.h"
#include "dfp/dfp.h"
#include "kernels/layout.h"

bool odt_trainer_epoch_complete(const odt_trainer_t* t) {
  return t->position == t->spec.train_samples;
}
bool odt_trainer_done(const odt_trainer_t* t) { return t->epoch == t->spec.epochs; }
uint32_t odt_trainer_step_count(const odt_trainer_t* t) { return t->step; }
uint32_t odt_trainer_epoch_count(const odt_trainer_t* t) { return t->epoch; }
uint32_t odt_trainer_steps_total(const odt_trainer_t* t) {
  return t->steps_per_epoch * t->spec.epochs;
}
bool odt_trainer_best_missing(const odt_trainer_t* t) { return t->best_missing; }
odt_best_wait_t odt_trainer_best_waits(const odt_trainer_t* t) {
  return (odt_best_wait_t)t->best_waits;
}

void odt_epoch_stats_reset(odt_trainer_t* t) {
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    memset(&l->stats, 0, sizeof l->stats);
    if (l->alive) memset(l->alive, 0, (l->n_offsets + 7u) / 8u);
  }
}

static size_t weight_bytes(const odt_trainer_t* t, const odt_layer_t* l) {
  if (!odt_is_dfp16(t->model)) return odt_layer_bytes(l, l->dtype);
  return 2u * (size_t)odt_dfp_stored(t->model, &t->model->ops[l->op]);
}

/* Offsets, and DFP16's exponents behind them. */
static size_t offset_bytes(const odt_trainer_t* t, const odt_layer_t* l) {
  bool dfp = odt_is_dfp16(t->model);
  return 4u * (size_t)l->n_offsets + (dfp ? odt_dfp_blocks(t, l) : 0u);
}

uint32_t odt_trainer_layer_bytes(const odt_trainer_t* t, uint32_t layer, uint8_t k) {
  const odt_layer_t* l = &t->layers[layer];
  if (odt_is_dfp16(t->model)) return (uint32_t)weight_bytes(t, l);
  return odt_layer_bytes(l, k > 8 ? ODT_S16 : ODT_S8);
}

/* M of the weight with ONNX index i. */
static int32_t weight_at(const odt_trainer_t* t, const odt_layer_t* l, uint32_t i) {
  if (!odt_is_dfp16(t->model)) return odt_layer_get(l, i);
  return odt_load(l->m, l->dtype, odt_dfp_stored_at(t->model, &t->model->ops[l->op], i));
}

static void keep_best(odt_trainer_t* t, uint32_t correct) {
  bool here = !t->spec.best_on_host;
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    l->best_k = l->k;
    if (!here) continue;
    if (l->n_weights) memcpy(l->best_m, l->m, weight_bytes(t, l));
    memcpy(l->best_off, l->off, offset_bytes(t, l));
  }
  t->best_waits = here ? ODT_BEST_HERE : ODT_BEST_UNREAD;
  t->best_step = t->step;
  t->best_correct = correct;
  t->best_missing = false;
  t->best_whole = true;
  if (t->write_kind == ODT_FORM_BEST) t->write_bad = true; /* its bytes lay here */
  odt_weights_hash(t, true, t->best_hash);
}

static void roll_back(odt_trainer_t* t) {
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    l->k = l->best_k;
    l->dtype = l->k > 8 ? ODT_S16 : ODT_S8;
    l->b_prev = 0;
    if (t->spec.best_on_host) continue;
    if (l->n_weights) memcpy(l->m, l->best_m, weight_bytes(t, l));
    memcpy(l->off, l->best_off, offset_bytes(t, l));
  }
}

/* A held-out score: correct of a total; without classes the loss, where less is better. */
static uint32_t score_limit(const odt_trainer_t* t, uint32_t total) {
  if (!odt_lower_is_better(t->model)) return total;
  return total ? ODT_NONE - 1u : 0u;
}

static bool is_better(const odt_trainer_t* t, uint32_t score) {
  if (t->best_correct == ODT_NONE) return true;
  return odt_lower_is_better(t->model) ? score < t->best_correct : score > t->best_correct;
}

odt_status_t odt_trainer_set_start(odt_trainer_t* t, uint32_t heldout_correct,
                                   uint32_t heldout_total) {
  if (!t->weights_valid || t->step != 0 || t->start_correct != ODT_NONE) {
    return ODT_FAILED_PRECONDITION;
  }
  if (heldout_total == 0 && heldout_correct == 0) return ODT_OK;
  if (heldout_correct > score_limit(t, heldout_total)) return ODT_INVALID_ARGUMENT;
  t->start_correct = heldout_correct;
  if (t->spec.guard) keep_best(t, heldout_correct);
  return ODT_OK;
}

static uint32_t per_million(uint64_t part, uint64_t whole) {
  return whole ? (uint32_t)(part * 1000000u / whole) : 0u;
}

static uint32_t saturated(const odt_trainer_t* t, const odt_layer_t* l) {
  bool dfp = odt_is_dfp16(t->model);
  int32_t hi = dfp ? ODT_DFP_MAX : odt_m_max(l->k), n = 0;
  int32_t lo = t->spec.rule_set == ODT_RULE_NITI_LITERAL ? -128 : -hi;
  for (uint32_t i = 0; i < l->n_weights; i++) {
    int32_t m = weight_at(t, l, i);
    if (m >= hi || m <= lo) n++;
  }
  return (uint32_t)n;
}

static void precision_record(const odt_trainer_t* t, const odt_layer_t* l, odt_layer_epoch_t* r) {
  r->k_off = l->k_off;
  r->e_d = l->e_d;
  r->mu = l->stats.mu;
  r->sum_abs_g = l->stats.sum_abs_g;
  r->sum_n = l->stats.sum_n > UINT16_MAX ? UINT16_MAX : (uint16_t)l->stats.sum_n;
  for (uint32_t i = 0; i < l->n_weights; i++) {
    int16_t v = (int16_t)weight_at(t, l, i);
    if (i == 0 || v < r->w_min) r->w_min = v;
    if (i == 0 || v > r->w_max) r->w_max = v;
  }
}

static void layer_record(const odt_trainer_t* t, const odt_layer_t* l, odt_layer_epoch_t* r) {
  const odt_layer_stats_t* s = &l->stats;
  r->bits_min = s->bits_min;
  r->bits_max = s->bits_max;
  r->k = (uint8_t)l->k;
  r->shift = s->shift;
  if (s->steps) r->bits_mean_q8 = (uint16_t)(s->bits_sum * 256ull / s->steps);
  r->nonzero_deltas_ppm = per_million(s->nonzero_deltas, s->deltas);
  if (s->deltas) r->mean_abs_delta_q8 = (uint32_t)((s->abs_delta_sum << 8) / s->deltas);
  r->zero_propagated_ppm = per_million(s->zero_propagated, s->propagated);
  r->saturated = saturated(t, l);
  for (uint32_t o = 0; l->alive && o < l->n_offsets; o++) {
    if (!(l->alive[o >> 3] & (1u << (o & 7u)))) r->dead_units++;
  }
  if (s->update_n && l->n_weights) {
    uint64_t u = s->update_q8 / ((uint64_t)l->n_weights * s->update_n);
    r->u_q8 = u > UINT32_MAX ? UINT32_MAX : (uint32_t)u;
  }
  precision_record(t, l, r);
}

static void fill_layers(const odt_trainer_t* t, odt_epoch_record_t* rec) {
  uint64_t deltas = 0, nonzero = 0;
  uint32_t n = t->model->n_layers;
  for (uint32_t i = 0; i < n; i++) {
    const odt_layer_t* l = &t->layers[i];
    odt_layer_epoch_t* r = &rec->layers[i];
    layer_record(t, l, r);
    deltas += l->stats.deltas;
    nonzero += l->stats.nonzero_deltas;
    bool silent = l->stats.steps && l->stats.bits_max == 0 && l->n_weights;
    if (silent && i + 1u < n) rec->alarms |= ODT_ALARM_DEAD_LAYER;
    if (10ull * r->dead_units > 9ull * l->n_offsets) rec->alarms |= ODT_ALARM_DEAD_LAYER;
    if (20ull * r->saturated > l->n_weights) rec->alarms |= ODT_ALARM_SATURATION;
    if (l->stats.mu_clamped) rec->alarms |= ODT_ALARM_MU_CLAMPED;
  }
  if (deltas && 20u * nonzero < deltas) rec->alarms |= ODT_ALARM_STUCK;
}

static void close_epoch(odt_trainer_t* t, odt_epoch_record_t* rec) {
  t->epoch++;
  t->position = 0;
  t->epoch_loss = 0;
  t->epoch_correct = 0;
  odt_epoch_stats_reset(t);
  if (odt_trainer_done(t) && t->spec.guard && t->best_correct != ODT_NONE) roll_back(t);
  if (odt_trainer_done(t)) t->best_waits = ODT_BEST_HERE; /* the final weights are the best */
  odt_state_hash(t, rec->state_hash);
}

odt_status_t odt_trainer_end_epoch(odt_trainer_t* t, uint32_t heldout_correct,
                                   uint32_t heldout_total, odt_epoch_record_t* rec,
                                   odt_error_t* err) {
  if (!t->weights_valid || odt_trainer_done(t) || !odt_trainer_epoch_complete(t)) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "epoch is not complete: position", -1,
                    t->position, t->spec.train_samples, t->spec.train_samples);
  }
  if (t->best_waits != ODT_BEST_HERE) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "the best waits for the host", -1, t->best_waits,
                    0, 0);
  }
  uint32_t limit = score_limit(t, heldout_total);
  if (heldout_correct > limit) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "heldout_correct", -1, heldout_correct, 0, limit);
  }
  bool check = t->spec.guard && heldout_total > 0;
  bool better = check && is_better(t, heldout_correct);
  bool last = t->spec.guard && t->epoch + 1u == t->spec.epochs;
  if (last && t->best_missing && !better) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "the best's weights are missing", -1, 0, 1, 1);
  }
  memset(rec, 0, offsetof(odt_epoch_record_t, layers) + t->model->n_layers * sizeof rec->layers[0]);
  rec->epoch = t->epoch;
  rec->step = t->step;
  rec->loss = t->epoch_loss;
  rec->correct = t->epoch_correct;
  rec->total = t->spec.train_samples;
  rec->heldout_correct = heldout_correct;
  rec->heldout_total = heldout_total;
  fill_layers(t, rec);
  if (better) keep_best(t, heldout_correct);
  rec->start_correct = t->start_correct;
  rec->best_step = t->best_step;
  if (last && t->spec.best_on_host && !better && t->best_correct != ODT_NONE) {
    t->best_waits = ODT_BEST_WANTED;
    t->best_whole = false;
    return ODT_OK;
  }
  close_epoch(t, rec);
  return ODT_OK;
}

odt_status_t odt_trainer_best_kept(odt_trainer_t* t, const uint8_t hash[32]) {
  if (t->best_correct == ODT_NONE || memcmp(hash, t->best_hash, 32) != 0) {
    return ODT_FAILED_PRECONDITION;
  }
  if (t->best_waits == ODT_BEST_UNREAD) t->best_waits = ODT_BEST_HERE;
  return ODT_OK;
}

odt_status_t odt_trainer_roll_back(odt_trainer_t* t, odt_epoch_record_t* rec, odt_error_t* err) {
  if (t->best_waits != ODT_BEST_WANTED || !t->weights_valid || !t->best_whole) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "the best's weights are missing", -1, 0, 1, 1);
  }
  t->best_waits = ODT_BEST_HERE;
  close_epoch(t, rec);
  return ODT_OK;
}

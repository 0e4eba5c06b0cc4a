/* Ranges of a run's settings: rules 1.3, 1.5, 1.6, 1.7, 1.11. */
#include "dfp/dfp.h"

uint8_t odt_resolve_rounding(const odt_run_spec_t* spec) {
  if (spec->rule_set != ODT_RULE_NITI) return ODT_ROUND_HALF_UP;
  return odt_run_spec_k_varies(spec) ? spec->rounding : odt_layer_rounding(spec, spec->k);
}

/* Where k varies: what at least one precision in reach allows. */
void odt_mu_limits(const odt_run_spec_t* spec, int8_t* lo, int8_t* hi) {
  if (!odt_run_spec_k_varies(spec)) {
    odt_mu_range(spec->k, odt_resolve_rounding(spec), spec->batch, lo, hi);
    return;
  }
  bool free = spec->apt.k_max != 0;
  odt_mu_range(2, ODT_ROUND_HALF_UP, spec->batch, lo, hi);
  for (uint32_t i = 0; i < ODT_MAX_LAYERS; i++) {
    int top = odt_k_limit(spec, i);
    for (int k = free ? 2 : top; k <= top; k++) {
      int8_t at;
      odt_mu_range(k, odt_layer_rounding(spec, k), spec->batch, &at, hi);
      if (at < *lo) *lo = at;
    }
  }
}

bool odt_run_spec_clamp_mu(odt_run_spec_t* spec) {
  int8_t lo, hi;
  bool changed = false;
  odt_mu_limits(spec, &lo, &hi);
  bool constant =
      spec->mu_weight[0] == spec->mu_weight[1] && spec->mu_weight[1] == spec->mu_weight[2];
  for (int i = 0; i < 3 && !constant && lo <= hi; i++) {
    int8_t mu = spec->mu_weight[i];
    spec->mu_weight[i] = mu < lo ? lo : mu > hi ? hi : mu;
    changed = changed || mu != spec->mu_weight[i];
  }
  return changed;
}

static odt_status_t range(odt_error_t* err, const char* what, int32_t got, int32_t lo, int32_t hi) {
  if (got >= lo && got <= hi) return ODT_OK;
  return odt_fail(err, ODT_INVALID_ARGUMENT, what, -1, got, lo, hi);
}

static const char* mu_text(uint8_t rounding) {
  switch (rounding) {
    case ODT_ROUND_PSTO:
      return "mu_weight (for this k, PSTO)";
    case ODT_ROUND_SR:
      return "mu_weight (for this k, SR)";
    case ODT_ROUND_HALF_AWAY:
      return "mu_weight (for this k, HALF_AWAY)";
    case ODT_ROUND_DEFAULT:
      return "mu_weight (for any k in reach)";
    default:
      return "mu_weight (for this k, HALF_UP)";
  }
}

static odt_status_t check_rules(const odt_run_spec_t* s, odt_error_t* err) {
  odt_status_t st = range(err, "rule_set", s->rule_set, ODT_RULE_NITI, ODT_RULE_NITI_LITERAL);
  if (st == ODT_OK) st = range(err, "rounding", s->rounding, ODT_ROUND_DEFAULT, ODT_ROUND_SR);
  if (st == ODT_OK) st = range(err, "loss", s->loss, ODT_LOSS_MSE, ODT_LOSS_CE);
  if (st == ODT_OK) {
    st = range(err, "shift_source", s->shift_source, ODT_SHIFT_EXACT, ODT_SHIFT_STALE);
  }
  if (st == ODT_OK) st = range(err, "k", s->k, 2, 16);
  if (st != ODT_OK || s->rule_set != ODT_RULE_NITI_LITERAL) return st;
  st = range(err, "k (NITI_LITERAL)", s->k, 8, 8);
  if (st == ODT_OK && odt_run_spec_k_varies(s)) {
    st = odt_fail(err, ODT_INVALID_ARGUMENT, "layer_k, apt (NITI_LITERAL)", -1, 1, 0, 0);
  }
  if (st == ODT_OK) {
    st = range(err, "shift_source (NITI_LITERAL)", s->shift_source, ODT_SHIFT_EXACT,
               ODT_SHIFT_EXACT);
  }
  if (st == ODT_OK) {
    st = range(err, "rounding (NITI_LITERAL)", s->rounding, ODT_ROUND_DEFAULT, ODT_ROUND_HALF_UP);
  }
  return st;
}

/* Rule 1.12. apt.k_max alone (mode OFF): the host moves k. */
static odt_status_t check_precision(const odt_run_spec_t* s, const odt_model_t* m,
                                    odt_error_t* err) {
  const odt_apt_t* a = &s->apt;
  bool on = a->mode != ODT_APT_OFF;
  if (!ODT_WITH_APT && (on || a->k_max != 0)) {
    return odt_fail(err, ODT_UNIMPLEMENTED, "apt: not in this firmware", -1, a->k_max, 0, 0);
  }
  odt_status_t st = range(err, "apt.mode", a->mode, ODT_APT_OFF, ODT_APT_EPOCHS);
  if (st == ODT_OK && (on || a->k_max != 0)) st = range(err, "apt.k_max", a->k_max, 2, 16);
  if (st == ODT_OK) st = range(err, "apt.offsets", a->offsets, 0, on ? 1 : 0);
  if (st == ODT_OK) st = range(err, "apt.t_min_q8", a->t_min_q8, on ? 1 : 0, on ? 65535 : 0);
  if (st == ODT_OK && a->t_max_q8 != 0) {
    st = range(err, "apt.t_max_q8 (0, or at least 4 t_min_q8)", a->t_max_q8,
               on ? 4 * a->t_min_q8 : 0, on ? 65535 : 0);
  }
  for (uint32_t i = 0; st == ODT_OK && i < ODT_MAX_LAYERS; i++) {
    int32_t index = (int32_t)i;
    bool used = i < m->n_layers;
    uint8_t k = used ? odt_run_spec_layer_k(s, i) : s->layer_k[i];
    uint8_t lo = used ? 2 : 0, hi = !used ? 0 : a->k_max ? a->k_max : 16;
    if (k >= lo && k <= hi) continue;
    st = odt_fail(err, ODT_INVALID_ARGUMENT, "layer_k", index, k, lo, hi);
  }
  return st;
}

static odt_status_t check_mu(const odt_run_spec_t* s, odt_error_t* err) {
  odt_status_t st = range(err, "mu_offset", s->mu_offset, -8, 7);
  if (st == ODT_OK) st = range(err, "dead_zone", s->dead_zone, 0, 127);
  if (st != ODT_OK) return st;
  int8_t lo, hi;
  odt_mu_limits(s, &lo, &hi);
  for (int i = 0; i < 3; i++) {
    int8_t mu = s->mu_weight[i];
    if (mu >= lo && mu <= hi) continue;
    return odt_fail(err, ODT_INVALID_ARGUMENT, mu_text(odt_resolve_rounding(s)), s->k, mu, lo, hi);
  }
  return ODT_OK;
}

static odt_status_t check_loss(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err) {
  if (m->task != ODT_TASK_CLASSIFY) {
    return range(err, "loss (regression, autoencoder)", s->loss, ODT_LOSS_MSE, ODT_LOSS_MSE);
  }
  if (s->loss == ODT_LOSS_MSE && m->target_correct == NULL) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "loss: the model has no MSE targets", -1, s->loss,
                    ODT_LOSS_CE, ODT_LOSS_CE);
  }
  if (s->loss == ODT_LOSS_CE && m->ce_scale == 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "loss: the model has no cross-entropy scale", -1,
                    s->loss, ODT_LOSS_MSE, ODT_LOSS_MSE);
  }
  return ODT_OK;
}

static odt_status_t check_class_weights(const odt_run_spec_t* s, const odt_model_t* m,
                                        odt_error_t* err) {
  uint32_t sum = 0;
  if (m->task != ODT_TASK_CLASSIFY) return ODT_OK;
  for (uint32_t c = 0; c < m->n_classes; c++) sum += s->class_weights[c];
  if (sum != 0) return ODT_OK;
  return odt_fail(err, ODT_INVALID_ARGUMENT, "class_weights: all zero", -1, 0, 1, 255);
}

/* The image says what the numbers mean, the rule set what is done with them. */
static odt_status_t check_arith(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err) {
  bool dfp = odt_is_dfp16(m);
  if (dfp) return range(err, "rule_set (DFP16 image)", s->rule_set, ODT_RULE_DFP16, ODT_RULE_DFP16);
  if (s->rule_set != ODT_RULE_DFP16) return ODT_OK;
  return range(err, "rule_set", s->rule_set, ODT_RULE_NITI, ODT_RULE_NITI_LITERAL);
}

odt_status_t odt_run_spec_check(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err) {
  bool dfp = odt_is_dfp16(m);
  odt_status_t st = check_arith(s, m, err);
  if (st == ODT_OK && !dfp) st = check_rules(s, err);
  if (st == ODT_OK && !dfp) st = check_precision(s, m, err);
  if (st == ODT_OK) st = range(err, "batch", s->batch, 1, ODT_MAX_BATCH);
  if (st == ODT_OK) st = range(err, "epochs", s->epochs, 1, 65535);
  if (st == ODT_OK) st = range(err, "train_samples", ODT_I32(s->train_samples), 1, 65535);
  if (st == ODT_OK) st = dfp ? odt_dfp_spec_check(s, m, err) : check_mu(s, err);
  if (st != ODT_OK) return st;
  if (s->guard && s->heldout_samples == 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "guard without heldout_samples", -1, 1, 0, 0);
  }
  if (s->best_on_host && !s->guard) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "best_on_host without guard", -1, 1, 0, 0);
  }
  if (!dfp) st = check_loss(s, m, err);
  return st == ODT_OK ? check_class_weights(s, m, err) : st;
}

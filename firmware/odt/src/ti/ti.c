/* The three functions of TI's interface, and the same with settings and errors. */
#include <string.h>

#include "ti_internal.h"

/* ---- TI's interface ---- */

static int8_t limited(int v, int lo, int hi) { return (int8_t)(v < lo ? lo : v > hi ? hi : v); }

void INTODT_Infer(IntModelCtx_t* ctx, const void* input, int8_t* logit_output) {
  if (input && logit_output && odt_ti_check(ctx, NULL) == ODT_OK) {
    odt_ti_run_infer(ctx, input, logit_output);
  }
}

void INTODT_Forward(IntModelCtx_t* ctx, const void* batch_input, int32_t batch_size) {
  if (batch_input && batch_size > 0 && odt_ti_check(ctx, NULL) == ODT_OK) {
    odt_ti_run_forward(ctx, batch_input, (uint32_t)batch_size);
  }
}

void INTODT_Backward(IntModelCtx_t* ctx, const void* batch_input, int32_t batch_size) {
  if (!batch_input || batch_size <= 0 || batch_size > ODT_MAX_BATCH ||
      odt_ti_check(ctx, NULL) != ODT_OK) {
    return;
  }
  IntModelCtx_t limits = *ctx;
  limits.mu_weight = limited(ctx->mu_weight, -4, 4);
  limits.mu_offset = limited(ctx->mu_offset, -8, 7);
  odt_ti_t t = {.ctx = &limits,
                .rule_set = ODT_RULE_NITI,
                .rounding = ODT_ROUND_PSTO,
                .shift_source = ODT_SHIFT_EXACT};
  odt_ti_run_backward(&t, batch_input, (uint32_t)batch_size, NULL);
}

/* ---- the same with settings and errors ---- */

static odt_status_t range(odt_error_t* err, const char* what, int64_t got, int64_t lo, int64_t hi) {
  if (got >= lo && got <= hi) return ODT_OK;
  return odt_fail(err, ODT_INVALID_ARGUMENT, what, -1, got, lo, hi);
}

odt_status_t odt_ti_init(odt_ti_t* t, IntModelCtx_t* ctx, uint16_t batch, odt_error_t* err) {
  memset(t, 0, sizeof *t);
  odt_status_t st = odt_ti_check(ctx, err);
  if (st != ODT_OK) return st;
  if (batch < 1 || batch > ODT_MAX_BATCH) {
    return odt_fail(err, ODT_OUT_OF_RANGE, "batch", -1, batch, 1, ODT_MAX_BATCH);
  }
  int64_t trained = odt_ti_number(ctx, ctx->n_layers);
  if (trained > ODT_MAX_LAYERS) {
    return odt_fail(err, ODT_OUT_OF_RANGE, "layers", -1, trained, 1, ODT_MAX_LAYERS);
  }
  t->ctx = ctx;
  t->batch = batch;
  t->rule_set = ODT_RULE_NITI;
  t->rounding = ODT_ROUND_PSTO;
  t->shift_source = ODT_SHIFT_EXACT;
  return ODT_OK;
}

odt_status_t odt_ti_infer(odt_ti_t* t, const void* input, int8_t* logits, odt_error_t* err) {
  odt_status_t st = odt_ti_check(t->ctx, err);
  if (st == ODT_OK) odt_ti_run_infer(t->ctx, input, logits);
  return st;
}

odt_status_t odt_ti_forward(odt_ti_t* t, const void* input, int32_t n, odt_error_t* err) {
  odt_status_t st = odt_ti_check(t->ctx, err);
  if (st == ODT_OK) st = range(err, "batch_size", n, 1, t->batch);
  if (st == ODT_OK) odt_ti_run_forward(t->ctx, input, (uint32_t)n);
  return st;
}

static uint8_t rounding_of(const odt_ti_t* t) {
  if (t->rule_set == ODT_RULE_NITI_LITERAL) return ODT_ROUND_HALF_UP;
  return t->rounding == ODT_ROUND_DEFAULT ? (uint8_t)ODT_ROUND_PSTO : t->rounding;
}

static odt_status_t check_settings(const odt_ti_t* t, odt_error_t* err) {
  odt_status_t st = range(err, "rule_set", t->rule_set, ODT_RULE_NITI, ODT_RULE_NITI_LITERAL);
  if (st == ODT_OK) st = range(err, "rounding", t->rounding, ODT_ROUND_DEFAULT, ODT_ROUND_SR);
  if (st == ODT_OK) {
    st = range(err, "shift_source", t->shift_source, ODT_SHIFT_EXACT, ODT_SHIFT_STALE);
  }
  if (st == ODT_OK && t->rule_set == ODT_RULE_NITI_LITERAL) {
    st = range(err, "shift_source (NITI_LITERAL)", t->shift_source, ODT_SHIFT_EXACT,
               ODT_SHIFT_EXACT);
  }
  if (st == ODT_OK) st = range(err, "mu_offset", t->ctx->mu_offset, -8, 7);
  if (st != ODT_OK) return st;
  int8_t lo, hi;
  odt_mu_range(8, rounding_of(t), t->batch, &lo, &hi);
  return range(err, "mu_weight", t->ctx->mu_weight, lo, hi);
}

odt_status_t odt_ti_backward(odt_ti_t* t, const void* input, int32_t n, odt_ti_record_t* rec,
                             odt_error_t* err) {
  odt_status_t st = odt_ti_check(t->ctx, err);
  if (st == ODT_OK) st = range(err, "batch_size", n, 1, t->batch);
  if (st == ODT_OK) st = check_settings(t, err);
  if (st != ODT_OK) return st;
  if (rec) memset(rec, 0, sizeof *rec);
  odt_ti_t run = *t;
  run.rounding = rounding_of(t);
  odt_ti_run_backward(&run, input, (uint32_t)n, rec);
  t->step = run.step;
  memcpy(t->b_prev, run.b_prev, sizeof t->b_prev);
  return ODT_OK;
}

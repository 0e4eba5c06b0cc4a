/* The three functions of TI's interface, and the same with settings and errors. */
#include <string.h>

#include "round.h"
#include "ti_internal.h"
#include "walk.h"

static int max0(int v) { return v > 0 ? v : 0; }

/* ---- forward ---- */

static bool has_prequant(const IntModelCtx_t* ctx) {
  return ctx->layers[0].type == INT_LAYER_PREQUANT;
}

static uint8_t dtype_before(const IntModelCtx_t* ctx, uint32_t i) {
  return i == 0 ? odt_ti_input_dtype(ctx) : odt_ti_dtype(&ctx->layers[i - 1]);
}

static void write_mask(const IntLayerDesc_t* d, uint8_t dtype, const uint8_t* y, uint8_t* mask) {
  memset(mask, 0, odt_ti_mask_bytes(d));
  for (uint32_t i = 0; i < d->out_size; i++) {
    if (odt_load(y, dtype, i) > 0) mask[i / 8u] |= (uint8_t)(1u << (i % 8u));
  }
}

static void prequant(const IntLayerDesc_t* d, const float* x, uint32_t b, uint8_t* y) {
  odt_ti_prequant(&d->prequant, d->clip_lo, d->clip_hi, x + (size_t)b * d->in_size, d->in_size,
                  odt_ti_dtype(d), y);
}

void odt_ti_run_forward(const IntModelCtx_t* ctx, const void* input, uint32_t n) {
  const uint8_t* x = input;
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    uint8_t in_dtype = dtype_before(ctx, i), dtype = odt_ti_dtype(d);
    size_t x_bytes = (size_t)d->in_size * odt_elem_bytes(in_dtype);
    size_t y_bytes = (size_t)d->out_size * odt_elem_bytes(dtype);
    bool quantises = i == 0 && has_prequant(ctx);
    odt_ti_layer_t l;
    if (!quantises) l = odt_ti_layer_of(d, in_dtype);
    for (uint32_t b = 0; b < n; b++) {
      uint8_t* y = (uint8_t*)d->act_buf + b * y_bytes;
      if (quantises) {
        prequant(d, input, b, y);
      } else {
        odt_ti_forward_layer(&l, x + b * x_bytes, y);
        if (l.relu) write_mask(d, dtype, y, d->relu_mask + (size_t)b * odt_ti_mask_bytes(d));
      }
    }
    x = d->act_buf;
  }
}

void odt_ti_run_infer(const IntModelCtx_t* ctx, const void* input, int8_t* logits) {
  const uint8_t* x = input;
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    bool last = i + 1u == ctx->n_layers;
    uint8_t* y = last ? (uint8_t*)logits : (uint8_t*)ctx->grad_buf[i % 2u];
    if (i == 0 && has_prequant(ctx)) {
      prequant(d, input, 0, y);
    } else {
      odt_ti_layer_t l = odt_ti_layer_of(d, dtype_before(ctx, i));
      odt_ti_forward_layer(&l, x, y);
    }
    x = y;
  }
}

/* ---- backward: rules 1.4 to 1.7 and 1.11, as backward.c has them ---- */

/* Most frequent value; ties to the smaller. */
static int32_t nominal(const uint8_t* v, uint32_t n, int32_t absent) {
  uint32_t best = 0;
  int32_t value = absent;
  for (uint32_t i = 0; v && i < n; i++) {
    uint32_t count = 0;
    for (uint32_t j = 0; j < n; j++) count += v[j] == v[i] ? 1u : 0u;
    if (count > best || (count == best && v[i] < value)) {
      best = count;
      value = v[i];
    }
  }
  return value;
}

/* Delta of the layer's input into out; returns its shift. */
static int propagate(const odt_ti_layer_t* l, const IntLayerDesc_t* before, const int8_t* dy,
                     uint32_t n, int8_t* out, uint32_t* zeros) {
  odt_ti_delta_t d = {.out = out, .count = l->in_size};
  if (odt_ti_is_relu(before)) {
    d.mask = before->relu_mask;
    d.mask_bytes = odt_ti_mask_bytes(before);
  }
  odt_ti_delta_pass(l, dy, n, &d);
  d.s = max0(odt_bitlen64(d.or_abs) - 7);
  d.store = true;
  odt_ti_delta_pass(l, dy, n, &d);
  *zeros = d.zeros;
  return d.s;
}

static int64_t offset_gradient(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, uint32_t o) {
  uint32_t positions = l->out_size / l->n_out;
  int64_t g = 0;
  for (uint32_t b = 0; b < n; b++) {
    const int8_t* p = dy + (size_t)b * l->out_size + (size_t)o * positions;
    for (uint32_t i = 0; i < positions; i++) g += p[i];
  }
  return g;
}

static void update_offsets(const odt_ti_layer_t* l, int32_t* offset, const int8_t* dy, uint32_t n,
                           int mu) {
  uint64_t or_abs = 0;
  int k_min = 31;
  for (uint32_t o = 0; o < l->n_out; o++) {
    int64_t g = offset_gradient(l, dy, n, o);
    or_abs |= (uint64_t)(g < 0 ? -g : g);
    if (l->k[o] < k_min) k_min = l->k[o];
  }
  if (or_abs == 0) return;
  int t_o = max0(k_min - 3 < 7 ? k_min - 3 : 7);
  int ws = max0(odt_bitlen64(or_abs) - (t_o + mu));
  for (uint32_t o = 0; o < l->n_out; o++) {
    int64_t v = offset[o] - odt_half_up(offset_gradient(l, dy, n, o), ws);
    offset[o] = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
  }
}

/* Shifts for gradients of `bits`; returns the one to report. */
static int set_shift(odt_update_t* u, int bits, int mu) {
  if (!u->literal) return u->s = max0(bits - mu);
  u->s = max0(bits - 7);
  u->s2 = max0(u->s - mu);
  return u->s + u->s2;
}

static void update_weights(odt_ti_t* t, uint32_t layer, const odt_ti_layer_t* l, int8_t* weights,
                           const uint8_t* x, const int8_t* dy, uint32_t n,
                           odt_ti_layer_record_t* rec) {
  bool literal = t->rule_set == ODT_RULE_NITI_LITERAL;
  int mu = t->ctx->mu_weight, bits, ws = 0;
  uint8_t* b_prev = layer < ODT_MAX_LAYERS ? &t->b_prev[layer] : NULL;
  bool stale = t->shift_source == ODT_SHIFT_STALE;
  odt_update_t u = {.literal = literal,
                    .measure = true,
                    .rounding = t->rounding,
                    .d_clip = INT32_MAX,
                    .m_lo = literal ? -128 : -127,
                    .m_hi = 127,
                    .m8 = weights,
                    .sr_seed = t->sr_seed,
                    .step = t->step,
                    .layer = layer};
  if (stale && b_prev && *b_prev != 0) {
    ws = set_shift(&u, *b_prev, mu);
    u.d_clip = 1 << max0(mu);
    u.apply = true;
    odt_ti_gradient_pass(l, x, dy, n, &u);
    bits = odt_bitlen64(u.or_abs);
  } else {
    odt_ti_gradient_pass(l, x, dy, n, &u);
    bits = odt_bitlen64(u.or_abs);
    ws = set_shift(&u, bits, mu);
    u.measure = false;
    u.apply = true;
    if (bits != 0) odt_ti_gradient_pass(l, x, dy, n, &u);
  }
  if (stale && b_prev && bits != 0) *b_prev = (uint8_t)bits;
  if (!rec) return;
  rec->bits = (uint8_t)bits;
  rec->shift = (int8_t)ws;
  rec->k = 8;
  rec->changed = (uint32_t)u.nonzero;
  rec->abs_delta = u.abs_delta;
}

static uint32_t zeros_in(const int8_t* dy, uint32_t n) {
  uint32_t zeros = 0;
  for (uint32_t i = 0; i < n; i++) zeros += dy[i] == 0 ? 1u : 0u;
  return zeros;
}

void odt_ti_run_backward(odt_ti_t* t, const void* input, uint32_t n, odt_ti_record_t* rec) {
  const IntModelCtx_t* ctx = t->ctx;
  uint32_t first = has_prequant(ctx) ? 1u : 0u, side = 0;
  uint32_t zeros = zeros_in(ctx->grad_buf[0], n * ctx->layers[ctx->n_layers - 1u].out_size);
  int e_d = 0;
  if (rec) rec->step = t->step;
  for (uint32_t i = ctx->n_layers; i-- > first;) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    odt_ti_layer_t l = odt_ti_layer_of(d, dtype_before(ctx, i));
    const int8_t* dy = ctx->grad_buf[side];
    const uint8_t* x = i == 0 ? input : ctx->layers[i - 1u].act_buf;
    uint32_t number = i - first;
    odt_ti_layer_record_t* r = rec && number < ODT_MAX_LAYERS ? &rec->layers[number] : NULL;
    if (r) {
      r->zero_propagated = zeros;
      r->e_d = (int16_t)e_d;
    }
    if (i > first) {
      int s = propagate(&l, &ctx->layers[i - 1u], dy, n, ctx->grad_buf[side ^ 1u], &zeros);
      if (r) {
        e_d += s - nominal((const uint8_t*)l.k, l.n_out, 0) +
               odt_log2_nearest((uint64_t)nominal(l.mult, l.n_out, 1));
      }
    }
    update_offsets(&l, odt_ti_offsets(d), dy, n, ctx->mu_offset);
    update_weights(t, number, &l, odt_ti_weights(d), x, dy, n, r);
    side ^= 1u;
  }
  t->step++;
}

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
  int64_t trained = ctx->n_layers - (has_prequant(ctx) ? 1 : 0);
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

/* Rules 1.4 to 1.7 and 1.11 over a context, as backward.c has them. */
#include "round.h"
#include "ti_internal.h"

static int max0(int v) { return v > 0 ? v : 0; }

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

/* A step in progress. */
typedef struct {
  odt_ti_t* t;
  const uint8_t* input;
  uint32_t n;
  odt_ti_record_t* rec; /* may be NULL */
} step_t;

static odt_ti_layer_record_t* record_of(const step_t* s, uint32_t i) {
  const IntModelCtx_t* ctx = s->t->ctx;
  uint32_t number = odt_ti_number(ctx, i);
  bool has = s->rec && odt_ti_has_weights(&ctx->layers[i]) && number < ODT_MAX_LAYERS;
  return has ? &s->rec->layers[number] : NULL;
}

/* Offsets and weights of layer i, whose delta is there. */
static void update_layer(const step_t* s, uint32_t i) {
  const IntModelCtx_t* ctx = s->t->ctx;
  const IntLayerDesc_t* d = &ctx->layers[i];
  if (!odt_ti_has_weights(d)) return;
  uint32_t source = odt_ti_source(ctx, i, 0);
  odt_ti_layer_t l = odt_ti_layer_of(d, odt_ti_dtype_of(ctx, source));
  const int8_t* dy = odt_ti_delta_of(ctx, i);
  odt_ti_layer_record_t* r = record_of(s, i);
  if (r) r->e_d = d->e_d;
  update_offsets(&l, odt_ti_offsets(d), dy, s->n, ctx->mu_offset);
  update_weights(s->t, odt_ti_number(ctx, i), &l, odt_ti_weights(d),
                 odt_ti_values(ctx, source, s->input), dy, s->n, r);
}

static bool has_delta(const IntModelCtx_t* ctx, uint32_t source) {
  return source < ctx->n_layers && ctx->layers[source].needs_delta;
}

/* Something with weights lies at a layer or before it. */
static void mark(const IntModelCtx_t* ctx) {
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    IntLayerDesc_t* d = &ctx->layers[i];
    d->needs_delta = i > 0 || d->type != INT_LAYER_PREQUANT
                         ? odt_ti_has_weights(d) || has_delta(ctx, odt_ti_source(ctx, i, 0)) ||
                               has_delta(ctx, odt_ti_source(ctx, i, 1))
                         : 0;
    odt_ti_set_step(d);
  }
}

/* The delta of what layer i reads, once all deltas it is made of are there: at its first reader.
 * Then its readers' weights may change. */
static void pull_source(const step_t* s, uint32_t i, uint32_t source) {
  const IntModelCtx_t* ctx = s->t->ctx;
  if (odt_ti_first_reader(ctx, source) != i) return;
  uint32_t zeros = odt_ti_pull(ctx, source, s->n);
  odt_ti_layer_record_t* r = record_of(s, source);
  if (r) r->zero_propagated = zeros;
  for (uint32_t j = i; j < ctx->n_layers; j++) {
    if (odt_ti_source(ctx, j, 0) == source) update_layer(s, j);
  }
}

void odt_ti_run_backward(odt_ti_t* t, const void* input, uint32_t n, odt_ti_record_t* rec) {
  const IntModelCtx_t* ctx = t->ctx;
  const step_t s = {t, input, n, rec};
  uint32_t last = ctx->n_layers - 1u;
  mark(ctx);
  ctx->layers[last].e_d = 0;
  if (rec) rec->step = t->step;
  odt_ti_layer_record_t* r = record_of(&s, last);
  if (r) r->zero_propagated = zeros_in(ctx->grad_buf[0], n * ctx->layers[last].out_size);
  for (uint32_t i = ctx->n_layers; i-- > 0;) {
    if (!ctx->layers[i].needs_delta) continue;
    uint32_t a = odt_ti_source(ctx, i, 0), b = odt_ti_source(ctx, i, 1);
    if (has_delta(ctx, a)) pull_source(&s, i, a);
    if (b != a && has_delta(ctx, b)) pull_source(&s, i, b);
    if (!has_delta(ctx, a)) update_layer(&s, i);
  }
  t->step++;
}

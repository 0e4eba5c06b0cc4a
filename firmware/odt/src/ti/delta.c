/* Rule 1.4: the delta of a layer's output from those of the layers that read it. */
#include <string.h>

#include "round.h"
#include "ti_internal.h"

#define NOINLINE __attribute__((noinline))

int8_t* odt_ti_delta_of(const IntModelCtx_t* ctx, uint32_t i) {
  uint32_t behind = ctx->n_layers - 1u - i;
  if (behind == 0) return ctx->grad_buf[0];
  return odt_ti_is_chain(ctx) ? ctx->grad_buf[behind % 2u] : ctx->layers[i].delta_buf;
}

/* Most frequent value; ties to the smaller. */
static int32_t nominal(const uint8_t* v, uint32_t n, int32_t absent) {
  if (!v) return absent;
  uint32_t most = 0;
  int32_t value = v[0];
  for (int32_t candidate = 0; candidate < 256 && most <= n / 2u; candidate++) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) count += v[i] == candidate ? 1u : 0u;
    if (count <= most) continue;
    most = count;
    value = candidate;
  }
  return value;
}

void odt_ti_set_step(IntLayerDesc_t* d) {
  if (!odt_ti_has_weights(d)) return;
  bool conv = odt_ti_is_conv(d);
  const uint8_t* mult = (const uint8_t*)(conv ? d->conv.mult : d->linear.mult);
  const uint8_t* k = (const uint8_t*)(conv ? d->conv.k : d->linear.k);
  uint32_t n = odt_ti_n_out(d);
  d->e_step = (int8_t)(odt_log2_nearest((uint64_t)nominal(mult, n, 1)) - nominal(k, n, 0));
}

/* What crossing layer i towards input `slot` adds to a delta's exponent. */
static int exponent_step(const IntModelCtx_t* ctx, uint32_t i, uint32_t slot) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  if (odt_ti_has_weights(d)) return d->e_step;
  switch (d->type) {
    case INT_LAYER_AVGPOOL:
      return -odt_log2_nearest((uint64_t)d->pool.kH * d->pool.kW);
    case INT_LAYER_GAP:
      return -odt_log2_nearest((uint64_t)d->pool.input_h * d->pool.input_w);
    case INT_LAYER_ADD:
    case INT_LAYER_ADD_RELU: {
      int64_t m = d->add.m[slot];
      return m == 0 ? 0 : odt_log2_nearest((uint64_t)m) - 20;
    }
    default:
      return 0;
  }
}

/* Reads of one output that give it something. */
typedef struct {
  uint32_t n;
  int e_min;
  uint32_t layer; /* of the last one */
} givers_t;

static bool gives(const IntModelCtx_t* ctx, uint32_t j, uint32_t slot, uint32_t i) {
  const IntLayerDesc_t* d = &ctx->layers[j];
  if (odt_ti_source(ctx, j, slot) != i) return false;
  bool add = d->type == INT_LAYER_ADD || d->type == INT_LAYER_ADD_RELU;
  return !add || d->add.m[slot] != 0;
}

static givers_t find_givers(const IntModelCtx_t* ctx, uint32_t i) {
  givers_t g = {0};
  for (uint32_t j = i + 1u; j < ctx->n_layers; j++) {
    for (uint32_t slot = 0; slot < 2; slot++) {
      if (!gives(ctx, j, slot, i)) continue;
      int e = ctx->layers[j].e_d + exponent_step(ctx, j, slot);
      if (g.n++ == 0 || e < g.e_min) g.e_min = e;
      g.layer = j;
    }
  }
  return g;
}

/* Values of layer i's output that are worked on together. */
typedef struct {
  const IntModelCtx_t* ctx;
  uint32_t i, b, first, count;
  int e_min;
  int64_t sums[ODT_PASS_PART];
} part_t;

static NOINLINE void add_weights(part_t* p, uint32_t j, const int8_t* dy, int shift) {
  int32_t sums[ODT_PASS_PART];
  odt_ti_layer_t l =
      odt_ti_layer_of(&p->ctx->layers[j], odt_ti_dtype_of(p->ctx, odt_ti_source(p->ctx, j, 0)));
  odt_ti_delta_part(&l, dy, p->first, p->count, sums);
  for (uint32_t v = 0; v < p->count; v++) p->sums[v] += (int64_t)sums[v] * ((int64_t)1 << shift);
}

static NOINLINE void add_pass(part_t* p, uint32_t j, uint32_t slot, const int8_t* dy, int shift) {
  int32_t sums[ODT_PASS_PART];
  odt_ti_pass_t q;
  odt_ti_pass_of(p->ctx, j, &q);
  q.pass.x = (const uint8_t*)p->ctx->layers[p->i].act_buf +
             (size_t)p->b * q.in.count * odt_elem_bytes(q.in.dtype);
  odt_pass_delta_part(&q.pass, slot, dy, p->first, p->count, sums);
  for (uint32_t v = 0; v < p->count; v++) p->sums[v] += (int64_t)sums[v] * ((int64_t)1 << shift);
}

static void add_up(part_t* p) {
  const IntModelCtx_t* ctx = p->ctx;
  memset(p->sums, 0, sizeof p->sums);
  for (uint32_t j = p->i + 1u; j < ctx->n_layers; j++) {
    const int8_t* dy = odt_ti_delta_of(ctx, j) + (size_t)p->b * ctx->layers[j].out_size;
    for (uint32_t slot = 0; slot < 2; slot++) {
      if (!gives(ctx, j, slot, p->i)) continue;
      int shift = ctx->layers[j].e_d + exponent_step(ctx, j, slot) - p->e_min;
      if (shift > 24) shift = 24;
      if (odt_ti_has_weights(&ctx->layers[j])) {
        add_weights(p, j, dy, shift);
      } else {
        add_pass(p, j, slot, dy, shift);
      }
    }
  }
}

/* One pass over the whole delta: measures, or rounds by s and stores. */
static NOINLINE uint64_t general_pass(part_t* p, uint32_t n, int s, int8_t* out, uint32_t* zeros) {
  const IntLayerDesc_t* d = &p->ctx->layers[p->i];
  uint64_t or_abs = 0;
  for (p->b = 0; p->b < n; p->b++) {
    const uint8_t* mask =
        odt_ti_is_relu(d) ? d->relu_mask + (size_t)p->b * odt_ti_mask_bytes(d) : NULL;
    for (p->first = 0; p->first < d->out_size; p->first += ODT_PASS_PART) {
      uint32_t left = d->out_size - p->first;
      p->count = left < ODT_PASS_PART ? left : ODT_PASS_PART;
      add_up(p);
      for (uint32_t v = 0; v < p->count; v++) {
        int64_t sum = mask && !odt_ti_bit(mask, p->first + v) ? 0 : p->sums[v];
        or_abs |= sum < 0 ? 0u - (uint64_t)sum : (uint64_t)sum;
        if (!out) continue;
        sum = odt_half_up(sum, s);
        if (sum == 0) (*zeros)++;
        out[(size_t)p->b * d->out_size + p->first + v] = (int8_t)(sum > 127    ? 127
                                                                  : sum < -127 ? -127
                                                                               : sum);
      }
    }
  }
  return or_abs;
}

static int shift_of(uint64_t or_abs) {
  int bits = odt_bitlen64(or_abs);
  return bits > 7 ? bits - 7 : 0;
}

/* The only reader has weights. */
static int single(const IntModelCtx_t* ctx, uint32_t i, uint32_t reader, uint32_t n,
                  uint32_t* zeros) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  odt_ti_layer_t l = odt_ti_layer_of(&ctx->layers[reader], odt_ti_dtype(d));
  odt_ti_delta_t delta = {.out = odt_ti_delta_of(ctx, i), .count = d->out_size};
  if (odt_ti_is_relu(d)) {
    delta.mask = d->relu_mask;
    delta.mask_bytes = odt_ti_mask_bytes(d);
  }
  odt_ti_delta_pass(&l, odt_ti_delta_of(ctx, reader), n, &delta);
  delta.s = shift_of(delta.or_abs);
  delta.store = true;
  odt_ti_delta_pass(&l, odt_ti_delta_of(ctx, reader), n, &delta);
  *zeros = delta.zeros;
  return delta.s;
}

uint32_t odt_ti_pull(const IntModelCtx_t* ctx, uint32_t i, uint32_t n) {
  IntLayerDesc_t* d = &ctx->layers[i];
  givers_t g = find_givers(ctx, i);
  uint32_t zeros = 0;
  int s = 0;
  if (g.n == 1 && odt_ti_has_weights(&ctx->layers[g.layer])) {
    s = single(ctx, i, g.layer, n, &zeros);
  } else if (g.n == 0) {
    zeros = n * d->out_size;
    memset(odt_ti_delta_of(ctx, i), 0, zeros);
  } else {
    part_t p = {.ctx = ctx, .i = i, .e_min = g.e_min};
    s = shift_of(general_pass(&p, n, 0, NULL, NULL));
    general_pass(&p, n, s, odt_ti_delta_of(ctx, i), &zeros);
  }
  int e = g.n == 0 ? 0 : g.e_min + s;
  d->e_d = (int16_t)(e > INT16_MAX ? INT16_MAX : e < INT16_MIN ? INT16_MIN : e);
  return zeros;
}

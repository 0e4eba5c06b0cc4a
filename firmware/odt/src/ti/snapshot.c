/* odt_weights v1 of a context, and a layer's figures. */
#include <string.h>

#include "ti_internal.h"

#define HEAD_BYTES 44u
#define LAYER_BYTES 20u

static uint32_t padded(uint32_t n) { return (n + 3u) & ~3u; }

static void head(const odt_ti_t* t, const uint8_t model_hash[32], uint8_t* out) {
  memset(out, 0, HEAD_BYTES);
  memcpy(out, "ODTW", 4);
  odt_put16(out + 4, 1);
  odt_put16(out + 6, ODT_RULES_VERSION);
  out[8] = t->rule_set;
  out[9] = (uint8_t)odt_ti_number(t->ctx, t->ctx->n_layers);
  memcpy(out + 12, model_hash, 32);
}

static void layer_head(const IntLayerDesc_t* d, uint8_t* out) {
  bool conv = odt_ti_is_conv(d);
  memset(out, 0, LAYER_BYTES);
  out[0] = conv ? ODT_OP_CONV2D : ODT_OP_LINEAR;
  out[1] = ODT_S8;
  out[2] = 8;
  if (conv) {
    const IntConv_t* c = &d->conv;
    out[3] = 4;
    odt_put16(out + 4, c->n_filters);
    odt_put16(out + 6, odt_ti_n_weights(d) / ((uint32_t)c->n_filters * c->kH * c->kW));
    odt_put16(out + 8, c->kH);
    odt_put16(out + 10, c->kW);
  } else {
    out[3] = 2;
    odt_put16(out + 4, d->in_size);
    odt_put16(out + 6, d->out_size);
  }
  odt_put32(out + 12, odt_ti_n_weights(d));
  odt_put32(out + 16, odt_ti_n_out(d));
}

uint32_t odt_ti_snapshot_size(const IntModelCtx_t* ctx) {
  uint32_t n = HEAD_BYTES;
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    if (!odt_ti_has_weights(d)) continue;
    n += LAYER_BYTES + padded(odt_ti_n_weights(d)) + 4u * odt_ti_n_out(d);
  }
  return n;
}

/* Where the bytes go: memory, a hash, or a comparison's other side. */
typedef struct {
  uint8_t* out;
  odt_sha256_t* sha;
} sink_t;

static void give(sink_t* s, const void* data, uint32_t n) {
  if (s->sha) {
    odt_sha256_update(s->sha, data, n);
  } else {
    memcpy(s->out, data, n);
    s->out += n;
  }
}

static void write_all(const odt_ti_t* t, const uint8_t model_hash[32], sink_t* s) {
  static const uint8_t kZeros[4] = {0, 0, 0, 0};
  uint8_t bytes[HEAD_BYTES];
  head(t, model_hash, bytes);
  give(s, bytes, HEAD_BYTES);
  for (uint32_t i = 0; i < t->ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &t->ctx->layers[i];
    if (!odt_ti_has_weights(d)) continue;
    uint32_t n = odt_ti_n_weights(d);
    layer_head(d, bytes);
    give(s, bytes, LAYER_BYTES);
    give(s, odt_ti_weights(d), n);
    give(s, kZeros, padded(n) - n);
    give(s, odt_ti_offsets(d), 4u * odt_ti_n_out(d));
  }
}

odt_status_t odt_ti_snapshot(const odt_ti_t* t, const uint8_t model_hash[32], uint8_t* out,
                             uint32_t bytes, odt_error_t* err) {
  uint32_t need = odt_ti_snapshot_size(t->ctx);
  if (bytes < need) {
    return odt_fail(err, ODT_RESOURCE_EXHAUSTED, "bytes", -1, bytes, need, UINT32_MAX);
  }
  sink_t s = {.out = out};
  write_all(t, model_hash, &s);
  return ODT_OK;
}

void odt_ti_weights_hash(const odt_ti_t* t, const uint8_t model_hash[32], uint8_t hash[32]) {
  odt_sha256_t sha;
  odt_sha256_init(&sha);
  sink_t s = {.sha = &sha};
  write_all(t, model_hash, &s);
  odt_sha256_final(&sha, hash);
}

/* Everything but the values must be what a snapshot of t would have. */
static odt_status_t check_layout(const odt_ti_t* t, const uint8_t model_hash[32], const uint8_t* in,
                                 odt_error_t* err) {
  uint8_t want[HEAD_BYTES];
  head(t, model_hash, want);
  if (memcmp(in, want, 6) != 0 || in[9] != want[9]) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "odt_weights: header", -1, in[9], want[9], want[9]);
  }
  if (memcmp(in + 6, want + 6, HEAD_BYTES - 6u) != 0) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "odt_weights: other model or rules", -1, 0, 0, 0);
  }
  in += HEAD_BYTES;
  for (uint32_t i = 0; i < t->ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &t->ctx->layers[i];
    if (!odt_ti_has_weights(d)) continue;
    layer_head(d, want);
    if (memcmp(in, want, LAYER_BYTES) != 0) {
      return odt_fail(err, ODT_INVALID_ARGUMENT, "odt_weights: layer", (int32_t)i, 0, 0, 0);
    }
    in += LAYER_BYTES + padded(odt_ti_n_weights(d)) + 4u * odt_ti_n_out(d);
  }
  return ODT_OK;
}

odt_status_t odt_ti_restore(odt_ti_t* t, const uint8_t model_hash[32], const uint8_t* in,
                            uint32_t bytes, odt_error_t* err) {
  uint32_t need = odt_ti_snapshot_size(t->ctx);
  if (bytes != need) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "odt_weights: bytes", -1, bytes, need, need);
  }
  odt_status_t st = check_layout(t, model_hash, in, err);
  if (st != ODT_OK) return st;
  in += HEAD_BYTES;
  for (uint32_t i = 0; i < t->ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &t->ctx->layers[i];
    if (!odt_ti_has_weights(d)) continue;
    uint32_t n = odt_ti_n_weights(d), n_offsets = 4u * odt_ti_n_out(d);
    in += LAYER_BYTES;
    memcpy(odt_ti_weights(d), in, n);
    in += padded(n);
    memcpy(odt_ti_offsets(d), in, n_offsets);
    in += n_offsets;
  }
  memset(t->b_prev, 0, sizeof t->b_prev);
  return ODT_OK;
}

/* A unit (filter or output) is dead where none of its outputs is above 0 in n samples. */
static bool alive(const IntLayerDesc_t* d, uint32_t unit, uint32_t n) {
  uint32_t positions = d->out_size / odt_ti_n_out(d);
  for (uint32_t b = 0; b < n; b++) {
    const uint8_t* mask = d->relu_mask + (size_t)b * odt_ti_mask_bytes(d);
    for (uint32_t i = unit * positions; i < (unit + 1u) * positions; i++) {
      if (odt_ti_bit(mask, i)) return true;
    }
  }
  return false;
}

void odt_ti_layer_stats(const odt_ti_t* t, uint16_t layer, int32_t n, odt_ti_layer_stats_t* stats) {
  memset(stats, 0, sizeof *stats);
  if (layer >= t->ctx->n_layers || !odt_ti_has_weights(&t->ctx->layers[layer])) return;
  const IntLayerDesc_t* d = &t->ctx->layers[layer];
  const int8_t* w = odt_ti_weights(d);
  stats->w_min = stats->w_max = w[0];
  for (uint32_t i = 0; i < odt_ti_n_weights(d); i++) {
    if (w[i] < stats->w_min) stats->w_min = w[i];
    if (w[i] > stats->w_max) stats->w_max = w[i];
    if (w[i] >= 127 || w[i] <= -127) stats->saturated++;
  }
  for (uint32_t u = 0; odt_ti_is_relu(d) && u < odt_ti_n_out(d); u++) {
    if (!alive(d, u, n > 0 ? (uint32_t)n : 0u)) stats->dead_units++;
  }
}

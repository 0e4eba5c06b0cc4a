/* What a context must fulfil before anything runs over it; its buffers at a batch of one's own. */
#include "ti_internal.h"

static odt_status_t bad(odt_error_t* err, const char* what, uint32_t layer, int64_t got, int64_t lo,
                        int64_t hi) {
  return odt_fail(err, ODT_INVALID_ARGUMENT, what, (int32_t)layer, got, lo, hi);
}

static uint32_t channels_in(const IntLayerDesc_t* d) {
  return d->in_size / ((uint32_t)d->conv.input_h * d->conv.input_w);
}

uint32_t odt_ti_n_weights(const IntLayerDesc_t* d) {
  if (!odt_ti_is_conv(d)) return (uint32_t)d->in_size * d->out_size;
  const IntConv_t* c = &d->conv;
  return (uint32_t)c->n_filters * (channels_in(d) / odt_ti_groups(d)) * c->kH * c->kW;
}

uint8_t odt_ti_dtype(const IntLayerDesc_t* d) {
  if (d->act_dtype != 0) return d->act_dtype;
  return odt_ti_is_relu(d) ? ODT_U8 : ODT_S8;
}

uint8_t odt_ti_input_dtype(const IntModelCtx_t* ctx) {
  if (ctx->layers[0].type == INT_LAYER_PREQUANT) return odt_ti_dtype(&ctx->layers[0]);
  return ctx->input_type == INT_INPUT_UINT8   ? ODT_U8
         : ctx->input_type == INT_INPUT_INT16 ? ODT_S16
                                              : ODT_S8;
}

static odt_status_t check_conv(const IntLayerDesc_t* d, uint32_t i, odt_error_t* err) {
  const IntConv_t* c = &d->conv;
  uint32_t plane = (uint32_t)c->input_h * c->input_w;
  if (plane == 0 || d->in_size % plane != 0) {
    return bad(err, "conv: input_h * input_w against in_size", i, plane, 1, d->in_size);
  }
  if (c->n_filters == 0 || c->kH == 0 || c->kW == 0) {
    return bad(err, "conv: n_filters, kH, kW", i, 0, 1, 65535);
  }
  uint32_t groups = odt_ti_groups(d), in_ch = channels_in(d);
  if (in_ch % groups != 0 || c->n_filters % groups != 0) {
    return bad(err, "conv: groups", i, groups, 1, in_ch);
  }
  uint64_t out = (uint64_t)c->n_filters * c->conv_out_h * c->conv_out_w;
  if (out != d->out_size) {
    return bad(err, "conv: n_filters * conv_out_h * conv_out_w against out_size", i, (int64_t)out,
               d->out_size, d->out_size);
  }
  return ODT_OK;
}

/* Ranges of mult, k and clip; the last layer gives int8. */
static odt_status_t check_values(const IntLayerDesc_t* d, uint32_t i, bool last, odt_error_t* err) {
  const int8_t* k = odt_ti_is_conv(d) ? d->conv.k : d->linear.k;
  const int8_t* mult = odt_ti_is_conv(d) ? d->conv.mult : d->linear.mult;
  if (!odt_ti_weights(d) || !odt_ti_offsets(d) || !k) {
    return bad(err, "weights, offset or k: NULL", i, 0, 1, 1);
  }
  for (uint32_t o = 0; o < odt_ti_n_out(d); o++) {
    if (k[o] < 0 || k[o] > 31) return bad(err, "k", i, k[o], 0, 31);
    if (mult && mult[o] == 0) return bad(err, "mult", i, 0, 1, 255);
  }
  if (d->clip_lo > d->clip_hi) return bad(err, "clip_lo", i, d->clip_lo, INT32_MIN, d->clip_hi);
  if (d->act_dtype > ODT_S16) return bad(err, "act_dtype", i, d->act_dtype, 0, ODT_S16);
  if (last && odt_ti_dtype(d) != ODT_S8) {
    return bad(err, "last layer: int8 logits", i, odt_ti_dtype(d), ODT_S8, ODT_S8);
  }
  return ODT_OK;
}

static odt_status_t check_prequant(const IntModelCtx_t* ctx, odt_error_t* err) {
  const IntLayerDesc_t* d = &ctx->layers[0];
  const IntPrequant_t* p = &d->prequant;
  if (ctx->n_layers < 2) return bad(err, "n_layers behind PREQUANT", 0, 0, 1, 65535);
  if (d->in_size != d->out_size) {
    return bad(err, "prequant: out_size", 0, d->out_size, d->in_size, d->in_size);
  }
  if (!p->offset || !p->scale || p->n_ch == 0 || d->in_size % p->n_ch != 0) {
    return bad(err, "prequant: offset, scale, n_ch", 0, p->n_ch, 1, d->in_size);
  }
  if (d->clip_lo < -32768 || d->clip_hi > 32767 || d->act_dtype > ODT_S16) {
    return bad(err, "prequant: clip", 0, d->clip_lo, -32768, 32767);
  }
  return ODT_OK;
}

odt_status_t odt_ti_check(const IntModelCtx_t* ctx, odt_error_t* err) {
  if (!ctx || !ctx->layers || ctx->n_layers == 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "ctx, layers or n_layers: none", -1, 0, 1, 65535);
  }
  if (!ctx->grad_buf[0] || !ctx->grad_buf[1]) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "grad_buf: NULL", -1, 0, 1, 1);
  }
  bool prequant = ctx->layers[0].type == INT_LAYER_PREQUANT;
  if (!prequant && (ctx->input_type < INT_INPUT_INT8 || ctx->input_type > INT_INPUT_INT16)) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "input_type", -1, ctx->input_type, INT_INPUT_INT8,
                    INT_INPUT_INT16);
  }
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    if (d->in_size == 0 || d->out_size == 0) return bad(err, "in_size or out_size", i, 0, 1, 65535);
    if (!d->act_buf) return bad(err, "act_buf: NULL", i, 0, 1, 1);
    if (i > 0 && d->in_size != ctx->layers[i - 1].out_size) {
      return bad(err, "in_size", i, d->in_size, ctx->layers[i - 1].out_size,
                 ctx->layers[i - 1].out_size);
    }
    odt_status_t st = ODT_OK;
    if (i == 0 && prequant) {
      st = check_prequant(ctx, err);
    } else if (d->type < INT_LAYER_CONV2D || d->type > INT_LAYER_LINEAR_RELU) {
      st = bad(err, "type", i, d->type, INT_LAYER_CONV2D, INT_LAYER_LINEAR_RELU);
    } else {
      if (odt_ti_is_relu(d) && !d->relu_mask) return bad(err, "relu_mask: NULL", i, 0, 1, 1);
      if (odt_ti_is_conv(d)) st = check_conv(d, i, err);
      if (st == ODT_OK) st = check_values(d, i, i + 1u == ctx->n_layers, err);
    }
    if (st != ODT_OK) return st;
  }
  return ODT_OK;
}

odt_ti_layer_t odt_ti_layer_of(const IntLayerDesc_t* d, uint8_t x_dtype) {
  odt_ti_layer_t l = {.conv = odt_ti_is_conv(d),
                      .relu = odt_ti_is_relu(d),
                      .x_dtype = x_dtype,
                      .y_dtype = odt_ti_dtype(d),
                      .in_size = d->in_size,
                      .out_size = d->out_size,
                      .n_out = odt_ti_n_out(d),
                      .weights = odt_ti_weights(d),
                      .offset = odt_ti_offsets(d),
                      .lo = d->clip_lo,
                      .hi = d->clip_hi};
  int32_t lo = l.y_dtype == ODT_U8 ? 0 : l.y_dtype == ODT_S8 ? -128 : -32768;
  int32_t hi = l.y_dtype == ODT_U8 ? 255 : l.y_dtype == ODT_S8 ? 127 : 32767;
  if (l.relu && l.lo < 0) l.lo = 0;
  if (l.lo < lo) l.lo = lo;
  if (l.hi > hi) l.hi = hi;
  if (!l.conv) {
    l.mult = (const uint8_t*)d->linear.mult;
    l.k = d->linear.k;
    return l;
  }
  const IntConv_t* c = &d->conv;
  l.mult = (const uint8_t*)c->mult;
  l.k = c->k;
  l.c_group = channels_in(d) / odt_ti_groups(d);
  l.o_group = c->n_filters / odt_ti_groups(d);
  l.h_in = c->input_h;
  l.w_in = c->input_w;
  l.h_out = c->conv_out_h;
  l.w_out = c->conv_out_w;
  l.k_h = c->kH;
  l.k_w = c->kW;
  l.stride_h = c->stride_h ? c->stride_h : 1u;
  l.stride_w = c->stride_w ? c->stride_w : 1u;
  l.pad_t = c->pad_h;
  l.pad_l = c->pad_w;
  l.dil_h = c->dil_h ? c->dil_h : 1u;
  l.dil_w = c->dil_w ? c->dil_w : 1u;
  return l;
}

/* ---- buffers at a batch chosen at run time ---- */

static uint32_t padded(uint32_t bytes) { return (bytes + 3u) & ~3u; }

/* Largest value count of a grad_buf; an activation of two bytes needs two of its. */
static uint32_t widest(const IntModelCtx_t* ctx) {
  uint32_t most = ctx->layers[0].in_size;
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    uint32_t n = ctx->layers[i].out_size * odt_elem_bytes(odt_ti_dtype(&ctx->layers[i]));
    if (n > most) most = n;
  }
  return most;
}

/* Hands out from memory; NULL: only counts. */
static uint32_t lay(IntLayerDesc_t* layers, const IntModelCtx_t* ctx, uint32_t batch,
                    uint8_t* memory, int8_t* grad[2]) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    uint32_t act = padded(batch * d->out_size * odt_elem_bytes(odt_ti_dtype(d)));
    uint32_t mask = odt_ti_is_relu(d) ? padded(batch * odt_ti_mask_bytes(d)) : 0u;
    if (memory) {
      layers[i].act_buf = memory + used;
      layers[i].relu_mask = mask ? memory + used + act : NULL;
    }
    used += act + mask;
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (memory) grad[i] = (int8_t*)(memory + used);
    used += padded(batch * widest(ctx));
  }
  return used;
}

uint32_t odt_ti_buffer_bytes(const IntModelCtx_t* ctx, uint16_t batch) {
  return lay(NULL, ctx, batch, NULL, NULL);
}

odt_status_t odt_ti_bind(IntModelCtx_t* ctx, uint16_t batch, void* memory, uint32_t bytes,
                         odt_error_t* err) {
  if (batch < 1 || batch > ODT_MAX_BATCH) {
    return odt_fail(err, ODT_OUT_OF_RANGE, "batch", -1, batch, 1, ODT_MAX_BATCH);
  }
  uint32_t need = odt_ti_buffer_bytes(ctx, batch);
  if (!memory || ((uintptr_t)memory & 3u) != 0 || bytes < need) {
    return odt_fail(err, ODT_RESOURCE_EXHAUSTED, "memory: 4-byte aligned bytes", -1,
                    memory ? bytes : 0, need, UINT32_MAX);
  }
  lay(ctx->layers, ctx, batch, memory, ctx->grad_buf);
  return ODT_OK;
}

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

static odt_status_t check_scales(const int8_t* k, const int8_t* mult, uint32_t n, uint32_t i,
                                 odt_error_t* err) {
  for (uint32_t o = 0; o < n; o++) {
    if (k[o] < 0 || k[o] > 31) return bad(err, "k", i, k[o], 0, 31);
    if (mult && mult[o] == 0) return bad(err, "mult", i, 0, 1, 255);
  }
  return ODT_OK;
}

static odt_status_t check_weights(const IntLayerDesc_t* d, uint32_t i, odt_error_t* err) {
  const int8_t* k = odt_ti_is_conv(d) ? d->conv.k : d->linear.k;
  const int8_t* mult = odt_ti_is_conv(d) ? d->conv.mult : d->linear.mult;
  if (!odt_ti_weights(d) || !odt_ti_offsets(d) || !k) {
    return bad(err, "weights, offset or k: NULL", i, 0, 1, 1);
  }
  return check_scales(k, mult, odt_ti_n_out(d), i, err);
}

/* MAXPOOL, AVGPOOL, GAP, RESIZE: planes; a window that sees only padding has no maximum. */
static odt_status_t check_pool(const IntLayerDesc_t* d, uint32_t i, odt_error_t* err) {
  const IntPool_t* q = &d->pool;
  uint32_t plane = (uint32_t)q->input_h * q->input_w;
  bool gap = d->type == INT_LAYER_GAP, scaled = gap || d->type == INT_LAYER_AVGPOOL;
  if (plane == 0 || d->in_size % plane != 0) {
    return bad(err, "pool: input_h * input_w against in_size", i, plane, 1, d->in_size);
  }
  uint32_t channels = d->in_size / plane;
  uint64_t out = (uint64_t)channels * q->out_h * q->out_w;
  if (out != d->out_size || (gap && out != channels)) {
    return bad(err, "pool: channels * out_h * out_w against out_size", i, (int64_t)out,
               gap ? channels : d->out_size, gap ? channels : d->out_size);
  }
  if (d->type == INT_LAYER_RESIZE) return ODT_OK;
  if (!gap && (q->kH == 0 || q->kW == 0)) return bad(err, "pool: kH, kW", i, 0, 1, 65535);
  if (scaled) {
    if (!q->offset || !q->k) return bad(err, "pool: offset or k: NULL", i, 0, 1, 1);
    if (q->n_ch != 1 && q->n_ch != channels) {
      return bad(err, "pool: n_ch", i, q->n_ch, 1, channels);
    }
    return check_scales(q->k, q->mult, q->n_ch, i, err);
  }
  int64_t last_h = ((int64_t)q->out_h - 1) * (q->stride_h ? q->stride_h : 1) - q->pad_h;
  int64_t last_w = ((int64_t)q->out_w - 1) * (q->stride_w ? q->stride_w : 1) - q->pad_w;
  bool seen = q->pad_h < q->kH && q->pad_w < q->kW && last_h < q->input_h && last_w < q->input_w;
  return seen ? ODT_OK : bad(err, "pool: a window of padding alone", i, last_h, 0, q->input_h);
}

/* Layers without weights. */
static odt_status_t check_plain(const IntModelCtx_t* ctx, uint32_t i, odt_error_t* err) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  uint8_t in = odt_ti_dtype_of(ctx, odt_ti_source(ctx, i, 0));
  if (d->act_dtype == 0) return bad(err, "act_dtype", i, 0, ODT_S8, ODT_S16);
  bool keeps =
      d->type == INT_LAYER_MAXPOOL || d->type == INT_LAYER_RESIZE || d->type == INT_LAYER_FLATTEN;
  if (keeps && d->act_dtype != in) return bad(err, "act_dtype", i, d->act_dtype, in, in);
  if (odt_ti_has_two(d)) {
    uint32_t second = odt_ti_count_of(ctx, odt_ti_source(ctx, i, 1));
    bool concat = d->type == INT_LAYER_CONCAT;
    int64_t want = concat ? (int64_t)d->in_size + second : d->in_size;
    if (!concat && second != d->in_size) {
      return bad(err, "add: values of in1", i, second, d->in_size, d->in_size);
    }
    for (uint32_t f = 0; !concat && f < 2u; f++) { /* rule 1.4 has no delta for it */
      if (d->add.m[f] < 0) return bad(err, "add: m", i, d->add.m[f], 0, INT32_MAX);
    }
    return d->out_size == want ? ODT_OK : bad(err, "out_size", i, d->out_size, want, want);
  }
  if (d->type != INT_LAYER_FLATTEN) return check_pool(d, i, err);
  return d->out_size == d->in_size ? ODT_OK
                                   : bad(err, "out_size", i, d->out_size, d->in_size, d->in_size);
}

/* One input: of an earlier layer or the caller's. */
static bool is_there(const IntModelCtx_t* ctx, uint32_t i, uint32_t in) {
  if (in == INT_FROM_INPUT) return ctx->layers[0].type != INT_LAYER_PREQUANT;
  return in <= i;
}

static odt_status_t check_links(const IntModelCtx_t* ctx, uint32_t i, bool chain,
                                odt_error_t* err) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  bool last = i + 1u == ctx->n_layers;
  if (!is_there(ctx, i, d->in0)) return bad(err, "in0", i, d->in0, 0, i);
  if (odt_ti_has_two(d) ? d->in1 == 0 || !is_there(ctx, i, d->in1) : d->in1 != 0) {
    return bad(err, "in1", i, d->in1, odt_ti_has_two(d) ? 1 : 0, odt_ti_has_two(d) ? i : 0);
  }
  uint32_t count = odt_ti_count_of(ctx, odt_ti_source(ctx, i, 0));
  if (d->in_size != count) return bad(err, "in_size", i, d->in_size, count, count);
  return chain || last || d->delta_buf ? ODT_OK : bad(err, "delta_buf: NULL", i, 0, 1, 1);
}

/* Clip, type, mask; the last layer gives int8. */
static odt_status_t check_output(const IntLayerDesc_t* d, uint32_t i, bool last, odt_error_t* err) {
  if (odt_ti_is_relu(d) && !d->relu_mask) return bad(err, "relu_mask: NULL", i, 0, 1, 1);
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

static odt_status_t check_layer(const IntModelCtx_t* ctx, uint32_t i, bool chain,
                                odt_error_t* err) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  if (d->in_size == 0 || d->out_size == 0) return bad(err, "in_size or out_size", i, 0, 1, 65535);
  if (!d->act_buf) return bad(err, "act_buf: NULL", i, 0, 1, 1);
  odt_status_t st = check_links(ctx, i, chain, err);
  if (st != ODT_OK) return st;
  if (d->type == INT_LAYER_PREQUANT) return check_prequant(ctx, err);
  st = check_output(d, i, i + 1u == ctx->n_layers, err);
  if (st != ODT_OK) return st;
  if (!odt_ti_has_weights(d)) return check_plain(ctx, i, err);
  if (odt_ti_is_conv(d)) st = check_conv(d, i, err);
  return st == ODT_OK ? check_weights(d, i, err) : st;
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
    int lowest = i == 0 && prequant ? INT_LAYER_PREQUANT : INT_LAYER_CONV2D;
    if ((int)d->type < lowest || d->type > INT_LAYER_FLATTEN) {
      return bad(err, "type", i, d->type, lowest, INT_LAYER_FLATTEN);
    }
  }
  bool chain = odt_ti_is_chain(ctx);
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    odt_status_t st = check_layer(ctx, i, chain, err);
    if (st != ODT_OK) return st;
  }
  for (uint32_t i = 0; i + 1u < ctx->n_layers; i++) {
    if (odt_ti_first_reader(ctx, i) == ctx->n_layers) {
      return bad(err, "output: not read", i, 0, 1, ctx->n_layers);
    }
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
  bool chain = odt_ti_is_chain(ctx);
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    uint32_t act = padded(batch * d->out_size * odt_elem_bytes(odt_ti_dtype(d)));
    uint32_t mask = odt_ti_is_relu(d) ? padded(batch * odt_ti_mask_bytes(d)) : 0u;
    uint32_t delta = chain ? 0u : act;
    if (memory) {
      layers[i].act_buf = memory + used;
      layers[i].relu_mask = mask ? memory + used + act : NULL;
      layers[i].delta_buf = delta ? (int8_t*)(memory + used + act + mask) : NULL;
    }
    used += act + mask + delta;
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

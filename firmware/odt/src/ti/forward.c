/* Rule 1.2 over a context: batches, and one sample. */
#include <string.h>

#include "ti_internal.h"

static bool quantises(const IntModelCtx_t* ctx, uint32_t i) {
  return ctx->layers[i].type == INT_LAYER_PREQUANT;
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

/* A layer made ready, for as many samples as there are. */
typedef struct {
  bool weights;
  union {
    odt_ti_layer_t layer;
    odt_ti_pass_t pass;
  } u;
} ready_t;

static void get_ready(const IntModelCtx_t* ctx, uint32_t i, ready_t* r) {
  r->weights = odt_ti_has_weights(&ctx->layers[i]);
  if (r->weights) {
    r->u.layer = odt_ti_layer_of(&ctx->layers[i], odt_ti_dtype_of(ctx, odt_ti_source(ctx, i, 0)));
  } else {
    odt_ti_pass_of(ctx, i, &r->u.pass);
  }
}

static void run_ready(ready_t* r, const uint8_t* x, const uint8_t* x1, uint8_t* y) {
  if (r->weights) {
    odt_ti_forward_layer(&r->u.layer, x, y);
    return;
  }
  odt_ti_pass_t* p = &r->u.pass;
  if (p->op.kind == ODT_OP_FLATTEN) {
    if (y != x) memcpy(y, x, (size_t)p->in.count * odt_elem_bytes(p->in.dtype));
    return;
  }
  p->pass.x = x;
  p->pass.x1 = x1;
  odt_pass_forward(&p->pass, y);
}

/* Bytes of one sample of what layer i reads in `slot`; 0: nothing. */
static size_t source_bytes(const IntModelCtx_t* ctx, uint32_t i, uint32_t slot) {
  uint32_t source = odt_ti_source(ctx, i, slot);
  if (source == ODT_TI_NONE) return 0;
  return (size_t)odt_ti_count_of(ctx, source) * odt_elem_bytes(odt_ti_dtype_of(ctx, source));
}

static const uint8_t* values_of(const IntModelCtx_t* ctx, uint32_t i, uint32_t slot,
                                const uint8_t* input) {
  uint32_t source = odt_ti_source(ctx, i, slot);
  return source == ODT_TI_NONE ? NULL : odt_ti_values(ctx, source, input);
}

static void forward_layer(const IntModelCtx_t* ctx, uint32_t i, const uint8_t* input, uint32_t n) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  const uint8_t *x = values_of(ctx, i, 0, input), *x1 = values_of(ctx, i, 1, input);
  size_t x_bytes = source_bytes(ctx, i, 0), x1_bytes = source_bytes(ctx, i, 1);
  uint8_t dtype = odt_ti_dtype(d);
  size_t y_bytes = (size_t)d->out_size * odt_elem_bytes(dtype);
  ready_t r;
  get_ready(ctx, i, &r);
  for (uint32_t b = 0; b < n; b++) {
    uint8_t* y = (uint8_t*)d->act_buf + b * y_bytes;
    run_ready(&r, x + b * x_bytes, x1 ? x1 + b * x1_bytes : NULL, y);
    if (odt_ti_is_relu(d)) write_mask(d, dtype, y, d->relu_mask + (size_t)b * odt_ti_mask_bytes(d));
  }
}

void odt_ti_run_forward(const IntModelCtx_t* ctx, const void* input, uint32_t n) {
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    if (!quantises(ctx, i)) {
      forward_layer(ctx, i, input, n);
      continue;
    }
    for (uint32_t b = 0; b < n; b++) {
      prequant(d, input, b,
               (uint8_t*)d->act_buf + (size_t)b * d->out_size * odt_elem_bytes(odt_ti_dtype(d)));
    }
  }
}

/* One sample's values of a source, while INTODT_Infer runs. */
static const uint8_t* scratch_of(const IntModelCtx_t* ctx, uint32_t source, const void* input,
                                 bool chain) {
  if (source == ODT_TI_NONE) return NULL;
  if (source == ODT_TI_INPUT) return input;
  return (const uint8_t*)(chain ? ctx->grad_buf[source % 2u] : ctx->layers[source].delta_buf);
}

void odt_ti_run_infer(const IntModelCtx_t* ctx, const void* input, int8_t* logits) {
  bool chain = odt_ti_is_chain(ctx);
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    const IntLayerDesc_t* d = &ctx->layers[i];
    int8_t* y = chain ? ctx->grad_buf[i % 2u] : d->delta_buf;
    if (i + 1u == ctx->n_layers) y = logits;
    if (quantises(ctx, i)) {
      prequant(d, input, 0, (uint8_t*)y);
      continue;
    }
    ready_t r;
    get_ready(ctx, i, &r);
    run_ready(&r, scratch_of(ctx, odt_ti_source(ctx, i, 0), input, chain),
              scratch_of(ctx, odt_ti_source(ctx, i, 1), input, chain), (uint8_t*)y);
  }
}

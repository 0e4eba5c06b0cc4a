/* How the layers of a context hang together, and those without weights as the library's ops. */
#include "ti_internal.h"

static uint32_t named(uint32_t in) { return in == INT_FROM_INPUT ? ODT_TI_INPUT : in - 1u; }

uint32_t odt_ti_source(const IntModelCtx_t* ctx, uint32_t i, uint32_t slot) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  if (slot == 1) return odt_ti_has_two(d) && d->in1 != 0 ? named(d->in1) : ODT_TI_NONE;
  if (d->in0 != 0) return named(d->in0);
  return i == 0 ? ODT_TI_INPUT : i - 1u;
}

bool odt_ti_is_chain(const IntModelCtx_t* ctx) {
  for (uint32_t i = 0; i < ctx->n_layers; i++) {
    uint32_t front = i == 0 ? ODT_TI_INPUT : i - 1u;
    if (odt_ti_has_two(&ctx->layers[i]) || odt_ti_source(ctx, i, 0) != front) return false;
  }
  return true;
}

uint32_t odt_ti_first_reader(const IntModelCtx_t* ctx, uint32_t i) {
  uint32_t j = i + 1u;
  while (j < ctx->n_layers && odt_ti_source(ctx, j, 0) != i && odt_ti_source(ctx, j, 1) != i) j++;
  return j;
}

uint32_t odt_ti_number(const IntModelCtx_t* ctx, uint32_t i) {
  uint32_t n = 0;
  for (uint32_t j = 0; j < i; j++) n += odt_ti_has_weights(&ctx->layers[j]) ? 1u : 0u;
  return n;
}

uint8_t odt_ti_dtype_of(const IntModelCtx_t* ctx, uint32_t source) {
  return source == ODT_TI_INPUT ? odt_ti_input_dtype(ctx) : odt_ti_dtype(&ctx->layers[source]);
}

/* The first layer reads the caller's input and knows how long it is. */
uint32_t odt_ti_count_of(const IntModelCtx_t* ctx, uint32_t source) {
  return source == ODT_TI_INPUT ? ctx->layers[0].in_size : ctx->layers[source].out_size;
}

static uint8_t kind_of(IntLayerType_t type) {
  switch (type) {
    case INT_LAYER_MAXPOOL:
      return ODT_OP_MAXPOOL;
    case INT_LAYER_AVGPOOL:
      return ODT_OP_AVGPOOL;
    case INT_LAYER_GAP:
      return ODT_OP_GAP;
    case INT_LAYER_CONCAT:
      return ODT_OP_CONCAT;
    case INT_LAYER_RESIZE:
      return ODT_OP_RESIZE;
    case INT_LAYER_FLATTEN:
      return ODT_OP_FLATTEN;
    default:
      return ODT_OP_ADD;
  }
}

static void set_pool(const IntLayerDesc_t* d, odt_ti_pass_t* p) {
  const IntPool_t* q = &d->pool;
  uint16_t channels = (uint16_t)(d->in_size / ((uint32_t)q->input_h * q->input_w));
  odt_op_t* op = &p->op;
  op->offset = q->offset;
  op->mult = (const uint8_t*)q->mult;
  op->k_out = q->k;
  op->n_out = q->n_ch;
  op->k_h = q->kH;
  op->k_w = q->kW;
  op->stride_h = q->stride_h ? q->stride_h : 1u;
  op->stride_w = q->stride_w ? q->stride_w : 1u;
  op->pad_t = q->pad_h;
  op->pad_l = q->pad_w;
  p->in.dims[0] = p->out.dims[0] = channels;
  p->in.dims[1] = q->input_h;
  p->in.dims[2] = q->input_w;
  p->out.dims[1] = q->out_h;
  p->out.dims[2] = q->out_w;
}

void odt_ti_pass_of(const IntModelCtx_t* ctx, uint32_t i, odt_ti_pass_t* p) {
  const IntLayerDesc_t* d = &ctx->layers[i];
  uint32_t source = odt_ti_source(ctx, i, 0), source1 = odt_ti_source(ctx, i, 1);
  *p = (odt_ti_pass_t){.op = {.kind = kind_of(d->type)},
                       .in = {.dtype = odt_ti_dtype_of(ctx, source), .count = d->in_size},
                       .out = {.dtype = odt_ti_dtype(d), .count = d->out_size}};
  int32_t lo = p->out.dtype == ODT_U8 ? 0 : p->out.dtype == ODT_S8 ? -128 : -32768;
  int32_t hi = p->out.dtype == ODT_U8 ? 255 : p->out.dtype == ODT_S8 ? 127 : 32767;
  if (odt_ti_is_relu(d)) lo = 0;
  p->op.clip_lo = d->clip_lo < lo ? lo : d->clip_lo;
  p->op.clip_hi = d->clip_hi > hi ? hi : d->clip_hi;
  p->pass = (odt_pass_t){.op = &p->op, .in = &p->in, .out = &p->out, .x_dtype = p->in.dtype};
  if (odt_ti_has_two(d)) {
    p->in1 = (odt_tensor_t){.dtype = odt_ti_dtype_of(ctx, source1),
                            .count = odt_ti_count_of(ctx, source1)};
    p->pass.in1 = &p->in1;
    p->pass.x1_dtype = p->in1.dtype;
    if (p->op.kind == ODT_OP_ADD) p->op.offset = d->add.m;
  } else if (p->op.kind != ODT_OP_FLATTEN) {
    set_pool(d, p);
  }
}

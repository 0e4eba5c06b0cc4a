/* Shared by the files behind odt/ti.h. */
#ifndef ODT_TI_INTERNAL_H
#define ODT_TI_INTERNAL_H

#include "odt/ti.h"
#include "walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One compute layer, wherever it is described: an IntLayerDesc_t or an odt_op_t. */
typedef struct {
  bool conv, relu;
  uint8_t x_dtype, y_dtype;
  uint32_t in_size, out_size;
  uint32_t n_out;        /* filters or outputs */
  const int8_t* weights; /* linear [in,out], conv [O,I/g,kH,kW] */
  const int32_t* offset;
  const uint8_t* mult;
  const int8_t* k;
  int32_t lo, hi; /* clip, within y_dtype */
  /* convolutions */
  uint32_t c_group, o_group; /* input and output channels of a group */
  uint32_t h_in, w_in, h_out, w_out, k_h, k_w, stride_h, stride_w, pad_t, pad_l, dil_h, dil_w;
} odt_ti_layer_t;

/* Delta of a layer's input over a batch, in two passes. */
typedef struct {
  bool store;
  int s;               /* rule 1.4, second pass */
  uint32_t or_abs;     /* first pass */
  const uint8_t* mask; /* of the layer in front, NULL: none */
  uint32_t mask_bytes; /* per sample */
  int8_t* out;         /* [batch][count] */
  uint32_t count;
  uint32_t zeros;
} odt_ti_delta_t;

/* ---- who reads what (graph.c) -------------------------------------------------------------------
 */

#define ODT_TI_INPUT 0xFFFEu /* what the caller hands over */
#define ODT_TI_NONE 0xFFFFu

/* Number of the layer that layer i reads in `slot`, ODT_TI_INPUT or ODT_TI_NONE. */
uint32_t odt_ti_source(const IntModelCtx_t* ctx, uint32_t i, uint32_t slot);
/* Every layer reads the one in front: deltas lie in ctx->grad_buf by turns. */
bool odt_ti_is_chain(const IntModelCtx_t* ctx);
/* First layer that reads layer i's output; n_layers: none. */
uint32_t odt_ti_first_reader(const IntModelCtx_t* ctx, uint32_t i);
/* Number of layer i among those with weights. */
uint32_t odt_ti_number(const IntModelCtx_t* ctx, uint32_t i);
/* Dtype and values per sample of a layer's output or of the input. */
uint8_t odt_ti_dtype_of(const IntModelCtx_t* ctx, uint32_t source);
uint32_t odt_ti_count_of(const IntModelCtx_t* ctx, uint32_t source);

/* A layer without weights as the library's ops have it; points into itself. */
typedef struct {
  odt_op_t op;
  odt_tensor_t in, in1, out;
  odt_pass_t pass;
} odt_ti_pass_t;
void odt_ti_pass_of(const IntModelCtx_t* ctx, uint32_t i, odt_ti_pass_t* p);

/* d has gone through odt_ti_check. x_dtype: of its input. */
odt_ti_layer_t odt_ti_layer_of(const IntLayerDesc_t* d, uint8_t x_dtype);
/* Dtype of a layer's output. */
uint8_t odt_ti_dtype(const IntLayerDesc_t* d);
/* Of what ctx gets as input; PREQUANT in front: of its output. */
uint8_t odt_ti_input_dtype(const IntModelCtx_t* ctx);
static inline bool odt_ti_is_conv(const IntLayerDesc_t* d) {
  return d->type == INT_LAYER_CONV2D || d->type == INT_LAYER_CONV2D_RELU;
}
static inline bool odt_ti_is_relu(const IntLayerDesc_t* d) {
  return d->type == INT_LAYER_CONV2D_RELU || d->type == INT_LAYER_LINEAR_RELU ||
         d->type == INT_LAYER_ADD_RELU;
}
static inline bool odt_ti_has_weights(const IntLayerDesc_t* d) {
  return d->type >= INT_LAYER_CONV2D && d->type <= INT_LAYER_LINEAR_RELU;
}
static inline bool odt_ti_has_two(const IntLayerDesc_t* d) {
  return d->type == INT_LAYER_ADD || d->type == INT_LAYER_ADD_RELU || d->type == INT_LAYER_CONCAT;
}
static inline uint32_t odt_ti_mask_bytes(const IntLayerDesc_t* d) {
  return (d->out_size + 7u) / 8u;
}
static inline bool odt_ti_bit(const uint8_t* mask, uint32_t i) {
  return (((uint32_t)mask[i / 8u] >> (i % 8u)) & 1u) != 0;
}
static inline uint32_t odt_ti_n_out(const IntLayerDesc_t* d) {
  return odt_ti_is_conv(d) ? d->conv.n_filters : d->out_size;
}
static inline uint32_t odt_ti_groups(const IntLayerDesc_t* d) {
  return d->conv.groups ? d->conv.groups : 1u;
}
uint32_t odt_ti_n_weights(const IntLayerDesc_t* d);
static inline int8_t* odt_ti_weights(const IntLayerDesc_t* d) {
  return odt_ti_is_conv(d) ? d->conv.weights : d->linear.weights;
}
static inline int32_t* odt_ti_offsets(const IntLayerDesc_t* d) {
  return odt_ti_is_conv(d) ? d->conv.offset : d->linear.offset;
}

/* One sample through one layer, rule 1.2. */
void odt_ti_forward_layer(const odt_ti_layer_t* l, const uint8_t* x, uint8_t* y);
/* One pass over the delta of the layer's input, rule 1.4. */
void odt_ti_delta_pass(const odt_ti_layer_t* l, const int8_t* dy, uint32_t n, odt_ti_delta_t* d);
/* Values [first, first + count) of it as contributions of one sample, in int32. */
void odt_ti_delta_part(const odt_ti_layer_t* l, const int8_t* dy, uint32_t first, uint32_t count,
                       int32_t* sums);
/* The delta of layer i's output from those of its readers (delta.c); returns its zeros. */
uint32_t odt_ti_pull(const IntModelCtx_t* ctx, uint32_t i, uint32_t n);
/* e_step of a layer with weights. */
void odt_ti_set_step(IntLayerDesc_t* d);
/* Memory of the delta of layer i's output. */
int8_t* odt_ti_delta_of(const IntModelCtx_t* ctx, uint32_t i);
/* Values of a source over the batch. */
static inline const uint8_t* odt_ti_values(const IntModelCtx_t* ctx, uint32_t source,
                                           const uint8_t* input) {
  return source == ODT_TI_INPUT ? input : (const uint8_t*)ctx->layers[source].act_buf;
}
/* One pass over the gradient of the layer's weights, rule 1.5; x: [n][in_size]. */
void odt_ti_gradient_pass(const odt_ti_layer_t* l, const uint8_t* x, const int8_t* dy, uint32_t n,
                          odt_update_t* u);

/* ctx checked, n > 0. */
void odt_ti_run_forward(const IntModelCtx_t* ctx, const void* input, uint32_t n);
void odt_ti_run_infer(const IntModelCtx_t* ctx, const void* input, int8_t* logits);
void odt_ti_run_backward(odt_ti_t* t, const void* input, uint32_t n, odt_ti_record_t* rec);

#ifdef __cplusplus
}
#endif
#endif

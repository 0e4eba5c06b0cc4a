/* A convolution's shape as its kernels walk it. */
#ifndef ODT_KERNELS_CONV_H
#define ODT_KERNELS_CONV_H

#include "kernels/matrix.h"

typedef struct {
  uint32_t h_in, w_in, h_out, w_out;
  uint32_t channels, filters; /* of one group */
  uint32_t k_h, k_w, stride_h, stride_w, dil_h, dil_w, pad_t, pad_l;
  uint32_t taps, positions; /* weights per output; h_out * w_out */
} odt_conv_t;

odt_conv_t odt_conv(const odt_op_t* op, const odt_tensor_t* in, const odt_tensor_t* out);

typedef enum { ODT_FOR_DOT4, ODT_FOR_DOT1, ODT_FOR_OUTER } odt_order_t;

/* Positions next to each other in one output row: columns [at, at + n) of a tile. */
typedef struct {
  uint32_t at, n, oy, ox;
} odt_segment_t;

/* A tile to fill: taps [tap, tap + n) of positions [first, first + count). */
typedef struct {
  int16_t* to;
  odt_order_t order;
  bool wide;
  uint32_t tap, n, first, count, n_segments;
  odt_segment_t segments[8];
} odt_gather_t;

/* x: the group's first plane. What stands behind the last position counts for nothing, what stands
 * behind the last tap is 0. */
void odt_conv_gather(const odt_conv_t* c, odt_gather_t* g, const uint8_t* x, uint8_t dtype);

#endif

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

#endif

#ifndef ODT_IMAGE_H
#define ODT_IMAGE_H

#include "internal.h"

#define ODT_IMAGE_HEAD 64u
#define ODT_TENSOR_BYTES 16u
#define ODT_OP_BYTES 96u
#define ODT_MAX_COUNT (1u << 24) /* values of one tensor of one sample */
#define ODT_MAX_POSITIONS 65535u /* output positions of a convolution */

typedef struct {
  odt_model_t* m;
  odt_error_t* err;
  int32_t max_abs[ODT_MAX_TENSORS]; /* largest |value| a tensor can hold */
} odt_open_t;

odt_status_t odt_parse_ops(odt_open_t* o, uint32_t ops_off);
/* [off, off + n) of the image, 4-byte aligned and behind the header. */
odt_status_t odt_section(const odt_open_t* o, uint32_t off, uint64_t n, const char* what,
                         int32_t index);

#endif

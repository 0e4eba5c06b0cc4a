#ifndef ODT_IMAGE_H
#define ODT_IMAGE_H

#include "internal.h"

#define ODT_IMAGE_HEAD 64u
#define ODT_TAIL_HEAD 96u /* of a tail image: the model's hash follows */
#define ODT_TENSOR_BYTES 16u
#define ODT_OP_BYTES 96u
#define ODT_MAX_COUNT (1u << 24) /* values of one tensor of one sample */
#define ODT_MAX_POSITIONS 65535u /* output positions of a convolution, pool or resize */
#define ODT_MAX_EXPONENT 100     /* of DFP16, either sign */
#define ODT_UNWRITTEN 0xFEu      /* producer of a tensor that no op has written yet */

typedef struct {
  odt_model_t* m;
  odt_error_t* err;
  uint32_t head;                                    /* bytes of the header */
  int16_t lo[ODT_MAX_TENSORS], hi[ODT_MAX_TENSORS]; /* values a tensor can hold */
} odt_open_t;

static inline bool odt_is_dfp(const odt_open_t* o) { return odt_is_dfp16(o->m); }
/* INVALID_ARGUMENT of op (or tensor) i. */
odt_status_t odt_bad32(const odt_open_t* o, int32_t i, const char* what, int32_t got, int32_t lo,
                       int32_t hi);
#define odt_bad(o, i, what, got, lo, hi) \
  odt_bad32(o, i, what, ODT_I32(got), ODT_I32(lo), ODT_I32(hi))

odt_status_t odt_parse_ops(odt_open_t* o, uint32_t ops_off);
/* [off, off + n) of the image, 4-byte aligned and behind the header. */
odt_status_t odt_section(const odt_open_t* o, uint32_t off, uint64_t n, const char* what,
                         int32_t index);
/* Kind, flags and tensors of op i: it reads only what is there and writes something new. Marks what
 * it writes. */
odt_status_t odt_check_links(odt_open_t* o, int32_t i, const odt_op_t* op);
/* What can be said once every op is known: tensors, layers, cut, logits, task. */
odt_status_t odt_check_graph(odt_open_t* o);
/* Shapes of kinds without weights. */
odt_status_t odt_check_shape(const odt_open_t* o, int32_t i, const odt_op_t* op);
/* Output size of a window that moves: kernel, stride, padding, dilation of both axes. */
odt_status_t odt_check_window(const odt_open_t* o, int32_t i, const odt_op_t* op);

#endif

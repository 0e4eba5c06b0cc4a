#ifndef ODT_CANONICAL_H
#define ODT_CANONICAL_H

#include "internal.h"

#define ODT_WEIGHTS_HEAD 44u
#define ODT_WEIGHTS_LAYER 20u
#define ODT_STATE_HEAD 176u
#define ODT_STATE_LAYER 28u
#define ODT_STATE_LAYER_OFFSETS 16u /* more, where the offsets have a precision of their own */
#define ODT_STATE_EXTENSION 32u

typedef enum { ODT_FORM_WEIGHTS = 1, ODT_FORM_BEST = 2, ODT_FORM_STATE = 3 } odt_form_t;
typedef enum {
  ODT_SEG_HEAD,
  ODT_SEG_EXTENSION,
  ODT_SEG_LAYER,
  ODT_SEG_VALUES,
  ODT_SEG_PAD,
  ODT_SEG_OFFSETS,
  ODT_SEG_EXPONENTS, /* DFP16, blocked */
  ODT_SEG_PAD_END
} odt_seg_t;

/* One piece of the canonical bytes. mem: where it lives (VALUES, OFFSETS, EXPONENTS), else NULL. */
typedef struct {
  odt_seg_t kind;
  uint32_t layer, at, n;
  uint8_t* mem;
} odt_piece_t;

/* Precision of layer l in that form. */
static inline int odt_form_k(const odt_layer_t* l, odt_form_t form) {
  return form == ODT_FORM_BEST ? l->best_k : l->k;
}

/* Bytes [skip, skip + n) of a VALUES piece in ONNX order; p->mem is in the kernels' order. */
void odt_values_read(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                     uint32_t n, uint8_t* out);
void odt_values_write(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                      uint32_t n, const uint8_t* in);

/* Fills p with the piece that holds byte `at`; false behind the end (p->at is then the size). */
bool odt_piece(const odt_trainer_t* t, odt_form_t form, uint32_t at, odt_piece_t* p);
/* Bytes of a HEAD, EXTENSION, LAYER or PAD piece as they are now. */
void odt_piece_bytes(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint8_t* out);

#endif

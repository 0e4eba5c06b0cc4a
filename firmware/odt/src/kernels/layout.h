/* How a trainable layer's weights lie in RAM. ONNX order is for the outside (canonical.c,
 * restore.c); inside, every output has a row of its inputs' weights, in 32-bit words of 4 int8 or 2
 * int16 values, the last one filled up with zeros. ODT_PANEL rows at a time interleave their words,
 * so that a kernel loads a word of each at once; the last panel has the rows that are left. The
 * size is the same in every variant. */
#ifndef ODT_KERNELS_LAYOUT_H
#define ODT_KERNELS_LAYOUT_H

#include "internal.h"
#include "kernels/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(ODT_KERNELS_DSP)
#define ODT_PANEL 4u
#else
#define ODT_PANEL 1u
#endif

typedef struct {
  uint32_t rows, cols, words; /* outputs; values and words per output */
  uint32_t per;               /* values per word */
  bool in_out;                /* ONNX order is [cols][rows] */
} odt_layout_t;

/* n_weights values in rows outputs; dtype: ODT_S8 or ODT_S16. */
odt_layout_t odt_layout(uint8_t kind, uint32_t n_weights, uint32_t rows, uint8_t dtype);
static inline uint32_t odt_layout_bytes(const odt_layout_t* l) { return l->rows * l->words * 4u; }

/* Rows of the panel that holds row o. */
static inline uint32_t odt_panel_rows(uint32_t rows, uint32_t o) {
  uint32_t left = rows - o / ODT_PANEL * ODT_PANEL;
  return left < ODT_PANEL ? left : ODT_PANEL;
}
/* First word of row o, in words; its next ones follow at odt_panel_rows(). */
static inline uint32_t odt_row_word(uint32_t rows, uint32_t words, uint32_t o) {
  (void)rows;
  return o / ODT_PANEL * ODT_PANEL * words + o % ODT_PANEL;
}
/* Where (output o, input j) lies, in values. */
static inline uint32_t odt_layout_at(const odt_layout_t* l, uint32_t o, uint32_t j) {
  uint32_t word = odt_row_word(l->rows, l->words, o) + j / l->per * odt_panel_rows(l->rows, o);
  return word * l->per + j % l->per;
}
/* Where ONNX index i lies, in values. */
uint32_t odt_layout_index(const odt_layout_t* l, uint32_t i);

/* That of a trainable layer's M at `dtype`. */
odt_layout_t odt_layer_layout(const odt_layer_t* l, uint8_t dtype);
/* M with ONNX index i as stored now. */
int32_t odt_layer_get(const odt_layer_t* l, uint32_t i);
void odt_layer_set(odt_layer_t* l, uint32_t i, int32_t m);
/* Bytes of M as stored at dtype. */
uint32_t odt_layer_bytes(const odt_layer_t* l, uint8_t dtype);
/* Re-lays M in place from int8 to int16 (memory for that is there) or back; sets dtype. */
void odt_layer_widen(odt_layer_t* l);
void odt_layer_narrow(odt_layer_t* l);
/* Bytes [at, at + n) of M's values in ONNX order: out of m, or into it. */
void odt_layout_read(const odt_layout_t* l, const uint8_t* m, uint32_t at, uint32_t n,
                     uint8_t* out);
void odt_layout_write(const odt_layout_t* l, uint8_t* m, uint32_t at, uint32_t n,
                      const uint8_t* in);

#ifdef __cplusplus
}
#endif
#endif

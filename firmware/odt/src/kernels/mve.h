/* What the Helium files share. */
#ifndef ODT_KERNELS_MVE_H
#define ODT_KERNELS_MVE_H

#include "kernels/matrix.h"

#if defined(ODT_KERNELS_MVE)

/* Two rows by four columns: acc[row][column] += ... */
typedef struct {
  const uint8_t *w0, *w1;
  const void *x, *end; /* the columns' blocks of 16 bytes each in turn; end of the whole ones */
  int32_t shift;       /* of int16 weights */
  int32_t* acc;        /* [2][4] */
  uint32_t tail;       /* values behind the whole blocks */
  uint32_t step; /* bytes from one column's to the next's, where weights are not int8 by int8 */
} odt_mve_dot_t;

/* int8 by int8; the columns' last blocks are filled up. */
void odt_mve_dot8(const odt_mve_dot_t* d);

/* A dense layer with int8 weights on int8 or uint8 inputs; false: not such a one. */
bool odt_mve_dense_forward(const odt_kernel_t* k, const odt_matrix_t* w, const odt_view_t* x,
                           uint32_t n, uint8_t* y);

/* Gradients of n inputs (a multiple of 4) over eight samples, x [n][8] and dy [8] of int16, rounded
 * by s to int8, which they fit: PSTO, HALF_UP. */
void odt_mve_psto_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                            uint32_t* d);
void odt_mve_half_up_gradients(uint32_t s, const uint32_t* x, uint32_t n, const uint32_t* dy,
                               uint32_t* d);

#endif
#endif

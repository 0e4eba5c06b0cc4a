/* The inner loops that a variant supplies, and the order in which they take their operands.
 * Everything is exact in int32: an image whose sums could leave it is refused when opened. */
#ifndef ODT_KERNELS_MATRIX_H
#define ODT_KERNELS_MATRIX_H

#include "kernels/kernels.h"
#include "kernels/layout.h"
#if defined(ODT_KERNELS_DSP)
#include "kernels/dsp.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Weights of rows outputs by cols inputs. */
typedef struct {
  const uint8_t* base; /* packed: layout.h; else int8 [rows][cols] of the image */
  uint32_t rows, cols;
  bool packed, wide; /* wide: int16 M, view (M + half) >> f; else int8 as it stands */
  int f;
  int32_t half;
} odt_matrix_t;

odt_matrix_t odt_matrix_of(const odt_kernel_t* k, uint32_t cols);
static inline uint32_t odt_per_word(const odt_matrix_t* w) { return w->wide ? 2u : 4u; }
static inline uint32_t odt_words(const odt_matrix_t* w) {
  return (w->cols + odt_per_word(w) - 1u) / odt_per_word(w);
}

/* Sizes of a tile; together with what else lies beside it this bounds the scratch. */
#define ODT_TILE_COLS 192u /* inputs of four columns at a time: 1536 bytes */
#define ODT_TILE_ROWS 32u  /* outputs of them: 512 bytes of sums */
#define ODT_PAIR_BYTES 2432u
#define ODT_CHUNK 80u /* gradients at a time */

/* Where value j of column c (0..3) lies in a tile of four columns of `tile` (a multiple of 4)
 * values. */
static inline uint32_t odt_slot4(bool wide, uint32_t tile, uint32_t j, uint32_t c) {
  (void)wide;
  (void)tile;
#if defined(ODT_KERNELS_DSP)
  /* What SXTB16 makes of a word: values 0 and 2, then 1 and 3. int16 words are pairs as they are.
   */
  if (wide) return (j / 2u * 4u + c) * 2u + j % 2u;
  return (j / 4u * 8u + j % 2u * 4u + c) * 2u + j / 2u % 2u;
#elif defined(ODT_KERNELS_MVE)
  /* Eights of each column in turn, then what is left. */
  uint32_t whole = tile & ~7u;
  if (j < whole) return j / 8u * 32u + c * 8u + j % 8u;
  return whole * 4u + c * 4u + j - whole;
#elif defined(ODT_KERNELS_X86)
  return c * tile + j;
#else
  return j * 4u + c;
#endif
}
/* From column to column. */
static inline uint32_t odt_step4(uint32_t tile, uint32_t j) {
  (void)tile;
  (void)j;
#if defined(ODT_KERNELS_DSP)
  return 2u;
#elif defined(ODT_KERNELS_MVE)
  return j < (tile & ~7u) ? 8u : 4u;
#elif defined(ODT_KERNELS_X86)
  return tile;
#else
  return 1u;
#endif
}
/* The same for a single column. */
static inline uint32_t odt_slot1(bool wide, uint32_t j) {
#if defined(ODT_KERNELS_DSP)
  if (!wide) return (j / 4u * 2u + j % 2u) * 2u + j / 2u % 2u;
#endif
  (void)wide;
  return j;
}
/* In a tile of eight samples value j of sample s is number j * 8 + s. */

/* acc[r][c] += sum over j of w[row + r][col + j] * x_c[j]; n inputs, filled up with zeros to a
 * multiple of 4, which is the tile; col is a multiple of 4. */
void odt_dot4(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc);
/* One column: acc[r] += ... */
void odt_dot1(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t n,
              const int16_t* x, int32_t* acc);
/* acc[j] += sum over r of w[row + r][col + j] * v[r], for whole words from col on; packed only; v
 * is filled up with a zero to an even number. */
void odt_dot_t(const odt_matrix_t* w, uint32_t row, uint32_t rows, uint32_t col, uint32_t words,
               const int16_t* v, int32_t* acc);
/* n zeros. */
void odt_clear(int32_t* p, uint32_t n);
/* n values of a sample into column c of a tile, zeros up to a multiple of 4. */
void odt_fill4(int16_t* x, bool wide, uint32_t c, const uint8_t* from, uint8_t dtype, uint32_t n);
void odt_fill1(int16_t* x, bool wide, const uint8_t* from, uint8_t dtype, uint32_t n);
/* n values, `stride` apart, to places `step` apart. */
void odt_spread(int16_t* to, uint32_t step, const uint8_t* from, uint8_t dtype, uint32_t stride,
                uint32_t n);
/* g[j] (+)= sum over 8 samples of x[j][s] * dy[s], n a multiple of 4. x and dy are 8-byte aligned.
 */
void odt_outer(int32_t* g, const int16_t* x, uint32_t n, const int16_t* dy, bool add);
/* OR of |g| of the same. */
uint32_t odt_outer_measure(const int16_t* x, uint32_t n, const int16_t* dy);

/* Once per pass, before odt_update_words. */
void odt_update_prepare(odt_update_t* u);
/* Sum of eight squares, of widened bytes. */
#if defined(ODT_KERNELS_DSP)
static inline int32_t odt_squares8(const int16_t* x) {
  uint32_t a = dsp_load(x), b = dsp_load(x + 2), c = dsp_load(x + 4), d = dsp_load(x + 6);
  return dsp_smlad(a, a, dsp_smlad(b, b, dsp_smlad(c, c, dsp_smlad(d, d, 0))));
}
#else
static inline int32_t odt_squares8(const int16_t* x) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < 8u; i++) sum += x[i] * x[i];
  return sum;
}
#endif

/* Gradients g[0..n) of row o from column col (a multiple of 4) on, |g| <= 2^30; n may run into the
 * row's padding, where g is 0. Measures and applies as u says. */
void odt_update_words(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int32_t* g, uint32_t n);
/* odt_outer of eight samples and odt_update_words at once, where a variant can; else false, and
 * nothing was done. */
bool odt_outer_update(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                      const int16_t* x, uint32_t n, const int16_t* dy);
/* odt_update_words without regard to speed. */
void odt_update_values(odt_update_t* u, const odt_layout_t* lay, uint32_t o, uint32_t col,
                       const int32_t* g, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif

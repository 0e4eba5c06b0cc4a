#include "kernels/layout.h"

#include <string.h>

odt_layout_t odt_layout(uint8_t kind, uint32_t n_weights, uint32_t rows, uint8_t dtype) {
  odt_layout_t l = {.rows = rows,
                    .cols = rows ? n_weights / rows : 0,
                    .per = dtype == ODT_S16 ? 2 : 4,
                    .in_out = kind == ODT_OP_LINEAR};
  l.words = (l.cols + l.per - 1u) / l.per;
  return l;
}

uint32_t odt_layout_index(const odt_layout_t* l, uint32_t i) {
  uint32_t inner = l->in_out ? l->rows : l->cols, a = i / inner, b = i % inner;
  return l->in_out ? odt_layout_at(l, b, a) : odt_layout_at(l, a, b);
}

odt_layout_t odt_layer_layout(const odt_layer_t* l, uint8_t dtype) {
  return odt_layout(l->in_out ? ODT_OP_LINEAR : ODT_OP_CONV2D, l->n_weights, l->n_offsets, dtype);
}

uint32_t odt_layer_bytes(const odt_layer_t* l, uint8_t dtype) {
  odt_layout_t lay = odt_layer_layout(l, dtype);
  return odt_layout_bytes(&lay);
}

int32_t odt_layer_get(const odt_layer_t* l, uint32_t i) {
  odt_layout_t lay = odt_layer_layout(l, l->dtype);
  return odt_load(l->m, l->dtype, odt_layout_index(&lay, i));
}

void odt_layer_set(odt_layer_t* l, uint32_t i, int32_t m) {
  odt_layout_t lay = odt_layer_layout(l, l->dtype);
  odt_store(l->m, l->dtype, odt_layout_index(&lay, i), m);
}

/* Word w of every row of the panel at row o: from int8 words at `from` to the one or two int16
 * words each at `to`. The source lies at or below the target, so panels and words go from last to
 * first. */
static void widen_words(const uint8_t* from, uint8_t* to, uint32_t rows, bool both) {
  int8_t v[4 * ODT_PANEL];
  memcpy(v, from, 4u * rows);
  for (uint32_t r = 0; r < rows; r++) {
    int16_t wide[4] = {v[4 * r], v[4 * r + 1], v[4 * r + 2], v[4 * r + 3]};
    memcpy(to + 4u * r, wide, 4);
    if (both) memcpy(to + 4u * (rows + r), wide + 2, 4);
  }
}

void odt_layer_widen(odt_layer_t* l) {
  odt_layout_t a = odt_layer_layout(l, ODT_S8), b = odt_layer_layout(l, ODT_S16);
  uint8_t* m = l->m;
  uint32_t panels = (a.rows + ODT_PANEL - 1u) / ODT_PANEL;
  for (uint32_t p = panels; p-- > 0;) {
    uint32_t o = p * ODT_PANEL, rows = odt_panel_rows(a.rows, o);
    for (uint32_t w = a.words; w-- > 0;) {
      widen_words(m + 4u * (o * a.words + w * rows), m + 4u * (o * b.words + 2u * w * rows), rows,
                  2u * w + 1u < b.words);
    }
  }
  l->dtype = ODT_S16;
}

void odt_layer_narrow(odt_layer_t* l) {
  odt_layout_t a = odt_layer_layout(l, ODT_S8), b = odt_layer_layout(l, ODT_S16);
  uint8_t* m = l->m;
  for (uint32_t o = 0; o < a.rows; o += ODT_PANEL) {
    uint32_t rows = odt_panel_rows(a.rows, o);
    for (uint32_t w = 0; w < a.words; w++) {
      int16_t v[2][2 * ODT_PANEL] = {{0}};
      const uint8_t* from = m + 4u * (o * b.words + 2u * w * rows);
      memcpy(v[0], from, 4u * rows);
      if (2u * w + 1u < b.words) memcpy(v[1], from + 4u * rows, 4u * rows);
      int8_t* to = (int8_t*)m + 4u * (o * a.words + w * rows);
      for (uint32_t j = 0; j < 4u * rows; j++) to[j] = (int8_t)v[j % 4 / 2][j / 4 * 2 + j % 2];
    }
  }
  l->dtype = ODT_S8;
}

typedef struct {
  uint32_t a, b; /* outer and inner index in ONNX order */
} place_t;

static uint32_t step(const odt_layout_t* l, place_t* p) {
  uint32_t at = l->in_out ? odt_layout_at(l, p->b, p->a) : odt_layout_at(l, p->a, p->b);
  if (++p->b == (l->in_out ? l->rows : l->cols)) {
    p->b = 0;
    p->a++;
  }
  return at;
}

/* Walks the bytes [at, at + n); one of out and in is NULL. */
static void walk(const odt_layout_t* l, uint8_t* m, uint32_t at, uint32_t n, uint8_t* out,
                 const uint8_t* in) {
  uint32_t bytes = 4u / l->per, i = at / bytes, skip = at % bytes;
  uint32_t inner = l->in_out ? l->rows : l->cols;
  place_t p = {i / inner, i % inner};
  while (n > 0) {
    uint32_t take = bytes - skip < n ? bytes - skip : n;
    uint8_t* v = m + step(l, &p) * bytes + skip;
    for (uint32_t j = 0; j < take; j++) {
      if (out) {
        *out++ = v[j];
      } else {
        v[j] = *in++;
      }
    }
    n -= take;
    skip = 0;
  }
}

void odt_layout_read(const odt_layout_t* l, const uint8_t* m, uint32_t at, uint32_t n,
                     uint8_t* out) {
  walk(l, (uint8_t*)(uintptr_t)m, at, n, out, NULL);
}

void odt_layout_write(const odt_layout_t* l, uint8_t* m, uint32_t at, uint32_t n,
                      const uint8_t* in) {
  walk(l, m, at, n, NULL, in);
}

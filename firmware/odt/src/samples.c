#include <string.h>

#include "internal.h"

static odt_status_t bad32(odt_error_t* err, const char* what, int32_t got, int32_t lo, int32_t hi) {
  return odt_fail32(err, ODT_INVALID_ARGUMENT, what, -1, got, lo, hi);
}
#define bad(err, what, got, lo, hi) bad32(err, what, ODT_I32(got), ODT_I32(lo), ODT_I32(hi))

/* Where labels end and data begin. Targets: as many a sample as the bytes make, up to what the
 * padding leaves open; odt_samples_fit knows the model's number. */
static odt_status_t place(odt_samples_t* s, const uint8_t* p, uint32_t bytes, odt_error_t* err) {
  uint64_t values = (uint64_t)s->count * s->sample_len;
  uint64_t labels = ((uint64_t)s->count + 3u) & ~(uint64_t)3;
  bool targets = (s->flags & ODT_SAMPLES_TARGETS) != 0;
  /* values < 2^64, twice that need not be. */
  if (s->dtype == ODT_S16) values = values > UINT32_MAX ? values : 2u * values;
  if (targets && values < bytes - 16u) labels = bytes - 16u - values;
  uint64_t need = values > UINT32_MAX ? values : 16u + labels + values;
  if (need != bytes || labels % 4u != 0 || labels < s->count) {
    return bad(err, "samples: bytes", bytes, need > INT32_MAX ? INT32_MAX : (int64_t)need,
               need > INT32_MAX ? INT32_MAX : (int64_t)need);
  }
  s->label_len = targets ? (uint32_t)labels / s->count : 1;
  s->labels = (const int8_t*)(p + 16);
  s->data = p + 16 + labels;
  return ODT_OK;
}

odt_status_t odt_samples_open(odt_samples_t* s, const void* blob, uint32_t bytes,
                              odt_error_t* err) {
  const uint8_t* p = blob;
  if (bytes < 16) return bad(err, "samples: bytes", bytes, 16, INT32_MAX);
  if (odt_le32(p) != 0x5354444Fu) return bad(err, "samples: magic", odt_le32(p), 0, 0);
  if (odt_le16(p + 4) != 1) {
    return odt_fail(err, ODT_UNIMPLEMENTED, "samples: version", -1, odt_le16(p + 4), 1, 1);
  }
  s->dtype = p[6];
  s->flags = p[7];
  s->count = odt_le32(p + 8);
  s->sample_len = odt_le32(p + 12);
  if (s->dtype < ODT_S8 || s->dtype > ODT_S16) {
    return bad(err, "samples: dtype", s->dtype, ODT_S8, ODT_S16);
  }
  const bool source = (s->flags & ODT_SAMPLES_SOURCE) != 0;
  if (s->flags > 7 || (source && !odt_samples_frozen(s))) {
    return bad(err, "samples: flags", s->flags, 0, 7);
  }
  if (s->count == 0) return bad(err, "samples: count", 0, 1, INT32_MAX);
  if (s->sample_len == 0) return bad(err, "samples: sample_len", 0, 1, INT32_MAX);
  if (s->dtype == ODT_S16 && (uintptr_t)blob % 2u != 0) {
    return bad(err, "samples: address of int16", 1, 0, 0);
  }
  s->source = NULL;
  if (source) {
    if (bytes < 16 + 64) return bad(err, "samples: bytes", bytes, 16 + 64, INT32_MAX);
    bytes -= 64;
    s->source = p + bytes;
  }
  return place(s, p, bytes, err);
}

/* What stands beside the data: labels of a classifier, targets of a regression; an autoencoder's
 * targets are its inputs, which frozen samples do not have. */
static odt_status_t fit_targets(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err) {
  bool targets = (s->flags & ODT_SAMPLES_TARGETS) != 0, frozen = odt_samples_frozen(s);
  bool want = m->task == ODT_TASK_REGRESS || (m->task == ODT_TASK_AUTOENCODE && frozen);
  if (targets != want) return bad(err, "samples: flags: targets", targets, want, want);
  if (!want) return ODT_OK;
  uint64_t n = ((uint64_t)s->count * m->n_classes + 3u) & ~(uint64_t)3;
  uint64_t got = (uint64_t)(s->data - (const uint8_t*)s->labels);
  if (n == got) return ODT_OK;
  return bad(err, "samples: bytes of targets", (int64_t)got, (int64_t)n, (int64_t)n);
}

odt_status_t odt_samples_shape(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err) {
  uint16_t source = m->input;
  if (odt_samples_frozen(s)) {
    if (m->cut == ODT_NO_TENSOR) {
      return odt_fail(err, ODT_FAILED_PRECONDITION, "samples: frozen, and the model has no cut", -1,
                      1, 0, 0);
    }
    /* Its batches have exponents of their own: what an earlier pass left cannot stand in. */
    if (odt_is_dfp16(m)) {
      return odt_fail(err, ODT_FAILED_PRECONDITION, "samples: frozen (DFP16)", -1, 1, 0, 0);
    }
    if (s->source && memcmp(s->source, m->hash, 32) != 0) {
      return odt_fail(err, ODT_FAILED_PRECONDITION,
                      "samples: frozen outputs of another model (or of other trainable layers)", -1,
                      1, 0, 0);
    }
    source = m->cut;
  } else if (m->tail) {
    return odt_fail(err, ODT_FAILED_PRECONDITION,
                    "samples: the image is a tail and takes frozen outputs only", -1, 0, 1, 1);
  }
  const odt_tensor_t* in = &m->tensors[source];
  if (s->dtype != in->dtype) return bad(err, "samples: dtype", s->dtype, in->dtype, in->dtype);
  if (s->dtype == ODT_S16 && !odt_is_dfp16(m) && !odt_samples_frozen(s)) {
    return bad(err, "samples: dtype", s->dtype, ODT_S8, ODT_U8);
  }
  if (s->sample_len != in->count) {
    return bad(err, "samples: sample_len", s->sample_len, in->count, in->count);
  }
  return fit_targets(s, m, err);
}

/* Rule 1.13: |I| <= 32767. */
static odt_status_t check_range16(const odt_samples_t* s, uint32_t i, odt_error_t* err) {
  const int16_t* x = (const int16_t*)(const void*)s->data + (size_t)i * s->sample_len;
  for (uint32_t j = 0; j < s->sample_len; j++) {
    if (x[j] != INT16_MIN) continue;
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: value (DFP16)", (int32_t)i, INT16_MIN,
                    -INT16_MAX, INT16_MAX);
  }
  return ODT_OK;
}

ODT_HOT odt_status_t odt_samples_label(const odt_samples_t* s, const odt_model_t* m, uint32_t i,
                                       odt_error_t* err) {
  if (odt_is_dfp16(m) && s->dtype == ODT_S16) {
    odt_status_t st = check_range16(s, i, err);
    if (st != ODT_OK) return st;
  }
  if (m->task != ODT_TASK_CLASSIFY) return ODT_OK;
  if (s->labels[i] >= 0 && s->labels[i] < m->n_classes) return ODT_OK;
  return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: label", (int32_t)i, s->labels[i], 0,
                  m->n_classes - 1);
}

odt_status_t odt_samples_fit(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err) {
  odt_status_t st = odt_samples_shape(s, m, err);
  for (uint32_t i = 0; st == ODT_OK && i < s->count; i++) st = odt_samples_label(s, m, i, err);
  return st;
}

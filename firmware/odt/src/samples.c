#include "internal.h"

odt_status_t odt_samples_open(odt_samples_t* s, const void* blob, uint32_t bytes,
                              odt_error_t* err) {
  const uint8_t* p = blob;
  if (bytes < 16) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: bytes", -1, bytes, 16, INT32_MAX);
  }
  if (odt_le32(p) != 0x5354444Fu) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: magic", -1, odt_le32(p), 0, 0);
  }
  if (odt_le16(p + 4) != 1) {
    return odt_fail(err, ODT_UNIMPLEMENTED, "samples: version", -1, odt_le16(p + 4), 1, 1);
  }
  if (p[6] != ODT_S8 && p[6] != ODT_U8) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: dtype", -1, p[6], ODT_S8, ODT_U8);
  }
  if (p[7] != 0) return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: reserved", -1, p[7], 0, 0);
  uint32_t count = odt_le32(p + 8), len = odt_le32(p + 12);
  if (count == 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: count", -1, 0, 1, INT32_MAX);
  }
  if (len == 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: sample_len", -1, 0, 1, INT32_MAX);
  }
  uint64_t labels = ((uint64_t)count + 3u) & ~(uint64_t)3;
  uint64_t need = 16u + labels + (uint64_t)count * len;
  if (need != bytes) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: bytes", -1, bytes,
                    need > INT32_MAX ? INT32_MAX : (int64_t)need,
                    need > INT32_MAX ? INT32_MAX : (int64_t)need);
  }
  s->dtype = p[6];
  s->count = count;
  s->sample_len = len;
  s->labels = (const int8_t*)(p + 16);
  s->data = p + 16 + labels;
  return ODT_OK;
}

odt_status_t odt_samples_fit(const odt_samples_t* s, const odt_model_t* m, odt_error_t* err) {
  const odt_tensor_t* in = &m->tensors[m->input];
  if (s->dtype != in->dtype) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: dtype", -1, s->dtype, in->dtype,
                    in->dtype);
  }
  if (s->sample_len != in->count) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: sample_len", -1, s->sample_len, in->count,
                    in->count);
  }
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->labels[i] < 0 || s->labels[i] >= m->n_classes) {
      return odt_fail(err, ODT_INVALID_ARGUMENT, "samples: label", (int32_t)i, s->labels[i], 0,
                      m->n_classes - 1);
    }
  }
  return ODT_OK;
}

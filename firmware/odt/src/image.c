/* ODTM v1: header and tensors. Bytes are hostile until checked here and in image_ops.c. */
#include "image.h"

#include <string.h>

odt_status_t odt_bad32(const odt_open_t* o, int32_t i, const char* what, int32_t got, int32_t lo,
                       int32_t hi) {
  return odt_fail32(o->err, ODT_INVALID_ARGUMENT, what, i, got, lo, hi);
}

odt_status_t odt_section(const odt_open_t* o, uint32_t off, uint64_t n, const char* what,
                         int32_t index) {
  uint32_t bytes = o->m->image_bytes;
  if (off < o->head || off > bytes || n > bytes - off) {
    return odt_bad(o, index, what, off, o->head, n > bytes ? 0 : (int64_t)(bytes - n));
  }
  if (off % 4 != 0) return odt_bad(o, index, what, off % 4, 0, 0);
  return ODT_OK;
}

static odt_status_t parse_counts(odt_open_t* o) {
  odt_model_t* m = o->m;
  const uint8_t* p = m->image;
  m->n_tensors = odt_le16(p + 12);
  m->n_ops = odt_le16(p + 14);
  m->n_layers = odt_le16(p + 16);
  m->n_classes = odt_le16(p + 18);
  if (m->n_tensors < 2 || m->n_tensors > ODT_MAX_TENSORS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "n_tensors", -1, m->n_tensors, 2, ODT_MAX_TENSORS);
  }
  if (m->n_ops < 1 || m->n_ops > ODT_MAX_OPS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "n_ops", -1, m->n_ops, 1, ODT_MAX_OPS);
  }
  if (m->n_layers < 1 || m->n_layers > ODT_MAX_LAYERS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "n_layers", -1, m->n_layers, 1, ODT_MAX_LAYERS);
  }
  uint16_t lo = m->task == ODT_TASK_CLASSIFY ? 2 : 1;
  uint16_t hi = m->task == ODT_TASK_CLASSIFY ? ODT_MAX_CLASSES : ODT_MAX_OUTPUTS;
  if (m->n_classes < lo || m->n_classes > hi) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "n_classes", -1, m->n_classes, lo, hi);
  }
  return ODT_OK;
}

static odt_status_t parse_targets(odt_open_t* o) {
  odt_model_t* m = o->m;
  uint32_t correct = odt_le32(m->image + 28), wrong = odt_le32(m->image + 32);
  if ((correct == 0) != (wrong == 0)) {
    return odt_bad(o, -1, "targets: one of two absent", correct ? wrong : correct, ODT_IMAGE_HEAD,
                   m->image_bytes);
  }
  if (!correct) return ODT_OK;
  odt_status_t st = odt_section(o, correct, m->n_classes, "target_correct_off", -1);
  if (st == ODT_OK) st = odt_section(o, wrong, m->n_classes, "target_wrong_off", -1);
  if (st != ODT_OK) return st;
  m->target_correct = (const int8_t*)(m->image + correct);
  m->target_wrong = (const int8_t*)(m->image + wrong);
  return ODT_OK;
}

static odt_status_t parse_header(odt_open_t* o) {
  odt_model_t* m = o->m;
  const uint8_t* p = m->image;
  if (odt_le32(p) != 0x4D54444Fu) {
    return odt_bad(o, -1, "image: magic", odt_le32(p), 0x4D54444F, 0x4D54444F);
  }
  if (odt_le16(p + 4) != 1) {
    return odt_fail(o->err, ODT_UNIMPLEMENTED, "image: version", -1, odt_le16(p + 4), 1, 1);
  }
  o->head = odt_le16(p + 6);
  m->tail = o->head == ODT_TAIL_HEAD;
  if (o->head != ODT_IMAGE_HEAD && (!m->tail || o->head > m->image_bytes)) {
    return odt_bad(o, -1, "image: header bytes", o->head, ODT_IMAGE_HEAD, ODT_TAIL_HEAD);
  }
  if (odt_le32(p + 8) != m->image_bytes) {
    return odt_bad(o, -1, "image: total bytes", m->image_bytes, odt_le32(p + 8), odt_le32(p + 8));
  }
  if (p[38] > ODT_TASK_AUTOENCODE) {
    return odt_bad(o, -1, "image: task", p[38], 0, ODT_TASK_AUTOENCODE);
  }
  if (p[39] > ODT_ARITH_DFP16) {
    return odt_bad(o, -1, "image: arithmetic", p[39], 0, ODT_ARITH_DFP16);
  }
  if (p[39] == ODT_ARITH_DFP16 && !ODT_WITH_DFP16) {
    return odt_fail(o->err, ODT_UNIMPLEMENTED, "image: arithmetic: DFP16 is not in this firmware",
                    -1, p[39], ODT_ARITH_INT8, ODT_ARITH_INT8);
  }
  if (m->tail && p[39] != ODT_ARITH_INT8) {
    return odt_bad(o, -1, "tail image: arithmetic", p[39], 0, 0);
  }
  m->task = p[38];
  m->arith = p[39];
  odt_status_t st = parse_counts(o);
  if (st == ODT_OK) st = parse_targets(o);
  if (st != ODT_OK) return st;
  m->ce_scale = odt_le16(p + 36);
  m->src_correct = odt_le32(p + 40);
  m->src_total = odt_le32(p + 44);
  if (m->src_correct > m->src_total) {
    return odt_bad(o, -1, "src_correct", m->src_correct, 0, m->src_total);
  }
  memcpy(m->name, p + 48, 16);
  m->name[16] = 0;
  return ODT_OK;
}

static odt_status_t parse_tensor(odt_open_t* o, const uint8_t* p, int32_t i) {
  odt_tensor_t* t = &o->m->tensors[i];
  t->dtype = p[0];
  t->ndim = p[1];
  if (t->dtype < ODT_S8 || t->dtype > ODT_S16) {
    return odt_bad(o, i, "tensor: dtype", t->dtype, ODT_S8, ODT_S16);
  }
  if (t->ndim < 1 || t->ndim > 4) {
    return odt_bad(o, i, "tensor: ndim", t->ndim, 1, 4);
  }
  t->exponent = (int8_t)p[2];
  if (odt_is_dfp(o) && (t->exponent < -ODT_MAX_EXPONENT || t->exponent > ODT_MAX_EXPONENT)) {
    return odt_bad(o, i, "tensor: exponent", t->exponent, -ODT_MAX_EXPONENT, ODT_MAX_EXPONENT);
  }
  if (p[3] != 0) return odt_bad(o, i, "tensor: reserved", p[3], 0, 0);
  t->producer = ODT_UNWRITTEN;
  uint64_t count = 1;
  for (uint32_t d = 0; d < 4; d++) {
    t->dims[d] = odt_le16(p + 4 + 2 * d);
    bool used = d < t->ndim;
    if (used != (t->dims[d] != 0)) {
      return odt_bad(o, i, "tensor: dims", t->dims[d], used ? 1 : 0, used ? 65535 : 0);
    }
    if (used) count *= t->dims[d];
    if (count > ODT_MAX_COUNT) {
      return odt_fail(o->err, ODT_OUT_OF_RANGE, "tensor: values", i,
                      count > INT32_MAX ? INT32_MAX : (int64_t)count, 1, ODT_MAX_COUNT);
    }
  }
  t->count = odt_le32(p + 12);
  if (t->count != count) {
    return odt_bad(o, i, "tensor: count", t->count, (int64_t)count, (int64_t)count);
  }
  o->lo[i] = t->dtype == ODT_S8 ? INT8_MIN : t->dtype == ODT_U8 ? 0 : INT16_MIN;
  o->hi[i] = t->dtype == ODT_S8 ? INT8_MAX : t->dtype == ODT_U8 ? UINT8_MAX : INT16_MAX;
  return ODT_OK;
}

static odt_status_t parse(odt_open_t* o) {
  odt_model_t* m = o->m;
  odt_status_t st = parse_header(o);
  if (st != ODT_OK) return st;
  uint32_t tensors = odt_le32(m->image + 20), ops = odt_le32(m->image + 24);
  st = odt_section(o, tensors, (uint64_t)m->n_tensors * ODT_TENSOR_BYTES, "tensors_off", -1);
  if (st == ODT_OK) st = odt_section(o, ops, (uint64_t)m->n_ops * ODT_OP_BYTES, "ops_off", -1);
  for (int32_t i = 0; st == ODT_OK && i < m->n_tensors; i++) {
    st = parse_tensor(o, m->image + tensors + (uint32_t)i * ODT_TENSOR_BYTES, i);
  }
  return st == ODT_OK ? odt_parse_ops(o, ops) : st;
}

odt_status_t odt_model_open(odt_model_t* m, const void* image, uint32_t bytes, odt_error_t* err) {
  odt_open_t o = {.m = m, .err = err};
  memset(m, 0, sizeof *m);
  if (image == NULL || (uintptr_t)image % 4 != 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "image: address", -1,
                    (int64_t)((uintptr_t)image % 4), 0, 0);
  }
  if (bytes < ODT_IMAGE_HEAD) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "image: bytes", -1, bytes, ODT_IMAGE_HEAD,
                    INT32_MAX);
  }
  m->image = image;
  m->image_bytes = bytes;
  odt_status_t st = parse(&o);
  if (st != ODT_OK) return st;
  if (m->tail) {
    memcpy(m->hash, m->image + ODT_IMAGE_HEAD, 32);
    return ODT_OK;
  }
  odt_sha256_t sha;
  odt_sha256_init(&sha);
  odt_sha256_update(&sha, image, bytes);
  odt_sha256_final(&sha, m->hash);
  return ODT_OK;
}

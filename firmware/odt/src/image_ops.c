/* ODTM v1: ops, one by one. What they make together is checked in image_graph.c. */
#include "image.h"

odt_status_t odt_check_window(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (op->k_h == 0 || op->k_w == 0) return odt_bad(o, i, "op: kernel", 0, 1, 65535);
  if (op->stride_h == 0 || op->stride_w == 0) return odt_bad(o, i, "op: stride", 0, 1, 65535);
  for (int axis = 0; axis < 2; axis++) {
    int64_t kernel = axis ? op->k_w : op->k_h, dil = axis ? op->dil_w : op->dil_h;
    int64_t pads = axis ? op->pad_l + op->pad_r : op->pad_t + op->pad_b;
    int64_t span = in->dims[1 + axis] + pads - dil * (kernel - 1) - 1;
    int64_t size = span < 0 ? 0 : span / (axis ? op->stride_w : op->stride_h) + 1;
    if (size != out->dims[1 + axis]) {
      return odt_bad(o, i, axis ? "op: output width" : "op: output height", out->dims[1 + axis],
                     size, size);
    }
  }
  uint64_t positions = (uint64_t)out->dims[1] * out->dims[2];
  if (positions > ODT_MAX_POSITIONS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: output positions", i, (int64_t)positions, 1,
                    ODT_MAX_POSITIONS);
  }
  return ODT_OK;
}

static odt_status_t check_conv(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (in->ndim != 3) return odt_bad(o, i, "op: input dimensions", in->ndim, 3, 3);
  if (out->ndim != 3) return odt_bad(o, i, "op: output dimensions", out->ndim, 3, 3);
  if (op->dil_h == 0 || op->dil_w == 0) return odt_bad(o, i, "op: dilation", 0, 1, 65535);
  if (op->groups == 0 || in->dims[0] % op->groups || out->dims[0] % op->groups) {
    return odt_bad(o, i, "op: groups", op->groups, 1, in->dims[0]);
  }
  odt_status_t st = odt_check_window(o, i, op);
  if (st != ODT_OK) return st;
  if (op->n_out != out->dims[0]) {
    return odt_bad(o, i, "op: n_out", op->n_out, out->dims[0], out->dims[0]);
  }
  uint64_t n = (uint64_t)in->dims[0] / op->groups * op->k_h * op->k_w * out->dims[0];
  if (op->n_weights == n) return ODT_OK;
  return odt_bad(o, i, "op: n_weights", op->n_weights, (int64_t)n, (int64_t)n);
}

static odt_status_t check_linear(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (in->ndim != 1) return odt_bad(o, i, "op: input dimensions", in->ndim, 1, 1);
  if (out->ndim != 1) return odt_bad(o, i, "op: output dimensions", out->ndim, 1, 1);
  if (op->n_out != out->count) return odt_bad(o, i, "op: n_out", op->n_out, out->count, out->count);
  uint64_t n = (uint64_t)in->count * out->count;
  if (op->n_weights == n) return ODT_OK;
  return odt_bad(o, i, "op: n_weights", op->n_weights, (int64_t)n, (int64_t)n);
}

static odt_status_t check_prequant(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (odt_is_dfp(o)) return odt_bad(o, i, "op: PREQUANT in DFP16", op->kind, 2, 10);
  if (i != 0) return odt_bad(o, i, "op: PREQUANT not the first", i, 0, 0);
  if (in->count != out->count) {
    return odt_bad(o, i, "op: output values", out->count, in->count, in->count);
  }
  if (op->n_out != 1 && op->n_out != in->dims[0]) {
    return odt_bad(o, i, "op: n_out", op->n_out, in->dims[0], in->dims[0]);
  }
  return op->n_weights ? odt_bad(o, i, "op: n_weights", op->n_weights, 0, 0) : ODT_OK;
}

/* Sums of products stay in int32, those of deltas too: that the kernels need not check again.
 * (DFP16 sums in 64 bits.) */
static odt_status_t check_sums(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  if (odt_is_dfp(o)) return ODT_OK;
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  int32_t lo = o->lo[op->in0], hi = o->hi[op->in0];
  uint64_t x = (uint64_t)(-lo > hi ? -lo : hi), window = (uint64_t)op->k_h * op->k_w;
  uint64_t terms, back = 0, scale = 128;
  if (x == 0) x = 1;
  switch (op->kind) {
    case ODT_OP_CONV2D:
      terms = in->dims[0] / op->groups * window;
      back = out->dims[0] / op->groups * window;
      break;
    case ODT_OP_LINEAR:
      terms = in->count;
      break;
    case ODT_OP_AVGPOOL:
    case ODT_OP_GAP:
      terms = (uint64_t)in->dims[1] * in->dims[2]; /* padding adds nothing */
      if (op->kind == ODT_OP_AVGPOOL && window < terms) terms = window;
      scale = 1;
      break;
    default:
      return ODT_OK;
  }
  if (terms * scale * x <= INT32_MAX && back <= 131071u) return ODT_OK;
  return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: products per sum", i,
                  (int64_t)(terms > back ? terms : back), 1, (int64_t)(INT32_MAX / scale / x));
}

/* Kinds whose output is shifted and clipped (rule 1.2). */
static bool has_shift(const odt_op_t* op) {
  return odt_has_weights(op) || op->kind == ODT_OP_PREQUANT || op->kind == ODT_OP_AVGPOOL ||
         op->kind == ODT_OP_GAP;
}

static odt_status_t take_weights(const odt_open_t* o, int32_t i, odt_op_t* op, uint32_t at) {
  bool dfp = odt_is_dfp(o);
  const uint8_t* image = o->m->image;
  if (!odt_has_weights(op)) {
    return op->n_weights ? odt_bad(o, i, "op: n_weights", op->n_weights, 0, 0) : ODT_OK;
  }
  odt_status_t st = odt_section(o, at, (dfp ? 2ull : 1ull) * op->n_weights, "op: weights_off", i);
  if (st != ODT_OK) return st;
  if (dfp) {
    op->weights16 = (const int16_t*)(const void*)(image + at);
    for (uint32_t j = 0; j < op->n_weights; j++) {
      if (op->weights16[j] != INT16_MIN) continue;
      return odt_bad(o, i, "op: weight in DFP16", INT16_MIN, -INT16_MAX, INT16_MAX);
    }
  } else {
    op->weights = (const int8_t*)(image + at);
  }
  return ODT_OK;
}

static odt_status_t take_shifts(const odt_open_t* o, int32_t i, odt_op_t* op, uint32_t k,
                                uint32_t mult) {
  const uint8_t* image = o->m->image;
  bool prequant = op->kind == ODT_OP_PREQUANT;
  odt_status_t st = odt_section(o, k, op->n_out, "op: k_off", i);
  if (st == ODT_OK && (mult || prequant)) {
    st = odt_section(o, mult, (prequant ? 2ull : 1ull) * op->n_out, "op: mult_off", i);
  }
  if (st != ODT_OK) return st;
  op->k_out = (const int8_t*)(image + k);
  op->mult = mult ? image + mult : NULL;
  for (uint32_t c = 0; c < op->n_out; c++) {
    if (op->k_out[c] < 0 || op->k_out[c] > 31) return odt_bad(o, i, "op: k", op->k_out[c], 0, 31);
    if (op->mult && !prequant && op->mult[c] == 0) return odt_bad(o, i, "op: mult", 0, 1, 255);
  }
  return ODT_OK;
}

static odt_status_t take_sections(const odt_open_t* o, int32_t i, odt_op_t* op, const uint8_t* p) {
  const uint8_t* image = o->m->image;
  uint32_t offset = odt_le32(p + 24), k = odt_le32(p + 32), mult = odt_le32(p + 36);
  odt_status_t st = take_weights(o, i, op, odt_le32(p + 16));
  if (st == ODT_OK && op->n_out) {
    st = odt_section(o, offset, 4ull * op->n_out, "op: offset_off", i);
    op->offset = (const int32_t*)(const void*)(image + offset);
  }
  if (st != ODT_OK) return st;
  if (odt_is_dfp(o)) {
    if (k != 0) return odt_bad(o, i, "op: k_off in DFP16", k, 0, 0);
    return mult ? odt_bad(o, i, "op: mult_off in DFP16", mult, 0, 0) : ODT_OK;
  }
  /* Rule 1.4 has no delta for a negative factor: log2 of it, and the sign, are left open. */
  for (uint32_t f = 0; op->kind == ODT_OP_ADD && f < op->n_out; f++) {
    if (op->offset[f] < 0) {
      return odt_bad(o, i, "op: factor of ADD", op->offset[f], 0, INT32_MAX);
    }
  }
  return has_shift(op) ? take_shifts(o, i, op, k, mult) : ODT_OK;
}

/* DFP16: all but the network input is s16 over the whole range; a ReLU cuts at 0. */
static odt_status_t check_output16(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  bool flatten = op->kind == ODT_OP_FLATTEN;
  if (out->dtype != ODT_S16 && !(flatten && out->dtype == in->dtype)) {
    return odt_bad(o, i, "op: output dtype", out->dtype, ODT_S16, ODT_S16);
  }
  if (flatten || op->kind == ODT_OP_MAXPOOL || op->kind == ODT_OP_RESIZE) return ODT_OK;
  int32_t lo = op->flags & ODT_OP_FLAG_RELU ? 0 : -INT16_MAX;
  if (op->clip_lo != lo) return odt_bad(o, i, "op: clip_lo in DFP16", op->clip_lo, lo, lo);
  if (op->clip_hi == INT16_MAX) return ODT_OK;
  return odt_bad(o, i, "op: clip_hi in DFP16", op->clip_hi, INT16_MAX, INT16_MAX);
}

static odt_status_t check_clip(odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t* out = &o->m->tensors[op->out];
  if (op->clip_lo > op->clip_hi) {
    return odt_bad(o, i, "op: clip_lo", op->clip_lo, INT16_MIN, op->clip_hi);
  }
  if (op->clip_lo < INT16_MIN) {
    return odt_bad(o, i, "op: clip_lo", op->clip_lo, INT16_MIN, INT16_MAX);
  }
  if (op->clip_hi > INT16_MAX) {
    return odt_bad(o, i, "op: clip_hi", op->clip_hi, INT16_MIN, INT16_MAX);
  }
  if ((op->flags & ODT_OP_FLAG_RELU) && op->clip_lo < 0) {
    return odt_bad(o, i, "op: clip_lo of a ReLU", op->clip_lo, 0, op->clip_hi);
  }
  uint8_t want = op->clip_lo >= 0 && op->clip_hi <= 255      ? ODT_U8
                 : op->clip_lo >= -128 && op->clip_hi <= 127 ? ODT_S8
                                                             : ODT_S16;
  if (out->dtype != want) return odt_bad(o, i, "op: output dtype", out->dtype, want, want);
  o->lo[op->out] = (int16_t)op->clip_lo;
  o->hi[op->out] = (int16_t)op->clip_hi;
  return ODT_OK;
}

/* CONCAT copies: what it reads must lie within what it writes. */
static odt_status_t check_copies(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  for (int side = 0; side < 2; side++) {
    uint16_t in = side ? op->in1 : op->in0;
    if (o->lo[in] < op->clip_lo) {
      return odt_bad(o, i, "op: clip_lo of CONCAT", op->clip_lo, INT16_MIN, o->lo[in]);
    }
    if (o->hi[in] > op->clip_hi) {
      return odt_bad(o, i, "op: clip_hi of CONCAT", op->clip_hi, o->hi[in], INT16_MAX);
    }
  }
  return ODT_OK;
}

static odt_status_t check_output(odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (odt_is_dfp(o)) return check_output16(o, i, op);
  if (op->kind == ODT_OP_FLATTEN || op->kind == ODT_OP_MAXPOOL || op->kind == ODT_OP_RESIZE) {
    if (out->dtype != in->dtype) {
      return odt_bad(o, i, "op: output dtype", out->dtype, in->dtype, in->dtype);
    }
    o->lo[op->out] = o->lo[op->in0];
    o->hi[op->out] = o->hi[op->in0];
    return ODT_OK;
  }
  odt_status_t st = check_clip(o, i, op);
  return st == ODT_OK && op->kind == ODT_OP_CONCAT ? check_copies(o, i, op) : st;
}

static odt_status_t check_exponents(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  int32_t top = ODT_MAX_EXPONENT;
  if (!odt_has_weights(op) && op->e_w != 0) return odt_bad(o, i, "op: e_w", op->e_w, 0, 0);
  if ((!odt_has_weights(op) || !odt_is_dfp(o)) && op->e_b != 0) {
    return odt_bad(o, i, "op: e_b", op->e_b, 0, 0);
  }
  if (!odt_is_dfp(o)) return ODT_OK;
  if (op->e_w < -top || op->e_w > top) return odt_bad(o, i, "op: e_w", op->e_w, -top, top);
  if (op->e_b < -top || op->e_b > top) return odt_bad(o, i, "op: e_b", op->e_b, -top, top);
  return ODT_OK;
}

static void read_op(odt_op_t* op, const uint8_t* p) {
  op->kind = p[0];
  op->flags = p[1];
  op->in0 = odt_le16(p + 2);
  op->in1 = odt_le16(p + 4);
  op->out = odt_le16(p + 6);
  op->clip_lo = (int32_t)odt_le32(p + 8);
  op->clip_hi = (int32_t)odt_le32(p + 12);
  op->n_weights = odt_le32(p + 20);
  op->n_out = odt_le32(p + 28);
  op->k_h = odt_le16(p + 40);
  op->k_w = odt_le16(p + 42);
  op->stride_h = odt_le16(p + 44);
  op->stride_w = odt_le16(p + 46);
  op->pad_t = odt_le16(p + 48);
  op->pad_l = odt_le16(p + 50);
  op->pad_b = odt_le16(p + 52);
  op->pad_r = odt_le16(p + 54);
  bool conv = op->kind == ODT_OP_CONV2D;
  op->dil_h = conv ? odt_le16(p + 56) : 1;
  op->dil_w = conv ? odt_le16(p + 58) : 1;
  op->groups = conv ? odt_le16(p + 60) : 1;
  op->e_w = (int8_t)p[62];
  op->e_b = (int8_t)p[63];
  op->layer = -1;
}

/* Kinds that there are, and that this build lacks. */
static odt_status_t check_built(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  bool conv = op->kind == ODT_OP_CONV2D && !ODT_WITH_CONV;
  bool graph = op->kind >= ODT_OP_MAXPOOL && op->kind <= ODT_OP_RESIZE && !ODT_WITH_GRAPHS;
  if (!conv && !graph) return ODT_OK;
  return odt_fail(o->err, ODT_UNIMPLEMENTED, "op: kind: not in this firmware", i, op->kind,
                  ODT_OP_LINEAR, ODT_OP_FLATTEN);
}

static odt_status_t parse_op(odt_open_t* o, int32_t i, const uint8_t* p) {
  odt_op_t* op = &o->m->ops[i];
  read_op(op, p);
  odt_status_t st = check_built(o, i, op);
  if (st == ODT_OK) st = odt_check_links(o, i, op);
  if (st == ODT_OK) st = check_exponents(o, i, op);
  if (st != ODT_OK) return st;
  switch (op->kind) {
    case ODT_OP_CONV2D:
      st = check_conv(o, i, op);
      break;
    case ODT_OP_LINEAR:
      st = check_linear(o, i, op);
      break;
    case ODT_OP_PREQUANT:
      st = check_prequant(o, i, op);
      break;
    default:
      st = odt_check_shape(o, i, op);
      break;
  }
  if (st == ODT_OK) st = check_sums(o, i, op);
  if (st == ODT_OK) st = take_sections(o, i, op, p);
  return st == ODT_OK ? check_output(o, i, op) : st;
}

odt_status_t odt_parse_ops(odt_open_t* o, uint32_t ops_off) {
  for (int32_t i = 0; i < o->m->n_ops; i++) {
    odt_status_t st = parse_op(o, i, o->m->image + ops_off + (uint32_t)i * ODT_OP_BYTES);
    if (st != ODT_OK) return st;
  }
  return odt_check_graph(o);
}

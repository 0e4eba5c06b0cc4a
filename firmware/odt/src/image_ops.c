/* ODTM v1: ops. Version 1 runs chains: every op reads what the op before it wrote. */
#include "image.h"

static odt_status_t bad(const odt_open_t* o, int32_t i, const char* what, int64_t got, int64_t lo,
                        int64_t hi) {
  return odt_fail(o->err, ODT_INVALID_ARGUMENT, what, i, got, lo, hi);
}

static odt_status_t check_conv(const odt_open_t* o, int32_t i, const odt_op_t* op,
                               const odt_tensor_t* in, const odt_tensor_t* out) {
  if (in->ndim != 3) return bad(o, i, "op: input dimensions", in->ndim, 3, 3);
  if (out->ndim != 3) return bad(o, i, "op: output dimensions", out->ndim, 3, 3);
  if (op->k_h == 0 || op->k_w == 0) return bad(o, i, "op: kernel", 0, 1, 65535);
  if (op->stride_h == 0 || op->stride_w == 0) return bad(o, i, "op: stride", 0, 1, 65535);
  if (op->dil_h == 0 || op->dil_w == 0) return bad(o, i, "op: dilation", 0, 1, 65535);
  if (op->groups == 0 || in->dims[0] % op->groups || out->dims[0] % op->groups) {
    return bad(o, i, "op: groups", op->groups, 1, in->dims[0]);
  }
  for (int axis = 0; axis < 2; axis++) {
    int64_t kernel = axis ? op->k_w : op->k_h, dil = axis ? op->dil_w : op->dil_h;
    int64_t pads = axis ? op->pad_l + op->pad_r : op->pad_t + op->pad_b;
    int64_t span = in->dims[1 + axis] + pads - dil * (kernel - 1) - 1;
    int64_t size = span < 0 ? 0 : span / (axis ? op->stride_w : op->stride_h) + 1;
    if (size != out->dims[1 + axis]) {
      return bad(o, i, axis ? "op: output width" : "op: output height", out->dims[1 + axis], size,
                 size);
    }
  }
  uint64_t fan_in = (uint64_t)in->dims[0] / op->groups * op->k_h * op->k_w;
  uint64_t fan_out = (uint64_t)out->dims[0] / op->groups * op->k_h * op->k_w;
  uint64_t positions = (uint64_t)out->dims[1] * out->dims[2];
  if (positions > ODT_MAX_POSITIONS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: output positions", i, (int64_t)positions, 1,
                    ODT_MAX_POSITIONS);
  }
  if (op->n_out != out->dims[0])
    return bad(o, i, "op: n_out", op->n_out, out->dims[0], out->dims[0]);
  if (op->n_weights != fan_in * out->dims[0]) {
    return bad(o, i, "op: n_weights", op->n_weights, (int64_t)(fan_in * out->dims[0]),
               (int64_t)(fan_in * out->dims[0]));
  }
  /* Sums of products stay in int32: that the kernels need not check again. */
  if (fan_in * 128u * (uint64_t)o->max_abs[op->in0] > INT32_MAX || fan_out > 131071u) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: products per sum", i,
                    (int64_t)(fan_in > fan_out ? fan_in : fan_out), 1,
                    INT32_MAX / 128 / o->max_abs[op->in0]);
  }
  return ODT_OK;
}

static odt_status_t check_linear(const odt_open_t* o, int32_t i, const odt_op_t* op,
                                 const odt_tensor_t* in, const odt_tensor_t* out) {
  if (in->ndim != 1) return bad(o, i, "op: input dimensions", in->ndim, 1, 1);
  if (out->ndim != 1) return bad(o, i, "op: output dimensions", out->ndim, 1, 1);
  if (op->n_out != out->count) return bad(o, i, "op: n_out", op->n_out, out->count, out->count);
  uint64_t n = (uint64_t)in->count * out->count;
  if (op->n_weights != n) {
    return bad(o, i, "op: n_weights", op->n_weights, (int64_t)n, (int64_t)n);
  }
  if ((uint64_t)in->count * 128u * (uint64_t)o->max_abs[op->in0] > INT32_MAX) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: products per sum", i, in->count, 1,
                    INT32_MAX / 128 / o->max_abs[op->in0]);
  }
  return ODT_OK;
}

static odt_status_t check_prequant(const odt_open_t* o, int32_t i, const odt_op_t* op,
                                   const odt_tensor_t* in, const odt_tensor_t* out) {
  if (i != 0) return bad(o, i, "op: PREQUANT not the first", i, 0, 0);
  if (op->flags != 0) return bad(o, i, "op: flags", op->flags, 0, 0);
  if (in->count != out->count)
    return bad(o, i, "op: output values", out->count, in->count, in->count);
  if (op->n_out != 1 && op->n_out != in->dims[0]) {
    return bad(o, i, "op: n_out", op->n_out, in->dims[0], in->dims[0]);
  }
  return op->n_weights ? bad(o, i, "op: n_weights", op->n_weights, 0, 0) : ODT_OK;
}

/* Sections of a compute op or PREQUANT. */
static odt_status_t take_sections(const odt_open_t* o, int32_t i, odt_op_t* op, const uint8_t* p) {
  const uint8_t* image = o->m->image;
  uint32_t weights = odt_le32(p + 16), offset = odt_le32(p + 24), k = odt_le32(p + 32);
  uint32_t mult = odt_le32(p + 36);
  bool prequant = op->kind == ODT_OP_PREQUANT;
  odt_status_t st = ODT_OK;
  if (!prequant) st = odt_section(o, weights, op->n_weights, "op: weights_off", i);
  if (st == ODT_OK) st = odt_section(o, offset, 4ull * op->n_out, "op: offset_off", i);
  if (st == ODT_OK) st = odt_section(o, k, op->n_out, "op: k_off", i);
  if (st == ODT_OK && (mult || prequant)) {
    st = odt_section(o, mult, (prequant ? 2ull : 1ull) * op->n_out, "op: mult_off", i);
  }
  if (st != ODT_OK) return st;
  op->weights = prequant ? NULL : (const int8_t*)(image + weights);
  op->offset = (const int32_t*)(const void*)(image + offset);
  op->k_out = (const int8_t*)(image + k);
  op->mult = mult ? image + mult : NULL;
  for (uint32_t c = 0; c < op->n_out; c++) {
    if (op->k_out[c] < 0 || op->k_out[c] > 31) return bad(o, i, "op: k", op->k_out[c], 0, 31);
    if (op->mult && !prequant && op->mult[c] == 0) return bad(o, i, "op: mult", 0, 1, 255);
  }
  return ODT_OK;
}

static odt_status_t check_clip(odt_open_t* o, int32_t i, const odt_op_t* op,
                               const odt_tensor_t* out) {
  if (op->clip_lo > op->clip_hi) {
    return bad(o, i, "op: clip_lo", op->clip_lo, INT16_MIN, op->clip_hi);
  }
  if (op->clip_lo < INT16_MIN) return bad(o, i, "op: clip_lo", op->clip_lo, INT16_MIN, INT16_MAX);
  if (op->clip_hi > INT16_MAX) return bad(o, i, "op: clip_hi", op->clip_hi, INT16_MIN, INT16_MAX);
  if ((op->flags & ODT_OP_FLAG_RELU) && op->clip_lo < 0) {
    return bad(o, i, "op: clip_lo of a ReLU", op->clip_lo, 0, op->clip_hi);
  }
  uint8_t want = op->clip_lo >= 0 && op->clip_hi <= 255      ? ODT_U8
                 : op->clip_lo >= -128 && op->clip_hi <= 127 ? ODT_S8
                                                             : ODT_S16;
  if (out->dtype != want) return bad(o, i, "op: output dtype", out->dtype, want, want);
  int32_t lo = op->clip_lo < 0 ? -op->clip_lo : op->clip_lo;
  int32_t hi = op->clip_hi < 0 ? -op->clip_hi : op->clip_hi;
  int32_t top = lo > hi ? lo : hi;
  o->max_abs[op->out] = top > 0 ? top : 1;
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
  op->dil_h = odt_le16(p + 56);
  op->dil_w = odt_le16(p + 58);
  op->groups = odt_le16(p + 60);
  op->layer = -1;
}

static odt_status_t check_links(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_model_t* m = o->m;
  if (op->kind < ODT_OP_PREQUANT || op->kind > 10) {
    return bad(o, i, "op: kind", op->kind, ODT_OP_PREQUANT, ODT_OP_FLATTEN);
  }
  if (op->kind > ODT_OP_FLATTEN) {
    return odt_fail(o->err, ODT_UNIMPLEMENTED, "op: kind", i, op->kind, ODT_OP_PREQUANT,
                    ODT_OP_FLATTEN);
  }
  if (op->flags & ~(ODT_OP_FLAG_RELU | ODT_OP_FLAG_TRAINABLE)) {
    return bad(o, i, "op: flags", op->flags, 0, 3);
  }
  if (op->in0 >= m->n_tensors) return bad(o, i, "op: in0", op->in0, 0, m->n_tensors - 1);
  if (op->out >= m->n_tensors) return bad(o, i, "op: out", op->out, 0, m->n_tensors - 1);
  if (op->in1 != 0xFFFF) return bad(o, i, "op: in1", op->in1, 0xFFFF, 0xFFFF);
  if (i > 0 && op->in0 != m->ops[i - 1].out) {
    return odt_fail(o->err, ODT_UNIMPLEMENTED, "op: in0 not the output before it", i, op->in0,
                    m->ops[i - 1].out, m->ops[i - 1].out);
  }
  if (op->out == op->in0) return bad(o, i, "op: out", op->out, 0, m->n_tensors - 1);
  for (int32_t j = 0; j < i; j++) {
    if (m->ops[j].out == op->out || m->ops[j].in0 == op->out) {
      return bad(o, i, "op: out written or read before", op->out, 0, m->n_tensors - 1);
    }
  }
  return ODT_OK;
}

static odt_status_t parse_op(odt_open_t* o, int32_t i, const uint8_t* p) {
  odt_model_t* m = o->m;
  odt_op_t* op = &m->ops[i];
  read_op(op, p);
  odt_status_t st = check_links(o, i, op);
  if (st != ODT_OK) return st;
  if (odt_le16(p + 62) != 0) return bad(o, i, "op: reserved", odt_le16(p + 62), 0, 0);
  const odt_tensor_t *in = &m->tensors[op->in0], *out = &m->tensors[op->out];
  if (op->kind == ODT_OP_FLATTEN) {
    if (op->flags != 0) return bad(o, i, "op: flags", op->flags, 0, 0);
    if (out->dtype != in->dtype)
      return bad(o, i, "op: output dtype", out->dtype, in->dtype, in->dtype);
    if (out->count != in->count || out->ndim != 1) {
      return bad(o, i, "op: output values", out->count, in->count, in->count);
    }
    o->max_abs[op->out] = o->max_abs[op->in0];
    return ODT_OK;
  }
  st = op->kind == ODT_OP_CONV2D   ? check_conv(o, i, op, in, out)
       : op->kind == ODT_OP_LINEAR ? check_linear(o, i, op, in, out)
                                   : check_prequant(o, i, op, in, out);
  if (st == ODT_OK) st = take_sections(o, i, op, p);
  return st == ODT_OK ? check_clip(o, i, op, out) : st;
}

odt_status_t odt_parse_ops(odt_open_t* o, uint32_t ops_off) {
  odt_model_t* m = o->m;
  uint32_t layers = 0;
  for (int32_t i = 0; i < m->n_ops; i++) {
    odt_status_t st = parse_op(o, i, m->image + ops_off + (uint32_t)i * ODT_OP_BYTES);
    if (st != ODT_OK) return st;
    odt_op_t* op = &m->ops[i];
    if (!(op->flags & ODT_OP_FLAG_TRAINABLE)) continue;
    if (layers == m->n_layers) return bad(o, i, "n_layers", layers + 1, m->n_layers, m->n_layers);
    if (layers == 0) m->first_trainable_op = (uint16_t)i;
    op->layer = (int8_t)layers;
    m->layer_op[layers++] = (uint16_t)i;
  }
  if (layers != m->n_layers) return bad(o, -1, "n_layers", m->n_layers, layers, layers);
  m->input = m->ops[0].in0;
  m->logits = m->ops[m->n_ops - 1].out;
  const odt_tensor_t* z = &m->tensors[m->logits];
  if (z->count != m->n_classes)
    return bad(o, -1, "logits: values", z->count, m->n_classes, m->n_classes);
  if (z->dtype != ODT_S8) return bad(o, -1, "logits: dtype", z->dtype, ODT_S8, ODT_S8);
  return ODT_OK;
}

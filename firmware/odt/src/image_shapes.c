/* ODTM v1: shapes of the kinds without weights. */
#include "image.h"

static odt_status_t bad_rank(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (in->ndim != 3) return odt_bad(o, i, "op: input dimensions", in->ndim, 3, 3);
  if (out->ndim != 3) return odt_bad(o, i, "op: output dimensions", out->ndim, 3, 3);
  if (out->dims[0] != in->dims[0]) {
    return odt_bad(o, i, "op: output channels", out->dims[0], in->dims[0], in->dims[0]);
  }
  return ODT_OK;
}

/* n_out of AVGPOOL and GAP: one shift for all channels, or one each. */
static odt_status_t check_channels(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  uint32_t channels = o->m->tensors[op->in0].dims[0];
  if (odt_is_dfp(o)) return op->n_out ? odt_bad(o, i, "op: n_out", op->n_out, 0, 0) : ODT_OK;
  if (op->n_out == 1 || op->n_out == channels) return ODT_OK;
  return odt_bad(o, i, "op: n_out", op->n_out, 1, channels);
}

/* A window that sees only padding has no maximum. */
static odt_status_t check_coverage(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  for (int axis = 0; axis < 2; axis++) {
    int32_t pad = axis ? op->pad_l : op->pad_t, kernel = axis ? op->k_w : op->k_h;
    int64_t stride = axis ? op->stride_w : op->stride_h;
    int64_t last = (out->dims[1 + axis] - 1) * stride - pad;
    if (pad >= kernel) return odt_bad(o, i, "op: padding of MAXPOOL", pad, 0, kernel - 1);
    if (last >= in->dims[1 + axis]) {
      return odt_bad(o, i, "op: last window of MAXPOOL", last, 0, in->dims[1 + axis] - 1);
    }
  }
  return ODT_OK;
}

static odt_status_t check_pool(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  odt_status_t st = bad_rank(o, i, op);
  if (st == ODT_OK) st = odt_check_window(o, i, op);
  if (st != ODT_OK) return st;
  if (op->kind == ODT_OP_AVGPOOL) return check_channels(o, i, op);
  if (op->n_out) return odt_bad(o, i, "op: n_out", op->n_out, 0, 0);
  return check_coverage(o, i, op);
}

static odt_status_t check_gap(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (in->ndim != 3) return odt_bad(o, i, "op: input dimensions", in->ndim, 3, 3);
  if (out->ndim != 1 && out->ndim != 3) {
    return odt_bad(o, i, "op: output dimensions", out->ndim, 1, 3);
  }
  if (out->dims[0] != in->dims[0] || out->count != in->dims[0]) {
    return odt_bad(o, i, "op: output values", out->count, in->dims[0], in->dims[0]);
  }
  return check_channels(o, i, op);
}

static odt_status_t same_shape(const odt_open_t* o, int32_t i, const odt_tensor_t* a,
                               const odt_tensor_t* b, uint32_t from, const char* what) {
  if (a->ndim != b->ndim) return odt_bad(o, i, what, b->ndim, a->ndim, a->ndim);
  for (uint32_t d = from; d < a->ndim; d++) {
    if (a->dims[d] != b->dims[d]) {
      return odt_bad(o, i, what, b->dims[d], a->dims[d], a->dims[d]);
    }
  }
  return ODT_OK;
}

static odt_status_t check_merge(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *a = &o->m->tensors[op->in0], *b = &o->m->tensors[op->in1];
  const odt_tensor_t* out = &o->m->tensors[op->out];
  bool add = op->kind == ODT_OP_ADD;
  uint32_t from = add ? 0 : 1, n = add && !odt_is_dfp(o) ? 2 : 0;
  odt_status_t st = same_shape(o, i, a, b, from, "op: second input's shape");
  if (st == ODT_OK) st = same_shape(o, i, a, out, from, "op: output shape");
  if (st != ODT_OK) return st;
  uint32_t depth = (uint32_t)a->dims[0] + b->dims[0];
  if (!add && out->dims[0] != depth) {
    return odt_bad(o, i, "op: output shape", out->dims[0], depth, depth);
  }
  return op->n_out == n ? ODT_OK : odt_bad(o, i, "op: n_out", op->n_out, n, n);
}

static odt_status_t check_resize(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t* out = &o->m->tensors[op->out];
  odt_status_t st = bad_rank(o, i, op);
  if (st != ODT_OK) return st;
  uint64_t positions = (uint64_t)out->dims[1] * out->dims[2];
  if (positions > ODT_MAX_POSITIONS) {
    return odt_fail(o->err, ODT_OUT_OF_RANGE, "op: output positions", i, (int64_t)positions, 1,
                    ODT_MAX_POSITIONS);
  }
  return op->n_out ? odt_bad(o, i, "op: n_out", op->n_out, 0, 0) : ODT_OK;
}

static odt_status_t check_flatten(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  const odt_tensor_t *in = &o->m->tensors[op->in0], *out = &o->m->tensors[op->out];
  if (out->count != in->count || out->ndim != 1) {
    return odt_bad(o, i, "op: output values", out->count, in->count, in->count);
  }
  return op->n_out ? odt_bad(o, i, "op: n_out", op->n_out, 0, 0) : ODT_OK;
}

odt_status_t odt_check_shape(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  switch (op->kind) {
    case ODT_OP_FLATTEN:
      return check_flatten(o, i, op);
    case ODT_OP_MAXPOOL:
    case ODT_OP_AVGPOOL:
      return check_pool(o, i, op);
    case ODT_OP_GAP:
      return check_gap(o, i, op);
    case ODT_OP_RESIZE:
      return check_resize(o, i, op);
    default:
      return check_merge(o, i, op);
  }
}

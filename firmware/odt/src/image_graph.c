/* ODTM v1: how ops hang together, which layers are trained, where the frozen part ends. */
#include "image.h"

static uint8_t flags_of(uint8_t kind) {
  if (kind == ODT_OP_CONV2D || kind == ODT_OP_LINEAR) {
    return ODT_OP_FLAG_RELU | ODT_OP_FLAG_TRAINABLE | ODT_OP_FLAG_OFFSETS_ONLY;
  }
  return kind == ODT_OP_ADD ? ODT_OP_FLAG_RELU : 0;
}

static odt_status_t check_kind(const odt_open_t* o, int32_t i, const odt_op_t* op) {
  if (op->kind < ODT_OP_PREQUANT || op->kind > ODT_OP_RESIZE) {
    return odt_bad(o, i, "op: kind", op->kind, ODT_OP_PREQUANT, ODT_OP_RESIZE);
  }
  uint8_t allowed = flags_of(op->kind);
  bool offsets = (op->flags & ODT_OP_FLAG_OFFSETS_ONLY) != 0;
  if ((op->flags & ~allowed) || (offsets && !(op->flags & ODT_OP_FLAG_TRAINABLE))) {
    return odt_bad(o, i, "op: flags", op->flags, 0, allowed);
  }
  return ODT_OK;
}

odt_status_t odt_check_links(odt_open_t* o, int32_t i, const odt_op_t* op) {
  odt_model_t* m = o->m;
  int32_t top = m->n_tensors - 1;
  odt_status_t st = check_kind(o, i, op);
  if (st != ODT_OK) return st;
  bool two = op->kind == ODT_OP_ADD || op->kind == ODT_OP_CONCAT;
  if (op->in0 > top) return odt_bad(o, i, "op: in0", op->in0, 0, top);
  if (op->out > top) return odt_bad(o, i, "op: out", op->out, 0, top);
  if (two && op->in1 > top) return odt_bad(o, i, "op: in1", op->in1, 0, top);
  if (!two && op->in1 != ODT_NO_TENSOR) {
    return odt_bad(o, i, "op: in1", op->in1, ODT_NO_TENSOR, ODT_NO_TENSOR);
  }
  if (i == 0) m->tensors[op->in0].producer = ODT_NO_OP;
  if (op->out == op->in0 || (two && op->out == op->in1)) {
    return odt_bad(o, i, "op: out", op->out, 0, top);
  }
  if (m->tensors[op->in0].producer == ODT_UNWRITTEN) {
    return odt_bad(o, i, "op: in0 not written before", op->in0, 0, top);
  }
  if (two && m->tensors[op->in1].producer == ODT_UNWRITTEN) {
    return odt_bad(o, i, "op: in1 not written before", op->in1, 0, top);
  }
  if (m->tensors[op->out].producer != ODT_UNWRITTEN) {
    return odt_bad(o, i, "op: out written or read before", op->out, 0, top);
  }
  m->tensors[op->out].producer = (uint8_t)i;
  return ODT_OK;
}

static bool reads(const odt_op_t* op, uint32_t tensor) {
  return op->in0 == tensor || op->in1 == tensor;
}

static odt_status_t check_tensors(const odt_open_t* o) {
  const odt_model_t* m = o->m;
  for (int32_t k = 0; k < m->n_tensors; k++) {
    if (m->tensors[k].producer == ODT_UNWRITTEN) {
      return odt_bad(o, k, "tensor: not written", m->n_tensors, m->n_ops + 1, m->n_ops + 1);
    }
    bool read = k == m->logits;
    for (uint32_t i = 0; i < m->n_ops && !read; i++) read = reads(&m->ops[i], (uint32_t)k);
    if (!read) return odt_bad(o, k, "tensor: not read", 0, 1, m->n_ops);
  }
  return ODT_OK;
}

static odt_status_t number_layers(const odt_open_t* o) {
  odt_model_t* m = o->m;
  uint32_t layers = 0;
  for (int32_t i = 0; i < m->n_ops; i++) {
    odt_op_t* op = &m->ops[i];
    if (!(op->flags & ODT_OP_FLAG_TRAINABLE)) continue;
    if (layers == m->n_layers) {
      return odt_bad(o, i, "n_layers", layers + 1, m->n_layers, m->n_layers);
    }
    if (layers == 0) m->first_trainable_op = (uint16_t)i;
    op->layer = (int8_t)layers;
    m->layer_op[layers++] = (uint16_t)i;
  }
  return layers == m->n_layers ? ODT_OK : odt_bad(o, -1, "n_layers", m->n_layers, layers, layers);
}

/* The tensor that ops from first_trainable_op on read and do not write, if it is one. */
static uint16_t find_cut(const odt_model_t* m) {
  uint16_t cut = ODT_NO_TENSOR;
  for (uint32_t k = 0; k < m->n_tensors; k++) {
    uint8_t from = m->tensors[k].producer;
    if (from != ODT_NO_OP && from >= m->first_trainable_op) continue;
    bool crosses = false;
    for (uint32_t i = m->first_trainable_op; i < m->n_ops; i++) {
      crosses = crosses || reads(&m->ops[i], k);
    }
    if (!crosses) continue;
    if (cut != ODT_NO_TENSOR) return ODT_NO_TENSOR;
    cut = (uint16_t)k;
  }
  return cut;
}

static odt_status_t check_outputs(const odt_open_t* o) {
  const odt_model_t* m = o->m;
  const odt_tensor_t *x = &m->tensors[m->input], *z = &m->tensors[m->logits];
  uint8_t want = odt_is_dfp(o) ? ODT_S16 : ODT_S8;
  if (z->count != m->n_classes) {
    return odt_bad(o, -1, "logits: values", z->count, m->n_classes, m->n_classes);
  }
  if (z->dtype != want) return odt_bad(o, -1, "logits: dtype", z->dtype, want, want);
  /* A tail's targets come with its samples. */
  if (m->task != ODT_TASK_AUTOENCODE || m->tail) return ODT_OK;
  if (x->count != z->count) {
    return odt_bad(o, -1, "autoencoder: input values", x->count, z->count, z->count);
  }
  if (x->dtype != ODT_S8 && !odt_is_dfp(o)) {
    return odt_bad(o, -1, "autoencoder: input dtype", x->dtype, ODT_S8, ODT_S8);
  }
  return ODT_OK;
}

odt_status_t odt_check_graph(odt_open_t* o) {
  odt_model_t* m = o->m;
  m->input = m->ops[0].in0;
  m->logits = m->ops[m->n_ops - 1].out;
  odt_status_t st = number_layers(o);
  if (st == ODT_OK) st = check_outputs(o);
  if (st == ODT_OK) st = check_tensors(o);
  if (st != ODT_OK) return st;
  if (m->tail && m->first_trainable_op != 0) {
    return odt_bad(o, 0, "tail image: frozen op in front", m->first_trainable_op, 0, 0);
  }
  m->cut = find_cut(m);
  return ODT_OK;
}

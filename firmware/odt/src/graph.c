/* Who reads what. Graphs have at most 64 ops: everything is looked up anew, nothing is stored. */
#include "walk.h"

uint16_t odt_root(const odt_model_t* m, uint16_t tensor) {
  for (;;) {
    uint8_t from = m->tensors[tensor].producer;
    if (from == ODT_NO_OP || m->ops[from].kind != ODT_OP_FLATTEN) return tensor;
    tensor = m->ops[from].in0;
  }
}

uint32_t odt_readers(const odt_model_t* m, uint16_t tensor) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n_ops; i++) {
    n += (m->ops[i].in0 == tensor ? 1u : 0u) + (m->ops[i].in1 == tensor ? 1u : 0u);
  }
  return n;
}

uint32_t odt_first_reader(const odt_model_t* m, uint16_t tensor) {
  uint32_t i = 0;
  while (i < m->n_ops && m->ops[i].in0 != tensor && m->ops[i].in1 != tensor) i++;
  return i;
}

bool odt_passes(const odt_model_t* m, uint32_t op) {
  return m->ops[op].kind == ODT_OP_FLATTEN && odt_readers(m, m->ops[op].in0) == 1;
}

uint32_t odt_tail(const odt_model_t* m, uint32_t op) {
  for (;;) {
    uint32_t next = odt_first_reader(m, m->ops[op].out);
    if (next == m->n_ops || !odt_passes(m, next)) return op;
    op = next;
  }
}

uint32_t odt_head(const odt_model_t* m, uint32_t op) {
  while (odt_passes(m, op) && m->tensors[m->ops[op].in0].producer != ODT_NO_OP) {
    op = m->tensors[m->ops[op].in0].producer;
  }
  return op;
}

uint64_t odt_needed(const odt_model_t* m) {
  uint64_t needed = 0;
  for (uint32_t i = 0; i < m->n_ops; i++) {
    const odt_op_t* op = &m->ops[i];
    bool need =
        op->layer >= 0 || odt_has_delta(m, needed, op->in0) || odt_has_delta(m, needed, op->in1);
    if (need) needed |= (uint64_t)1 << i;
  }
  return needed;
}

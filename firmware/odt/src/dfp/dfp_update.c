/* Rule 1.13: weights and offsets of one layer. */
#include "dfp.h"

typedef struct {
  const odt_model_t* m;
  const odt_op_t* op;
  odt_layer_t* l;
  const int16_t *x, *dy;
  uint32_t n;
  int32_t e_dy, rate_s, e_sum; /* e_sum: exponent of the sums of x * dy */
  void* scratch;
} job_t;

static uint32_t run(const job_t* j, odt_dfp_update_t* u) {
  const odt_tensor_t *in = &j->m->tensors[j->op->in0], *out = &j->m->tensors[j->op->out];
  if (j->op->kind == ODT_OP_LINEAR) {
    return odt_dfp_dense_update(in->count, j->op->n_out, j->x, odt_dfp_even(in->count), j->dy,
                                odt_dfp_even(out->count), j->n, u, j->scratch);
  }
  return odt_dfp_conv_update(j->op, in, out, j->x, j->dy, j->n, u, j->scratch);
}

/* All weights of the block: HALF_UP(W, 1). o is its output, or < 0: the layer. */
static void halve(const job_t* j, int32_t o) {
  int16_t* w = j->l->m;
  uint32_t stored = odt_dfp_stored(j->m, j->op), each = j->l->n_weights / j->op->n_out;
  if (o < 0) {
    for (uint32_t i = 0; i < stored; i++) w[i] = (int16_t)((w[i] + 1) >> 1);
    return;
  }
  uint32_t output = (uint32_t)o, inputs = j->m->tensors[j->op->in0].count;
  for (uint32_t i = 0; i < each; i++) {
    uint32_t at =
        j->op->kind == ODT_OP_LINEAR ? odt_dfp_panel_at(inputs, i, output) : output * each + i;
    w[at] = (int16_t)((w[at] + 1) >> 1);
  }
}

/* In place: where a weight would leave its range those before it are put back, all are halved, and
 * the same gradient is applied at the next exponent. */
static void move_block(const job_t* j, odt_dfp_update_t* u, int8_t* e, int32_t o) {
  uint32_t to = u->to;
  for (;;) {
    odt_dfp_update_t start = *u;
    u->s = j->rate_s + *e - j->e_sum;
    u->saturate = *e >= ODT_DFP_E_MAX;
    uint32_t done = run(j, u);
    if (done == to) return;
    odt_dfp_update_t undo = *u;
    undo.revert = true;
    undo.stats = false;
    undo.to = done;
    run(j, &undo);
    u->sum_abs = start.sum_abs;
    u->nonzero = start.nonzero;
    u->abs_delta = start.abs_delta;
    halve(j, o);
    (*e)++;
  }
}

static void move_weights(const job_t* j, odt_dfp_update_t* u, uint32_t blocks) {
  odt_layer_t* l = j->l;
  bool dense = j->op->kind == ODT_OP_LINEAR;
  uint32_t units = dense ? odt_dfp_stored(j->m, j->op) / 4u : l->n_weights;
  u->w = l->m;
  u->lane = -1;
  if (blocks == 1) {
    u->to = units;
    move_block(j, u, odt_dfp_e(l), -1);
    return;
  }
  uint32_t each = dense ? (j->m->tensors[j->op->in0].count + 1u) / 2u : units / blocks;
  for (uint32_t o = 0; o < blocks; o++) {
    u->lane = dense ? (int8_t)(o & 1u) : (int8_t)-1;
    u->from = (dense ? o >> 1 : o) * each;
    u->to = u->from + each;
    move_block(j, u, odt_dfp_e(l) + o, (int32_t)o);
  }
}

static int64_t offset_gradient(const int16_t* dy, uint32_t stride, uint32_t positions, uint32_t n) {
  int64_t sum = 0;
  int32_t part = 0; /* of at most 256 samples */
  if (positions == 1u) {
    for (; n > 0; n--, dy += stride) part += *dy;
    return part;
  }
  for (; n > 0; n--, dy += stride) {
    for (uint32_t i = 0; i < positions; i++) sum += dy[i];
  }
  return sum;
}

static void move_offsets(const job_t* j, int32_t lr_m, int s) {
  static const int64_t kFar = (int64_t)1 << 33;
  uint32_t count = j->m->tensors[j->op->out].count, positions = count / j->l->n_offsets;
  uint32_t stride = odt_dfp_even(count);
  for (uint32_t o = 0; o < j->l->n_offsets; o++) {
    int64_t sum = offset_gradient(j->dy + (size_t)o * positions, stride, positions, j->n);
    int64_t d = odt_dfp_half_up(sum * lr_m, s);
    if (s < 16) d = d > kFar ? kFar : d < -kFar ? -kFar : d; /* sums have at most 47 bits */
    int64_t v = j->l->off[o] - d;
    j->l->off[o] = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
  }
}

/* mean |lr_m * sum / 2^s| in Q8 needs this added up; large sums lose bits at the bottom. */
static uint64_t update_q8(uint64_t sum_abs, int32_t lr_m, int s) {
  int down = s - 8;
  while (sum_abs >> 48) {
    sum_abs >>= 1;
    down--;
  }
  uint64_t v = sum_abs * (uint32_t)lr_m;
  if (down >= 0) return down > 63 ? 0 : v >> down;
  return -down > 63 || v >> (64 + down) ? UINT64_MAX >> 8 : v << -down;
}

static void count_stats(odt_layer_t* l, const odt_dfp_update_t* u, int bits, int shift) {
  odt_layer_stats_t* s = &l->stats;
  uint8_t b = (uint8_t)bits;
  if (s->steps == 0 || b < s->bits_min) s->bits_min = b;
  if (b > s->bits_max) s->bits_max = b;
  s->steps++;
  s->bits_sum += b;
  s->shift = (int8_t)shift;
  if (!u->stats) return;
  s->deltas += l->n_weights;
  s->nonzero_deltas += u->nonzero;
  s->abs_delta_sum += u->abs_delta;
  s->update_q8 += update_q8(u->sum_abs, u->lr_m, shift);
  s->update_n++;
  s->sum_abs_g += u->sum_abs;
  s->sum_n++;
}

void odt_dfp_update(odt_trainer_t* t, const odt_op_t* op, uint32_t n, odt_layer_step_t* rec) {
  odt_layer_t* l = &t->layers[op->layer];
  const odt_dfp_t* d = &t->dfp;
  int32_t lr_m = t->spec.lr_m[odt_stage(t)];
  job_t j = {.m = t->model,
             .op = op,
             .l = l,
             .x = odt_dfp_act(d, op->in0),
             .dy = odt_dfp_delta(d, op->out),
             .n = n,
             .e_dy = d->e_delta[op->out],
             .rate_s = t->spec.lr_s,
             .scratch = d->scratch};
  j.e_sum = d->e_act[op->in0] + j.e_dy + ODT_DFP_CHAIN;
  odt_dfp_update_t u = {.lr_m = lr_m, .stats = t->position / t->spec.batch % 16u == 0};
  move_offsets(&j, lr_m, j.rate_s + op->e_b - j.e_dy);
  if (l->n_weights > 0) move_weights(&j, &u, odt_dfp_blocks(t, l));
  int bits = odt_bitlen64(u.or_abs), shift = j.rate_s + odt_dfp_e_max(t, l) - j.e_sum;
  shift = shift > 127 ? 127 : shift < -128 ? -128 : shift;
  l->e_d = (int16_t)j.e_dy;
  count_stats(l, &u, bits, shift);
  rec->bits = (uint8_t)bits;
  rec->shift = (int8_t)shift;
  rec->k = 16;
}

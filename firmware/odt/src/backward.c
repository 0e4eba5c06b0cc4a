/* Rules 1.4 to 1.7: deltas, offsets, weights, from the last layer to the first trainable one. */
#include "round.h"
#include "walk.h"

static int max0(int v) { return v > 0 ? v : 0; }

static ODT_HOT int64_t offset_gradient(const int8_t* dy, uint32_t n, uint32_t n_out,
                                       uint32_t positions, uint32_t o) {
  int64_t g = 0;
  const int8_t* p = dy + (size_t)o * positions;
  if (positions == 1) {
    int32_t sum = 0;
    for (uint32_t b = 0; b < n; b++, p += n_out) sum += *p;
    return sum;
  }
  for (uint32_t b = 0; b < n; b++, p += (size_t)n_out * positions) {
    int32_t sum = 0; /* of at most 2^24 values */
    for (uint32_t i = 0; i < positions; i++) sum += p[i];
    g += sum;
  }
  return g;
}

static ODT_HOT void update_offsets(odt_trainer_t* t, odt_layer_t* l, const int8_t* dy, uint32_t n,
                                   uint32_t positions) {
  uint64_t or_abs = 0;
  for (uint32_t o = 0; o < l->n_offsets; o++) {
    int64_t g = offset_gradient(dy, n, l->n_offsets, positions, o);
    or_abs |= (uint64_t)(g < 0 ? -g : g);
  }
  bool count = l->k_off != 0 && odt_apt_samples(t);
  if (count) l->apt_off_n++;
  if (or_abs == 0) return;
  int grid = odt_offset_grid(l);
  int ws = max0(odt_bitlen64(or_abs) - (l->t_o + t->spec.mu_offset)) + grid;
  uint64_t sum_abs = 0;
  for (uint32_t o = 0; o < l->n_offsets; o++) {
    int64_t g = offset_gradient(dy, n, l->n_offsets, positions, o);
    if (count) sum_abs += (uint64_t)(g < 0 ? -g : g);
    int64_t d = odt_half_up(g, ws);
    if (grid != 0) d = odt_half_up(d, -grid);
    int64_t v = l->off[o] - d;
    l->off[o] = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
  }
  if (count) l->apt_off_a += odt_apt_term(sum_abs, ws);
}

static void gradient_pass(const odt_kernel_t* k, const odt_view_t* in, const int8_t* dy, uint32_t n,
                          bool measure, bool apply, odt_update_t* u) {
  u->measure = measure;
  u->apply = apply;
  if (!odt_trains_weights(k->op)) return; /* G is empty */
  odt_kernel_grad(k, in, dy, n, u);
}

/* Sets u's shifts for gradients of `bits`; returns the shift to report. */
static int set_shift(odt_update_t* u, int bits, int mu, int f) {
  if (u->literal) {
    u->s = max0(bits - 7);
    u->s2 = max0(u->s - mu);
    return u->s + u->s2;
  }
  int ws = max0(bits - mu);
  u->s = ws - f;
  return ws;
}

static int update_weights(odt_trainer_t* t, odt_layer_t* l, const odt_view_t* in, const int8_t* dy,
                          uint32_t n, odt_update_t* u, int* ws) {
  odt_kernel_t k = odt_kernel_of(t, &t->model->ops[l->op]);
  int mu = odt_layer_mu(t, l), f = l->k - 8, bits;
  if (t->spec.shift_source == ODT_SHIFT_STALE && l->b_prev != 0) {
    *ws = set_shift(u, l->b_prev, mu, f);
    u->d_clip = 1 << max0(mu + f);
    gradient_pass(&k, in, dy, n, true, true, u);
    bits = odt_bitlen64(u->or_abs);
  } else {
    gradient_pass(&k, in, dy, n, true, false, u);
    bits = odt_bitlen64(u->or_abs);
    *ws = set_shift(u, bits, mu, f);
    if (bits != 0) gradient_pass(&k, in, dy, n, false, true, u);
  }
  if (t->spec.shift_source == ODT_SHIFT_STALE && bits != 0) l->b_prev = (uint8_t)bits;
  return bits;
}

static void count_stats(const odt_trainer_t* t, odt_layer_t* l, const odt_update_t* u, int bits,
                        int ws) {
  odt_layer_stats_t* s = &l->stats;
  uint8_t b = (uint8_t)bits;
  if (s->steps == 0 || b < s->bits_min) s->bits_min = b;
  if (b > s->bits_max) s->bits_max = b;
  s->steps++;
  s->bits_sum += b;
  s->shift = (int8_t)ws;
  s->deltas += l->n_weights;
  s->nonzero_deltas += u->nonzero;
  s->abs_delta_sum += u->abs_delta;
  if (!u->sum) return;
  s->sum_abs_g += u->sum_abs;
  s->sum_n++;
  uint64_t term = odt_apt_term(u->sum_abs, u->s + u->s2);
  if (t->spec.apt.mode == ODT_APT_OFF) {
    s->update_q8 += term;
    s->update_n++;
  } else {
    l->apt_a += term;
    l->apt_n++;
  }
}

static void update_layer(odt_trainer_t* t, odt_layer_t* l, const odt_view_t* in, const int8_t* dy,
                         uint32_t n, odt_layer_step_t* rec) {
  const odt_tensor_t* out = &t->model->tensors[t->model->ops[l->op].out];
  bool literal = t->spec.rule_set == ODT_RULE_NITI_LITERAL;
  int32_t m_max = odt_m_max(l->k);
  odt_update_t u = {.literal = literal,
                    .sum = odt_apt_samples(t),
                    .rounding = odt_layer_rounding(&t->spec, l->k),
                    .d_clip = INT32_MAX,
                    .m_lo = literal ? -128 : -m_max,
                    .m_hi = m_max,
                    .m8 = l->k > 8 ? NULL : l->m,
                    .m16 = l->k > 8 ? l->m : NULL,
                    .sr_seed = t->spec.sr_seed,
                    .step = t->step,
                    .layer = (uint32_t)(l - t->layers)};
  update_offsets(t, l, dy, n, out->count / l->n_offsets);
  int ws = 0;
  int bits = update_weights(t, l, in, dy, n, &u, &ws);
  count_stats(t, l, &u, bits, ws);
  rec->bits = (uint8_t)bits;
  rec->shift = (int8_t)ws;
  rec->k = (uint8_t)l->k;
}

static void update_op(odt_trainer_t* t, uint32_t i, const odt_view_t* x, uint32_t n,
                      odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  const odt_op_t* op = &m->ops[i];
  if (op->layer < 0) return;
  t->layers[op->layer].e_d = t->nodes[odt_tail(m, i)].e_d;
  odt_view_t in = odt_view_of(t, op->in0, x);
  update_layer(t, &t->layers[op->layer], &in, odt_delta_of(t, odt_tail(m, i)), n,
               &rec->layers[op->layer]);
}

/* The delta of what op i reads, once all deltas it is made of are there: at its first reader. Then
 * its readers' weights may change. */
static void pull_input(odt_trainer_t* t, uint32_t i, uint16_t tensor, const odt_view_t* x,
                       uint32_t n, odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  if (odt_first_reader(m, tensor) != i) return;
  odt_pull(t, tensor, x, n);
  for (uint32_t j = i; j < m->n_ops; j++) {
    if (m->ops[j].in0 == tensor) update_op(t, j, x, n, rec);
  }
}

void odt_backward(odt_trainer_t* t, const odt_view_t* x, uint32_t n, odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  uint64_t needed = odt_needed(m);
  t->nodes[m->n_ops - 1].e_d = 0;
  for (uint32_t i = m->n_ops; i-- > m->first_trainable_op;) {
    const odt_op_t* op = &m->ops[i];
    if (!((needed >> i) & 1u) || odt_passes(m, i)) continue;
    bool pulls = odt_has_delta(m, needed, op->in0);
    if (pulls) pull_input(t, i, op->in0, x, n, rec);
    if (op->in1 != op->in0 && odt_has_delta(m, needed, op->in1)) {
      pull_input(t, i, op->in1, x, n, rec);
    }
    if (!pulls) update_op(t, i, x, n, rec);
  }
}

/* Set-up, steps, inference. */
#include <string.h>

#include "dfp/dfp.h"
#include "kernels/layout.h"
#include "round.h"
#include "walk.h"

int32_t odt_m_max(int k) {
  int f = k - 8;
  return f > 0 ? (127 << f) + (1 << (f - 1)) - 1 : 127 >> -f;
}

/* Rule 1.5, load: exact for k >= 8; below, one halving per bit, each at its own limit. */
static int32_t load_weight(int32_t w, int k) {
  if (k >= 8) return w * (1 << (k - 8));
  for (int at = 7; at >= k; at--) {
    int32_t limit = odt_m_max(at);
    w = (int32_t)odt_round(w, 1, ODT_ROUND_HALF_AWAY, 0);
    w = w > limit ? limit : w < -limit ? -limit : w;
  }
  return w;
}

void odt_load_layer(const odt_trainer_t* t, odt_layer_t* l) {
  if (odt_is_dfp16(t->model)) {
    odt_dfp_load_layer(t, l);
    return;
  }
  const odt_op_t* op = &t->model->ops[l->op];
  if (l->n_weights) memset(l->m, 0, odt_layer_bytes(l, l->dtype)); /* padding */
  for (uint32_t i = 0; i < l->n_weights; i++)
    odt_layer_set(l, i, load_weight(op->weights[i], l->k));
  memcpy(l->off, op->offset, 4u * (size_t)l->n_offsets);
}

static void init_layer16(odt_trainer_t* t, odt_layer_t* l, const odt_op_t* op) {
  l->k = l->best_k = 16;
  l->dtype = ODT_S16;
  l->n_weights = op->flags & ODT_OP_FLAG_OFFSETS_ONLY ? 0 : op->n_weights;
  l->n_offsets = op->n_out;
  odt_load_layer(t, l);
}

static void init_layer(odt_trainer_t* t, uint32_t i) {
  odt_layer_t* l = &t->layers[i];
  l->op = t->model->layer_op[i];
  const odt_op_t* op = &t->model->ops[l->op];
  if (odt_is_dfp16(t->model)) {
    init_layer16(t, l, op);
    return;
  }
  l->k = (int8_t)odt_run_spec_layer_k(&t->spec, i);
  l->dtype = l->k > 8 ? ODT_S16 : ODT_S8;
  l->best_k = l->k;
  l->k_off = t->spec.apt.offsets ? (uint8_t)l->k : 0;
  l->k_nom = odt_nominal_k(op);
  l->in_out = op->kind == ODT_OP_LINEAR;
  l->n_weights = odt_trains_weights(op) ? op->n_weights : 0;
  l->n_offsets = op->n_out;
  int k_min = op->k_out[0];
  for (uint32_t o = 1; o < op->n_out; o++) k_min = op->k_out[o] < k_min ? op->k_out[o] : k_min;
  l->t_o = (uint8_t)(k_min < 3 ? 0 : k_min > 10 ? 7 : k_min - 3);
  odt_load_layer(t, l);
}

odt_status_t odt_trainer_init(odt_trainer_t* t, const odt_model_t* m, const odt_run_spec_t* spec,
                              bool resident, void* arena, uint32_t arena_bytes, odt_error_t* err) {
  memset(t, 0, sizeof *t);
  odt_status_t st = odt_run_spec_check(spec, m, err);
  if (st != ODT_OK) return st;
  odt_memory_plan_t plan;
  odt_trainer_plan(m, spec, resident, &plan);
  /* UINT32_MAX stands for all that is more. */
  if (plan.total_bytes > arena_bytes || plan.total_bytes == UINT32_MAX) {
    return odt_fail(err, ODT_RESOURCE_EXHAUSTED, "arena bytes", -1, arena_bytes, plan.total_bytes,
                    INT32_MAX);
  }
  if (arena == NULL || (uintptr_t)arena % 8 != 0) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "arena address", -1, (int64_t)((uintptr_t)arena % 8),
                    0, 0);
  }
  odt_lay_out(t, m, spec, resident, arena, &plan);
  t->model = m;
  t->spec = *spec;
  t->spec.rounding = odt_resolve_rounding(spec);
  t->resident = resident;
  t->steps_per_epoch = (spec->train_samples + spec->batch - 1u) / spec->batch;
  t->start_correct = t->best_correct = t->order_epoch = ODT_NONE;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    init_layer(t, i);
    if (!spec->best_on_host) continue;
    t->layers[i].best_m = t->layers[i].m;
    t->layers[i].best_off = t->layers[i].off;
  }
  odt_epoch_stats_reset(t);
  memset(t->delta_shift, 0xFF, sizeof t->delta_shift);
  t->weights_valid = true;
  return ODT_OK;
}

uint32_t odt_stage(const odt_trainer_t* t) {
  uint32_t e = t->spec.epochs, total = odt_trainer_steps_total(t);
  uint64_t stage = e >= 3 ? 3ull * t->epoch / e : 3ull * t->step / total;
  return stage > 2 ? 2u : (uint32_t)stage;
}

static odt_status_t check_ready(const odt_trainer_t* t, odt_error_t* err) {
  if (!t->weights_valid) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "weights are being written", -1, 0, 1, 1);
  }
  if (t->best_waits == ODT_BEST_UNREAD) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "the host has not kept the best weights", -1, 0,
                    1, 1);
  }
  if (odt_trainer_done(t)) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "run is complete: step", -1, t->step, 0,
                    (int64_t)odt_trainer_steps_total(t) - 1);
  }
  if (odt_trainer_epoch_complete(t)) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "epoch is complete: position", -1, t->position, 0,
                    (int64_t)t->spec.train_samples - 1);
  }
  return ODT_OK;
}

static uint32_t next_batch(const odt_trainer_t* t) {
  uint32_t left = t->spec.train_samples - t->position;
  return left < t->spec.batch ? left : t->spec.batch;
}

static void mark_alive(odt_trainer_t* t, uint32_t n) {
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    if (!l->alive) continue;
    odt_view_t y = odt_view_of(t, t->model->ops[l->op].out, NULL);
    uint32_t positions = t->model->tensors[t->model->ops[l->op].out].count / l->n_offsets;
    for (uint32_t o = 0; o < l->n_offsets; o++) {
      uint8_t bit = (uint8_t)(1u << (o & 7u));
      for (uint32_t b = 0; b < n && !(l->alive[o >> 3] & bit); b++) {
        const uint8_t* p = odt_sample(&y, b);
        for (uint32_t j = o * positions; j < (o + 1u) * positions; j++) {
          if (odt_load(p, y.dtype, j) > 0) {
            l->alive[o >> 3] |= bit;
            break;
          }
        }
      }
    }
  }
}

/* Loss of sample i of s, which is sample b of x and z. True where the prediction is right. */
static bool sample_loss(const odt_trainer_t* t, const odt_samples_t* s, uint32_t i,
                        const odt_view_t* x, const odt_view_t* z, uint32_t b, int8_t* dy,
                        uint64_t* loss) {
  const odt_model_t* m = t->model;
  const int8_t* logits = (const int8_t*)odt_sample(z, b);
  if (m->task == ODT_TASK_CLASSIFY) {
    uint32_t label = (uint32_t)s->labels[i];
    return odt_loss(m, &t->spec, logits, label, dy, loss) == label;
  }
  const int8_t* target = (const int8_t*)odt_sample(x, b);
  if (s->flags & ODT_SAMPLES_TARGETS) target = s->labels + (size_t)i * m->n_classes;
  odt_loss_values(&t->spec, m->n_classes, logits, target, dy, loss);
  return false;
}

static void count_last(odt_trainer_t* t, const int8_t* dy, uint32_t n) {
  const odt_model_t* m = t->model;
  int8_t last = m->ops[odt_head(m, m->n_ops - 1u)].layer;
  if (last < 0) return;
  odt_layer_stats_t* stats = &t->layers[last].stats;
  stats->propagated += n;
  for (uint32_t i = 0; i < n; i++) stats->zero_propagated += dy[i] == 0 ? 1u : 0u;
}

/* x: the n samples of s that make the batch. */
static void step8(odt_trainer_t* t, const odt_samples_t* s, const odt_view_t* x, uint32_t n,
                  odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  odt_forward(t, x, n);
  mark_alive(t, n);
  odt_view_t z = odt_view_of(t, m->logits, x);
  int8_t* dy = odt_delta_of(t, m->n_ops - 1u);
  for (uint32_t b = 0; b < n; b++) {
    uint32_t i = x->idx ? x->idx[b] : b;
    int8_t* d = dy + (size_t)b * m->n_classes;
    rec->correct += sample_loss(t, s, i, x, &z, b, d, &rec->loss) ? 1u : 0u;
  }
  count_last(t, dy, n * m->n_classes);
  odt_backward(t, x, n, rec);
}

static void run_step(odt_trainer_t* t, const odt_samples_t* s, const odt_view_t* x, uint32_t n,
                     odt_step_record_t* rec) {
  memset(rec, 0, sizeof *rec);
  rec->step = t->step;
  if (odt_is_dfp16(t->model)) {
    odt_dfp_train(t, x, s->labels, n, rec);
  } else {
    step8(t, s, x, n, rec);
  }
  t->step++;
  t->position += n;
  t->epoch_loss += rec->loss;
  t->epoch_correct += rec->correct;
  odt_apt_after_step(t);
}

static odt_view_t samples_view(odt_trainer_t* t, const odt_samples_t* s, const uint16_t* idx) {
  const odt_model_t* m = t->model;
  odt_view_t v = {.base = s->data,
                  .idx = idx,
                  .stride = s->sample_len * odt_elem_bytes(s->dtype),
                  .dtype = s->dtype};
  t->source = odt_samples_frozen(s) ? odt_root(m, m->cut) : m->input;
  return v;
}

odt_status_t odt_trainer_step(odt_trainer_t* t, const odt_samples_t* batch, odt_step_record_t* rec,
                              odt_error_t* err) {
  odt_status_t st = check_ready(t, err);
  if (st == ODT_OK && batch->count != next_batch(t)) {
    st = odt_fail(err, ODT_INVALID_ARGUMENT, "batch: count", -1, batch->count, next_batch(t),
                  next_batch(t));
  }
  if (st == ODT_OK) st = odt_samples_fit(batch, t->model, err);
  if (st != ODT_OK) return st;
  odt_view_t x = samples_view(t, batch, NULL);
  run_step(t, batch, &x, batch->count, rec);
  return ODT_OK;
}

odt_status_t odt_trainer_step_resident(odt_trainer_t* t, const odt_samples_t* train,
                                       odt_step_record_t* rec, odt_error_t* err) {
  odt_status_t st = check_ready(t, err);
  if (st != ODT_OK) return st;
  if (!t->resident) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "trainer is set up for streamed batches", -1, 0,
                    1, 1);
  }
  if (train->count != t->spec.train_samples) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "train samples", -1, train->count,
                    t->spec.train_samples, t->spec.train_samples);
  }
  if (t->order_epoch != t->epoch) {
    st = odt_samples_fit(train, t->model, err);
    if (st != ODT_OK) return st;
    odt_order(t->spec.order_seed, t->epoch, t->spec.train_samples, t->order);
    t->order_epoch = t->epoch;
  }
  const uint16_t* batch = t->order + t->position;
  uint32_t n = next_batch(t);
  st = odt_samples_shape(train, t->model, err); /* they may be others than at the epoch's start */
  for (uint32_t i = 0; st == ODT_OK && i < n; i++) {
    st = odt_samples_label(train, t->model, batch[i], err);
  }
  if (st != ODT_OK) return st;
  odt_view_t x = samples_view(t, train, batch);
  run_step(t, train, &x, n, rec);
  return ODT_OK;
}

/* Logits of one sample of the network input. */
static odt_view_t run_one(odt_trainer_t* t, const uint8_t* sample) {
  odt_view_t x = {.base = sample, .dtype = t->model->tensors[t->model->input].dtype};
  t->source = t->model->input;
  odt_forward(t, &x, 1);
  return odt_view_of(t, t->model->logits, &x);
}

odt_status_t odt_trainer_infer(odt_trainer_t* t, const uint8_t* sample, int8_t* logits) {
  if (!t->weights_valid) return ODT_FAILED_PRECONDITION;
  if (odt_is_dfp16(t->model)) {
    odt_dfp_infer(t, sample, logits);
    return ODT_OK;
  }
  odt_view_t z = run_one(t, sample);
  memcpy(logits, z.base, t->model->n_classes);
  return ODT_OK;
}

odt_status_t odt_trainer_score(odt_trainer_t* t, const uint8_t* sample, uint32_t* score) {
  if (t->model->task != ODT_TASK_AUTOENCODE || t->model->tail || !t->weights_valid) {
    return ODT_FAILED_PRECONDITION;
  }
  if (odt_is_dfp16(t->model)) {
    *score = odt_dfp_score(t, sample);
    return ODT_OK;
  }
  odt_view_t z = run_one(t, sample);
  uint64_t loss = 0; /* at most 4096 * 255^2 */
  odt_loss_values(&t->spec, t->model->n_classes, (const int8_t*)z.base, (const int8_t*)sample, NULL,
                  &loss);
  *score = (uint32_t)loss;
  return ODT_OK;
}

odt_status_t odt_trainer_freeze(odt_trainer_t* t, const uint8_t* sample, uint8_t* out) {
  const odt_model_t* m = t->model;
  if (odt_is_dfp16(m)) return ODT_UNIMPLEMENTED;
  if (m->cut == ODT_NO_TENSOR) return ODT_FAILED_PRECONDITION;
  const odt_tensor_t* cut = &m->tensors[m->cut];
  odt_view_t x = {.base = sample, .dtype = m->tensors[m->input].dtype};
  t->source = m->input;
  odt_forward_frozen(t, &x, 0);
  odt_view_t v = odt_view_of(t, m->cut, &x);
  memcpy(out, v.base, (size_t)cut->count * odt_elem_bytes(cut->dtype));
  return ODT_OK;
}

odt_status_t odt_trainer_eval(odt_trainer_t* t, const odt_samples_t* s, uint32_t first, uint32_t n,
                              uint32_t* correct, uint64_t* loss, uint32_t* confusion) {
  if (!t->weights_valid) return ODT_FAILED_PRECONDITION;
  const odt_model_t* m = t->model;
  if (first > s->count || n > s->count - first) return ODT_OUT_OF_RANGE;
  if (odt_is_dfp16(m)) {
    return odt_dfp_eval(t, s, first, n, correct, loss, confusion);
  }
  odt_status_t st = odt_samples_shape(s, m, NULL);
  if (st != ODT_OK) return st;
  odt_view_t x = samples_view(t, s, NULL);
  for (uint32_t i = first; i < first + n; i++) {
    st = odt_samples_label(s, m, i, NULL);
    if (st != ODT_OK) return st;
    x.base = s->data + (size_t)i * x.stride;
    odt_forward(t, &x, 1);
    odt_view_t z = odt_view_of(t, m->logits, &x);
    *correct += sample_loss(t, s, i, &x, &z, 0, NULL, loss) ? 1u : 0u;
    if (!confusion || m->task != ODT_TASK_CLASSIFY) continue;
    confusion[(uint32_t)s->labels[i] * m->n_classes +
              odt_predicted(m->n_classes, (const int8_t*)z.base)]++;
  }
  return ODT_OK;
}

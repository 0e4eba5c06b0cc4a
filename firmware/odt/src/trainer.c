/* Set-up, steps, inference. */
#include <string.h>

#include "dfp/dfp.h"
#include "kernels/layout.h"
#include "round.h"

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
  if (t->model->arith == ODT_ARITH_DFP16) {
    odt_dfp_load_layer(t, l);
    return;
  }
  const odt_op_t* op = &t->model->ops[l->op];
  memset(l->m, 0, odt_layer_bytes(l, l->dtype)); /* padding */
  for (uint32_t i = 0; i < l->n_weights; i++)
    odt_layer_set(l, i, load_weight(op->weights[i], l->k));
  memcpy(l->off, op->offset, 4u * (size_t)l->n_offsets);
}

static uint8_t nominal_k(const odt_op_t* op) {
  uint32_t most = 0;
  uint8_t nominal = 0;
  for (uint8_t k = 0; k < 32; k++) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->n_out; o++) n += op->k_out[o] == k ? 1u : 0u;
    if (n > most) {
      most = n;
      nominal = k;
    }
  }
  return nominal;
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
  if (t->model->arith == ODT_ARITH_DFP16) {
    init_layer16(t, l, op);
    return;
  }
  l->k = (int8_t)odt_run_spec_layer_k(&t->spec, i);
  l->dtype = l->k > 8 ? ODT_S16 : ODT_S8;
  l->best_k = l->k;
  l->k_off = t->spec.apt.offsets ? (uint8_t)l->k : 0;
  l->k_nom = nominal_k(op);
  l->in_out = op->kind == ODT_OP_LINEAR;
  l->n_weights = op->n_weights;
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
  if (plan.total_bytes > arena_bytes) {
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
  for (uint32_t i = 0; i < m->n_layers; i++) init_layer(t, i);
  odt_epoch_stats_reset(t);
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
    odt_view_t y = odt_act_view(t, l->op, NULL);
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

/* idx: samples of the batch within labels and x, NULL: in order. */
static void step8(odt_trainer_t* t, const odt_view_t* x, const int8_t* labels, uint32_t n,
                  odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  odt_forward(t, x, n);
  mark_alive(t, n);
  odt_view_t z = odt_act_view(t, m->n_ops - 1, x);
  uint32_t zeros = 0;
  for (uint32_t b = 0; b < n; b++) {
    uint32_t label = (uint32_t)labels[x->idx ? x->idx[b] : b];
    int8_t* dy = t->delta[0] + (size_t)b * m->n_classes;
    uint32_t got = odt_loss(m, &t->spec, (const int8_t*)odt_sample(&z, b), label, dy, &rec->loss);
    rec->correct += got == label ? 1u : 0u;
    for (uint32_t c = 0; c < m->n_classes; c++) zeros += dy[c] == 0 ? 1u : 0u;
  }
  int8_t last = m->ops[odt_producer(m, m->n_ops - 1)].layer;
  if (last >= 0) {
    t->layers[last].stats.propagated += (uint64_t)n * m->n_classes;
    t->layers[last].stats.zero_propagated += zeros;
  }
  odt_backward(t, x, n, rec);
}

static void run_step(odt_trainer_t* t, const odt_view_t* x, const int8_t* labels, uint32_t n,
                     odt_step_record_t* rec) {
  memset(rec, 0, sizeof *rec);
  rec->step = t->step;
  if (t->model->arith == ODT_ARITH_DFP16) {
    odt_dfp_train(t, x, labels, n, rec);
  } else {
    step8(t, x, labels, n, rec);
  }
  t->step++;
  t->position += n;
  t->epoch_loss += rec->loss;
  t->epoch_correct += rec->correct;
  odt_apt_after_step(t);
}

static odt_view_t samples_view(const odt_samples_t* s, const uint16_t* idx) {
  odt_view_t v = {.base = s->data,
                  .idx = idx,
                  .stride = s->sample_len * odt_elem_bytes(s->dtype),
                  .dtype = s->dtype};
  return v;
}

odt_status_t odt_trainer_step(odt_trainer_t* t, const odt_samples_t* batch, odt_step_record_t* rec,
                              odt_error_t* err) {
  odt_status_t st = check_ready(t, err);
  if (st == ODT_OK && batch->count != next_batch(t)) {
    st = odt_fail(err, ODT_INVALID_ARGUMENT, "batch: count", -1, batch->count, next_batch(t),
                  next_batch(t));
  }
  if (st == ODT_OK) st = odt_dfp_samples_fit(batch, t->model, err);
  if (st != ODT_OK) return st;
  odt_view_t x = samples_view(batch, NULL);
  run_step(t, &x, batch->labels, batch->count, rec);
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
    st = odt_dfp_samples_fit(train, t->model, err);
    if (st != ODT_OK) return st;
    odt_order(t->spec.order_seed, t->epoch, t->spec.train_samples, t->order);
    t->order_epoch = t->epoch;
  }
  odt_view_t x = samples_view(train, t->order + t->position);
  run_step(t, &x, train->labels, next_batch(t), rec);
  return ODT_OK;
}

odt_status_t odt_trainer_infer(odt_trainer_t* t, const uint8_t* sample, int8_t* logits) {
  if (!t->weights_valid) return ODT_FAILED_PRECONDITION;
  if (t->model->arith == ODT_ARITH_DFP16) {
    odt_dfp_infer(t, sample, logits);
    return ODT_OK;
  }
  const odt_tensor_t* in = &t->model->tensors[t->model->input];
  odt_view_t x = {.base = sample, .stride = 0, .dtype = in->dtype};
  odt_forward(t, &x, 1);
  odt_view_t z = odt_act_view(t, t->model->n_ops - 1, &x);
  memcpy(logits, z.base, t->model->n_classes);
  return ODT_OK;
}

odt_status_t odt_trainer_eval(odt_trainer_t* t, const odt_samples_t* s, uint32_t first, uint32_t n,
                              uint32_t* correct, uint64_t* loss, uint32_t* confusion) {
  if (!t->weights_valid) return ODT_FAILED_PRECONDITION;
  const odt_model_t* m = t->model;
  const odt_tensor_t* in = &m->tensors[m->input];
  if (first > s->count || n > s->count - first) return ODT_OUT_OF_RANGE;
  if (m->arith == ODT_ARITH_DFP16) {
    return odt_dfp_eval(t, s, first, n, correct, loss, confusion);
  }
  if (s->dtype != in->dtype || s->sample_len != in->count) return ODT_INVALID_ARGUMENT;
  odt_view_t x = samples_view(s, NULL);
  odt_view_t z = odt_act_view(t, m->n_ops - 1, &x);
  for (uint32_t i = first; i < first + n; i++) {
    if (s->labels[i] < 0 || s->labels[i] >= m->n_classes) return ODT_INVALID_ARGUMENT;
    uint32_t label = (uint32_t)s->labels[i];
    x.base = s->data + (size_t)i * s->sample_len;
    odt_forward(t, &x, 1);
    uint32_t got = odt_loss(m, &t->spec, (const int8_t*)z.base, label, NULL, loss);
    *correct += got == label ? 1u : 0u;
    if (confusion) confusion[label * m->n_classes + got]++;
  }
  return ODT_OK;
}

/* Rule 1.13 behind the trainer's functions: settings, loading, one step, one evaluation. */
#include <string.h>

#include "dfp.h"

static odt_status_t range(odt_error_t* err, const char* what, int32_t index, int32_t got,
                          int32_t lo, int32_t hi) {
  if (got >= lo && got <= hi) return ODT_OK;
  return odt_fail(err, ODT_INVALID_ARGUMENT, what, index, got, lo, hi);
}

/* The sums of a weight's gradient, times lr_m, stay in an int64. */
static odt_status_t check_sums(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err) {
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const odt_op_t* op = &m->ops[m->layer_op[i]];
    uint32_t positions = m->tensors[op->out].count / op->n_out;
    if ((uint64_t)positions * s->batch <= ODT_DFP_SUMS) continue;
    return odt_fail(err, ODT_INVALID_ARGUMENT, "batch (for a layer's output positions, DFP16)",
                    m->layer_op[i], s->batch, 1, ODT_DFP_SUMS / positions);
  }
  return ODT_OK;
}

odt_status_t odt_dfp_spec_check(const odt_run_spec_t* s, const odt_model_t* m, odt_error_t* err) {
  bool classify = m->task == ODT_TASK_CLASSIFY;
  int32_t loss = classify ? ODT_LOSS_CE : ODT_LOSS_MSE;
  odt_status_t st =
      range(err, "rounding (DFP16)", -1, s->rounding, ODT_ROUND_DEFAULT, ODT_ROUND_HALF_UP);
  if (st == ODT_OK) st = range(err, "loss (DFP16, this task)", -1, s->loss, loss, loss);
  if (st == ODT_OK) {
    st = range(err, "shift_source (DFP16)", -1, s->shift_source, ODT_SHIFT_EXACT, ODT_SHIFT_EXACT);
  }
  if (st == ODT_OK) st = range(err, "dead_zone (DFP16)", -1, s->dead_zone, 0, 0);
  bool apt = s->apt.mode != ODT_APT_OFF || s->apt.k_max != 0;
  if (st == ODT_OK) st = range(err, "apt (DFP16)", -1, apt, 0, 0);
  if (st == ODT_OK) st = range(err, "apt.offsets (DFP16)", -1, s->apt.offsets, 0, 0);
  for (int32_t i = 0; st == ODT_OK && i < 3; i++) st = range(err, "lr_m", i, s->lr_m[i], 1, 32767);
  if (st == ODT_OK) st = range(err, "lr_s", -1, s->lr_s, 0, 40);
  return st == ODT_OK ? check_sums(s, m, err) : st;
}

/* Blocked: each output's weights at their own smallest exponent; exact. */
static void load_output(const odt_model_t* m, odt_layer_t* l, uint32_t o) {
  const odt_op_t* op = &m->ops[l->op];
  bool dense = op->kind == ODT_OP_LINEAR;
  uint32_t each = l->n_weights / op->n_out, left = 0;
  int32_t largest = 0;
  int16_t* w = l->m;
  for (uint32_t i = 0; i < each; i++) {
    uint32_t at = odt_dfp_stored_at(m, op, dense ? i * op->n_out + o : o * each + i);
    int32_t v = w[at] < 0 ? -w[at] : w[at];
    if (v > largest) largest = v;
  }
  while (largest > 0 && largest * 2 <= ODT_DFP_MAX && odt_dfp_e(l)[o] > -ODT_DFP_E_MAX) {
    largest *= 2;
    left++;
    odt_dfp_e(l)[o]--;
  }
  for (uint32_t i = 0; i < each; i++) {
    uint32_t at = odt_dfp_stored_at(m, op, dense ? i * op->n_out + o : o * each + i);
    w[at] = (int16_t)(w[at] * (1 << left));
  }
}

void odt_dfp_load_layer(const odt_trainer_t* t, odt_layer_t* l) {
  const odt_model_t* m = t->model;
  const odt_op_t* op = &m->ops[l->op];
  uint32_t stored = odt_dfp_stored(m, op);
  int16_t* w = l->m;
  if (stored) memset(w, 0, 2u * (size_t)stored);
  for (uint32_t i = 0; i < l->n_weights; i++) w[odt_dfp_stored_at(m, op, i)] = op->weights16[i];
  uint32_t blocks = odt_dfp_blocks(t, l);
  for (uint32_t o = 0; o < blocks; o++) odt_dfp_e(l)[o] = op->e_w;
  bool raise = t->spec.blocked && l->n_weights > 0;
  for (uint32_t o = 0; raise && o < blocks; o++) load_output(m, l, o);
  memcpy(l->off, op->offset, 4u * (size_t)l->n_offsets);
}

static void mark_alive(odt_trainer_t* t, uint32_t n) {
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    if (!l->alive) continue;
    uint32_t tensor = t->model->ops[l->op].out, count = t->model->tensors[tensor].count;
    uint32_t positions = count / l->n_offsets, stride = odt_dfp_even(count);
    for (uint32_t o = 0; o < l->n_offsets; o++) {
      uint8_t bit = (uint8_t)(1u << (o & 7u));
      for (uint32_t b = 0; b < n && !(l->alive[o >> 3] & bit); b++) {
        const int16_t* p =
            odt_dfp_act(&t->dfp, tensor) + (size_t)b * stride + (size_t)o * positions;
        for (uint32_t j = 0; j < positions; j++) {
          if (p[j] > 0) l->alive[o >> 3] |= bit;
        }
      }
    }
  }
}

/* Loss of sample b of the batch at hand; true where the class is right. */
static bool sample_loss(odt_trainer_t* t, uint32_t b, const int8_t* label, int16_t* dy,
                        uint64_t* loss, uint32_t* got) {
  const odt_model_t* m = t->model;
  const odt_dfp_t* d = &t->dfp;
  const int16_t* z = odt_dfp_act(d, m->logits) + (size_t)b * odt_dfp_even(m->n_classes);
  if (m->task == ODT_TASK_CLASSIFY) {
    *got = odt_dfp_loss(t, z, d->e_act[m->logits], (uint32_t)label[0], dy, loss);
    return *got == (uint32_t)label[0];
  }
  const int16_t* x =
      odt_dfp_act(d, m->input) + (size_t)b * odt_dfp_even(m->tensors[m->input].count);
  bool regress = m->task == ODT_TASK_REGRESS;
  odt_dfp_loss_mse(m, z, d->e_act[m->logits], regress ? label : NULL, x, dy, loss);
  *got = 0;
  return false;
}

static uint32_t label_len(const odt_model_t* m) {
  return m->task == ODT_TASK_REGRESS ? m->n_classes : 1u;
}

void odt_dfp_train(odt_trainer_t* t, const odt_view_t* x, const int8_t* labels, uint32_t n,
                   odt_step_record_t* rec) {
  const odt_model_t* m = t->model;
  uint32_t stride = odt_dfp_even(m->n_classes), got;
  odt_dfp_forward(t, x, n);
  mark_alive(t, n);
  for (uint32_t b = 0; b < n; b++) {
    const int8_t* label = labels + (size_t)(x->idx ? x->idx[b] : b) * label_len(m);
    int16_t* dy = odt_dfp_delta(&t->dfp, m->logits) + (size_t)b * stride;
    if (sample_loss(t, b, label, dy, &rec->loss, &got)) rec->correct++;
    if (stride > m->n_classes) dy[m->n_classes] = 0;
  }
  t->dfp.e_delta[m->logits] = (int8_t)odt_dfp_loss_e(m);
  odt_dfp_backward(t, n, rec);
}

odt_status_t odt_dfp_eval(odt_trainer_t* t, const odt_samples_t* s, uint32_t first, uint32_t n,
                          uint32_t* correct, uint64_t* loss, uint32_t* confusion) {
  const odt_model_t* m = t->model;
  odt_status_t st = odt_samples_shape(s, m, NULL);
  odt_view_t x = {.stride = s->sample_len * odt_elem_bytes(s->dtype), .dtype = s->dtype};
  for (uint32_t i = first; st == ODT_OK && i < first + n; i++) {
    const int8_t* label = s->labels + (size_t)i * label_len(m);
    uint32_t got;
    st = odt_samples_label(s, m, i, NULL);
    if (st != ODT_OK) break;
    x.base = s->data + (size_t)i * x.stride;
    odt_dfp_forward(t, &x, 1);
    if (sample_loss(t, 0, label, NULL, loss, &got)) (*correct)++;
    if (confusion && m->task == ODT_TASK_CLASSIFY) {
      confusion[(uint32_t)label[0] * m->n_classes + got]++;
    }
  }
  return st;
}

uint32_t odt_dfp_score(odt_trainer_t* t, const uint8_t* sample) {
  odt_view_t x = {.base = sample, .dtype = t->model->tensors[t->model->input].dtype};
  uint64_t loss = 0;
  uint32_t got;
  odt_dfp_forward(t, &x, 1);
  sample_loss(t, 0, NULL, NULL, &loss, &got);
  return loss > UINT32_MAX ? UINT32_MAX : (uint32_t)loss;
}

odt_status_t odt_trainer_infer16(odt_trainer_t* t, const uint8_t* sample, int16_t* logits,
                                 int32_t* exponent) {
  const odt_model_t* m = t->model;
  if (!t->weights_valid || !odt_is_dfp16(m)) return ODT_FAILED_PRECONDITION;
  odt_view_t x = {.base = sample, .dtype = m->tensors[m->input].dtype};
  odt_dfp_forward(t, &x, 1);
  memcpy(logits, odt_dfp_act(&t->dfp, m->logits), 2u * (size_t)m->n_classes);
  if (exponent) *exponent = t->dfp.e_act[m->logits];
  return ODT_OK;
}

void odt_dfp_infer(odt_trainer_t* t, const uint8_t* sample, int8_t* logits) {
  uint32_t n = t->model->n_classes;
  uint64_t or_abs = 0;
  odt_view_t x = {.base = sample, .dtype = t->model->tensors[t->model->input].dtype};
  odt_dfp_forward(t, &x, 1);
  const int16_t* z = odt_dfp_act(&t->dfp, t->model->logits);
  for (uint32_t c = 0; c < n; c++) or_abs |= odt_dfp_abs(z[c]);
  int bits = odt_bitlen64(or_abs), s = bits > 7 ? bits - 7 : 0;
  for (uint32_t c = 0; c < n; c++) {
    int64_t v = odt_half_up(z[c], s);
    logits[c] = (int8_t)(v > 127 ? 127 : v < -127 ? -127 : v);
  }
}

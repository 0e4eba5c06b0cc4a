/* odt_weights v1 and training state v1: writing, in order, checked piece by piece. */
#include <string.h>

#include "canonical.h"
#include "dfp/dfp.h"
#include "kernels/layout.h"

static odt_status_t reject32(odt_trainer_t* t, odt_error_t* err, odt_status_t st, const char* what,
                             int32_t index, int32_t got, int32_t lo, int32_t hi) {
  t->write_bad = true;
  return odt_fail32(err, st, what, index, got, lo, hi);
}
#define reject(t, err, st, what, index, got, lo, hi) \
  reject32(t, err, st, what, index, ODT_I32(got), ODT_I32(lo), ODT_I32(hi))

static void stage(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                  const uint8_t* in, uint32_t n) {
  if (p->kind == ODT_SEG_VALUES) {
    odt_values_write(t, form, p, skip, n, in);
    return;
  }
  memcpy((p->mem ? p->mem : p->kind == ODT_SEG_HEAD ? t->head : t->layer_head) + skip, in, n);
}

static odt_status_t same(odt_trainer_t* t, const uint8_t* want, uint32_t at, uint32_t n,
                         odt_status_t st, const char* what, odt_error_t* err) {
  for (uint32_t i = at; i < at + n; i++) {
    if (t->head[i] != want[i]) return reject(t, err, st, what, -1, t->head[i], want[i], want[i]);
  }
  return ODT_OK;
}

typedef struct {
  uint8_t at, n, status;
  const char* what;
} field_t;

static odt_status_t all_same(odt_trainer_t* t, const uint8_t* want, const field_t* f, uint32_t n,
                             odt_error_t* err) {
  odt_status_t st = ODT_OK;
  for (; st == ODT_OK && n > 0; n--, f++) {
    st = same(t, want, f->at, f->n, (odt_status_t)f->status, f->what, err);
  }
  return st;
}

static odt_status_t check_weights_head(odt_trainer_t* t, const uint8_t* want, odt_error_t* err) {
  static const field_t kFields[] = {{0, 4, ODT_INVALID_ARGUMENT, "weights: magic"},
                                    {4, 2, ODT_INVALID_ARGUMENT, "weights: version"},
                                    {6, 2, ODT_FAILED_PRECONDITION, "weights: rules_version"},
                                    {8, 1, ODT_FAILED_PRECONDITION, "weights: rule_set"},
                                    {12, 32, ODT_FAILED_PRECONDITION, "weights: model hash"},
                                    {9, 1, ODT_INVALID_ARGUMENT, "weights: n_layers"},
                                    {10, 2, ODT_INVALID_ARGUMENT, "weights: reserved"}};
  return all_same(t, want, kFields, sizeof kFields / sizeof kFields[0], err);
}

/* What a state and the trainer that takes it must have in common. */
static odt_status_t check_state_settings(odt_trainer_t* t, const uint8_t* want, odt_error_t* err) {
  static const field_t kFields[] = {{0, 4, ODT_INVALID_ARGUMENT, "state: magic"},
                                    {4, 2, ODT_INVALID_ARGUMENT, "state: version"},
                                    {6, 2, ODT_FAILED_PRECONDITION, "state: rules_version"},
                                    {8, 32, ODT_FAILED_PRECONDITION, "state: model hash"},
                                    {40, 32, ODT_FAILED_PRECONDITION, "state: sample_set_hash"},
                                    {72, 1, ODT_FAILED_PRECONDITION, "state: rule_set"},
                                    {73, 1, ODT_FAILED_PRECONDITION, "state: rounding"},
                                    {74, 1, ODT_FAILED_PRECONDITION, "state: loss"},
                                    {75, 1, ODT_FAILED_PRECONDITION, "state: shift_source"},
                                    {76, 3, ODT_FAILED_PRECONDITION, "state: mu_weight"},
                                    {79, 1, ODT_FAILED_PRECONDITION, "state: mu_offset"},
                                    {80, 1, ODT_FAILED_PRECONDITION, "state: dead_zone"},
                                    {82, 1, ODT_FAILED_PRECONDITION, "state: guard"},
                                    {83, 1, ODT_FAILED_PRECONDITION, "state: n_layers"},
                                    {84, 2, ODT_FAILED_PRECONDITION, "state: batch"},
                                    {86, 2, ODT_FAILED_PRECONDITION, "state: epochs"},
                                    {88, 4, ODT_FAILED_PRECONDITION, "state: train_samples"},
                                    {92, 4, ODT_FAILED_PRECONDITION, "state: heldout_samples"},
                                    {96, 4, ODT_FAILED_PRECONDITION, "state: order_seed"},
                                    {100, 4, ODT_FAILED_PRECONDITION, "state: sr_seed"},
                                    {172, 4, ODT_FAILED_PRECONDITION, "state: class weights"},
                                    {110, 2, ODT_INVALID_ARGUMENT, "state: extension bytes"}};
  return all_same(t, want, kFields, sizeof kFields / sizeof kFields[0], err);
}

/* A position that the run passes through. */
static odt_status_t check_state_position(odt_trainer_t* t, odt_error_t* err) {
  const uint8_t* h = t->head;
  uint32_t step = odt_le32(h + 104), epoch = odt_le16(h + 108), position = odt_le32(h + 112);
  uint32_t samples = t->spec.train_samples, batch = t->spec.batch;
  if (epoch > t->spec.epochs) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: epoch", -1, epoch, 0, t->spec.epochs);
  }
  uint32_t last = epoch == t->spec.epochs ? 0 : samples;
  if (position > last || (position != samples && position % batch != 0)) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: position", -1, position, 0, last);
  }
  uint32_t want = epoch * t->steps_per_epoch + (position + batch - 1u) / batch;
  if (step != want) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: step", -1, step, want, want);
  }
  uint32_t best_step = odt_le32(h + 120), best = odt_le32(h + 124);
  if (best_step > step) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: best_step", -1, best_step, 0, step);
  }
  if (best != ODT_NONE && !t->spec.guard) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: best_correct", -1, best, -1, -1);
  }
  if (odt_le32(h + 168) > position) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: correct", -1, odt_le32(h + 168), 0,
                  position);
  }
  return ODT_OK;
}

static odt_status_t check_extension(odt_trainer_t* t, const odt_piece_t* p, odt_error_t* err) {
  uint8_t want[ODT_STATE_EXTENSION];
  odt_piece_bytes(t, ODT_FORM_STATE, p, want);
  for (uint32_t i = 0; i < p->n; i++) {
    if (t->layer_head[i] == want[i]) continue;
    const char* what = i < 8     ? "state: lr, blocked"
                       : i == 11 ? "state: k"
                       : i < 16  ? "state: apt"
                                 : "state: layer_k";
    return reject(t, err, ODT_FAILED_PRECONDITION, what, (int32_t)i, t->layer_head[i], want[i],
                  want[i]);
  }
  return ODT_OK;
}

static odt_status_t check_exponent(odt_trainer_t* t, const odt_piece_t* p, int8_t e,
                                   odt_error_t* err) {
  if (e >= -ODT_DFP_E_MAX && e <= ODT_DFP_E_MAX) return ODT_OK;
  return reject(t, err, ODT_INVALID_ARGUMENT, "layer: exponent", (int32_t)p->layer, e,
                -ODT_DFP_E_MAX, ODT_DFP_E_MAX);
}

/* DFP16 with one exponent for the layer: it stands where k stands. */
static odt_status_t take_exponent(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p,
                                  odt_error_t* err) {
  odt_layer_t* l = &t->layers[p->layer];
  int8_t e = (int8_t)t->layer_head[form == ODT_FORM_STATE ? 0 : 2];
  if (t->spec.blocked) return ODT_OK;
  odt_status_t st = check_exponent(t, p, e, err);
  if (st == ODT_OK) *(form == ODT_FORM_BEST ? odt_dfp_best_e(l) : odt_dfp_e(l)) = e;
  return st;
}

/* Where k can move the bytes decide on it: the values that follow are as long as it says. */
static odt_status_t take_k(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p,
                           odt_error_t* err) {
  odt_layer_t* l = &t->layers[p->layer];
  int32_t index = (int32_t)p->layer;
  uint8_t limit = t->spec.apt.k_max, k = t->layer_head[form == ODT_FORM_STATE ? 0 : 2];
  if (limit == 0) return ODT_OK;
  if (k < 2 || k > limit) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "layer: k", index, k, 2, limit);
  }
  if (form == ODT_FORM_BEST) {
    l->best_k = (int8_t)k;
    return ODT_OK;
  }
  l->k = (int8_t)k;
  l->dtype = k > 8 ? ODT_S16 : ODT_S8;
  return ODT_OK;
}

/* The sums of rule 1.12, as far as the position in the state's head allows any. */
static odt_status_t take_sums(odt_trainer_t* t, const odt_piece_t* p, odt_error_t* err) {
  odt_layer_t* l = &t->layers[p->layer];
  const uint8_t* h = t->layer_head;
  int32_t index = (int32_t)p->layer;
  if (t->spec.apt.mode == ODT_APT_OFF) return ODT_OK;
  uint64_t most = odt_apt_pending(t, odt_le32(t->head + 112));
  uint64_t n = odt_le64(h + 20), n_off = l->k_off ? odt_le64(h + 36) : 0;
  if (n > most || n_off > most) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: layer: apt_n", index,
                  (int64_t)((n > most ? n : n_off) & INT32_MAX), 0, (int64_t)most);
  }
  l->apt_a = odt_le64(h + 12);
  l->apt_n = n;
  if (!l->k_off) return ODT_OK;
  if (h[3] < 2 || h[3] > t->spec.apt.k_max) {
    return reject(t, err, ODT_INVALID_ARGUMENT, "state: layer: k_off", index, h[3], 2,
                  t->spec.apt.k_max);
  }
  l->k_off = h[3];
  l->apt_off_a = odt_le64(h + 28);
  l->apt_off_n = n_off;
  return ODT_OK;
}

/* The values follow; between them the kernels count on zeros, whatever lay there. */
static void clear_values(odt_trainer_t* t, odt_form_t form, uint32_t layer) {
  odt_layer_t* l = &t->layers[layer];
  void* m = form == ODT_FORM_BEST ? l->best_m : l->m;
  uint32_t bytes = odt_is_dfp16(t->model)
                       ? 2u * odt_dfp_stored(t->model, &t->model->ops[l->op])
                       : odt_layer_bytes(l, odt_form_k(l, form) > 8 ? ODT_S16 : ODT_S8);
  if (m != NULL && l->n_weights != 0) memset(m, 0, bytes);
}

static odt_status_t check_layer(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p,
                                odt_error_t* err) {
  uint8_t want[ODT_STATE_LAYER + ODT_STATE_LAYER_OFFSETS];
  int32_t index = (int32_t)p->layer;
  bool dfp = odt_is_dfp16(t->model);
  odt_status_t st = dfp ? take_exponent(t, form, p, err) : take_k(t, form, p, err);
  if (st == ODT_OK && form == ODT_FORM_STATE) st = take_sums(t, p, err);
  if (st != ODT_OK) return st;
  odt_piece_bytes(t, form, p, want);
  if (form == ODT_FORM_STATE) {
    uint8_t b_prev = t->layer_head[2];
    uint8_t limit = t->spec.shift_source == ODT_SHIFT_STALE ? 63 : 0;
    if (b_prev > limit) {
      return reject(t, err, ODT_INVALID_ARGUMENT, "state: layer: b_prev", index, b_prev, 0, limit);
    }
    t->new_b_prev[p->layer] = b_prev;
    want[2] = b_prev;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    if (t->layer_head[i] == want[i]) continue;
    return reject(t, err, ODT_FAILED_PRECONDITION, "layer: kind, k, shape or sizes", index,
                  t->layer_head[i], want[i], want[i]);
  }
  clear_values(t, form, p->layer);
  return ODT_OK;
}

/* A value outside could overflow the 8-bit view. -128 of the file may be kept (rule 1.5). */
static odt_status_t check_values(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p,
                                 odt_error_t* err) {
  const odt_layer_t* l = &t->layers[p->layer];
  int k = odt_form_k(l, form);
  uint8_t dtype = k > 8 ? ODT_S16 : ODT_S8;
  int32_t hi = odt_m_max(k), lo = k >= 8 ? -(128 << (k - 8)) : -hi;
  uint32_t n = odt_layer_bytes(l, dtype) / odt_elem_bytes(dtype); /* padding is 0 */
  if (odt_is_dfp16(t->model)) {
    n = odt_dfp_stored(t->model, &t->model->ops[l->op]);
    hi = ODT_DFP_MAX;
    lo = -hi;
  }
  for (uint32_t i = 0; i < n; i++) {
    int32_t v = odt_load(p->mem, dtype, i);
    if (v < lo || v > hi) {
      return reject(t, err, ODT_INVALID_ARGUMENT, "layer: weight", (int32_t)p->layer, v, lo, hi);
    }
  }
  return ODT_OK;
}

static odt_status_t piece_done(odt_trainer_t* t, odt_form_t form, const odt_piece_t* p,
                               odt_error_t* err) {
  uint8_t want[ODT_STATE_HEAD];
  if (p->kind == ODT_SEG_VALUES) return check_values(t, form, p, err);
  if (p->kind == ODT_SEG_EXTENSION) return check_extension(t, p, err);
  if (p->kind == ODT_SEG_LAYER) return check_layer(t, form, p, err);
  if (p->kind == ODT_SEG_HEAD) {
    odt_piece_bytes(t, form, p, want);
    if (form != ODT_FORM_STATE) return check_weights_head(t, want, err);
    odt_status_t st = check_state_settings(t, want, err);
    return st == ODT_OK ? check_state_position(t, err) : st;
  }
  for (uint32_t i = 0; p->kind == ODT_SEG_EXPONENTS && i < p->n; i++) {
    odt_status_t st = check_exponent(t, p, (int8_t)p->mem[i], err);
    if (st != ODT_OK) return st;
  }
  bool pad = p->kind == ODT_SEG_PAD || p->kind == ODT_SEG_PAD_END;
  for (uint32_t i = 0; pad && i < p->n; i++) {
    if (t->layer_head[i] != 0) {
      return reject(t, err, ODT_INVALID_ARGUMENT, "layer: padding", (int32_t)p->layer,
                    t->layer_head[i], 0, 0);
    }
  }
  return ODT_OK;
}

static void start_write(odt_trainer_t* t, odt_form_t form) {
  t->write_pos = 0;
  t->write_kind = (uint8_t)form;
  t->write_bad = false;
  if (form == ODT_FORM_BEST) {
    t->best_missing = !t->spec.best_on_host;
    t->best_whole = false;
  }
  if (form != ODT_FORM_BEST || t->spec.best_on_host) t->weights_valid = false;
}

static odt_status_t write_form(odt_trainer_t* t, odt_form_t form, uint32_t offset,
                               const uint8_t* in, uint32_t n, odt_error_t* err) {
  if (form == ODT_FORM_BEST && !t->spec.guard) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "best weights without guard", -1, 0, 1, 1);
  }
  bool wanted = t->best_waits == ODT_BEST_WANTED;
  if (form == ODT_FORM_BEST && t->spec.best_on_host && !wanted) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "best weights are kept by the host", -1, 0, 1, 1);
  }
  if (form == ODT_FORM_WEIGHTS && t->best_waits != ODT_BEST_HERE) {
    return odt_fail(err, ODT_FAILED_PRECONDITION, "the best waits for the host", -1, t->best_waits,
                    0, 0);
  }
  if (offset == 0) start_write(t, form);
  if (t->write_kind != form || t->write_bad || offset != t->write_pos) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "write: offset", -1, offset, t->write_pos,
                    t->write_pos);
  }
  odt_piece_t p;
  while (n > 0) {
    if (!odt_piece(t, form, t->write_pos, &p)) {
      return reject(t, err, ODT_INVALID_ARGUMENT, "write: bytes", -1, (int64_t)t->write_pos + n,
                    p.at, p.at);
    }
    uint32_t skip = t->write_pos - p.at, take = p.n - skip < n ? p.n - skip : n;
    stage(t, form, &p, skip, in, take);
    in += take;
    n -= take;
    t->write_pos += take;
    if (skip + take < p.n) break;
    odt_status_t st = piece_done(t, form, &p, err);
    if (st != ODT_OK) return st;
  }
  return ODT_OK;
}

static odt_status_t check_whole(const odt_trainer_t* t, odt_form_t form, odt_error_t* err) {
  uint32_t size = form == ODT_FORM_STATE  ? odt_state_size(t)
                  : form == ODT_FORM_BEST ? odt_best_size(t)
                                          : odt_weights_size(t);
  if (t->write_kind != form || t->write_bad || t->write_pos != size) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "write: bytes", -1,
                    t->write_kind == form ? t->write_pos : 0, size, size);
  }
  return ODT_OK;
}

static void find_best(odt_trainer_t* t) {
  uint8_t hash[32];
  t->best_missing = false;
  if (!t->spec.guard || t->spec.best_on_host || t->best_correct == ODT_NONE) return;
  odt_weights_hash(t, true, hash);
  t->best_missing = !t->best_whole || memcmp(hash, t->best_hash, 32) != 0;
}

/* The best in place of the current weights: it is all there is, so it has to be the right one. */
static odt_status_t take_best(odt_trainer_t* t, odt_error_t* err) {
  uint8_t hash[32];
  odt_weights_hash(t, true, hash);
  if (memcmp(hash, t->best_hash, 32) != 0) {
    return reject(t, err, ODT_DATA_LOSS, "best weights: not those that the state names", -1,
                  hash[0], t->best_hash[0], t->best_hash[0]);
  }
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    l->k = l->best_k;
    l->dtype = l->k > 8 ? ODT_S16 : ODT_S8;
  }
  t->best_whole = t->weights_valid = true;
  return ODT_OK;
}

odt_status_t odt_weights_write(odt_trainer_t* t, bool best, uint32_t offset, const uint8_t* in,
                               uint32_t n, odt_error_t* err) {
  return write_form(t, best ? ODT_FORM_BEST : ODT_FORM_WEIGHTS, offset, in, n, err);
}

odt_status_t odt_weights_write_end(odt_trainer_t* t, bool best, odt_error_t* err) {
  odt_status_t st = check_whole(t, best ? ODT_FORM_BEST : ODT_FORM_WEIGHTS, err);
  if (st != ODT_OK) return st;
  t->write_kind = 0;
  if (best && t->spec.best_on_host) return take_best(t, err);
  if (best) {
    t->best_whole = true;
    find_best(t);
    return ODT_OK;
  }
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    odt_layer_t* l = &t->layers[i];
    l->b_prev = 0;
    l->apt_a = l->apt_n = 0;
  }
  t->weights_valid = true;
  return ODT_OK;
}

odt_status_t odt_state_write(odt_trainer_t* t, uint32_t offset, const uint8_t* in, uint32_t n,
                             odt_error_t* err) {
  return write_form(t, ODT_FORM_STATE, offset, in, n, err);
}

odt_status_t odt_state_write_end(odt_trainer_t* t, odt_error_t* err) {
  odt_status_t st = check_whole(t, ODT_FORM_STATE, err);
  if (st != ODT_OK) return st;
  const uint8_t* h = t->head;
  t->write_kind = 0;
  t->step = odt_le32(h + 104);
  t->epoch = odt_le16(h + 108);
  t->position = odt_le32(h + 112);
  t->start_correct = odt_le32(h + 116);
  t->best_step = odt_le32(h + 120);
  t->best_correct = odt_le32(h + 124);
  memcpy(t->best_hash, h + 128, 32);
  t->epoch_loss = odt_le32(h + 160) | ((uint64_t)odt_le32(h + 164) << 32);
  t->epoch_correct = odt_le32(h + 168);
  for (uint32_t i = 0; i < t->model->n_layers; i++) t->layers[i].b_prev = t->new_b_prev[i];
  odt_epoch_stats_reset(t);
  t->best_waits = ODT_BEST_HERE; /* the host that has the state has its best too */
  find_best(t);
  if (h[81] != odt_stage(t)) {
    return odt_fail(err, ODT_INVALID_ARGUMENT, "state: stage", -1, h[81], odt_stage(t),
                    odt_stage(t));
  }
  t->weights_valid = true;
  return ODT_OK;
}

/* odt_weights v1 and training state v1: reading and hashing. Nothing is copied: the bytes are
 * found piece by piece. */
#include "canonical.h"

#include <string.h>

#include "dfp/dfp.h"
#include "kernels/layout.h"

static bool is_dfp(const odt_trainer_t* t) { return odt_is_dfp16(t->model); }
static bool has_extension(const odt_trainer_t* t) {
  return is_dfp(t) || odt_run_spec_k_varies(&t->spec);
}

/* Dense weights of DFP16 lie in its own order, its convolutions' in ONNX order. */
static bool values_move(const odt_trainer_t* t, const odt_piece_t* p, odt_form_t form,
                        odt_layout_t* lay) {
  const odt_layer_t* l = &t->layers[p->layer];
  *lay = odt_layer_layout(l, odt_form_k(l, form) > 8 ? ODT_S16 : ODT_S8);
  return !is_dfp(t);
}

static uint8_t* dfp_byte(const odt_trainer_t* t, const odt_piece_t* p, uint32_t i) {
  const odt_op_t* op = &t->model->ops[t->layers[p->layer].op];
  if (op->kind != ODT_OP_LINEAR) return p->mem + i;
  return p->mem + 2u * odt_dfp_stored_at(t->model, op, i >> 1) + (i & 1u);
}

void odt_values_read(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                     uint32_t n, uint8_t* out) {
  odt_layout_t lay;
  if (values_move(t, p, form, &lay)) {
    odt_layout_read(&lay, p->mem, skip, n, out);
    return;
  }
  for (uint32_t i = 0; i < n; i++) out[i] = *dfp_byte(t, p, skip + i);
}

void odt_values_write(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                      uint32_t n, const uint8_t* in) {
  odt_layout_t lay;
  if (values_move(t, p, form, &lay)) {
    odt_layout_write(&lay, p->mem, skip, n, in);
    return;
  }
  for (uint32_t i = 0; i < n; i++) *dfp_byte(t, p, skip + i) = in[i];
}

bool odt_piece(const odt_trainer_t* t, odt_form_t form, uint32_t at, odt_piece_t* p) {
  bool state = form == ODT_FORM_STATE;
  p->kind = ODT_SEG_HEAD;
  p->layer = 0;
  p->mem = NULL;
  p->at = 0;
  p->n = state ? ODT_STATE_HEAD : ODT_WEIGHTS_HEAD;
  if (at < p->n) return true;
  if (state && has_extension(t)) {
    p->at += p->n;
    p->n = ODT_STATE_EXTENSION;
    p->kind = ODT_SEG_EXTENSION;
    if (at < p->at + p->n) return true;
  }
  for (uint32_t i = 0; i < t->model->n_layers; i++) {
    const odt_layer_t* l = &t->layers[i];
    bool best = form == ODT_FORM_BEST;
    uint32_t values = l->n_weights * (odt_form_k(l, form) > 8 ? 2u : 1u);
    uint32_t head = ODT_STATE_LAYER + (l->k_off ? ODT_STATE_LAYER_OFFSETS : 0u);
    uint32_t blocked = is_dfp(t) && t->spec.blocked ? l->n_offsets : 0;
    uint32_t sizes[6] = {state ? head : ODT_WEIGHTS_LAYER,
                         values,
                         (0u - values) & 3u,
                         4u * l->n_offsets,
                         blocked,
                         (0u - blocked) & 3u};
    void* mem[6] = {NULL,
                    best ? l->best_m : l->m,
                    NULL,
                    best ? l->best_off : l->off,
                    best ? odt_dfp_best_e(l) : odt_dfp_e(l),
                    NULL};
    for (uint32_t s = 0; s < 6; s++) {
      p->at += p->n;
      p->n = sizes[s];
      p->kind = (odt_seg_t)(ODT_SEG_LAYER + s);
      p->layer = i;
      p->mem = mem[s];
      if (at < p->at + p->n) return true;
    }
  }
  p->at += p->n;
  p->n = 0;
  return false;
}

/* dtype and k of a layer as they are written; DFP16's k is the exponent. */
static uint8_t layer_dtype(const odt_trainer_t* t, int k) {
  if (is_dfp(t)) return t->spec.blocked ? 5 : 4;
  return k > 8 ? ODT_S16 : ODT_S8;
}
static uint8_t layer_k(const odt_trainer_t* t, const odt_layer_t* l, odt_form_t form) {
  if (!is_dfp(t)) return (uint8_t)odt_form_k(l, form);
  if (t->spec.blocked) return 0;
  return (uint8_t) * (form == ODT_FORM_BEST ? odt_dfp_best_e(l) : odt_dfp_e(l));
}

static void weights_head(const odt_trainer_t* t, uint8_t* out) {
  memset(out, 0, ODT_WEIGHTS_HEAD);
  memcpy(out, "ODTW", 4);
  odt_put16(out + 4, 1);
  odt_put16(out + 6, ODT_RULES_VERSION);
  out[8] = t->spec.rule_set;
  out[9] = (uint8_t)t->model->n_layers;
  memcpy(out + 12, t->model->hash, 32);
}

static void weights_layer(const odt_trainer_t* t, odt_form_t form, uint32_t i, uint8_t* out) {
  const odt_layer_t* l = &t->layers[i];
  const odt_op_t* op = &t->model->ops[l->op];
  memset(out, 0, ODT_WEIGHTS_LAYER);
  out[0] = op->kind;
  out[1] = layer_dtype(t, odt_form_k(l, form));
  out[2] = layer_k(t, l, form);
  if (op->kind == ODT_OP_LINEAR) {
    out[3] = 2;
    odt_put16(out + 4, t->model->tensors[op->in0].count);
    odt_put16(out + 6, op->n_out);
  } else {
    out[3] = 4;
    odt_put16(out + 4, op->n_out);
    odt_put16(out + 6, (uint32_t)t->model->tensors[op->in0].dims[0] / op->groups);
    odt_put16(out + 8, op->k_h);
    odt_put16(out + 10, op->k_w);
  }
  odt_put32(out + 12, l->n_weights);
  odt_put32(out + 16, l->n_offsets);
}

static void class_weights_prefix(const odt_trainer_t* t, uint8_t* out) {
  odt_sha256_t sha;
  uint8_t hash[32];
  odt_sha256_init(&sha);
  bool classes = t->model->task == ODT_TASK_CLASSIFY; /* others have no weights: of no bytes */
  odt_sha256_update(&sha, t->spec.class_weights, classes ? t->model->n_classes : 0u);
  odt_sha256_final(&sha, hash);
  memcpy(out, hash, 4);
}

static void state_head(const odt_trainer_t* t, uint8_t* out) {
  const odt_run_spec_t* s = &t->spec;
  memset(out, 0, ODT_STATE_HEAD);
  memcpy(out, "ODTT", 4);
  odt_put16(out + 4, 1);
  odt_put16(out + 6, ODT_RULES_VERSION);
  memcpy(out + 8, t->model->hash, 32);
  memcpy(out + 40, s->sample_set_hash, 32);
  out[72] = s->rule_set;
  out[73] = s->rounding;
  out[74] = s->loss;
  out[75] = s->shift_source;
  for (int i = 0; i < 3; i++) out[76 + i] = (uint8_t)s->mu_weight[i];
  out[79] = (uint8_t)s->mu_offset;
  out[80] = s->dead_zone;
  out[81] = (uint8_t)odt_stage(t);
  out[82] = s->guard ? 1 : 0;
  out[83] = (uint8_t)t->model->n_layers;
  odt_put16(out + 84, s->batch);
  odt_put16(out + 86, s->epochs);
  odt_put32(out + 88, s->train_samples);
  odt_put32(out + 92, s->heldout_samples);
  odt_put32(out + 96, s->order_seed);
  odt_put32(out + 100, s->sr_seed);
  odt_put32(out + 104, t->step);
  odt_put16(out + 108, t->epoch);
  odt_put16(out + 110, has_extension(t) ? ODT_STATE_EXTENSION : 0);
  odt_put32(out + 112, t->position);
  odt_put32(out + 116, t->start_correct);
  odt_put32(out + 120, t->best_step);
  odt_put32(out + 124, t->best_correct);
  memcpy(out + 128, t->best_hash, 32);
  odt_put64(out + 160, t->epoch_loss);
  odt_put32(out + 168, t->epoch_correct);
  class_weights_prefix(t, out + 172);
}

static void state_extension(const odt_trainer_t* t, uint8_t* out) {
  const odt_run_spec_t* s = &t->spec;
  memset(out, 0, ODT_STATE_EXTENSION);
  for (uint32_t i = 0; i < 3; i++) odt_put16(out + 2 * i, s->lr_m[i]);
  out[6] = s->lr_s;
  out[7] = s->blocked ? 1 : 0;
  out[8] = s->apt.mode;
  out[9] = s->apt.k_max;
  out[10] = s->apt.offsets ? 1 : 0;
  out[11] = is_dfp(t) ? 0 : s->k;
  odt_put16(out + 12, s->apt.t_min_q8);
  odt_put16(out + 14, s->apt.t_max_q8);
  memcpy(out + 16, s->layer_k, ODT_MAX_LAYERS);
}

static void state_layer(const odt_trainer_t* t, uint32_t i, uint8_t* out) {
  const odt_layer_t* l = &t->layers[i];
  memset(out, 0, ODT_STATE_LAYER);
  out[0] = layer_k(t, l, ODT_FORM_STATE);
  out[1] = layer_dtype(t, l->k);
  out[2] = l->b_prev;
  out[3] = l->k_off;
  odt_put32(out + 4, l->n_weights);
  odt_put32(out + 8, l->n_offsets);
  odt_put64(out + 12, l->apt_a);
  odt_put64(out + 20, l->apt_n);
  if (!l->k_off) return;
  odt_put64(out + 28, l->apt_off_a);
  odt_put64(out + 36, l->apt_off_n);
}

void odt_piece_bytes(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint8_t* out) {
  bool state = form == ODT_FORM_STATE;
  if (p->kind == ODT_SEG_HEAD) {
    if (state) {
      state_head(t, out);
    } else {
      weights_head(t, out);
    }
  } else if (p->kind == ODT_SEG_EXTENSION) {
    state_extension(t, out);
  } else if (p->kind == ODT_SEG_LAYER) {
    if (state) {
      state_layer(t, p->layer, out);
    } else {
      weights_layer(t, form, p->layer, out);
    }
  } else {
    memset(out, 0, p->n);
  }
}

/* n bytes of piece p from `skip` on. */
static void piece_read(const odt_trainer_t* t, odt_form_t form, const odt_piece_t* p, uint32_t skip,
                       uint32_t n, uint8_t* out) {
  uint8_t built[ODT_STATE_HEAD];
  if (p->kind == ODT_SEG_VALUES) {
    odt_values_read(t, form, p, skip, n, out);
    return;
  }
  const uint8_t* from = p->mem;
  if (!from) {
    odt_piece_bytes(t, form, p, built);
    from = built;
  }
  memcpy(out, from + skip, n);
}

/* Bytes [at, at + n): into out, or into sha where out is NULL. */
static void read_form(const odt_trainer_t* t, odt_form_t form, uint32_t at, uint32_t n,
                      uint8_t* out, odt_sha256_t* sha) {
  odt_piece_t p;
  uint8_t some[64];
  while (n > 0 && odt_piece(t, form, at, &p)) {
    uint32_t skip = at - p.at, take = p.n - skip < n ? p.n - skip : n;
    if (!out && take > sizeof some) take = sizeof some;
    piece_read(t, form, &p, skip, take, out ? out : some);
    if (out) {
      out += take;
    } else {
      odt_sha256_update(sha, some, take);
    }
    at += take;
    n -= take;
  }
}

static uint32_t size_of(const odt_trainer_t* t, odt_form_t form) {
  odt_piece_t p;
  odt_piece(t, form, UINT32_MAX, &p);
  return p.at;
}

static void hash_of(const odt_trainer_t* t, odt_form_t form, uint8_t hash[32]) {
  odt_sha256_t sha;
  odt_sha256_init(&sha);
  read_form(t, form, 0, size_of(t, form), NULL, &sha);
  odt_sha256_final(&sha, hash);
}

uint32_t odt_weights_size(const odt_trainer_t* t) { return size_of(t, ODT_FORM_WEIGHTS); }
uint32_t odt_best_size(const odt_trainer_t* t) {
  return size_of(t, t->spec.guard ? ODT_FORM_BEST : ODT_FORM_WEIGHTS);
}
uint32_t odt_state_size(const odt_trainer_t* t) { return size_of(t, ODT_FORM_STATE); }

/* Without a guard there is no best: the current weights are given. */
void odt_weights_read(const odt_trainer_t* t, bool best, uint32_t offset, uint8_t* out,
                      uint32_t n) {
  read_form(t, best && t->spec.guard ? ODT_FORM_BEST : ODT_FORM_WEIGHTS, offset, n, out, NULL);
}

void odt_weights_hash(const odt_trainer_t* t, bool best, uint8_t hash[32]) {
  hash_of(t, best && t->spec.guard ? ODT_FORM_BEST : ODT_FORM_WEIGHTS, hash);
}

void odt_state_read(const odt_trainer_t* t, uint32_t offset, uint8_t* out, uint32_t n) {
  read_form(t, ODT_FORM_STATE, offset, n, out, NULL);
}

void odt_state_hash(const odt_trainer_t* t, uint8_t hash[32]) { hash_of(t, ODT_FORM_STATE, hash); }

#include "oracle.h"

#include <algorithm>
#include <cstdlib>

namespace odt::testing {

const OracleLayer* Oracle::layer_of(size_t op) const {
  for (const OracleLayer& l : layers_) {
    if (l.op == op) return &l;
  }
  return nullptr;
}

// The 8-bit view of rule 1.5; the image's bytes where the weights are frozen.
Values Oracle::weight_view(size_t op) const {
  const OracleLayer* l = layer_of(op);
  if (!l || l->m.empty()) {
    return Values(graph_.op(op).weights.begin(), graph_.op(op).weights.end());
  }
  Values w;
  int f = l->k - 8;
  for (int64_t m : l->m) w.push_back(f > 0 ? floor_shift(m + power(f - 1), f) : m * power(-f));
  return w;
}

// Rule 1.2 behind the sum, for output number o of the layer.
int64_t Oracle::output(const LayerSpec& l, size_t o, int64_t acc, int64_t off) const {
  int64_t a = sat32(acc + off) * (l.mult.empty() ? 1 : l.mult[o]), y = floor_shift(a, l.k[o]);
  if (y * power(l.k[o]) != a || y > l.clip_hi || (y < l.clip_lo && !l.relu)) exact_ = false;
  return clip<int64_t>(y, l.clip_lo, l.clip_hi);
}

Values Oracle::forward_compute(size_t op, const Values& x) const {
  const LayerSpec& l = graph_.op(op);
  Values y(graph_.size(op + 1)), w = weight_view(op);
  graph_.products(op, [&](size_t wi, size_t xi, size_t yi) { y[yi] += w[wi] * x[xi]; });
  const OracleLayer* trained = layer_of(op);
  for (size_t i = 0; i < y.size(); i++) {
    size_t o = i / graph_.positions(op);
    y[i] = output(l, o, y[i], trained ? trained->off[o] : l.offsets[o]);
  }
  return y;
}

Values Oracle::forward_op(size_t op, const std::vector<Values>& tensors) const {
  const LayerSpec& l = graph_.op(op);
  const Values& x = tensors[graph_.input(op, 0)];
  if (graph_.is_compute(op)) return forward_compute(op, x);
  Values y(graph_.size(op + 1));
  switch (l.kind) {
    case OpKind::kMaxPool: {
      std::vector<size_t> from = graph_.max_sources(op, x);
      for (size_t i = 0; i < y.size(); i++) y[i] = x[from[i]];
      return y;
    }
    case OpKind::kAvgPool:
    case OpKind::kGap: {
      graph_.links(op, [&](int, size_t in, size_t out) { y[out] += x[in]; });
      size_t plane = y.size() / graph_.dims(op + 1)[0];
      for (size_t i = 0; i < y.size(); i++) {
        size_t o = l.outputs == 1 ? 0 : i / plane;
        y[i] = output(l, o, y[i], l.offsets[o]);
      }
      return y;
    }
    case OpKind::kAdd:
      graph_.links(op, [&](int which, size_t in, size_t out) {
        y[out] +=
            tensors[graph_.input(op, which)][in] * int64_t{l.offsets[static_cast<size_t>(which)]};
      });
      for (int64_t& v : y) {
        int64_t whole = half_even_20(v);
        if (whole * power(20) != v || whole > l.clip_hi || (whole < l.clip_lo && !l.relu)) {
          exact_ = false;
        }
        v = clip<int64_t>(whole, l.clip_lo, l.clip_hi);
      }
      return y;
    case OpKind::kPrequant: {
      size_t per_channel = x.size() / l.outputs;
      for (size_t i = 0; i < x.size(); i++) {
        size_t c = i / per_channel;
        y[i] =
            clip<int64_t>(floor_shift((x[i] * 256 + l.offsets[c]) * l.prequant_mult[c], l.k[c] + 8),
                          l.clip_lo, l.clip_hi);
      }
      return y;
    }
    default:
      graph_.links(op, [&](int which, size_t in, size_t out) {
        y[out] = tensors[graph_.input(op, which)][in];
      });
      return y;
  }
}

std::vector<Values> Oracle::forward(const Values& sample) const {
  std::vector<Values> tensors{sample};
  for (size_t i = 0; i < graph_.ops(); i++) tensors.push_back(forward_op(i, tensors));
  return tensors;
}

// Exponents of rule 1.4, and of the decisions for ADD and averages.
void Oracle::give_exponent(const OracleGraph::Reader& reader, int e_out, Contribution* c) const {
  const LayerSpec& l = graph_.op(reader.op);
  c->e = e_out;
  if (graph_.is_compute(reader.op)) {
    Values ks(l.k.begin(), l.k.end()), mults(l.mult.begin(), l.mult.end());
    c->e -= static_cast<int>(most_frequent(ks));
    if (!mults.empty()) c->e += rounded_log2(most_frequent(mults));
  } else if (l.kind == OpKind::kAvgPool || l.kind == OpKind::kGap) {
    c->e -= rounded_log2(graph_.area(reader.op));
  } else if (l.kind == OpKind::kAdd) {
    int64_t m = std::llabs(int64_t{l.offsets[static_cast<size_t>(reader.which)]});
    c->e += rounded_log2(m) - 20;
  }
}

// What op `reader.op` gives to the delta of the tensor it reads. False: nothing.
bool Oracle::give(const OracleGraph::Reader& reader, const Batch& batch, const Delta& out,
                  Contribution* c) const {
  size_t op = reader.op, tensor = graph_.input(op, reader.which);
  const LayerSpec& l = graph_.op(op);
  if (l.kind == OpKind::kAdd && l.offsets[static_cast<size_t>(reader.which)] == 0) return false;
  give_exponent(reader, out.e, c);
  Values w;
  if (graph_.is_compute(op)) w = weight_view(op);
  for (size_t b = 0; b < batch.size(); b++) {
    Values d(graph_.size(tensor));
    const Values& dy = out.values[b];
    if (graph_.is_compute(op)) {
      graph_.products(op, [&](size_t wi, size_t xi, size_t yi) { d[xi] += w[wi] * dy[yi]; });
    } else if (l.kind == OpKind::kMaxPool) {
      std::vector<size_t> from = graph_.max_sources(op, batch[b][tensor]);
      for (size_t i = 0; i < from.size(); i++) d[from[i]] += dy[i];
    } else {
      graph_.links(op, [&](int which, size_t in, size_t o) {
        if (which == reader.which) d[in] += dy[o];
      });
    }
    c->values.push_back(d);
  }
  return true;
}

// The mask of the op that made the tensor's values. A FLATTEN that alone reads its input stands
// for the op in front of it; that op's own delta then is the FLATTEN's.
void Oracle::mask(size_t tensor, const Batch& batch, std::vector<Values>* d) const {
  size_t maker = tensor;
  while (maker > 0 && graph_.op(maker - 1).kind == OpKind::kFlatten &&
         graph_.readers(graph_.input(maker - 1, 0)).size() == 1) {
    maker = graph_.input(maker - 1, 0);
  }
  if (maker == 0 || !graph_.op(maker - 1).relu) return;
  for (size_t b = 0; b < batch.size(); b++) {
    for (size_t i = 0; i < (*d)[b].size(); i++) {
      if (batch[b][tensor][i] <= 0) (*d)[b][i] = 0;
    }
  }
}

Oracle::Delta Oracle::pull(size_t tensor, const Batch& batch,
                           const std::vector<Delta>& deltas) const {
  const std::vector<OracleGraph::Reader>& readers = graph_.readers(tensor);
  if (readers.size() == 1 && graph_.op(readers[0].op).kind == OpKind::kFlatten) {
    return deltas[readers[0].op + 1];
  }
  std::vector<Contribution> all;
  for (const OracleGraph::Reader& r : readers) {
    Contribution c;
    if (give(r, batch, deltas[r.op + 1], &c)) all.push_back(c);
  }
  Delta d;
  d.there = true;
  d.values.assign(batch.size(), Values(graph_.size(tensor)));
  if (all.empty()) return d;
  d.e = all[0].e;
  for (const Contribution& c : all) d.e = std::min(d.e, c.e);
  for (const Contribution& c : all) {
    int64_t factor = power(std::min(c.e - d.e, 24));
    for (size_t b = 0; b < batch.size(); b++) {
      for (size_t i = 0; i < c.values[b].size(); i++) d.values[b][i] += c.values[b][i] * factor;
    }
  }
  mask(tensor, batch, &d.values);
  int s = std::max(0, bit_length(largest(d.values)) - 7);
  for (Values& v : d.values) {
    for (int64_t& x : v) {
      int64_t whole = clip<int64_t>(oracle_round(x, s, Rounding::kHalfUp, 0), -127, 127);
      if (whole * power(s) != x) exact_ = false;
      x = whole;
    }
  }
  d.e += s;
  return d;
}

// Deltas of all tensors that need one, by tensor number, with the weights as they are.
std::vector<Oracle::Delta> Oracle::all_deltas(const Batch& batch,
                                              const std::vector<Values>& dy) const {
  std::vector<Delta> deltas(graph_.tensors());
  size_t logits = graph_.tensors() - 1;
  deltas[logits].there = true;
  deltas[logits].values = dy;
  for (size_t t = logits; t-- > 1;) {
    if (graph_.needs_delta(t)) deltas[t] = pull(t, batch, deltas);
  }
  return deltas;
}

void Oracle::step(const std::vector<Values>& samples, const std::vector<int>& labels,
                  const std::vector<Values>& targets) {
  loss_ = 0;
  correct_ = 0;
  exact_ = true;
  Batch batch;
  std::vector<Values> dy;
  LossSettings loss{set_.cross_entropy, set_.dead_zone, set_.class_weights};
  for (size_t b = 0; b < samples.size(); b++) {
    batch.push_back(forward(samples[b]));
    bool regress = graph_.net().task == 1;
    LossResult r = oracle_loss(graph_.net(), loss, batch[b].back(), regress ? 0 : labels[b],
                               regress ? targets[b] : samples[b]);
    dy.push_back(r.dy);
    loss_ += r.loss;
    if (r.correct) correct_++;
  }
  std::vector<Delta> deltas = all_deltas(batch, dy);
  bool sampled = set_.apt != AptMode::kOff && since_check_ % 16 == 0;
  for (size_t i = 0; i < layers_.size(); i++) {
    const Delta& d = deltas[layers_[i].op + 1];
    layers_[i].e_d = d.e;
    layers_[i].k_used = layers_[i].k;
    update_offsets(layers_[i], d, sampled);
    update_weights(i, layers_[i], batch, d, sampled);
  }
  step_++;
  since_check_++;
  check_precision();
}

uint64_t Oracle::evaluate(const Values& sample, int label, const Values& target,
                          int* correct) const {
  LossSettings loss{set_.cross_entropy, set_.dead_zone, set_.class_weights};
  bool regress = graph_.net().task == 1;
  LossResult r = oracle_loss(graph_.net(), loss, infer(sample), label, regress ? target : sample);
  if (correct && r.correct) (*correct)++;
  return r.loss;
}

}  // namespace odt::testing

#include "oracle_dfp.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace odt::testing {
namespace {

int64_t half_up(int64_t v, int s) { return static_cast<int64_t>(wide_half_up(v, s)); }
int64_t sat16(int64_t v) { return clip(v, -kDfpTop, kDfpTop); }

}  // namespace

DfpTensor DfpOracle::down_convert(const std::vector<Values>& acc, int e) {
  int rs = std::max(0, bit_length(largest(acc)) - 15);
  DfpTensor t{true, acc, e + rs};
  for (Values& v : t.v) {
    for (int64_t& x : v) {
      x = sat16(half_up(x, rs));
      if (t.e < -kDfpExponentLimit) x = 0;
      if (t.e > kDfpExponentLimit && x != 0) x = x < 0 ? -kDfpTop : kDfpTop;
    }
  }
  t.e = clip(t.e, -kDfpExponentLimit, kDfpExponentLimit);
  return t;
}

int64_t DfpOracle::align(int64_t v, int from, int to) {
  Wide limit = power(62), moved = wide_half_up(v, to - from);
  return static_cast<int64_t>(clip(moved, -limit, limit));
}

const DfpLayer* DfpOracle::layer_of(size_t op) const {
  for (const DfpLayer& l : layers_) {
    if (l.op == op) return &l;
  }
  return nullptr;
}

Values DfpOracle::weights(size_t op) const {
  const DfpLayer* l = layer_of(op);
  if (l && !l->w.empty()) return l->w;
  return Values(graph_.op(op).weights16.begin(), graph_.op(op).weights16.end());
}

int DfpOracle::exponent_of(size_t op, size_t output) const {
  const DfpLayer* l = layer_of(op);
  if (!l) return graph_.op(op).e_w;
  return l->e_w.size() == 1 ? l->e_w[0] : l->e_w[output];
}

int DfpOracle::common_exponent(size_t op) const {
  int e = exponent_of(op, 0);
  for (size_t o = 1; o < graph_.op(op).outputs; o++) e = std::max(e, exponent_of(op, o));
  return e;
}

size_t DfpOracle::output_of_weight(size_t op, size_t weight) const {
  const LayerSpec& l = graph_.op(op);
  if (l.kind == OpKind::kLinear) return weight % l.outputs;
  return weight / (l.weights16.size() / l.outputs);
}

int64_t DfpOracle::product(int64_t a, int64_t b) const {
  return set_.chain32 ? floor_shift(a, 1) * floor_shift(b, 1) : a * b;
}

DfpTensor DfpOracle::forward_compute(size_t op, const DfpTensor& x) const {
  const LayerSpec& l = graph_.op(op);
  const DfpLayer* trained = layer_of(op);
  Values w = weights(op);
  int base = x.e + chain_exponent(), common = common_exponent(op);
  std::vector<Values> acc;
  for (const Values& in : x.v) {
    Values y(graph_.size(op + 1));
    graph_.products(op, [&](size_t wi, size_t xi, size_t yi) { y[yi] += product(in[xi], w[wi]); });
    for (size_t i = 0; i < y.size(); i++) {
      size_t o = i / graph_.positions(op);
      int64_t off = trained ? trained->off[o] : l.offsets[o];
      int e_o = exponent_of(op, o);
      y[i] = half_up(y[i] + align(off, l.e_b, base + e_o), common - e_o);
    }
    acc.push_back(y);
  }
  return down_convert(acc, base + common);
}

// ADD and CONCAT: the input with the smaller exponent is brought to the larger one first.
DfpTensor DfpOracle::join(size_t op, const std::vector<DfpTensor>& tensors) const {
  const DfpTensor *a = &tensors[graph_.input(op, 0)], *b = &tensors[graph_.input(op, 1)];
  DfpTensor y{true, {}, std::max(a->e, b->e)};
  for (size_t s = 0; s < a->v.size(); s++) {
    Values out(graph_.size(op + 1));
    graph_.links(op, [&](int which, size_t in, size_t o) {
      const DfpTensor* t = which == 0 ? a : b;
      out[o] += half_up(t->v[s][in], y.e - t->e);
    });
    y.v.push_back(out);
  }
  return graph_.op(op).kind == OpKind::kAdd ? down_convert(y.v, y.e) : y;
}

DfpTensor DfpOracle::forward_op(size_t op, const std::vector<DfpTensor>& tensors) const {
  const DfpTensor& x = tensors[graph_.input(op, 0)];
  if (graph_.is_compute(op)) return forward_compute(op, x);
  DfpTensor y{true, {}, x.e};
  switch (graph_.op(op).kind) {
    case OpKind::kAdd:
    case OpKind::kConcat:
      return join(op, tensors);
    case OpKind::kMaxPool:
      for (const Values& in : x.v) {
        Values out;
        for (size_t from : graph_.max_sources(op, in)) out.push_back(in[from]);
        y.v.push_back(out);
      }
      return y;
    case OpKind::kAvgPool:
    case OpKind::kGap: {
      int64_t area = graph_.area(op), r = (65536 + area) / (2 * area);
      for (const Values& in : x.v) {
        Values out(graph_.size(op + 1));
        graph_.links(op, [&](int, size_t from, size_t to) { out[to] += in[from] * r; });
        y.v.push_back(out);
      }
      return down_convert(y.v, x.e - 15);
    }
    default:
      for (const Values& in : x.v) {
        Values out(graph_.size(op + 1));
        graph_.links(op, [&](int, size_t from, size_t to) { out[to] = in[from]; });
        y.v.push_back(out);
      }
      return y;
  }
}

std::vector<DfpTensor> DfpOracle::forward(const std::vector<Values>& samples) const {
  std::vector<DfpTensor> tensors{DfpTensor{true, samples, graph_.net().input_exponent}};
  for (size_t i = 0; i < graph_.ops(); i++) {
    DfpTensor y = forward_op(i, tensors);
    for (Values& v : y.v) {
      for (int64_t& x : v) {
        if (graph_.op(i).relu && x < 0) x = 0;
      }
    }
    tensors.push_back(y);
  }
  return tensors;
}

DfpOracle::Result DfpOracle::cross_entropy(const Values& z, int e_z, int label) const {
  int64_t top = *std::max_element(z.begin(), z.end()), sum = 0;
  Values e;
  for (int64_t v : z) {
    Wide t = wide_half_up(Wide{top - v} * 23637, 6 - e_z);
    if (e_z >= 6) t = std::min<Wide>(t, power(20));
    int64_t q8 = static_cast<int64_t>(t), ip = q8 / 256, fr = q8 % 256;
    auto entry = static_cast<int64_t>(
        std::llround(1073741824.0L * std::pow(2.0L, -static_cast<long double>(fr) / 256.0L)));
    e.push_back(ip > 30 ? 0 : entry / power(static_cast<int>(ip)));
    sum += e.back();
  }
  Result r;
  for (size_t c = 0; c < z.size(); c++) {
    int64_t p = (e[c] * 16384 + sum / 2) / sum;
    int64_t d = p - (static_cast<int>(c) == label ? 16384 : 0);
    r.loss += static_cast<uint64_t>(d * d);
    r.dy.push_back(sat16(half_up(d * set_.class_weights[static_cast<size_t>(label)], 6)));
  }
  r.correct = std::max_element(z.begin(), z.end()) - z.begin() == label;
  return r;
}

int DfpOracle::loss_exponent() const {
  const NetSpec& net = graph_.net();
  return net.task == 0 ? -14 : net.task == 1 ? net.target_exponent : net.input_exponent;
}

DfpOracle::Result DfpOracle::loss_of(const Values& z, int e_z, int label,
                                     const Values& target) const {
  if (graph_.net().task == 0) return cross_entropy(z, e_z, label);
  Result r;
  for (size_t c = 0; c < z.size(); c++) {
    int64_t d = sat16(align(z[c], e_z, loss_exponent()) - target[c]);
    r.loss += static_cast<uint64_t>(d * d);
    r.dy.push_back(d);
  }
  return r;
}

void DfpOracle::mask(size_t tensor, const std::vector<DfpTensor>& batch,
                     std::vector<Values>* d) const {
  size_t maker = tensor;
  while (maker > 0 && graph_.op(maker - 1).kind == OpKind::kFlatten &&
         graph_.readers(graph_.input(maker - 1, 0)).size() == 1) {
    maker = graph_.input(maker - 1, 0);
  }
  if (maker == 0 || !graph_.op(maker - 1).relu) return;
  for (size_t b = 0; b < d->size(); b++) {
    for (size_t i = 0; i < (*d)[b].size(); i++) {
      if (batch[tensor].v[b][i] <= 0) (*d)[b][i] = 0;
    }
  }
}

DfpTensor DfpOracle::give(const OracleGraph::Reader& reader, const std::vector<DfpTensor>& batch,
                          const DfpTensor& out) const {
  size_t op = reader.op, tensor = graph_.input(op, reader.which);
  bool compute = graph_.is_compute(op);
  OpKind kind = graph_.op(op).kind;
  DfpTensor c{true, {}, out.e};
  Values w;
  if (compute) {
    w = weights(op);
    int common = common_exponent(op);
    for (size_t i = 0; i < w.size(); i++) {
      int s = common - exponent_of(op, output_of_weight(op, i));
      w[i] = s > 15 ? 0 : half_up(w[i], s);
    }
    c.e += common + chain_exponent();
  }
  int64_t factor = 1;
  if (kind == OpKind::kAvgPool || kind == OpKind::kGap) {
    factor = (65536 + graph_.area(op)) / (2 * graph_.area(op));
    c.e -= 15;
  }
  for (size_t b = 0; b < out.v.size(); b++) {
    Values d(graph_.size(tensor));
    const Values& dy = out.v[b];
    if (compute) {
      graph_.products(op,
                      [&](size_t wi, size_t xi, size_t yi) { d[xi] += product(w[wi], dy[yi]); });
    } else if (kind == OpKind::kMaxPool) {
      std::vector<size_t> from = graph_.max_sources(op, batch[tensor].v[b]);
      for (size_t i = 0; i < from.size(); i++) d[from[i]] += dy[i];
    } else {
      graph_.links(op, [&](int which, size_t in, size_t o) {
        if (which == reader.which) d[in] += dy[o] * factor;
      });
    }
    c.v.push_back(d);
  }
  return c;
}

DfpTensor DfpOracle::pull(size_t tensor, const std::vector<DfpTensor>& batch,
                          const std::vector<DfpTensor>& deltas) const {
  const std::vector<OracleGraph::Reader>& readers = graph_.readers(tensor);
  if (readers.size() == 1 && graph_.op(readers[0].op).kind == OpKind::kFlatten) {
    return deltas[readers[0].op + 1];
  }
  std::vector<DfpTensor> all;
  for (const OracleGraph::Reader& r : readers) all.push_back(give(r, batch, deltas[r.op + 1]));
  int e = all[0].e;
  for (const DfpTensor& c : all) e = std::max(e, c.e);
  std::vector<Values> sum(batch[tensor].v.size(), Values(graph_.size(tensor)));
  for (const DfpTensor& c : all) {
    for (size_t b = 0; b < sum.size(); b++) {
      for (size_t i = 0; i < sum[b].size(); i++) sum[b][i] += half_up(c.v[b][i], e - c.e);
    }
  }
  mask(tensor, batch, &sum);
  return down_convert(sum, e);
}

void DfpOracle::step(const std::vector<Values>& samples, const std::vector<int>& labels,
                     const std::vector<Values>& targets) {
  loss_ = 0;
  correct_ = 0;
  std::vector<DfpTensor> batch = forward(samples), deltas(graph_.tensors());
  size_t logits = graph_.tensors() - 1;
  deltas[logits] = {true, {}, loss_exponent()};
  for (size_t b = 0; b < samples.size(); b++) {
    bool regress = graph_.net().task == 1;
    Result r = loss_of(batch[logits].v[b], batch[logits].e, regress ? 0 : labels[b],
                       regress ? targets[b] : samples[b]);
    deltas[logits].v.push_back(r.dy);
    loss_ += r.loss;
    if (r.correct) correct_++;
  }
  for (size_t t = logits; t-- > 1;) {
    if (graph_.needs_delta(t)) deltas[t] = pull(t, batch, deltas);
  }
  for (DfpLayer& l : layers_) {
    const DfpTensor& d = deltas[l.op + 1];
    l.e_d = d.e;
    update_offsets(l, d);
    update_weights(l, batch[graph_.input(l.op, 0)], d);
  }
  step_++;
}

uint64_t DfpOracle::evaluate(const Values& sample, int label, const Values& target,
                             int* correct) const {
  DfpTensor z = infer(sample);
  bool regress = graph_.net().task == 1;
  Result r = loss_of(z.v[0], z.e, regress ? 0 : label, regress ? target : sample);
  if (correct && r.correct) (*correct)++;
  return r.loss;
}

}  // namespace odt::testing

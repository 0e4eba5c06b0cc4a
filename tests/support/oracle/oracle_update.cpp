// Rules 1.5-1.7 and 1.11 (weights, offsets), 1.12 (precision), and the guard's copy (1.10).
#include <algorithm>
#include <cstdlib>

#include "oracle.h"

namespace odt::testing {
namespace {

int64_t m_max(int k) {
  int f = k - 8;
  return f > 0 ? 127 * power(f) + power(f - 1) - 1 : 127 / power(-f);
}

uint64_t sum_abs(const Values& g) {
  uint64_t sum = 0;
  for (int64_t v : g) sum += static_cast<uint64_t>(std::llabs(v));
  return sum;
}

void sample(AptSum* u, const Values& g, int s) {
  uint64_t sum = sum_abs(g);
  u->a += s >= 0 ? (sum << 8) >> s : sum << (8 - s);
  u->n++;
}

}  // namespace

Oracle::Oracle(const NetSpec& net, const OracleSettings& settings) : graph_(net), set_(settings) {
  for (size_t i = 0; i < graph_.ops(); i++) {
    const LayerSpec& l = graph_.op(i);
    if (!l.trainable) continue;
    OracleLayer layer;
    layer.op = i;
    size_t index = layers_.size();
    int k = index < set_.layer_k.size() && set_.layer_k[index] != 0 ? set_.layer_k[index] : set_.k;
    if (!l.offsets_only) layer.m.assign(l.weights.begin(), l.weights.end());
    layer.off.assign(l.offsets.begin(), l.offsets.end());
    layer.k = 8;
    layers_.push_back(layer);
    set_k(index, k);
    if (set_.apt != AptMode::kOff && set_.apt_offsets) layers_.back().k_off = k;
  }
}

int64_t OracleLayer::saturated(bool literal) const {
  int64_t n = 0, hi = m_max(k), lo = literal ? -128 : -hi;
  for (int64_t v : m) n += v >= hi || v <= lo ? 1 : 0;
  return n;
}

void Oracle::start_epoch() {
  for (OracleLayer& l : layers_) l.epoch = OracleEpoch{};
}

void Oracle::count(OracleLayer& layer, const Values& g, const Delta& dy, bool sampled) {
  OracleEpoch& e = layer.epoch;
  e.steps++;
  e.deltas += g.size();
  e.bits_min = std::min(e.bits_min, layer.bits);
  e.bits_max = std::max(e.bits_max, layer.bits);
  e.bits_sum += static_cast<uint64_t>(layer.bits);
  for (const Values& d : dy.values) {
    e.propagated += d.size();
    for (int64_t v : d) e.zeros += v == 0 ? 1 : 0;
  }
  if (!sampled) return;
  e.sum_abs_g += sum_abs(g);
  e.sum_n++;
}

Rounding Oracle::rounding_of(int k) const {
  if (!set_.default_rounding) return set_.rounding;
  return k <= 8 ? Rounding::kPsto : Rounding::kHalfUp;
}

int Oracle::steps_per_epoch() const { return (set_.train_samples + set_.batch - 1) / set_.batch; }

int Oracle::stage() const {
  int64_t per_epoch = steps_per_epoch();
  if (set_.epochs >= 3) return static_cast<int>(3 * (step_ / per_epoch) / set_.epochs);
  return static_cast<int>(3 * int64_t{step_} / (per_epoch * set_.epochs));
}

// mu_weight of this step, inside the limits of the layer's precision.
int Oracle::mu_of(const OracleLayer& layer) const {
  int mu = set_.mu_weight[stage()];
  if (set_.literal) return mu;
  Rounding r = rounding_of(layer.k);
  int lo = -(layer.k - 8);
  if (r == Rounding::kPsto || r == Rounding::kSr) lo -= 4;
  return std::min(std::max(mu, lo), set_.batch == 1 ? 2 : 4);
}

Values Oracle::weight_gradient(const OracleLayer& layer, const Batch& batch,
                               const Delta& dy) const {
  Values g(layer.m.size());
  if (g.empty()) return g;
  for (size_t b = 0; b < batch.size(); b++) {
    const Values& x = batch[b][graph_.input(layer.op, 0)];
    graph_.products(layer.op,
                    [&](size_t wi, size_t xi, size_t yi) { g[wi] += x[xi] * dy.values[b][yi]; });
  }
  return g;
}

void Oracle::update_offsets(OracleLayer& layer, const Delta& dy, bool sampled) {
  const LayerSpec& l = graph_.op(layer.op);
  Values g(l.outputs), ks(l.k.begin(), l.k.end());
  for (const Values& d : dy.values) {
    for (size_t i = 0; i < d.size(); i++) g[i / graph_.positions(layer.op)] += d[i];
  }
  int bits = bit_length(largest(g));
  auto k_min = static_cast<int>(*std::min_element(ks.begin(), ks.end()));
  int t_o = std::max(0, std::min(7, k_min - 3));
  int ws = std::max(0, bits - (t_o + set_.mu_offset)), grid = 0;
  if (layer.k_off != 0) {
    grid = std::max(0, static_cast<int>(most_frequent(ks)) + 8 - layer.k_off);
    if (sampled) sample(&layer.u_off, g, ws + grid);
  }
  if (bits == 0) return;
  for (size_t o = 0; o < g.size(); o++) {
    int64_t d = oracle_round(g[o], ws + grid, Rounding::kHalfUp, 0) * power(grid);
    layer.off[o] = sat32(layer.off[o] - d);
  }
}

void Oracle::update_weights(size_t index, OracleLayer& layer, const Batch& batch, const Delta& dy,
                            bool sampled) {
  Values g = weight_gradient(layer, batch, dy);
  int mu = mu_of(layer), f = layer.k - 8, bits = bit_length(largest(g));
  bool old = set_.stale && layer.b_prev != 0;
  layer.bits = bits;
  layer.ws = std::max(0, (old ? layer.b_prev : bits) - mu);
  if (sampled) sample(&layer.u, g, layer.ws - f);
  count(layer, g, dy, set_.apt == AptMode::kOff ? step_ % 16 == 0 : sampled);
  int sh = std::max(0, bits - 7);
  if (set_.literal) layer.ws = sh + std::max(0, sh - mu);
  for (size_t i = 0; i < g.size() && bits != 0; i++) {
    int64_t d;
    if (set_.literal) {
      d = oracle_round(oracle_round(g[i], sh, Rounding::kHalfUp, 0), std::max(0, sh - mu),
                       Rounding::kHalfUp, 0);
    } else {
      uint32_t r = oracle_hash32(set_.sr_seed, static_cast<uint32_t>(step_),
                                 static_cast<uint32_t>(index), static_cast<uint32_t>(i));
      d = oracle_round(g[i], layer.ws - f, rounding_of(layer.k), r);
    }
    if (old) d = clip(d, -power(std::max(0, mu + f)), power(std::max(0, mu + f)));
    layer.epoch.nonzero += d != 0 ? 1 : 0;
    if (d == 0) continue;
    int64_t hi = m_max(layer.k);
    layer.m[i] = clip(layer.m[i] - d, set_.literal ? -128 : -hi, hi);
  }
  if (set_.stale && bits != 0) layer.b_prev = bits;
}

void Oracle::unit_step(OracleLayer& layer, bool up) {
  layer.k += up ? 1 : -1;
  for (int64_t& m : layer.m) {
    m = up ? m * 2
           : clip(oracle_round(m, 1, Rounding::kHalfAway, 0), -m_max(layer.k), m_max(layer.k));
  }
  layer.b_prev = 0;
}

void Oracle::set_k(size_t layer, int k) {
  if (layers_[layer].k != k) layers_[layer].u = AptSum{};
  while (layers_[layer].k != k) unit_step(layers_[layer], k > layers_[layer].k);
}

// Rule 1.12: a check, where this step was the last one before it.
void Oracle::check_precision() {
  int s = steps_per_epoch(), now = (step_ - 1) % s + 1;
  bool due = false;
  for (int i = 1; i <= 4; i++) {
    if (set_.apt == AptMode::kQuarters && now == (i * s + 3) / 4) due = true;
  }
  if (set_.apt == AptMode::kEpochs && now == s) due = true;
  if (!due) return;
  // -1: down, 1: up.
  auto wanted = [&](const AptSum& u, size_t values, int k) {
    Wide whole = Wide{static_cast<int64_t>(values)} * static_cast<int64_t>(u.n), a = u.a;
    if (u.n == 0) return 0;
    if (a < whole * set_.t_min_q8) return k < set_.k_max ? 1 : 0;
    if (set_.t_max_q8 != 0 && a > whole * set_.t_max_q8) return k > 2 ? -1 : 0;
    return 0;
  };
  for (OracleLayer& l : layers_) {
    int change = wanted(l.u, l.m.size(), l.k);
    if (change != 0) unit_step(l, change > 0);
    if (l.k_off != 0) l.k_off += wanted(l.u_off, l.off.size(), l.k_off);
    l.u = l.u_off = AptSum{};
  }
  since_check_ = 0;
}

void Oracle::keep_best() { best_ = layers_; }

// Weights, offsets and precision of the best; the stale shifts are forgotten.
void Oracle::roll_back() {
  for (size_t i = 0; i < layers_.size(); i++) {
    layers_[i].b_prev = 0;
    if (best_.empty()) continue;
    layers_[i].m = best_[i].m;
    layers_[i].off = best_[i].off;
    layers_[i].k = best_[i].k;
  }
}

}  // namespace odt::testing

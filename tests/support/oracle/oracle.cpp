#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace odt::testing {
namespace {

int64_t clip(int64_t v, int64_t lo, int64_t hi) { return std::min(std::max(v, lo), hi); }

int bit_length(int64_t magnitude) {
  int n = 0;
  while (magnitude > 0) {
    magnitude /= 2;
    n++;
  }
  return n;
}

int64_t power(int n) { return int64_t{1} << n; }

int64_t floor_shift(int64_t v, int k) {
  int64_t d = power(k), q = v / d;
  return v % d < 0 ? q - 1 : q;
}

int64_t largest(const std::vector<Values>& tensors) {
  int64_t top = 0;
  for (const Values& t : tensors) {
    for (int64_t v : t) top = std::max<int64_t>(top, std::llabs(v));
  }
  return top;
}

int64_t m_max(int k) {
  int f = k - 8;
  return f > 0 ? 127 * power(f) + power(f - 1) - 1 : 127 / power(-f);
}

// Calls fn(weight index, input index, output index) for every product of a convolution.
template <class Fn>
void for_each_product(const LayerSpec& l, const std::vector<uint16_t>& in,
                      const std::vector<uint16_t>& out, Fn fn) {
  int cg = in[0] / l.groups, og = out[0] / l.groups;
  for (int o = 0; o < out[0]; o++)
    for (int oy = 0; oy < out[1]; oy++)
      for (int ox = 0; ox < out[2]; ox++)
        for (int c = 0; c < cg; c++)
          for (int ky = 0; ky < l.k_h; ky++)
            for (int kx = 0; kx < l.k_w; kx++) {
              int iy = oy * l.stride_h + ky * l.dil_h - l.pad_t;
              int ix = ox * l.stride_w + kx * l.dil_w - l.pad_l;
              if (iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
              int channel = (o / og) * cg + c;
              fn(static_cast<size_t>(((o * cg + c) * l.k_h + ky) * l.k_w + kx),
                 static_cast<size_t>((channel * in[1] + iy) * in[2] + ix),
                 static_cast<size_t>((o * out[1] + oy) * out[2] + ox));
            }
}

template <class Fn>
void products(const LayerSpec& l, const std::vector<uint16_t>& in, const std::vector<uint16_t>& out,
              Fn fn) {
  if (l.kind == OpKind::kConv2d) return for_each_product(l, in, out, fn);
  for (size_t i = 0; i < in[0]; i++)
    for (size_t o = 0; o < out[0]; o++) fn(i * out[0] + o, i, o);
}

}  // namespace

uint32_t oracle_hash32(uint32_t seed, uint32_t step, uint32_t layer, uint32_t index) {
  uint32_t x = 0x9E3779B9;
  for (uint32_t v : {seed, step, layer, index}) {
    x = x ^ v;
    x = x * 0x85EBCA6B;
    x = x ^ (x >> 13);
    x = x * 0xC2B2AE35;
    x = x ^ (x >> 16);
  }
  return x;
}

int64_t oracle_round(int64_t g, int s, Rounding rounding, uint32_t r) {
  if (s == 0) return g;
  if (s < 0) return g * power(-s);
  if (rounding == Rounding::kHalfUp) return floor_shift(g + power(s - 1), s);
  int64_t a = std::llabs(g), whole = a / power(s), fr = a % power(s), sign = g < 0 ? -1 : 1;
  if (rounding == Rounding::kHalfAway) return sign * ((a + power(s - 1)) / power(s));
  if (rounding == Rounding::kSr) return sign * (whole + (r % power(s) < fr ? 1 : 0));
  int h = s / 2;
  int64_t hi = fr / power(h), lo = fr % power(h);
  if (s % 2 == 1) lo *= 2;
  return sign * (whole + (hi > lo ? 1 : 0));
}

std::vector<int> oracle_order(uint32_t seed, uint32_t epoch, int n) {
  uint32_t x = seed ^ static_cast<uint32_t>((uint64_t{epoch} + 1) * 0x9E3779B1);
  if (x == 0) x = 0x9E3779B9;
  auto next = [&x] {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
  };
  for (int i = 0; i < 4; i++) next();
  std::vector<int> p(static_cast<size_t>(n));
  for (int i = 0; i < n; i++) p[static_cast<size_t>(i)] = i;
  for (int i = n - 1; i >= 1; i--) {
    auto j = static_cast<size_t>((uint64_t{next()} * static_cast<uint64_t>(i + 1)) >> 32);
    std::swap(p[static_cast<size_t>(i)], p[j]);
  }
  return p;
}

Oracle::Oracle(const NetSpec& net, const OracleSettings& settings) : net_(net), set_(settings) {
  std::vector<uint16_t> dims = net.input_dims;
  for (size_t i = 0; i < net.layers.size(); i++) {
    const LayerSpec& l = net.layers[i];
    Shape s{dims, output_dims(l, dims)};
    dims = s.out;
    shapes_.push_back(s);
    if (!l.trainable) continue;
    OracleLayer layer;
    layer.op = i;
    for (int w : l.weights) {
      int64_t m = w;
      for (int k = 8; k < set_.k; k++) m *= 2;
      for (int k = 7; k >= set_.k; k--) {
        m = clip(oracle_round(m, 1, Rounding::kHalfAway, 0), -m_max(k), m_max(k));
      }
      layer.m.push_back(m);
    }
    layer.off.assign(l.offsets.begin(), l.offsets.end());
    layers_.push_back(layer);
  }
}

const OracleLayer* Oracle::layer_of(size_t op) const {
  for (const OracleLayer& l : layers_) {
    if (l.op == op) return &l;
  }
  return nullptr;
}

Values Oracle::weight_view(size_t op) const {
  const OracleLayer* l = layer_of(op);
  if (!l) return Values(net_.layers[op].weights.begin(), net_.layers[op].weights.end());
  Values w;
  int f = set_.k - 8;
  for (int64_t m : l->m) w.push_back(f > 0 ? floor_shift(m + power(f - 1), f) : m * power(-f));
  return w;
}

Values Oracle::forward_op(size_t op, const Values& x) const {
  const LayerSpec& l = net_.layers[op];
  if (l.kind == OpKind::kFlatten) return x;
  Values y(count(shapes_[op].out));
  if (l.kind == OpKind::kPrequant) {
    size_t per_channel = x.size() / l.outputs;
    for (size_t i = 0; i < x.size(); i++) {
      size_t c = i / per_channel;
      y[i] = clip(floor_shift((x[i] * 256 + l.offsets[c]) * l.prequant_mult[c], l.k[c] + 8),
                  l.clip_lo, l.clip_hi);
    }
    return y;
  }
  Values w = weight_view(op);
  products(l, shapes_[op].in, shapes_[op].out,
           [&](size_t wi, size_t xi, size_t yi) { y[yi] += w[wi] * x[xi]; });
  const OracleLayer* trained = layer_of(op);
  size_t positions = y.size() / l.outputs;
  for (size_t i = 0; i < y.size(); i++) {
    size_t o = i / positions;
    int64_t off = trained ? trained->off[o] : l.offsets[o];
    int64_t a = clip(y[i] + off, INT32_MIN, INT32_MAX) * (l.mult.empty() ? 1 : l.mult[o]);
    y[i] = clip(floor_shift(a, l.k[o]), l.clip_lo, l.clip_hi);
  }
  return y;
}

std::vector<Values> Oracle::forward(const Values& sample) const {
  std::vector<Values> acts{sample};
  for (size_t i = 0; i < net_.layers.size(); i++) acts.push_back(forward_op(i, acts.back()));
  return acts;
}

Values Oracle::infer(const Values& sample) const { return forward(sample).back(); }

Values Oracle::loss_delta(const Values& z, int label) {
  size_t n = z.size();
  Values d(n), e(n);
  int64_t top = *std::max_element(z.begin(), z.end()), sum = 0;
  for (size_t c = 0; c < n && set_.cross_entropy; c++) {
    int64_t t = (top - z[c]) * net_.ce_scale, ip = std::min<int64_t>(t / 256, 23), fr = t % 256;
    if (fr == 0) {
      e[c] = 65536 / power(static_cast<int>(ip));
    } else {
      auto entry = static_cast<int64_t>(
          std::lround(256.0 * std::pow(2.0, static_cast<double>((256 - fr) / 16) / 16.0)));
      e[c] = entry * 256 / power(static_cast<int>(ip) + 1);
    }
    sum += e[c];
  }
  for (size_t c = 0; c < n; c++) {
    bool hit = static_cast<int>(c) == label;
    if (set_.cross_entropy) {
      d[c] = (127 * e[c] + sum / 2) / sum - (hit ? 127 : 0);
      loss_ += d[c] * d[c];
    } else {
      int64_t diff = z[c] - (hit ? net_.target_correct[c] : net_.target_wrong[c]);
      loss_ += diff * diff;
      d[c] = clip(diff, -128, 127);
      if (std::llabs(d[c]) <= set_.dead_zone) d[c] = 0;
    }
    int64_t cw = set_.class_weights[static_cast<size_t>(label)];
    d[c] = clip(floor_shift(d[c] * cw + 32, 6), -128, 127);
  }
  auto predicted = std::find(z.begin(), z.end(), top) - z.begin();
  if (predicted == label) correct_++;
  return d;
}

Values Oracle::input_delta(size_t op, const Values& dy) const {
  Values w = weight_view(op), dx(count(shapes_[op].in));
  products(net_.layers[op], shapes_[op].in, shapes_[op].out,
           [&](size_t wi, size_t xi, size_t yi) { dx[xi] += w[wi] * dy[yi]; });
  return dx;
}

Values Oracle::weight_gradient(size_t op, const Values& x, const Values& dy) const {
  Values g(net_.layers[op].weights.size());
  products(net_.layers[op], shapes_[op].in, shapes_[op].out,
           [&](size_t wi, size_t xi, size_t yi) { g[wi] += x[xi] * dy[yi]; });
  return g;
}

// Delta of the op's input over the batch: accumulated, masked by the layer that made the input,
// rounded once.
std::vector<Values> Oracle::propagate(size_t op, const std::vector<std::vector<Values>>& acts,
                                      const std::vector<Values>& dy) const {
  size_t maker = op;
  do {
    maker--;
  } while (net_.layers[maker].kind == OpKind::kFlatten);
  std::vector<Values> dx;
  for (size_t b = 0; b < dy.size(); b++) {
    dx.push_back(input_delta(op, dy[b]));
    for (size_t i = 0; i < dx[b].size(); i++) {
      if (net_.layers[maker].relu && acts[b][maker + 1][i] <= 0) dx[b][i] = 0;
    }
  }
  int s = std::max(0, bit_length(largest(dx)) - 7);
  for (Values& v : dx) {
    for (int64_t& d : v) d = clip(oracle_round(d, s, Rounding::kHalfUp, 0), -127, 127);
  }
  return dx;
}

void Oracle::update_offsets(OracleLayer& layer, const std::vector<Values>& dy) {
  const LayerSpec& l = net_.layers[layer.op];
  Values g(l.outputs);
  for (const Values& d : dy) {
    for (size_t i = 0; i < d.size(); i++) g[i / (d.size() / l.outputs)] += d[i];
  }
  int bits = bit_length(largest({g}));
  if (bits == 0) return;
  int k_min = *std::min_element(l.k.begin(), l.k.end());
  int t_o = std::max(0, std::min(7, k_min - 3));
  int ws = std::max(0, bits - (t_o + set_.mu_offset));
  for (size_t o = 0; o < g.size(); o++) {
    layer.off[o] =
        clip(layer.off[o] - oracle_round(g[o], ws, Rounding::kHalfUp, 0), INT32_MIN, INT32_MAX);
  }
}

int Oracle::stage() const {
  int64_t per_epoch = (set_.train_samples + set_.batch - 1) / set_.batch;
  if (set_.epochs >= 3) return static_cast<int>(3 * (step_ / per_epoch) / set_.epochs);
  return static_cast<int>(3 * int64_t{step_} / (per_epoch * set_.epochs));
}

void Oracle::update_weights(size_t index, OracleLayer& layer,
                            const std::vector<std::vector<Values>>& acts,
                            const std::vector<Values>& dy) {
  Values g(layer.m.size());
  for (size_t b = 0; b < dy.size(); b++) {
    Values one = weight_gradient(layer.op, acts[b][layer.op], dy[b]);
    for (size_t i = 0; i < g.size(); i++) g[i] += one[i];
  }
  int mu = set_.mu_weight[stage()], f = set_.k - 8, bits = bit_length(largest({g}));
  bool old = set_.stale && layer.b_prev != 0;
  layer.bits = bits;
  layer.ws = std::max(0, (old ? layer.b_prev : bits) - mu);
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
      d = oracle_round(g[i], layer.ws - f, set_.rounding, r);
    }
    if (old) d = clip(d, -power(std::max(0, mu + f)), power(std::max(0, mu + f)));
    if (d == 0) continue;
    int64_t hi = m_max(set_.k);
    layer.m[i] = clip(layer.m[i] - d, set_.literal ? -128 : -hi, hi);
  }
  if (set_.stale && bits != 0) layer.b_prev = bits;
}

void Oracle::step(const std::vector<Values>& samples, const std::vector<int>& labels) {
  loss_ = 0;
  correct_ = 0;
  std::vector<std::vector<Values>> acts;
  std::vector<Values> dy;
  for (size_t b = 0; b < samples.size(); b++) {
    acts.push_back(forward(samples[b]));
    dy.push_back(loss_delta(acts[b].back(), labels[b]));
  }
  size_t first = layers_[0].op;
  for (size_t op = net_.layers.size(); op-- > first;) {
    if (net_.layers[op].kind == OpKind::kFlatten) continue;
    std::vector<Values> dx;
    if (op > first) dx = propagate(op, acts, dy);
    for (size_t i = 0; i < layers_.size(); i++) {
      if (layers_[i].op != op) continue;
      update_offsets(layers_[i], dy);
      update_weights(i, layers_[i], acts, dy);
    }
    dy = dx;
  }
  step_++;
}

}  // namespace odt::testing

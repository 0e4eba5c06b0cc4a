// Rule 1.13: weights with overflow rule, offsets.
#include <algorithm>
#include <cstdlib>

#include "oracle_dfp.h"

namespace odt::testing {
namespace {

// One block of weights that share an exponent: subtracts, and where a weight would leave 16 bits,
// halves the block and tries again with the same gradient.
void move_block(Values& w, int& e_w, const Values& acc, int rate, int shift) {
  for (;;) {
    Values moved = w;
    bool fits = true;
    for (size_t i = 0; i < w.size(); i++) {
      Wide d = wide_half_up(Wide{acc[i]} * rate, shift);
      Wide v = w[i] - d;
      if (e_w >= kDfpExponentLimit) v = clip<Wide>(v, -kDfpTop, kDfpTop);
      if (v > kDfpTop || v < -kDfpTop) {
        fits = false;
        break;
      }
      moved[i] = static_cast<int64_t>(v);
    }
    if (fits) {
      w = moved;
      return;
    }
    for (int64_t& v : w) v = static_cast<int64_t>(wide_half_up(v, 1));
    e_w++;
    shift++;
  }
}

// A block at the smallest exponent that holds it (blocked layers begin so).
void normalise(Values& w, const std::vector<size_t>& block, int& e_w) {
  auto top = [&] {
    int64_t m = 0;
    for (size_t i : block) m = std::max<int64_t>(m, std::llabs(w[i]));
    return m;
  };
  while (top() != 0 && top() * 2 <= kDfpTop && e_w > -kDfpExponentLimit) {
    for (size_t i : block) w[i] *= 2;
    e_w--;
  }
}

}  // namespace

DfpOracle::DfpOracle(const NetSpec& net, const DfpSettings& settings)
    : graph_(net), set_(settings) {
  for (size_t i = 0; i < graph_.ops(); i++) {
    const LayerSpec& l = graph_.op(i);
    if (!l.trainable) continue;
    DfpLayer layer;
    layer.op = i;
    if (!l.offsets_only) layer.w.assign(l.weights16.begin(), l.weights16.end());
    layer.e_w.assign(set_.blocked ? l.outputs : 1, l.e_w);
    layer.off.assign(l.offsets.begin(), l.offsets.end());
    for (size_t o = 0; set_.blocked && o < l.outputs; o++) {
      std::vector<size_t> block;
      for (size_t w = 0; w < layer.w.size(); w++) {
        if (output_of_weight(i, w) == o) block.push_back(w);
      }
      normalise(layer.w, block, layer.e_w[o]);
    }
    layers_.push_back(layer);
  }
}

int DfpOracle::steps_per_epoch() const {
  return (set_.train_samples + set_.batch - 1) / set_.batch;
}

int DfpOracle::rate() const {
  int64_t per_epoch = steps_per_epoch();
  int64_t stage = set_.epochs >= 3 ? 3 * (step_ / per_epoch) / set_.epochs
                                   : 3 * int64_t{step_} / (per_epoch * set_.epochs);
  return set_.lr_m[stage];
}

void DfpOracle::update_offsets(DfpLayer& layer, const DfpTensor& dy) const {
  const LayerSpec& l = graph_.op(layer.op);
  Values g(l.outputs);
  for (const Values& d : dy.v) {
    for (size_t i = 0; i < d.size(); i++) g[i / graph_.positions(layer.op)] += d[i];
  }
  for (size_t o = 0; o < g.size(); o++) {
    Wide d = wide_half_up(Wide{g[o]} * rate(), set_.lr_s + l.e_b - dy.e);
    layer.off[o] =
        static_cast<int64_t>(clip<Wide>(layer.off[o] - d, Wide{INT32_MIN}, Wide{INT32_MAX}));
  }
}

void DfpOracle::update_weights(DfpLayer& layer, const DfpTensor& x, const DfpTensor& dy) const {
  if (layer.w.empty()) return;
  Values acc(layer.w.size());
  for (size_t b = 0; b < x.v.size(); b++) {
    graph_.products(layer.op, [&](size_t wi, size_t xi, size_t yi) {
      acc[wi] += product(x.v[b][xi], dy.v[b][yi]);
    });
  }
  layer.bits = bit_length(largest(acc));
  int gradient = x.e + dy.e + chain_exponent();
  for (size_t block = 0; block < layer.e_w.size(); block++) {
    auto mine = [&](size_t i) {
      return layer.e_w.size() == 1 || output_of_weight(layer.op, i) == block;
    };
    Values w, g;
    for (size_t i = 0; i < acc.size(); i++) {
      if (!mine(i)) continue;
      w.push_back(layer.w[i]);
      g.push_back(acc[i]);
    }
    move_block(w, layer.e_w[block], g, rate(), set_.lr_s + layer.e_w[block] - gradient);
    size_t next = 0;
    for (size_t i = 0; i < acc.size(); i++) {
      if (mine(i)) layer.w[i] = w[next++];
    }
  }
  int top = *std::max_element(layer.e_w.begin(), layer.e_w.end());
  layer.shift = clip(set_.lr_s + top - gradient, -128, 127);
}

}  // namespace odt::testing

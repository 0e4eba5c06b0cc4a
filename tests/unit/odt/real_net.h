// A network in double precision, for finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle_graph.h"

namespace odt::testing {

using Reals = std::vector<double>;

// The network in real numbers. Weights and offsets are those of the image, moved by a test.
class RealNet {
 public:
  explicit RealNet(const NetSpec& net) : graph_(net) {
    for (size_t i = 0; i < graph_.ops(); i++) {
      const LayerSpec& l = graph_.op(i);
      bool dfp16 = net.arith == 1;
      if (dfp16) {
        weights_.emplace_back(l.weights16.begin(), l.weights16.end());
      } else {
        weights_.emplace_back(l.weights.begin(), l.weights.end());
      }
      offsets_.emplace_back(l.offsets.begin(), l.offsets.end());
      if (!dfp16 || !graph_.is_compute(i)) continue;
      for (double& w : weights_[i]) w = std::ldexp(w, l.e_w);
      for (double& b : offsets_[i]) b = std::ldexp(b, l.e_b);
    }
  }

  double& weight(size_t op, size_t i) { return weights_[op][i]; }
  double& offset(size_t op, size_t i) { return offsets_[op][i]; }
  const OracleGraph& graph() const { return graph_; }

  // `paths`: which ReLUs let through and which inputs the maxima come from.
  double loss(const std::vector<Values>& xs, const std::vector<Values>& targets,
              std::vector<size_t>* paths) const {
    double sum = 0;
    paths->clear();
    for (size_t b = 0; b < xs.size(); b++) {
      Reals z = forward(xs[b], paths);
      for (size_t c = 0; c < z.size(); c++) {
        double d = z[c] - static_cast<double>(targets[b][c]);
        sum += d * d / 2;
      }
    }
    return sum;
  }

  Reals logits(const Values& x) const {
    std::vector<size_t> paths;
    return forward(x, &paths);
  }

 private:
  Reals forward(const Values& x, std::vector<size_t>* paths) const {
    std::vector<Reals> t{Reals(x.begin(), x.end())};
    for (double& v : t[0]) v = std::ldexp(v, dfp16() ? graph_.net().input_exponent : 0);
    for (size_t i = 0; i < graph_.ops(); i++) t.push_back(op(i, t, paths));
    return t.back();
  }

  bool dfp16() const { return graph_.net().arith == 1; }
  double scale(size_t i, size_t o) const {
    const LayerSpec& l = graph_.op(i);
    if (l.k.empty() || dfp16()) return 1;
    return (l.mult.empty() ? 1.0 : l.mult[o]) / std::ldexp(1.0, l.k[o]);
  }

  Reals op(size_t i, const std::vector<Reals>& t, std::vector<size_t>* paths) const {
    const LayerSpec& l = graph_.op(i);
    const Reals& x = t[graph_.input(i, 0)];
    Reals y(graph_.size(i + 1), 0.0);
    if (graph_.is_compute(i)) {
      graph_.products(i,
                      [&](size_t w, size_t in, size_t out) { y[out] += weights_[i][w] * x[in]; });
      for (size_t j = 0; j < y.size(); j++) {
        size_t o = j / graph_.positions(i);
        y[j] = (y[j] + offsets_[i][o]) * scale(i, o);
      }
    } else if (l.kind == OpKind::kMaxPool) {
      std::vector<size_t> from(y.size());
      std::fill(y.begin(), y.end(), -1e300);
      graph_.links(i, [&](int, size_t in, size_t out) {
        if (x[in] > y[out]) from[out] = in;
        y[out] = std::max(y[out], x[in]);
      });
      paths->insert(paths->end(), from.begin(), from.end());
    } else {
      graph_.links(i, [&](int which, size_t in, size_t out) {
        double m = 1;
        if (l.kind == OpKind::kAdd && !dfp16()) {
          m = std::ldexp(l.offsets[static_cast<size_t>(which)], -20);
        }
        if (l.kind == OpKind::kAvgPool || l.kind == OpKind::kGap) {
          m = 1.0 / static_cast<double>(graph_.area(i));
        }
        y[out] += m * t[graph_.input(i, which)][in];
      });
    }
    for (double& v : y) {
      if (l.relu) paths->push_back(v > 0 ? 1 : 0);
      if (l.relu && v < 0) v = 0;
    }
    return y;
  }

  OracleGraph graph_;
  std::vector<Reals> weights_, offsets_;
};

}  // namespace odt::testing

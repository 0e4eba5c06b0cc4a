#include "worker/qat_net.h"

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace odt::worker {

using compiler::LayerKind;
using Map = Eigen::Map<QatMatrix>;
using ConstMap = Eigen::Map<const QatMatrix>;

namespace {

constexpr float kBnKeep = 0.9f;
constexpr Eigen::Index kChunkValues = 1 << 17;  // of unfolded windows: stays in the second cache

Plane plane_of(const ArchLayer& a) {
  Plane p;
  if (a.in_shape.size() != 3 || a.out_shape.size() != 3) return p;
  p.c = static_cast<int>(a.in_shape[0]);
  p.h = static_cast<int>(a.in_shape[1]);
  p.w = static_cast<int>(a.in_shape[2]);
  p.out_h = static_cast<int>(a.out_shape[1]);
  p.out_w = static_cast<int>(a.out_shape[2]);
  p.g = a.geometry;
  if (a.kind == LayerKind::kGap) {
    p.g.k_h = p.g.stride_h = static_cast<std::uint16_t>(p.h);
    p.g.k_w = p.g.stride_w = static_cast<std::uint16_t>(p.w);
  }
  return p;
}

// Values as rows of `columns` channels.
Map rows_of(QatMatrix& m, Eigen::Index columns) {
  return Map(m.data(), m.size() / columns, columns);
}
ConstMap rows_of(const QatMatrix& m, Eigen::Index columns) {
  return ConstMap(m.data(), m.size() / columns, columns);
}

bool depthwise_kernel(const ArchLayer& a) {
  return a.kind == LayerKind::kConv && a.depthwise() && a.out_shape[0] == a.in_shape[0];
}

// 1x1 windows need no unfolding.
bool is_plain(const Plane& p) {
  const auto& g = p.g;
  return g.groups == 1 && p.taps() == 1 && g.stride_h == 1 && g.stride_w == 1 &&
         g.pad_t + g.pad_l + g.pad_b + g.pad_r == 0;
}

// Half to even for |v| < 2^22, which vectorises.
float round_even(float v) {
  volatile float shifted = v + 12582912.0f;
  return shifted - 12582912.0f;
}

}  // namespace

void QatParam::zero(Eigen::Index rows, Eigen::Index columns) {
  value = velocity = gradient = QatMatrix::Zero(rows, columns);
}

QatNet::QatNet(const Arch& arch, std::uint32_t seed, const Options& options)
    : arch_(arch), options_(options) {
  data::Xorshift32 random(seed * 2654435761u + 97);
  bool is_unsigned_input = false;
  for (const auto& a : arch.layers) {
    QatNode node;
    node.arch = a;
    node.plane = plane_of(a);
    node.relu = a.relu;
    const bool computes = a.is_compute() || a.kind == LayerKind::kAdd;
    is_unsigned_input = a.in0 > 0 && nodes_[a.in0 - 1u].is_unsigned;
    node.is_unsigned = computes ? a.relu : is_unsigned_input;
    if (a.is_compute()) init(node, random);
    nodes_.push_back(std::move(node));
  }
  act_.resize(nodes_.size() + 1);
  delta_.resize(nodes_.size() + 1);
  has_delta_.resize(nodes_.size() + 1);
}

void QatNet::init(QatNode& node, data::Xorshift32& random) {
  const ArchLayer& a = node.arch;
  const Eigen::Index out = a.out_shape[0];
  const Eigen::Index in = a.kind == LayerKind::kLinear
                              ? static_cast<Eigen::Index>(compiler::count_of(a.in_shape))
                              : node.plane.taps() * node.plane.c / a.geometry.groups;
  node.w.zero(in, out);
  const float limit = std::sqrt((a.relu ? 6.0f : 3.0f) / static_cast<float>(in));
  for (Eigen::Index i = 0; i < node.w.value.size(); ++i)
    node.w.value.data()[i] = (static_cast<float>(random.next() >> 8) / 8388608.0f - 1.0f) * limit;
  node.b.zero(1, out);
  node.w_exp.assign(static_cast<std::size_t>(out), 0);
  node.bn = a.bn;
  if (!node.bn) return;
  node.gamma.zero(1, out);
  node.gamma.value.setOnes();
  node.beta.zero(1, out);
  node.mean = QatRow::Zero(out);
  node.var = QatRow::Ones(out);
}

void QatNet::quantise(QatNode& node) const {
  if (!on_grid_) {
    node.wq = node.w.value;
    node.bq = node.b.value.row(0);
    return;
  }
  node.wq.resize(node.w.value.rows(), node.w.value.cols());
  node.bq.resize(node.w.value.cols());
  QatRow scale(node.outputs()), unit(node.outputs());
  for (int o = 0; o < node.outputs(); ++o) {
    const int e = node.w_exp[static_cast<std::size_t>(o)];
    scale[o] = std::ldexp(1.0f, e);
    unit[o] = std::ldexp(1.0f, node.in_exp + e);
  }
  node.wq = (node.w.value.array().rowwise() / scale.array())
                .round()
                .max(-kQatWeightLimit)
                .min(kQatWeightLimit);
  node.wq.array().rowwise() *= scale.array();
  // The file's float32 holds offsets up to 2^24.
  constexpr float kMaxOffset = 8388608.0f;
  node.bq = (node.b.value.row(0).array() / unit.array()).round().max(-kMaxOffset).min(kMaxOffset);
  node.bq.array() *= unit.array();
}

const QatMatrix& QatNet::forward(const QatMatrix& x, bool training) {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    QatNode& node = nodes_[n];
    const QatMatrix& in = node.arch.in0 == 0 ? x : act_[node.arch.in0];
    QatMatrix& y = act_[n + 1];
    y.resize(x.rows(), static_cast<Eigen::Index>(compiler::count_of(node.arch.out_shape)));
    if (node.arch.is_compute()) {
      forward_compute(node, in, y, training);
    } else if (node.arch.kind == LayerKind::kAdd) {
      y = in + act_[node.arch.in1];
    } else {
      forward_other(node, in, y);
      continue;
    }
    if (on_grid_) {
      const float s = std::ldexp(1.0f, node.out_exp);
      const auto lo = static_cast<float>(node.clip_lo()), hi = static_cast<float>(node.clip_hi());
      if (node.arch.kind == LayerKind::kAdd)
        y = (y / s).unaryExpr(&round_even).array().max(lo).min(hi) * s;
      else
        y = ((y / s).array() + 0.5f).floor().max(lo).min(hi) * s;
    } else if (node.relu) {
      y = y.array().max(0.0f);
    }
  }
  return act_.back();
}

template <typename F>
void QatNet::each_unfolded(const QatNode& node, const QatMatrix& x, F&& f) {
  const Plane& p = node.plane;
  const int groups = p.g.groups, n = p.c / groups;
  const Eigen::Index k = node.wq.rows(), at = p.positions();
  const Eigen::Index chunk = std::max<Eigen::Index>(1, kChunkValues / (at * k));
  for (Eigen::Index s = 0; s < x.rows(); s += chunk) {
    const Eigen::Index count = std::min(chunk, x.rows() - s);
    cols_.resize(count * at, k);
    for (int g = 0; g < groups; ++g) {
      for (Eigen::Index i = 0; i < count; ++i)
        im2col(p, x.row(s + i).data(), g * n, n, cols_.data() + i * at * k);
      f(s, count, g);
    }
  }
}

void QatNet::forward_compute(QatNode& node, const QatMatrix& x, QatMatrix& y, bool training) {
  quantise(node);
  const Plane& p = node.plane;
  const Eigen::Index out = node.outputs();
  Map rows = rows_of(y, out);
  if (depthwise_kernel(node.arch)) {
    for (Eigen::Index s = 0; s < x.rows(); ++s)
      depthwise(p, x.row(s).data(), node.wq.data(), y.row(s).data());
  } else if (node.arch.kind == LayerKind::kLinear || is_plain(p)) {
    rows.noalias() = rows_of(x, node.wq.rows()) * node.wq;
  } else {
    const Eigen::Index per = out / p.g.groups, at = p.positions();
    each_unfolded(node, x, [&](Eigen::Index s, Eigen::Index count, int g) {
      rows.block(s * at, g * per, count * at, per).noalias() =
          cols_ * node.wq.middleCols(g * per, per);
    });
  }
  if (node.bn)
    batch_norm(node, rows, training);
  else
    rows.rowwise() += node.bq;
}

void QatNet::forward_other(QatNode& node, const QatMatrix& x, QatMatrix& y) {
  const Plane& p = node.plane;
  const LayerKind kind = node.arch.kind;
  const auto channels = static_cast<int>(node.arch.in_shape[0]);
  if (kind == LayerKind::kMaxPool) node.which.resize(static_cast<std::size_t>(y.size()));
  for (Eigen::Index s = 0; s < x.rows(); ++s) {
    const float* from = x.row(s).data();
    float* to = y.row(s).data();
    if (kind == LayerKind::kMaxPool)
      max_pool(p, from, to, node.which.data() + s * y.cols());
    else if (kind == LayerKind::kResize)
      resize(p, from, to);
    else if (kind == LayerKind::kFlatten)
      flatten(channels, static_cast<int>(x.cols()) / channels, from, to);
    else
      sum_pool(p, from, to);
  }
  if (kind != LayerKind::kAvgPool && kind != LayerKind::kGap) return;
  if (!on_grid_) {
    y *= 1.0f / static_cast<float>(p.taps());
    return;
  }
  const double in_scale = std::ldexp(1.0, -node.in_exp), out_scale = std::ldexp(1.0, node.out_exp);
  const double gain = std::ldexp(node.pool_mult, -node.pool_k);
  for (Eigen::Index i = 0; i < y.size(); ++i) {
    const double v = std::floor((double{y.data()[i]} * in_scale + node.pool_offset) * gain);
    y.data()[i] =
        static_cast<float>(std::clamp<double>(v, node.clip_lo(), node.clip_hi()) * out_scale);
  }
}

QatMatrix& QatNet::delta_of(std::uint16_t tensor, Eigen::Index rows) {
  QatMatrix& d = delta_[tensor];
  if (!has_delta_[tensor]) {
    d.setZero(rows, static_cast<Eigen::Index>(compiler::count_of(arch_.tensor(tensor))));
    has_delta_[tensor] = true;
  }
  return d;
}

void QatNet::mask(const QatNode& node, const QatMatrix& y, QatMatrix& delta) const {
  if (!on_grid_) {
    if (node.relu) delta = (y.array() > 0.0f).select(delta, 0.0f);
    return;
  }
  // Clipped values do not move.
  const float lo = std::ldexp(static_cast<float>(node.clip_lo()), node.out_exp);
  const float hi = std::ldexp(static_cast<float>(node.clip_hi()), node.out_exp);
  delta = (y.array() > lo && y.array() < hi).select(delta, 0.0f);
}

void QatNet::backward(const QatMatrix& x, const QatMatrix& output_gradient, bool want_input) {
  std::fill(has_delta_.begin(), has_delta_.end(), false);
  delta_.back() = output_gradient;
  has_delta_.back() = true;
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    QatNode& node = nodes_[n];
    const std::uint16_t in0 = node.arch.in0;
    QatMatrix& delta = delta_of(static_cast<std::uint16_t>(n + 1), x.rows());
    if ((node.arch.is_compute() || node.arch.kind == LayerKind::kAdd) && n + 1 < nodes_.size())
      mask(node, act_[n + 1], delta);
    if (node.arch.kind == LayerKind::kAdd) {
      for (const auto t : {in0, node.arch.in1})
        if (t > 0 || want_input) delta_of(t, x.rows()) += delta;
    } else if (node.arch.is_compute()) {
      const bool wanted = in0 > 0 || want_input;
      backward_compute(node, in0 == 0 ? x : act_[in0], delta,
                       wanted ? &delta_of(in0, x.rows()) : nullptr);
    } else if (in0 > 0 || want_input) {
      backward_other(node, delta);
    }
  }
}

void QatNet::backward_compute(QatNode& node, const QatMatrix& x, QatMatrix& delta, QatMatrix* dx) {
  const Plane& p = node.plane;
  const Eigen::Index out = node.outputs(), k = node.wq.rows();
  Map d = rows_of(delta, out);
  if (node.bn) batch_norm_back(node, d);
  node.b.gradient.row(0) = d.colwise().sum();
  if (depthwise_kernel(node.arch)) {
    node.w.gradient.setZero();
    for (Eigen::Index s = 0; s < x.rows(); ++s)
      depthwise_back(p, x.row(s).data(), node.wq.data(), delta.row(s).data(),
                     node.w.gradient.data(), dx != nullptr ? dx->row(s).data() : nullptr);
    return;
  }
  if (node.arch.kind == LayerKind::kLinear || is_plain(p)) {
    node.w.gradient.noalias() = rows_of(x, k).transpose() * d;
    if (dx != nullptr) rows_of(*dx, k).noalias() += d * node.wq.transpose();
    return;
  }
  node.w.gradient.setZero();
  const int n = p.c / p.g.groups;
  const Eigen::Index per = out / p.g.groups, at = p.positions();
  each_unfolded(node, x, [&](Eigen::Index s, Eigen::Index count, int g) {
    const auto dg = d.block(s * at, g * per, count * at, per);
    node.w.gradient.middleCols(g * per, per).noalias() += cols_.transpose() * dg;
    if (dx == nullptr) return;
    dcols_.resize(count * at, k);
    dcols_.noalias() = dg * node.wq.middleCols(g * per, per).transpose();
    for (Eigen::Index i = 0; i < count; ++i)
      col2im(p, dcols_.data() + i * at * k, g * n, n, dx->row(s + i).data());
  });
}

void QatNet::backward_other(QatNode& node, const QatMatrix& delta) {
  const Plane& p = node.plane;
  QatMatrix& dx = delta_of(node.arch.in0, delta.rows());
  const auto channels = static_cast<int>(node.arch.in_shape[0]);
  for (Eigen::Index s = 0; s < delta.rows(); ++s) {
    const float* d = delta.row(s).data();
    float* to = dx.row(s).data();
    if (node.arch.kind == LayerKind::kMaxPool)
      max_pool_back(p, d, node.which.data() + s * delta.cols(), to);
    else if (node.arch.kind == LayerKind::kResize)
      resize_back(p, d, to);
    else if (node.arch.kind == LayerKind::kFlatten)
      flatten_back(channels, static_cast<int>(dx.cols()) / channels, d, to);
    else
      sum_pool_back(p, d, 1.0f / static_cast<float>(p.taps()), to);
  }
}

void QatNet::batch_norm(QatNode& node, Map y, bool training) {
  QatRow mean = node.mean, var = node.var;
  if (training) {
    mean = y.colwise().mean();
    node.xhat = y.rowwise() - mean;
    var = node.xhat.array().square().colwise().mean();
    node.mean = kBnKeep * node.mean + (1 - kBnKeep) * mean;
    node.var = kBnKeep * node.var + (1 - kBnKeep) * var;
  } else {
    node.xhat = y.rowwise() - mean;
  }
  node.inv_std = (var.array() + kQatBnEps).sqrt().inverse();
  node.xhat.array().rowwise() *= node.inv_std.array();
  y = (node.xhat.array().rowwise() * node.gamma.value.row(0).array()).rowwise() +
      node.beta.value.row(0).array();
}

void QatNet::batch_norm_back(QatNode& node, Map delta) {
  const auto n = static_cast<float>(delta.rows());
  node.beta.gradient.row(0) = delta.colwise().sum();
  node.gamma.gradient.row(0) = (delta.array() * node.xhat.array()).colwise().sum();
  const QatRow mean = node.beta.gradient.row(0) / n, slope = node.gamma.gradient.row(0) / n;
  const QatRow gain = node.gamma.value.row(0).array() * node.inv_std.array();
  delta =
      ((delta.rowwise() - mean).array() - node.xhat.array().rowwise() * slope.array()).rowwise() *
      gain.array();
}

void QatNet::update(float rate, float momentum, float decay) {
  const auto step = [&](QatParam& p, bool decays) {
    if (decays)
      p.velocity = momentum * p.velocity - rate * (p.gradient + decay * p.value);
    else
      p.velocity = momentum * p.velocity - rate * p.gradient;
    p.value += p.velocity;
  };
  for (QatNode& node : nodes_) {
    if (!node.arch.is_compute()) continue;
    step(node.w, true);
    if (node.bn) {
      step(node.gamma, false);
      step(node.beta, false);
    } else {
      step(node.b, false);
    }
    if (!on_grid_) continue;
    for (int o = 0; o < node.outputs(); ++o) {
      const float limit = std::ldexp(kQatWeightLimit, node.w_exp[static_cast<std::size_t>(o)]);
      node.w.value.col(o) = node.w.value.col(o).cwiseMin(limit).cwiseMax(-limit);
    }
  }
}

}  // namespace odt::worker

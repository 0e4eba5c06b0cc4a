// From float to the integer grid, and from there to layers of a model.
#define EIGEN_DONT_PARALLELIZE
#include <absl/strings/str_cat.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "worker/qat_net.h"

namespace odt::worker {

using compiler::LayerKind;

namespace {

// Outputs of a layer differ by at most this many shifts: gradients on the board are not aligned
// across outputs, which was measured to be harmless up to here.
constexpr int kMaxSpread = 3;

// Smallest e with max_abs <= limit * 2^e.
int scale_exp(float max_abs, float limit) {
  int e = -20;
  while (e < 20 && max_abs > std::ldexp(limit, e)) ++e;
  return e;
}

bool keeps_scale(LayerKind kind) {
  return kind == LayerKind::kFlatten || kind == LayerKind::kMaxPool || kind == LayerKind::kResize;
}

float quantile(const QatMatrix& m) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(m.size()));
  for (Eigen::Index i = 0; i < m.size(); ++i) values.push_back(std::abs(m.data()[i]));
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * 0.999);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void QatNet::fold(QatNode& node) {
  if (!node.bn) return;
  const QatRow gain =
      node.gamma.value.row(0).array() * (node.var.array() + kQatBnEps).sqrt().inverse();
  node.w.value.array().rowwise() *= gain.array();
  node.b.value.row(0) = node.beta.value.row(0).array() - node.mean.array() * gain.array();
  node.w.velocity.setZero();
  node.b.velocity.setZero();
  node.bn = false;
}

void QatNet::start_grid(const QatMatrix& x) {
  for (QatNode& node : nodes_) fold(node);
  forward(x, false);
  std::size_t last = nodes_.size() - 1;  // that has a scale of its own
  while (last > 0 && keeps_scale(nodes_[last].arch.kind)) --last;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    QatNode& node = nodes_[n];
    const auto exp_of = [this](std::uint16_t t) {
      return t == 0 ? kQatInputExp : nodes_[t - 1u].out_exp;
    };
    node.in_exp = exp_of(node.arch.in0);
    if (node.arch.in1 != compiler::kNoTensor) node.in1_exp = exp_of(node.arch.in1);
    scale(node, act_[n + 1], n == last);
  }
  on_grid_ = true;
}

void QatNet::scale(QatNode& node, const QatMatrix& y, bool last) {
  const LayerKind kind = node.arch.kind;
  node.out_exp = node.in_exp;
  if (keeps_scale(kind)) return;
  const int wanted = last && options_.fixed_output
                         ? options_.output_exp
                         : scale_exp(quantile(y), static_cast<float>(node.clip_hi()));
  if (kind == LayerKind::kAdd) {
    const int top = std::max(node.in_exp, node.in1_exp), low = std::min(node.in_exp, node.in1_exp);
    node.out_exp = std::clamp(wanted, top - 10, low + 20);
    return;
  }
  if (!node.arch.is_compute()) {
    // sum * 2^in_exp / area = y * 2^out_exp. Factors of float32 files are exact below 2^24.
    const int area = node.plane.taps();
    const int most = std::clamp(16777216 / (area * 256), 1, 255);
    node.out_exp = std::clamp(wanted, node.in_exp - 8, node.in_exp + 8);
    const double gain = std::ldexp(1.0 / area, node.in_exp - node.out_exp);
    node.pool_k = 0;
    while (node.pool_k < 31 && std::nearbyint(std::ldexp(gain, node.pool_k + 1)) <= most)
      ++node.pool_k;
    node.pool_mult =
        std::clamp(static_cast<int>(std::nearbyint(std::ldexp(gain, node.pool_k))), 1, most);
    while (node.pool_k > 0 && node.pool_mult % 2 == 0) node.pool_mult /= 2, --node.pool_k;
    node.pool_offset =
        static_cast<int>(std::nearbyint(std::ldexp(0.5, node.pool_k) / node.pool_mult));
    if (node.pool_k == 0) node.pool_offset = 0;
    return;
  }
  int top = -20;
  for (int o = 0; o < node.outputs(); ++o) {
    int& e = node.w_exp[static_cast<std::size_t>(o)];
    e = scale_exp(node.w.value.col(o).cwiseAbs().maxCoeff(), kQatWeightLimit);
    top = std::max(top, e);
  }
  for (int& e : node.w_exp) e = options_.per_channel ? std::max(e, top - kMaxSpread) : top;
  node.out_exp = std::clamp(wanted, node.in_exp + top, node.in_exp + top - kMaxSpread + 31);
}

namespace {

void export_weights(const QatNode& node, compiler::Layer& l) {
  const int out = node.outputs();
  const auto in = static_cast<Eigen::Index>(node.wq.rows());
  const auto value = [&](Eigen::Index i, int o) {
    return static_cast<std::int8_t>(
        std::ldexp(node.wq(i, o), -node.w_exp[static_cast<std::size_t>(o)]));
  };
  l.weights.resize(static_cast<std::size_t>(in * out));
  if (l.kind == LayerKind::kLinear) {
    l.weight_shape = {static_cast<std::uint32_t>(in), static_cast<std::uint32_t>(out)};
    for (Eigen::Index i = 0; i < in; ++i)
      for (int o = 0; o < out; ++o) l.weights[static_cast<std::size_t>(i * out + o)] = value(i, o);
    return;
  }
  const auto& g = node.arch.geometry;
  const Eigen::Index taps = node.plane.taps(), channels = in / taps;
  l.weight_shape = {static_cast<std::uint32_t>(out), static_cast<std::uint32_t>(channels), g.k_h,
                    g.k_w};
  for (int o = 0; o < out; ++o)
    for (Eigen::Index t = 0; t < taps; ++t)
      for (Eigen::Index c = 0; c < channels; ++c)
        l.weights[static_cast<std::size_t>((o * channels + c) * taps + t)] =
            value(t * channels + c, o);
}

// Reports want one for the layer: the middle.
std::int8_t middle(const std::vector<int>& exponents) {
  double sum = 0;
  for (const int e : exponents) sum += e;
  return static_cast<std::int8_t>(std::lround(sum / static_cast<double>(exponents.size())));
}

void export_offsets(const QatNode& node, compiler::Layer& l) {
  for (int o = 0; o < node.outputs(); ++o) {
    const int k = node.shift(o);
    const double offset =
        std::ldexp(double{node.bq[o]}, -(node.in_exp + node.w_exp[static_cast<std::size_t>(o)]));
    const double half = k > 0 ? std::ldexp(1.0, k - 1) : 0;  // floor becomes round half up
    l.offset.push_back(static_cast<std::int32_t>(
        std::nearbyint(std::clamp(offset + half, -16777216.0, 16777216.0))));
    l.k.push_back(static_cast<std::uint8_t>(k));
  }
  l.mult.assign(l.k.size(), 1);
}

const char* op_name(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConv:
      return "Conv";
    case LayerKind::kMaxPool:
      return "MaxPool";
    case LayerKind::kAvgPool:
      return "AveragePool";
    case LayerKind::kGap:
      return "GlobalAveragePool";
    case LayerKind::kAdd:
      return "Add";
    case LayerKind::kResize:
      return "Resize";
    case LayerKind::kFlatten:
      return "Flatten";
    default:
      return "MatMul";
  }
}

}  // namespace

std::vector<compiler::Layer> QatNet::exported() {
  std::vector<compiler::Layer> layers;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    QatNode& node = nodes_[n];
    compiler::Layer l;
    l.kind = node.arch.kind;
    l.in0 = node.arch.in0;
    l.name = l.kind == LayerKind::kFlatten && l.in0 > 0
                 ? compiler::flatten_name(layers[l.in0 - 1u])
                 : absl::StrCat("layer", n, "/", op_name(l.kind));
    l.in1 = node.arch.in1;
    l.relu = node.relu;
    l.clip_lo = node.clip_lo();
    l.clip_hi = node.clip_hi();
    l.in_shape = node.arch.in_shape;
    l.out_shape = node.arch.out_shape;
    if (l.kind != LayerKind::kResize) l.conv = node.arch.geometry;
    l.e_out = static_cast<std::int8_t>(node.out_exp);
    if (node.arch.is_compute()) {
      quantise(node);
      l.e_w = middle(node.w_exp);
      export_weights(node, l);
      export_offsets(node, l);
    } else if (l.kind == LayerKind::kAdd) {
      for (const int e : {node.in_exp, node.in1_exp})
        l.offset.push_back(std::int32_t{1} << (20 + e - node.out_exp));
    } else if (l.kind == LayerKind::kAvgPool || l.kind == LayerKind::kGap) {
      l.offset = {node.pool_offset};
      l.mult = {static_cast<std::uint8_t>(node.pool_mult)};
      l.k = {static_cast<std::uint8_t>(node.pool_k)};
    }
    layers.push_back(std::move(l));
  }
  return layers;
}

}  // namespace odt::worker

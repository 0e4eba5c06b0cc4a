#include "float_net.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "odt/odt.h"

namespace odt::learn {
namespace {

// [count * positions, kernel * kernel]: the inputs of every output position.
void unfold(const FloatLayer& l, const Matrix& x, Matrix& cols) {
  const int out = l.out_side(), k = l.kernel;
  cols.resize(x.rows() * out * out, k * k);
  for (Eigen::Index n = 0; n < x.rows(); ++n)
    for (int y = 0; y < out; ++y)
      for (int c = 0; c < out; ++c) {
        float* to = cols.row((n * out + y) * out + c).data();
        for (int i = 0; i < k; ++i)
          std::copy_n(x.row(n).data() + (y + i) * l.side + c, k, to + i * k);
      }
}

void initialise(FloatLayer& l, int in, int out, std::uint32_t seed) {
  std::mt19937 random(seed * 7919 + static_cast<std::uint32_t>(in * 31 + out));
  const float limit = std::sqrt((l.relu ? 6.0f : 3.0f) / static_cast<float>(in));
  l.w.resize(in, out);
  for (Eigen::Index i = 0; i < l.w.size(); ++i)
    l.w.data()[i] = (static_cast<float>(random() >> 8) / 8388608.0f - 1.0f) * limit;
  l.b = Row::Zero(out);
}

}  // namespace

void FloatNet::add_conv(int side, int kernel, int filters, std::uint32_t seed) {
  FloatLayer l;
  l.conv = l.relu = true;
  l.side = side;
  l.kernel = kernel;
  initialise(l, kernel * kernel, filters, seed);
  layers.push_back(std::move(l));
}

void FloatNet::add_dense(int in, int out, bool relu, std::uint32_t seed) {
  FloatLayer l;
  l.relu = relu;
  initialise(l, in, out, seed);
  layers.push_back(std::move(l));
}

const Matrix& FloatNet::forward(const Matrix& x) {
  act_.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const FloatLayer& l = layers[i];
    Matrix& y = act_[i];
    if (l.conv) {
      unfold(l, x, cols_);
      const Eigen::Index positions = l.out_side() * l.out_side(), filters = l.w.cols();
      const Matrix flat = (cols_ * l.w).rowwise() + l.b;
      y.resize(x.rows(), filters * positions);
      for (Eigen::Index n = 0; n < x.rows(); ++n)
        Eigen::Map<Matrix>(y.row(n).data(), filters, positions) =
            flat.middleRows(n * positions, positions).transpose();
    } else {
      y.noalias() = (i == 0 ? x : act_[i - 1]) * l.w;
      y.rowwise() += l.b;
    }
    if (l.relu) y = y.cwiseMax(0.0f);
  }
  return act_.back();
}

double FloatNet::accuracy(const Matrix& x, const std::vector<std::int8_t>& labels) {
  const Matrix& z = forward(x);
  int correct = 0;
  for (Eigen::Index n = 0; n < z.rows(); ++n) {
    Eigen::Index best;
    z.row(n).maxCoeff(&best);
    if (best == labels[static_cast<std::size_t>(n)]) ++correct;
  }
  return static_cast<double>(correct) / static_cast<double>(z.rows());
}

void FloatNet::set_targets(const Matrix& x, const std::vector<std::int8_t>& labels) {
  const Matrix& z = forward(x);
  Row own = Row::Zero(z.cols()), other = own, n = own;
  for (Eigen::Index r = 0; r < z.rows(); ++r) {
    const Eigen::Index label = labels[static_cast<std::size_t>(r)];
    n[label] += 1;
    other += z.row(r);
    other[label] -= z(r, label);
    own[label] += z(r, label);
  }
  target_correct = own.cwiseQuotient(n.cwiseMax(1.0f));
  target_wrong = other.cwiseQuotient((static_cast<float>(z.rows()) - n.array()).matrix());
}

// act_.back() becomes the gradient of the batch's mean loss.
void FloatNet::loss_gradient(const std::vector<std::int8_t>& labels, Loss loss) {
  Matrix& z = act_.back();
  const auto n = static_cast<float>(z.rows());
  for (Eigen::Index r = 0; r < z.rows(); ++r) {
    const Eigen::Index label = labels[static_cast<std::size_t>(r)];
    if (loss == Loss::kMse) {
      for (Eigen::Index c = 0; c < z.cols(); ++c)
        z(r, c) = (z(r, c) - (c == label ? target_correct[c] : target_wrong[c])) / n;
      continue;
    }
    z.row(r) = (z.row(r).array() - z.row(r).maxCoeff()).exp();
    z.row(r) /= z.row(r).sum();
    z(r, label) -= 1;
    z.row(r) /= n;
  }
}

void FloatNet::step(const Matrix& x, const std::vector<std::int8_t>& labels, const SgdOptions& o,
                    float rate) {
  forward(x);
  loss_gradient(labels, o.loss);
  delta_ = act_.back();
  gw_.resize(layers.size());
  gb_.resize(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    FloatLayer& l = layers[i];
    if (l.conv) {
      const Eigen::Index positions = l.out_side() * l.out_side(), filters = l.w.cols();
      below_.resize(x.rows() * positions, filters);
      for (Eigen::Index n = 0; n < x.rows(); ++n)
        below_.middleRows(n * positions, positions) =
            Eigen::Map<const Matrix>(delta_.row(n).data(), filters, positions).transpose();
      gw_[i].noalias() = cols_.transpose() * below_;
      gb_[i] = below_.colwise().sum();
    } else {
      gw_[i].noalias() = (i == 0 ? x : act_[i - 1]).transpose() * delta_;
      gb_[i] = delta_.colwise().sum();
      if (i > 0) {
        below_.noalias() = delta_ * l.w.transpose();
        delta_ = (act_[i - 1].array() > 0.0f).select(below_, 0.0f);
      }
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    FloatLayer& l = layers[i];
    if (o.momentum == 0 && o.decay == 0) {
      l.w -= rate * gw_[i];
      l.b -= rate * gb_[i];
      continue;
    }
    vw_[i] = o.momentum * vw_[i] - rate * (gw_[i] + o.decay * l.w);
    vb_[i] = o.momentum * vb_[i] - rate * gb_[i];
    l.w += vw_[i];
    l.b += vb_[i];
  }
}

void FloatNet::train(const Matrix& x, const std::vector<std::int8_t>& labels, const SgdOptions& o) {
  const auto count = static_cast<std::uint32_t>(x.rows());
  vw_.resize(layers.size());
  vb_.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    vw_[i] = Matrix::Zero(layers[i].w.rows(), layers[i].w.cols());
    vb_[i] = Row::Zero(layers[i].b.size());
  }
  std::vector<std::uint16_t> order(count);
  Matrix part;
  std::vector<std::int8_t> part_labels;
  for (int e = 0; e < o.epochs; ++e) {
    odt_order(o.order_seed, static_cast<std::uint32_t>(e), count, order.data());
    const float rate = o.rate * o.by_thirds[static_cast<std::size_t>(3 * e / o.epochs)];
    for (std::uint32_t at = 0; at < count; at += static_cast<std::uint32_t>(o.batch)) {
      const auto n = std::min(static_cast<std::uint32_t>(o.batch), count - at);
      part.resize(n, x.cols());
      part_labels.resize(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        part.row(i) = x.row(order[at + i]);
        part_labels[i] = labels[order[at + i]];
      }
      step(part, part_labels, o, rate);
    }
  }
}

Matrix to_matrix(const Set& set) {
  Matrix x(set.count, set.len);
  for (std::size_t i = 0; i < set.x.size(); ++i)
    x.data()[i] = static_cast<float>(set.x[i]) / 128.0f;
  return x;
}

}  // namespace odt::learn

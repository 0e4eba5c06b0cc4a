#include "worker/dense_qat.h"

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "data/sampling.h"

namespace odt::worker {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::RowVectorXf;

constexpr int kBatch = 64;
// Weight decay keeps pixels that are always dark from holding on to random weights: without it an
// inverted sensor starts from noise and adapts 10 points worse.
constexpr float kMomentum = 0.9f, kRate = 0.05f, kDecay = 1e-3f;
constexpr float kWeightLimit = 64;  // of 127: one bit of headroom for training on the board
constexpr int kInputExp = -7;       // int8 input as [-1, 1)
constexpr double kPi = 3.14159265358979323846;

// Smallest e with max_abs <= limit * 2^e.
int scale_exp(float max_abs, float limit) {
  int e = -20;
  while (e < 20 && max_abs > std::ldexp(limit, e)) ++e;
  return e;
}

// One dense layer. Values are real numbers; on the integer grid all scales are powers of two, so
// that float32 holds the integers exactly.
struct Dense {
  Matrix w, vw, gw, wq;
  Row b, vb, gb, bq;
  bool relu = false;
  int in_exp = 0, w_exp = 0, out_exp = 0;

  int shift() const { return out_exp - in_exp - w_exp; }
};

class Trainer {
 public:
  Trainer(const QatSamples& train, const QatOptions& options) : train_(train), options_(options) {
    data::Xorshift32 random(options.seed * 2654435761u + 97);
    std::vector<std::uint32_t> sizes = {train.len};
    sizes.insert(sizes.end(), options.hidden.begin(), options.hidden.end());
    sizes.push_back(options.n_classes);
    for (std::size_t n = 0; n + 1 < sizes.size(); ++n)
      layers_.push_back(make_layer(sizes[n], sizes[n + 1], n + 2 < sizes.size(), random));
  }

  QatResult run(const std::function<void(std::uint32_t, double)>& on_epoch) {
    const std::uint32_t float_epochs = options_.epochs / 2;
    const std::uint32_t steps = (train_.count + kBatch - 1) / kBatch;
    for (std::uint32_t e = 0; e < options_.epochs; ++e) {
      if (e == float_epochs) start_grid();
      double loss = 0;
      const auto order = data::shuffled(train_.count, options_.seed + 1000003u * (e + 1));
      for (std::uint32_t s = 0; s < steps; ++s) {
        const double t = (double{1} * e * steps + s) / (double{1} * options_.epochs * steps);
        loss += step(order, s * kBatch, kRate * static_cast<float>(0.5 * (1 + std::cos(kPi * t))));
      }
      on_epoch(e, loss / train_.count);
    }
    if (!on_grid_) start_grid();
    return exported();
  }

 private:
  static Dense make_layer(std::uint32_t in, std::uint32_t out, bool relu,
                          data::Xorshift32& random) {
    Dense l;
    l.w.resize(in, out);
    const float limit = std::sqrt((relu ? 6.0f : 3.0f) / static_cast<float>(in));
    for (Eigen::Index i = 0; i < l.w.size(); ++i)
      l.w.data()[i] = (static_cast<float>(random.next() >> 8) / 8388608.0f - 1.0f) * limit;
    l.vw = Matrix::Zero(in, out);
    l.b = l.vb = Row::Zero(out);
    l.relu = relu;
    return l;
  }

  void load(const std::vector<std::uint32_t>& order, std::uint32_t first, int n) {
    x_.resize(n, train_.len);
    labels_.resize(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) {
      const std::size_t row = order[first + static_cast<std::uint32_t>(r)];
      const std::int8_t* v = train_.values + row * train_.len;
      for (std::uint32_t i = 0; i < train_.len; ++i)
        x_(r, i) = static_cast<float>(v[i]) * std::ldexp(1.0f, kInputExp);
      labels_[static_cast<std::size_t>(r)] = train_.labels[row];
    }
  }

  void quantise(Dense& l) const {
    if (!on_grid_) {
      l.wq = l.w;
      l.bq = l.b;
      return;
    }
    const float ws = std::ldexp(1.0f, l.w_exp), as = std::ldexp(1.0f, l.in_exp + l.w_exp);
    l.wq = ((l.w / ws).array().round().max(-kWeightLimit).min(kWeightLimit) * ws).matrix();
    l.bq = ((l.b / as).array().round() * as).matrix();
  }

  // Activations of the batch in x_, one matrix a layer.
  void forward() {
    act_.resize(layers_.size());
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      Dense& l = layers_[n];
      quantise(l);
      Matrix& y = act_[n];
      y.noalias() = (n == 0 ? x_ : act_[n - 1]) * l.wq;
      y.rowwise() += l.bq;
      if (on_grid_) {
        const float s = std::ldexp(1.0f, l.out_exp);
        const float lo = l.relu ? 0 : -128, hi = l.relu ? 255 : 127;
        y = ((y / s).array() + 0.5f).floor().max(lo).min(hi) * s;
      } else if (l.relu) {
        y = y.array().max(0.0f);
      }
    }
  }

  // Replaces logits by the gradient of the mean cross-entropy; the summed loss.
  double loss_gradient(Matrix& z) const {
    double loss = 0;
    const auto n = static_cast<float>(z.rows());
    for (Eigen::Index r = 0; r < z.rows(); ++r) {
      const float top = z.row(r).maxCoeff();
      float sum = 0;
      for (Eigen::Index c = 0; c < z.cols(); ++c) sum += z(r, c) = std::exp(z(r, c) - top);
      const Eigen::Index label = labels_[static_cast<std::size_t>(r)];
      loss -= std::log(std::max(z(r, label) / sum, 1e-30f));
      for (Eigen::Index c = 0; c < z.cols(); ++c)
        z(r, c) = (z(r, c) / sum - (c == label ? 1.0f : 0.0f)) / n;
    }
    return loss;
  }

  double step(const std::vector<std::uint32_t>& order, std::uint32_t first, float rate) {
    load(order, first, static_cast<int>(std::min<std::uint32_t>(kBatch, train_.count - first)));
    forward();
    Matrix delta = act_.back();
    const double loss = loss_gradient(delta);
    for (std::size_t n = layers_.size(); n-- > 0;) {
      Dense& l = layers_[n];
      l.gw.noalias() = (n == 0 ? x_ : act_[n - 1]).transpose() * delta;
      l.gb = delta.colwise().sum();
      if (n > 0) {
        const Matrix& y = act_[n - 1];
        const float hi = on_grid_ ? std::ldexp(255.0f, layers_[n - 1].out_exp)
                                  : std::numeric_limits<float>::max();
        Matrix below = delta * l.wq.transpose();
        delta = (y.array() > 0.0f && y.array() < hi).select(below, 0.0f);
      }
      l.vw = kMomentum * l.vw - rate * (l.gw + kDecay * l.w);
      l.vb = kMomentum * l.vb - rate * l.gb;
      l.w += l.vw;
      l.b += l.vb;
      if (on_grid_) {
        const float limit = std::ldexp(kWeightLimit, l.w_exp);
        l.w = l.w.array().max(-limit).min(limit);
      }
    }
    return loss;
  }

  // Fixes the scales: weights by their largest value, activations by the 99.9 % quantile of the
  // first samples.
  void start_grid() {
    std::vector<std::uint32_t> all(train_.count);
    for (std::uint32_t i = 0; i < train_.count; ++i) all[i] = i;
    load(all, 0, static_cast<int>(std::min<std::uint32_t>(train_.count, 2000)));
    forward();
    int in_exp = kInputExp;
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      Dense& l = layers_[n];
      std::vector<float> values;
      for (Eigen::Index i = 0; i < act_[n].size(); ++i)
        values.push_back(std::abs(act_[n].data()[i]));
      const auto at = values.begin() +
                      static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * 0.999);
      std::nth_element(values.begin(), at, values.end());
      l.in_exp = in_exp;
      l.w_exp = scale_exp(l.w.cwiseAbs().maxCoeff(), kWeightLimit);
      l.out_exp = scale_exp(*at, l.relu ? 255.0f : 127.0f);
      l.out_exp = std::clamp(l.out_exp, in_exp + l.w_exp, in_exp + l.w_exp + 31);
      in_exp = l.out_exp;
    }
    on_grid_ = true;
  }

  QatResult exported() {
    QatResult result;
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      Dense& d = layers_[n];
      quantise(d);
      compiler::Layer l;
      l.kind = compiler::LayerKind::kLinear;
      l.name = "layer" + std::to_string(n) + "/MatMul";
      l.relu = d.relu;
      l.clip_lo = d.relu ? 0 : -128;
      l.clip_hi = d.relu ? 255 : 127;
      const auto in = static_cast<std::uint32_t>(d.w.rows());
      const auto out = static_cast<std::uint32_t>(d.w.cols());
      l.in_shape = {in};
      l.out_shape = {out};
      l.weight_shape = {in, out};
      for (Eigen::Index i = 0; i < d.wq.size(); ++i)
        l.weights.push_back(static_cast<std::int8_t>(std::ldexp(d.wq.data()[i], -d.w_exp)));
      const int k = d.shift();
      for (Eigen::Index o = 0; o < d.bq.size(); ++o) {
        const double offset = std::ldexp(double{d.bq[o]}, -(d.in_exp + d.w_exp));
        const double half = k > 0 ? std::ldexp(1.0, k - 1) : 0;  // floor becomes round half up
        // float32 in the ONNX file holds integers up to 2^24.
        l.offset.push_back(static_cast<std::int32_t>(
            std::nearbyint(std::clamp(offset + half, -16777216.0, 16777216.0))));
      }
      l.mult.assign(out, 1);
      l.k.assign(out, static_cast<std::uint8_t>(k));
      result.layers.push_back(std::move(l));
    }
    const double scale = std::ldexp(1.4426950408889634 * 256, layers_.back().out_exp);
    result.ce_scale = static_cast<std::uint16_t>(std::clamp(std::nearbyint(scale), 1.0, 65535.0));
    return result;
  }

  const QatSamples train_;
  const QatOptions options_;
  std::vector<Dense> layers_;
  std::vector<Matrix> act_;
  Matrix x_;
  std::vector<std::uint8_t> labels_;
  bool on_grid_ = false;
};

}  // namespace

QatResult train_dense_qat(const QatSamples& train, const QatOptions& options,
                          const std::function<void(std::uint32_t, double)>& on_epoch) {
  return Trainer(train, options).run(on_epoch);
}

}  // namespace odt::worker

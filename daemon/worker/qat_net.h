#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "compiler/ir.h"
#include "data/sampling.h"
#include "worker/qat_arch.h"
#include "worker/qat_kernels.h"

namespace odt::worker {

using QatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using QatRow = Eigen::RowVectorXf;

constexpr int kQatInputExp = -7;       // int8 input as [-1, 1)
constexpr float kQatWeightLimit = 64;  // of 127: one bit of headroom for training on the board
constexpr float kQatBnEps = 1e-5f;

// A value that is trained, its velocity and its gradient.
struct QatParam {
  QatMatrix value, velocity, gradient;
  void zero(Eigen::Index rows, Eigen::Index columns);
};

// A layer in training. Values are real numbers; on the integer grid all scales are powers of two,
// so that float32 holds the integers exactly (sums below 2^24).
struct QatNode {
  ArchLayer arch;
  Plane plane;                 // conv, pools, resize
  QatParam w, b, gamma, beta;  // w: [taps * channels of a group][outputs], dense [in][out]
  QatMatrix wq;                // as the forward pass has them
  QatRow bq;
  bool bn = false;  // until it is folded
  QatRow mean, var, inv_std;
  QatMatrix xhat;
  bool relu = false, is_unsigned = false;
  int in_exp = 0, in1_exp = 0, out_exp = 0;
  std::vector<int> w_exp;                          // per output
  int pool_mult = 1, pool_k = 0, pool_offset = 0;  // averages on the grid
  std::vector<std::uint16_t> which;                // maxima

  int outputs() const { return static_cast<int>(w.value.cols()); }
  int shift(int o) const { return out_exp - in_exp - w_exp[static_cast<std::size_t>(o)]; }
  std::int32_t clip_lo() const { return is_unsigned ? 0 : -128; }
  std::int32_t clip_hi() const { return is_unsigned ? 255 : 127; }
};

// Forward and backward passes of an architecture, in float or on the integer grid with
// straight-through gradients. One thread; equal inputs give equal bits. Tensors are
// [samples][values], planes in the order [H,W,C].
class QatNet {
 public:
  struct Options {
    bool per_channel = true;  // power-of-two scales of weights per output, else per layer
    int output_exp = 0;       // where fixed_output
    bool fixed_output = false;
  };
  QatNet(const Arch& arch, std::uint32_t seed, const Options& options);

  // training: batch statistics for batch-norm, kept for backward().
  const QatMatrix& forward(const QatMatrix& x, bool training);
  // Of the last forward(): gradient with respect to the output -> gradients of all parameters;
  // with respect to the input: input_gradient(), where wanted.
  void backward(const QatMatrix& x, const QatMatrix& output_gradient, bool want_input = false);
  const QatMatrix& input_gradient() const { return delta_[0]; }
  void update(float rate, float momentum, float decay);

  // Folds batch-norm into weights, then fixes the scales: weights by their largest value,
  // activations by the 99.9 % quantile over x.
  void start_grid(const QatMatrix& x);
  bool on_grid() const { return on_grid_; }

  const Arch& arch() const { return arch_; }
  std::vector<QatNode>& nodes() { return nodes_; }
  std::vector<compiler::Layer> exported();

 private:
  void init(QatNode& node, data::Xorshift32& random);
  void quantise(QatNode& node) const;
  // Unfolds the windows of x into cols_, a chunk of samples and a group at a time: f(first, count,
  // group).
  template <typename F>
  void each_unfolded(const QatNode& node, const QatMatrix& x, F&& f);
  void forward_compute(QatNode& node, const QatMatrix& x, QatMatrix& y, bool training);
  void forward_other(QatNode& node, const QatMatrix& x, QatMatrix& y);
  void backward_compute(QatNode& node, const QatMatrix& x, QatMatrix& delta, QatMatrix* dx);
  void backward_other(QatNode& node, const QatMatrix& delta);
  void batch_norm(QatNode& node, Eigen::Map<QatMatrix> y, bool training);
  void batch_norm_back(QatNode& node, Eigen::Map<QatMatrix> delta);
  void mask(const QatNode& node, const QatMatrix& y, QatMatrix& delta) const;
  void fold(QatNode& node);
  void scale(QatNode& node, const QatMatrix& y, bool last);
  QatMatrix& delta_of(std::uint16_t tensor, Eigen::Index rows);

  Arch arch_;
  Options options_;
  std::vector<QatNode> nodes_;
  std::vector<QatMatrix> act_, delta_;  // by tensor; act_[0] is not used
  std::vector<bool> has_delta_;
  QatMatrix cols_, dcols_;
  bool on_grid_ = false;
};

}  // namespace odt::worker

// fp32 networks and plain SGD: what the integer engine is compared with.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <array>
#include <cstdint>
#include <vector>

#include "data.h"

namespace odt::learn {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::RowVectorXf;

struct FloatLayer {
  bool conv = false;  // of the network input, one channel, stride 1, no padding
  bool relu = false;
  int side = 0, kernel = 0;  // conv: input and kernel are square
  Matrix w;                  // [in, out]; conv [kernel * kernel, filters]
  Row b;
  int out_side() const { return side - kernel + 1; }
  int outputs() const { return static_cast<int>(w.cols()) * (conv ? out_side() * out_side() : 1); }
};

enum class Loss { kCe, kMse };

struct SgdOptions {
  float rate = 0.1f;
  std::array<float, 3> by_thirds = {1, 1, 1};
  int batch = 8, epochs = 10;
  Loss loss = Loss::kCe;
  float momentum = 0, decay = 0;
  std::uint32_t order_seed = 1;
};

class FloatNet {
 public:
  std::vector<FloatLayer> layers;
  // Of the MSE loss, real values: a class's own logit and the others'.
  Row target_correct, target_wrong;

  // He initialisation.
  void add_conv(int side, int kernel, int filters, std::uint32_t seed);
  void add_dense(int in, int out, bool relu, std::uint32_t seed);

  // Logits of [count, len] inputs; activations stay in acts().
  const Matrix& forward(const Matrix& x);
  const std::vector<Matrix>& acts() const { return act_; }
  double accuracy(const Matrix& x, const std::vector<std::int8_t>& labels);
  // Mean logits per class of a data set.
  void set_targets(const Matrix& x, const std::vector<std::int8_t>& labels);

  // In the order of rule 1.8, as the integer engine; gradients are means over the batch.
  void train(const Matrix& x, const std::vector<std::int8_t>& labels, const SgdOptions& options);

 private:
  void step(const Matrix& x, const std::vector<std::int8_t>& labels, const SgdOptions& options,
            float rate);
  void loss_gradient(const std::vector<std::int8_t>& labels, Loss loss);

  std::vector<Matrix> act_;
  Matrix cols_, delta_, below_;
  std::vector<Matrix> gw_, vw_;
  std::vector<Row> gb_, vb_;
};

Matrix to_matrix(const Set& set);

}  // namespace odt::learn

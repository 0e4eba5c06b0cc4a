#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace odt::test {

struct Tensor64 {
  std::vector<std::int64_t> dims;
  std::vector<double> v;
};

// Builds float32 graphs by tensor names. Every node is evaluated as it comes, so that shapes are
// known.
class FloatBuilder {
 public:
  using Dims = std::vector<std::int64_t>;
  FloatBuilder(const Dims& input, std::uint32_t seed);

  std::string node(const std::string& op, const std::vector<std::string>& inputs);
  // An operator that is not evaluated: the shape is its input's.
  std::string raw(const std::string& op, const std::vector<std::string>& inputs);
  void ints(const std::string& key, const Dims& v);      // attributes of the last node, which is
  void integer(const std::string& key, std::int64_t v);  // evaluated again
  void real(const std::string& key, float v);
  void text(const std::string& key, const std::string& v);
  std::string constant(const Dims& dims, const std::vector<float>& v);
  std::string constant_i64(const Dims& v);
  std::string random(const Dims& dims, double scale, double shift = 0);  // normal

  std::string conv(const std::string& x, std::int64_t out, std::int64_t kernel,
                   std::int64_t groups = 1, bool bias = true);
  std::string gemm(const std::string& x, std::int64_t out);
  std::string batch_norm(const std::string& x);

  const Dims& dims(const std::string& tensor) const { return probe_.at(tensor).dims; }
  double normal() { return normal_(random_); }
  int pick(int lo, int hi) {
    return lo + static_cast<int>(random_() % static_cast<unsigned>(hi - lo + 1));
  }
  std::string bytes(const std::string& output);
  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

 private:
  void evaluate_last();
  onnx::ModelProto model_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::map<std::string, Tensor64> probe_;
  int next_ = 0;
};

// The file's nodes in double precision, in whatever order they stand. Softmax and LogSoftmax are
// left out. Aborts on an operator that it does not know.
Tensor64 evaluate64(const onnx::ModelProto& model, const std::vector<float>& input);

}  // namespace odt::test

#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace odt::test {

using Dims = std::vector<std::int64_t>;

struct FloatTensor {
  Dims dims;
  std::vector<float> v;
};

// Builds QAT graphs node by node. Tensor names say nothing on purpose.
class OnnxBuilder {
 public:
  OnnxBuilder(const Dims& input, std::uint32_t seed);

  OnnxBuilder& node(const std::string& op, const std::vector<std::string>& more = {},
                    const std::string& name = "");
  OnnxBuilder& swapped(const std::string& op, const std::string& constant);  // op(constant, x)
  std::string constant(const Dims& dims, const std::vector<float>& v);       // initialiser
  std::string constant_node(const std::vector<float>& scalar);               // Constant node
  std::string constant_i64(const std::vector<std::int64_t>& v);
  std::string identity_of(const std::string& tensor);
  OnnxBuilder& clip(float lo, float hi, bool as_node = false);
  void ints(const std::string& key, const Dims& v);  // attribute of the last node
  void integer(const std::string& key, std::int64_t v);
  void metadata(const std::string& key, const std::string& value);

  // Add Mul Mul Floor Clip with random constants; k in 4..7.
  OnnxBuilder& oss(const Dims& dims, float lo, float hi, float offset_range,
                   bool random_mult = false);
  OnnxBuilder& matmul(std::int64_t in, std::int64_t out);
  OnnxBuilder& gemm(std::int64_t in, std::int64_t out, bool trans_b);
  OnnxBuilder& conv(std::int64_t in, std::int64_t out, std::int64_t kh, std::int64_t kw,
                    std::int64_t groups = 1);
  // Conv or MatMul with its block up to the last Clip.
  OnnxBuilder& conv_relu(std::int64_t in, std::int64_t out, std::int64_t kh, std::int64_t kw,
                         const Dims& pads = {0, 0, 0, 0}, const Dims& strides = {1, 1});
  OnnxBuilder& logits(std::int64_t in, std::int64_t out);
  OnnxBuilder& gap(float offset, float k);  // ReduceSum Round Add Mul Mul Floor Clip, [1,C]
  OnnxBuilder& prequant();                  // u8 -> int8: x - 128

  const std::string& at() const { return at_; }  // the tensor that the next node reads
  OnnxBuilder& go_to(const std::string& tensor);
  void text(const std::string& key, const std::string& v);  // attribute of the last node
  void shuffle();                                           // the order of the nodes
  std::string bytes(const Dims& output);
  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  int random(int lo, int hi);

 private:
  std::string fresh();
  std::vector<float> weights(std::int64_t n);
  onnx::ModelProto model_;
  std::mt19937 random_;
  std::string at_ = "onnx::Add_0";
  int next_ = 100;
};

// The file's nodes one by one in float32: what a runtime computes. Aborts on an operator that it
// does not know.
FloatTensor evaluate(const onnx::ModelProto& model, const std::vector<float>& input);

}  // namespace odt::test

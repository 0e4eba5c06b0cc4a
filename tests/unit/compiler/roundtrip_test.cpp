#include <gtest/gtest.h>

#include "compile_check.h"
#include "compiler/onnx_writer.h"
#include "onnx_fixture.h"
#include "support/full.h"

// Random graphs: the reader against float32, and the writer against the reader.
namespace odt::test {
namespace {

constexpr std::int64_t kC = 4, kH = 6, kW = 4;  // of every tensor between two blocks

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : b_({1, kC, kH, kW}, seed) {
    b_.prequant();
    tensors_ = {b_.at()};
    const int blocks = b_.random(3, 9);
    for (int n = 0; n < blocks; ++n) {
      b_.go_to(pick());
      block(n == 0 ? 0 : b_.random(0, 8));
      tensors_.push_back(b_.at());
    }
    // Everything that nothing reads yet comes together at the end.
    for (std::size_t n = 0; n + 1 < tensors_.size(); ++n) b_.node("Add", {tensors_[n]});
    b_.clip(-128, 127);
  }

  std::string bytes() {
    if (b_.random(0, 2) == 0) {
      conv(false);
      return b_.bytes({1, kC, kH, kW});  // an autoencoder
    }
    if (b_.random(0, 1) == 0) {
      b_.node("Relu").gap(12, 4).logits(kC, 3);
    } else {
      b_.node("Flatten").logits(kC * kH * kW, 3);
    }
    return b_.bytes({1, 3});
  }

 private:
  const std::string& pick() {
    return tensors_[static_cast<std::size_t>(b_.random(0, static_cast<int>(tensors_.size()) - 1))];
  }

  void conv(bool relu, std::int64_t in = kC, std::int64_t groups = 1) {
    b_.conv(in, kC, 3, 3, groups);
    b_.ints("pads", {1, 1, 1, 1});
    b_.oss({1, kC, 1, 1}, -255, 255, 300, b_.random(0, 3) == 0);
    if (relu) b_.node("Relu").clip(0, 255);
  }

  void window(const char* op) {
    b_.node(op);
    b_.ints("kernel_shape", {3, 3});
    b_.ints("pads", {1, 1, 1, 1});
  }

  void block(int kind) {
    if (kind == 0) return conv(true);
    if (kind == 1) return conv(false);
    if (kind == 2) return conv(true, kC, kC);
    if (kind == 3) return window("MaxPool");
    if (kind == 4) {
      window("AveragePool");
      b_.integer("count_include_pad", 1);
      b_.node("Mul", {b_.constant({}, {9})}).node("Round").oss({1, kC, 1, 1}, -128, 127, 10);
    } else if (kind == 5) {
      b_.node("Add", {pick()}).node("Relu").clip(0, 255);
    } else if (kind == 6) {  // unequal scales
      const std::string x = b_.at();
      b_.go_to(pick()).node("Mul", {b_.constant({}, {0.25f})});
      const std::string y = b_.at();
      b_.go_to(x).node("Mul", {b_.constant({}, {0.5f})}).node("Add", {y}).node("Round");
      b_.clip(-128, 127);
    } else if (kind == 7) {
      b_.node("Concat", {pick()});
      b_.integer("axis", 1);
      conv(true, 2 * kC);
    } else {
      b_.node("Resize", {"", b_.constant({4}, {1, 1, 2, 2})});
      b_.text("mode", "nearest");
      b_.text("coordinate_transformation_mode", "asymmetric");
      b_.text("nearest_mode", "floor");
      b_.conv(kC, kC, 2, 2);
      b_.ints("strides", {2, 2});
      b_.oss({1, kC, 1, 1}, 0, 255, 300);
    }
  }

  OnnxBuilder b_;
  std::vector<std::string> tensors_;
};

TEST(Roundtrip, RandomGraphsEqualTheirNodesAndSurviveTheWriter) {
  const std::uint32_t seeds = repeats(10u, 60u);
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const std::string bytes = RandomGraph(seed).bytes();
    expect_equal(bytes, 0, 255, false, false);  // a deep random one may saturate
    const auto c = compile_ok(bytes);
    ASSERT_FALSE(c.image.empty());
    const std::string written = compiler::write_onnx(c.network);
    const auto again = compile_ok(written);
    EXPECT_EQ(again.image, c.image);
    expect_equal(written, 0, 255, false, false);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace odt::test

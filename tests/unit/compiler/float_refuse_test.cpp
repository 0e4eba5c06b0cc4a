// Float32 files that cannot become DFP16 models, and damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/compile.h"
#include "float_fixture.h"

namespace odt::test {
namespace {

using compiler::Arithmetic;
using compiler::CompileOptions;
using testing::HasSubstr;

struct Refused {
  const char* says;
  std::function<std::string(FloatBuilder&)> build;
};

TEST(Float, RefusedInputsAreOneErrorWithTheReason) {
  const std::vector<Refused> cases = {
      {"Relu is the only activation", [](FloatBuilder& b) { return b.raw("Sigmoid", {"x"}); }},
      {"Relu is the only activation", [](FloatBuilder& b) { return b.raw("Tanh", {"x"}); }},
      {"recurrent", [](FloatBuilder& b) { return b.raw("LSTM", {"x"}); }},
      {"up to its logits", [](FloatBuilder& b) { return b.raw("ArgMax", {"x"}); }},
      {"make each part a layer's own output",
       [](FloatBuilder& b) { return b.raw("Gather", {"x"}); }},
      {"nearest Resize", [](FloatBuilder& b) { return b.raw("ConvTranspose", {"x"}); }},
      {"supported: from 0",
       [](FloatBuilder& b) {
         return b.node("Clip", {"x", b.constant({}, {-1}), b.constant({}, {1})});
       }},
      {"supported: from 0",
       [](FloatBuilder& b) {
         return b.node("Clip", {"x", b.constant({}, {0}), b.constant({}, {-6})});
       }},
      {"leave the padding out",
       [](FloatBuilder& b) {
         const auto t = b.node("AveragePool", {"x"});
         b.ints("kernel_shape", {2, 2});
         b.ints("pads", {1, 1, 1, 1});
         return t;
       }},
      {"at the end", [](FloatBuilder& b) { return b.node("Relu", {b.node("Softmax", {"x"})}); }},
      {"of two tensors",
       [](FloatBuilder& b) {
         return b.node("Mul", {"x", "x"});
       }},
      {"along axis 2; supported: 1, channels (flatten what it joins)",
       [](FloatBuilder& b) {
         const auto t = b.node("Concat", {"x", "x"});
         b.integer("axis", 2);
         return t;
       }},
      {"does not copy input",
       [](FloatBuilder& b) {
         const auto t = b.node("Resize", {"x", "", b.constant({4}, {1, 1, 3, 3})});
         b.text("coordinate_transformation_mode", "asymmetric");
         b.text("nearest_mode", "ceil");
         return t;
       }},
      {"whole factors",
       [](FloatBuilder& b) {
         return b.node("Resize", {"x", "", b.constant({4}, {1, 1, 1.5f, 1})});
       }},
      {"reshapes",
       [](FloatBuilder& b) {
         const auto t = b.node("Relu", {b.conv("x", 2, 1)});
         return b.node("Reshape", {t, b.constant_i64({1, 4, 4, 2})});
       }},
      {"on a vector of 200 values; supported on [1,C,H,W]",
       [](FloatBuilder& b) {
         const auto t = b.node("Relu", {b.gemm(b.node("Flatten", {"x"}), 200)});
         return b.batch_norm(t);
       }},
  };
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.says);
    FloatBuilder b({1, 2, 4, 4}, 17);
    const auto out = compiler::compile(b.bytes(c.build(b)), "bad.onnx", {});
    ASSERT_FALSE(out.ok());
    const std::string text(out.status().message());
    EXPECT_THAT(text, HasSubstr(c.says));
    EXPECT_THAT(text, HasSubstr("bad.onnx: node '/"));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

// What its outputs are compared with is not what the user's file has as its input.
TEST(Float, AnAutoencoderThatNormalisesItsInputSaysSo) {
  const auto warned = [](bool normalises) {
    FloatBuilder b({1, 6}, 23);
    std::string t = "x";
    if (normalises)
      t = b.node("Div", {b.node("Sub", {"x", b.constant({}, {2})}), b.constant({}, {4})});
    t = b.gemm(b.node("Relu", {b.gemm(t, 3)}), 6);
    CompileOptions options;
    options.task = compiler::Task::kAutoencode;
    const auto c = compiler::compile(b.bytes(t), "f.onnx", options);
    EXPECT_TRUE(c.ok()) << c.status();
    return c.ok() && c->manifest.find("compared with the normalised input") != std::string::npos;
  };
  EXPECT_TRUE(warned(true));
  EXPECT_FALSE(warned(false));
}

TEST(Float, DamagedFilesNeverCrash) {
  FloatBuilder b({1, 2, 6, 6}, 19);
  const auto a = b.node("Relu", {b.batch_norm(b.conv("x", 4, 3))});
  const auto t = b.node("GlobalAveragePool", {b.node("Add", {b.conv(a, 4, 1), a})});
  const std::string bytes = b.bytes(b.gemm(b.node("Flatten", {t}), 3));
  for (std::size_t n = 0; n < bytes.size(); n += 3) {
    (void)compiler::compile(bytes.substr(0, n), "bad.onnx", {});
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = bytes;
      bad[n] = static_cast<char>(bad[n] ^ flip);
      (void)compiler::compile(bad, "bad.onnx", {});
    }
  }
}

TEST(Float, ArithmeticIsChosenOrRefused) {
  FloatBuilder b({1, 8}, 18);
  CompileOptions options;
  options.arithmetic = Arithmetic::kInteger;
  const auto out = compiler::compile(b.bytes(b.gemm("x", 4)), "f.onnx", options);
  EXPECT_EQ(out.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("pc-train"));
}

}  // namespace
}  // namespace odt::test

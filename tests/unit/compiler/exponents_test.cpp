// Exponents of integer models, and QAT files as DFP16.
#include "compiler/exponents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "onnx_fixture.h"
#include "training/gavg.h"

namespace odt::test {
namespace {

using testing::HasSubstr;

// 8 -> 4 with k 7 for all outputs, then 4 -> 3.
OnnxBuilder two_layers() {
  OnnxBuilder b({1, 8}, 31);
  const auto fixed = [&b](std::int64_t n, float lo, float hi) {
    b.node("Add", {b.constant({1, n}, std::vector<float>(static_cast<std::size_t>(n), 64))});
    b.node("Mul", {b.constant({}, {1})}).node("Mul", {b.constant({}, {0.0078125f})});
    b.node("Floor").clip(lo, hi);
  };
  b.prequant().matmul(8, 4);
  fixed(4, 0, 255);
  b.node("Relu").clip(0, 255).matmul(4, 3);
  fixed(3, -128, 127);
  return b;
}

TEST(Exponents, FollowFromMetadataAndReachGavg) {
  OnnxBuilder b = two_layers();
  const auto without = compiler::compile(b.bytes({1, 3}), "m.onnx", {});
  b.metadata("odt.input_exponent", "-7");
  b.metadata("odt.weight_exponents", "-9,-8");
  const auto with = compiler::compile(b.bytes({1, 3}), "m.onnx", {});
  ASSERT_TRUE(without.ok() && with.ok()) << with.status();
  EXPECT_NE(without->image, with->image);
  const auto none = training::read_exponents(without->image);
  const auto got = training::read_exponents(with->image);
  ASSERT_TRUE(none.ok() && got.ok());
  EXPECT_EQ(none->logits, 0);
  ASSERT_EQ(got->layers.size(), 2u);
  EXPECT_EQ(got->layers[0].input, -7);
  EXPECT_EQ(got->layers[0].weights, -9);
  EXPECT_EQ(got->layers[1].input, -7 - 9 + 7);
  EXPECT_EQ(got->layers[1].weights, -8);
  EXPECT_EQ(got->logits, -7 - 9 + 7 - 8 + 7);
}

TEST(Exponents, GoThroughALayerThatOnlyClips) {
  OnnxBuilder b({1, 8}, 32);
  b.prequant().matmul(8, 3);
  b.node("Add", {b.constant({1, 3}, {64, 64, 64})});
  b.node("Mul", {b.constant({}, {1})}).node("Mul", {b.constant({}, {0.0078125f})});
  b.node("Floor").clip(-255, 255);
  b.node("Clip", {b.constant({}, {-20}), b.constant({}, {20})});
  b.node("Floor").clip(-10, 10);
  b.metadata("odt.input_exponent", "-7");
  b.metadata("odt.weight_exponents", "-9");
  const auto c = compiler::compile(b.bytes({1, 3}), "m.onnx", {});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->network.layers.back().e_out, -9) << c->network.layers.size();
}

TEST(Exponents, WhatIsNotKnownStaysZero) {
  OnnxBuilder b = two_layers();
  b.metadata("odt.input_exponent", "-7");
  b.metadata("odt.weight_exponents", "?,-8");
  const auto c = compiler::compile(b.bytes({1, 3}), "m.onnx", {});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->network.layers[0].e_out, 0);
  EXPECT_EQ(c->network.layers[1].e_w, -8);
  EXPECT_EQ(c->network.layers[1].e_out, 0);
}

TEST(Exponents, MalformedMetadataIsNamed) {
  for (const auto& [key, value] :
       {std::pair{"odt.input_exponent", "x"}, std::pair{"odt.weight_exponents", "-9"},
        std::pair{"odt.weight_exponents", "-9,101"}}) {
    OnnxBuilder b = two_layers();
    b.metadata(key, value);
    const auto c = compiler::compile(b.bytes({1, 3}), "m.onnx", {});
    ASSERT_FALSE(c.ok());
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(std::string("metadata ") + key));
  }
}

TEST(Exponents, QuantisedFileAsDfp16) {
  OnnxBuilder b = two_layers();
  compiler::CompileOptions options;
  options.arithmetic = compiler::Arithmetic::kDfp16;
  const auto refused = compiler::compile(b.bytes({1, 3}), "m.onnx", options);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("m.onnx: model"));
  b.metadata("odt.ce_scale", "40");
  const auto c = compiler::compile(b.bytes({1, 3}), "m.onnx", options);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->network.arithmetic, compiler::Arithmetic::kDfp16);
  options.input.exponent = -3;
  EXPECT_THAT(std::string(compiler::compile(b.bytes({1, 3}), "m.onnx", options).status().message()),
              HasSubstr("the file is quantised"));
}

}  // namespace
}  // namespace odt::test

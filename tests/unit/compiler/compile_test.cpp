#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compile_check.h"
#include "compiler/onnx_writer.h"
#include "onnx_fixture.h"

namespace odt::test {
namespace {

TEST(Compile, DenseWithPrequantAndReluEqualsTheNodesInFloat32) {
  OnnxBuilder b({1, 1, 6, 5}, 1);
  b.prequant().node("Flatten").matmul(30, 12).oss({1, 12}, 0, 255, 300);
  b.node("Relu").clip(0, 255).matmul(12, 4).oss({1, 4}, -128, 127, 500);
  expect_equal(b.bytes({1, 4}), 0, 255);
}

TEST(Compile, ConvWithOssClipOf255EqualsTheNodesInFloat32) {
  OnnxBuilder b({1, 2, 8, 6}, 2);
  b.prequant().conv(2, 4, 3, 3);
  b.ints("pads", {1, 0, 1, 0});
  b.ints("strides", {2, 1});
  b.oss({1, 4, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255, true);
  b.node("Reshape", {b.constant_i64({1, -1})}).matmul(4 * 4 * 4, 3).oss({1, 3}, -128, 127, 500);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Compile, ConvWithoutReluKeeps16BitActivations) {
  OnnxBuilder b({1, 1, 6, 4}, 3);
  b.prequant().conv(1, 3, 3, 2).oss({1, 3, 1, 1}, -255, 255, 100);
  b.node("Flatten").matmul(3 * 4 * 3, 3).oss({1, 3}, -128, 127, 500);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(compiler::storage_of(compile_ok(bytes).network.layers[0].clip_lo, 255),
            compiler::Storage::kS16);
  expect_equal(bytes, 0, 255);
}

TEST(Compile, RawExportNoiseIsFolded) {
  OnnxBuilder b({1, 16}, 4);
  // Shift constants shared through Identity, a scale computed from constants, Identity on the path.
  const std::string one = b.constant({1}, {1.0f});
  const std::string shared = b.identity_of(b.identity_of(one));
  b.prequant().node("Identity").matmul(16, 8);
  b.node("Add", {b.constant({1, 8}, std::vector<float>(8, 16.0f))});
  b.node("Mul", {shared}).node("Mul", {b.constant_node({0.03125f})});
  b.node("Floor").clip(0, 255, true).node("Relu").clip(0, 255, true).node("Identity");
  b.matmul(8, 3).oss({1, 3}, -128, 127, 400).node("Identity");
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(compile_ok(bytes).network.layers.size(), 2u);
  expect_equal(bytes, 0, 255);
}

TEST(Compile, PrequantOfBatchNormHasNegativeMultAndFractionalOffsets) {
  OnnxBuilder b({1, 3, 4, 4}, 5);
  b.node("Add", {b.constant({1, 3, 1, 1}, {0.3125f, -7.8125f, 2.0f})});
  b.node("Mul", {b.constant({1, 3, 1, 1}, {2252, -1890, 77})});
  b.node("Mul", {b.constant({}, {std::ldexp(1.0f, -6)})});
  b.node("Floor").clip(-128, 127).node("Flatten");
  b.matmul(48, 4).oss({1, 4}, -128, 127, 400);
  const std::string bytes = b.bytes({1, 4});
  const auto c = compile_ok(bytes);
  ASSERT_TRUE(c.network.prequant.has_value());
  EXPECT_EQ(c.network.prequant->mult, (std::vector<std::int16_t>{2252, -1890, 77}));
  EXPECT_EQ(c.network.prequant->k, (std::vector<std::uint8_t>{6, 6, 6}));
  expect_equal(bytes, -4, 4);
  expect_equal(bytes, -4, 4, true);
}

TEST(Compile, GemmTransposesByItsAttributeAndFoldsItsBias) {
  for (const bool trans : {false, true}) {
    OnnxBuilder b({1, 20}, 6);
    b.prequant().gemm(20, 9, trans).oss({1, 9}, 0, 255, 200).node("Relu").clip(0, 255);
    b.gemm(9, 3, trans).oss({1, 3}, -128, 127, 300);
    expect_equal(b.bytes({1, 3}), 0, 255);
  }
}

TEST(Compile, EightBitMultipliersOfNarrowWeightsStayPositive) {
  OnnxBuilder b({1, 12}, 7);
  b.prequant().matmul(12, 6).oss({1, 6}, 0, 255, 300, true).node("Relu").clip(0, 255);
  b.matmul(6, 3).oss({1, 3}, -128, 127, 300, true);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Compile, LinearBatchNormReluWithoutLastClipFoldsTo127) {
  OnnxBuilder b({1, 12}, 8);
  b.prequant().matmul(12, 6).oss({1, 6}, -128, 127, 300).node("Relu");
  b.matmul(6, 3).oss({1, 3}, -128, 127, 300);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[0].clip_lo, 0);
  EXPECT_EQ(c.network.layers[0].clip_hi, 127);
  expect_equal(bytes, 0, 255);
}

TEST(Compile, WithoutPrequantSamplesAreTakenAsTheyAre) {
  OnnxBuilder b({1, 10}, 9);
  b.matmul(10, 3).oss({1, 3}, -128, 127, 300);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_FALSE(compile_ok(bytes).network.prequant.has_value());
  expect_equal(bytes, -128, 127);
}

TEST(Compile, PrequantConstantsMayDifferInKind) {
  // Offsets per channel, factors per value, one shift.
  OnnxBuilder b({1, 3, 4, 4}, 15);
  std::vector<float> mult;
  for (int n = 0; n < 48; ++n) mult.push_back(static_cast<float>(60 + n));
  b.node("Add", {b.constant({1, 3, 1, 1}, {0.5f, -9.0f, 3.0f})});
  b.node("Mul", {b.constant({1, 3, 4, 4}, mult)});
  b.node("Mul", {b.constant({}, {std::ldexp(1.0f, -7)})});
  b.node("Floor").clip(-128, 127).node("Flatten").matmul(48, 4).oss({1, 4}, -128, 127, 400);
  const std::string bytes = b.bytes({1, 4});
  EXPECT_EQ(compile_ok(bytes).network.prequant->offset.size(), 48u);
  expect_equal(bytes, -100, 100);
}

TEST(Compile, AlmostIntegralOffsetsAreRounded) {
  OnnxBuilder b({1, 4}, 10);
  b.prequant().matmul(4, 2).node("Add", {b.constant({1, 2}, {-4387.9995f, 12.0004f})});
  b.node("Mul", {b.constant({}, {1})}).node("Mul", {b.constant({}, {0.0078125f})});
  b.node("Floor").clip(-128, 127);
  EXPECT_EQ(compile_ok(b.bytes({1, 2})).network.layers[0].offset,
            (std::vector<std::int32_t>{-4388, 12}));
}

TEST(Compile, MetadataBecomesCalibrationAndItsAbsenceAWarning) {
  OnnxBuilder b({1, 4}, 11);
  b.prequant().matmul(4, 2).oss({1, 2}, -128, 127, 100);
  EXPECT_EQ(compile_ok(b.bytes({1, 2})).network.warnings.size(), 4u);
  b.metadata("odt.ce_scale", "103");
  b.metadata("odt.target_correct", "35,41");
  b.metadata("odt.target_wrong", "1,-8");
  b.metadata("odt.src_correct", "851");
  b.metadata("odt.src_total", "1000");
  const auto c = compile_ok(b.bytes({1, 2}));
  EXPECT_TRUE(c.network.warnings.empty());
  EXPECT_EQ(c.network.calibration.ce_scale, 103);
  EXPECT_EQ(c.network.calibration.target_wrong, (std::vector<std::int8_t>{1, -8}));
  EXPECT_EQ(c.network.calibration.src_correct, 851u);
}

TEST(Compile, OutputScaleGivesTheCrossEntropyScale) {
  OnnxBuilder b({1, 4}, 12);
  b.prequant().matmul(4, 2).oss({1, 2}, -128, 127, 100).node("Mul", {b.constant({}, {0.25f})});
  EXPECT_EQ(compile_ok(b.bytes({1, 2})).network.calibration.ce_scale, 92);
}

TEST(Compile, TrainableLayersAreCountedFromTheLast) {
  OnnxBuilder b({1, 8}, 13);
  b.prequant().matmul(8, 6).oss({1, 6}, 0, 255, 100).node("Relu").clip(0, 255);
  b.matmul(6, 4).oss({1, 4}, 0, 255, 100).node("Relu").clip(0, 255);
  b.matmul(4, 2).oss({1, 2}, -128, 127, 100);
  const std::string bytes = b.bytes({1, 2});
  const auto c = compile_ok(bytes, 2);
  EXPECT_FALSE(c.network.layers[0].trainable);
  EXPECT_TRUE(c.network.layers[1].trainable);
  EXPECT_TRUE(c.network.layers[2].trainable);
  const auto too_many = compiler::compile(bytes, "m.onnx", {"m", 4});
  EXPECT_EQ(too_many.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Compile, WriterGivesTheSameImageThroughTheReader) {
  OnnxBuilder b({1, 2, 6, 6}, 14);
  b.prequant().conv(2, 3, 3, 3).oss({1, 3, 1, 1}, 0, 255, 300).node("Relu").clip(0, 255);
  b.node("Flatten").matmul(48, 4).oss({1, 4}, -128, 127, 300);
  const auto c = compile_ok(b.bytes({1, 4}));
  const std::string again = compiler::write_onnx(c.network);
  EXPECT_EQ(again, compiler::write_onnx(c.network));
  auto network = compile_ok(again);
  for (std::size_t n = 0; n < c.network.layers.size(); ++n) {
    EXPECT_EQ(network.network.layers[n].weights, c.network.layers[n].weights);
    EXPECT_EQ(network.network.layers[n].offset, c.network.layers[n].offset);
    EXPECT_EQ(network.network.layers[n].k, c.network.layers[n].k);
    EXPECT_EQ(network.network.layers[n].out_shape, c.network.layers[n].out_shape);
  }
  expect_equal(again, 0, 255);
}

}  // namespace
}  // namespace odt::test

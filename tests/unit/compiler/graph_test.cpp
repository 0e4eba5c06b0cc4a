#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "compile_check.h"
#include "compiler/onnx_writer.h"
#include "onnx_fixture.h"

// Blocks and branches beyond a chain of Conv and MatMul, each against its nodes in float32.
namespace odt::test {
namespace {

using compiler::LayerKind;

std::vector<LayerKind> kinds(const std::string& bytes) {
  std::vector<LayerKind> out;
  for (const auto& l : compile_ok(bytes).network.layers) out.push_back(l.kind);
  return out;
}

TEST(Graph, GlobalAverageOverReduceSumBecomesGapAndFlatten) {
  OnnxBuilder b({1, 1, 8, 4}, 1);
  b.prequant().conv_relu(1, 5, 3, 3, {1, 1, 1, 1}).gap(16, 5).logits(5, 3);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes), (std::vector{LayerKind::kConv, LayerKind::kGap, LayerKind::kFlatten,
                                       LayerKind::kLinear}));
  expect_equal(bytes, 0, 255);
}

TEST(Graph, RepeatedReshapesAroundGapLeaveOneFlatten) {
  OnnxBuilder b({1, 1, 8, 4}, 2);
  b.prequant().conv_relu(1, 5, 3, 3).gap(13, 5);
  b.node("Reshape", {b.constant_i64({1, 5, 1, 1})}).node("Reshape", {b.constant_i64({1, -1})});
  b.node("Unsqueeze", {b.constant_i64({2, 3})}).node("Flatten").logits(5, 3);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes).size(), 4u);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, GapFollowsTheFilesConstantsAndNotTheArea) {
  OnnxBuilder b({1, 2, 5, 3}, 3);  // area 15, gain 2^-3
  b.prequant().conv_relu(2, 4, 1, 1).node("ReduceSum", {b.constant_i64({-1, -2})}).node("Round");
  b.node("Add", {b.constant({1, 4, 1, 1}, {4, 5, -60, 12})});
  b.node("Mul", {b.constant({1, 4, 1, 1}, {1, 3, 200, 129})});
  b.node("Mul",
         {b.constant({1, 4, 1, 1}, {0.125f, 0.03125f, std::ldexp(1.0f, -12), 0.001953125f})});
  b.node("Floor").clip(0, 255).node("Flatten").logits(4, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, MaxPoolWithPaddingAndCeilMode) {
  for (const bool ceil : {false, true}) {
    OnnxBuilder b({1, 1, 9, 6}, 4);
    b.prequant().conv_relu(1, 4, 3, 1, {1, 0, 1, 0}).node("MaxPool");
    b.ints("kernel_shape", {3, 2});
    b.ints("strides", {2, 2});
    b.ints("pads", {1, 0, 0, 0});
    b.integer("ceil_mode", ceil ? 1 : 0);
    b.node("Flatten").logits(4 * (ceil ? 5 : 4) * 3, 3);
    expect_equal(b.bytes({1, 3}), 0, 255);
  }
}

TEST(Graph, MaxPoolOfNegativeValuesIgnoresPadding) {
  OnnxBuilder b({1, 2, 6, 1}, 5);
  b.prequant().node("MaxPool");
  b.ints("kernel_shape", {3, 1});
  b.ints("strides", {2, 1});
  b.ints("pads", {1, 0, 1, 0});
  b.node("Flatten").logits(6, 3);
  expect_equal(b.bytes({1, 3}), 0, 100);
}

TEST(Graph, AveragePoolTimesItsAreaWithPadding) {
  OnnxBuilder b({1, 1, 9, 6}, 6);
  b.prequant().conv_relu(1, 4, 3, 3, {1, 1, 1, 1}).node("AveragePool");
  b.ints("kernel_shape", {3, 3});
  b.ints("strides", {2, 2});
  b.ints("pads", {1, 1, 1, 1});
  b.integer("count_include_pad", 1);
  b.node("Mul", {b.constant({}, {9})}).node("Round").oss({1, 1, 1, 1}, 0, 255, 10);
  b.node("Flatten").logits(4 * 5 * 3, 3);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes)[1], LayerKind::kAvgPool);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, AveragePoolOverAPowerOfTwoNeedsNoMul) {
  OnnxBuilder b({1, 2, 8, 4}, 7);
  b.prequant().conv_relu(2, 3, 1, 1).node("AveragePool");
  b.ints("kernel_shape", {4, 2});
  b.ints("strides", {4, 2});
  b.node("Add", {b.constant({}, {0.5f})}).node("Floor").clip(0, 255);
  b.node("Flatten").logits(12, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, DepthwiseGroupedDilatedAndStridedConv) {
  OnnxBuilder b({1, 4, 12, 5}, 8);
  b.prequant().conv(4, 4, 3, 1, 4);
  b.ints("pads", {2, 0, 1, 0});
  b.ints("strides", {2, 1});
  b.oss({1, 4, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255);
  b.conv(4, 6, 3, 3, 2);
  b.ints("dilations", {2, 1});
  b.oss({1, 6, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255);
  b.node("Flatten").logits(6 * 3 * 3, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, AutoPadBecomesPads) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    const bool same = std::string(mode) != "VALID";
    OnnxBuilder b({1, 1, 8, 6}, 9);
    b.prequant().conv(1, 3, 4, 3);
    b.ints("strides", {2, 1});
    b.text("auto_pad", mode);
    b.oss({1, 3, 1, 1}, 0, 255, 300).node("Flatten").logits(3 * (same ? 4 * 6 : 3 * 4), 3);
    expect_equal(b.bytes({1, 3}), 0, 255);
  }
}

TEST(Graph, ExplicitPadGoesIntoTheConv) {
  OnnxBuilder b({1, 1, 6, 5}, 10);
  b.prequant().node("Pad", {b.constant_i64({0, 0, 2, 1, 0, 0, 1, 0})}).conv(1, 3, 3, 3);
  b.ints("pads", {0, 0, 1, 0});
  b.oss({1, 3, 1, 1}, 0, 255, 300).node("Flatten").logits(3 * 8 * 4, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto g = compile_ok(bytes).network.layers[0].conv;
  EXPECT_EQ((std::vector<int>{g.pad_t, g.pad_l, g.pad_b, g.pad_r}), (std::vector<int>{2, 1, 2, 0}));
  expect_equal(bytes, 0, 255);
}

TEST(Graph, ResidualAddOfEqualScalesWithRelu) {
  OnnxBuilder b({1, 1, 8, 4}, 11);
  b.prequant().conv_relu(1, 4, 3, 3, {1, 1, 1, 1});
  const std::string trunk = b.at();
  b.conv(4, 4, 3, 3);
  b.ints("pads", {1, 1, 1, 1});
  b.oss({1, 4, 1, 1}, -255, 255, 300).node("Add", {trunk}).node("Relu").clip(0, 255);
  b.gap(16, 5).logits(4, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[2].kind, LayerKind::kAdd);
  EXPECT_TRUE(c.network.layers[2].relu);
  EXPECT_EQ(c.network.layers[2].clip_hi, 255);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, ResidualAddWithoutClipHasTheSumsRange) {
  OnnxBuilder b({1, 8}, 12);
  b.prequant();
  const std::string input = b.at();
  b.matmul(8, 6).oss({1, 6}, 0, 255, 100);
  const std::string left = b.at();
  b.go_to(input).matmul(8, 6).oss({1, 6}, -128, 127, 100).node("Add", {left}).logits(6, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[2].clip_lo, -128);
  EXPECT_EQ(c.network.layers[2].clip_hi, 382);
  expect_equal(bytes, 0, 255);
}

// Mul Mul Add Mul Round: 1 LSB where float32 rounds the other way; these scales are powers of two.
TEST(Graph, ResidualAddOfPowerOfTwoScalesIsExact) {
  OnnxBuilder b({1, 1, 8, 4}, 13);
  b.prequant().conv_relu(1, 4, 3, 3, {1, 1, 1, 1});
  const std::string trunk = b.at();
  b.conv_relu(4, 4, 1, 1).node("Mul", {b.constant({}, {0.25f})});
  const std::string left = b.at();
  b.go_to(trunk).node("Mul", {b.constant({}, {0.125f})}).node("Add", {left});
  b.node("Mul", {b.constant({}, {2.0f})}).node("Round").node("Relu").clip(0, 255);
  b.gap(16, 5).logits(4, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[2].offset, (std::vector<std::int32_t>{1 << 18, 1 << 19}));
  for (const auto& w : c.network.warnings) EXPECT_EQ(w.find("residual"), std::string::npos) << w;
  expect_equal(bytes, 0, 255);
}

TEST(Graph, ResidualAddOfOtherScalesNamesItsLayerAndCounts) {
  OnnxBuilder b({1, 8}, 14);
  b.prequant();
  const std::string input = b.at();
  b.matmul(8, 6).oss({1, 6}, -128, 127, 100).node("Mul", {b.constant({}, {0.05f})});
  const std::string left = b.at();
  b.go_to(input).matmul(8, 6).oss({1, 6}, -128, 127, 100);
  b.node("Mul", {b.constant({}, {0.035f})}).node("Add", {left}, "shortcut");
  b.node("Mul", {b.constant({}, {1 / 0.05f})}).node("Round").logits(6, 3);
  const auto c = compile_ok(b.bytes({1, 3}));
  EXPECT_EQ(
      c.network.layers[2].offset,
      (std::vector<std::int32_t>{
          static_cast<std::int32_t>(std::nearbyint(double{0.035f} * double{1 / 0.05f} * (1 << 20))),
          static_cast<std::int32_t>(
              std::nearbyint(double{0.05f} * double{1 / 0.05f} * (1 << 20)))}));
  bool named = false;
  for (const auto& w : c.network.warnings)
    named = named || w.find("residual add 'shortcut' with unequal scales") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST(Graph, BranchesFromTheInputAreConcatenated) {
  OnnxBuilder b({1, 1, 8, 4}, 15);
  b.prequant();
  const std::string input = b.at();
  b.conv_relu(1, 3, 3, 3, {1, 1, 1, 1});
  const std::string left = b.at();
  b.go_to(input).conv(1, 2, 1, 1).oss({1, 2, 1, 1}, -128, 127, 100);
  const std::string middle = b.at();
  b.go_to(left).node("Concat", {middle, input});
  b.integer("axis", 1);
  b.node("Flatten").logits(6 * 32, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[3].kind, LayerKind::kConcat);
  EXPECT_EQ(c.network.layers[3].in1, 0);
  EXPECT_EQ(c.network.layers[3].clip_lo, -128);
  EXPECT_EQ(c.network.layers[3].clip_hi, 255);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, FlatBranchesAreConcatenatedAsValues) {
  OnnxBuilder b({1, 2, 4, 4}, 16);
  b.prequant().conv_relu(2, 3, 3, 3);
  const std::string trunk = b.at();
  b.gap(2, 2);
  const std::string left = b.at();
  b.go_to(trunk).node("Flatten").node("Concat", {left});
  b.integer("axis", -1);
  b.logits(15, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, InputReadWholeAndFlat) {
  OnnxBuilder b({1, 1, 4, 4}, 17);
  b.prequant();
  const std::string input = b.at();
  b.node("Flatten").matmul(16, 4).oss({1, 4}, 0, 255, 100);
  const std::string left = b.at();
  b.go_to(input).conv_relu(1, 4, 2, 2).gap(4, 3).node("Add", {left}).logits(4, 3);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes)[0], LayerKind::kFlatten);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, NodesInAnyOrder) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    OnnxBuilder b({1, 1, 8, 4}, 100 + seed);
    b.prequant().conv_relu(1, 3, 3, 3, {1, 1, 1, 1});
    const std::string trunk = b.at();
    b.conv_relu(3, 3, 1, 1).node("Add", {trunk}).clip(0, 255);
    b.gap(16, 5).logits(3, 3);
    b.shuffle();
    expect_equal(b.bytes({1, 3}), 0, 255);
  }
}

TEST(Graph, NodesThatLeadNowhereAreDropped) {
  OnnxBuilder b({1, 8}, 18);
  b.prequant().logits(8, 3);
  const std::string out = b.at();
  b.node("Softmax").node("SomethingElse").go_to(out);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes).size(), 1u);
}

TEST(Graph, AutoencoderOfConvsAndResizes) {
  OnnxBuilder b({1, 1, 16, 1}, 19);
  b.prequant().conv_relu(1, 4, 3, 1, {1, 0, 1, 0}, {2, 1});
  b.conv_relu(4, 6, 3, 1, {1, 0, 1, 0}, {2, 1});
  for (int n = 0; n < 2; ++n) {
    b.node("Resize", {"", n == 0 ? b.constant({4}, {1, 1, 2, 1}) : ""});
    if (n == 1)
      b.graph().mutable_node(b.graph().node_size() - 1)->add_input(b.constant_i64({1, 6, 16, 1}));
    b.text("mode", "nearest");
    b.text("coordinate_transformation_mode", n == 0 ? "asymmetric" : "half_pixel");
    b.text("nearest_mode", n == 0 ? "floor" : "round_prefer_floor");
  }
  b.conv(6, 1, 3, 1);
  b.ints("pads", {1, 0, 1, 0});
  b.oss({1, 1, 1, 1}, -255, 255, 300);
  const std::string bytes = b.bytes({1, 1, 16, 1});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.task, compiler::Task::kAutoencode);
  EXPECT_EQ(c.network.layers.back().clip_hi, 127);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, ShapeComputedSizesAreFolded) {
  OnnxBuilder b({1, 1, 8, 1}, 20);
  b.prequant().conv_relu(1, 3, 3, 1, {1, 0, 1, 0}, {2, 1});
  const std::string x = b.at();
  b.node("Shape").node("Slice", {b.constant_i64({0}), b.constant_i64({2})});
  const std::string front = b.at();
  b.go_to(front).node("Concat", {b.constant_i64({8, 1})});
  b.integer("axis", 0);
  const std::string sizes = b.at();
  b.go_to(x).node("Resize", {"", "", sizes});
  b.text("mode", "nearest");
  b.text("coordinate_transformation_mode", "asymmetric");
  b.text("nearest_mode", "floor");
  const std::string wide = b.at();
  // x.view(x.size(0), -1)
  b.node("Shape").node("Gather", {b.constant_i64({0})});
  b.integer("axis", 0);
  b.node("Concat", {b.constant_i64({-1})});
  b.integer("axis", 0);
  const std::string shape = b.at();
  b.go_to(wide).node("Reshape", {shape}).logits(24, 3);
  const std::string bytes = b.bytes({1, 3});
  EXPECT_EQ(kinds(bytes)[1], LayerKind::kResize);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, TaskComesFromMetadataShapesOrTheCaller) {
  OnnxBuilder b({1, 8}, 21);
  b.prequant().matmul(8, 1).oss({1, 1}, -128, 127, 100);
  auto c = compile_ok(b.bytes({1, 1}));
  EXPECT_EQ(c.network.task, compiler::Task::kRegress);
  EXPECT_TRUE(c.network.calibration.target_correct.empty());
  expect_equal(b.bytes({1, 1}), 0, 255);

  OnnxBuilder d({1, 8}, 22);
  d.prequant().logits(8, 3);
  EXPECT_EQ(compile_ok(d.bytes({1, 3})).network.task, compiler::Task::kClassify);
  compiler::CompileOptions options{"m", 0};
  options.task = compiler::Task::kRegress;
  auto asked = compiler::compile(d.bytes({1, 3}), "m.onnx", options);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->network.task, compiler::Task::kRegress);
  d.metadata("odt.task", "regress");
  EXPECT_EQ(compile_ok(d.bytes({1, 3})).network.task, compiler::Task::kRegress);
}

TEST(Graph, ARegressionSaysWhatItsOutputsStandFor) {
  OnnxBuilder d({1, 8}, 22);
  d.prequant().logits(8, 3);
  d.metadata("odt.task", "regress");
  const auto json = [](const compiler::Compiled& c) { return nlohmann::json::parse(c.manifest); };
  EXPECT_FALSE(json(compile_ok(d.bytes({1, 3}))).contains("targets")) << "as the data reaches";
  d.metadata("odt.target_offset", "0.5,-1e-3,7");
  d.metadata("odt.target_scale", "2");
  const auto c = compile_ok(d.bytes({1, 3}));
  const auto targets = json(c).at("targets");
  EXPECT_EQ(targets.at("offset").get<std::vector<float>>(), (std::vector<float>{0.5f, -1e-3f, 7}));
  EXPECT_EQ(targets.at("scale").get<std::vector<float>>(), (std::vector<float>{2, 2, 2}));
  // And they come back from a file of our own.
  const auto again = compiler::compile(compiler::write_onnx(c.network), "again.onnx", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->network.calibration.target_offset, c.network.calibration.target_offset);
  EXPECT_EQ(again->network.calibration.target_scale, c.network.calibration.target_scale);
}

TEST(Graph, ReluBehindConcatAndPoolBecomesALayer) {
  OnnxBuilder b({1, 2, 6, 4}, 23);
  b.prequant();
  const std::string input = b.at();
  b.conv(2, 3, 1, 1).oss({1, 3, 1, 1}, -128, 127, 100).node("Concat", {input});
  b.integer("axis", 1);
  b.node("Relu").node("MaxPool");
  b.ints("kernel_shape", {2, 2});
  b.ints("strides", {2, 2});
  b.node("Flatten").logits(5 * 6, 3);
  const std::string bytes = b.bytes({1, 3});
  const auto c = compile_ok(bytes);
  EXPECT_EQ(c.network.layers[2].kind, LayerKind::kAdd);
  EXPECT_TRUE(c.network.layers[2].relu);
  expect_equal(bytes, 0, 255);
}

TEST(Graph, ConstantsBehindASumAreABlockOfTheirOwn) {
  OnnxBuilder b({1, 1, 8, 4}, 24);
  b.prequant().conv_relu(1, 4, 3, 3, {1, 1, 1, 1});
  const std::string trunk = b.at();
  b.conv_relu(4, 4, 1, 1).node("Add", {trunk}).oss({1, 4, 1, 1}, -128, 127, 50, true);
  b.node("Relu").node("Flatten").logits(128, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, SimplifiedBlocksWithoutSingleOperators) {
  OnnxBuilder b({1, 6}, 25);
  b.prequant();
  // Bias in the Gemm and no Add; one Mul; a scale of 1 that is gone.
  b.node("Gemm", {b.constant({6, 4}, std::vector<float>(24, 3)), b.constant({4}, {8, -7, 6, 5})});
  b.node("Mul", {b.constant({1, 4}, {0.0625f, 0.03125f, 0.1875f, 0.0625f})}).node("Floor");
  b.clip(0, 255).matmul(4, 2).node("Sub", {b.constant({2}, {900, -100})}).node("Floor");
  b.clip(-128, 127);
  expect_equal(b.bytes({1, 2}), 100, 255);
}

TEST(Graph, OneDimensionalConvs) {
  OnnxBuilder b({1, 2, 16}, 26);
  b.prequant();
  b.node("Conv", {b.constant({3, 2, 5}, std::vector<float>(30, -7))});
  b.ints("kernel_shape", {5});
  b.ints("strides", {2});
  b.ints("pads", {2, 1});
  b.oss({1, 3, 1}, 0, 255, 300).node("MaxPool");
  b.ints("kernel_shape", {2});
  b.ints("strides", {2});
  b.node("Flatten").logits(12, 3);
  expect_equal(b.bytes({1, 3}), 0, 255);
}

TEST(Graph, TrainableCountsComputeLayersFromTheEnd) {
  OnnxBuilder b({1, 1, 8, 4}, 27);
  b.prequant();
  const std::string input = b.at();
  b.conv_relu(1, 3, 3, 3).gap(8, 4);
  const std::string left = b.at();
  b.go_to(input).conv_relu(1, 3, 1, 1).gap(8, 4).node("Add", {left}).logits(3, 3);
  const auto c = compile_ok(b.bytes({1, 3}), 2);
  std::vector<bool> trained;
  for (const auto& l : c.network.layers)
    if (l.is_compute()) trained.push_back(l.trainable);
  EXPECT_EQ(trained, (std::vector<bool>{false, true, true}));
}

}  // namespace
}  // namespace odt::test

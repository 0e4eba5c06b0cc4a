#include "worker/qat_arch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace odt::worker {
namespace {

using compiler::LayerKind;
using compiler::Shape;

const ArchOutput kTen{{10}, "the dataset has 10 classes"};

Arch parsed(const std::string& text, const Shape& input = {1, 28, 28}) {
  auto arch = parse_arch(text, input, kTen);
  EXPECT_TRUE(arch.ok()) << arch.status();
  return arch.ok() ? *arch : Arch{};
}

std::string error(const std::string& text, const Shape& input = {1, 28, 28}) {
  const auto arch = parse_arch(text, input, kTen);
  EXPECT_EQ(arch.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(arch.status().message());
}

TEST(Arch, ShapesFollowTheData) {
  const Arch a = parsed("conv8x3x3s2p1,bn,relu,max2,conv16x3x3,relu,gap,dense10");
  ASSERT_EQ(a.layers.size(), 6u);
  EXPECT_EQ(a.layers[0].out_shape, (Shape{8, 14, 14}));
  EXPECT_TRUE(a.layers[0].bn && a.layers[0].relu);
  EXPECT_EQ(a.layers[1].out_shape, (Shape{8, 7, 7}));
  EXPECT_EQ(a.layers[2].out_shape, (Shape{16, 5, 5}));
  EXPECT_EQ(a.layers[3].kind, LayerKind::kGap);
  EXPECT_EQ(a.layers[4].kind, LayerKind::kFlatten);
  EXPECT_EQ(a.layers[5].out_shape, (Shape{10}));
  EXPECT_EQ(a.weights(), 8u * 9 + 16 * 8 * 9 + 160);
}

TEST(Arch, OptionsComeInAnyOrder) {
  const auto g = parsed("conv4x3x5d2p0x1x2x3s2x1g1,dense").layers[0].geometry;
  EXPECT_EQ(g.k_h, 3);
  EXPECT_EQ(g.k_w, 5);
  EXPECT_EQ(g.dil_h, 2);
  EXPECT_EQ(g.dil_w, 2);
  EXPECT_EQ(g.stride_h, 2);
  EXPECT_EQ(g.stride_w, 1);
  EXPECT_EQ(g.pad_t, 0);
  EXPECT_EQ(g.pad_l, 1);
  EXPECT_EQ(g.pad_b, 2);
  EXPECT_EQ(g.pad_r, 3);
}

TEST(Arch, ALeadingFlattenIsDroppedAndDenseAloneIsTheClasses) {
  const Arch a = parsed("dense64, relu, dense");
  EXPECT_EQ(a.input, (Shape{784}));
  ASSERT_EQ(a.layers.size(), 2u);
  EXPECT_EQ(a.layers[1].in0, 1);
  EXPECT_EQ(a.layers[1].out_shape, (Shape{10}));
  EXPECT_EQ(arch_of_hidden({64}), "dense64,relu,dense");
}

TEST(Arch, AddReadsWhatGoesIn) {
  const Arch a = parsed("conv4x3x3p1,relu,add(dw3x3p1,relu,conv4x1x1),relu,gap,dense");
  ASSERT_EQ(a.layers.size(), 7u);
  EXPECT_TRUE(a.layers[1].depthwise());
  EXPECT_EQ(a.layers[3].kind, LayerKind::kAdd);
  EXPECT_EQ(a.layers[3].in0, 1);
  EXPECT_EQ(a.layers[3].in1, 3);
  EXPECT_TRUE(a.layers[3].relu);
}

TEST(Arch, AClassifierMayEndInAPool) {
  const Arch a = parsed("conv10x3x3,gap");
  EXPECT_EQ(a.layers.back().kind, LayerKind::kFlatten);
}

TEST(Arch, ErrorsNameTheCharacterAndWhatWasExpected) {
  using testing::HasSubstr;
  EXPECT_EQ(error("conv8x3"), "arch, character 1, 'conv8x3': expected convCHANNELSxHEIGHTxWIDTH");
  EXPECT_EQ(error("dense5,tanh,dense"),
            "arch, character 8, 'tanh': expected conv, dw, max, avg, gap, resize, flatten, dense, "
            "bn, relu or add(...)");
  EXPECT_EQ(error("dense12"),
            "arch, character 8 (the end): the last layer gives [12]; the dataset "
            "has 10 classes: expected [10]");
  EXPECT_THAT(error(""), HasSubstr("character 1 (the end): expected conv"));
  EXPECT_THAT(error("conv8x3x3q2,dense"), HasSubstr("'q' at character 10: expected s, p, d or g"));
  EXPECT_THAT(error("conv8x3x3s2s2,dense"), HasSubstr("'s' at character 12: given twice"));
  EXPECT_THAT(error("conv8x3x3s0,dense"), HasSubstr("0; expected 1..16"));
  EXPECT_THAT(error("conv8x3x3p1x2x3,dense"), HasSubstr("padding has 1, 2 or 4 numbers"));
  EXPECT_THAT(error("conv8x30x3,dense"), HasSubstr("larger than what comes in, 28x28"));
  EXPECT_THAT(error("conv8x3x3g3,dense"), HasSubstr("3 groups do not divide 1"));
  EXPECT_THAT(error("dense5,conv8x3x3,dense"), HasSubstr("what comes in is [5]; expected [C,H,W]"));
  EXPECT_THAT(error("conv8x3x3,dense", {156}), HasSubstr("what comes in is [156]"));
  EXPECT_THAT(error("max2p2,dense"), HasSubstr("padding must be smaller"));
  EXPECT_THAT(error("relu,dense"), HasSubstr("relu stands behind"));
  EXPECT_THAT(error("max2,bn,dense"), HasSubstr("bn stands behind"));
  EXPECT_THAT(error("dense5,relu,bn,dense"), HasSubstr("behind a relu"));
  EXPECT_THAT(error("dense,relu"), HasSubstr("no relu behind it"));
  EXPECT_THAT(error("add(conv2x3x3p1),dense"), HasSubstr("expected [1,28,28]"));
  EXPECT_THAT(error("add(conv1x3x3p1"), HasSubstr("expected ',' or ')'"));
  EXPECT_THAT(error("dense)"), HasSubstr("expected ',' or the end"));
  EXPECT_THAT(error("flatten,flatten,dense"), HasSubstr("flat already"));
  EXPECT_THAT(error("gap,flatten"), HasSubstr("at least one conv, dw or dense"));
  EXPECT_THAT(error("resize63x63,dense"), HasSubstr("at most 65535"));
  EXPECT_THAT(error("dense99999,dense"), HasSubstr("99999 units; expected 1..4096"));
  EXPECT_THAT(error(std::string(5000, 'a')), HasSubstr("at most 4096"));
}

}  // namespace
}  // namespace odt::worker

#include "compiler/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace odt::test {
namespace {

using compiler::BoardFigures;
using compiler::Kernels;
using compiler::LayerKind;

compiler::Layer layer(std::uint32_t in, std::uint32_t out, bool relu) {
  compiler::Layer l;
  l.relu = relu;
  l.trainable = true;
  l.clip_lo = relu ? 0 : -128;
  l.clip_hi = relu ? 255 : 127;
  l.in_shape = {in};
  l.out_shape = {out};
  l.weight_shape = {in, out};
  l.weights.assign(std::size_t{in} * out, 1);
  l.offset.assign(out, 128);
  l.mult.assign(out, 1);
  l.k.assign(out, 8);
  return l;
}

compiler::Network network(std::vector<compiler::Layer> layers) {
  compiler::Network net;
  net.name = "net";
  net.input_shape = layers[0].in_shape;
  net.layers = std::move(layers);
  connect_chain(net);
  net.calibration.target_correct.assign(net.n_classes(), 64);
  net.calibration.target_wrong.assign(net.n_classes(), -64);
  return net;
}

compiler::Compiled dense() {
  auto c = compiler::compile_network(
      network({layer(196, 64, true), layer(64, 32, true), layer(32, 10, false)}), "", "net.onnx",
      {"net", 0});
  EXPECT_TRUE(c.ok()) << c.status();
  return *std::move(c);
}

BoardFigures board_of(std::uint64_t arena) {
  auto b = compiler::other_board("cortex-m33", arena, 160);
  EXPECT_TRUE(b.ok());
  return *b;
}

TEST(Fit, TurnsAtTheVeryByte) {
  const auto c = dense();
  const auto roomy = compiler::fit(c, "net.onnx", board_of(1 << 20), {});
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_TRUE(roomy->fits_resident);
  EXPECT_TRUE(roomy->would_fit.empty());
  const std::uint64_t streamed = roomy->streamed.total();
  EXPECT_LT(streamed, roomy->resident.total());
  const auto just = compiler::fit(c, "net.onnx", board_of(streamed), {});
  EXPECT_TRUE(just->fits_streamed);
  EXPECT_FALSE(just->fits_resident);
  const auto tight = compiler::fit(c, "net.onnx", board_of(streamed - 1), {});
  EXPECT_FALSE(tight->fits_streamed);
  EXPECT_FALSE(tight->would_fit.empty());
}

TEST(Fit, WhatItProposesFits) {
  const auto c = dense();
  const auto all = compiler::fit(c, "net.onnx", board_of(1 << 20), {});
  for (std::uint64_t arena = all->streamed.total() - 1; arena > 20000; arena -= 7000) {
    const auto report = compiler::fit(c, "net.onnx", board_of(arena), {});
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->fits_streamed);
    for (const auto& choice : report->would_fit) {
      auto other =
          compiler::compile_network(c.network, "", "net.onnx", {"net", choice.trainable_layers});
      ASSERT_TRUE(other.ok());
      compiler::FitRequest r;
      r.k = choice.k;
      r.batch = choice.batch;
      const auto again = compiler::fit(*other, "net.onnx", board_of(arena), r);
      EXPECT_TRUE(choice.streamed ? again->fits_streamed : again->fits_resident) << arena;
      EXPECT_EQ((choice.streamed ? again->streamed : again->resident).total(), choice.bytes);
    }
  }
  const auto none = compiler::fit(c, "net.onnx", board_of(100), {});
  EXPECT_TRUE(none->would_fit.empty());
}

TEST(Fit, TheGuardCostsASecondCopyOfTheWeights) {
  const auto c = dense();
  compiler::FitRequest alone;
  alone.guard = false;
  const auto with = compiler::fit(c, "net.onnx", board_of(1 << 20), {});
  const auto without = compiler::fit(c, "net.onnx", board_of(1 << 20), alone);
  EXPECT_EQ(with->streamed.total() - without->streamed.total(), with->streamed.weights);
}

// Counted under QEMU: tests/bench/run.sh kernels.
TEST(Cost, IsWithinAQuarterOfTheCounts) {
  const auto arc_like = network({layer(147, 160, true), layer(160, 2, false)});
  const struct {
    Kernels kernels;
    std::uint32_t k;
    double counted;
  } dense_steps[] = {{Kernels::kDsp, 8, 841195},     {Kernels::kDsp, 12, 3186348},
                     {Kernels::kPlainC, 8, 4172342}, {Kernels::kPlainC, 12, 4905422},
                     {Kernels::kHelium, 8, 562693},  {Kernels::kHelium, 12, 2717415}};
  for (const auto& s : dense_steps) {
    const double predicted = step_cost(arc_like, s.kernels, s.k, 8).training_step;
    EXPECT_NEAR(predicted / s.counted, 1, 0.25) << kernels_name(s.kernels) << " k " << s.k;
  }
  compiler::Layer conv = layer(1, 3, true);
  conv.kind = LayerKind::kConv;
  conv.conv.k_h = 16;
  conv.conv.k_w = 2;
  conv.in_shape = {1, 64, 2};
  conv.out_shape = {3, 49, 1};
  conv.weight_shape = {3, 1, 16, 2};
  conv.weights.assign(96, 1);
  compiler::Layer flat;
  flat.kind = LayerKind::kFlatten;
  flat.in_shape = conv.out_shape;
  flat.out_shape = {147};
  const auto arc = network({conv, flat, layer(147, 160, true), layer(160, 2, false)});
  EXPECT_NEAR(step_cost(arc, Kernels::kDsp, 8, 8).training_step / 1739274, 1, 0.25);
  EXPECT_NEAR(step_cost(arc, Kernels::kPlainC, 8, 8).training_step / 7974148, 1, 0.25);
  EXPECT_NEAR(step_cost(arc, Kernels::kHelium, 8, 8).training_step / 1562836, 1, 0.25);
}

TEST(Cost, FrozenLayersOnlyInfer) {
  auto net = network({layer(147, 160, true), layer(160, 2, false)});
  net.layers[0].trainable = false;
  const auto cost = compiler::layer_cost(net, 0, Kernels::kDsp, 8, 8);
  EXPECT_EQ(cost.backward, 0);
  EXPECT_EQ(cost.update, 0);
  EXPECT_GT(cost.forward, 0);
  EXPECT_GT(compiler::layer_cost(net, 1, Kernels::kDsp, 8, 8).backward, 0);
}

TEST(Boards, AreThoseOfTheFirmware) {
  for (const char* name : {"mps2_an505", "mps2_an386", "lm3s6965evb"}) {
    const auto b = compiler::find_board(name);
    ASSERT_TRUE(b.ok()) << name;
    EXPECT_GT(b->arena_bytes, 30000u);
    EXPECT_GT(b->clock_hz, 1000000u);
  }
  EXPECT_EQ(compiler::find_board("lm3s6965evb")->kernels, Kernels::kPlainC);
  EXPECT_EQ(compiler::find_board("mps2_an505")->kernels, Kernels::kDsp);
  EXPECT_EQ(compiler::other_board("cortex-m33+nodsp", 1000, 1)->kernels, Kernels::kPlainC);
  const auto none = compiler::find_board("mps9");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(std::string(none.status().message()).find("mps2_an505"), std::string::npos);
  EXPECT_FALSE(compiler::other_board("z80", 1000, 1).ok());
}

TEST(Fit, SaysItForPeopleAndPrograms) {
  const auto c = dense();
  const auto board = board_of(40000);
  const auto report = compiler::fit(c, "net.onnx", board, {});
  const std::string text = compiler::fit_text(c, board, {}, *report);
  EXPECT_NE(text.find("does not fit"), std::string::npos);
  EXPECT_NE(text.find("would fit: --trainable"), std::string::npos);
  const auto j = nlohmann::json::parse(compiler::fit_json(c, board, {}, *report));
  EXPECT_EQ(j["fits_streamed"], false);
  EXPECT_EQ(j["streamed"]["total"], report->streamed.total());
  EXPECT_EQ(j["layers"].size(), 3u);
}

}  // namespace
}  // namespace odt::test

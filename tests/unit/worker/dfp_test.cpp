#include "compiler/dfp.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/image_writer.h"
#include "data/derive.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

// A dense net of the 8-bit kind with shifts that differ by output.
compiler::Network network() {
  std::mt19937 random(5);
  const auto any = [&random](int lo, int hi) {
    return lo + static_cast<int>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  compiler::Network net;
  net.name = "two";
  net.input_shape = {40};
  const std::uint32_t sizes[] = {40, 20, 6};
  for (std::uint32_t n = 0; n < 2; ++n) {
    compiler::Layer l;
    l.relu = n == 0;
    l.trainable = true;
    l.clip_lo = n == 0 ? 0 : -128;
    l.clip_hi = n == 0 ? 255 : 127;
    l.in_shape = {sizes[n]};
    l.out_shape = {sizes[n + 1]};
    l.weight_shape = {sizes[n], sizes[n + 1]};
    for (std::uint32_t i = 0; i < sizes[n] * sizes[n + 1]; ++i)
      l.weights.push_back(static_cast<std::int8_t>(any(-100, 100)));
    for (std::uint32_t o = 0; o < sizes[n + 1]; ++o) {
      l.k.push_back(static_cast<std::uint8_t>(any(8, 10)));
      l.mult.push_back(static_cast<std::uint8_t>(any(1, 2)));
      l.offset.push_back(any(-9000, 9000) + (1 << (l.k.back() - 1)) / l.mult.back());
    }
    net.layers.push_back(l);
  }
  connect_chain(net);
  net.calibration.ce_scale = 60;
  net.calibration.target_correct.assign(6, 40);
  net.calibration.target_wrong.assign(6, -10);
  return net;
}

TEST(ToDfp16, IsTheSameFunctionOfTheInput) {
  const compiler::Network net = network();
  const auto dfp_net = compiler::to_dfp16(net);
  ASSERT_TRUE(dfp_net.ok()) << dfp_net.status();
  const auto dfp = compiler::write_image(*dfp_net);
  ASSERT_TRUE(dfp.ok()) << dfp.status();
  odt_run_spec_t spec = HostTrainer::inference_spec();
  spec.loss = ODT_LOSS_CE;
  const auto narrow = HostTrainer::create(*compiler::write_image(net), spec);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  const auto wide = HostTrainer::create(*dfp, HostTrainer::inference_spec(true));
  ASSERT_TRUE(wide.ok()) << wide.status();
  std::mt19937 random(6);
  int same = 0, all = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint8_t> x(40);
    for (auto& v : x) v = static_cast<std::uint8_t>(static_cast<std::int8_t>(random() % 255 - 127));
    std::int8_t a[6], b[6];
    ASSERT_EQ(odt_trainer_infer((*narrow)->get(), x.data(), a), ODT_OK);
    ASSERT_EQ(odt_trainer_infer((*wide)->get(), x.data(), b), ODT_OK);
    const auto best = std::max_element(a, a + 6);
    // Clips of the 8-bit net have no counterpart: look at samples that touch none.
    if (*best == 127) continue;
    ++all;
    same += best - a == std::max_element(b, b + 6) - b ? 1 : 0;
  }
  ASSERT_GT(all, 100);
  EXPECT_GT(same, all * 9 / 10) << same << " of " << all;
}

TEST(ToDfp16, NeedsAScaleOfTheLogits) {
  compiler::Network net = network();
  net.calibration.ce_scale = 0;
  EXPECT_FALSE(compiler::to_dfp16(net).ok());
}

}  // namespace
}  // namespace odt::worker

// That training learns, in seconds: pictures of six kinds, a network from nothing, then a sensor
// that turns its values round. How well it learns on real data is tests/bench/run.sh learn.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"

namespace odt::testing {
namespace {

constexpr int kClasses = 6, kSide = 6, kPixels = kSide * kSide;

NetSpec untrained_net() {
  Random r(5);
  const auto layer = [&r](OpKind kind, uint32_t outputs, uint32_t inputs, int8_t k, bool relu) {
    LayerSpec l;
    l.kind = kind;
    l.outputs = outputs;
    l.trainable = true;
    l.relu = relu;
    if (relu) l.clip_lo = 0, l.clip_hi = 255;
    for (uint32_t i = 0; i < inputs * outputs; i++) {
      l.weights.push_back(static_cast<int8_t>(r.range(-32, 32)));
    }
    l.offsets.assign(outputs, 1 << (k - 1));
    l.k.assign(outputs, k);
    return l;
  };
  NetSpec net;
  net.input_dims = {1, kSide, kSide};
  net.n_classes = kClasses;
  net.layers = {layer(OpKind::kConv2d, 3, 9, 6, true),
                {},
                layer(OpKind::kLinear, 24, 48, 7, true),
                layer(OpKind::kLinear, kClasses, 24, 8, false)};
  net.layers[0].k_h = net.layers[0].k_w = 3;
  net.layers[1].kind = OpKind::kFlatten;
  net.target_correct.assign(kClasses, 64);
  net.target_wrong.assign(kClasses, -16);
  net.ce_scale = 24;
  return net;
}

// A picture of its class: the class's pattern, a random brightness and noise.
std::vector<uint8_t> pictures(uint32_t seed, int n, bool inverted) {
  Random patterns(77), r(seed);
  std::vector<int> pattern;
  for (int i = 0; i < kClasses * kPixels; i++) pattern.push_back(patterns.chance(50) ? 70 : -70);
  std::vector<int8_t> labels;
  std::vector<uint8_t> data;
  for (int i = 0; i < n; i++) {
    labels.push_back(static_cast<int8_t>(r.range(0, kClasses - 1)));
    const int bright = r.range(-30, 30);
    for (int p = 0; p < kPixels; p++) {
      const int v = pattern[static_cast<size_t>(labels.back() * kPixels + p)] + bright;
      const int noisy = std::clamp(v + r.range(-90, 90), -127, 127);
      data.push_back(static_cast<uint8_t>(inverted ? -noisy : noisy));
    }
  }
  return build_samples(DType::kS8, kPixels, labels, data);
}

double accuracy(odt_trainer_t* t, const std::vector<uint8_t>& blob) {
  const odt_samples_t s = open_samples(blob);
  uint32_t correct = 0;
  uint64_t loss = 0;
  EXPECT_EQ(odt_trainer_eval(t, &s, 0, s.count, &correct, &loss, nullptr), ODT_OK);
  return static_cast<double>(correct) / s.count;
}

void train(Rig& rig, const std::vector<uint8_t>& blob) {
  const odt_samples_t s = open_samples(blob);
  odt_trainer_t* t = rig.trainer();
  odt_step_record_t step;
  odt_epoch_record_t epoch;
  while (!odt_trainer_done(t)) {
    while (!odt_trainer_epoch_complete(t)) {
      ASSERT_EQ(odt_trainer_step_resident(t, &s, &step, &rig.err), ODT_OK) << rig.err.what;
    }
    ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &epoch, &rig.err), ODT_OK);
    EXPECT_EQ(epoch.alarms & ODT_ALARM_DEAD_LAYER, 0u);
  }
}

struct Recipe {
  const char* name;
  uint8_t k, rounding, loss, shift_source;
  int8_t mu[3];
};
void PrintTo(const Recipe& r, std::ostream* out) { *out << r.name; }

class LearnTest : public ::testing::TestWithParam<Recipe> {
 protected:
  static odt_run_spec_t spec() {
    const Recipe& r = GetParam();
    odt_run_spec_t s = plain_spec(240, 8, 6);
    s.k = r.k;
    s.rounding = r.rounding;
    s.loss = r.loss;
    s.shift_source = r.shift_source;
    for (int i = 0; i < 3; i++) s.mu_weight[i] = r.mu[i];
    return s;
  }
};

TEST_P(LearnTest, FromNothingAndAfterTheSensorTurned) {
  const std::vector<uint8_t> image = build_image(untrained_net());
  const std::vector<uint8_t> train_set = pictures(1, 240, false), test = pictures(2, 300, false);
  const std::vector<uint8_t> turned = pictures(3, 240, true), turned_test = pictures(4, 300, true);
  Rig first(image);
  first.start(spec());
  EXPECT_LT(accuracy(first.trainer(), test), 0.4);
  train(first, train_set);
  EXPECT_GT(accuracy(first.trainer(), test), 0.95);

  Rig second(image);
  second.start(spec());
  const std::vector<uint8_t> weights = weights_of(first.trainer());
  ASSERT_EQ(odt_weights_write(second.trainer(), false, 0, weights.data(),
                              static_cast<uint32_t>(weights.size()), &second.err),
            ODT_OK);
  ASSERT_EQ(odt_weights_write_end(second.trainer(), false, &second.err), ODT_OK);
  EXPECT_LT(accuracy(second.trainer(), turned_test), 0.3);
  train(second, turned);
  EXPECT_GT(accuracy(second.trainer(), turned_test), 0.9);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, LearnTest,
    ::testing::Values(
        Recipe{"int8Mse", 8, ODT_ROUND_DEFAULT, ODT_LOSS_MSE, ODT_SHIFT_EXACT, {3, 2, 1}},
        Recipe{"int8Stale", 8, ODT_ROUND_DEFAULT, ODT_LOSS_MSE, ODT_SHIFT_STALE, {2, 2, 1}},
        Recipe{"int8Sr", 8, ODT_ROUND_SR, ODT_LOSS_MSE, ODT_SHIFT_EXACT, {3, 2, 1}},
        Recipe{"k15Ce", 15, ODT_ROUND_DEFAULT, ODT_LOSS_CE, ODT_SHIFT_EXACT, {2, 1, 0}},
        Recipe{"k15Mse", 15, ODT_ROUND_DEFAULT, ODT_LOSS_MSE, ODT_SHIFT_EXACT, {2, 1, 0}}),
    [](const ::testing::TestParamInfo<Recipe>& recipe) { return std::string(recipe.param.name); });

// Without these rules it does not learn: what the tests above show is no accident of the data.
TEST(LearnContrastTest, LiteralShiftWithAWideStepDoesNot) {
  odt_run_spec_t spec = plain_spec(240, 32, 6);
  spec.rule_set = ODT_RULE_NITI_LITERAL;
  for (int8_t& mu : spec.mu_weight) mu = 0;
  Rig rig(build_image(untrained_net()));
  rig.start(spec);
  train(rig, pictures(1, 240, false));
  EXPECT_LT(accuracy(rig.trainer(), pictures(2, 300, false)), 0.9);
}

}  // namespace
}  // namespace odt::testing

#include "training/policy.h"

#include <gtest/gtest.h>

#include "training/ram_fit.h"
#include "training/run_checks.h"

namespace odt::training {
namespace {

using model::HyperParams;

TEST(DriftTest, FiveSixthsOfTheSourceAccuracy) {
  EXPECT_EQ(judge_drift({19, 19}, {90, 100}), Drift::kStrong);  // too few to tell
  EXPECT_EQ(judge_drift({20, 20}, {90, 100}), Drift::kMild);
  EXPECT_EQ(judge_drift({74, 100}, {90, 100}), Drift::kStrong);
  EXPECT_EQ(judge_drift({75, 100}, {90, 100}), Drift::kMild);
  EXPECT_EQ(judge_drift({84, 100}, {}), Drift::kMild);
  EXPECT_EQ(judge_drift({83, 100}, {}), Drift::kStrong);
}

TEST(PolicyTest, AutoAsRuleNineteenSays) {
  const HyperParams asked;
  Placement place{15, policy_batch(asked, Drift::kStrong), false};
  auto strong = resolve(asked, Drift::kStrong, place, true, true);
  EXPECT_EQ(strong.mu_weight, (std::vector<std::int32_t>{1, -1, -3}));
  EXPECT_EQ(*strong.batch, 8u);
  EXPECT_EQ(*strong.k, 15u);
  EXPECT_EQ(*strong.mu_offset, -3);
  EXPECT_EQ(strong.rounding, model::Rounding::kHalfUp);
  EXPECT_EQ(strong.loss, model::LossKind::kCe);
  place.batch = policy_batch(asked, Drift::kMild);
  auto mild = resolve(asked, Drift::kMild, place, false, false);
  EXPECT_EQ(mild.mu_weight, (std::vector<std::int32_t>{-5, -6, -7}));
  EXPECT_EQ(*mild.batch, 32u);
  EXPECT_EQ(mild.loss, model::LossKind::kMse);
  EXPECT_FALSE(*mild.guard);  // nothing to guard with
  place = {8, 8, true};
  auto small = resolve(asked, Drift::kStrong, place, false, true);
  EXPECT_EQ(small.mu_weight, (std::vector<std::int32_t>{1, 0, -2}));
  EXPECT_EQ(small.rounding, model::Rounding::kSr);
  EXPECT_EQ(*small.dead_zone, 4u);
  EXPECT_TRUE(*small.streamed);
  EXPECT_EQ(resolve(asked, Drift::kMild, place, true, true).mu_weight,
            (std::vector<std::int32_t>{-4, -4, -4}));
}

TEST(PolicyTest, StaysWithinTheLimitsOfMu) {
  HyperParams asked;
  EXPECT_EQ(resolve(asked, Drift::kMild, {6, 32, false}, true, true).mu_weight,
            (std::vector<std::int32_t>{-2, -2, -2}));  // k 6, SR
  asked.rounding = model::Rounding::kHalfUp;
  EXPECT_EQ(resolve(asked, Drift::kStrong, {8, 8, false}, true, true).mu_weight,
            (std::vector<std::int32_t>{1, 0, 0}));
  asked = {};
  asked.rule_set = model::RuleSet::kNitiLiteral;
  const auto literal = resolve(asked, Drift::kMild, {8, 8, false}, false, true);
  EXPECT_EQ(literal.rounding, model::Rounding::kHalfUp);
  EXPECT_EQ(literal.mu_weight, (std::vector<std::int32_t>{0, 0, 0}));
  asked = {};
  asked.policy = model::Policy::kFixed;
  EXPECT_EQ(resolve(asked, Drift::kMild, {8, 8, false}, false, true).rounding,
            model::Rounding::kPsto);
}

TEST(PolicyTest, WhatIsAskedWins) {
  HyperParams asked;
  asked.mu_weight = {2};
  asked.batch = 5;
  asked.order_seed = 77;
  const auto got =
      resolve(asked, Drift::kMild, {15, policy_batch(asked, Drift::kMild), false}, true, true);
  EXPECT_EQ(got.mu_weight, (std::vector<std::int32_t>{2, 2, 2}));
  EXPECT_EQ(*got.batch, 5u);
  EXPECT_EQ(*got.order_seed, 77u);
}

TEST(RangeTest, MuWeightByRounding) {
  EXPECT_EQ(mu_weight_range(15, model::Rounding::kHalfUp, 8).low, -7);
  EXPECT_EQ(mu_weight_range(8, model::Rounding::kPsto, 8).low, -4);
  EXPECT_EQ(mu_weight_range(8, model::Rounding::kHalfUp, 8).low, 0);
  EXPECT_EQ(mu_weight_range(8, model::Rounding::kHalfUp, 1).high, 2);
  EXPECT_EQ(mu_weight_range(8, model::Rounding::kHalfUp, 2).high, 4);
}

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    parts.board.name = "m3-1";
    parts.board.max_batch = 64;
    parts.board.ram_bytes = 48 * 1024;
    parts.model.name = "fmnist";
    parts.model.image_bytes = 7000;
    parts.model.n_classes = 10;
    parts.model.input_shape = {196};
    parts.model.has_ce_scale = true;
    parts.model.ram_k8_bytes = 20000;
    parts.model.ram_k16_bytes = 30000;
    parts.dataset.name = "shifted";
    parts.dataset.shape = {14, 14};
    parts.dataset.n_classes = 10;
    parts.dataset.train = 600;
    parts.dataset.heldout = 200;
    parts.dataset.test = 1000;
  }
  std::string refusal(const HyperParams& asked) {
    const Status status = check_settings(parts, asked, nullptr);
    return status.ok() ? "" : std::string(status.message());
  }
  RunParts parts;
};

TEST_F(SettingsTest, ErrorsSayWhatAndWhichLimits) {
  HyperParams asked;
  asked.k = 8;
  asked.rounding = model::Rounding::kHalfUp;
  asked.mu_weight = {-1};
  EXPECT_EQ(refusal(asked),
            "mu_weight is -1; 0 to 4 are allowed (k 8, rounding HALF_UP, batch 32)");
  asked = {};
  asked.batch = 65;
  EXPECT_EQ(refusal(asked), "batch is 65; 1 to 64 are allowed (board m3-1)");
  asked = {};
  asked.k = 17;
  EXPECT_EQ(refusal(asked), "k is 17; 2 to 16 are allowed");
  asked = {};
  asked.mu_offset = -9;
  EXPECT_EQ(refusal(asked), "mu_offset is -9; -8 to 7 are allowed");
  asked = {};
  asked.mu_weight = {1, 2};
  EXPECT_EQ(refusal(asked), "mu_weight has 2 values; one (constant) or three (by thirds)");
  asked = {};
  asked.rule_set = model::RuleSet::kNitiLiteral;
  asked.k = 12;
  EXPECT_EQ(refusal(asked), "k is 12; 8 to 8 are allowed (NITI_LITERAL)");
  asked = {};
  asked.loss = model::LossKind::kCe;
  parts.model.has_ce_scale = false;
  EXPECT_NE(refusal(asked).find("no scale for cross-entropy"), std::string::npos);
}

TEST_F(SettingsTest, PrecisionPerLayer) {
  HyperParams asked;
  asked.policy = model::Policy::kFixed;
  asked.apt = model::AptMode::kQuarters;
  EXPECT_NE(refusal(asked).find("cannot do layer_k or apt"), std::string::npos) << refusal(asked);
  parts.board.caps = 0xFFF;
  parts.model.trainable_layers = 2;
  HyperParams guess;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok()) << refusal(asked);
  EXPECT_EQ(guess.k, 6u);
  EXPECT_EQ(guess.apt_k_max, 16u);
  EXPECT_EQ(guess.apt_t_min_q8, 77u);
  EXPECT_EQ(guess.apt_t_max_q8, 0u);
  EXPECT_EQ(guess.rounding, model::Rounding::kUnspecified) << "by each layer's k";
  parts.board.ram_bytes = 38 * 1024;  // room for int8 only
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok()) << refusal(asked);
  EXPECT_EQ(guess.apt_k_max, 8u);
  parts.board.ram_bytes = 48 * 1024;
  asked.apt_k_max = 5;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok()) << refusal(asked);
  EXPECT_EQ(guess.k, 5u);
  asked.k = 6;
  EXPECT_EQ(refusal(asked), "k is 6; 2 to 5 are allowed (apt_k_max)");
  asked = {};
  asked.layer_k = {0, 12};
  EXPECT_EQ(refusal(asked), "");
  asked.layer_k = {0, 12, 8};
  EXPECT_EQ(refusal(asked), "layer_k has 3 values; model 'fmnist' has 2 trainable layers");
  asked.layer_k = {0, 17};
  EXPECT_EQ(refusal(asked), "layer_k is 17; 2 to 16 are allowed (or 0: k)");
  asked = {};
  asked.apt = model::AptMode::kEpochs;
  asked.apt_t_max_q8 = 307;
  EXPECT_EQ(refusal(asked),
            "apt_t_max_q8 is 307; 308 to 65535 are allowed (or 0; at least 4 times apt_t_min_q8, "
            "77)");
  asked.apt_t_max_q8 = 308;
  EXPECT_EQ(refusal(asked), "");
  asked.rule_set = model::RuleSet::kNitiLiteral;
  EXPECT_EQ(refusal(asked), "layer_k or apt is given; it does not go with NITI_LITERAL");
  asked = {};
  asked.apt_t_min_q8 = 5;
  EXPECT_EQ(refusal(asked), "apt_t_min_q8 is given; it does not go with apt off");
}

TEST_F(SettingsTest, MuWhereKVariesIsThatOfAnyK) {
  parts.board.caps = 0xFFF;
  HyperParams asked;
  asked.apt_k_max = 12;
  asked.k = 6;
  asked.batch = 8;
  asked.mu_weight = {-4};
  EXPECT_EQ(refusal(asked), "");
  asked.mu_weight = {-5};
  EXPECT_EQ(refusal(asked),
            "mu_weight is -5; -4 to 4 are allowed (any k in reach, k 6, rounding default, batch "
            "8)");
  asked.apt_k_max = 16;
  EXPECT_EQ(refusal(asked), "");
}

TEST_F(SettingsTest, Dfp16) {
  parts.board.caps = 0xFFF;
  parts.board.ram_bytes = 256 * 1024;
  HyperParams asked;
  asked.policy = model::Policy::kFixed;
  asked.rule_set = model::RuleSet::kDfp16;
  EXPECT_EQ(refusal(asked), "rule_set is DFP16, but model 'fmnist' is an image for 8-bit integers");
  parts.model.arithmetic = 1;
  HyperParams guess;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok()) << refusal(asked);
  EXPECT_EQ(guess.k, 16u);
  EXPECT_EQ(guess.lr_m.size(), 3u);
  EXPECT_TRUE(guess.lr_s.has_value());
  EXPECT_EQ(guess.rounding, model::Rounding::kHalfUp);
  EXPECT_EQ(guess.loss, model::LossKind::kCe);
  asked.lr_m = {32768};
  EXPECT_EQ(refusal(asked), "lr_m is 32768; 1 to 32767 are allowed");
  asked.lr_m = {5};
  asked.lr_s = 41;
  EXPECT_EQ(refusal(asked), "lr_s is 41; 0 to 40 are allowed");
  asked.lr_s = 3;
  asked.k = 8;
  EXPECT_EQ(refusal(asked), "k is 8; 16 to 16 are allowed (DFP16)");
  asked = {};
  EXPECT_NE(refusal(asked).find("rule_set is NITI, but model"), std::string::npos);
  asked.lr_s = 3;
  EXPECT_EQ(refusal(asked), "lr_s is given; it does not go with rules other than DFP16");
}

TEST_F(SettingsTest, SamplesThatDoNotFitAreStreamed) {
  HyperParams asked;
  asked.policy = model::Policy::kFixed;
  HyperParams guess;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok());
  EXPECT_TRUE(*guess.streamed);
  EXPECT_EQ(*guess.k, 15u);
  parts.board.ram_bytes = 256 * 1024;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok());
  EXPECT_FALSE(*guess.streamed);
  parts.board.ram_bytes = 32 * 1024;
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok());
  EXPECT_EQ(*guess.k, 8u);
}

TEST_F(SettingsTest, TooBigSaysWhatWouldFit) {
  HyperParams asked;
  asked.k = 15;
  asked.streamed = false;
  const Status status = check_settings(parts, asked, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(reason_of(status), "BOARD_RAM");
  EXPECT_NE(remedy_of(status).find("k 15, batch 32, streamed"), std::string::npos)
      << remedy_of(status);
  EXPECT_NE(refusal(asked).find("board m3-1 has 49152"), std::string::npos) << refusal(asked);
  parts.board.ram_bytes = 8000;
  EXPECT_NE(remedy_of(check_settings(parts, {}, nullptr)).find("smaller model"), std::string::npos);
  EXPECT_NE(
      remedy_of(check_settings(parts, {}, nullptr)).find("k 8, batch 1, streamed still needs"),
      std::string::npos)
      << remedy_of(check_settings(parts, {}, nullptr));
}

TEST_F(SettingsTest, WhatTheFirmwareCannotDo) {
  HyperParams asked;
  asked.policy = model::Policy::kFixed;
  HyperParams guess;
  parts.board.ram_bytes = 1 << 20;
  parts.board.caps = 1u << 3;  // streamed only
  ASSERT_TRUE(check_settings(parts, asked, &guess).ok());
  EXPECT_TRUE(*guess.streamed);
  asked.streamed = false;
  EXPECT_EQ(reason_of(check_settings(parts, asked, nullptr)), "NO_CAPABILITY");
  asked.streamed.reset();
  asked.best_on_host = true;
  EXPECT_NE(refusal(asked).find("cannot do best_on_host"), std::string::npos) << refusal(asked);
  for (const std::uint32_t caps : {0u, 3u << 2}) {  // as firmware may be when the run begins
    parts.board.caps = caps;
    const auto none = placements(parts.model, parts.board, {40, 10}, asked, 8);
    EXPECT_EQ(reason_of(none.status()), "NO_CAPABILITY") << none.status();
    EXPECT_NE(std::string(none.status().message()).find("the best weights on the host"),
              std::string::npos);
  }
  parts.board.caps = 1u << 3;
  asked.best_on_host.reset();
  parts.board.max_layers = 4;
  parts.model.trainable_layers = 5;
  EXPECT_EQ(refusal(asked), "model 'fmnist' has 5 trainable layers; board m3-1 takes 4");
}

TEST_F(SettingsTest, ShapesAndClasses) {
  EXPECT_TRUE(check_shapes(parts.model, parts.dataset, true).ok());
  parts.dataset.shape = {28, 28};
  EXPECT_EQ(check_shapes(parts.model, parts.dataset, true).message(),
            "dataset 'shifted' has samples of shape 28x28 (784 values); model 'fmnist' takes 196 "
            "(196)");
  parts.dataset.shape = {196};
  parts.dataset.n_classes = 11;
  EXPECT_EQ(reason_of(check_shapes(parts.model, parts.dataset, true)), "CLASS_MISMATCH");
  parts.dataset.n_classes = 10;
  parts.dataset.test = 0;
  EXPECT_EQ(reason_of(check_shapes(parts.model, parts.dataset, true)), "NO_TEST_SPLIT");
  EXPECT_TRUE(check_shapes(parts.model, parts.dataset, false).ok());
}

}  // namespace
}  // namespace odt::training

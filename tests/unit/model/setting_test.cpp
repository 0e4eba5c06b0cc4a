#include <gtest/gtest.h>

#include "model/hyper_values.h"
#include "model/setting_rules.h"

namespace odt::model {
namespace {

Board board_of() {
  Board board;
  board.uid = BoardUid::from_bytes("12345678").value();
  board.name = "b1";
  board.board_type = "mps2_an505";
  board.labels = {{"site", "lab"}, {"target", "m33"}};
  return board;
}

Setting setting(SettingScope scope, const std::string& target, const std::string& key,
                const std::string& value, std::int64_t etag = 1) {
  Setting out;
  out.scope = scope;
  out.target = target;
  out.key = key;
  out.value = value;
  out.meta.etag = etag;
  if (scope == SettingScope::kBoard) out.board = board_of().uid;
  return out;
}

TEST(Settings, TheMostSpecificFirst) {
  const std::vector<Setting> all = {
      setting(SettingScope::kFleet, "", "batch", "1", 9),
      setting(SettingScope::kCohort, "site=lab", "batch", "3", 8),
      setting(SettingScope::kCohort, "target=m33", "batch", "4", 7),
      setting(SettingScope::kCohort, "site=lab,target=m33", "batch", "5", 1),
      setting(SettingScope::kCohort, "site=attic,target=m33", "batch", "6", 10),
      setting(SettingScope::kBoardType, "mps2_an505", "batch", "2", 10),
      setting(SettingScope::kBoardType, "sim", "batch", "7", 10),
      setting(SettingScope::kBoard, "", "k", "8"),
  };
  const auto found = settings_of(all, board_of());
  std::string order;
  for (const auto& s : found.at("batch")) order += s.value;
  EXPECT_EQ(order, "53421");
  EXPECT_EQ(found.at("k").front().value, "8");
  EXPECT_EQ(found.size(), 2u);
}

TEST(Settings, FillWhatARunDoesNotSay) {
  const std::vector<Setting> all = {
      setting(SettingScope::kFleet, "", "batch", "16"),
      setting(SettingScope::kFleet, "", "epochs", "4"),
      setting(SettingScope::kBoard, "", "mu_weight", "1/-1/-3"),
      setting(SettingScope::kFleet, "", "guard", "off"),
      setting(SettingScope::kFleet, "", "resume_deadline_s", "60"),
      setting(SettingScope::kFleet, "", "of_a_later_odtd", "1"),
      setting(SettingScope::kFleet, "", "rounding", "no such word"),
  };
  RunSpec spec;
  spec.hyper.epochs = 7;
  const auto taken = fill_from_settings(all, board_of(), spec);
  EXPECT_EQ(spec.hyper.epochs, 7u);
  EXPECT_EQ(spec.hyper.batch, 16u);
  EXPECT_EQ(spec.hyper.mu_weight, (std::vector<std::int32_t>{1, -1, -3}));
  EXPECT_EQ(spec.hyper.guard, false);
  EXPECT_EQ(spec.hyper.rounding, Rounding::kUnspecified);
  EXPECT_EQ(spec.resume_deadline_s, 60u);
  ASSERT_EQ(taken.size(), 4u);
  EXPECT_EQ(taken[0], (RunSetting{"batch", "16", SettingScope::kFleet, ""}));
  EXPECT_EQ(taken[2], (RunSetting{"mu_weight", "1/-1/-3", SettingScope::kBoard, "b1"}));
}

TEST(Settings, EveryKeyReadsWhatItWrites) {
  for (const auto& [key, learns] : hyper_keys()) {
    std::string value;
    HyperParams hyper;
    for (const char* tried :
         {"2", "1/2/3", "on", "fixed", "niti", "half-up", "ce", "exact", "epochs"})
      if (set_hyper(key, tried, hyper).ok()) value = tried;
    ASSERT_FALSE(value.empty()) << key;
    EXPECT_EQ(hyper_text(key, hyper), value) << key;
    HyperParams other;
    EXPECT_EQ(hyper_text(key, other), "") << key;
    EXPECT_FALSE(set_hyper(key, "nonsense", other).ok()) << key;
    EXPECT_EQ(other, HyperParams()) << key;
  }
  HyperParams none;
  EXPECT_FALSE(set_hyper("nonsense", "1", none).ok());
}

}  // namespace
}  // namespace odt::model

#pragma once

#include <string>

#include "model/common.h"

namespace odt::model {

enum class SettingScope : std::uint8_t {
  kUnspecified = 0,
  kFleet = 1,
  kBoardType = 2,
  kCohort = 3,
  kBoard = 4,
};

// A default for runs; the most specific scope wins.
struct Setting {
  SettingScope scope = SettingScope::kUnspecified;
  std::string target;  // board type or label query
  BoardUid board;      // of kBoard
  std::string key, value;
  Meta meta;
};

// A value that a run took from the settings.
struct RunSetting {
  std::string key, value;
  SettingScope scope = SettingScope::kUnspecified;
  std::string target;
  bool operator==(const RunSetting&) const = default;
};

}  // namespace odt::model

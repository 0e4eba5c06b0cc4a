#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"

namespace odt::model {

enum class ConsoleSource : std::uint8_t { kLog = 1, kRaw = 2, kHost = 3 };

// What a board printed, or what odtd has to say in its place.
struct ConsoleLine {
  std::uint64_t seq = 0;  // over all boards, in order of arrival; 0: not stored yet
  std::int64_t time_us = 0;
  BoardUid board_uid;
  ConsoleSource source = ConsoleSource::kLog;
  std::uint8_t level = 2;  // 0 trace .. 5 critical
  std::string text;        // sanitised, at most 256 bytes
};

}  // namespace odt::model

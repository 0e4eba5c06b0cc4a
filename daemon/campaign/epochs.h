#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/run.h"

namespace odt::campaign {

// The newest attempt's record of each epoch. Points into `epochs`.
inline std::map<std::uint32_t, const model::EpochResult*> newest_epochs(
    const std::vector<model::EpochResult>& epochs) {
  std::map<std::uint32_t, const model::EpochResult*> out;
  for (const auto& e : epochs) {
    const model::EpochResult*& at = out[e.epoch];
    if (at == nullptr || at->attempt <= e.attempt) at = &e;
  }
  return out;
}

}  // namespace odt::campaign

#pragma once

#include <cstdint>
#include <vector>

#include "campaign/epochs.h"

namespace odt::api {

struct EpochRange {
  std::uint32_t first_step = 0, last_step = 0;  // inclusive; last 0: to the end
  std::uint32_t most = 0;                       // 0: all
};

struct ChosenEpochs {
  std::vector<const model::EpochResult*> epochs;  // ascending; point into what was given
  std::uint32_t total = 0;                        // in the range
};

// Epochs that end within the range, each by its newest attempt; of more than `most` those at equal
// distances from the newest one back. Where nothing is asked for: every record as it is.
inline ChosenEpochs choose_epochs(const std::vector<model::EpochResult>& all,
                                  const EpochRange& range) {
  std::vector<const model::EpochResult*> in_range;
  if (range.first_step == 0 && range.last_step == 0 && range.most == 0) {
    for (const auto& epoch : all) in_range.push_back(&epoch);
    return {.epochs = in_range, .total = static_cast<std::uint32_t>(in_range.size())};
  }
  for (const auto& [number, epoch] : campaign::newest_epochs(all)) {
    if (epoch->step < range.first_step) continue;
    if (range.last_step != 0 && epoch->step > range.last_step) continue;
    in_range.push_back(epoch);
  }
  const std::size_t n = in_range.size(), most = range.most;
  ChosenEpochs out{.epochs = {}, .total = static_cast<std::uint32_t>(n)};
  if (most == 0 || n <= most) {
    out.epochs = std::move(in_range);
    return out;
  }
  for (std::size_t i = 1; i <= most; ++i) out.epochs.push_back(in_range[i * n / most - 1]);
  return out;
}

}  // namespace odt::api

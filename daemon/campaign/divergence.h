#pragma once

#include <vector>

#include "model/campaign.h"

// Where two runs with one start and one order of samples first differ, from what boards reported.
namespace odt::campaign {

struct Recorded {
  std::vector<model::TelemetryFrame> frames;  // ascending by step; gaps are passed over
  std::vector<model::EpochResult> epochs;     // of every attempt
};

// The first step at which both have a record and it differs: precision, bits, shift (layer by
// layer), then loss. Where no step does, the first epoch with different state hashes; where none
// does, whether both are as long. `settings` is not filled in.
model::TwinResult compare(const Recorded& a, const Recorded& b);

}  // namespace odt::campaign

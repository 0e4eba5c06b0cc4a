#pragma once

#include <cstdint>
#include <vector>

#include "model/library.h"
#include "model/run.h"

// Energy and memory of a run as the APT paper counts them (README.md), from what was recorded.
namespace odt::campaign {

struct AccountedEpoch {
  std::uint32_t epoch = 0, attempt = 0;
  model::Accuracy heldout;
  // MAC-bits of the epoch: sum over trained layers of MACs * bits, times the samples trained.
  std::uint64_t energy = 0, energy_fp32 = 0, energy_fixed16 = 0, energy_fixed8 = 0;
  std::uint64_t memory_bits = 0, memory_fp32_bits = 0;  // of the trained weights
  std::uint64_t resident_bytes = 0;
  std::vector<std::uint32_t> layer_k;
  std::vector<std::uint64_t> layer_gavg_q8;
  std::vector<std::uint32_t> layer_u_q8;
};
struct Accounting {
  std::vector<AccountedEpoch> epochs;  // the newest attempt's record of each
  std::uint64_t energy = 0, energy_fp32 = 0, energy_fixed16 = 0, energy_fixed8 = 0;
  std::uint64_t peak_memory_bits = 0, memory_fp32_bits = 0;
};

Accounting account(const model::Run& run, const model::Model& model,
                   const std::vector<model::EpochResult>& epochs);

}  // namespace odt::campaign

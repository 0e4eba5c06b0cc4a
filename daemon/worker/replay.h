#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "odt/odt.h"
#include "worker/train_pc.h"

namespace odt::worker {

// What a board reported, as far as it is known; zero hashes are not compared.
struct ReplayRequest {
  std::string image, train, heldout;  // ODTM, ODTS, ODTS or empty
  std::string start_weights;          // ODTW; empty: the image's
  odt_run_spec_t spec{};
  std::uint32_t rules_version = 0;  // 0: not known
  struct Epoch {
    std::uint32_t epoch = 0, step = 0;
    Hash state_hash;
  };
  std::vector<Epoch> epochs;
  struct Step {
    std::uint32_t step = 0;
    std::uint64_t loss = 0;
    std::uint32_t correct = 0;
  };
  std::vector<Step> steps;  // ascending
  struct Steer {
    std::uint32_t step = 0, layer = 0;
    std::uint8_t k = 0;
  };
  std::vector<Steer> steering;  // precisions that the host set (rule 1.12)
  Hash final_state_hash, final_weights_hash;
};

struct ReplayVerdict {
  bool equal = false;
  std::optional<std::uint32_t> first_different_epoch, first_different_step;
  Hash state_hash, weights_hash;  // of the host at the end
  Hash expected_state_hash;       // at the first difference, else at the end
  std::uint32_t epochs_compared = 0, steps_compared = 0;
  std::vector<Hash> epoch_hashes;  // of the host
};

// Runs the recorded run again with firmware/odt. Errors: FAILED_PRECONDITION (other rules_version,
// nothing to compare), INVALID_ARGUMENT (samples, spec, weights).
Result<ReplayVerdict> replay(const ReplayRequest& request, const data::Progress& progress);

}  // namespace odt::worker

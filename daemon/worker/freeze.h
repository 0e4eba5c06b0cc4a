#pragma once

#include <string>

#include "base/result.h"

namespace odt::worker {

// The frozen outputs of a whole set, as a board would compute them: ODTS with flags 2 and 4. A
// board trains and evaluates with them to the bits of `samples`. image: ODTM of the whole model.
// Errors: FAILED_PRECONDITION (no one tensor leads into the trainable part; the set is frozen
// already), UNIMPLEMENTED (DFP16), those of HostTrainer::create and HostSamples::open.
Result<std::string> freeze_samples(const std::string& image, const std::string& samples);

}  // namespace odt::worker

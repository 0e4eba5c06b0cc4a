#pragma once

#include <filesystem>

#include "jobs/work.h"

namespace odt::jobs {

// Path of a blob for the child; copied into the job's folder as `name` where the store has no
// files. NOT_FOUND: the blob is gone.
Result<std::string> blob_file(const WorkContext& context, const Hash& hash,
                              const std::string& name);

// The child's job file for a recorded run. Errors: NOT_FOUND (run, dataset, samples, blobs),
// FAILED_PRECONDITION (not ended).
Result<nlohmann::json> prepare_replay(const WorkContext& context, Uuid run);

}  // namespace odt::jobs

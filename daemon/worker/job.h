#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "data/import.h"

namespace odt::worker {

// A path of a job: empty, absolute, or from the folder `base`.
std::string job_path(const std::string& path, const std::string& base);

// Carries out one job (worker/README.md). `base`: folder that relative paths of the job start from.
// Returns the result object. Errors: of the job, or INVALID_ARGUMENT naming a missing field.
Result<nlohmann::json> run_job(const nlohmann::json& job, const std::string& base,
                               const data::Progress& progress);

}  // namespace odt::worker

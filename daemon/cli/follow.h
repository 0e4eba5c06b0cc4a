#pragma once

#include <string>

#include "base/result.h"

namespace odt::api::v1 {
class Job;
class Run;
}  // namespace odt::api::v1

namespace odt::cli {

class Context;

// Shows a run until it ends: a line a change of state and a line an epoch (JSON: an object a line),
// then the result. Survives restarts of odtd. Ctrl-C detaches; the run goes on.
// Errors: exit code 6 where the run FAILED or was CANCELLED, 130 after Ctrl-C, 3 where odtd stays
// away for 60 s.
Status follow_run(Context& context, const std::string& run_id);

// The result of a run for people.
void show_result(Context& context, const api::v1::Run& run);

// Waits for the end of a job with progress. Errors: as follow_run; a FAILED job's reason and
// remedy.
Result<api::v1::Job> wait_for_job(Context& context, const api::v1::Job& started);

}  // namespace odt::cli

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/library.h"
#include "store/store_thread.h"

// What each kind of job reads before its child starts and registers after it. A job's request_json
// says all; nothing else is kept between daemon starts.
namespace odt::jobs {

struct WorkContext {
  store::ControlThread& control;
  store::BlobStore& blobs;
  const Clock& clock;
  std::string folder;  // of this job
};

// Writes the child's job file (without "result") from the stored request. Blocks on the store.
// Errors: NOT_FOUND (a blob, dataset, model or run is gone), FAILED_PRECONDITION.
Result<nlohmann::json> prepare_work(const WorkContext& context, const model::Job& job);

// Takes the child's outputs into the blob store; fills job.result_key and job.result_json; returns
// the changes to commit with the job's success, except a run's verdict (see verdict_change).
Result<std::vector<store::Change>> register_work(const WorkContext& context,
                                                 const nlohmann::json& result, model::Job& job);

// DERIVE: frozen outputs of the same samples stay where the job made none; on the store thread, in
// the transaction of the job: one that made them may have ended meanwhile.
void keep_frozen(store::ControlStore& store, std::vector<store::Change>& changes);

// REPLAY: the run with its verdict; on the store thread, in the transaction of the job.
Result<store::Change> verdict_change(store::ControlStore& store, const model::Job& job);

}  // namespace odt::jobs

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "jobs/job_control.h"
#include "store/store_thread.h"

namespace odt::jobs {

// RLIMIT_AS of a child; AddressSanitizer needs terabytes of address space.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::uint64_t kWorkerMemoryLimit_bytes = 0;
#else
inline constexpr std::uint64_t kWorkerMemoryLimit_bytes = std::uint64_t{4} << 30;
#endif

struct JobRunnerOptions {
  std::string data_dir;     // work folders are <data_dir>/jobs/<job id>; removed when a job ends
  std::string worker_path;  // odt-worker
  int max_parallel = 2;     // children at once; the rest waits in order of arrival
  std::chrono::seconds deadline{900};                           // per job, wall time
  std::uint64_t memory_limit_bytes = kWorkerMemoryLimit_bytes;  // 0: none
};

// Queue of jobs; each runs in a child odt-worker with limits, and its results are registered in the
// commit that makes the job SUCCEEDED.
//
// Operation: PutJob(QUEUED) -> child -> PutJob(RUNNING, at most 4 a second) -> results as blobs ->
// one commit {PutModel | PutDataset | PutDerived | UpdateRun, PutJob}. A crash, a limit or the
// deadline is a FAILED job. A model's manifest is the blob named by the setting
// manifest_setting(hash).
// request_id: the response remembered in the store is the job id's 16 bytes.
//
// Concurrency: any thread may call; `done` comes on a store or runner thread. One thread per
// running child.
class JobRunner final : public JobControl {
 public:
  JobRunner(store::ControlThread& control, store::BlobStore& blobs, const Clock& clock,
            JobRunnerOptions options);
  ~JobRunner() override;  // stop()

  // Takes up jobs that an earlier daemon left: QUEUED ones again, RUNNING ones once more and FAILED
  // (DAEMON_STOPPED) the second time. Blocks on the store. Errors: NOT_FOUND (worker_path), those
  // of the store.
  Status start();
  // Ends running children; their jobs are taken up by the next start(). Idempotent.
  void stop();

  void add_model(CallContext ctx, Hash onnx_blob, std::string name, std::uint32_t trainable_layers,
                 CompileChoice choice, Done<model::Job> done) override;
  void import_dataset(CallContext ctx, ImportOptions options, ImportBlobs blobs,
                      Done<model::Job> done) override;
  // With a name also compiles the ONNX and adds the model; result_key is then the model hash,
  // otherwise the blob hash of the ONNX file.
  void train_on_pc(CallContext ctx, TrainOnPcOptions options, Done<model::Job> done) override;
  // FAILED_PRECONDITION where the run has not ended. result_json: {"equal",
  // "first_different_epoch", "first_different_step", "state_hash", "expected_state_hash",
  // "rules_version"}.
  void replay(CallContext ctx, Uuid run, Done<model::Job> done) override;
  void export_onnx(CallContext ctx, Hash snapshot, bool exact, Done<model::Job> done) override;
  void cancel(CallContext ctx, Uuid job, Done<model::Job> done) override;
  void derive(CallContext ctx, Uuid dataset, Hash model, Done<model::DerivedSamples> done) override;
  void freeze(CallContext ctx, Uuid dataset, Hash model, Done<model::DerivedSamples> done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Key of the setting that holds the blob hash (hex) of a model's manifest.
std::string manifest_setting(const Hash& model);

}  // namespace odt::jobs

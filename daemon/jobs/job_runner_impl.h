#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "jobs/job_runner.h"
#include "jobs/work.h"

// Inside of the runner: job_runner.cpp takes jobs, job_execution.cpp runs them.
namespace odt::jobs {

using model::Job;
using nlohmann::json;
using store::ControlStore;

inline std::string text_of(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}
inline store::Batch one_change(store::Change change) {
  store::Batch batch;
  batch.changes.push_back(std::move(change));
  return batch;
}

struct JobRunner::Impl {
  using DeriveKey = std::tuple<Hash, Hash, bool>;  // content, model, frozen outputs too
  struct Running {
    std::atomic<bool> stop{false};
    std::atomic<bool> cancelled{false};
    std::chrono::steady_clock::time_point last_progress{};  // of the running thread
  };

  store::ControlThread& control;
  store::BlobStore& blobs;
  const Clock& clock;
  const JobRunnerOptions options;

  std::mutex mutex;
  std::condition_variable wake;
  bool started = false, stopping = false;
  std::deque<Job> queue;
  std::map<Uuid, std::shared_ptr<Running>> running;
  std::map<DeriveKey, std::vector<Done<model::DerivedSamples>>> waiters;
  std::map<Uuid, DeriveKey> derive_jobs;
  std::vector<std::thread> threads;

  Impl(store::ControlThread& c, store::BlobStore& b, const Clock& k, JobRunnerOptions o)
      : control(c), blobs(b), clock(k), options(std::move(o)) {}

  std::string folder_of(const Uuid& id) const { return options.data_dir + "/jobs/" + id.hex(); }

  // ---- taking jobs --------------------------------------------------------------------------

  // On the store thread: makes `job` durable and queues it, or answers with the job that the same
  // request made before.
  Result<Job> submit(ControlStore& s, const CallContext& ctx, Job job);

  void enqueue(Job job);

  void submit_later(CallContext ctx, Job::Kind kind, json request,
                    std::function<Status(ControlStore&)> check, Done<Job> done);

  Status need_blob(const Hash& hash, const std::string& what);

  // Cached samples, or a place among those who wait for the job that makes them.
  void derive_on_store(ControlStore& s, const CallContext& ctx, Uuid dataset, Hash model,
                       bool frozen, const Done<model::DerivedSamples>& done);
  void derive_later(CallContext ctx, Uuid dataset, Hash model, bool frozen,
                    Done<model::DerivedSamples> done);

  bool all_there(const model::DerivedSamples& d, bool frozen);

  // ---- running them -------------------------------------------------------------------------

  void loop();

  void put(Job job);

  void run(Job job, Running& state);

  // OK: the job's end is committed, or left to the next start.
  Status carry_out(const WorkContext& context, Job& job, Running& state);

  void progress(Job& job, Running& state, const std::string& line);

  Status succeed(Job job, std::vector<store::Change> changes);

  void fail(Job job, model::Reason reason);

  void end_job(Job job, Job::State state, const std::string& message, model::Reason reason);

  // Answers those who wait for derived samples.
  void finished(const Job& job, const Status& status);

  // ---- starting and stopping ----------------------------------------------------------------

  // Jobs that an earlier daemon left, oldest first.
  Result<std::vector<Job>> leftovers();

  void take_up(Job job);
};

}  // namespace odt::jobs

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>

#include "jobs/job_runner.h"
#include "store/fs_blob_store.h"
#include "store/memory_store.h"

namespace odt::test {

// A job runner over a memory store and blobs in a temporary folder.
class JobFixture : public testing::Test, public store::CommitObserver {
 protected:
  JobFixture() {
    char name[] = "/tmp/odt-jobs-XXXXXX";
    folder_ = ::mkdtemp(name);
    auto blobs = store::FsBlobStore::open(folder_ + "/blobs");
    EXPECT_TRUE(blobs.ok()) << blobs.status();
    blobs_ = *std::move(blobs);
    control_ =
        std::make_unique<store::ControlThread>(std::make_unique<store::MemoryControlStore>(clock_));
    control_->add_observer(this);
  }
  ~JobFixture() override {
    runner_.reset();
    control_.reset();
    std::filesystem::remove_all(folder_);
  }

  void start(const std::string& worker = ODT_WORKER_PATH,
             std::chrono::seconds deadline = std::chrono::seconds(60), int parallel = 2) {
    jobs::JobRunnerOptions options;
    options.data_dir = folder_;
    options.worker_path = worker;
    options.deadline = deadline;
    options.max_parallel = parallel;
    runner_ = std::make_unique<jobs::JobRunner>(*control_, *blobs_, clock_, options);
    const Status st = runner_->start();
    ASSERT_TRUE(st.ok()) << st;
  }

  // A worker that runs `body` in sh; $1 is the job file.
  std::string script(const std::string& body) {
    const std::string path = folder_ + "/worker.sh";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  Hash blob(const std::string& content) { return *blobs_->put(content); }

  template <typename T>
  static Result<T> wait(const std::function<void(Done<T>)>& call) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    call([promise](Result<T> r) { promise->set_value(std::move(r)); });
    if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
      return absl::DeadlineExceededError("no answer within 30 s");
    return future.get();
  }

  // The job in its last state.
  model::Job ended(const Result<model::Job>& job) {
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return {};
    std::unique_lock lock(mutex_);
    const bool over = wake_.wait_for(lock, std::chrono::seconds(30),
                                     [&] { return static_cast<int>(seen_[job->id].state) >= 3; });
    EXPECT_TRUE(over) << "job is still in state " << static_cast<int>(seen_[job->id].state);
    return seen_[job->id];
  }
  bool wait_state(const Uuid& id, model::Job::State state) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, std::chrono::seconds(30), [&] { return seen_[id].state == state; });
  }

  void on_events(const std::vector<model::Event>& events, std::int64_t) override {
    const std::lock_guard lock(mutex_);
    for (const auto& e : events)
      if (const auto* job = std::get_if<model::Job>(&e.body)) seen_[job->id] = *job;
    wake_.notify_all();
  }
  void on_telemetry(const std::vector<model::TelemetryFrame>&) override {}

  SystemClock clock_;
  std::string folder_;
  std::unique_ptr<store::FsBlobStore> blobs_;
  std::unique_ptr<store::ControlThread> control_;
  std::unique_ptr<jobs::JobRunner> runner_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Uuid, model::Job> seen_;
};

}  // namespace odt::test

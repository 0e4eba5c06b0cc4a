#include "jobs/job_runner.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "job_fixture.h"
#include "worker/host_model.h"

namespace odt::test {
namespace {

using model::Job;
using testing::HasSubstr;

// Two classes that one line tells apart.
std::string csv(int rows) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < rows; ++i) {
    const int x = i * 37 % 101, y = i * 53 % 97;
    text += std::to_string(x) + "," + std::to_string(y) + "," + (x > y ? "over" : "under") + "\n";
  }
  return text;
}

class JobRunnerTest : public JobFixture {
 protected:
  Result<Job> import_csv(const std::string& text, const std::string& request_id = "") {
    return wait<Job>([&](Done<Job> done) {
      jobs::ImportOptions o;
      o.name = "points";
      o.format = "csv";
      o.train = 200;
      o.heldout = 50;
      o.test = 50;
      o.seed = 3;
      jobs::ImportBlobs b;
      b.data = blob(text);
      CallContext ctx;
      ctx.request_id = request_id;
      runner_->import_dataset(ctx, o, b, done);
    });
  }
  model::Dataset dataset() {
    const Job job = ended(import_csv(csv(400)));
    EXPECT_EQ(job.state, Job::State::kSucceeded) << job.reason.text;
    const Uuid id = *Uuid::from_bytes(std::string(job.result_key.begin(), job.result_key.end()));
    return *control_->call_sync([id](store::ControlStore& s) { return s.dataset(id); });
  }
  model::Model trained(const model::Dataset& d) {
    const Job job = ended(wait<Job>([&](Done<Job> done) {
      runner_->train_on_pc({}, {d.id, {8}, false, 6, 1, "points"}, done);
    }));
    EXPECT_EQ(job.state, Job::State::kSucceeded) << job.reason.text;
    const Hash hash = *Hash::from_bytes(std::string(job.result_key.begin(), job.result_key.end()));
    auto m = control_->call_sync([hash](store::ControlStore& s) { return s.model(hash); });
    EXPECT_TRUE(m.ok()) << m.status();
    return m.ok() ? *m : model::Model{};
  }
  Result<model::DerivedSamples> derive(const model::Dataset& d, const model::Model& m) {
    return wait<model::DerivedSamples>(
        [&](Done<model::DerivedSamples> done) { runner_->derive({}, d.id, m.hash, done); });
  }
  std::size_t jobs_of(Job::Kind kind) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(seen_.begin(), seen_.end(), [&](auto& j) { return j.second.kind == kind; }));
  }
};

TEST_F(JobRunnerTest, ImportRegistersADatasetWithItsBlob) {
  start();
  const model::Dataset d = dataset();
  EXPECT_EQ(d.name, "points");
  EXPECT_EQ(d.train, 200u);
  EXPECT_EQ(d.heldout, 50u);
  EXPECT_EQ(d.test, 50u);
  EXPECT_EQ(d.dtype, "u8");
  EXPECT_EQ(d.class_names, (std::vector<std::string>{"over", "under"}));
  EXPECT_TRUE(blobs_->has(d.content_hash));
  runner_.reset();  // the folder goes after the commit
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/jobs"));
}

TEST_F(JobRunnerTest, BadInputIsOneFailedJobWithItsPlace) {
  start();
  const Job job = ended(import_csv("a,b,label\n1,2,x\n3,abc,y\n"));
  EXPECT_EQ(job.state, Job::State::kFailed);
  EXPECT_EQ(job.reason.code, "INVALID_ARGUMENT");
  EXPECT_THAT(job.reason.text, HasSubstr("line 3, column 1 (b): 'abc' is not a number"));
  const auto all =
      control_->call_sync([](store::ControlStore& s) { return s.datasets(store::ListQuery{}); });
  EXPECT_TRUE(all->items.empty());
}

TEST_F(JobRunnerTest, TrainingAddsAModelThatCompilesAndDerives) {
  start();
  const model::Dataset d = dataset();
  const model::Model m = trained(d);
  EXPECT_EQ(m.name, "points");
  EXPECT_EQ(m.trainable_layers, 2u);
  EXPECT_EQ(m.source_accuracy.total, 50u);
  EXPECT_GE(m.source_accuracy.correct, 40u);
  EXPECT_GT(m.ram_k16_bytes, m.ram_k8_bytes);
  EXPECT_EQ(m.ram_k8_bytes, 2 * m.ram.weights_k8 + m.ram.work_8);
  EXPECT_EQ(m.ram_k16_bytes, 2 * m.ram.weights_k16 + m.ram.work_8);
  EXPECT_LT(m.ram.work_1, m.ram.work_4);
  EXPECT_GT(m.ram.work_per_8, 0u);
  ASSERT_EQ(m.layers.size(), 2u);
  EXPECT_EQ(m.layers[0].kind, "LINEAR_RELU");
  // The ONNX blob gives the same image through a compile job.
  const Job job = ended(wait<Job>(
      [&](Done<Job> done) { runner_->add_model({}, m.onnx_hash, "points", 0, {}, done); }));
  EXPECT_EQ(job.state, Job::State::kSucceeded) << job.reason.text;
  EXPECT_EQ(std::string(job.result_key.begin(), job.result_key.end()), m.hash.str());

  const auto samples = derive(d, m);
  ASSERT_TRUE(samples.ok()) << samples.status();
  for (const Hash* h : {&samples->train, &samples->heldout, &samples->test})
    EXPECT_TRUE(blobs_->has(*h));
  const auto again = derive(d, m);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->sample_set_hash, samples->sample_set_hash);
  EXPECT_EQ(jobs_of(Job::Kind::kDerive), 1u) << "the second call is answered from the cache";
}

// A run as a board would have recorded it, made with the firmware library.
struct RecordedRun {
  model::Run run;
  std::vector<model::EpochResult> epochs;
};

RecordedRun record(store::BlobStore& blobs, const model::Dataset& d, const model::Model& m,
                   const model::DerivedSamples& s) {
  RecordedRun r;
  odt_run_spec_t spec = worker::HostTrainer::inference_spec();
  spec.loss = ODT_LOSS_CE;
  spec.k = 15;
  spec.batch = 8;
  spec.epochs = 3;
  spec.mu_weight[1] = -1;
  spec.mu_weight[2] = -3;
  spec.mu_offset = -3;
  spec.train_samples = d.train;
  spec.heldout_samples = d.heldout;
  spec.order_seed = 7;
  spec.guard = true;
  std::copy(s.sample_set_hash.bytes.begin(), s.sample_set_hash.bytes.end(), spec.sample_set_hash);
  auto host = *worker::HostTrainer::create(*blobs.get(m.hash), spec);
  const auto train = *worker::HostSamples::open(*blobs.get(s.train), host->model());
  const auto heldout = *worker::HostSamples::open(*blobs.get(s.heldout), host->model());
  const auto eval = [&] {
    std::uint32_t correct = 0;
    std::uint64_t loss = 0;
    odt_trainer_eval(host->get(), &heldout.get(), 0, d.heldout, &correct, &loss, nullptr);
    return correct;
  };
  odt_trainer_set_start(host->get(), eval(), d.heldout);
  r.run.id = new_uuid();
  for (std::uint32_t e = 0; e < 3; ++e) {
    odt_error_t error{};
    odt_step_record_t step{};
    while (!odt_trainer_epoch_complete(host->get()))
      odt_trainer_step_resident(host->get(), &train.get(), &step, &error);
    odt_epoch_record_t rec{};
    odt_trainer_end_epoch(host->get(), eval(), d.heldout, &rec, &error);
    model::EpochResult epoch;
    epoch.run_id = r.run.id;
    epoch.attempt = 1;
    epoch.epoch = e;
    std::copy(std::begin(rec.state_hash), std::end(rec.state_hash), epoch.state_hash.bytes.begin());
    r.epochs.push_back(epoch);
  }
  odt_state_hash(host->get(), r.run.final_state_hash.bytes.data());
  odt_weights_hash(host->get(), false, r.run.final_weights_hash.bytes.data());
  r.run.spec.model_hash = m.hash;
  r.run.spec.dataset_id = d.id;
  r.run.train_samples = d.train;
  r.run.rules_version = ODT_RULES_VERSION;
  model::HyperParams& h = r.run.effective;
  h.rule_set = model::RuleSet::kNiti;
  h.loss = model::LossKind::kCe;
  h.shift_source = model::ShiftSource::kExact;
  h.mu_weight = {0, -1, -3};
  h.mu_offset = -3;
  h.dead_zone = 0;
  h.k = 15;
  h.batch = 8;
  h.epochs = 3;
  h.order_seed = 7;
  h.sr_seed = 0;
  h.guard = true;
  return r;
}

store::Batch batch(store::Change change) {
  store::Batch b;
  b.changes.push_back(std::move(change));
  return b;
}

void keep(store::ControlStore& s, const RecordedRun& r) {
  using State = model::RunState;
  ASSERT_TRUE(s.commit(batch(store::CreateRun{r.run, "test"})).ok());
  State from = State::kQueued;
  for (const State to : {State::kPreparing, State::kRunning, State::kSucceeded}) {
    model::Run run = r.run;
    run.state = to;
    model::RunEvent event;
    event.run_id = run.id;
    event.from = from;
    event.to = to;
    const auto st = s.commit(batch(store::TransitionRun{run, event}));
    ASSERT_TRUE(st.ok()) << st.status();
    from = to;
  }
  for (const auto& e : r.epochs) ASSERT_TRUE(s.commit(batch(store::AppendEpoch{e})).ok());
}

TEST_F(JobRunnerTest, ReplaySetsTheVerdictOfTheRun) {
  start();
  const model::Dataset d = dataset();
  const model::Model m = trained(d);
  const auto samples = derive(d, m);
  ASSERT_TRUE(samples.ok()) << samples.status();
  RecordedRun good = record(*blobs_, d, m, *samples);
  RecordedRun bad = good;
  bad.run.id = new_uuid();
  for (auto& e : bad.epochs) e.run_id = bad.run.id;
  bad.epochs[1].state_hash.bytes[0] ^= 1;
  for (const RecordedRun* r : {&good, &bad}) {
    control_->call_sync([r](store::ControlStore& s) { return keep(s, *r), 0; });
    const Job job = ended(wait<Job>([&](Done<Job> done) { runner_->replay({}, r->run.id, done); }));
    ASSERT_EQ(job.state, Job::State::kSucceeded) << job.reason.text;
    const auto run = control_->call_sync([r](store::ControlStore& s) { return s.run(r->run.id); });
    const auto result = nlohmann::json::parse(job.result_json);
    if (r == &good) {
      EXPECT_EQ(run->replay, model::ReplayVerdict::kEqual) << job.result_json;
      EXPECT_EQ(result["epochs_compared"], 3);
    } else {
      EXPECT_EQ(run->replay, model::ReplayVerdict::kDifferent) << job.result_json;
      EXPECT_EQ(result["first_different_epoch"], 1);
    }
  }
}

TEST_F(JobRunnerTest, MissingInputsAreRefusedBeforeAJobIsMade) {
  start();
  Hash nothing;
  nothing.bytes[0] = 1;
  EXPECT_EQ(wait<Job>([&](Done<Job> done) { runner_->add_model({}, nothing, "m", 0, {}, done); })
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(wait<Job>([&](Done<Job> done) {
              runner_->train_on_pc({}, {new_uuid(), {}, false, 0, 0, {}}, done);
            })
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(
      wait<Job>([&](Done<Job> done) { runner_->replay({}, new_uuid(), done); }).status().code(),
      absl::StatusCode::kNotFound);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(JobRunnerTest, RepeatedRequestIsOneJob) {
  start();
  const auto first = import_csv(csv(400), "request-1");
  const auto second = import_csv(csv(400), "request-1");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->id, second->id);
  ended(first);
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(JobRunnerTest, ACrashIsAFailedJobWithItsSignal) {
  start(script("echo oops >&2; kill -SEGV $$"));
  const Job job = ended(import_csv(csv(400)));
  EXPECT_EQ(job.state, Job::State::kFailed);
  EXPECT_EQ(job.reason.code, "WORKER_CRASHED");
  EXPECT_THAT(job.reason.text, HasSubstr("signal 11"));
  EXPECT_THAT(job.reason.text, HasSubstr("oops"));
}

TEST_F(JobRunnerTest, AResultThatIsNotThereIsAFailedJob) {
  start(script("exit 0"));
  EXPECT_EQ(ended(import_csv(csv(400))).reason.code, "WORKER_FAILED");
}

TEST_F(JobRunnerTest, TheDeadlineEndsTheChildAndItsChildren) {
  start(script("sleep 600 & sleep 600"), std::chrono::seconds(1));
  const Job job = ended(import_csv(csv(400)));
  EXPECT_EQ(job.state, Job::State::kFailed);
  EXPECT_EQ(job.reason.code, "DEADLINE_EXCEEDED");
}

TEST_F(JobRunnerTest, CancelEndsRunningAndQueuedJobs) {
  start(script("exec sleep 600"), std::chrono::seconds(60), 1);
  const auto running = import_csv(csv(400));
  ASSERT_TRUE(running.ok());
  ASSERT_TRUE(wait_state(running->id, Job::State::kRunning));
  const auto queued = import_csv(csv(400));
  ASSERT_TRUE(queued.ok());
  const auto cancelled = wait<Job>([&](Done<Job> done) { runner_->cancel({}, queued->id, done); });
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state, Job::State::kCancelled);
  ASSERT_TRUE(wait<Job>([&](Done<Job> done) { runner_->cancel({}, running->id, done); }).ok());
  EXPECT_EQ(ended(running).state, Job::State::kCancelled);
  EXPECT_EQ(
      wait<Job>([&](Done<Job> done) { runner_->cancel({}, running->id, done); }).status().code(),
      absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobRunnerTest, ProgressReachesTheJob) {
  start(script("echo '{\"progress\":420,\"message\":\"half\\u001b way\"}'; sleep 1; exit 3"));
  const auto job = import_csv(csv(400));
  ASSERT_TRUE(job.ok());
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(wake_.wait_for(lock, std::chrono::seconds(10), [&] {
    return seen_[job->id].progress_permille == 420 && seen_[job->id].message == "half  way";
  }));
}

TEST_F(JobRunnerTest, JobsOfAStoppedDaemonAreTakenUpOnce) {
  start(script("exec sleep 600"), std::chrono::seconds(60), 1);
  const auto first = import_csv(csv(400));
  ASSERT_TRUE(wait_state(first->id, Job::State::kRunning));
  const auto second = import_csv(csv(400));
  runner_.reset();
  EXPECT_EQ(seen_[first->id].state, Job::State::kRunning) << "left for the next daemon";
  start();  // now with the real worker
  EXPECT_EQ(ended(first).state, Job::State::kSucceeded);
  EXPECT_EQ(ended(second).state, Job::State::kSucceeded);
}

TEST_F(JobRunnerTest, AJobThatStopsTheDaemonTwiceFails) {
  const std::string hangs = script("exec sleep 600");
  start(hangs);
  const auto job = import_csv(csv(400));
  for (int n = 0; n < 2; ++n) {
    ASSERT_TRUE(wait_state(job->id, Job::State::kRunning));
    runner_.reset();
    {
      const std::lock_guard lock(mutex_);
      if (n == 0) seen_[job->id].state = Job::State::kQueued;
    }
    start(hangs);
  }
  const Job end = ended(job);
  EXPECT_EQ(end.state, Job::State::kFailed);
  EXPECT_EQ(end.reason.code, "DAEMON_STOPPED");
}

TEST_F(JobRunnerTest, AMissingWorkerIsFoundAtTheStart) {
  jobs::JobRunner runner(*control_, *blobs_, clock_, {folder_, folder_ + "/no-worker"});
  const Status st = runner.start();
  EXPECT_EQ(st.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(st.message()), HasSubstr("no-worker"));
}

TEST_F(JobRunnerTest, StopAnswersThoseWhoWaitForSamples) {
  start();
  const model::Dataset d = dataset();
  const model::Model m = trained(d);
  runner_.reset();
  start(script("exec sleep 600"));
  auto promise = std::make_shared<std::promise<Status>>();
  runner_->derive({}, d.id, m.hash, [promise](auto r) { promise->set_value(r.status()); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (jobs_of(Job::Kind::kDerive) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  runner_.reset();
  EXPECT_EQ(promise->get_future().get().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace odt::test

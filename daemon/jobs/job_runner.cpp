#include "jobs/job_runner.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "jobs/child.h"
#include "jobs/work.h"

namespace odt::jobs {
namespace {

namespace fs = std::filesystem;
using model::Job;
using nlohmann::json;
using store::ControlStore;

constexpr std::chrono::milliseconds kProgressEvery{250};
constexpr std::size_t kMaxMessage = 200, kMaxReason = 2000;
constexpr int kMaxRestarts = 1;

std::string text_of(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Worker text reaches logs and terminals: one printable line.
std::string printable(const std::string& text, std::size_t limit) {
  std::string out;
  for (char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) >= ' ' && c != 127 ? c : ' ';
  return out;
}

model::Reason reason_of(const Status& status) {
  const std::string text(status.message());
  return {absl::StatusCodeToString(status.code()), text, ""};
}

bool is_over(Job::State s) { return s != Job::State::kQueued && s != Job::State::kRunning; }

model::Reason crash_reason(const ChildEnd& end, std::chrono::seconds deadline) {
  if (end.kind == ChildEnd::Kind::kDeadline)
    return {"DEADLINE_EXCEEDED", absl::StrCat("the job took longer than ", deadline.count(), " s"),
            "use less data or fewer epochs, or raise the limit of jobs"};
  if (end.kind == ChildEnd::Kind::kSignal)
    return {"WORKER_CRASHED",
            absl::StrCat("odt-worker ended by signal ", end.code, " (", ::strsignal(end.code), ")",
                         end.error.empty() ? "" : ": ", end.error),
            "the daemon goes on; report this with the input file"};
  return {"WORKER_FAILED",
          absl::StrCat("odt-worker ended with code ", end.code, " and no result",
                       end.error.empty() ? "" : ": ", end.error),
          end.code == 127 ? "check that odt-worker is installed beside odtd" : ""};
}

}  // namespace

struct JobRunner::Impl {
  using DeriveKey = std::pair<Hash, Hash>;  // content, model
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
  Result<Job> submit(ControlStore& s, const CallContext& ctx, Job job) {
    if (!ctx.request_id.empty()) {
      if (auto known = s.find_request(ctx.actor, ctx.request_id); known.ok()) {
        Uuid id;
        ODT_ASSIGN(id, Uuid::from_bytes(*known));
        return s.job(id);
      }
    }
    if (job.id.is_zero()) job.id = new_uuid();
    job.state = Job::State::kQueued;
    job.message = "queued";
    job.meta.created_by = ctx.actor;
    job.meta.create_time_us = clock.now_us();
    store::Batch batch;
    batch.changes = {store::PutJob{job}};
    batch.actor = ctx.actor;
    batch.command_id = ctx.command_id;
    batch.request_id = ctx.request_id;
    batch.response = job.id.str();
    ODT_TRY(s.commit(std::move(batch)));
    enqueue(job);
    return s.job(job.id);
  }

  void enqueue(Job job) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(job));
    wake.notify_one();
  }

  void submit_later(CallContext ctx, Job::Kind kind, json request,
                    std::function<Status(ControlStore&)> check, Done<Job> done) {
    Job job;
    job.kind = kind;
    job.request_json = text_of(request);
    const bool posted = control.post(
        [this, ctx, job = std::move(job), check = std::move(check), done](ControlStore& s) {
          if (Status st = check(s); !st.ok()) return done(st);
          done(submit(s, ctx, job));
        });
    if (!posted) done(absl::UnavailableError("the daemon is stopping"));
  }

  Status need_blob(const Hash& hash, const std::string& what) {
    if (!hash.is_zero() && blobs.has(hash)) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(what, ": no finished upload with SHA-256 ", hash.hex(),
                                            "; upload the file first"));
  }

  // Cached samples, or a place among those who wait for the job that makes them.
  void derive_on_store(ControlStore& s, const CallContext& ctx, Uuid dataset, Hash model,
                       const Done<model::DerivedSamples>& done) {
    const auto d = s.dataset(dataset);
    if (!d.ok()) return done(d.status());
    if (const auto m = s.model(model); !m.ok()) return done(m.status());
    auto known = s.derived(d->content_hash, model);
    if (known.ok() && all_there(*known)) return done(known);
    const DeriveKey key{d->content_hash, model};
    bool first;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return done(absl::UnavailableError("the daemon is stopping"));
      first = waiters[key].empty();
      waiters[key].push_back(done);
    }
    if (!first) return;
    CallContext own = ctx;
    own.request_id.clear();  // it belongs to what the samples are for
    Job job;
    job.kind = Job::Kind::kDerive;
    job.request_json = text_of({{"dataset", dataset.hex()}, {"model", model.hex()}});
    job.id = new_uuid();
    {
      const std::lock_guard lock(mutex);
      derive_jobs[job.id] = key;
    }
    if (const auto queued = submit(s, own, job); !queued.ok()) finished(job, queued.status());
  }

  bool all_there(const model::DerivedSamples& d) {
    for (const Hash* h : {&d.train, &d.heldout, &d.test})
      if (!h->is_zero() && !blobs.has(*h)) return false;
    return true;
  }

  // ---- running them -------------------------------------------------------------------------

  void loop() {
    while (true) {
      Job job;
      auto state = std::make_shared<Running>();
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stopping || !queue.empty(); });
        if (stopping) return;
        job = std::move(queue.front());
        queue.pop_front();
        running[job.id] = state;
      }
      run(job, *state);
      const std::lock_guard lock(mutex);
      running.erase(job.id);
    }
  }

  void put(Job job) {
    store::Batch batch;
    batch.changes = {store::PutJob{std::move(job)}};
    control.commit(std::move(batch), [](const auto&) {});
  }

  void run(Job job, Running& state) {
    job.state = Job::State::kRunning;
    job.message = "starting";
    put(job);
    const std::string folder = folder_of(job.id);
    std::error_code ec;
    fs::remove_all(folder, ec);
    fs::create_directories(folder, ec);
    const WorkContext context{control, blobs, clock, folder};
    if (ec)
      fail(job, {"FAILED_PRECONDITION", absl::StrCat("cannot make ", folder, ": ", ec.message()),
                 "check the data directory and the free space"});
    else if (auto st = carry_out(context, job, state); !st.ok())
      fail(job, reason_of(st));
    fs::remove_all(folder, ec);
  }

  // OK: the job's end is committed, or left to the next start.
  Status carry_out(const WorkContext& context, Job& job, Running& state) {
    json work;
    ODT_ASSIGN(work, prepare_work(context, job));
    work["result"] = "result.json";
    const std::string file = context.folder + "/job.json";
    std::ofstream(file) << text_of(work);
    ChildEnd end;
    ODT_ASSIGN(end,
               run_child({options.worker_path, file, options.memory_limit_bytes, options.deadline},
                         state.stop, [&](const std::string& line) { progress(job, state, line); }));
    if (end.kind == ChildEnd::Kind::kStopped) {
      if (state.cancelled) {
        end_job(job, Job::State::kCancelled, "cancelled", {});
      }
      return absl::OkStatus();
    }
    std::ifstream in(context.folder + "/result.json");
    const json result = in ? json::parse(in, nullptr, false) : json();
    if (!result.is_object() || end.kind != ChildEnd::Kind::kExit || end.code > 1) {
      fail(job, crash_reason(end, options.deadline));
      return absl::OkStatus();
    }
    if (!result.value("ok", false)) {
      const json error = result.value("error", json::object());
      fail(job, {error.value("code", "UNKNOWN"), error.value("message", "no message"), ""});
      return absl::OkStatus();
    }
    std::vector<store::Change> changes;
    ODT_ASSIGN(changes, register_work(context, result, job));
    return succeed(job, std::move(changes));
  }

  void progress(Job& job, Running& state, const std::string& line) {
    const json j = json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("progress") || !j["progress"].is_number_unsigned()) return;
    job.progress_permille = std::min(j["progress"].get<std::uint32_t>(), 1000u);
    if (j.contains("message") && j["message"].is_string())
      job.message = printable(j["message"].get<std::string>(), kMaxMessage);
    const auto now = std::chrono::steady_clock::now();
    if (now - state.last_progress < kProgressEvery) return;
    state.last_progress = now;
    put(job);
  }

  Status succeed(Job job, std::vector<store::Change> changes) {
    job.state = Job::State::kSucceeded;
    job.progress_permille = 1000;
    job.message = "done";
    const Status st = control.call_sync([&](ControlStore& s) -> Status {
      if (job.kind == Job::Kind::kReplay) {
        store::Change verdict;
        ODT_ASSIGN(verdict, verdict_change(s, job));
        changes.push_back(std::move(verdict));
      }
      store::Batch batch;
      batch.changes = std::move(changes);
      batch.changes.push_back(store::PutJob{job});
      batch.actor = job.meta.created_by;
      return s.commit(std::move(batch)).status();
    });
    if (st.ok()) finished(job, {});
    return st;
  }

  void fail(Job job, model::Reason reason) {
    reason.text = printable(reason.text, kMaxReason);
    end_job(job, Job::State::kFailed, "failed", std::move(reason));
  }

  void end_job(Job job, Job::State state, const std::string& message, model::Reason reason) {
    job.state = state;
    job.message = message;
    job.reason = std::move(reason);
    put(job);
    const bool cancelled = state == Job::State::kCancelled;
    finished(job, cancelled ? absl::CancelledError("the job was cancelled")
                            : absl::FailedPreconditionError(job.reason.text));
  }

  // Answers those who wait for derived samples.
  void finished(const Job& job, const Status& status) {
    std::vector<Done<model::DerivedSamples>> waiting;
    DeriveKey key;
    {
      const std::lock_guard lock(mutex);
      const auto it = derive_jobs.find(job.id);
      if (it == derive_jobs.end()) return;
      key = it->second;
      waiting = std::move(waiters[key]);
      waiters.erase(key);
      derive_jobs.erase(it);
    }
    Result<model::DerivedSamples> answer = absl::UnknownError("");
    if (!status.ok())
      answer = status;
    else
      answer =
          control.call_sync([key](ControlStore& s) { return s.derived(key.first, key.second); });
    for (auto& done : waiting) done(answer);
  }

  // ---- starting and stopping ----------------------------------------------------------------

  // Jobs that an earlier daemon left, oldest first.
  Result<std::vector<Job>> leftovers() {
    return control.call_sync([](ControlStore& s) -> Result<std::vector<Job>> {
      std::vector<Job> found;
      store::ListQuery query;
      query.page_size = 1000;
      do {
        store::Page<Job> page;
        ODT_ASSIGN(page, s.jobs(query));
        for (auto& job : page.items)
          if (!is_over(job.state) && job.kind != Job::Kind::kEvaluate)
            found.push_back(std::move(job));
        query.page_token = page.next_token;
      } while (!query.page_token.empty());
      std::reverse(found.begin(), found.end());
      return found;
    });
  }

  void take_up(Job job) {
    job.meta.etag = 0;
    if (job.state == Job::State::kRunning) {
      json request = json::parse(job.request_json, nullptr, false);
      const int restarts = request.is_object() ? request.value("restarts", 0) : kMaxRestarts;
      if (restarts >= kMaxRestarts) {
        fail(job, {"DAEMON_STOPPED",
                   absl::StrCat("the daemon stopped ", restarts + 1, " times during this job"),
                   "start the job again; if the daemon stops again, report it"});
        return;
      }
      request["restarts"] = restarts + 1;
      job.request_json = text_of(request);
      job.state = Job::State::kQueued;
      job.progress_permille = 0;
      job.message = "queued again after a restart of the daemon";
      put(job);
    }
    enqueue(std::move(job));
  }
};

JobRunner::JobRunner(store::ControlThread& control, store::BlobStore& blobs, const Clock& clock,
                     JobRunnerOptions options)
    : impl_(std::make_unique<Impl>(control, blobs, clock, std::move(options))) {}

JobRunner::~JobRunner() { stop(); }

Status JobRunner::start() {
  Impl& s = *impl_;
  if (::access(s.options.worker_path.c_str(), X_OK) != 0)
    return absl::NotFoundError(absl::StrCat(s.options.worker_path, ": cannot be run: ",
                                            ::strerror(errno), "; odt-worker belongs beside odtd"));
  std::vector<Job> left;
  ODT_ASSIGN(left, s.leftovers());
  for (auto& job : left) s.take_up(std::move(job));
  const std::lock_guard lock(s.mutex);
  if (s.started) return absl::FailedPreconditionError("the job runner was started before");
  s.started = true;
  for (int n = 0; n < std::max(1, s.options.max_parallel); ++n)
    s.threads.emplace_back([this] { impl_->loop(); });
  return absl::OkStatus();
}

void JobRunner::stop() {
  Impl& s = *impl_;
  decltype(s.waiters) waiting;
  {
    const std::lock_guard lock(s.mutex);
    s.stopping = true;
    for (auto& [id, running] : s.running) running->stop = true;
    waiting.swap(s.waiters);
    s.derive_jobs.clear();
  }
  s.wake.notify_all();
  for (auto& thread : s.threads) thread.join();
  s.threads.clear();
  for (auto& [key, list] : waiting)
    for (auto& done : list) done(absl::UnavailableError("the daemon is stopping"));
}

void JobRunner::add_model(CallContext ctx, Hash onnx_blob, std::string name,
                          std::uint32_t trainable_layers, Done<Job> done) {
  Impl& s = *impl_;
  if (name.empty()) name = "model-" + onnx_blob.hex().substr(0, 6);
  json request = {
      {"onnx", onnx_blob.hex()}, {"name", name}, {"trainable_layers", trainable_layers}};
  s.submit_later(
      ctx, Job::Kind::kCompile, std::move(request),
      [&s, onnx_blob](ControlStore&) { return s.need_blob(onnx_blob, "model"); }, std::move(done));
}

void JobRunner::import_dataset(CallContext ctx, ImportOptions o, ImportBlobs blobs,
                               Done<Job> done) {
  Impl& s = *impl_;
  json request = {{"options",
                   {{"name", o.name},
                    {"format", o.format},
                    {"resize", o.resize},
                    {"transform", o.transform},
                    {"train", o.train},
                    {"heldout", o.heldout},
                    {"test", o.test},
                    {"seed", o.seed},
                    {"label_column", o.label_column},
                    {"skip", o.skip}}}};
  const std::pair<const char*, Hash> inputs[] = {{"data", blobs.data},
                                                 {"labels", blobs.labels},
                                                 {"test_data", blobs.test_data},
                                                 {"test_labels", blobs.test_labels}};
  for (const auto& [key, hash] : inputs)
    if (!hash.is_zero()) request[key] = hash.hex();
  s.submit_later(
      ctx, Job::Kind::kImport, std::move(request),
      [&s, blobs](ControlStore&) -> Status {
        ODT_TRY(s.need_blob(blobs.data, "data"));
        if (!blobs.labels.is_zero()) ODT_TRY(s.need_blob(blobs.labels, "labels"));
        if (!blobs.test_data.is_zero()) ODT_TRY(s.need_blob(blobs.test_data, "test data"));
        if (!blobs.test_labels.is_zero()) ODT_TRY(s.need_blob(blobs.test_labels, "test labels"));
        return absl::OkStatus();
      },
      std::move(done));
}

void JobRunner::train_on_pc(CallContext ctx, TrainOnPcOptions o, Done<Job> done) {
  json request = {{"dataset", o.dataset_id.hex()},
                  {"hidden", o.hidden},
                  {"epochs", o.epochs},
                  {"seed", o.seed},
                  {"name", o.name}};
  impl_->submit_later(
      ctx, Job::Kind::kTrainPc, std::move(request),
      [id = o.dataset_id](ControlStore& store) { return store.dataset(id).status(); },
      std::move(done));
}

void JobRunner::replay(CallContext ctx, Uuid run, Done<Job> done) {
  impl_->submit_later(
      ctx, Job::Kind::kReplay, {{"run", run.hex()}},
      [run](ControlStore& store) -> Status {
        model::Run r;
        ODT_ASSIGN(r, store.run(run));
        if (model::is_final(r.state)) return absl::OkStatus();
        return absl::FailedPreconditionError("run " + run.hex() +
                                             " has not ended; replay it when it has");
      },
      std::move(done));
}

void JobRunner::cancel(CallContext, Uuid id, Done<Job> done) {
  Impl& s = *impl_;
  const bool posted = s.control.post([&s, id, done](ControlStore& store) {
    auto job = store.job(id);
    if (!job.ok()) return done(job.status());
    if (is_over(job->state))
      return done(absl::FailedPreconditionError("job " + id.hex() + " has ended"));
    std::unique_lock lock(s.mutex);
    if (const auto it = s.running.find(id); it != s.running.end()) {
      it->second->cancelled = true;
      it->second->stop = true;
      return done(job);
    }
    const auto queued =
        std::find_if(s.queue.begin(), s.queue.end(), [&](const Job& j) { return j.id == id; });
    if (queued == s.queue.end())
      return done(absl::FailedPreconditionError("job " + id.hex() + " is not one of the worker's"));
    s.queue.erase(queued);
    lock.unlock();
    job->meta.etag = 0;
    s.end_job(*job, Job::State::kCancelled, "cancelled", {});
    job->state = Job::State::kCancelled;
    job->message = "cancelled";
    done(job);
  });
  if (!posted) done(absl::UnavailableError("the daemon is stopping"));
}

void JobRunner::derive(CallContext ctx, Uuid dataset, Hash model,
                       Done<model::DerivedSamples> done) {
  Impl& s = *impl_;
  const bool posted = s.control.post([&s, ctx, dataset, model, done](ControlStore& store) {
    s.derive_on_store(store, ctx, dataset, model, done);
  });
  if (!posted) done(absl::UnavailableError("the daemon is stopping"));
}

}  // namespace odt::jobs

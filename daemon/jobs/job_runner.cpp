#include "jobs/job_runner.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "jobs/job_runner_impl.h"

namespace odt::jobs {
namespace {

constexpr int kMaxRestarts = 1;

bool is_over(Job::State s) { return s != Job::State::kQueued && s != Job::State::kRunning; }

}  // namespace

Result<Job> JobRunner::Impl::submit(ControlStore& s, const CallContext& ctx, Job job) {
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

void JobRunner::Impl::enqueue(Job job) {
  const std::lock_guard lock(mutex);
  queue.push_back(std::move(job));
  wake.notify_one();
}

void JobRunner::Impl::submit_later(CallContext ctx, Job::Kind kind, json request,
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

Status JobRunner::Impl::need_blob(const Hash& hash, const std::string& what) {
  if (!hash.is_zero() && blobs.has(hash)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(what, ": no finished upload with SHA-256 ", hash.hex(),
                                          "; upload the file first"));
}

void JobRunner::Impl::derive_on_store(ControlStore& s, const CallContext& ctx, Uuid dataset,
                                      Hash model, bool frozen,
                                      const Done<model::DerivedSamples>& done) {
  const auto d = s.dataset(dataset);
  if (!d.ok()) return done(d.status());
  const auto m = s.model(model);
  if (!m.ok()) return done(m.status());
  if (frozen && m->tail.image.is_zero())
    return done(absl::FailedPreconditionError(
        "model '" + m->name +
        "' has no frozen outputs: it trains every layer, or was added before they were known"));
  auto known = s.derived(d->content_hash, model);
  if (known.ok() && all_there(*known, frozen)) return done(known);
  const DeriveKey key{d->content_hash, model, frozen};
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
  job.request_json =
      text_of({{"dataset", dataset.hex()}, {"model", model.hex()}, {"frozen", frozen}});
  job.id = new_uuid();
  {
    const std::lock_guard lock(mutex);
    derive_jobs[job.id] = key;
  }
  if (const auto queued = submit(s, own, job); !queued.ok()) finished(job, queued.status());
}

bool JobRunner::Impl::all_there(const model::DerivedSamples& d, bool frozen) {
  const std::pair<const Hash*, const Hash*> splits[] = {
      {&d.train, &d.frozen_train}, {&d.heldout, &d.frozen_heldout}, {&d.test, &d.frozen_test}};
  for (const auto& [raw, outputs] : splits) {
    if (raw->is_zero()) continue;
    if (!blobs.has(*raw) || (frozen && (outputs->is_zero() || !blobs.has(*outputs)))) return false;
  }
  return true;
}

Result<std::vector<Job>> JobRunner::Impl::leftovers() {
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

void JobRunner::Impl::take_up(Job job) {
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
                          std::uint32_t trainable_layers, CompileChoice choice, Done<Job> done) {
  Impl& s = *impl_;
  if (name.empty()) name = "model-" + onnx_blob.hex().substr(0, 6);
  json request = {
      {"onnx", onnx_blob.hex()}, {"name", name}, {"trainable_layers", trainable_layers}};
  if (!choice.arithmetic.empty()) request["arithmetic"] = choice.arithmetic;
  if (!choice.input_dtype.empty()) request["input_dtype"] = choice.input_dtype;
  if (choice.input_exponent) request["input_exponent"] = *choice.input_exponent;
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
                    {"skip", o.skip},
                    {"split", o.split},
                    {"stratify", o.stratify},
                    {"missing", o.missing},
                    {"target_columns", o.target_columns},
                    {"drop_columns", o.drop_columns},
                    {"group_column", o.group_column},
                    {"x_key", o.x_key},
                    {"y_key", o.y_key},
                    {"window_s", o.window_s},
                    {"window_steps", o.window_steps},
                    {"stride_s", o.stride_s},
                    {"stride_steps", o.stride_steps},
                    {"sample_rate", o.sample_rate},
                    {"features", o.features},
                    {"short_recordings", o.short_recordings},
                    {"series", o.series},
                    {"channels", o.channels},
                    {"pattern", o.pattern},
                    {"only", o.only}}}};
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
                  {"arch", o.arch},
                  {"augment", o.augment},
                  {"autoencode", o.autoencode},
                  {"dfp16", o.dfp16},
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
        if (r.spec.captured)
          return with_reason(
              absl::FailedPreconditionError("run " + run.hex() +
                                            " cannot be replayed: it trained on samples that the "
                                            "board captured, which never left it"),
              "CAPTURED_SAMPLES", "Replay runs on datasets.");
        if (model::is_final(r.state)) return absl::OkStatus();
        return absl::FailedPreconditionError("run " + run.hex() +
                                             " has not ended; replay it when it has");
      },
      std::move(done));
}

void JobRunner::export_onnx(CallContext ctx, Hash snapshot, bool exact, Done<Job> done) {
  Impl& s = *impl_;
  s.submit_later(
      ctx, Job::Kind::kExport, {{"snapshot", snapshot.hex()}, {"exact", exact}},
      [&s, snapshot](ControlStore& store) -> Status {
        model::Snapshot weights;
        ODT_ASSIGN(weights, store.snapshot(snapshot));
        const auto model = store.model(weights.model_hash);
        if (model.ok() && !model->onnx_hash.is_zero() && s.blobs.has(model->onnx_hash))
          return absl::OkStatus();
        return with_reason(
            absl::FailedPreconditionError(absl::StrCat(
                "the ONNX file of the snapshot's model ",
                model.ok() ? "'" + model->name + "'" : weights.model_hash.hex().substr(0, 12),
                " is not here")),
            "NO_ONNX", "add the model's ONNX file again (odtctl model add)");
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
    job->state = Job::State::kCancelled;
    job->message = "cancelled";
    if (const auto st = store.commit(one_change(store::PutJob{*job})); !st.ok())
      return done(st.status());
    s.finished(*job, absl::CancelledError("the job was cancelled"));
    done(job);
  });
  if (!posted) done(absl::UnavailableError("the daemon is stopping"));
}

void JobRunner::Impl::derive_later(CallContext ctx, Uuid dataset, Hash model, bool frozen,
                                   Done<model::DerivedSamples> done) {
  const bool posted = control.post([this, ctx, dataset, model, frozen, done](ControlStore& store) {
    derive_on_store(store, ctx, dataset, model, frozen, done);
  });
  if (!posted) done(absl::UnavailableError("the daemon is stopping"));
}

void JobRunner::derive(CallContext ctx, Uuid dataset, Hash model,
                       Done<model::DerivedSamples> done) {
  impl_->derive_later(std::move(ctx), dataset, model, false, std::move(done));
}

void JobRunner::freeze(CallContext ctx, Uuid dataset, Hash model,
                       Done<model::DerivedSamples> done) {
  impl_->derive_later(std::move(ctx), dataset, model, true, std::move(done));
}

}  // namespace odt::jobs

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "training/orchestrator_impl.h"
#include "training/run_checks.h"
#include "training/run_settings.h"

// Creation of runs, and evaluations.
namespace odt::training {

namespace {

Result<Uuid> uuid_of(const std::string& key) { return Uuid::from_bytes(key); }

model::Reason interrupted_reason() {
  return {"INTERRUPTED", "odtd was restarted during the evaluation", "Start it again."};
}

}  // namespace

asio::awaitable<Result<model::Run>> Orchestrator::Impl::create_run(CallContext ctx,
                                                                   model::RunSpec asked,
                                                                   bool dry_run) {
  const auto self = shared_from_this();
  auto run = co_await make_run(std::move(ctx), std::move(asked), dry_run, Uuid{});
  co_return run;
}

asio::awaitable<Result<model::Run>> Orchestrator::Impl::make_run(CallContext ctx,
                                                                 model::RunSpec asked, bool dry_run,
                                                                 Uuid retry_of) {
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    auto id = uuid_of(*before);
    if (!id.ok()) co_return id.status();
    const Uuid known = *id;
    auto run =
        co_await env_->control.call([known](store::ControlStore& s) { return s.run(known); });
    co_return run;
  }
  // A campaign names its runs before it asks for them.
  if (!asked.id.is_zero() && !dry_run) {
    const Uuid own = asked.id;
    auto run = co_await env_->control.call([own](store::ControlStore& s) { return s.run(own); });
    if (!absl::IsNotFound(run.status())) co_return run;
  }
  auto mine = free_for(ctx, asked.board_uid);
  if (!mine.ok()) co_return mine;
  // What runs before it could not leave the samples where they are.
  if (asked.captured) {
    auto free = require_free(asked.board_uid);
    if (!free.ok()) co_return free;
  }
  auto spec = std::make_shared<model::RunSpec>(std::move(asked));
  auto guess = std::make_shared<model::HyperParams>();
  auto taken = co_await take_settings(*env_, spec, retry_of);
  if (!taken.ok()) co_return taken.status();
  auto parts = co_await check_run(*env_, spec, guess);
  if (!parts.ok()) co_return name_settings(parts.status(), *taken);
  model::Run run;
  run.settings = std::move(*taken);
  run.spec = *spec;
  run.train_samples = parts->dataset.train;
  if (run.spec.captured) run.replay = model::ReplayVerdict::kNotPossible;
  run.outputs = parts->model.outputs;
  run.rules_version = parts->board.rules_version;
  run.priority = spec->priority;
  run.queue_rank = env_->clock.now_us();
  run.retry_of = retry_of;
  run.warnings = sample_warnings(*parts, spec->hyper);
  run.meta = env_->new_meta(ctx.actor);
  run.owner = ctx.owner;
  if (dry_run) {
    run.effective = *guess;
    co_return run;
  }
  run.id = spec->id.is_zero() ? new_uuid() : spec->id;
  run.spec.id = Uuid{};
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = run.id.str();
  batch.changes.push_back(store::CreateRun{run, ctx.actor});
  for (const auto& reason : run.warnings) {
    model::Warning warning;
    warning.reason = reason;
    warning.board_uid = spec->board_uid;
    warning.run_id = run.id;
    batch.changes.push_back(store::AppendWarning{std::move(warning)});
  }
  auto events = co_await env_->control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  if (const auto* stored = find_body<model::Run>(*events)) run = *stored;
  enqueue(run);
  co_return run;
}

// ---- evaluation ---------------------------------------------------------------------------------

Status Orchestrator::Impl::fail_stale_jobs() {
  store::ListQuery query;
  query.page_size = 1000;
  auto page = env_->control.call_sync([query](store::ControlStore& s) { return s.jobs(query); });
  if (!page.ok()) return page.status();
  store::Batch batch;
  for (auto& job : page->items) {
    const bool open =
        job.state == model::Job::State::kQueued || job.state == model::Job::State::kRunning;
    if (job.kind != model::Job::Kind::kEvaluate || !open) continue;
    job.state = model::Job::State::kFailed;
    job.reason = interrupted_reason();
    job.message = job.reason.text;
    job.meta.etag = 0;
    batch.changes.push_back(store::PutJob{job});
  }
  if (batch.changes.empty()) return absl::OkStatus();
  auto done = env_->control.call_sync(
      [&batch](store::ControlStore& s) { return s.commit(std::move(batch)); });
  return done.status();
}

asio::awaitable<Status> Orchestrator::Impl::put_job(model::Job job, std::string actor,
                                                    std::vector<store::Change> extra) {
  store::Batch batch;
  batch.actor = std::move(actor);
  batch.changes = std::move(extra);
  job.meta.etag = 0;
  batch.changes.push_back(store::PutJob{std::move(job)});
  auto done = co_await env_->control.commit(std::move(batch));
  co_return done.status();
}

asio::awaitable<Result<model::Job>> Orchestrator::Impl::evaluate(CallContext ctx, BoardUid uid,
                                                                 Hash snapshot, Uuid dataset,
                                                                 std::string split, bool each) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    auto key = uuid_of(*before);
    if (!key.ok()) co_return key.status();
    const Uuid id = *key;
    auto job = co_await env_->control.call([id](store::ControlStore& s) { return s.job(id); });
    co_return job;
  }
  if (split.empty()) split = "test";
  if (split != "train" && split != "heldout" && split != "test")
    co_return absl::InvalidArgumentError("split: train, heldout or test are allowed");
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto free = require_free(uid);
  if (!free.ok()) co_return free;
  EvalTask task;
  task.uid = uid;
  task.snapshot = snapshot;
  task.dataset = dataset;
  task.split = split;
  task.samples = each;
  task.actor = ctx.actor;
  if (!snapshot.is_zero()) {
    auto row = co_await env_->control.call(
        [snapshot](store::ControlStore& s) { return s.snapshot(snapshot); });
    if (!row.ok()) co_return row.status();
    task.model_hash = row->model_hash;
  }
  auto data =
      co_await env_->control.call([dataset](store::ControlStore& s) { return s.dataset(dataset); });
  if (!data.ok()) co_return data.status();
  task.job.id = new_uuid();
  task.job.kind = model::Job::Kind::kEvaluate;
  task.job.state = model::Job::State::kRunning;
  task.job.message = absl::StrCat("split ", split, " of dataset '", data->name, "'");
  task.job.meta = env_->new_meta(ctx.actor);
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = task.job.id.str();
  batch.changes.push_back(store::PutJob{task.job});
  auto events = co_await env_->control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  if (const auto* stored = find_body<model::Job>(*events)) task.job = *stored;
  model::Job job = task.job;
  evaluations_[job.id] = false;
  asio::co_spawn(env_->io, evaluate_job(std::move(task)), fleet::Detached{});
  co_return job;
}

asio::awaitable<void> Orchestrator::Impl::evaluate_job(EvalTask task) {
  const auto self = shared_from_this();
  ++active_coroutines_;
  model::Job job = task.job;
  const std::string actor = task.actor;
  auto evaluation = co_await evaluate_board(std::move(task));
  std::vector<store::Change> extra;
  if (evaluation.ok()) {
    job.state = model::Job::State::kSucceeded;
    job.progress_permille = 1000;
    job.message = evaluation->outputs.has_classes()
                      ? absl::StrCat(evaluation->accuracy.correct, " of ",
                                     evaluation->accuracy.total, " correct")
                      : absl::StrCat("squared error ", evaluation->loss.sum, " over ",
                                     evaluation->loss.count, " samples");
    const std::string key = evaluation->id.str();
    job.result_key.assign(key.begin(), key.end());
    extra.push_back(store::PutEvaluation{*evaluation});
  } else if (evaluation_cancelled(job.id)) {
    job.state = model::Job::State::kCancelled;
    job.message = "cancelled";
  } else {
    job.state = model::Job::State::kFailed;
    job.reason = reason_from(evaluation.status());
    job.message = job.reason.text;
  }
  auto done = co_await put_job(job, actor, std::move(extra));
  if (!done.ok()) env_->say(4, "evaluation: store: " + done.ToString());
  evaluations_.erase(job.id);
  --active_coroutines_;
  ended_.notify();
}

namespace {

// The scores as a blob, and where they lie.
asio::awaitable<Result<model::Scores>> keep_scores(Env& env, std::vector<std::uint64_t> scores) {
  auto bytes = std::make_shared<std::string>();
  for (const std::uint64_t score : scores)
    for (int shift = 0; shift < 64; shift += 8)
      bytes->push_back(static_cast<char>(score >> shift & 255));
  auto blob = co_await env.write_blob(std::move(bytes));
  if (!blob.ok()) co_return blob.status();
  co_return summary_of(std::move(scores), *blob);
}

// Of the confusion matrix: samples of each class, and those said rightly.
void count_classes(model::Evaluation& e) {
  std::size_t n = 0;
  while (n * n < e.confusion.size()) ++n;
  if (n * n != e.confusion.size()) return;
  for (std::size_t label = 0; label < n; ++label) {
    std::uint32_t total = 0;
    for (std::size_t said = 0; said < n; ++said) total += e.confusion[label * n + said];
    e.class_totals.push_back(total);
    e.class_correct.push_back(e.confusion[label * n + label]);
  }
}

}  // namespace

bool Orchestrator::Impl::evaluation_cancelled(const Uuid& job) const {
  const auto it = evaluations_.find(job);
  return it != evaluations_.end() && it->second;
}

asio::awaitable<Result<model::Job>> Orchestrator::Impl::cancel_evaluation(Uuid id) {
  const auto self = shared_from_this();
  auto job = co_await env_->control.call([id](store::ControlStore& s) { return s.job(id); });
  if (!job.ok()) co_return job.status();
  const auto it = evaluations_.find(id);
  if (it == evaluations_.end())
    co_return with_reason(
        absl::FailedPreconditionError("evaluation " + id.hex() + " is not under way"), "JOB_ENDED",
        "List the jobs: odtctl job list.");
  it->second = true;
  co_return job;
}

asio::awaitable<Result<model::Evaluation>> Orchestrator::Impl::evaluate_board(EvalTask task) {
  BoardSlot& board = slot(task.uid);
  const Uuid id = task.job.id;
  auto guard = co_await board.exclusive.lock(id, "evaluate", task.actor);
  StopFn stop = [this, id] { return env_->stopping || evaluation_cancelled(id); };
  if (stop()) co_return absl::CancelledError("the evaluation was stopped");
  auto session = require_session(task.uid);
  if (!session.ok()) co_return session.status();
  auto state = co_await (*session)->get_state(true);
  if (!state.ok()) co_return state.status();
  if (task.snapshot.is_zero()) {
    task.model_hash = state->model_hash;
    if (state->model_hash.is_zero() || !state->has_weights)
      co_return with_reason(absl::FailedPreconditionError("the board holds no weights"),
                            "NO_WEIGHTS", "Name a snapshot, or train first.");
  } else {
    auto done = co_await put_weights(*session, task.snapshot, task.model_hash);
    if (!done.ok()) co_return done;
    state = co_await (*session)->get_state(false);
    if (!state.ok()) co_return state.status();
  }
  auto samples = co_await samples_of(task.dataset, task.model_hash, task.split, state->tail);
  if (!samples.ok()) co_return samples.status();
  // Progress is kept for who looks at the job; twice a second is enough.
  const auto shown = std::make_shared<std::chrono::steady_clock::time_point>();
  const std::uint32_t total = samples->set.count();
  model::Job job = task.job;
  job.meta.etag = 0;
  const std::string actor = task.actor;
  std::function<void(std::uint32_t)> progress = [this, shown, total, job,
                                                 actor](std::uint32_t done) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (done == total || now - *shown < std::chrono::milliseconds(500)) return;
    *shown = now;
    job.progress_permille = static_cast<std::uint32_t>(std::uint64_t{done} * 1000 / total);
    store::Batch batch;
    batch.actor = actor;
    batch.changes.push_back(store::PutJob{job});
    env_->control.commit(std::move(batch), [](Result<std::vector<model::Event>>) {});
  };
  const bool classes = samples->outputs.has_classes();
  auto outcome = co_await evaluate_streamed(*env_, *session, samples->set, stop,
                                            std::move(progress), !classes || task.samples);
  if (!outcome.ok()) co_return outcome.status();
  model::Evaluation out;
  out.id = new_uuid();
  out.board_uid = task.uid;
  out.model_hash = task.model_hash;
  out.snapshot = task.snapshot;
  out.dataset_id = task.dataset;
  out.split = task.split;
  out.outputs = samples->outputs;
  out.loss.sum = static_cast<std::int64_t>(outcome->report.loss);
  out.loss.count = outcome->report.accuracy.total;
  out.meta = env_->new_meta(task.actor);
  if (!classes) {
    out.loss.kind = model::LossKind::kMse;
    auto scores = co_await keep_scores(*env_, std::move(outcome->scores));
    if (!scores.ok()) co_return scores.status();
    out.scores = *scores;
    co_return out;
  }
  out.accuracy = outcome->report.accuracy;
  auto confusion = co_await (*session)->receive(model::Resource::kEvalResult);
  if (!confusion.ok()) co_return confusion.status();
  out.confusion.resize(confusion->content.size() / 4);
  for (std::size_t i = 0; i < out.confusion.size(); ++i) {
    const auto* p = reinterpret_cast<const unsigned char*>(confusion->content.data()) + 4 * i;
    out.confusion[i] = p[0] | p[1] << 8 | p[2] << 16 | static_cast<std::uint32_t>(p[3]) << 24;
  }
  count_classes(out);
  if (task.samples) {
    auto set = std::make_shared<const data::SampleSet>(std::move(samples->set));
    auto wrong = co_await keep_wrong(*session, std::move(set), std::move(outcome->wrong), stop);
    if (!wrong.ok()) co_return wrong.status();
    out.wrong = *wrong;
  }
  co_return out;
}

}  // namespace odt::training

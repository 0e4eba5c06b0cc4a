#include <absl/strings/str_cat.h>

#include "data/order.h"
#include "training/run_checks.h"
#include "training/run_task.h"

// From nothing on the board to a started run: image, weights, samples, start score, StartRun.
namespace odt::training {
namespace {

using model::RunState;

constexpr std::chrono::minutes kDeriveTime{30};

Status missing(const Status& status, const char* what) {
  return with_reason(Status(status.code(), absl::StrCat(what, ": ", status.message())), "NOT_FOUND",
                     "It was deleted; start a run with what is there.");
}

}  // namespace

asio::awaitable<Status> RunTask::load_library() {
  if (model_ && dataset_) co_return absl::OkStatus();
  const Hash hash = run_.spec.model_hash;
  auto model = co_await find_model(*env_, hash);
  if (!model.ok()) co_return missing(model.status(), "model of the run");
  if (captured()) {
    dataset_ = captured_dataset(*model, run_.train_samples, run_.captured_heldout);
    model_ = std::move(*model);
    co_return absl::OkStatus();
  }
  const Uuid id = run_.spec.dataset_id;
  auto dataset =
      co_await env_->control.call([id](store::ControlStore& s) { return s.dataset(id); });
  if (!dataset.ok()) co_return missing(dataset.status(), "dataset of the run");
  dataset_ = std::move(*dataset);
  model_ = std::move(*model);
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::derive_samples() {
  if (captured()) co_return absl::OkStatus();
  const bool frozen = form() != Form::kRaw;
  slot_.exclusive.renew(kDeriveTime);  // a job with a deadline of its own
  if (frozen != sets_frozen_ || !derived_) {
    train_loaded_ = heldout_loaded_ = test_loaded_ = false;
    CallContext ctx;
    ctx.command_id = new_uuid();
    const Uuid dataset = run_.spec.dataset_id;
    const Hash model = run_.spec.model_hash;
    jobs::JobControl& jobs = env_->jobs;
    std::function<void(Done<model::DerivedSamples>)> operation =
        [&jobs, ctx, dataset, model, frozen](Done<model::DerivedSamples> done) {
          if (frozen)
            jobs.freeze(ctx, dataset, model, std::move(done));
          else
            jobs.derive(ctx, dataset, model, std::move(done));
        };
    auto derived = co_await await_done<model::DerivedSamples>(env_->io, std::move(operation));
    if (!derived.ok()) {
      const Status& why = derived.status();
      // UNAVAILABLE would read as a lost board.
      const auto code = absl::IsUnavailable(why) ? absl::StatusCode::kInternal : why.code();
      co_return with_reason(
          Status(code, absl::StrCat("samples of dataset '", dataset_->name, "': ", why.message())),
          reason_of(why).empty() ? "DERIVE_FAILED" : reason_of(why), remedy_of(why));
    }
    derived_ = std::move(*derived);
    sets_frozen_ = frozen;
  }
  auto loaded = co_await load_sets();
  if (!loaded.ok()) co_return loaded;
  if (train_.empty())
    co_return with_reason(
        absl::FailedPreconditionError("dataset '" + dataset_->name + "' has no training samples"),
        "NO_SAMPLES", "Import it again with a training split.");
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::load_sets() {
  const bool frozen = sets_frozen_;
  const std::uint32_t targets = target_count(model_->outputs, frozen);
  if (!train_loaded_) {
    const Hash blob = frozen ? derived_->frozen_train : derived_->train;
    auto set = co_await load_samples(*env_, blob, targets);
    if (!set.ok()) co_return set.status();
    train_ = std::move(*set);
    train_loaded_ = true;
  }
  if (!heldout_loaded_) {
    const Hash blob = frozen ? derived_->frozen_heldout : derived_->heldout;
    auto set = co_await load_samples(*env_, blob, targets);
    if (!set.ok()) co_return set.status();
    heldout_ = std::move(*set);
    heldout_loaded_ = true;
  }
  if (run_.spec.evaluate && !test_loaded_) {
    const Hash blob = frozen ? derived_->frozen_test : derived_->test;
    auto set = co_await load_samples(*env_, blob, targets);
    if (!set.ok()) co_return set.status();
    test_ = std::move(*set);
    test_loaded_ = true;
  }
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::settle_outputs() {
  const model::Outputs outputs = derived_->outputs;
  if (outputs.count == 0 || outputs == run_.outputs) co_return absl::OkStatus();
  Save what;
  what.edit = [outputs](model::Run& r) { r.outputs = outputs; };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Status> RunTask::begin_attempt(bool again) {
  // A StartRun that may have reached the board uses its attempt up.
  const bool next = run_.attempt == 0 || start_sent_ || (run_.start_time_us != 0 && !again);
  const std::uint32_t attempt = run_.attempt + (next ? 1 : 0);
  const bool resumes = !run_.checkpoint_state.is_zero();
  if (next && run_.attempt != 0) ++fruitless_;
  start_sent_ = false;
  Save what;
  const std::uint32_t step = nvm_ ? nvm_->step : resumes ? run_.checkpoint_step : 0;
  std::uint32_t epochs = nvm_ ? nvm_->epoch : 0;
  if (resumes && !nvm_)
    for (const auto& [key, epoch] : known_epochs_)
      if (epoch.step == step) epochs = epoch.epoch + 1;
  what.edit = [attempt, step, epochs, resumes](model::Run& r) {
    r.attempt = attempt;
    r.attempt_step = step;
    r.best_weights = resumes ? r.checkpoint_best : Hash{};
    r.steps_done = step;
    r.epochs_done = epochs;
  };
  if (again) env_->say(2, absl::StrCat(shown(), ": attempt ", attempt, " begins at step ", step));
  if (run_.state != RunState::kPreparing)
    what.to = To{RunState::kPreparing,
                 attempt == 1 ? std::string("model and samples go to the board")
                              : absl::StrCat("the board lost the run; attempt ", attempt,
                                             resumes || nvm_ ? absl::StrCat(" from step ", step)
                                                             : std::string(" from the start")),
                 "odtd", Uuid{}};
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Status> RunTask::prepare(Session session, model::DeviceState state) {
  auto done = co_await keep_before_start(session, state);
  if (done.ok() && captured()) done = co_await take_captured(session);
  if (!done.ok()) co_return done;
  nvm_ = co_await nvm_offer(session, state);
  done = co_await begin_attempt();
  if (!done.ok()) co_return done;
  image_loaded_ = Hash{};
  if (nvm_) {
    auto resumed = co_await try_nvm(session, std::move(state));
    if (!resumed.ok()) co_return resumed.status();
    if (*resumed) co_return absl::OkStatus();
    done = co_await begin_attempt(true);  // from the checkpoint, then
    if (!done.ok()) co_return done;
  }
  done = co_await measure_first(session);
  if (!done.ok()) co_return done;
  if (!run_.effective.k.has_value()) {
    done = co_await try_placements(session);
    co_return done;
  }
  Placement place;
  place.k = *run_.effective.k;
  place.batch = *run_.effective.batch;
  place.streamed = *run_.effective.streamed;
  place.best_on_host = run_.effective.best_on_host.value_or(false);
  place.form = form_of(run_.effective);
  done = co_await start_with(session, place);
  co_return done;
}

namespace {

// Another placement may do: the memory is too small, or reduced firmware (CAP 16) lacks what this
// form's image has.
bool another_may_do(const Session& session, const Status& status) {
  constexpr std::uint32_t kCapReduced = 1u << 16;
  return absl::IsResourceExhausted(status) ||
         ((session->hello().caps & kCapReduced) != 0 &&
          (absl::IsOutOfRange(status) || absl::IsUnimplemented(status)));
}

}  // namespace

asio::awaitable<Status> RunTask::measure_first(Session session) {
  if (!run_.effective.k.has_value()) {
    // The policy's batch follows from the measurement; what the board can hold hardly does.
    auto places = choose_placements(Drift::kMild);
    if (!places.ok()) co_return places.status();
    form_ = places->front().form;
  }
  while (true) {
    auto done = co_await derive_samples();
    if (!done.ok()) co_return done;
    done = co_await settle_outputs();
    if (!done.ok()) co_return done;
    done = interrupted(session);
    if (!done.ok()) co_return done;
    done = co_await put_model(session);
    if (done.ok() && run_.checkpoint_state.is_zero()) done = co_await measure_start(session);
    const bool smaller = another_may_do(session, done) && !run_.effective.k.has_value() &&
                         form_ != Form::kTail && run_.spec.hyper.frozen.value_or(true) &&
                         !model_->tail.image.is_zero() && (session->hello().caps & kCapFrozen) != 0;
    if (!smaller) co_return done;
    env_->say(3, absl::StrCat(shown(), ": ", text_of(done), "; next, its trainable part alone"));
    form_ = Form::kTail;
  }
}

asio::awaitable<Status> RunTask::put_model(Session session) {
  auto now = co_await session->get_state(false);
  if (!now.ok()) co_return now.status();
  Status done = absl::OkStatus();
  if (captured())
    done = co_await fresh_weights(session);
  else
    done = co_await load_image(*env_, session, *now, image_hash());
  if (!done.ok()) co_return done;
  image_loaded_ = image_hash();
  if (run_.checkpoint_state.is_zero()) done = co_await push_start_snapshot(session);
  co_return done;
}

asio::awaitable<Status> RunTask::try_placements(Session session) {
  auto places = choose_placements(drift());
  if (!places.ok()) co_return places.status();
  // The first one twice: the evaluation before may have left batch slots that take its room.
  places->insert(places->begin(), places->front());
  Status last = absl::InternalError("no placement");
  Hash refused;  // an image that the board's firmware does not take
  for (const Placement& place : *places) {
    auto done = interrupted(session);
    if (!done.ok()) co_return done;
    form_ = place.form;
    if (!refused.is_zero() && image_hash() == refused) continue;
    done = co_await derive_samples();
    if (!done.ok()) co_return done;
    last = absl::OkStatus();
    if (image_loaded_ != image_hash()) last = co_await put_model(session);
    if (last.ok()) last = co_await start_with(session, place);
    if (!another_may_do(session, last)) co_return last;
    if (!absl::IsResourceExhausted(last)) refused = image_hash();
    // The estimate was too good: the board has the last word. The next begins with the image.
    env_->say(3, absl::StrCat(shown(), ": ", text_of(last)));
    image_loaded_ = Hash{};
  }
  co_return last;
}

asio::awaitable<Status> RunTask::push_start_snapshot(Session session) {
  const Hash start = run_.spec.start_snapshot;
  if (start.is_zero()) co_return absl::OkStatus();
  auto content = co_await env_->read_blob(start);
  if (!content.ok()) co_return missing(content.status(), "start snapshot");
  CommandLog command(*env_, slot_.uid, run_.id);
  auto done = co_await command.begin("restore", start);
  if (!done.ok()) co_return done;
  done = co_await session->send(model::Resource::kWeights, 0, *content);
  co_await command.settle(done);
  co_return done;
}

asio::awaitable<Status> RunTask::measure_start(Session session) {
  const bool heldout =
      heldout_count() != 0 && run_.heldout_start.total == 0 && run_.heldout_start_loss.count == 0;
  const bool test =
      run_.spec.evaluate && !test_.empty() && run_.before.total == 0 && run_.before_loss.count == 0;
  const bool train = judges_by_training() && train_start_.total == 0;
  if (!heldout && !test && !train) co_return absl::OkStatus();
  auto done = co_await go(RunState::kEvaluating,
                          has_classes() ? "accuracy before training" : "loss before training");
  if (!done.ok()) co_return done;
  if (heldout) {
    auto outcome = co_await evaluate_set(session, model::SampleRole::kHeldout);
    if (!outcome.ok()) co_return outcome.status();
    Measured now = measured(outcome->report);
    now.loss.sum = std::min(now.loss.sum, kMaxGuardLoss);
    Save what;
    what.edit = [now](model::Run& r) {
      r.heldout_start = r.heldout_best = now.accuracy;
      r.heldout_start_loss = r.heldout_best_loss = now.loss;
    };
    done = co_await save(std::move(what));
    if (!done.ok()) co_return done;
  }
  if (train) {
    auto outcome = co_await evaluate_set(session, model::SampleRole::kTrain);
    if (!outcome.ok()) co_return outcome.status();
    train_start_ = outcome->report.accuracy;
  }
  if (test) {
    auto outcome = co_await evaluate_measured(session, test_);
    if (!outcome.ok()) co_return outcome.status();
    const Measured now = measured(outcome->report);
    Save what;
    what.edit = [now](model::Run& r) {
      r.before = now.accuracy;
      r.before_loss = now.loss;
    };
    done = co_await save(std::move(what));
    if (!done.ok()) co_return done;
  }
  done = co_await go(RunState::kPreparing, "samples go to the board");
  co_return done;
}

bool RunTask::judges_by_training() const {
  return has_classes() && run_.spec.hyper.policy != model::Policy::kFixed &&
         !run_.effective.k.has_value() && heldout_count() < kFewHeldout;
}

RunTask::Measured RunTask::measured(const model::EvalReport& report) const {
  if (has_classes()) return {report.accuracy, {}};
  return {
      {},
      {static_cast<std::int64_t>(report.loss), 0, report.accuracy.total, model::LossKind::kMse}};
}

Drift RunTask::drift() const {
  // Nobody knows the loss that the model had on its own data.
  if (!has_classes()) return Drift::kStrong;
  model::Accuracy start = run_.heldout_start;
  start.correct += train_start_.correct;
  start.total += train_start_.total;
  return judge_drift(start, model_->source_accuracy);
}

SampleCounts RunTask::counts() const {
  return {dataset_->train, dataset_->heldout, run_.spec.evaluate,
          !run_.spec.start_snapshot.is_zero(), run_.spec.hyper.guard.value_or(true)};
}

Result<std::vector<Placement>> RunTask::choose_placements(Drift drift) const {
  const model::Board* board = env_->registry->find(slot_.uid);
  return placements(*model_, *board, counts(), run_.spec.hyper,
                    policy_batch(run_.spec.hyper, drift));
}

asio::awaitable<Status> RunTask::settle_placement(Placement place) {
  const auto effective = resolve(run_.spec.hyper, drift(), place, model_->has_ce_scale,
                                 heldout_count() != 0, has_classes());
  const model::Board* board = env_->registry->find(slot_.uid);
  Status in_range = check_ranges(effective, *model_, *board);
  if (!in_range.ok()) co_return in_range;
  const std::uint32_t samples = train_count();
  const std::uint32_t total = data::steps_per_epoch(samples, *effective.batch) * *effective.epochs;
  const std::uint32_t rules = board->rules_version;
  const std::string text = placement_text(*model_, *board, counts(), run_.spec.hyper, place);
  Save what;
  what.edit = [effective, samples, total, rules, text](model::Run& r) {
    r.effective = effective;
    r.placement = text;
    r.train_samples = samples;
    r.steps_total = total;
    r.rules_version = rules;
  };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Status> RunTask::start_with(Session session, Placement place) {
  const bool first = !run_.effective.k.has_value();
  Status done = absl::OkStatus();
  if (!place.streamed) {
    done = co_await push_resident(session);
    if (!done.ok()) co_return done;
  }
  if (first) {
    done = co_await settle_placement(place);
    if (!done.ok()) co_return done;
    if (run_.spec.hyper.guard.value_or(true) && heldout_count() == 0) {
      done = co_await warn("NO_GUARD", "without a held-out set the guard is off",
                           "Import the dataset with a held-out split.");
      if (!done.ok()) co_return done;
    }
  }
  if (!run_.checkpoint_state.is_zero()) {
    done = co_await push_checkpoint(session);
    if (!done.ok()) co_return done;
  }
  done = interrupted(session);
  if (!done.ok()) co_return done;
  co_await expect_times();
  done = co_await send_start(session);
  if (absl::IsResourceExhausted(done) && first) {
    // The next placement is settled afresh.
    Save what;
    what.edit = [](model::Run& r) {
      r.effective = {};
      r.placement.clear();
    };
    start_sent_ = false;
    auto saved = co_await save(std::move(what));
    if (!saved.ok()) co_return saved;
  }
  co_return done;
}

asio::awaitable<Status> RunTask::push_resident(Session session) {
  if (captured()) co_return absl::OkStatus();
  const auto role = [](model::SampleRole r) { return static_cast<std::uint32_t>(r); };
  auto sent = co_await send_measured(session, model::Resource::kSamples,
                                     role(model::SampleRole::kTrain), train_.blob());
  if (!sent.ok()) co_return sent;
  if (!heldout_.empty())
    sent = co_await send_measured(session, model::Resource::kSamples,
                                  role(model::SampleRole::kHeldout), heldout_.blob());
  co_return sent;
}

asio::awaitable<Status> RunTask::push_checkpoint(Session session) {
  auto state = co_await env_->read_blob(run_.checkpoint_state);
  if (!state.ok()) co_return missing(state.status(), "checkpoint");
  const bool host = run_.effective.best_on_host.value_or(false);
  auto sent = co_await session->send(model::Resource::kState, host ? 1 : 0, *state);
  if (!sent.ok()) co_return sent;
  if (host || run_.checkpoint_best.is_zero()) co_return absl::OkStatus();
  auto best = co_await env_->read_blob(run_.checkpoint_best);
  if (!best.ok()) co_return missing(best.status(), "best weights of the checkpoint");
  sent = co_await session->send(model::Resource::kBestWeights, 0, *best);
  co_return sent;
}

model::DeviceRunSpec RunTask::device_spec() const {
  model::DeviceRunSpec spec;
  spec.hyper = run_.effective;
  spec.train_samples = train_count();
  spec.heldout_samples = heldout_count();
  spec.sample_set_hash = derived_->sample_set_hash;
  spec.streamed = *run_.effective.streamed;
  spec.hold_at_epoch = true;
  spec.telemetry_every = *run_.effective.telemetry_every;
  return spec;
}

asio::awaitable<Status> RunTask::send_start(Session session) {
  session::BoardSession::StartRun start;
  start.run_id = run_.id;
  start.attempt = run_.attempt;
  start.spec = device_spec();
  start.steering = steering_left();
  if (nvm_) {
    start.expect_state = nvm_->state;
  } else if (!run_.checkpoint_state.is_zero()) {
    start.expect_state = run_.checkpoint_state;
  } else if (!run_.spec.start_snapshot.is_zero()) {
    start.from_weights = true;
    start.expect_weights = run_.spec.start_snapshot;
  }
  CommandLog command(*env_, slot_.uid, run_.id);
  auto begun = co_await command.begin("start_run", start.expect_state);
  if (!begun.ok()) co_return begun;
  // The board may report steps before its answer is seen here.
  slot_.job_run = run_.id;
  slot_.job_attempt = run_.attempt;
  start_sent_ = true;
  auto started = co_await session->start_run(start);
  if (absl::IsResourceExhausted(started.status()) && start.from_weights && start.spec.streamed) {
    // No room for weights twice: started from the image, follow_streamed() puts them in its place.
    start.from_weights = false;
    start.expect_weights = Hash{};
    started = co_await session->start_run(start);
  }
  co_await command.settle(started.status());
  if (!started.ok()) {
    // A refusal that is not about the link: this attempt has not begun.
    if (!absl::IsUnavailable(started.status()) && !absl::IsDeadlineExceeded(started.status()))
      start_sent_ = false;
    co_return started.status();
  }
  env_->registry->note_state(slot_.uid, *started);
  confirmed_ = start.steering;
  co_return absl::OkStatus();
}

}  // namespace odt::training

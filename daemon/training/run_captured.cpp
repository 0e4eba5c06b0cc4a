#include <absl/strings/str_cat.h>

#include "training/run_checks.h"
#include "training/run_task.h"

// Runs on samples that the board captured and labelled itself: they are in its RAM and nowhere
// else, so nothing of the run may cost them, and a board that has lost them cannot go on.
namespace odt::training {
namespace {

Status no_samples(const model::Board& board, const std::string& why, const char* remedy) {
  return with_reason(absl::FailedPreconditionError("board " + board.name + " " + why), "NO_SAMPLES",
                     remedy);
}

Status check_asked_of(const model::RunSpec& spec, const model::Board& board,
                      const model::Model& model) {
  if ((board.caps & model::kCapCapture) == 0)
    return with_reason(absl::FailedPreconditionError("board " + board.name + " (firmware " +
                                                     board.fw_version + ") cannot capture samples"),
                       "NO_CAPABILITY",
                       "Use a board whose firmware is built with capture, or a dataset.");
  if (model.outputs.task == model::Task::kRegress)
    return with_reason(absl::InvalidArgumentError("captured samples have no targets; model '" +
                                                  model.name + "' is a regression"),
                       "TARGET_MISMATCH", "Use a model that classifies, or a dataset.");
  if (spec.evaluate)
    return with_reason(absl::InvalidArgumentError("evaluate is set, but captured samples have no "
                                                  "test split"),
                       "NO_TEST_SPLIT", "Do not evaluate: the held-out ones are measured.");
  if (spec.hyper.streamed.value_or(false) || spec.hyper.frozen.value_or(false))
    return with_reason(absl::InvalidArgumentError("captured samples stay on the board: they can be "
                                                  "neither streamed nor made frozen outputs of"),
                       "OUT_OF_RANGE", "Leave streamed and frozen out.");
  return absl::OkStatus();
}

// Of what the board holds and has captured.
Status check_held(const model::DeviceState& state, const model::CaptureState& capture,
                  const Hash& model_hash, const model::Board& board, const model::Model& model) {
  if (capture.captured == 0 || state.model_hash.is_zero())
    return no_samples(board, "has captured nothing since it started",
                      "Capture first: odtctl capture start BOARD --model MODEL ... --keep train.");
  if (state.model_hash != model_hash || state.tail)
    return with_reason(absl::InvalidArgumentError(absl::StrCat(
                           "board ", board.name, " captured windows of ", capture.window_steps,
                           " x ", capture.channels, " values for model ",
                           state.model_hash.hex().substr(0, 12), "; model '", model.name, "' is ",
                           model_hash.hex().substr(0, 12), ", and its image would replace them")),
                       "OTHER_MODEL",
                       "Train the model that they were captured for, or capture again for this.");
  if (state.samples_train == 0)
    return no_samples(board,
                      absl::StrCat("has captured ", capture.captured,
                                   " windows, but keeps none of them as training sample"),
                      "Label windows and keep them: --keep train.");
  return absl::OkStatus();
}

}  // namespace

model::Dataset captured_dataset(const model::Model& model, std::uint32_t train,
                                std::uint32_t heldout) {
  model::Dataset set;
  set.name = "captured";
  set.shape = model.input_shape;
  set.n_classes = model.n_classes;
  set.train = train;
  set.heldout = heldout;
  return set;
}

asio::awaitable<Result<model::Dataset>> check_captured(Env& env,
                                                       std::shared_ptr<model::RunSpec> spec,
                                                       model::Board board, model::Model model) {
  Status ok = check_asked_of(*spec, board, model);
  if (!ok.ok()) co_return ok;
  const Session session = env.registry->session(board.uid);
  if (!session)
    co_return with_reason(absl::UnavailableError("board " + board.name +
                                                 " is offline: what it has captured is not known"),
                          "BOARD_OFFLINE", "Check its power and link.");
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  auto capture = co_await session->get_windows(UINT32_MAX);
  if (!capture.ok()) co_return capture.status();
  ok = check_held(*state, *capture, spec->model_hash, board, model);
  if (!ok.ok()) co_return ok;
  spec->hyper.streamed = false;
  spec->hyper.frozen = false;
  co_return captured_dataset(model, state->samples_train, state->samples_heldout);
}

// The set as it is from now on; a capture under way would go on adding to it.
asio::awaitable<Status> RunTask::take_captured(Session session) {
  auto capture = co_await session->get_windows(UINT32_MAX);
  if (capture.ok() && capture->active) capture = co_await session->capture_stop();
  if (!capture.ok()) co_return capture.status();
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  const bool known = !run_.captured_set.is_zero();
  if (known && state->sample_set_hash != run_.captured_set)
    co_return with_reason(
        absl::FailedPreconditionError(
            "the board has lost the samples that it captured: they were in its RAM and nowhere "
            "else"),
        "CAPTURED_LOST", "Capture again, then start a new run (--start takes a snapshot).");
  if (!known) {
    const model::Board* board = env_->registry->find(slot_.uid);
    Status ok = check_held(*state, *capture, run_.spec.model_hash, *board, *model_);
    if (!ok.ok()) co_return ok;
    Save what;
    what.edit = [state = *state](model::Run& r) {
      r.captured_set = state.sample_set_hash;
      r.train_samples = state.samples_train;
      r.captured_heldout = state.samples_heldout;
    };
    ok = co_await save(std::move(what));
    if (!ok.ok()) co_return ok;
  }
  dataset_ = captured_dataset(*model_, run_.train_samples, run_.captured_heldout);
  derived_.emplace();
  derived_->sample_set_hash = run_.captured_set;
  derived_->outputs = model_->outputs;
  co_return absl::OkStatus();
}

// A run of nothing that begins, which lays the image's weights out, and is stopped.
asio::awaitable<Status> RunTask::fresh_weights(Session session) {
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  auto done = co_await stop_other_run(*env_, session, *state, Uuid{});
  if (!done.ok() || !state->has_weights) co_return done;
  model::HyperParams hyper;
  hyper.rule_set = run_.spec.hyper.rule_set;
  Placement place;
  place.k = 8;
  place.batch = 1;
  place.streamed = true;
  session::BoardSession::StartRun start;
  start.run_id = new_uuid();
  start.attempt = 1;
  start.spec.hyper =
      resolve(hyper, Drift::kMild, place, model_->has_ce_scale, false, has_classes());
  start.spec.train_samples = 1;
  start.spec.streamed = true;
  CommandLog command(*env_, slot_.uid, run_.id);
  done = co_await command.begin("fresh_weights", run_.spec.model_hash);
  if (!done.ok()) co_return done;
  auto begun = co_await session->start_run(start);
  done = begun.status();
  if (done.ok())
    done = co_await session->job_control(start.run_id, session::BoardSession::Action::kStop);
  co_await command.settle(done);
  co_return done;
}

asio::awaitable<Result<EvalOutcome>> RunTask::evaluate_set(Session session,
                                                           model::SampleRole role) {
  if (captured()) {
    auto outcome = co_await evaluate_resident(session, env_->next_id(), role, stop_fn(session));
    co_return outcome;
  }
  // Named first: GCC 12 destroys a conditional of a co_await expression twice.
  data::SampleSet set = role == model::SampleRole::kHeldout ? heldout_ : train_;
  auto outcome = co_await evaluate_measured(session, std::move(set));
  co_return outcome;
}

}  // namespace odt::training

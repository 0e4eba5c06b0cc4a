#include <absl/strings/str_cat.h>

#include <algorithm>

#include "training/run_task.h"

// All epochs are recorded: final weights, accuracy after training, the end.
namespace odt::training {
namespace {

using model::JobState;
using model::RunState;
using std::chrono::steady_clock;

}  // namespace

asio::awaitable<Status> RunTask::finish(Session session) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(30);
  model::DeviceState state;
  while (true) {
    auto stop = interrupted(session);
    if (!stop.ok()) co_return stop;
    auto now = co_await session->get_state(true);
    if (!now.ok()) co_return now.status();
    state = std::move(*now);
    if (state.job == JobState::kDone) break;
    if (state.job == JobState::kFailed || state.run_id != run_.id)
      co_return absl::AbortedError("the board lost the run at its end");
    if (steady_clock::now() >= deadline)
      co_return with_reason(absl::InternalError("the board recorded all epochs, but is not done"),
                            "BOARD_STUCK", "Reset the board and start the run again.");
    co_await slot_.signal.wait_for(std::chrono::milliseconds(50));
  }
  env_->registry->note_state(slot_.uid, state);
  const auto last = known_epochs_.find({run_.attempt, *run_.effective.epochs - 1});
  if (last != known_epochs_.end() && last->second.state_hash != state.state_hash)
    co_return with_reason(absl::DataLossError(absl::StrCat("final state ", state.state_hash.hex(),
                                                           " differs from that of the last epoch, ",
                                                           last->second.state_hash.hex())),
                          "DIVERGED", "Replay the run, and check the board's memory.");
  auto kept = co_await keep_weights(session, state);
  if (!kept.ok()) co_return kept;
  auto ended = co_await after_training(session, true);
  co_return ended;
}

asio::awaitable<Status> RunTask::keep_weights(Session session, model::DeviceState state) {
  auto weights = co_await pull_current_weights(session);
  if (!weights.ok()) co_return weights.status();
  auto written = co_await env_->write_blob(weights->content);
  if (!written.ok()) co_return written.status();
  const Hash hash = weights->hash;
  auto known =
      co_await env_->control.call([hash](store::ControlStore& s) { return s.snapshot(hash); });
  if (!known.ok() && !absl::IsNotFound(known.status())) co_return known.status();
  model::Snapshot snapshot;
  if (known.ok()) {
    snapshot = std::move(*known);  // the same weights, reached before: they keep their origin
    snapshot.meta.etag = 0;
  } else {
    snapshot.hash = hash;
    snapshot.model_hash = run_.spec.model_hash;
    snapshot.board_uid = slot_.uid;
    snapshot.run_id = run_.id;
    snapshot.attempt = run_.attempt;
    snapshot.step = state.step;
    snapshot.parent = run_.spec.start_snapshot;
    snapshot.heldout = run_.heldout_best;
    snapshot.heldout_loss = run_.heldout_best_loss;
    snapshot.bytes = weights->content->size();
    snapshot.origin = "run";
    snapshot.meta = env_->new_meta("odtd");
  }
  const std::string alias =
      "final/" + (run_.spec.name.empty() ? run_.id.hex().substr(0, 16) : run_.spec.name);
  if (std::find(snapshot.aliases.begin(), snapshot.aliases.end(), alias) == snapshot.aliases.end())
    snapshot.aliases.push_back(alias);
  Save what;
  what.extra.push_back(store::PutSnapshot{std::move(snapshot)});
  const Hash state_hash = state.state_hash;
  const std::uint32_t step = state.step;
  what.edit = [this, hash, state_hash, step](model::Run& r) {
    r.final_weights_hash = hash;
    r.final_state_hash = state_hash;
    r.steps_done = step;
    judge(r);
  };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Status> RunTask::after_training(Session session, bool holds) {
  if (run_.spec.evaluate && run_.after.total == 0 && run_.after_loss.count == 0) {
    auto done = co_await derive_samples();
    if (!done.ok()) co_return done;
    done = co_await go(RunState::kEvaluating,
                       has_classes() ? "accuracy after training" : "loss after training");
    if (!done.ok()) co_return done;
    if (!holds) {
      // The board lost its RAM after the last epoch: the weights are here.
      auto state = co_await session->get_state(false);
      if (!state.ok()) co_return state.status();
      done = co_await load_image(*env_, session, *state, image_hash());
      if (!done.ok()) co_return done;
      auto weights = co_await env_->read_blob(run_.final_weights_hash);
      if (!weights.ok()) co_return weights.status();
      done = co_await session->send(model::Resource::kWeights, 0, *weights);
      if (!done.ok()) co_return done;
    }
    if (!test_.empty()) {
      auto outcome = co_await evaluate_measured(session, test_);
      if (!outcome.ok()) co_return outcome.status();
      const Measured now = measured(outcome->report);
      Save what;
      what.edit = [now](model::Run& r) {
        r.after = now.accuracy;
        r.after_loss = now.loss;
      };
      done = co_await save(std::move(what));
      if (!done.ok()) co_return done;
    }
  }
  if (run_.state == RunState::kWaitingBoard || run_.state == RunState::kPaused) {
    auto done = co_await go(RunState::kRunning, "the board is back");
    if (!done.ok()) co_return done;
  }
  co_await end(RunState::kSucceeded, absl::OkStatus());
  co_return absl::OkStatus();
}

}  // namespace odt::training

#include "training/run_task.h"

#include <absl/strings/str_cat.h>

#include <utility>

namespace odt::training {
namespace {

using model::Desired;
using model::RunState;
using std::chrono::steady_clock;

constexpr std::uint32_t kMaxFruitless = 10;

const char* desired_name(Desired desired) {
  switch (desired) {
    case Desired::kPause:
      return "PAUSE";
    case Desired::kCancel:
      return "CANCEL";
    default:
      return "RUN";
  }
}

}  // namespace

RunTask::RunTask(std::shared_ptr<Env> env, BoardSlot& slot, model::Run run)
    : env_(std::move(env)), slot_(slot), run_(std::move(run)), saving_(env_->io) {
  reloaded_ = run_.state != RunState::kQueued;
}

asio::awaitable<Status> RunTask::save(Save what) {
  auto guard = co_await saving_.lock();
  model::Run next = run_;
  if (what.edit) what.edit(next);
  next.meta.etag = 0;  // one writer: nothing to check against
  if (timing_.link_bytes_per_s != 0) next.timing.link_bytes_per_s = timing_.link_bytes_per_s;
  if (timing_.sample_us != 0) next.timing.sample_us = timing_.sample_us;
  const bool same_state = !what.to || what.to->state == run_.state;
  if (!same_state) {
    next.state = what.to->state;
    next.waiting_since_us =
        next.state == RunState::kWaitingBoard
            ? (run_.waiting_since_us != 0 ? run_.waiting_since_us : env_->clock.now_us())
            : 0;
    if (next.state == RunState::kRunning) begin_clock();
  }
  const bool moved = !same_state || next.steps_done != run_.steps_done;
  if (moved && !what.keep_eta) next.eta_time_us = eta_of(next, next.steps_done);
  store::Batch batch;
  batch.actor = what.to ? what.to->actor : what.actor;
  batch.command_id = what.to ? what.to->command_id : what.command_id;
  batch.request_id = what.request_id;
  if (!batch.request_id.empty()) batch.response = run_.id.str();
  batch.changes = std::move(what.extra);
  if (same_state) {
    batch.changes.push_back(store::UpdateRun{next});
  } else {
    model::RunEvent event;
    event.run_id = run_.id;
    event.time_us = env_->clock.now_us();
    event.from = run_.state;
    event.to = next.state;
    event.cause = what.to->cause;
    event.actor = what.to->actor;
    event.command_id = what.to->command_id;
    batch.changes.push_back(store::TransitionRun{next, event});
  }
  auto events = co_await env_->control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  if (const auto* stored = find_body<model::Run>(*events)) next.meta = stored->meta;
  run_ = std::move(next);
  env_->rates->note(run_, model_ ? &*model_ : nullptr);
  slot_.signal.notify();
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::go(RunState state, std::string cause) {
  if (run_.state == state) co_return absl::OkStatus();
  env_->say(2, absl::StrCat(shown(), ": ", cause));
  Save what;
  what.to = To{state, std::move(cause), "odtd", Uuid{}};
  if (state == RunState::kRunning && run_.start_time_us == 0) {
    const std::int64_t now = env_->clock.now_us();
    what.edit = [now](model::Run& r) { r.start_time_us = now; };
  }
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Status> RunTask::warn(std::string code, std::string text, std::string remedy) {
  env_->say(3, absl::StrCat(shown(), ": ", text));
  store::Batch batch;
  model::Warning warning;
  warning.reason.code = std::move(code);
  warning.reason.text = std::move(text);
  warning.reason.remedy = std::move(remedy);
  warning.board_uid = slot_.uid;
  warning.run_id = run_.id;
  batch.changes.push_back(store::AppendWarning{std::move(warning)});
  auto done = co_await env_->control.commit(std::move(batch));
  co_return done.status();
}

asio::awaitable<void> RunTask::end(RunState state, Status why) {
  const std::int64_t now = env_->clock.now_us();
  const model::Reason reason = why.ok() ? model::Reason{} : reason_from(why);
  Save what;
  what.edit = [now, reason](model::Run& r) {
    r.end_time_us = now;
    r.reason = reason;
  };
  what.to = To{state, why.ok() ? "done" : reason.text, "odtd", Uuid{}};
  env_->say(state == RunState::kFailed ? 4 : 2,
            absl::StrCat(shown(), ": ",
                         state == RunState::kSucceeded   ? "succeeded"
                         : state == RunState::kCancelled ? "cancelled"
                                                         : "failed: " + reason.text));
  auto saved = co_await save(std::move(what));
  if (saved.ok()) co_return;
  // The caller's loop comes here again: not at once, the store may be full for a while.
  env_->say(4, absl::StrCat(shown(), ": store: ", saved.ToString()));
  co_await idle(std::chrono::milliseconds(1000));
}

asio::awaitable<Result<model::Run>> RunTask::set_desired(CallContext ctx, Desired desired,
                                                         bool active) {
  const auto self = shared_from_this();
  if (model::is_final(run_.state))
    co_return with_reason(absl::FailedPreconditionError(absl::StrCat(
                              shown(), " is over; it cannot be told to ", desired_name(desired))),
                          "RUN_OVER", "Create a new run.");
  Save what;
  what.actor = ctx.actor;
  what.command_id = ctx.command_id;
  what.request_id = ctx.request_id;
  what.edit = [desired](model::Run& r) { r.desired = desired; };
  if (desired == Desired::kCancel && !active) {
    const std::int64_t now = env_->clock.now_us();
    what.edit = [now](model::Run& r) {
      r.desired = Desired::kCancel;
      r.end_time_us = now;
    };
    what.to = To{RunState::kCancelled, "cancelled before it began", ctx.actor, ctx.command_id};
  }
  auto saved = co_await save(std::move(what));
  if (!saved.ok()) co_return saved;
  if (desired == Desired::kCancel && active && !std::exchange(cancel_forced_, true))
    asio::co_spawn(
        env_->io,
        [](std::shared_ptr<RunTask> task) -> asio::awaitable<void> {
          co_await task->force_cancel();
        }(self),
        fleet::Detached{});
  co_return run_;
}

asio::awaitable<Status> RunTask::set_held(model::Reason why) {
  const auto self = shared_from_this();
  Save what;
  what.edit = [why](model::Run& r) {
    if (r.state == RunState::kQueued) r.reason = why;
  };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

void RunTask::on_job(const model::JobChanged& job) {
  if (job.run_id != run_.id || job.attempt != run_.attempt) return;
  job_news_ = job;
  slot_.signal.notify();
}

void RunTask::on_diverged(const Status& why) {
  if (!diverged_) diverged_ = why;
  slot_.signal.notify();
}

Status RunTask::interrupted(const Session& session) const {
  if (abandoned_) return absl::CancelledError("the run has lost its board");
  slot_.exclusive.renew();
  if (env_->stopping) return absl::CancelledError("odtd stops");
  if (run_.desired == Desired::kCancel) return absl::CancelledError("the run is to be cancelled");
  if (diverged_) return *diverged_;
  if (!session->alive()) return absl::UnavailableError("the board is away");
  return absl::OkStatus();
}

StopFn RunTask::stop_fn(const Session& session) {
  return [this, session] { return !interrupted(session).ok(); };
}

asio::awaitable<void> RunTask::idle(std::chrono::milliseconds time) {
  asio::steady_timer timer(env_->io, time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> RunTask::main() {
  const auto self = shared_from_this();
  auto exclusive = co_await slot_.exclusive.lock(run_.id, "run", run_.meta.created_by);
  while (!env_->stopping && !abandoned_ && !model::is_final(run_.state)) {
    slot_.exclusive.renew();
    if (run_.desired == Desired::kCancel) {
      co_await cancel();
      continue;
    }
    if (diverged_) {
      (void)co_await stop_board();
      co_await end(RunState::kFailed, *diverged_);
      continue;
    }
    const Session session = slot_.live_session();
    if (!session) {
      co_await wait_board();
      continue;
    }
    Status done = co_await drive(session);
    if (done.ok() || model::is_final(run_.state) || abandoned_) continue;
    if (env_->stopping || run_.desired == Desired::kCancel || diverged_) continue;
    if (!session->alive()) {
      co_await wait_board();
    } else if (absl::IsUnavailable(done)) {
      co_await idle(std::chrono::milliseconds(200));
    } else if (reason_of(done) == "DISK_FULL") {
      // Not the run's fault, and its end could not be stored either: the board holds it meanwhile.
      env_->say(4, absl::StrCat(shown(), ": waits for disk space: ", text_of(done)));
      co_await idle(std::chrono::milliseconds(2000));
    } else if ((absl::IsAborted(done) || absl::IsDeadlineExceeded(done)) &&
               ++fruitless_ <= kMaxFruitless) {
      env_->say(3, absl::StrCat(shown(), ": again: ", text_of(done)));
      co_await idle(std::chrono::milliseconds(50));
    } else {
      (void)co_await stop_board();
      co_await end(RunState::kFailed, done);
    }
  }
}

asio::awaitable<Status> RunTask::stop_board() {
  const Session session = slot_.live_session();
  if (!session || run_.attempt == 0) co_return absl::OkStatus();
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  if (state->run_id != run_.id) co_return absl::OkStatus();
  auto stopped = co_await stop_other_run(*env_, session, *state, Uuid{});
  if (!stopped.ok()) env_->say(3, absl::StrCat(shown(), ": stop: ", text_of(stopped)));
  co_return stopped;
}

asio::awaitable<void> RunTask::wait_board() {
  if (run_.state != RunState::kWaitingBoard) {
    auto moved =
        co_await go(RunState::kWaitingBoard,
                    reloaded_ ? "odtd was restarted; waiting for the board" : "the board is away");
    if (!moved.ok()) {
      env_->say(4, absl::StrCat(shown(), ": ", moved.ToString()));
      co_await idle(std::chrono::milliseconds(500));
      co_return;
    }
  }
  const std::uint32_t own = run_.spec.resume_deadline_s;
  const std::int64_t limit_us =
      (own != 0 ? std::int64_t{own} : std::int64_t{env_->resume_deadline.count()}) * 1'000'000;
  const std::int64_t left_us = run_.waiting_since_us + limit_us - env_->clock.now_us();
  if (left_us <= 0) {
    co_await end(
        RunState::kFailed,
        with_reason(
            absl::DeadlineExceededError(absl::StrCat("the board stayed away for ",
                                                     limit_us / 1'000'000, " s (resume deadline)")),
            "RESUME_DEADLINE", "Check its power and link, then start the run again."));
    co_return;
  }
  if (slot_.live_session() || env_->stopping || run_.desired == Desired::kCancel) co_return;
  slot_.exclusive.renew(std::chrono::microseconds(left_us));
  co_await slot_.signal.wait_for(std::chrono::microseconds(left_us));
}

asio::awaitable<void> RunTask::cancel() {
  (void)co_await stop_board();
  co_await end(RunState::kCancelled,
               with_reason(absl::CancelledError("cancelled on request"), "CANCELLED"));
}

asio::awaitable<void> RunTask::force_cancel() {
  while (!env_->stopping && !model::is_final(run_.state)) {
    co_await idle(env_->cancel_grace);
    if (env_->stopping || model::is_final(run_.state) || run_.desired != Desired::kCancel) break;
    const Session session = slot_.live_session();
    if (!session) continue;
    env_->say(3,
              absl::StrCat(shown(), ": the board holds its cancellation up; its link is closed"));
    session->close(absl::CancelledError("the board did not let a cancelled run go"));
  }
  cancel_forced_ = false;
}

asio::awaitable<Status> RunTask::hold_paused(Session session, std::string cause) {
  auto moved = co_await go(RunState::kPaused, std::move(cause));
  if (!moved.ok()) co_return moved;
  while (run_.desired == Desired::kPause) {
    Status why = interrupted(session);
    if (!why.ok()) co_return why;
    co_await slot_.signal.wait_for(std::chrono::seconds(1));
  }
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::drive(Session session) {
  auto loaded = co_await load_library();
  if (!loaded.ok()) co_return loaded;
  loaded = co_await load_epochs();
  if (!loaded.ok()) co_return loaded;
  inbox_.clear();  // what is missing is asked for again
  job_news_.reset();
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  env_->registry->note_state(slot_.uid, *state);
  co_await settle_commands(*env_, slot_.uid, *state);

  using J = model::JobState;
  const bool holds = run_.attempt != 0 && state->run_id == run_.id &&
                     state->attempt == run_.attempt && state->job != J::kNone &&
                     state->job != J::kFailed && state->job != J::kStopped && consistent(*state);
  if (!run_.final_weights_hash.is_zero()) {
    auto ended = co_await after_training(session, holds);
    co_return ended;
  }
  if (!holds) {
    if (run_.desired == Desired::kPause && run_.state != RunState::kQueued) {
      auto held = co_await hold_paused(session, "paused on request");
      co_return held;
    }
    if (fruitless_ > kMaxFruitless)
      co_return with_reason(absl::InternalError(absl::StrCat("the board lost the run ", fruitless_,
                                                             " times without finishing an epoch")),
                            "BOARD_UNSTABLE", "Check the board's power supply and its log.");
    auto prepared = co_await prepare(session, *state);
    if (!prepared.ok()) co_return prepared;
    state = co_await session->get_state(false);
    if (!state.ok()) co_return state.status();
  }
  auto followed = co_await follow(session, *state);
  co_return followed;
}

}  // namespace odt::training

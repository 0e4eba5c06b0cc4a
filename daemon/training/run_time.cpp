#include <absl/strings/str_cat.h>

#include "data/order.h"
#include "training/estimate.h"
#include "training/run_task.h"

// What a run measures of time, when it will have ended, and which weights it ended with.
namespace odt::training {
namespace {

constexpr std::size_t kLeastBytes = 16384;  // shorter transfers measure round trips
constexpr auto kFirstEta = std::chrono::seconds(2), kEtaEvery = std::chrono::seconds(10);

std::int64_t us_since(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               from)
      .count();
}

}  // namespace

asio::awaitable<Status> RunTask::send_measured(Session session, model::Resource resource,
                                               std::uint32_t index,
                                               std::shared_ptr<const std::string> content) {
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t bytes = content->size();
  auto sent = co_await session->send(resource, index, std::move(content), 0, {},
                                     progress_of(*env_, session));
  const std::int64_t took = us_since(begin);
  if (sent.ok() && bytes >= kLeastBytes && took > 0)
    timing_.link_bytes_per_s = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        std::uint64_t{bytes} * 1'000'000 / static_cast<std::uint64_t>(took), UINT32_MAX));
  co_return sent;
}

asio::awaitable<Result<EvalOutcome>> RunTask::evaluate_measured(Session session,
                                                                data::SampleSet set) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint32_t count = set.count();
  auto outcome = co_await evaluate_streamed(*env_, session, std::move(set), stop_fn(session));
  if (outcome.ok() && count != 0)
    timing_.sample_us =
        static_cast<std::uint32_t>(std::min<std::int64_t>(us_since(begin) / count, UINT32_MAX));
  co_return outcome;
}

asio::awaitable<void> RunTask::expect_times() {
  if (expected_step_us_ != 0) co_return;
  const model::Board* board = env_->registry->find(slot_.uid);
  if (board == nullptr || !run_.effective.k || !run_.effective.batch) co_return;
  auto rates = co_await read_rates(*env_, *board, *model_);
  if (!rates.ok()) co_return;
  expected_step_us_ = step_ns(*rates, *model_, env_->registry->find(slot_.uid)->board_type,
                              *run_.effective.k, *run_.effective.batch) /
                      1000;
  if (timing_.sample_us == 0) timing_.sample_us = rates->sample_us;
}

// Host time of training only: pauses and lost boards are not in it.
void RunTask::begin_clock() {
  epoch_begin_ = std::chrono::steady_clock::now();
  epoch_whole_ = run_.steps_done % steps_of_epoch() == 0;
  first_step_ = UINT32_MAX;
}

std::uint32_t RunTask::steps_of_epoch() const {
  return std::max(1u, data::steps_per_epoch(run_.train_samples, run_.effective.batch.value_or(8)));
}

void RunTask::end_epoch_clock(model::Run& next, std::uint32_t step_us) {
  if (step_us != 0) next.timing.step_us = step_us;
  const std::int64_t took = us_since(epoch_begin_);
  if (epoch_whole_ && took > 0)
    next.timing.epoch_us = static_cast<std::uint32_t>(std::min<std::int64_t>(took, UINT32_MAX));
  epoch_begin_ = std::chrono::steady_clock::now();
  epoch_whole_ = true;
}

// steps_done: also those of an epoch under way.
std::int64_t RunTask::eta_of(const model::Run& next, std::uint32_t steps_done) const {
  const bool training = next.state == model::RunState::kRunning;
  const bool last =
      next.state == model::RunState::kEvaluating && !next.final_weights_hash.is_zero();
  if (!training && !last) return 0;
  double left_us = 0;
  if (training) {
    const double step = next.timing.epoch_us != 0
                            ? double{1} * next.timing.epoch_us / steps_of_epoch()
                        : seen_step_us_ > 0 ? seen_step_us_
                                            : expected_step_us_;
    if (step <= 0 || next.steps_total == 0) return 0;
    left_us = step * (next.steps_total - std::min(next.steps_total, steps_done));
  }
  if (next.spec.evaluate && dataset_) left_us += double{1} * timing_.sample_us * dataset_->test;
  return env_->clock.now_us() + static_cast<std::int64_t>(left_us);
}

void RunTask::note_step_time(std::uint32_t step) {
  if (run_.timing.epoch_us != 0 || run_.state != model::RunState::kRunning) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_step_ == UINT32_MAX || step <= first_step_) {
    first_step_ = step;
    first_step_time_ = last_eta_ = now;
    return;
  }
  seen_step_us_ = static_cast<double>(us_since(first_step_time_)) / (step - first_step_);
  if (now - first_step_time_ < kFirstEta || (eta_shown_ && now - last_eta_ < kEtaEvery)) return;
  last_eta_ = now;
  eta_shown_ = true;
  asio::co_spawn(
      env_->io,
      [](std::shared_ptr<RunTask> self, std::uint32_t done) -> asio::awaitable<void> {
        if (self->run_.state != model::RunState::kRunning) co_return;
        Save what;
        what.edit = [self, done](model::Run& r) { r.eta_time_us = self->eta_of(r, done); };
        what.keep_eta = true;
        (void)co_await self->save(std::move(what));
      }(shared_from_this(), step + 1),
      fleet::Detached{});
}

void RunTask::judge(model::Run& next) const {
  const bool guard = next.effective.guard.value_or(false);
  const auto score = [&](const model::Accuracy& a, const model::Loss& l) {
    return l.count != 0 ? absl::StrCat("squared error ", l.sum, " over ", l.count)
                        : absl::StrCat(a.correct, " of ", a.total, " right");
  };
  const std::string start = score(next.heldout_start, next.heldout_start_loss);
  const std::string best = score(next.heldout_best, next.heldout_best_loss);
  if (!guard) {
    next.guard_verdict = model::GuardVerdict::kOff;
    next.verdict_text =
        absl::StrCat("without a guard: the weights of the last step, ", next.steps_done);
  } else if (next.best_step == 0) {
    next.guard_verdict = model::GuardVerdict::kStart;
    next.verdict_text = absl::StrCat("rolled back to the weights that it began with (held-out ",
                                     start, "): no epoch was better");
  } else if (next.best_step >= next.steps_total) {
    next.guard_verdict = model::GuardVerdict::kLast;
    next.verdict_text =
        absl::StrCat("the weights of the last step are the best: held-out ", start, " -> ", best);
  } else {
    next.guard_verdict = model::GuardVerdict::kBest;
    next.verdict_text = absl::StrCat("rolled back to the best, of step ", next.best_step, " of ",
                                     next.steps_total, ": held-out ", start, " -> ", best);
  }
}

asio::awaitable<Status> RunTask::keep_before_start(Session session, model::DeviceState state) {
  if (run_.attempt != 0 || state.run_id == run_.id) co_return absl::OkStatus();
  auto stopped = co_await stop_other_run(*env_, session, state, Uuid{});
  if (!stopped.ok()) co_return stopped;
  auto kept = co_await keep_unsaved(*env_, session, state, "a run");
  if (kept.ok()) co_return absl::OkStatus();
  if (absl::IsUnavailable(kept.status()) || absl::IsDeadlineExceeded(kept.status()) ||
      absl::IsCancelled(kept.status()) || reason_of(kept.status()) == "DISK_FULL")
    co_return kept.status();
  auto told = co_await warn(
      "NOT_KEPT", "the weights that the board held could not be kept: " + text_of(kept.status()),
      "The run goes on; they are lost.");
  co_return told;
}

asio::awaitable<Result<model::Run>> RunTask::set_place(CallContext ctx, std::int32_t priority,
                                                       std::int64_t rank) {
  const auto self = shared_from_this();
  if (run_.state != model::RunState::kQueued)
    co_return with_reason(
        absl::FailedPreconditionError(shown() + " does not wait for its board any more"),
        "RUN_NOT_QUEUED", "Look at the queue: odtctl run queue.");
  Save what;
  what.actor = ctx.actor;
  what.command_id = ctx.command_id;
  what.edit = [priority, rank](model::Run& r) {
    r.priority = priority;
    r.queue_rank = rank;
  };
  auto saved = co_await save(std::move(what));
  if (!saved.ok()) co_return saved;
  co_return run_;
}

asio::awaitable<void> RunTask::abandon() {
  const auto self = shared_from_this();
  abandoned_ = true;
  if (model::is_final(run_.state)) co_return;
  co_await end(model::RunState::kFailed,
               with_reason(absl::AbortedError("the run showed no progress until its lease of the "
                                              "board expired"),
                           "LEASE_EXPIRED", "Look at the log, then: odtctl run retry."));
}

}  // namespace odt::training

#include "data/order.h"
#include "training/run_task.h"

// A started run whose batches come over the link.
namespace odt::training {

asio::awaitable<Status> RunTask::streamed_step(Session session, std::uint32_t step) {
  const auto& e = run_.effective;
  const std::uint32_t per_epoch = data::steps_per_epoch(train_.count(), *e.batch);
  const std::uint32_t epoch = step / per_epoch;
  if (order_epoch_ != epoch) {
    order_ = data::epoch_order(*e.order_seed, epoch, train_.count());
    order_epoch_ = epoch;
  }
  const std::uint32_t first = step % per_epoch * *e.batch;
  const std::uint32_t n = data::samples_of_step(step, train_.count(), *e.batch);
  auto batch = std::make_shared<const std::string>(train_.batch(order_.data() + first, n));
  const std::uint32_t batch_id = env_->next_id();
  auto sent = co_await session->send(model::Resource::kBatch, kBatchSlot, batch, batch_id);
  if (!sent.ok()) co_return sent;
  auto frame = co_await session->train_step(run_.id, run_.attempt, step, batch_id, kBatchSlot);
  if (!frame.ok()) co_return frame.status();
  env_->registry->note_step(slot_.uid, step + 1);
  keep_streamed(step, std::move(*frame));
  co_return absl::OkStatus();
}

void RunTask::keep_streamed(std::uint32_t step, model::TelemetryFrame frame) {
  frame.step = step;
  const std::uint32_t every = *run_.effective.telemetry_every;
  if (every != 0 && step % every == 0) add_telemetry(std::move(frame));
}

// The answer to the board's last step may have been lost with the session or the daemon that asked:
// the board gives it again.
asio::awaitable<Status> RunTask::last_streamed(Session session, std::uint32_t steps) {
  if (steps == 0) co_return absl::OkStatus();
  auto frame = co_await session->train_step(run_.id, run_.attempt, steps - 1, 0, kBatchSlot);
  if (absl::IsUnavailable(frame.status())) co_return frame.status();
  if (frame.ok()) keep_streamed(steps - 1, std::move(*frame));
  co_return absl::OkStatus();  // a board that took up a state has no record of its last step
}

asio::awaitable<Status> RunTask::streamed_end_epoch(Session session, std::uint32_t epoch) {
  std::uint32_t eval_id = 0;
  if (!heldout_.empty()) {
    auto outcome = co_await evaluate_streamed(*env_, session, heldout_, stop_fn(session));
    if (!outcome.ok()) co_return outcome.status();
    eval_id = outcome->eval_id;
  }
  auto ended = co_await session->end_epoch(run_.id, run_.attempt, epoch, eval_id);
  if (!ended.ok()) co_return ended;
  if (epoch + 1 == *run_.effective.epochs) {
    ended = co_await settle_best(session);  // its record comes after the roll-back
    if (!ended.ok()) co_return ended;
  }
  ended = co_await fetch_epochs(session, epoch + 1);
  if (!ended.ok()) co_return ended;
  ended = co_await drain_epochs(session);
  co_return ended;
}

asio::awaitable<Status> RunTask::ensure_start_weights(Session session) {
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  if (state->weights_hash == run_.spec.start_snapshot) co_return absl::OkStatus();
  auto pushed = co_await push_start_snapshot(session);
  if (!pushed.ok()) co_return pushed;
  state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  if (state->weights_hash != run_.spec.start_snapshot)
    co_return absl::DataLossError("the board does not hold the start snapshot after it was sent");
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::follow_streamed(Session session, model::DeviceState state) {
  auto done = co_await fetch_epochs(session, state.epoch);
  if (!done.ok()) co_return done;
  done = co_await drain_epochs(session);
  if (!done.ok()) co_return done;
  done = co_await last_streamed(session, state.step);
  if (!done.ok()) co_return done;
  if (state.step == 0 && !run_.spec.start_snapshot.is_zero()) {
    done = co_await ensure_start_weights(session);
    if (!done.ok()) co_return done;
  }
  if (state.step == 0 && !heldout_.empty()) {
    // The start score: the board refuses its first step without one.
    auto outcome = co_await evaluate_streamed(*env_, session, heldout_, stop_fn(session));
    if (!outcome.ok()) co_return outcome.status();
  }
  done = co_await settle_best(session);
  if (!done.ok()) co_return done;
  const std::uint32_t per_epoch = data::steps_per_epoch(train_.count(), *run_.effective.batch);
  std::uint32_t step = state.step;
  for (std::uint32_t epoch = state.epoch; epoch < *run_.effective.epochs;) {
    done = interrupted(session);
    if (!done.ok()) co_return done;
    if (run_.desired == model::Desired::kPause) {
      done = co_await hold_paused(session, "paused on request");
      co_return done;
    }
    if (step < (epoch + 1) * per_epoch) {
      done = co_await streamed_step(session, step);
      if (done.ok()) note_step_time(step);
      ++step;
    } else {
      done = co_await streamed_end_epoch(session, epoch);
      ++epoch;
    }
    if (absl::IsFailedPrecondition(done))  // not where we thought: look again
      co_return absl::AbortedError(text_of(done));
    if (!done.ok()) co_return done;
  }
  done = co_await finish(session);
  co_return done;
}

}  // namespace odt::training

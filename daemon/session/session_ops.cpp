#include "session/session_impl.h"

namespace odt::session {
namespace {

constexpr std::chrono::milliseconds kPollEval{50};
constexpr std::chrono::milliseconds kEpochWait{500};
constexpr int kEpochTries = 10;

template <typename T>
Result<T> take(Result<wire::Answer>& answer, const char* what) {
  if (!answer.ok()) return answer.status();
  if (auto* value = std::get_if<T>(&answer->result)) return std::move(*value);
  return absl::InternalError(std::string("the board's answer has no ") + what);
}

}  // namespace

asio::awaitable<Result<model::DeviceState>> SessionImpl::get_state(bool with_hash) {
  Result<wire::Answer> answer = co_await call(wire::request::get_state(with_hash));
  co_return take<model::DeviceState>(answer, "state");
}

asio::awaitable<Result<model::DeviceState>> SessionImpl::start_run(StartRun start) {
  const auto self = shared_from_this();
  // A list that is longer than the board's array would make the whole message undecodable.
  const std::size_t layers = start.spec.hyper.layer_k.size();
  if (hello_.max_layers != 0 && layers > hello_.max_layers) {
    co_return absl::ResourceExhaustedError("the run names k of " + std::to_string(layers) +
                                           " layers; the board takes " +
                                           std::to_string(hello_.max_layers));
  }
  const wire::request::StartRun request{
      start.run_id,       start.attempt,        start.spec,    start.expect_state,
      start.from_weights, start.expect_weights, start.steering};
  Result<wire::Answer> answer = co_await call(wire::request::start_run(request));
  if (!answer.ok()) co_return answer.status();
  run_ = start.run_id;
  attempt_ = start.attempt;
  if (auto* state = std::get_if<model::DeviceState>(&answer->result)) co_return std::move(*state);
  Result<model::DeviceState> asked = co_await get_state(false);
  co_return asked;
}

asio::awaitable<Result<model::TelemetryFrame>> SessionImpl::train_step(Uuid run,
                                                                       std::uint32_t attempt,
                                                                       std::uint32_t step,
                                                                       std::uint32_t batch_id,
                                                                       std::uint32_t slot) {
  const auto self = shared_from_this();
  Result<wire::Answer> answer =
      co_await call(wire::request::train_step(run, attempt, step, batch_id, slot));
  Result<model::TelemetryFrame> frame = take<model::TelemetryFrame>(answer, "step record");
  if (frame.ok()) {
    frame->run_id = run;
    frame->attempt = attempt;
    frame->board_uid = hello_.uid;
    frame->boot_id = hello_.boot_id;
    frame->time_us = clock_.now_us();
  }
  co_return frame;
}

asio::awaitable<Status> SessionImpl::end_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch,
                                               std::uint32_t eval_id) {
  return call_status(wire::request::end_epoch(run, attempt, epoch, eval_id));
}

asio::awaitable<Status> SessionImpl::ack_epoch(Uuid run, std::uint32_t attempt,
                                               std::uint32_t epoch) {
  return call_status(wire::request::ack_epoch(run, attempt, epoch));
}

// The record comes before the answer; on a lossy line it may be lost or late, and is asked for
// again.
asio::awaitable<Status> SessionImpl::get_epoch(std::uint32_t epoch) {
  const auto self = shared_from_this();
  if (sink_ == nullptr) co_return absl::FailedPreconditionError("nobody listens to this session");
  wanted_epoch_ = epoch;
  Status asked;
  for (int i = 0; i < kEpochTries && asked.ok() && wanted_epoch_ == epoch && !closed_; ++i) {
    asked = co_await call_status(wire::request::get_epoch(epoch));
    const SteadyTime until = now() + kEpochWait;
    while (asked.ok() && !closed_ && wanted_epoch_ == epoch && now() < until) {
      co_await events_signal_.wait_until(until);
    }
  }
  const bool missing = wanted_epoch_ == epoch;
  wanted_epoch_.reset();
  if (!asked.ok()) co_return asked;
  if (closed_) co_return gone();
  if (missing) {
    co_return absl::DeadlineExceededError("epoch " + std::to_string(epoch) +
                                          ": its record did not come");
  }
  co_return absl::OkStatus();
}

asio::awaitable<Status> SessionImpl::job_control(Uuid run, Action action) {
  return call_status(wire::request::job_control(run, static_cast<int>(action)));
}

asio::awaitable<Status> SessionImpl::set_precision(Uuid run, std::uint32_t attempt,
                                                   model::Steer steer) {
  return call_status(wire::request::set_precision(run, attempt, steer));
}

asio::awaitable<Status> SessionImpl::best_kept(Uuid run, std::uint32_t attempt, Hash weights) {
  return call_status(wire::request::best_kept(run, attempt, weights));
}

// The result of a resident evaluation comes later, as event or by get_eval().
asio::awaitable<Result<model::EvalReport>> SessionImpl::evaluate(std::uint32_t eval_id,
                                                                 model::SampleRole role,
                                                                 std::uint32_t total) {
  const auto self = shared_from_this();
  Result<wire::Answer> answer = co_await exchange(wire::request::evaluate(eval_id, role, total));
  if (!answer.ok()) co_return answer.status();
  if (!answer->error.ok()) co_return answer->error;
  model::EvalReport report;
  report.eval_id = eval_id;
  if (auto* eval = std::get_if<model::EvalReport>(&answer->result)) report = *eval;
  co_return report;
}

asio::awaitable<Result<model::EvalReport>> SessionImpl::eval_step(std::uint32_t eval_id,
                                                                  std::uint32_t seq,
                                                                  std::uint32_t batch_id,
                                                                  std::uint32_t slot) {
  const auto self = shared_from_this();
  Result<wire::Answer> answer =
      co_await exchange(wire::request::eval_step(eval_id, seq, batch_id, slot));
  while (answer.ok() && answer->error.ok()) {
    if (const auto* eval = std::get_if<model::EvalReport>(&answer->result)) {
      if (answer->accepted_ms == 0 && (eval->done || eval->next_seq > seq)) co_return *eval;
    } else if (answer->accepted_ms == 0) {
      co_return absl::InternalError("the board's answer has no evaluation");
    }
    co_await progress_signal_.wait_until(now() + kPollEval);
    if (closed_) co_return gone();
    answer = co_await exchange(wire::request::get_eval(eval_id));
  }
  if (!answer.ok()) co_return answer.status();
  co_return answer->error;
}

asio::awaitable<Result<model::EvalReport>> SessionImpl::get_eval(std::uint32_t eval_id) {
  Result<wire::Answer> answer = co_await call(wire::request::get_eval(eval_id));
  co_return take<model::EvalReport>(answer, "evaluation");
}

asio::awaitable<Result<model::InferReport>> SessionImpl::infer() {
  Result<wire::Answer> answer = co_await call(wire::request::infer());
  co_return take<model::InferReport>(answer, "inference");
}

BoardSession::Captured SessionImpl::capture(std::string request) {
  Result<wire::Answer> answer = co_await call(std::move(request));
  co_return take<model::CaptureState>(answer, "windows");
}

BoardSession::Captured SessionImpl::capture_start(model::CaptureSettings settings) {
  return capture(wire::request::capture_start(settings));
}

BoardSession::Captured SessionImpl::capture_stop() {
  return capture(wire::request::capture_stop());
}

BoardSession::Captured SessionImpl::get_windows(std::uint32_t from_id) {
  return capture(wire::request::get_windows(from_id));
}

BoardSession::Captured SessionImpl::label_window(std::uint32_t window_id, std::uint32_t label,
                                                 model::SampleRole keep) {
  return capture(wire::request::label_window(window_id, label, keep));
}

BoardSession::Captured SessionImpl::feed_sensor(std::uint64_t first, std::string steps) {
  return capture(wire::request::feed_sensor(first, steps));
}

asio::awaitable<Status> SessionImpl::identify(std::uint32_t seconds) {
  return call_status(wire::request::identify(seconds));
}

asio::awaitable<Status> SessionImpl::reset() { return call_status(wire::request::reset()); }

std::uint32_t SessionImpl::commit_id() {
  std::uint32_t id = 0;
  while (id == 0) id = static_cast<std::uint32_t>(random_());
  return id;
}

asio::awaitable<Result<model::NvmInfo>> SessionImpl::nvm_commit(Hash expect) {
  Result<wire::Answer> answer = co_await call(wire::request::nvm_commit(commit_id(), expect));
  co_return take<model::NvmInfo>(answer, "non-volatile memory");
}

asio::awaitable<Result<model::NvmInfo>> SessionImpl::nvm_erase() {
  Result<wire::Answer> answer = co_await call(wire::request::nvm_erase(commit_id()));
  co_return take<model::NvmInfo>(answer, "non-volatile memory");
}

asio::awaitable<Result<model::NvmInfo>> SessionImpl::nvm_status(bool restore) {
  Result<wire::Answer> answer = co_await call(wire::request::nvm_status(restore));
  co_return take<model::NvmInfo>(answer, "non-volatile memory");
}

}  // namespace odt::session

#include "training/board_ops.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "base/failpoint.h"
#include "data/odtw.h"
#include "training/keepsake.h"

namespace odt::training {
namespace {

constexpr std::int64_t kCommandDeadlineUs = 60'000'000;
constexpr std::uint32_t kEvalBatch = 32;
constexpr std::string_view kBoardCommit = "nvm_commit";

const char* code_name(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case absl::StatusCode::kNotFound:
      return "NOT_FOUND";
    case absl::StatusCode::kResourceExhausted:
      return "BOARD_RAM";
    case absl::StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case absl::StatusCode::kDataLoss:
      return "DATA_LOSS";
    case absl::StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case absl::StatusCode::kUnavailable:
      return "BOARD_LOST";
    case absl::StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case absl::StatusCode::kAborted:
      return "ABORTED";
    case absl::StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case absl::StatusCode::kCancelled:
      return "CANCELLED";
    default:
      return "INTERNAL";
  }
}

}  // namespace

model::Reason reason_from(const Status& status) {
  model::Reason reason{reason_of(status), text_of(status), remedy_of(status)};
  if (reason.code.empty()) reason.code = code_name(status.code());
  return reason;
}

asio::awaitable<Status> CommandLog::put(model::CommandState state) {
  command_.state = state;
  store::Batch batch;
  batch.changes.push_back(store::PutCommand{command_});
  auto done = co_await env_.control.commit(std::move(batch));
  co_return done.status();
}

asio::awaitable<Status> CommandLog::begin(std::string kind, Hash target) {
  command_ = {};
  command_.id = new_uuid();
  command_.uid = uid_;
  command_.kind = std::move(kind);
  command_.target = target;
  command_.deadline_us = env_.clock.now_us() + kCommandDeadlineUs;
  command_.run_id = run_id_;
  // One commit before sending: "intent" and "sent" would differ only for a crash in between.
  auto stored = co_await put(model::CommandState::kSent);
  if (command_.kind == kBoardCommit) fail_here("board.commit.ask");
  co_return stored;
}

asio::awaitable<void> CommandLog::settle(Status outcome) {
  if (command_.kind == kBoardCommit) fail_here("board.commit.done");
  const bool unknown = absl::IsUnavailable(outcome) || absl::IsDeadlineExceeded(outcome);
  auto stored = co_await put(unknown ? model::CommandState::kUnknown : model::CommandState::kDone);
  if (!stored.ok()) env_.say(4, "store: " + stored.ToString());
}

asio::awaitable<void> settle_commands(Env& env, BoardUid uid, model::DeviceState state) {
  const auto read = [uid](store::ControlStore& s) { return s.open_commands(uid); };
  auto open = co_await env.control.call(read);
  if (!open.ok() || open->empty()) co_return;
  store::Batch batch;
  for (auto& command : *open) {
    const bool reached = command.target.is_zero() || command.target == state.model_hash ||
                         command.target == state.state_hash ||
                         command.target == state.weights_hash || command.run_id == state.run_id;
    env.say(2, absl::StrCat("board ", uid.hex(), ": command ", command.kind,
                            " was open; its effect is ", reached ? "there" : "not there"));
    command.state = model::CommandState::kDone;
    batch.changes.push_back(store::PutCommand{command});
  }
  auto done = co_await env.control.commit(std::move(batch));
  if (!done.ok()) env.say(4, "store: " + done.status().ToString());
}

asio::awaitable<Status> stop_other_run(Env& env, Session session, model::DeviceState state,
                                       Uuid keep) {
  using J = model::JobState;
  const bool active = state.job == J::kRunning || state.job == J::kPaused ||
                      state.job == J::kEpochHold || state.job == J::kReady;
  if (!active || state.run_id.is_zero() || state.run_id == keep) co_return absl::OkStatus();
  CommandLog command(env, session->hello().uid, state.run_id);
  auto begun = co_await command.begin("job_control", Hash{});
  if (!begun.ok()) co_return begun;
  auto stopped = co_await session->job_control(state.run_id, session::BoardSession::Action::kStop);
  co_await command.settle(stopped);
  // A run that has ended meanwhile is stopped enough.
  if (absl::IsFailedPrecondition(stopped) || absl::IsNotFound(stopped)) co_return absl::OkStatus();
  co_return stopped;
}

session::BoardSession::Progress progress_of(Env& env, const Session& session) {
  return [&env, uid = session->hello().uid](std::uint32_t, std::uint32_t) { env.progress(uid); };
}

asio::awaitable<Status> load_image(Env& env, Session session, model::DeviceState state,
                                   Hash model_hash) {
  auto stopped = co_await stop_other_run(env, session, state, Uuid{});
  if (!stopped.ok()) co_return stopped;
  auto image = co_await env.read_blob(model_hash);
  if (!image.ok()) co_return image.status();
  CommandLog command(env, session->hello().uid, Uuid{});
  auto begun = co_await command.begin("load_image", model_hash);
  if (!begun.ok()) co_return begun;
  auto sent = co_await session->send(model::Resource::kModelImage, 0, *image, 0, {},
                                     progress_of(env, session));
  co_await command.settle(sent);
  if (sent.ok()) co_await note_initial_weights(env, session, model_hash);
  co_return sent;
}

asio::awaitable<Result<data::SampleSet>> load_samples(Env& env, Hash blob, std::uint32_t targets) {
  if (blob.is_zero()) co_return data::SampleSet{};
  auto content = co_await env.read_blob(blob);
  if (!content.ok()) co_return content.status();
  auto set = data::SampleSet::parse(std::move(*content), targets);
  co_return set;
}

asio::awaitable<Result<EvalOutcome>> evaluate_streamed(Env& env, Session session,
                                                       data::SampleSet set, StopFn stop,
                                                       std::function<void(std::uint32_t)> progress,
                                                       bool each) {
  const auto& hello = session->hello();
  std::uint32_t size = hello.max_batch == 0 ? 8 : std::min(hello.max_batch, kEvalBatch);
  // The batch slot stays on the board: it should leave room for the trainer.
  if (hello.ram_bytes != 0 && set.sample_bytes() != 0)
    size = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(hello.ram_bytes / 16 / set.sample_bytes(), 1, size));
  if (each) size = 1;
  EvalOutcome out;
  out.eval_id = env.next_id();
  auto started = co_await session->evaluate(out.eval_id, model::SampleRole::kNone, set.count());
  if (!started.ok()) co_return started.status();
  std::uint32_t done = 0;
  std::uint32_t seq = 0;
  // No room for the batch, or beside it none for the trainer: the same step with half of it.
  const auto smaller = [&size](const Status& status) {
    if (!absl::IsResourceExhausted(status) || size == 1) return false;
    size /= 2;
    return true;
  };
  while (done < set.count()) {
    if (stop && stop()) co_return absl::CancelledError("the evaluation was stopped");
    const std::uint32_t n = std::min(size, set.count() - done);
    auto batch = std::make_shared<const std::string>(set.slice(done, n));
    const std::uint32_t batch_id = env.next_id();
    auto sent = co_await session->send(model::Resource::kBatch, kBatchSlot, batch, batch_id);
    if (smaller(sent)) continue;
    if (!sent.ok()) co_return sent;
    auto report = co_await session->eval_step(out.eval_id, seq, batch_id, kBatchSlot);
    if (smaller(report.status())) continue;
    if (!report.ok()) co_return report.status();
    ++seq;
    done += n;
    if (each) out.scores.push_back(report->loss - out.report.loss);
    if (each && report->accuracy.correct == out.report.accuracy.correct)
      out.wrong.push_back(done - 1);
    env.progress(hello.uid);
    out.report = *report;
    if (progress) progress(done);
  }
  if (!out.report.done || out.report.accuracy.total != set.count())
    co_return absl::DataLossError(absl::StrCat("evaluation of ", set.count(),
                                               " samples ended with ", out.report.accuracy.total));
  co_return out;
}

asio::awaitable<Result<EvalOutcome>> evaluate_resident(Session session, std::uint32_t eval_id,
                                                       model::SampleRole role, StopFn stop) {
  constexpr std::chrono::milliseconds kAskAgain{50};
  asio::steady_timer timer(co_await asio::this_coro::executor);
  auto report = co_await session->evaluate(eval_id, role, 0);
  while (report.ok() && !report->done) {
    if (stop && stop()) co_return absl::CancelledError("the evaluation was stopped");
    timer.expires_after(kAskAgain);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    report = co_await session->get_eval(eval_id);
  }
  if (!report.ok()) co_return report.status();
  EvalOutcome out;
  out.eval_id = eval_id;
  out.report = *report;
  co_return out;
}

model::Scores summary_of(std::vector<std::uint64_t> scores, Hash blob) {
  std::sort(scores.begin(), scores.end());
  const std::size_t n = scores.size();
  // The smallest score that so many per cent of the samples do not exceed.
  const auto rank = [&](std::size_t percent) { return scores[(n * percent + 99) / 100 - 1]; };
  return {scores.front(), rank(50), rank(95), scores.back(), blob};
}

asio::awaitable<Result<Pulled>> pull_current_weights(Session session) {
  // The board may train on between the two answers: ask again until they belong together.
  Status last = absl::AbortedError("the weights changed while they were read");
  for (int tries = 0; tries < 3; ++tries) {
    auto received = co_await session->receive(model::Resource::kWeights);
    if (!received.ok()) {
      last = received.status();
      if (absl::IsAborted(last)) continue;
      co_return last;
    }
    Pulled out;
    out.step = received->version;
    out.content = std::make_shared<const std::string>(std::move(received->content));
    out.hash = sha256(*out.content);
    auto state = co_await session->get_state(true);
    if (!state.ok()) co_return state.status();
    out.run_id = state->run_id;
    out.attempt = state->attempt;
    if (state->weights_hash.is_zero() || state->weights_hash == out.hash || state->step != out.step)
      co_return out;
    last = absl::DataLossError("weights read have hash " + out.hash.hex() + "; the board says " +
                               state->weights_hash.hex());
  }
  co_return last;
}

Result<WeightsHeader> read_weights_header(const std::string& content) {
  ODT_ASSIGN(const data::StoredWeights weights, data::parse_weights(content, "odt_weights"));
  WeightsHeader header;
  header.rules_version = weights.rules_version;
  header.rule_set = weights.rule_set;
  header.n_layers = static_cast<std::uint8_t>(weights.layers.size());
  header.model_hash = weights.model_hash;
  // DFP16: an exponent stands in the place of k.
  for (const data::StoredLayer& layer : weights.layers)
    header.layer_k.push_back(layer.dfp16() ? 16u : static_cast<std::uint8_t>(layer.k));
  header.k = static_cast<std::uint8_t>(header.layer_k[0]);
  return header;
}

Hash best_hash_of_state(const std::string& state) {
  constexpr std::size_t kBestHash = 128;
  Hash hash;
  if (state.size() >= kBestHash + 32) std::memcpy(hash.bytes.data(), state.data() + kBestHash, 32);
  return hash;
}

}  // namespace odt::training

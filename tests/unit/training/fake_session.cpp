#include <algorithm>
#include <cstring>
#include <utility>

#include "data/order.h"
#include "fake_board.h"
#include "fake_board_values.h"

// The link of a fake board: each operation by the contract of BoardSession.
namespace odt::test {
namespace {

using model::JobState;

}  // namespace

FakeSession::FakeSession(std::shared_ptr<FakeBoard> board) : board_(std::move(board)) {
  const FakeBoard& b = *board_;
  hello_.uid = b.uid;
  hello_.board_type = b.board_type;
  hello_.core = b.core;
  hello_.fw_version = b.fw_version;
  hello_.boot_id = b.boot_id;
  hello_.max_layers = 16;
  hello_.max_batch = b.max_batch;
  hello_.caps = b.caps;
  hello_.ram_bytes = b.ram_bytes;
  hello_.rules_version = 1;
  hello_.run_id = b.run_id;
  hello_.attempt = b.attempt;
  hello_.last_step = b.step;
  hello_.job = b.job;
}

void FakeSession::close(const Status& why) {
  if (!alive_) return;
  alive_ = false;
  if (board_->session.get() == this) board_->session = nullptr;
  board_->wake_.notify();
  if (sink_ != nullptr) sink_->on_closed(why);
}

asio::awaitable<Status> FakeSession::begin(std::string op) {
  co_await asio::post(board_->io_, asio::use_awaitable);
  ++board_->ops[op];
  if (board_->before && alive_) {
    Status injected = board_->before(op);
    if (!injected.ok() && alive_) co_return injected;
  }
  while (alive_ && !answering) co_await board_->wake_.wait_for(std::chrono::milliseconds(5));
  if (!alive_) co_return absl::UnavailableError("the session is over");
  last_seen_ = std::chrono::steady_clock::now();
  co_return absl::OkStatus();
}

asio::awaitable<Result<model::DeviceState>> FakeSession::get_state(bool with_hash) {
  Status ok = co_await begin("get_state");
  if (!ok.ok()) co_return ok;
  co_return board_->device_state(with_hash);
}

asio::awaitable<Status> FakeSession::send(model::Resource resource, std::uint32_t index,
                                          std::shared_ptr<const std::string> content,
                                          std::uint32_t batch_id, Hash, Progress) {
  using R = model::Resource;
  static const char* kNames[] = {
      "", "send_image", "send_samples", "send_batch", "send_weights", "send_best", "send_state", "",
      ""};
  Status ok = co_await begin(kNames[static_cast<int>(resource)]);
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  const bool active = b.job == JobState::kRunning || b.job == JobState::kPaused ||
                      b.job == JobState::kEpochHold || b.job == JobState::kReady;
  switch (resource) {
    case R::kModelImage:
      if (active) co_return absl::FailedPreconditionError("a run is active");
      b.image = *content;
      b.samples.clear();
      b.slots.clear();
      b.records.clear();
      b.value = mix(b.image.size());
      b.weights_k = 8;
      b.has_best = b.has_state = false;
      b.run_id = {};
      b.attempt = b.step = b.epoch = b.acked = 0;
      b.start_correct = 0xFFFFFFFF;
      b.best_step = b.best_correct = 0;
      b.job = JobState::kNone;
      co_return absl::OkStatus();
    case R::kSamples: {
      std::uint64_t held = b.image.size() + content->size();
      for (const auto& [role, set] : b.samples) held += set->size();
      if (b.ram_bytes != 0 && held > b.ram_bytes)
        co_return absl::ResourceExhaustedError("memory: bytes wanted for this content");
      b.samples[index] = content;
      co_return absl::OkStatus();
    }
    case R::kBatch:
      b.slots[index] = {batch_id, *content};
      co_return absl::OkStatus();
    case R::kWeights:
      if (content->size() != 80) co_return absl::InvalidArgumentError("weights: size");
      b.value = get64(*content, 64);
      if (b.job == JobState::kReady && b.step == 0) co_return absl::OkStatus();
      b.weights_k = static_cast<std::uint8_t>((*content)[46]);
      b.run_id = {};
      b.job = JobState::kNone;
      b.has_state = false;
      co_return absl::OkStatus();
    case R::kBestWeights:
      b.best_value = get64(*content, 64);
      b.has_best = true;
      co_return absl::OkStatus();
    case R::kState:
      if (active) co_return absl::FailedPreconditionError("a run is active");
      co_return b.load_state(*content);
    default:
      co_return absl::UnimplementedError("resource");
  }
}

asio::awaitable<Result<session::BoardSession::Received>> FakeSession::receive(
    model::Resource resource, std::uint32_t) {
  using R = model::Resource;
  Status ok = co_await begin(resource == R::kState ? "receive_state" : "receive");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  Received out;
  out.version = b.step;
  if (resource == R::kWeights) out.content = b.weights_blob(b.value);
  if (resource == R::kBestWeights) out.content = b.weights_blob(b.best_value);
  if (resource == R::kState) out.content = b.state_blob();
  if (resource == R::kEvalResult) {
    out.content.assign(2 * 2 * 4, '\0');
    std::memcpy(out.content.data(), &b.evaluation.accuracy.correct, 4);
  }
  co_return out;
}

asio::awaitable<Result<model::DeviceState>> FakeSession::start_run(StartRun start) {
  Status ok = co_await begin("start_run");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id == start.run_id && b.attempt == start.attempt) co_return b.device_state(false);
  const bool active = b.job == JobState::kRunning || b.job == JobState::kPaused ||
                      b.job == JobState::kEpochHold || b.job == JobState::kReady;
  if (active && b.run_id != start.run_id)
    co_return absl::FailedPreconditionError("another run is active");
  if (b.image.empty()) co_return absl::FailedPreconditionError("no model image");
  if (start.from_weights && b.one_copy_of_weights)
    co_return absl::ResourceExhaustedError("memory: bytes wanted for training");
  b.spec = start.spec;
  b.steering = start.steering;
  b.resident = !start.spec.streamed;
  if (!start.expect_state.is_zero()) {
    if (!b.has_state || b.state_hash() != start.expect_state)
      co_return absl::FailedPreconditionError("the state held has another hash");
  } else {
    if (start.from_weights) {
      if (sha256(b.weights_blob(b.value)) != start.expect_weights)
        co_return absl::FailedPreconditionError("the weights held have another hash");
    } else {
      b.value = mix(b.image.size());
    }
    b.weights_k = static_cast<std::uint8_t>(*start.spec.hyper.k);
    b.step = b.epoch = b.acked = 0;
    b.start_correct = 0xFFFFFFFF;
    b.has_best = false;
    b.has_state = true;
    b.records.clear();
  }
  b.run_id = start.run_id;
  b.attempt = start.attempt;
  b.job = b.resident ? JobState::kRunning : JobState::kReady;
  if (b.resident) b.start_training();
  co_return b.device_state(false);
}

asio::awaitable<Result<model::TelemetryFrame>> FakeSession::train_step(Uuid run,
                                                                       std::uint32_t attempt,
                                                                       std::uint32_t step,
                                                                       std::uint32_t batch_id,
                                                                       std::uint32_t slot) {
  Status ok = co_await begin("train_step");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id != run || b.attempt != attempt) co_return absl::NotFoundError("other run");
  if (b.spec.heldout_samples != 0 && b.start_correct == 0xFFFFFFFF)
    co_return absl::FailedPreconditionError("no start score");
  if (step != b.step) co_return absl::FailedPreconditionError("step");
  if (b.slots[slot].first != batch_id) co_return absl::FailedPreconditionError("batch");
  b.run_step(sum_of(b.slots[slot].second));
  co_return b.frame_of(step);
}

asio::awaitable<Status> FakeSession::end_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch,
                                               std::uint32_t eval_id) {
  Status ok = co_await begin("end_epoch");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id != run || b.attempt != attempt) co_return absl::NotFoundError("other run");
  if (epoch + 1 == b.epoch) co_return absl::OkStatus();
  if (epoch != b.epoch || b.step != (epoch + 1) * b.per_epoch())
    co_return absl::FailedPreconditionError("epoch");
  if (b.spec.heldout_samples != 0 && (b.evaluation.id != eval_id || !b.evaluation.done ||
                                      b.evaluation.accuracy.total != b.spec.heldout_samples))
    co_return absl::FailedPreconditionError("evaluation");
  b.end_epoch_now(b.evaluation.accuracy.correct);
  b.job = b.epoch == *b.spec.hyper.epochs ? JobState::kDone : JobState::kEpochHold;
  b.send_epoch(epoch);
  co_return absl::OkStatus();
}

asio::awaitable<Status> FakeSession::ack_epoch(Uuid run, std::uint32_t attempt,
                                               std::uint32_t epoch) {
  Status ok = co_await begin("ack_epoch");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id != run || b.attempt != attempt) co_return absl::NotFoundError("other run");
  if (epoch >= b.epoch) co_return absl::FailedPreconditionError("epoch is not over");
  b.acked = std::max(b.acked, epoch + 1);
  for (std::uint32_t e = 0; e < b.acked; ++e) b.records.erase(e);
  if (!b.resident && b.job == JobState::kEpochHold) b.job = JobState::kReady;
  b.wake_.notify();
  co_return absl::OkStatus();
}

asio::awaitable<Status> FakeSession::get_epoch(std::uint32_t epoch) {
  Status ok = co_await begin("get_epoch");
  if (!ok.ok()) co_return ok;
  if (board_->records.count(epoch) == 0) co_return absl::NotFoundError("no such record");
  board_->send_epoch(epoch);
  co_return absl::OkStatus();
}

asio::awaitable<Status> FakeSession::set_precision(Uuid run, std::uint32_t attempt,
                                                   model::Steer steer) {
  Status ok = co_await begin("set_precision");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id != run) co_return absl::NotFoundError("other run");
  if (attempt != b.attempt) co_return absl::FailedPreconditionError("other attempt");
  if (std::find(b.steering.begin(), b.steering.end(), steer) != b.steering.end())
    co_return absl::OkStatus();
  if (steer.step < b.step) co_return absl::FailedPreconditionError("step is done");
  b.steering.push_back(steer);
  co_return absl::OkStatus();
}

asio::awaitable<Status> FakeSession::best_kept(Uuid, std::uint32_t, Hash) {
  Status ok = co_await begin("best_kept");
  co_return ok;
}

asio::awaitable<Status> FakeSession::job_control(Uuid run, Action action) {
  static const char* kNames[] = {"", "pause", "resume", "stop"};
  Status ok = co_await begin(kNames[static_cast<int>(action)]);
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.run_id != run) co_return absl::NotFoundError("other run");
  if (action == Action::kStop) {
    b.job = JobState::kStopped;
    b.job_event("stopped");
  } else if (action == Action::kPause) {
    if (b.job != JobState::kRunning && b.job != JobState::kEpochHold && b.job != JobState::kPaused)
      co_return absl::FailedPreconditionError("nothing runs");
    b.job = JobState::kPaused;
    b.job_event("paused");
  } else if (b.job == JobState::kPaused) {
    b.job = JobState::kRunning;
    b.start_training();
  }
  b.wake_.notify();
  co_return absl::OkStatus();
}

Result<model::EvalReport> FakeSession::report() const {
  model::EvalReport r;
  r.eval_id = board_->evaluation.id;
  r.accuracy = board_->evaluation.accuracy;
  if (board_->losses) r.loss = std::exchange(r.accuracy.correct, 0u);
  r.done = board_->evaluation.done;
  r.next_seq = board_->evaluation.seq;
  return r;
}

asio::awaitable<Result<model::EvalReport>> FakeSession::evaluate(std::uint32_t eval_id,
                                                                 model::SampleRole role,
                                                                 std::uint32_t total) {
  Status ok = co_await begin("evaluate");
  if (!ok.ok()) co_return ok;
  if (role != model::SampleRole::kNone) co_return absl::UnimplementedError("resident");
  if (board_->image.empty()) co_return absl::FailedPreconditionError("no weights");
  board_->evaluation = {};
  board_->evaluation.id = eval_id;
  board_->evaluation.total = total;
  co_return report();
}

asio::awaitable<Result<model::EvalReport>> FakeSession::eval_step(std::uint32_t eval_id,
                                                                  std::uint32_t seq,
                                                                  std::uint32_t batch_id,
                                                                  std::uint32_t slot) {
  Status ok = co_await begin("eval_step");
  if (!ok.ok()) co_return ok;
  FakeBoard& b = *board_;
  if (b.evaluation.id != eval_id) co_return absl::NotFoundError("evaluation");
  if (b.evaluation.seq != seq) co_return absl::FailedPreconditionError("seq");
  if (b.slots[slot].first != batch_id) co_return absl::FailedPreconditionError("batch");
  const auto set =
      data::SampleSet::parse(std::make_shared<const std::string>(b.slots[slot].second));
  if (!set.ok()) co_return set.status();
  ++b.evaluation.seq;
  b.evaluation.accuracy.total += set->count();
  if (b.evaluation.accuracy.total == b.evaluation.total) {
    b.evaluation.done = true;
    b.evaluation.accuracy.correct = b.score(b.value, b.evaluation.total);
    if (!b.run_id.is_zero() && !b.resident && b.step == 0 && b.start_correct == 0xFFFFFFFF &&
        b.evaluation.total == b.spec.heldout_samples) {
      b.start_correct = b.best_correct = b.evaluation.accuracy.correct;
      if (*b.spec.hyper.guard) {
        b.best_value = b.value;
        b.has_best = true;
      }
    }
  }
  co_return report();
}

asio::awaitable<Result<model::EvalReport>> FakeSession::get_eval(std::uint32_t) {
  Status ok = co_await begin("get_eval");
  if (!ok.ok()) co_return ok;
  co_return report();
}

asio::awaitable<Result<model::InferReport>> FakeSession::infer() {
  co_return absl::UnimplementedError("infer");
}

asio::awaitable<Status> FakeSession::identify(std::uint32_t) {
  Status ok = co_await begin("identify");
  co_return ok;
}

// This board has no non-volatile memory.
asio::awaitable<Result<model::NvmInfo>> FakeSession::nvm_commit(Hash) {
  co_return absl::UnimplementedError("no non-volatile memory");
}
asio::awaitable<Result<model::NvmInfo>> FakeSession::nvm_erase() {
  co_return absl::UnimplementedError("no non-volatile memory");
}
asio::awaitable<Result<model::NvmInfo>> FakeSession::nvm_status(bool) {
  co_return absl::UnimplementedError("no non-volatile memory");
}

asio::awaitable<Status> FakeSession::reset() {
  Status ok = co_await begin("reset");
  if (!ok.ok()) co_return ok;
  board_->power_cycle();
  co_return absl::OkStatus();
}

// ---- links --------------------------------------------------------------------------------------

class FakeRunner final : public session::LinkRunner {
 public:
  FakeRunner(std::shared_ptr<FakeLinks::Hosts> hosts, std::string endpoint, session::LinkHost& host)
      : hosts_(std::move(hosts)), endpoint_(std::move(endpoint)), host_(host) {}
  ~FakeRunner() override { hosts_->erase(endpoint_); }
  void start() override { (*hosts_)[endpoint_] = &host_; }
  asio::awaitable<void> stop() override {
    hosts_->erase(endpoint_);
    co_return;
  }

 private:
  std::shared_ptr<FakeLinks::Hosts> hosts_;
  std::string endpoint_;
  session::LinkHost& host_;
};

std::unique_ptr<session::LinkRunner> FakeLinks::make_runner(std::string endpoint,
                                                            session::LinkOptions,
                                                            session::LinkHost& host) {
  return std::make_unique<FakeRunner>(hosts_, std::move(endpoint), host);
}

bool FakeLinks::connect(const std::string& endpoint, std::shared_ptr<FakeBoard> board) {
  const auto it = hosts_->find(endpoint);
  if (it == hosts_->end()) return false;
  auto session = std::make_shared<FakeSession>(board);
  if (!it->second->on_session(endpoint, session)) {
    session->close(absl::FailedPreconditionError("refused"));
    return false;
  }
  board->session = session;
  it->second->on_port_state(endpoint, model::PortState::kOnline, {});
  return true;
}

}  // namespace odt::test

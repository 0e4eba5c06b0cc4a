#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "fleet/async.h"
#include "session/board_session.h"
#include "session/link_runner.h"

// A board that trains nothing, but keeps the contract of BoardSession to the letter that the run
// layer relies on: what it holds is a function of model, samples and steps, so that equal runs end
// in equal hashes. All on the links thread, except where said.
namespace odt::test {

class FakeSession;

class FakeBoard : public std::enable_shared_from_this<FakeBoard> {
 public:
  FakeBoard(asio::io_context& io, std::uint8_t number);

  // ---- what a test sets, before or from the links thread
  std::string board_type = "fake", core = "host";
  std::uint32_t ram_bytes = 0;  // 0: no limit
  std::uint32_t max_batch = 64;
  std::uint32_t caps = 0;  // 0: not told
  std::string fw_version = "0.1.0";
  std::chrono::milliseconds step_time{1};
  // Hears of each operation before it is done; an error is its answer. May call drop() or reset().
  std::function<Status(const std::string& op)> before;
  bool one_copy_of_weights = false;  // StartRun{from_weights} is RESOURCE_EXHAUSTED
  bool corrupt_epochs = false;       // epoch records change from now on
  bool lose_epoch_event = false;     // the next epoch record is not sent unasked
  bool duplicate_epochs = false;     // each epoch record is sent twice

  // ---- what happens to it
  void drop(const char* why = "cable pulled");  // the session ends; the board goes on
  void power_cycle();                           // session and RAM are gone
  // Sends the record of an epoch again, changed: what only a broken or hostile board does.
  void send_spoilt_epoch(std::uint32_t epoch, const std::function<void(model::EpochResult&)>& how);

  bool losses = false;  // of a model without classes: less is better, nothing is right

  Hash device_weights() const { return sha256(weights_blob(value)); }

  // ---- what it holds
  BoardUid uid;
  std::uint64_t boot_id = 1;
  std::string image;
  std::map<std::uint32_t, std::shared_ptr<const std::string>> samples;  // by role
  std::map<std::uint32_t, std::pair<std::uint32_t, std::string>> slots;
  std::uint8_t weights_k = 8;
  std::uint64_t value = 0;  // "the weights"
  std::uint64_t best_value = 0;
  bool has_best = false, has_state = false;
  std::uint32_t best_step = 0, best_correct = 0, start_correct = 0xFFFFFFFF;
  Uuid run_id;
  std::uint32_t attempt = 0, step = 0, epoch = 0;
  std::vector<model::Steer> steering;  // as told, with START_RUN or since
  model::JobState job = model::JobState::kNone;
  model::DeviceRunSpec spec;
  bool resident = false;
  std::uint32_t acked = 0;  // epochs acknowledged
  std::map<std::uint32_t, model::EpochResult> records;
  std::uint32_t event_id = 1;
  struct Evaluation {
    std::uint32_t id = 0, total = 0, seq = 0;
    model::Accuracy accuracy;
    bool done = false;
  } evaluation;

  // Counters for tests.
  std::map<std::string, int> ops;

  std::shared_ptr<FakeSession> session;

 private:
  friend class FakeSession;
  std::string weights_blob(std::uint64_t v) const;
  std::string state_blob() const;
  Hash state_hash() const { return sha256(state_blob()); }
  model::DeviceState device_state(bool with_hash) const;
  std::uint32_t score(std::uint64_t v, std::uint32_t total) const;
  std::uint32_t per_epoch() const;
  void run_step(std::uint32_t batch_sum);
  model::TelemetryFrame frame_of(std::uint32_t step) const;
  void end_epoch_now(std::uint32_t heldout_correct);
  void start_training();
  asio::awaitable<void> train(std::uint64_t generation);
  void send_epoch(std::uint32_t epoch);
  void job_event(const char* text);
  Status load_state(const std::string& blob);

  asio::io_context& io_;
  fleet::Signal wake_;
  std::uint64_t generation_ = 0;  // of RAM: stops the training coroutine
};

class FakeSession final : public session::BoardSession {
 public:
  explicit FakeSession(std::shared_ptr<FakeBoard> board);
  const model::HelloInfo& hello() const override { return hello_; }
  bool alive() const override { return alive_; }
  model::LinkStats stats() const override { return {}; }
  std::chrono::steady_clock::time_point last_seen() const override { return last_seen_; }
  void set_sink(session::SessionSink* sink) override { sink_ = sink; }
  void close(const Status& why) override;

  asio::awaitable<Result<model::DeviceState>> get_state(bool with_hash) override;
  asio::awaitable<Status> send(model::Resource resource, std::uint32_t index,
                               std::shared_ptr<const std::string> content, std::uint32_t batch_id,
                               Hash expect, Progress progress) override;
  asio::awaitable<Result<Received>> receive(model::Resource resource, std::uint32_t index) override;
  asio::awaitable<Result<model::DeviceState>> start_run(StartRun start) override;
  asio::awaitable<Result<model::TelemetryFrame>> train_step(Uuid run, std::uint32_t attempt,
                                                            std::uint32_t step,
                                                            std::uint32_t batch_id,
                                                            std::uint32_t slot) override;
  asio::awaitable<Status> end_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch,
                                    std::uint32_t eval_id) override;
  asio::awaitable<Status> ack_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch) override;
  asio::awaitable<Status> get_epoch(std::uint32_t epoch) override;
  asio::awaitable<Status> job_control(Uuid run, Action action) override;
  asio::awaitable<Status> set_precision(Uuid run, std::uint32_t attempt,
                                        model::Steer steer) override;
  asio::awaitable<Status> best_kept(Uuid run, std::uint32_t attempt, Hash weights) override;
  asio::awaitable<Result<model::EvalReport>> evaluate(std::uint32_t eval_id, model::SampleRole role,
                                                      std::uint32_t total) override;
  asio::awaitable<Result<model::EvalReport>> eval_step(std::uint32_t eval_id, std::uint32_t seq,
                                                       std::uint32_t batch_id,
                                                       std::uint32_t slot) override;
  asio::awaitable<Result<model::EvalReport>> get_eval(std::uint32_t eval_id) override;
  asio::awaitable<Result<model::InferReport>> infer() override;
  asio::awaitable<Status> identify(std::uint32_t seconds) override;
  asio::awaitable<Status> reset() override;
  asio::awaitable<Result<model::NvmInfo>> nvm_commit(Hash expect) override;
  asio::awaitable<Result<model::NvmInfo>> nvm_erase() override;
  asio::awaitable<Result<model::NvmInfo>> nvm_status(bool restore) override;

  bool answering = true;  // false: alive, but mute (operations hang until it is dropped)

 private:
  friend class FakeBoard;
  asio::awaitable<Status> begin(std::string op);
  Result<model::EvalReport> report() const;

  std::shared_ptr<FakeBoard> board_;
  model::HelloInfo hello_;
  session::SessionSink* sink_ = nullptr;
  bool alive_ = true;
  std::chrono::steady_clock::time_point last_seen_ = std::chrono::steady_clock::now();
};

// The endpoint of a fake board: connect() makes a session as a link runner does.
class FakeLinks {
 public:
  explicit FakeLinks(asio::io_context& io) : io_(io) {}
  std::unique_ptr<session::LinkRunner> make_runner(std::string endpoint, session::LinkOptions,
                                                   session::LinkHost& host);
  // Links thread. False: no such runner, or the host refused.
  bool connect(const std::string& endpoint, std::shared_ptr<FakeBoard> board);
  bool running(const std::string& endpoint) const { return hosts_->count(endpoint) != 0; }

 private:
  friend class FakeRunner;
  asio::io_context& io_;
  // Runners may outlive this.
  using Hosts = std::map<std::string, session::LinkHost*>;
  std::shared_ptr<Hosts> hosts_ = std::make_shared<Hosts>();
};

}  // namespace odt::test

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/board.h"
#include "model/device.h"

namespace odt::session {

// Hears of what a board sends unasked. Called on the links thread; must not block (2 ms).
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Step frames have run_id zero where the board did not say it in this session yet: the run layer
  // fills run and attempt from the session's current job. event ids run per boot; `gap` frames
  // stand for what is gone for good.
  virtual void on_step(model::TelemetryFrame frame) = 0;
  virtual void on_epoch(const model::EpochResult& epoch) = 0;
  virtual void on_job(const model::JobChanged& job) = 0;
  virtual void on_eval(const model::EvalReport& eval) = 0;
  virtual void on_nvm(const model::NvmCommitted&) {}
  virtual void on_log(int level, const std::string& text) = 0;  // sanitised
  // A line that came between frames, sanitised.
  virtual void on_console(const std::string& text) { on_log(2, text); }
  virtual void on_status(model::BoardStatus status) = 0;  // online, suspect, busy
  // The conversation is over (5 s silent, link gone, other boot). No call follows.
  virtual void on_closed(const Status& why) = 0;
};

// One conversation with one board, from HELLO to loss, bound to one boot_id. Every operation
// retries inside (RTO: proto/README.md, Requests) and fails with UNAVAILABLE when the session ends;
// errors that the board answers keep the board's code and text. All on the links thread; operations
// of one session queue behind each other.
class BoardSession {
 public:
  virtual ~BoardSession() = default;

  virtual const model::HelloInfo& hello() const = 0;
  virtual bool alive() const = 0;
  virtual model::LinkStats stats() const = 0;
  virtual std::chrono::steady_clock::time_point last_seen() const = 0;
  virtual void set_sink(SessionSink* sink) = 0;  // nullptr: events are kept on the board
  virtual void close(const Status& why) = 0;     // sends BYE

  virtual asio::awaitable<Result<model::DeviceState>> get_state(bool with_hash) = 0;
  // expect: state hash that the board must hold now (zero: any). Progress: bytes done, total.
  using Progress = std::function<void(std::uint32_t, std::uint32_t)>;
  virtual asio::awaitable<Status> send(model::Resource resource, std::uint32_t index,
                                       std::shared_ptr<const std::string> content,
                                       std::uint32_t batch_id = 0, Hash expect = {},
                                       Progress progress = {}) = 0;
  struct Received {
    std::string content;
    std::uint32_t version = 0;  // step at which it was frozen
  };
  virtual asio::awaitable<Result<Received>> receive(model::Resource resource,
                                                    std::uint32_t index = 0) = 0;

  struct StartRun {
    Uuid run_id;
    std::uint32_t attempt = 0;
    model::DeviceRunSpec spec;
    Hash expect_state;  // resume from the state held; zero: fresh
    bool from_weights = false;
    Hash expect_weights;
    std::vector<model::Steer> steering;
  };
  virtual asio::awaitable<Result<model::DeviceState>> start_run(StartRun start) = 0;
  virtual asio::awaitable<Result<model::TelemetryFrame>> train_step(Uuid run, std::uint32_t attempt,
                                                                    std::uint32_t step,
                                                                    std::uint32_t batch_id,
                                                                    std::uint32_t slot) = 0;
  virtual asio::awaitable<Status> end_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch,
                                            std::uint32_t eval_id) = 0;
  virtual asio::awaitable<Status> ack_epoch(Uuid run, std::uint32_t attempt,
                                            std::uint32_t epoch) = 0;
  // Asks for the record again; it comes through SessionSink::on_epoch before this returns.
  virtual asio::awaitable<Status> get_epoch(std::uint32_t epoch) = 0;
  enum class Action : std::uint8_t { kPause = 1, kResume = 2, kStop = 3 };
  virtual asio::awaitable<Status> job_control(Uuid run, Action action) = 0;
  virtual asio::awaitable<Status> set_precision(Uuid run, std::uint32_t attempt,
                                                model::Steer steer) = 0;
  // The host keeps the guard's best weights for good (best_on_host).
  virtual asio::awaitable<Status> best_kept(Uuid run, std::uint32_t attempt, Hash weights) = 0;
  virtual asio::awaitable<Result<model::EvalReport>> evaluate(std::uint32_t eval_id,
                                                              model::SampleRole role,
                                                              std::uint32_t total) = 0;
  virtual asio::awaitable<Result<model::EvalReport>> eval_step(std::uint32_t eval_id,
                                                               std::uint32_t seq,
                                                               std::uint32_t batch_id,
                                                               std::uint32_t slot) = 0;
  virtual asio::awaitable<Result<model::EvalReport>> get_eval(std::uint32_t eval_id) = 0;
  virtual asio::awaitable<Result<model::InferReport>> infer() = 0;
  // Windows of the board's sensor (CAP 15).
  using Captured = asio::awaitable<Result<model::CaptureState>>;
  virtual Captured capture_start(model::CaptureSettings) { return no_capture(); }
  virtual Captured capture_stop() { return no_capture(); }
  virtual Captured get_windows(std::uint32_t /*from_id*/) { return no_capture(); }
  virtual Captured label_window(std::uint32_t /*window_id*/, std::uint32_t /*label*/,
                                model::SampleRole /*keep*/) {
    return no_capture();
  }
  // At most kFeedBytes, whole time steps; `first` counts from the capture's start.
  static constexpr std::size_t kFeedBytes = 384;
  virtual Captured feed_sensor(std::uint64_t /*first*/, std::string /*steps*/) {
    return no_capture();
  }
  virtual asio::awaitable<Status> identify(std::uint32_t seconds) = 0;
  virtual asio::awaitable<Status> reset() = 0;
  // Non-volatile memory (model::kCapNvm). expect: hash of the state that the board must hold (of
  // the weights, where there is none); zero: any. They return when the commit has ended.
  virtual asio::awaitable<Result<model::NvmInfo>> nvm_commit(Hash expect) = 0;
  virtual asio::awaitable<Result<model::NvmInfo>> nvm_erase() = 0;
  // restore: the newest commit first becomes what the board holds; not while a run is active.
  virtual asio::awaitable<Result<model::NvmInfo>> nvm_status(bool restore) = 0;

 private:
  static Captured no_capture() { co_return absl::UnimplementedError("capture"); }
};

}  // namespace odt::session

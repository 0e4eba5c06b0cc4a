#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/asio.h"
#include "store/store.h"

// One thread per database with a bounded queue in front of it.
//
// Publish after commit: observers hear of events and frames on the store thread, after they are
// durable and in event_seq order. Nothing else may show or acknowledge them.
namespace odt::store {

class CommitObserver {
 public:
  virtual ~CommitObserver() = default;
  virtual void on_events(const std::vector<model::Event>& events, std::int64_t next_seq) = 0;
  virtual void on_telemetry(const std::vector<model::TelemetryFrame>& frames) = 0;
};

class ControlThread {
 public:
  explicit ControlThread(std::unique_ptr<ControlStore> store);
  ~ControlThread();  // stop()

  void add_observer(CommitObserver* observer);  // before the first post; outlives this
  void stop();                                  // runs what is queued, then joins; idempotent

  // Any thread. `fn` runs on the store thread. Policy when full (10,000 queued): the caller blocks.
  void post(std::function<void(ControlStore&)> fn);
  // Commits, tells the observers, then calls `done` on the store thread.
  void commit(Batch batch, std::function<void(Result<std::vector<model::Event>>)> done);

  // In a coroutine: runs fn on the store thread, resumes on the coroutine's executor.
  //   auto run = co_await control.call([id](ControlStore& s) { return s.run(id); });
  template <typename F>
  auto call(F fn) -> asio::awaitable<std::invoke_result_t<F, ControlStore&>>;
  asio::awaitable<Result<std::vector<model::Event>>> commit(Batch batch);
  // Blocking; never from the links or front thread.
  template <typename F>
  auto call_sync(F fn) -> std::invoke_result_t<F, ControlStore&>;

  Identity identity() const;  // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Batches frames: at most 2,000 or 100 ms per transaction. When full (50,000 frames): drops the
// oldest and counts; the owner turns the count into gap records.
class TelemetryThread {
 public:
  explicit TelemetryThread(std::unique_ptr<TelemetryStore> store);
  ~TelemetryThread();
  void add_observer(CommitObserver* observer);
  void stop();
  // Any thread. `on_error` (store thread): DATA_LOSS for a diverged frame, RESOURCE_EXHAUSTED.
  void append(model::TelemetryFrame frame, std::function<void(Status)> on_error = {});
  void flush(std::function<void()> done);
  void post(std::function<void(TelemetryStore&)> fn);
  template <typename F>
  auto call(F fn) -> asio::awaitable<std::invoke_result_t<F, TelemetryStore&>>;
  template <typename F>
  auto call_sync(F fn) -> std::invoke_result_t<F, TelemetryStore&>;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::store

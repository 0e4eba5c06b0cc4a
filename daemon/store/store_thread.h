#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/asio.h"
#include "store/store.h"

// One thread per database with a bounded queue in front of it.
//
// Publish after commit: observers hear of events and frames on the store thread, after they are
// durable and in event_seq order. Nothing else may show or acknowledge them.
namespace odt::store {

namespace detail {

// Answer of a call that came after stop(): an error where the result can carry one.
template <typename R>
R stopped_answer() {
  if constexpr (std::is_constructible_v<R, Status>)
    return R(absl::UnavailableError("the store is stopped"));
  else
    return R();
}

// Runs fn in `post` (which says whether it will), resumes the coroutine on its own executor.
template <typename Store, typename F, typename Post>
auto call_on_thread(F fn, Post post) -> asio::awaitable<std::invoke_result_t<F, Store&>> {
  using R = std::invoke_result_t<F, Store&>;
  static_assert(!std::is_void_v<R>, "return a Status, so that a stopped store can say so");
  struct State {
    F fn;
    Post post;
  };
  // GCC 12 copies arguments of the coroutine inside async_initiate bit by bit: it gets a bare
  // pointer.
  auto* raw = new State{std::move(fn), std::move(post)};
  return asio::async_initiate<const asio::use_awaitable_t<>, void(R)>(
      [raw](auto&& handler) {
        std::shared_ptr<State> state(raw);
        using Handler = std::decay_t<decltype(handler)>;
        auto shared = std::make_shared<Handler>(std::move(handler));
        auto work = asio::make_work_guard(asio::get_associated_executor(*shared));
        const auto answer = [shared, work](R result) {
          auto executor = work.get_executor();
          asio::post(executor, [shared, r = std::make_shared<R>(std::move(result))]() mutable {
            (*shared)(std::move(*r));
          });
        };
        if (!state->post([state, answer](Store& store) { answer(state->fn(store)); }))
          answer(stopped_answer<R>());
      },
      asio::use_awaitable);
}

// GCC 12 destroys a temporary closure of a co_await expression twice.
template <typename F>
inline constexpr bool kSafeInCoAwait =
    std::is_lvalue_reference_v<F> || std::is_trivially_destructible_v<F>;

template <typename Store, typename F, typename Post>
auto call_blocking(F fn, Post post) -> std::invoke_result_t<F, Store&> {
  using R = std::invoke_result_t<F, Store&>;
  auto promise = std::make_shared<std::promise<R>>();
  std::future<R> future = promise->get_future();
  auto f = std::make_shared<F>(std::move(fn));
  if (!post([f, promise](Store& store) {
        if constexpr (std::is_void_v<R>) {
          (*f)(store);
          promise->set_value();
        } else {
          promise->set_value((*f)(store));
        }
      })) {
    if constexpr (std::is_void_v<R>)
      return;
    else
      return stopped_answer<R>();
  }
  return future.get();
}

}  // namespace detail

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

  // Any thread. `fn` runs on the store thread; events it commits are published after it. Policy
  // when full (10,000 queued): the caller blocks. False: stopped, fn will not run.
  bool post(std::function<void(ControlStore&)> fn);
  // Commits, tells the observers, then calls `done` on the store thread; after stop() `done` is
  // called at once with UNAVAILABLE.
  void commit(Batch batch, std::function<void(Result<std::vector<model::Event>>)> done);

  // In a coroutine: runs fn on the store thread, resumes on the coroutine's executor.
  //   auto run = co_await control.call([id](ControlStore& s) { return s.run(id); });
  // Where fn captures more than plain bytes, give it a name first (checked):
  //   const auto read = [uid](ControlStore& s) { return s.board(uid); };
  //   auto board = co_await control.call(read);
  template <typename F>
  auto call(F&& fn) -> asio::awaitable<std::invoke_result_t<F, ControlStore&>> {
    static_assert(detail::kSafeInCoAwait<F>, "give fn a name: auto f = [...]...; call(f)");
    return detail::call_on_thread<ControlStore>(
        std::decay_t<F>(std::forward<F>(fn)),
        [this](std::function<void(ControlStore&)> f) { return post(std::move(f)); });
  }
  // Make the batch in a statement of its own: GCC 12 destroys any aggregate temporary of a co_await
  // expression (PutBoard{board}) twice.
  asio::awaitable<Result<std::vector<model::Event>>> commit(Batch batch);
  // Blocking; never from the links or front thread.
  template <typename F>
  auto call_sync(F fn) -> std::invoke_result_t<F, ControlStore&> {
    return detail::call_blocking<ControlStore>(
        std::move(fn), [this](std::function<void(ControlStore&)> f) { return post(std::move(f)); });
  }

  Identity identity() const;  // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Batches frames: at most 2,000 or 100 ms per transaction. When full (50,000 frames): drops the
// oldest and counts; the owner turns the count into gap records. Where the disk is full, frames
// wait in the queue and are tried again every second.
class TelemetryThread {
 public:
  explicit TelemetryThread(std::unique_ptr<TelemetryStore> store);
  ~TelemetryThread();
  void add_observer(CommitObserver* observer);
  void stop();
  // Any thread. `on_error` (store thread): DATA_LOSS for a diverged frame, RESOURCE_EXHAUSTED
  // (quota, disk, or the queue was full and the frame the oldest).
  void append(model::TelemetryFrame frame, std::function<void(Status)> on_error = {});
  // The same with an on_error of many frames; null: none.
  using OnError = std::shared_ptr<const std::function<void(Status)>>;
  void append_shared(model::TelemetryFrame frame, OnError on_error);
  // `done` (store thread) when all frames appended before are durable, refused, or wait for room.
  void flush(std::function<void()> done);
  std::uint64_t dropped() const;  // frames lost to a full queue
  struct Refused {
    std::uint64_t frames = 0;  // given up since start
    bool full_now = false;     // the disk or the quota is full: frames wait in the queue
  };
  Refused refused() const;
  // Runs `fn` before what is queued: it may not see the newest frames. False: stopped, fn will not
  // run.
  bool read(std::function<void(TelemetryStore&)> fn);
  // Frames appended before are written first, where there is room for them; what post was given
  // earlier runs earlier. Never blocks: there is no limit. False: stopped, fn will not run.
  bool post(std::function<void(TelemetryStore&)> fn);
  template <typename F>
  auto call(F&& fn) -> asio::awaitable<std::invoke_result_t<F, TelemetryStore&>> {
    static_assert(detail::kSafeInCoAwait<F>, "give fn a name: auto f = [...]...; call(f)");
    return detail::call_on_thread<TelemetryStore>(
        std::decay_t<F>(std::forward<F>(fn)),
        [this](std::function<void(TelemetryStore&)> f) { return post(std::move(f)); });
  }
  template <typename F>
  auto call_sync(F fn) -> std::invoke_result_t<F, TelemetryStore&> {
    return detail::call_blocking<TelemetryStore>(
        std::move(fn),
        [this](std::function<void(TelemetryStore&)> f) { return post(std::move(f)); });
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::store

#include "store/store_thread.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace odt::store {
namespace {

constexpr std::size_t kControlQueue = 10'000;
constexpr std::size_t kTelemetryQueue = 50'000;
constexpr std::size_t kTelemetryBatch = 2'000;
constexpr std::chrono::milliseconds kTelemetryDelay{100};

}  // namespace

// ---- control ----------------------------------------------------------------------------------

struct ControlThread::Impl {
  std::unique_ptr<ControlStore> store;
  Identity identity;
  std::vector<CommitObserver*> observers;

  std::mutex mutex;
  std::condition_variable work, room;
  std::deque<std::function<void(ControlStore&)>> queue;
  bool stopping = false;
  std::int64_t published = 1;  // next event that observers have not heard of; store thread only
  std::once_flag joined;
  std::thread thread;

  void publish(const std::vector<model::Event>& events) {
    published = store->next_seq();
    if (events.empty()) return;
    for (CommitObserver* observer : observers) observer->on_events(events, published);
  }

  // Events of commits that a posted function made by itself.
  void publish_rest() {
    while (published < store->next_seq()) {
      const auto events =
          store->events_from(published, static_cast<std::uint32_t>(store->next_seq() - published));
      if (!events.ok()) {
        published = store->next_seq();
        return;
      }
      publish(*events);
    }
  }

  void loop() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      {
        const auto fn = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        room.notify_one();
        fn(*store);
        publish_rest();
      }
      lock.lock();
    }
  }
};

ControlThread::ControlThread(std::unique_ptr<ControlStore> store) : impl_(new Impl) {
  impl_->identity = store->identity();
  impl_->published = store->next_seq();
  impl_->store = std::move(store);
  impl_->thread = std::thread([impl = impl_.get()] {
    pthread_setname_np(pthread_self(), "odtd-control");
    impl->loop();
  });
}

ControlThread::~ControlThread() { stop(); }

void ControlThread::add_observer(CommitObserver* observer) { impl_->observers.push_back(observer); }

void ControlThread::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work.notify_all();
  impl_->room.notify_all();
  std::call_once(impl_->joined, [this] { impl_->thread.join(); });
}

bool ControlThread::post(std::function<void(ControlStore&)> fn) {
  std::unique_lock lock(impl_->mutex);
  // The store thread itself must not wait for room that only it can make.
  if (std::this_thread::get_id() != impl_->thread.get_id())
    impl_->room.wait(lock, [&] { return impl_->stopping || impl_->queue.size() < kControlQueue; });
  if (impl_->stopping) return false;
  impl_->queue.push_back(std::move(fn));
  lock.unlock();
  impl_->work.notify_one();
  return true;
}

void ControlThread::commit(Batch batch,
                           std::function<void(Result<std::vector<model::Event>>)> done) {
  auto shared_done = std::make_shared<decltype(done)>(std::move(done));
  const bool queued =
      post([impl = impl_.get(), shared_done,
            shared_batch = std::make_shared<Batch>(std::move(batch))](ControlStore& store) {
        auto events = store.commit(std::move(*shared_batch));
        if (events.ok()) impl->publish(*events);
        if (*shared_done) (*shared_done)(std::move(events));
      });
  if (!queued && *shared_done) (*shared_done)(absl::UnavailableError("the store is stopped"));
}

asio::awaitable<Result<std::vector<model::Event>>> ControlThread::commit(Batch batch) {
  return detail::call_on_thread<ControlStore>(
      [impl = impl_.get(), batch = std::move(batch)](ControlStore& store) mutable {
        auto events = store.commit(std::move(batch));
        if (events.ok()) impl->publish(*events);
        return events;
      },
      [this](std::function<void(ControlStore&)> f) { return post(std::move(f)); });
}

Identity ControlThread::identity() const { return impl_->identity; }

// ---- telemetry --------------------------------------------------------------------------------

struct TelemetryThread::Impl {
  struct Pending {
    model::TelemetryFrame frame;
    OnError on_error;
  };
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<TelemetryStore> store;
  std::vector<CommitObserver*> observers;

  std::mutex mutex;
  std::condition_variable work;
  std::deque<Pending> frames;
  std::vector<OnError> lost;  // of frames that a full queue dropped
  std::vector<std::function<void(TelemetryStore&)>> calls, reads;
  Clock::time_point first_frame;
  Clock::time_point retry;  // the disk was full: not before
  bool full = false;
  bool stopping = false;
  std::uint64_t dropped = 0;
  std::once_flag joined;
  std::thread thread;

  void tell(const std::vector<model::TelemetryFrame>& written) {
    if (written.empty()) return;
    for (CommitObserver* observer : observers) observer->on_telemetry(written);
  }

  // False: there is no room; the batch is as it was.
  bool write(std::vector<Pending>& batch) {
    std::vector<model::TelemetryFrame> all;
    all.reserve(batch.size());
    for (Pending& pending : batch) all.push_back(std::move(pending.frame));
    const Status status = store->append(all);
    if (status.ok()) {
      tell(all);
      return true;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].frame = std::move(all[i]);
    if (absl::IsResourceExhausted(status)) return false;
    // One diverged frame must not take the others with it.
    std::vector<model::TelemetryFrame> written;
    for (Pending& pending : batch) {
      const Status one = absl::IsDataLoss(status) ? store->append({pending.frame}) : status;
      if (one.ok())
        written.push_back(std::move(pending.frame));
      else if (pending.on_error)
        (*pending.on_error)(one);
    }
    tell(written);
    return true;
  }

  // Puts frames back that found no room. Past the end the owners hear of it.
  void put_back(std::vector<Pending>& batch) {
    full = true;
    retry = Clock::now() + std::chrono::seconds(1);
    for (auto it = batch.rbegin(); it != batch.rend(); ++it) {
      if (frames.size() < kTelemetryQueue && !stopping) {
        frames.push_front(std::move(*it));
        continue;
      }
      if (it->on_error) lost.push_back(std::move(it->on_error));
      ++dropped;
    }
  }

  void write_all(std::unique_lock<std::mutex>& lock) {
    while (!frames.empty()) {
      std::vector<Pending> batch;
      while (!frames.empty() && batch.size() < kTelemetryBatch) {
        batch.push_back(std::move(frames.front()));
        frames.pop_front();
      }
      lock.unlock();
      const bool written = write(batch);
      lock.lock();
      if (!written) return put_back(batch);
      full = false;
    }
  }

  bool due() const {
    return stopping || !calls.empty() || !reads.empty() || !lost.empty() || batch_ready();
  }
  // A full disk is asked again at write_time() only.
  bool batch_ready() const { return frames.size() >= kTelemetryBatch && !full; }
  Clock::time_point write_time() const { return full ? retry : first_frame + kTelemetryDelay; }

  void run_reads(std::unique_lock<std::mutex>& lock) {
    const auto asked = std::exchange(reads, {});
    lock.unlock();
    for (const auto& fn : asked) fn(*store);
    lock.lock();
  }

  void loop() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return due() || !frames.empty(); });
      if (!due()) work.wait_until(lock, write_time(), [&] { return due(); });
      if (!reads.empty()) {
        run_reads(lock);
        const bool others = stopping || !calls.empty() || batch_ready();
        if (!others && Clock::now() < write_time()) continue;
      }
      const auto waiting = std::exchange(calls, {});
      const auto refused = std::exchange(lost, {});
      write_all(lock);
      const bool end = stopping && calls.empty() && lost.empty();
      lock.unlock();
      for (const auto& on_error : refused)
        (*on_error)(absl::ResourceExhaustedError("telemetry came faster than it could be stored"));
      for (const auto& fn : waiting) fn(*store);
      lock.lock();
      if (end && frames.empty() && calls.empty() && reads.empty() && lost.empty()) return;
    }
  }
};

TelemetryThread::TelemetryThread(std::unique_ptr<TelemetryStore> store) : impl_(new Impl) {
  impl_->store = std::move(store);
  impl_->thread = std::thread([impl = impl_.get()] {
    pthread_setname_np(pthread_self(), "odtd-telemetry");
    impl->loop();
  });
}

TelemetryThread::~TelemetryThread() { stop(); }

void TelemetryThread::add_observer(CommitObserver* observer) {
  impl_->observers.push_back(observer);
}

void TelemetryThread::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work.notify_all();
  std::call_once(impl_->joined, [this] { impl_->thread.join(); });
}

void TelemetryThread::append(model::TelemetryFrame frame, std::function<void(Status)> on_error) {
  OnError shared;
  if (on_error) shared = std::make_shared<const std::function<void(Status)>>(std::move(on_error));
  append_shared(std::move(frame), std::move(shared));
}

void TelemetryThread::append_shared(model::TelemetryFrame frame, OnError on_error) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->stopping) {
    lock.unlock();
    if (on_error) (*on_error)(absl::UnavailableError("the store is stopped"));
    return;
  }
  if (impl_->frames.size() >= kTelemetryQueue) {
    if (impl_->frames.front().on_error)
      impl_->lost.push_back(std::move(impl_->frames.front().on_error));
    impl_->frames.pop_front();
    ++impl_->dropped;
  }
  if (impl_->frames.empty()) impl_->first_frame = Impl::Clock::now();
  impl_->frames.push_back({std::move(frame), std::move(on_error)});
  const std::size_t size = impl_->frames.size();
  lock.unlock();
  if (size == 1 || size >= kTelemetryBatch) impl_->work.notify_one();
}

void TelemetryThread::flush(std::function<void()> done) {
  auto shared = std::make_shared<std::function<void()>>(std::move(done));
  if (!post([shared](TelemetryStore&) { (*shared)(); })) (*shared)();
}

TelemetryThread::Refused TelemetryThread::refused() const {
  std::lock_guard lock(impl_->mutex);
  return {impl_->dropped, impl_->full};
}

bool TelemetryThread::read(std::function<void(TelemetryStore&)> fn) {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return false;
    impl_->reads.push_back(std::move(fn));
  }
  impl_->work.notify_one();
  return true;
}

std::uint64_t TelemetryThread::dropped() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->dropped;
}

bool TelemetryThread::post(std::function<void(TelemetryStore&)> fn) {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return false;
    impl_->calls.push_back(std::move(fn));
  }
  impl_->work.notify_one();
  return true;
}

}  // namespace odt::store

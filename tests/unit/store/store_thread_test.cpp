#include "store/store_thread.h"

#include <atomic>
#include <future>
#include <thread>

#include "store/memory_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

// Store thread only, but read after stop().
class Recorder final : public CommitObserver {
 public:
  void on_events(const std::vector<model::Event>& events, std::int64_t next_seq) override {
    for (const auto& e : events) seqs.push_back(e.seq);
    next = next_seq;
    ++calls;
  }
  void on_telemetry(const std::vector<model::TelemetryFrame>& written) override {
    for (const auto& f : written) steps.push_back(f.step);
    batches.push_back(written.size());
  }
  std::vector<std::int64_t> seqs;
  std::int64_t next = 0;
  int calls = 0;
  std::vector<std::uint32_t> steps;
  std::vector<std::size_t> batches;
};

// Holds the store thread until told to go on.
class Gate {
 public:
  void open() { promise_.set_value(); }
  void wait() { future_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_{promise_.get_future()};
};

TEST(ControlThread, PublishesAfterCommitBeforeDone) {
  FakeClock clock;
  Recorder recorder;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  control.add_observer(&recorder);
  std::promise<std::size_t> seen;
  control.commit(batch_of(PutBoard{board_of(1)}), [&](Result<std::vector<model::Event>> events) {
    EXPECT_TRUE(events.ok());
    seen.set_value(recorder.seqs.size());
  });
  EXPECT_EQ(seen.get_future().get(), 1u);
  control.stop();
  EXPECT_EQ(recorder.next, 2);
}

TEST(ControlThread, PublishesCommitsThatAPostedFunctionMadeOnce) {
  FakeClock clock;
  Recorder recorder;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  control.add_observer(&recorder);
  const auto result = control.call_sync([](ControlStore& s) {
    s.commit(batch_of(PutBoard{board_of(1)})).status().IgnoreError();
    return s.commit(batch_of(PutBoard{board_of(2)}));
  });
  EXPECT_TRUE(result.ok());
  control.commit(batch_of(PutBoard{board_of(3)}), {});
  control.stop();
  EXPECT_EQ(recorder.seqs, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(ControlThread, FailedCommitIsNotPublished) {
  FakeClock clock;
  Recorder recorder;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  control.add_observer(&recorder);
  Status status;
  control.commit(batch_of(Delete{"board", uid_of(1).str()}),
                 [&](Result<std::vector<model::Event>> events) { status = events.status(); });
  control.stop();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(recorder.calls, 0);
}

TEST(ControlThread, StopRunsWhatIsQueuedAndRefusesWhatComesLater) {
  FakeClock clock;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i)
    control.commit(batch_of(PutBoard{board_of(i)}), [&](const auto& e) { done += e.ok(); });
  control.stop();
  control.stop();
  EXPECT_EQ(done, 100);
  EXPECT_FALSE(control.post([](ControlStore&) {}));
  Status late;
  control.commit(batch_of(PutBoard{board_of(1)}), [&](const auto& e) { late = e.status(); });
  EXPECT_TRUE(absl::IsUnavailable(late));
  EXPECT_TRUE(absl::IsUnavailable(
      control.call_sync([](ControlStore& s) { return s.board(uid_of(1)); }).status()));
}

TEST(ControlThread, FullQueueBlocksTheCallerNotTheStoreThread) {
  FakeClock clock;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  Gate gate;
  std::atomic<int> ran{0};
  control.post([&](ControlStore&) {
    gate.wait();
    control.post([&](ControlStore&) { ++ran; });  // past the limit, from the store thread
  });
  std::atomic<int> posted{0};
  std::thread caller([&] {
    for (int i = 0; i < 10'050; ++i) {
      control.post([&](ControlStore&) { ++ran; });
      ++posted;
    }
  });
  while (posted < 10'000) std::this_thread::yield();
  EXPECT_LE(posted, 10'001);  // the first may have been taken off the queue
  gate.open();
  caller.join();
  control.stop();
  EXPECT_EQ(ran, 10'051);
}

asio::awaitable<void> use_from_coroutine(ControlThread* control, std::thread::id* resumed_on,
                                         std::string* name, std::int64_t* seq) {
  Batch batch = batch_of(PutBoard{board_of(2)});
  auto first = co_await control->commit(std::move(batch));
  batch = batch_of(PutBoard{board_of(1)});
  auto events = co_await control->commit(batch);
  if (first.ok() && events.ok()) *seq = events->front().seq;
  const BoardUid uid = uid_of(1);
  const auto read = [uid](ControlStore& s) { return s.board(uid); };
  auto board = co_await control->call(read);
  const Uuid id = new_uuid();
  auto run = co_await control->call([id](ControlStore& s) { return s.run(id); });
  EXPECT_FALSE(run.ok());
  if (board.ok()) *name = board->name;
  *resumed_on = std::this_thread::get_id();
}

TEST(ControlThread, CoroutineResumesOnItsOwnExecutor) {
  FakeClock clock;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  asio::io_context io;
  std::thread::id resumed_on;
  std::string name;
  std::int64_t seq = 0;
  bool completed = false;
  asio::co_spawn(io, use_from_coroutine(&control, &resumed_on, &name, &seq),
                 [&](std::exception_ptr error) {
                   EXPECT_EQ(error, nullptr);
                   completed = true;
                 });
  io.run();  // must not return while the store works
  EXPECT_TRUE(completed);
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
  EXPECT_EQ(name, "board-01");
  EXPECT_EQ(seq, 2);
}

TEST(ControlThread, CoroutineAfterStopGetsUnavailable) {
  FakeClock clock;
  ControlThread control(std::make_unique<MemoryControlStore>(clock));
  control.stop();
  asio::io_context io;
  std::thread::id id;
  std::string name;
  std::int64_t seq = 0;
  bool completed = false;
  asio::co_spawn(io, use_from_coroutine(&control, &id, &name, &seq),
                 [&](std::exception_ptr) { completed = true; });
  io.run();
  EXPECT_TRUE(completed);
  EXPECT_EQ(seq, 0);
}

TEST(TelemetryThread, WritesAllInOrderThenTells) {
  Recorder recorder;
  TelemetryThread telemetry(std::make_unique<MemoryTelemetryStore>());
  telemetry.add_observer(&recorder);
  const Uuid run = new_uuid();
  for (std::uint32_t step = 1; step <= 5000; ++step) telemetry.append(frame_of(run, step));
  const auto frames = telemetry.call_sync([run](TelemetryStore& s) {
    return s.read({run, 0, 0, 9999, 9999});
  });
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ(frames->total, 5000u);
  telemetry.stop();
  ASSERT_EQ(recorder.steps.size(), 5000u);
  EXPECT_TRUE(std::is_sorted(recorder.steps.begin(), recorder.steps.end()));
  for (std::size_t size : recorder.batches) EXPECT_LE(size, 2000u);
}

TEST(TelemetryThread, WritesAFewFramesSoonByItself) {
  Recorder recorder;
  TelemetryThread telemetry(std::make_unique<MemoryTelemetryStore>());
  std::promise<void> told;
  class Tell final : public CommitObserver {
   public:
    explicit Tell(std::promise<void>& p) : promise_(p) {}
    void on_events(const std::vector<model::Event>&, std::int64_t) override {}
    void on_telemetry(const std::vector<model::TelemetryFrame>&) override { promise_.set_value(); }

   private:
    std::promise<void>& promise_;
  } tell(told);
  telemetry.add_observer(&tell);
  telemetry.append(frame_of(new_uuid(), 1));
  EXPECT_EQ(told.get_future().wait_for(std::chrono::seconds(3)), std::future_status::ready);
}

TEST(TelemetryThread, OneDivergedFrameDoesNotTakeTheOthersWithIt) {
  Recorder recorder;
  TelemetryThread telemetry(std::make_unique<MemoryTelemetryStore>());
  telemetry.add_observer(&recorder);
  const Uuid run = new_uuid();
  telemetry.append(frame_of(run, 1));
  std::promise<void> flushed;
  telemetry.flush([&] { flushed.set_value(); });
  flushed.get_future().wait();
  auto bad = frame_of(run, 1);
  bad.correct += 1;
  std::vector<Status> errors;
  telemetry.append(frame_of(run, 2), [&](Status s) { errors.push_back(s); });
  telemetry.append(bad, [&](Status s) { errors.push_back(s); });
  telemetry.append(frame_of(run, 3), [&](Status s) { errors.push_back(s); });
  telemetry.stop();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(errors[0]));
  EXPECT_EQ(recorder.steps, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(TelemetryThread, FullQueueDropsTheOldestAndSaysSo) {
  TelemetryThread telemetry(std::make_unique<MemoryTelemetryStore>());
  Gate gate;
  std::promise<void> held;
  telemetry.post([&](TelemetryStore&) {
    held.set_value();
    gate.wait();
  });
  held.get_future().wait();
  const Uuid run = new_uuid();
  std::vector<Status> errors;
  for (std::uint32_t step = 1; step <= 50'003; ++step)
    telemetry.append(frame_of(run, step), [&](Status s) { errors.push_back(s); });
  EXPECT_EQ(telemetry.dropped(), 3u);
  gate.open();
  const auto frames = telemetry.call_sync([run](TelemetryStore& s) { return s.read({run}); });
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ(frames->total, 50'000u);
  EXPECT_EQ(frames->frames.front().step, 4u);
  telemetry.stop();
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_TRUE(absl::IsResourceExhausted(errors[0]));
}

TEST(TelemetryThread, FullStoreTellsEveryFrame) {
  TelemetryThread telemetry(std::make_unique<MemoryTelemetryStore>(1));
  std::vector<Status> errors;
  const Uuid run = new_uuid();
  for (std::uint32_t step : {1u, 2u})
    telemetry.append(frame_of(run, step), [&](Status s) { errors.push_back(s); });
  telemetry.stop();
  ASSERT_FALSE(errors.empty());
  EXPECT_TRUE(absl::IsResourceExhausted(errors[0]));
}

// Has no room until told; counts the attempts.
class NoRoom final : public MemoryTelemetryStore {
 public:
  Status append(const std::vector<model::TelemetryFrame>& frames) override {
    ++attempts;
    if (!room) return absl::ResourceExhaustedError("no room");
    return MemoryTelemetryStore::append(frames);
  }
  std::atomic<bool> room{false};
  std::atomic<int> attempts{0};
};

TEST(TelemetryThread, ReadsDoNotMakeAFullStoreTryAgain) {
  auto store = std::make_unique<NoRoom>();
  NoRoom& full = *store;
  TelemetryThread telemetry(std::move(store));
  const Uuid run = new_uuid();
  for (std::uint32_t step = 1; step <= 5000; ++step) telemetry.append(frame_of(run, step));
  while (!telemetry.refused().full_now) std::this_thread::yield();
  const int before = full.attempts;
  for (int i = 0; i < 1000; ++i) {
    std::promise<void> done;
    telemetry.read([&](TelemetryStore&) { done.set_value(); });
    done.get_future().wait();
  }
  // One a second at most, however slow the machine is.
  EXPECT_LT(full.attempts - before, 500);
  full.room = true;
  const auto frames = telemetry.call_sync([run](TelemetryStore& s) { return s.read({run}); });
  EXPECT_EQ(frames->total, 5000u);
}

}  // namespace
}  // namespace odt::store

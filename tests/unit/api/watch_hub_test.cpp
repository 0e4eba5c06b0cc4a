#include "api/watch_hub.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <set>

#include "api/api_convert.h"
#include "fakes.h"

namespace odt::api {
namespace {

using std::chrono::milliseconds;

// A consumer that takes each response at once, or only when it is let.
class Consumer final : public WatchSink, public std::enable_shared_from_this<Consumer> {
 public:
  explicit Consumer(WatchHub& hub) : hub_(hub) {}
  const std::uint64_t id = WatchHub::new_id();

  void write(v1::WatchResponse response, std::string telemetry) override {
    EXPECT_TRUE(response.MergeFromString(telemetry));
    const std::lock_guard lock(mutex_);
    responses_.push_back(std::move(response));
    changed_.notify_all();
    if (!held_) hub_.written(id, true);
    waiting_ = held_;
  }
  void finish(const Status& status) override {
    const std::lock_guard lock(mutex_);
    end_ = status;
    changed_.notify_all();
  }

  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    if (!held && waiting_) hub_.written(id, true);
    waiting_ = waiting_ && held;
  }
  // Until pred(all responses); 30 s are for ever, also with sanitizers on a busy machine.
  template <typename Pred>
  bool until(Pred pred) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return pred(responses_); });
  }
  std::optional<Status> end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return end_.has_value(); });
    return end_;
  }
  std::vector<v1::Event> events() {
    const std::lock_guard lock(mutex_);
    std::vector<v1::Event> all;
    for (const auto& response : responses_)
      for (const auto& event : response.events()) all.push_back(event);
    return all;
  }
  std::vector<std::int64_t> seqs() {
    std::vector<std::int64_t> all;
    for (const auto& event : events())
      if (event.event_seq() != 0) all.push_back(event.event_seq());
    return all;
  }
  std::vector<std::uint32_t> steps() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> all;
    for (const auto& response : responses_)
      for (const auto& frame : response.telemetry()) all.push_back(frame.step());
    return all;
  }
  v1::WatchResponse last() {
    const std::lock_guard lock(mutex_);
    return responses_.empty() ? v1::WatchResponse() : responses_.back();
  }

 private:
  WatchHub& hub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::WatchResponse> responses_;
  std::optional<Status> end_;
  bool held_ = false, waiting_ = false;
};

bool snapshot_done(const std::vector<v1::WatchResponse>& responses) {
  for (const auto& response : responses)
    if (response.snapshot_done()) return true;
  return false;
}
std::size_t count_events(const std::vector<v1::WatchResponse>& responses) {
  std::size_t count = 0;
  for (const auto& response : responses) count += static_cast<std::size_t>(response.events_size());
  return count;
}
std::size_t count_frames(const std::vector<v1::WatchResponse>& responses) {
  std::size_t count = 0;
  for (const auto& response : responses)
    count += static_cast<std::size_t>(response.telemetry_size());
  return count;
}

class WatchHubTest : public testing::Test {
 protected:
  void SetUp() override { make({}); }
  void TearDown() override {
    hub->stop();
    std::promise<void> quiet;
    asio::post(front.io, [&] { quiet.set_value(); });
    quiet.get_future().wait();
    telemetry->stop();
    control->stop();
    front.stop();
  }
  void make(WatchOptions options) {
    if (control) {
      telemetry->stop();
      control->stop();
    }
    control =
        std::make_unique<store::ControlThread>(std::make_unique<store::MemoryControlStore>(clock));
    telemetry =
        std::make_unique<store::TelemetryThread>(std::make_unique<store::MemoryTelemetryStore>());
    fleet = std::make_unique<test::FakeFleet>(*control);
    hub = std::make_unique<WatchHub>(front.io, *control, *telemetry, *fleet, clock, options);
    control->add_observer(hub.get());
    telemetry->add_observer(hub.get());
    hub->start();
  }
  static WatchTopic topic(TopicKind kind, bool lossless = true, const Uuid& run = {}) {
    WatchTopic topic;
    topic.kind = kind;
    topic.run = run;
    topic.lossless = lossless;
    topic.interval = milliseconds(50);
    return topic;
  }
  std::shared_ptr<Consumer> watch(std::vector<WatchTopic> topics, std::uint64_t epoch = 0,
                                  std::int64_t seq = 0) {
    auto consumer = std::make_shared<Consumer>(*hub);
    hub->open(consumer->id, consumer, std::move(topics), epoch, seq);
    return consumer;
  }
  void commit(store::Change change) {
    const auto events = control->call_sync([&](store::ControlStore& s) {
      store::Batch batch;
      batch.changes.push_back(std::move(change));
      return s.commit(std::move(batch));
    });
    ASSERT_TRUE(events.ok()) << events.status();
  }
  void put_board(int number, const std::string& name) {
    model::Board board;
    board.uid = test::uid_of(number);
    board.name = name;
    commit(store::PutBoard{board});
  }
  void put_job(const Uuid& id, std::uint32_t progress) {
    model::Job job;
    job.id = id;
    job.kind = model::Job::Kind::kCompile;
    job.progress_permille = progress;
    commit(store::PutJob{job});
  }
  void append(const Uuid& run, std::uint32_t attempt, std::uint32_t step) {
    model::TelemetryFrame frame;
    frame.run_id = run;
    frame.attempt = attempt;
    frame.step = step;
    telemetry->append(frame);
  }
  void flush() {
    std::promise<void> done;
    telemetry->flush([&] { done.set_value(); });
    done.get_future().wait();
  }

  SystemClock clock;
  test::IoThread front;
  std::unique_ptr<store::ControlThread> control;
  std::unique_ptr<store::TelemetryThread> telemetry;
  std::unique_ptr<test::FakeFleet> fleet;
  std::unique_ptr<WatchHub> hub;
};

TEST_F(WatchHubTest, SnapshotThenEventsInOrder) {
  put_board(1, "one");
  put_board(2, "two");
  const auto consumer = watch({topic(TopicKind::kFleet)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  ASSERT_EQ(consumer->events().size(), 2u);
  EXPECT_EQ(consumer->events()[0].event_seq(), 0);
  EXPECT_EQ(consumer->last().next_seq(), 3);
  put_board(1, "uno");
  put_board(2, "due");
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_events(r) == 4; }));
  EXPECT_EQ(consumer->seqs(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(consumer->last().next_seq(), 5);
  EXPECT_EQ(consumer->last().store_epoch(), control->identity().store_epoch);
}

TEST_F(WatchHubTest, WhoWatchesRunsHearsOfTheirDeletion) {
  const Uuid run = new_uuid(), other = new_uuid();
  model::Event event;
  event.body = model::Deleted{"run", run.str()};
  EXPECT_TRUE(wants(topic(TopicKind::kRuns), event));
  EXPECT_TRUE(wants(topic(TopicKind::kRun, true, run), event));
  EXPECT_FALSE(wants(topic(TopicKind::kRun, true, other), event));
  EXPECT_FALSE(wants(topic(TopicKind::kLibrary), event));
}

TEST_F(WatchHubTest, NoGapAndNoDuplicateWhileChangesGoOn) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) put_job(new_uuid(), static_cast<std::uint32_t>(i % 1000));
  });
  std::vector<std::shared_ptr<Consumer>> consumers;
  for (int i = 0; i < 20; ++i) {
    consumers.push_back(watch({topic(TopicKind::kJobs)}));
    std::this_thread::sleep_for(milliseconds(2));
  }
  for (const auto& consumer : consumers) ASSERT_TRUE(consumer->until(snapshot_done));
  std::this_thread::sleep_for(milliseconds(20));
  stop = true;
  writer.join();
  const auto total = control->call_sync([](store::ControlStore& s) { return s.next_seq() - 1; });
  for (const auto& consumer : consumers) {
    // Every job made so far is in the snapshot or in an event, once.
    ASSERT_TRUE(consumer->until(
        [&](const auto& r) { return !r.empty() && r.back().next_seq() == total + 1; }));
    std::set<std::string> ids;
    for (const auto& event : consumer->events()) EXPECT_TRUE(ids.insert(event.job().id()).second);
    // Of old jobs a snapshot shows the newest thousand.
    if (total <= 1000) {
      EXPECT_EQ(static_cast<std::int64_t>(ids.size()), total);
    }
    const auto seqs = consumer->seqs();
    for (std::size_t i = 1; i < seqs.size(); ++i) EXPECT_EQ(seqs[i], seqs[i - 1] + 1);
  }
}

TEST_F(WatchHubTest, ResumesAfterTheLastEventSeen) {
  for (int i = 0; i < 1200; ++i) put_job(new_uuid(), 1);
  const std::uint64_t epoch = control->identity().store_epoch;
  const auto consumer = watch({topic(TopicKind::kJobs)}, epoch, 100);
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_events(r) == 1100; }));
  ASSERT_TRUE(consumer->until(snapshot_done));
  put_job(new_uuid(), 2);
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_events(r) == 1101; }));
  const auto seqs = consumer->seqs();
  for (std::size_t i = 0; i < seqs.size(); ++i)
    ASSERT_EQ(seqs[i], static_cast<std::int64_t>(101 + i));
}

TEST_F(WatchHubTest, ResumeAtTheEndNeedsNothing) {
  put_board(1, "one");
  const auto consumer = watch({topic(TopicKind::kFleet)}, control->identity().store_epoch, 1);
  ASSERT_TRUE(consumer->until(snapshot_done));
  EXPECT_EQ(consumer->events().size(), 0u);
  EXPECT_EQ(consumer->last().next_seq(), 2);
}

TEST_F(WatchHubTest, AnotherStoreOrTheFutureIsResync) {
  put_board(1, "one");
  const std::uint64_t epoch = control->identity().store_epoch;
  for (const auto& consumer : {watch({topic(TopicKind::kFleet)}, epoch + 1, 1),
                               watch({topic(TopicKind::kFleet)}, epoch, 99)}) {
    ASSERT_TRUE(consumer->until([](const auto& r) { return !r.empty() && r.back().resync(); }));
    ASSERT_TRUE(consumer->end().has_value());
    EXPECT_TRUE(consumer->end()->ok());
  }
}

TEST_F(WatchHubTest, ConflatedTopicsSendTheLatestAtTheirRate) {
  const auto consumer = watch({topic(TopicKind::kJobs, false)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  const Uuid id = new_uuid();
  for (std::uint32_t i = 0; i < 300; ++i) put_job(id, i);
  ASSERT_TRUE(consumer->until([](const auto& r) {
    return !r.empty() && r.back().events_size() > 0 &&
           r.back().events(r.back().events_size() - 1).job().progress_permille() == 299;
  }));
  EXPECT_LT(consumer->events().size(), 200u);
  EXPECT_EQ(consumer->last().next_seq(), 301);
}

TEST_F(WatchHubTest, Report17_ASlowLosslessWatcherGetsResyncAndBoundedMemory) {
  WatchOptions options;
  options.behind_limit_bytes = 20'000;
  make(options);
  const auto slow = watch({topic(TopicKind::kJobs)});
  const auto quick = watch({topic(TopicKind::kJobs)});
  ASSERT_TRUE(slow->until(snapshot_done));
  ASSERT_TRUE(quick->until(snapshot_done));
  slow->hold(true);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    put_job(new_uuid(), i % 1000);
    if (i % 50 == 0) quick->until([&](const auto& r) { return count_events(r) + 20 > i; });
  }
  slow->hold(false);
  ASSERT_TRUE(slow->until([](const auto& r) { return r.back().resync(); }));
  EXPECT_TRUE(slow->end()->ok());
  EXPECT_TRUE(quick->until([](const auto& r) { return count_events(r) == 2000; }));
}

TEST_F(WatchHubTest, TelemetryResumesByAttemptAndStepAndGoesOnLive) {
  const Uuid run = new_uuid();
  for (std::uint32_t step = 1; step <= 4500; ++step) append(run, 1, step);
  for (std::uint32_t step = 4400; step <= 4600; ++step) append(run, 2, step);
  flush();
  auto wanted = topic(TopicKind::kTelemetry, true, run);
  wanted.from_attempt = 1;
  wanted.from_step = 10;
  const auto consumer = watch({wanted});
  append(run, 2, 4601);
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_frames(r) == 4490 + 202; }));
  append(run, 2, 4602);
  append(run, 3, 4600);
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_frames(r) == 4490 + 204; }));
  const auto steps = consumer->steps();
  EXPECT_EQ(steps.front(), 11u);
  EXPECT_EQ(steps[4489], 4500u);
  EXPECT_EQ(steps[4490], 4400u);
  EXPECT_EQ(steps.back(), 4600u);
}

TEST_F(WatchHubTest, TelemetrySeamHasNoGapAndNoDuplicate) {
  const Uuid run = new_uuid();
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> last{0};
  std::thread writer([&] {
    while (!stop) {
      append(run, 1, ++last);
      if (last % 20 == 0) std::this_thread::sleep_for(milliseconds(2));
    }
  });
  std::vector<std::shared_ptr<Consumer>> consumers;
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(30));
    consumers.push_back(watch({topic(TopicKind::kTelemetry, true, run)}));
  }
  std::this_thread::sleep_for(milliseconds(200));
  stop = true;
  writer.join();
  ASSERT_EQ(telemetry->dropped(), 0u);
  for (const auto& consumer : consumers) {
    ASSERT_TRUE(consumer->until([&](const auto& r) { return count_frames(r) >= last; }))
        << consumer->steps().size() << " of " << last << ", resync " << consumer->last().resync();
    const auto steps = consumer->steps();
    ASSERT_EQ(steps.size(), last.load());
    for (std::uint32_t i = 0; i < last; ++i) ASSERT_EQ(steps[i], i + 1);
  }
}

TEST_F(WatchHubTest, ConflatedTelemetryCountsWhatItDrops) {
  const Uuid run = new_uuid();
  const auto consumer = watch({topic(TopicKind::kTelemetry, false, run)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  for (std::uint32_t step = 1; step <= 500; ++step) append(run, 1, step);
  flush();
  ASSERT_TRUE(consumer->until([](const auto& r) {
    return !r.empty() && r.back().telemetry_size() == 1 && r.back().telemetry(0).step() == 500;
  }));
  EXPECT_EQ(consumer->steps().size() + consumer->last().dropped(), 500u);
}

// Ten minutes at 100 events a second, of which it takes none: it costs one response, and it is told
// how much it has missed. Who reads has everything.
TEST_F(WatchHubTest, Report17_AWatcherThatNeverReadsCostsNothingAndIsToldOfTheGap) {
  const Uuid run = new_uuid();
  constexpr std::uint32_t kEvents = 600 * 100;
  const auto slow = watch({topic(TopicKind::kTelemetry, false, run)});
  ASSERT_TRUE(slow->until(snapshot_done));
  slow->hold(true);
  std::uint32_t step = 0;
  for (int second = 0; second < 600; ++second) {
    for (int i = 0; i < 100; ++i) append(run, 1, ++step);
    if (second % 100 == 99) flush();
  }
  flush();
  const auto quick = watch({topic(TopicKind::kTelemetry, true, run)});
  EXPECT_TRUE(quick->until([](const auto& r) {
    return !r.empty() && r.back().telemetry_size() > 0 &&
           r.back().telemetry(r.back().telemetry_size() - 1).step() == kEvents;
  }));
  const std::size_t while_held = slow->steps().size();
  EXPECT_LE(while_held, 2u);
  slow->hold(false);
  ASSERT_TRUE(slow->until([](const auto& r) {
    return !r.empty() && r.back().telemetry_size() == 1 && r.back().telemetry(0).step() == kEvents;
  }));
  std::uint64_t dropped = 0;
  slow->until([&](const auto& r) {
    for (const auto& response : r) dropped += response.dropped();
    return true;
  });
  EXPECT_EQ(slow->steps().size() + dropped, kEvents);
}

TEST_F(WatchHubTest, UpdateAddsWithASnapshotAndRemoves) {
  put_board(1, "one");
  put_job(new_uuid(), 1);
  const auto consumer = watch({topic(TopicKind::kJobs)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  std::promise<Result<bool>> done;
  hub->update(consumer->id, {topic(TopicKind::kFleet)}, {topic(TopicKind::kJobs)},
              [&](Result<bool> result) { done.set_value(std::move(result)); });
  EXPECT_TRUE(done.get_future().get().ok());
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_events(r) == 2; }));
  put_job(new_uuid(), 2);
  put_board(1, "uno");
  ASSERT_TRUE(consumer->until([](const auto& r) { return count_events(r) == 3; }));
  EXPECT_EQ(consumer->events().back().board().name(), "uno");
  std::promise<Result<bool>> gone;
  hub->update(12345, {}, {}, [&](Result<bool> result) { gone.set_value(std::move(result)); });
  EXPECT_EQ(gone.get_future().get().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WatchHubTest, LiveViewShowsStatusAtOnceAndCountersSeldom) {
  training::FleetView view;
  model::Board board;
  board.uid = test::uid_of(1);
  board.status = model::BoardStatus::kOnline;
  view.boards = {board};
  fleet->show(view);
  const auto consumer = watch({topic(TopicKind::kFleet, false)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  for (int i = 1; i <= 10; ++i) {
    view.boards[0].link.rx_frames = static_cast<std::uint64_t>(i);
    fleet->show(view);
  }
  view.boards[0].status = model::BoardStatus::kSuspect;
  fleet->show(view);
  ASSERT_TRUE(consumer->until([](const auto& r) {
    return r.back().events_size() == 1 &&
           r.back().events(0).board().status() == v1::BOARD_STATUS_SUSPECT;
  }));
  EXPECT_LE(consumer->events().size(), 4u);
  EXPECT_EQ(consumer->events().back().event_seq(), 0);
}

TEST_F(WatchHubTest, HeartbeatsComeWithoutNews) {
  WatchOptions options;
  options.heartbeat = milliseconds(60);
  make(options);
  const auto consumer = watch({});
  EXPECT_TRUE(consumer->until([](const auto& r) { return r.size() >= 4; }));
  EXPECT_GT(consumer->last().server_time_us(), 0);
  EXPECT_EQ(consumer->last().watch_id(), consumer->id);
}

TEST_F(WatchHubTest, StoppingEndsStreamsWithUnavailable) {
  const auto consumer = watch({topic(TopicKind::kJobs)});
  ASSERT_TRUE(consumer->until(snapshot_done));
  hub->stop();
  ASSERT_TRUE(consumer->end().has_value());
  EXPECT_EQ(consumer->end()->code(), absl::StatusCode::kUnavailable);
  const auto late = watch({});
  EXPECT_EQ(late->end()->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hub->streams(), 0u);
}

}  // namespace
}  // namespace odt::api

#include "alerts/engine.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "alert_rig.h"
#include "store/memory_store.h"

namespace odt::test {
namespace {

using alerts::Engine;
using model::AlertKind;
using model::AlertState;
using model::BoardStatus;
using model::DeliveryState;

// Time that several threads read.
class SharedClock final : public Clock {
 public:
  std::int64_t now_us() const override { return 1'700'000'000 * kSecondUs + passed_us; }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point(std::chrono::hours(1)) +
           std::chrono::microseconds(passed_us);
  }
  std::atomic<std::int64_t> passed_us{0};
};

// Answers each POST with the next of its statuses (the last one again and again).
class HttpSink {
 public:
  explicit HttpSink(std::vector<int> statuses) : statuses_(std::move(statuses)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&where), size) != 0 || ::listen(fd_, 8) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&where), &size) != 0)
      std::abort();
    port_ = ntohs(where.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpSink() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/hook"; }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  void serve() {
    for (std::size_t n = 0;; ++n) {
      const int peer = ::accept(fd_, nullptr, nullptr);
      if (peer < 0) return;
      std::string text;
      char buffer[4096];
      while (text.find("\r\n\r\n") == std::string::npos || text.back() != '}') {
        const ssize_t got = ::read(peer, buffer, sizeof buffer);
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
      }
      {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(text.substr(text.find("\r\n\r\n") + 4));
      }
      const int status = statuses_[std::min(n, statuses_.size() - 1)];
      const std::string answer = "HTTP/1.1 " + std::to_string(status) +
                                 " X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      (void)!::write(peer, answer.data(), answer.size());
      ::close(peer);
    }
  }
  std::vector<int> statuses_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::thread thread_;
};

class EngineTest : public testing::Test {
 protected:
  ~EngineTest() override { stop(); }

  void start(const std::string& webhook = "") {
    alerts::EngineOptions options;
    options.rules = alerts::default_rules();
    options.webhook.url = webhook;
    options.rules_version = 1;
    options.period = std::chrono::milliseconds(5);
    options.view = [this] {
      const std::lock_guard lock(mutex_);
      return view_;
    };
    options.disk = [this] {
      alerts::DiskSeen disk;
      disk.free_bytes = free_bytes_;
      return disk;
    };
    io_ = std::make_unique<asio::io_context>(1);
    engine_ = std::make_unique<Engine>(*io_, clock_, control_, std::move(options));
    ASSERT_TRUE(engine_->start().ok());
    thread_ = std::thread([this] {
      const auto work = asio::make_work_guard(*io_);
      io_->run();
    });
  }
  void stop() {
    if (!engine_) return;
    engine_->stop();
    io_->stop();
    thread_.join();
    engine_.reset();
    // As odtd does: the store's answers end before the io context that they are meant for.
    EXPECT_TRUE(control_.call_sync([](store::ControlStore& s) { return s.alerts({1, ""}); }).ok());
  }
  void show(BoardStatus status) {
    auto view = std::make_shared<training::FleetView>();
    model::Board& board = view->boards.emplace_back();
    board.uid = uid(1);
    board.name = "b1";
    board.status = status;
    board.rules_version = 1;
    const std::lock_guard lock(mutex_);
    view_ = view;
  }
  std::optional<model::Alert> stored(AlertKind rule) {
    auto page = control_.call_sync([](store::ControlStore& s) { return s.alerts({100, ""}); });
    EXPECT_TRUE(page.ok());
    for (const auto& alert : page->items)
      if (alert.rule == rule) return alert;
    return std::nullopt;
  }
  // Lets time pass until it holds.
  template <typename Holds>
  bool until(Holds holds, std::int64_t step_us = 500'000) {
    for (int i = 0; i < 2000; ++i) {
      if (holds()) return true;
      clock_.passed_us += step_us;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  template <typename T, typename Begin>
  Result<T> ask(Begin begin) {
    std::promise<Result<T>> answer;
    begin([&answer](Result<T> result) { answer.set_value(std::move(result)); });
    return answer.get_future().get();
  }
  bool until_state(AlertKind rule, AlertState state) {
    return until([&] {
      const auto alert = stored(rule);
      return alert && alert->state == state;
    });
  }

  SharedClock clock_;
  store::ControlThread control_{std::make_unique<store::MemoryControlStore>(clock_)};
  std::mutex mutex_;
  std::shared_ptr<const training::FleetView> view_ = std::make_shared<training::FleetView>();
  std::atomic<std::uint64_t> free_bytes_{std::uint64_t{1} << 40};
  std::unique_ptr<asio::io_context> io_;
  std::unique_ptr<Engine> engine_;
  std::thread thread_;
};

TEST_F(EngineTest, AcknowledgedAlertsOutliveTheDaemonAndAreOverByThemselves) {
  show(BoardStatus::kOffline);
  start();
  ASSERT_TRUE(until_state(AlertKind::kOffline, AlertState::kFiring));
  const Uuid id = stored(AlertKind::kOffline)->id;
  CallContext ctx;
  ctx.actor = "ann";
  const auto acked = ask<model::Alert>(
      [&](Done<model::Alert> done) { engine_->acknowledge(ctx, id, "unplugged", done); });
  ASSERT_TRUE(acked.ok()) << acked.status();
  EXPECT_EQ(stored(AlertKind::kOffline)->ack_by, "ann");
  stop();

  start();
  ASSERT_TRUE(until([&] { return clock_.passed_us > 400 * kSecondUs; }, 2'000'000));
  const auto still = stored(AlertKind::kOffline);
  EXPECT_EQ(still->id, id);
  EXPECT_EQ(still->count, 1u);
  EXPECT_EQ(still->ack_note, "unplugged");
  EXPECT_EQ(still->state, AlertState::kFiring);
  show(BoardStatus::kOnline);
  ASSERT_TRUE(until_state(AlertKind::kOffline, AlertState::kResolved));
  EXPECT_EQ(stored(AlertKind::kOffline)->resolution, "the board is back");
}

TEST_F(EngineTest, TheDisk) {
  start();
  free_bytes_ = 500'000'000;
  ASSERT_TRUE(until_state(AlertKind::kDisk, AlertState::kFiring));
  EXPECT_EQ(stored(AlertKind::kDisk)->value, 500);
  EXPECT_TRUE(stored(AlertKind::kDisk)->board.empty());
  free_bytes_ = 2'000'000'000;
  EXPECT_TRUE(until_state(AlertKind::kDisk, AlertState::kResolved));
}

TEST_F(EngineTest, TheWebhookTriesUntilItIsTaken) {
  HttpSink sink({500, 503, 204});
  show(BoardStatus::kOffline);
  start(sink.url());
  const auto delivered = [&] {
    const auto alert = stored(AlertKind::kOffline);
    return alert && alert->delivery.state == DeliveryState::kDelivered;
  };
  ASSERT_TRUE(until(delivered));
  EXPECT_EQ(stored(AlertKind::kOffline)->delivery.attempts, 3u);
  ASSERT_EQ(sink.bodies().size(), 3u);
  const std::string body = sink.bodies().back();
  EXPECT_NE(body.find(R"("event":"firing")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("rule":"offline")"), std::string::npos) << body;
  EXPECT_NE(body.find(stored(AlertKind::kOffline)->id.hex()), std::string::npos) << body;
  show(BoardStatus::kOnline);
  ASSERT_TRUE(until([&] { return sink.bodies().size() == 4; }));
  EXPECT_NE(sink.bodies().back().find(R"("event":"resolved")"), std::string::npos);
}

TEST_F(EngineTest, WhatWasNotSentIsSentAfterARestart) {
  show(BoardStatus::kOffline);
  start("http://127.0.0.1:1/nobody");
  ASSERT_TRUE(until([&] {
    const auto alert = stored(AlertKind::kOffline);
    return alert && alert->delivery.attempts >= 2;
  }));
  EXPECT_EQ(stored(AlertKind::kOffline)->delivery.state, DeliveryState::kPending);
  EXPECT_FALSE(stored(AlertKind::kOffline)->delivery.error.empty());
  stop();
  HttpSink sink({200});
  start(sink.url());
  ASSERT_TRUE(until([&] { return !sink.bodies().empty(); }));
}

TEST_F(EngineTest, TheTestOfTheWebhookSaysWhatCameBack) {
  using Outcome = alerts::AlertControl::WebhookTest;
  start();
  const auto none =
      ask<Outcome>([&](Done<Outcome> done) { engine_->test_webhook(CallContext(), false, done); });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  stop();
  HttpSink sink({404, 200});
  start(sink.url());
  const auto refused =
      ask<Outcome>([&](Done<Outcome> done) { engine_->test_webhook(CallContext(), false, done); });
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE(refused->delivered);
  EXPECT_EQ(refused->http_status, 404u);
  const auto taken =
      ask<Outcome>([&](Done<Outcome> done) { engine_->test_webhook(CallContext(), false, done); });
  EXPECT_TRUE(taken->delivered);
}

TEST_F(EngineTest, RulesChangedByPeopleOutliveTheDaemon) {
  start();
  alerts::AlertControl::RuleUpdate update;
  update.rule = AlertKind::kDisk;
  update.threshold = 5;
  const auto set = ask<model::AlertRule>(
      [&](Done<model::AlertRule> done) { engine_->update_rule(CallContext(), update, done); });
  ASSERT_TRUE(set.ok());
  stop();
  start();
  using Overview = alerts::AlertControl::Overview;
  const auto now = ask<Overview>([&](Done<Overview> done) { engine_->overview(done); });
  EXPECT_EQ(now->settings.rules[static_cast<std::size_t>(AlertKind::kDisk) - 1].threshold, 5);
  update.threshold.reset();
  update.reset = true;
  const auto reset = ask<model::AlertRule>(
      [&](Done<model::AlertRule> done) { engine_->update_rule(CallContext(), update, done); });
  EXPECT_EQ(reset->threshold, 1024);
  EXPECT_FALSE(reset->changed);
}

TEST(Webhook, Urls) {
  EXPECT_TRUE(alerts::check_webhook_url("https://hooks.example/x?y=1").ok());
  for (const char* bad :
       {"", "hooks.example", "ftp://x", "http://", "http://:80/x", "https://me:secret@x/"})
    EXPECT_FALSE(alerts::check_webhook_url(bad).ok()) << bad;
}

}  // namespace
}  // namespace odt::test

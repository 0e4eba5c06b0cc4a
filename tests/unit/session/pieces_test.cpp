#include <gtest/gtest.h>

#include "session/async.h"
#include "session/backoff.h"
#include "session/keepalive.h"
#include "session/log_limiter.h"
#include "session/rto.h"
#include "support/fake_clock.h"
#include "support/run_io.h"

namespace odt::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rto, FollowsRfc6298WithinBounds) {
  Rto rto(milliseconds(250), milliseconds(25), seconds(5));
  EXPECT_EQ(rto.value(), milliseconds(250));
  rto.sample(milliseconds(100));  // SRTT 100, RTTVAR 50
  EXPECT_EQ(rto.value(), milliseconds(300));
  rto.sample(milliseconds(100));  // RTTVAR 37.5
  EXPECT_EQ(rto.value(), milliseconds(250));
  for (int i = 0; i < 100; ++i) rto.sample(milliseconds(1));
  EXPECT_EQ(rto.value(), milliseconds(25));
}

TEST(Rto, DoublesToTheCapUntilTheNextSample) {
  Rto rto(milliseconds(250), milliseconds(25), seconds(5));
  for (const int want : {500, 1000, 2000, 4000, 5000, 5000}) {
    rto.backoff();
    EXPECT_EQ(rto.value(), milliseconds(want));
  }
  rto.sample(milliseconds(10));
  EXPECT_EQ(rto.value(), milliseconds(30));
}

TEST(Rto, SlowBoardRaisesTheFloor) {
  Rto rto(milliseconds(250), milliseconds(25), seconds(5));
  rto.set_min(milliseconds(400));
  EXPECT_EQ(rto.value(), milliseconds(400));
  rto.set_min(seconds(60));
  EXPECT_EQ(rto.value(), seconds(5));
}

class KeepaliveTest : public testing::Test {
 protected:
  test::FakeClock clock_;
  Keepalive keepalive_{milliseconds(1000), milliseconds(3000), milliseconds(5000),
                       clock_.steady_now()};
  Keepalive::Due check_after(milliseconds time) {
    clock_.advance(time);
    return keepalive_.check(clock_.steady_now());
  }
};

TEST_F(KeepaliveTest, PingsAfterIdleThenSuspectThenDown) {
  EXPECT_FALSE(check_after(milliseconds(999)).ping);
  EXPECT_TRUE(check_after(milliseconds(1)).ping);
  EXPECT_FALSE(check_after(milliseconds(1)).ping);  // once
  EXPECT_TRUE(check_after(milliseconds(999)).ping);
  auto due = check_after(milliseconds(1000));
  EXPECT_EQ(due.status, model::BoardStatus::kSuspect);
  EXPECT_FALSE(due.down);
  due = check_after(milliseconds(2000));
  EXPECT_TRUE(due.down);
}

TEST_F(KeepaliveTest, AnyFrameEndsSuspicion) {
  EXPECT_EQ(check_after(milliseconds(3500)).status, model::BoardStatus::kSuspect);
  keepalive_.on_receive(clock_.steady_now());
  EXPECT_EQ(keepalive_.check(clock_.steady_now()).status, model::BoardStatus::kOnline);
}

TEST_F(KeepaliveTest, AnswersNeedNoPing) {
  for (int i = 0; i < 20; ++i) {
    clock_.advance(milliseconds(500));
    keepalive_.on_receive(clock_.steady_now());
    keepalive_.on_answer(clock_.steady_now());
    EXPECT_FALSE(keepalive_.check(clock_.steady_now()).ping);
  }
}

TEST_F(KeepaliveTest, AnnouncedBusyIsNotDown) {
  keepalive_.on_busy(clock_.steady_now(), seconds(10));
  auto due = check_after(milliseconds(9999));
  EXPECT_TRUE(due.busy);
  EXPECT_FALSE(due.down);
  EXPECT_FALSE(due.ping);
  due = check_after(milliseconds(1));
  EXPECT_FALSE(due.busy);
  EXPECT_TRUE(due.ping) << "the time is over: ask";
  EXPECT_FALSE(due.down);
  EXPECT_TRUE(check_after(milliseconds(5000)).down);
}

TEST_F(KeepaliveTest, BusyForEverIsCapped) {
  keepalive_.on_busy(clock_.steady_now(), milliseconds(0xFFFFFFFFu));
  EXPECT_FALSE(check_after(seconds(121)).busy);
  EXPECT_TRUE(check_after(seconds(6)).down);
}

TEST_F(KeepaliveTest, PongEndsBusy) {
  keepalive_.on_busy(clock_.steady_now(), seconds(10));
  clock_.advance(seconds(6));
  keepalive_.end_busy(clock_.steady_now());
  const auto due = keepalive_.check(clock_.steady_now());
  EXPECT_FALSE(due.busy);
  EXPECT_EQ(due.status, model::BoardStatus::kOnline);
}

TEST_F(KeepaliveTest, NextIsNeverInThePastWhileUp) {
  for (int i = 0; i < 49; ++i) {
    const auto due = check_after(milliseconds(100));
    EXPECT_GT(due.next, clock_.steady_now()) << i;
  }
}

TEST(Backoff, Report07_DoublesWithJitterToTheCap) {
  Backoff backoff(milliseconds(500), milliseconds(30000), system_random());
  milliseconds base(500);
  for (int i = 0; i < 12; ++i) {
    const milliseconds wait = backoff.next();
    EXPECT_GE(wait, base * 3 / 4);
    EXPECT_LE(wait, std::min(base * 5 / 4, milliseconds(30000)));
    base = std::min(base * 2, milliseconds(30000));
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(625));
}

TEST(LogLimiter, LetsABurstThroughThenARate) {
  test::FakeClock clock;
  LogLimiter limiter(clock.steady_now(), 10, 5);
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += limiter.allow(clock.steady_now()) ? 1 : 0;
  EXPECT_EQ(passed, 10);
  clock.advance(seconds(1));
  passed = 0;
  for (int i = 0; i < 100; ++i) passed += limiter.allow(clock.steady_now()) ? 1 : 0;
  EXPECT_EQ(passed, 5);
  EXPECT_EQ(limiter.take_suppressed(), 185u);
  EXPECT_EQ(limiter.take_suppressed(), 0u);
}

struct LockUser {
  static asio::awaitable<void> use(asio::io_context& io, FifoLock& lock, std::vector<int>& order,
                                   int id) {
    const auto guard = co_await lock.lock();
    if (!guard) {
      order.push_back(-id);
      co_return;
    }
    order.push_back(id);
    asio::steady_timer timer(io, milliseconds(5));
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
};

TEST(FifoLock, FirstComeFirstServedAndCloseFreesAll) {
  asio::io_context io;
  FifoLock lock(io);
  std::vector<int> order;
  const auto ended = [](std::exception_ptr error) { EXPECT_FALSE(error); };
  for (int id = 1; id <= 3; ++id) asio::co_spawn(io, LockUser::use(io, lock, order, id), ended);
  ASSERT_TRUE(test::run_until(io, [&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  for (int id = 4; id <= 6; ++id) asio::co_spawn(io, LockUser::use(io, lock, order, id), ended);
  ASSERT_TRUE(test::run_until(io, [&] { return order.size() == 4; }));
  lock.close();
  ASSERT_TRUE(test::run_until(io, [&] { return order.size() == 6; }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, -5, -6}));
}

}  // namespace
}  // namespace odt::session

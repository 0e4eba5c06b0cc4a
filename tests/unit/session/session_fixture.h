#pragma once

#include <gtest/gtest.h>

#include "session/session_impl.h"
#include "support/memory_link.h"
#include "support/run_io.h"
#include "support/scripted_board.h"
#include "support/session_probe.h"

namespace odt::session {

// A session and a scripted board on the two ends of a link in memory. Times are short, but for a
// busy machine's sake not that of the session's end by silence: see ShortLivedTest.
class SessionTest : public testing::Test {
 protected:
  using milliseconds = std::chrono::milliseconds;

  explicit SessionTest(milliseconds down_after = milliseconds(5000)) {
    options_.host_id.bytes.fill(1);
    options_.ping_idle = milliseconds(50);
    options_.suspect_after = down_after / 2;
    options_.down_after = down_after;
    options_.hello_timeout = milliseconds(30);
    options_.rto_start = milliseconds(40);
    options_.rto_min = milliseconds(10);
    options_.rto_max = milliseconds(200);
    options_.slow_answer = milliseconds(3000);
    make_link(false);
  }

  ~SessionTest() override {
    session_->set_sink(nullptr);
    session_->close(absl::CancelledError("test over"));
    test::run_until(io_, [&] { return !pipe_->open(); });
    test::run_for(io_, milliseconds(5));
  }

  void make_link(bool strict) {
    auto [ours, theirs] = test::MemoryLink::make_pair(io_);
    board_ = std::make_shared<test::ScriptedBoard>(io_, theirs);
    board_->start();
    pipe_ = std::make_shared<FramePipe>(io_, ours, strict);
    pipe_->start();
    session_ = std::make_shared<SessionImpl>(io_, clock_, options_, pipe_, memory_, "memory",
                                             system_random());
  }

  // A new link and session with the same board content and endpoint memory.
  void reconnect() {
    session_->set_sink(nullptr);
    session_->close(absl::CancelledError("again"));
    test::run_until(io_, [&] { return !pipe_->open(); });
    auto old = board_;
    make_link(false);
    board_->boot_id = old->boot_id;
  }

  // Before start(): answers may take their time. For tests in which nothing is sent twice.
  void never_resend() {
    options_.rto_start = options_.rto_min = options_.rto_max = milliseconds(20000);
    reconnect();
  }

  Status connect() { return test::run(io_, session_->connect(3)); }

  // Connected, with a sink, kept alive.
  void start() {
    const Status said = connect();
    ASSERT_TRUE(said.ok()) << said;
    session_->set_sink(&sink_);
    session_->run();
  }

  asio::io_context io_;
  SystemClock clock_;
  LinkOptions options_;
  std::shared_ptr<EndpointMemory> memory_ = std::make_shared<EndpointMemory>();
  std::shared_ptr<test::ScriptedBoard> board_;
  std::shared_ptr<FramePipe> pipe_;
  std::shared_ptr<SessionImpl> session_;
  test::RecordingSink sink_;
};

}  // namespace odt::session

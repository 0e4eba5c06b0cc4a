#pragma once

#include <gtest/gtest.h>

#include "session/link_runner.h"
#include "support/pty_pair.h"
#include "support/run_io.h"
#include "support/scripted_board.h"
#include "support/session_probe.h"

namespace odt::session {

using std::chrono::milliseconds;

// A runner of one endpoint. Times are short, but for a busy machine's sake not that of a session's
// end by silence.
class RunnerTest : public testing::Test {
 protected:
  RunnerTest() {
    options_.host_id.bytes.fill(1);
    options_.hello_timeout = milliseconds(30);
    options_.backoff_min = milliseconds(20);
    options_.backoff_max = milliseconds(100);
    options_.ping_idle = milliseconds(50);
    options_.suspect_after = milliseconds(2500);
    options_.down_after = milliseconds(5000);
    host_.sink = &sink_;
  }
  ~RunnerTest() override {
    host_.session.reset();
    if (runner_) test::run(io_, runner_->stop());
    runner_.reset();
    test::run_for(io_, milliseconds(20));
  }

  void run_endpoint(const std::string& endpoint) {
    runner_ = make_link_runner(io_, clock_, endpoint, options_, host_);
    runner_->start();
  }
  bool online(int sessions) {
    return test::run_until(io_, [&] { return host_.sessions >= sessions && host_.online(); });
  }
  std::shared_ptr<test::ScriptedBoard> board_on(test::PtyPair& pty) {
    auto board = std::make_shared<test::ScriptedBoard>(io_, pty.board_end());
    board->start();
    return board;
  }

  asio::io_context io_;
  SystemClock clock_;
  LinkOptions options_;
  test::RecordingSink sink_;
  test::RecordingHost host_;
  std::unique_ptr<LinkRunner> runner_;
};

}  // namespace odt::session

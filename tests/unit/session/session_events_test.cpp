#include "odt/device/v1/device.pb.h"
#include "unit/session/session_fixture.h"

namespace odt::session {
namespace {

namespace pb = ::odt::device::v1;
using std::chrono::milliseconds;

std::string steps_text(const std::vector<model::TelemetryFrame>& frames) {
  std::string out;
  for (const auto& frame : frames) {
    if (!out.empty()) out += ' ';
    out += frame.gap != 0 ? "gap" + std::to_string(frame.gap) : std::to_string(frame.step);
  }
  return out;
}

TEST_F(SessionTest, StepsCarryTheirIdentity) {
  start();
  board_->emit_step(0);
  ASSERT_TRUE(test::run_until(io_, [&] { return !sink_.steps.empty(); }));
  const model::TelemetryFrame& frame = sink_.steps[0];
  EXPECT_EQ(frame.board_uid.str(), "board-01");
  EXPECT_EQ(frame.boot_id, 0x1111u);
  EXPECT_EQ(frame.event_id, 0u);
  EXPECT_EQ(frame.loss.sum, 1000);
  ASSERT_EQ(frame.layers.size(), 1u);
  EXPECT_EQ(frame.layers[0], (model::LayerStep{7, -1, 8}));
  EXPECT_GT(frame.time_us, 0);
}

TEST_F(SessionTest, ALostEventIsAskedForAgain) {
  start();
  board_->emit_step(0);
  board_->drop_events = 2;
  for (std::uint32_t step = 1; step < 6; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 6; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 1 2 3 4 5");
  EXPECT_EQ(session_->stats().telemetry_gaps, 0u);
}

TEST_F(SessionTest, ALostLastEventIsSeenByThePong) {
  start();
  board_->emit_step(0);
  board_->drop_events = 1;
  board_->emit_step(1);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 2; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 1");
}

TEST_F(SessionTest, WhatTheRingHasLostIsOneGap) {
  board_->ring = 4;
  start();
  board_->emit_step(0);
  board_->drop_events = 9;
  for (std::uint32_t step = 1; step < 11; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 6; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 gap6 7 8 9 10");
  EXPECT_EQ(sink_.steps[1].event_id, 1u);
  EXPECT_EQ(session_->stats().telemetry_gaps, 1u);
}

TEST_F(SessionTest, DuplicatesAreDeliveredOnce) {
  start();
  for (std::uint32_t step = 0; step < 3; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 3; }));
  pb::Event again;
  again.mutable_step()->set_step(1);
  board_->send_frame(FRAME_EVENT, 1, again.SerializeAsString());
  board_->emit_step(3);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 4; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 1 2 3");
}

TEST_F(SessionTest, EventsBeforeASinkAreKeptOnTheBoard) {
  ASSERT_TRUE(connect().ok());
  session_->run();
  for (std::uint32_t step = 0; step < 3; ++step) board_->emit_step(step);
  test::run_for(io_, milliseconds(30));
  EXPECT_TRUE(sink_.steps.empty());
  session_->set_sink(&sink_);
  board_->emit_step(3);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 4; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 1 2 3");
}

TEST_F(SessionTest, ANewSessionOfTheSameBootGoesOnWhereTheLastEnded) {
  start();
  for (std::uint32_t step = 0; step < 3; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 3; }));
  reconnect();
  for (std::uint32_t step = 0; step < 6; ++step) board_->emit_step(step);  // 3..5 while away
  start();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 6; }));
  test::run_for(io_, milliseconds(50));
  EXPECT_EQ(steps_text(sink_.steps), "0 1 2 3 4 5");
}

TEST_F(SessionTest, ARepeatedBootIdWithFewerEventsStartsAfresh) {
  start();
  for (std::uint32_t step = 0; step < 5; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 5; }));
  reconnect();
  board_->emit_step(100);
  start();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 6; }));
  EXPECT_EQ(sink_.steps.back().step, 100u);
}

TEST_F(SessionTest, AHoleThatTheBoardDoesNotFillIsGivenUpSoon) {
  start();
  board_->emit_step(0);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 1; }));
  // Id 1 is never sent: an epoch that was acknowledged.
  board_->on_request = [&](const pb::Request& q, pb::Response& r) {
    if (!q.has_get_telemetry_from()) return false;
    r.mutable_telemetry()->set_first(1);
    r.mutable_telemetry()->set_next(3);
    pb::Event event;
    event.mutable_step()->set_step(2);
    board_->send_frame(FRAME_EVENT, 2, event.SerializeAsString());
    return true;
  };
  board_->drop_events = 1;
  board_->emit_step(1);
  board_->emit_step(2);
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.steps.size() == 3; }, milliseconds(1000)));
  EXPECT_EQ(steps_text(sink_.steps), "0 gap1 2");
}

TEST_F(SessionTest, Report15_ABoardWithoutRefillGetsAGapAndTheSessionLives) {
  start();
  board_->on_request = [](const pb::Request&, pb::Response& r) {
    r.mutable_error()->set_code(pb::STATUS_CODE_UNIMPLEMENTED);
    return true;
  };
  board_->emit_step(0);
  board_->drop_events = 1;
  board_->emit_step(1);
  board_->emit_step(2);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 3; }));
  EXPECT_EQ(steps_text(sink_.steps), "0 gap1 2");
  EXPECT_TRUE(session_->alive());
}

TEST_F(SessionTest, JobEventsNameTheRunOfWhatFollows) {
  start();
  pb::Event job;
  job.mutable_job()->set_run_id(std::string(16, 'r'));
  job.mutable_job()->set_attempt(2);
  job.mutable_job()->set_job(pb::JOB_STATE_RUNNING);
  board_->emit_event(job.SerializeAsString());
  board_->emit_step(0);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 1; }));
  EXPECT_EQ(sink_.steps[0].run_id.str(), std::string(16, 'r'));
  EXPECT_EQ(sink_.steps[0].attempt, 2u);
  EXPECT_EQ(sink_.jobs[0].job, model::JobState::kRunning);
}

TEST_F(SessionTest, GetEpochDeliversTheRecordAgain) {
  start();
  pb::Event epoch;
  epoch.mutable_epoch()->set_epoch(0);
  epoch.mutable_epoch()->set_correct(205);
  board_->emit_event(epoch.SerializeAsString());
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.epochs.size() == 1; }));
  board_->on_request = [&](const pb::Request& q, pb::Response&) {
    if (q.has_get_epoch()) board_->send_frame(FRAME_EVENT, 0, epoch.SerializeAsString());
    return true;
  };
  EXPECT_TRUE(test::run(io_, session_->get_epoch(0)).ok());
  EXPECT_EQ(sink_.epochs.size(), 2u);
  EXPECT_EQ(sink_.epochs[1].train.correct, 205u);
  // Unasked, an old record is a duplicate.
  board_->send_frame(FRAME_EVENT, 0, epoch.SerializeAsString());
  test::run_for(io_, milliseconds(30));
  EXPECT_EQ(sink_.epochs.size(), 2u);
}

TEST_F(SessionTest, EventOfANewerFirmwareIsPassedOver) {
  start();
  board_->emit_event(std::string("\xc2\x0c\x02hi", 5));
  board_->emit_step(1);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() == 1; }));
  EXPECT_EQ(sink_.steps[0].event_id, 1u);
}

TEST_F(SessionTest, LogsAreSanitisedAndLimited) {
  start();
  board_->emit_log("evil \x1b]0;title\x07 ../..", 9);
  for (int i = 0; i < 2000; ++i) board_->emit_log("flood");
  EXPECT_TRUE(test::run(io_, session_->get_state(false)).ok()) << "a flood delays no answer";
  test::run_for(io_, milliseconds(50));
  ASSERT_FALSE(sink_.logs.empty());
  EXPECT_EQ(sink_.logs[0], std::make_pair(5, std::string("evil ?]0;title? ../..")));
  EXPECT_LT(sink_.logs.size(), 150u);
}

TEST_F(SessionTest, ConsoleTextBecomesLogLines) {
  start();
  board_->send_raw("panic: stack overflow\r\n" + std::string(1, '\0'));
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.logged("panic: stack overflow"); }));
  // Without a delimiter it comes once the line is quiet.
  board_->mute_pong = true;
  board_->send_raw("HardFault at 0x08001234");
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.logged("HardFault"); }));
}

// A sink that leaves in the middle.
class LeavingSink final : public SessionSink {
 public:
  explicit LeavingSink(std::shared_ptr<SessionImpl>& session) : session_(session) {}
  void on_step(model::TelemetryFrame) override {
    ++steps;
    session_->close(absl::CancelledError("enough"));
  }
  void on_epoch(const model::EpochResult&) override {}
  void on_job(const model::JobChanged&) override {}
  void on_eval(const model::EvalReport&) override {}
  void on_log(int, const std::string&) override {}
  void on_status(model::BoardStatus) override {}
  void on_closed(const Status&) override { ++closed; }
  int steps = 0, closed = 0;

 private:
  std::shared_ptr<SessionImpl>& session_;
};

TEST_F(SessionTest, ClosingInACallbackIsTheEndOfCallbacks) {
  ASSERT_TRUE(connect().ok());
  LeavingSink sink(session_);
  session_->set_sink(&sink);
  session_->run();
  for (std::uint32_t step = 0; step < 5; ++step) board_->emit_step(step);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink.closed == 1; }));
  test::run_for(io_, milliseconds(30));
  EXPECT_EQ(sink.steps, 1);
  EXPECT_EQ(sink.closed, 1);
}

}  // namespace
}  // namespace odt::session

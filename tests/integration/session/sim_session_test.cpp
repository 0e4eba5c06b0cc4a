#include "sim_session.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "support/fault_proxy.h"

namespace odt {
namespace {

// Every step from 0 to n-1 exactly once, or counted in a gap.
void expect_complete(const std::vector<model::TelemetryFrame>& steps, std::uint32_t n,
                     bool gaps_allowed) {
  std::uint32_t next = 0, gaps = 0;
  for (const model::TelemetryFrame& frame : steps) {
    if (frame.gap != 0) {
      gaps += frame.gap;
      continue;
    }
    if (gaps_allowed) {
      EXPECT_GE(frame.step, next);
    } else {
      EXPECT_EQ(frame.step, next);
    }
    next = frame.step + 1;
  }
  EXPECT_EQ(next, n);
  if (!gaps_allowed) {
    EXPECT_EQ(gaps, 0u);
  }
}

TEST_F(SimSession, TrainsTheGoldenEpochOverTcp) {
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  EXPECT_EQ(board().hello().uid.hex(), "00112233445566778899aabb");
  EXPECT_EQ(board().hello().board_type, "sim");
  EXPECT_NE(board().hello().boot_id, 0u);
  train_golden_epoch();
  expect_complete(sink_.steps, 75, false);
  for (const model::TelemetryFrame& frame : sink_.steps) EXPECT_EQ(frame.layers.size(), 2u);

  const auto weights = test::run(io_, board().receive(model::Resource::kWeights));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->content.substr(0, 4), "ODTW");
  EXPECT_EQ(sha256(weights->content), sink_.jobs.back().weights_hash);
  const auto state = test::run(io_, board().receive(model::Resource::kState));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->content.substr(0, 4), "ODTT");
  EXPECT_EQ(sha256(state->content), sink_.jobs.back().state_hash);
  EXPECT_EQ(state->version, 75u);
  const auto held = test::run(io_, board().get_state(true));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->state_hash, sha256(state->content));
  EXPECT_EQ(held->job, model::JobState::kDone);
}

TEST_F(SimSession, TrainsOverAPty) {
  connect(start_board({"--pty"}));
  train_golden_epoch();
  expect_complete(sink_.steps, 75, false);
}

TEST_F(SimSession, RestoresAStateInAnotherBoard) {
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  train_golden_epoch();
  const auto state = test::run(io_, board().receive(model::Resource::kState));
  ASSERT_TRUE(state.ok()) << state.status();
  test::run(io_, runner_->stop());
  sink_ = {};
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  push(model::Resource::kModelImage, 0, "image.odtm");
  push(model::Resource::kSamples, 1, "samples.odts");
  const Status sent =
      test::run(io_, board().send(model::Resource::kState, 0,
                                  std::make_shared<const std::string>(state->content), 0, {}, {}));
  ASSERT_TRUE(sent.ok()) << sent;
  const auto held = test::run(io_, board().get_state(true));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->state_hash, sha256(state->content));
}

TEST_F(SimSession, TrainsThroughFaults) {
  // The line is as lossy as a bad serial cable: damaged frames are dropped, not the connection.
  options_.tcp_lossy = true;
  test::Faults faults;
  faults.drop = faults.corrupt = faults.duplicate = 20;
  faults.split = faults.delay = 30;
  test::FaultProxy proxy(io_, start_tcp_board(), faults, faults, 20240501);
  connect("tcp:127.0.0.1:" + std::to_string(proxy.port()));
  train_golden_epoch();
  const auto weights = test::run(io_, board().receive(model::Resource::kWeights), seconds(60));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(sha256(weights->content), sink_.jobs.back().weights_hash);
  const auto state = test::run(io_, board().receive(model::Resource::kState), seconds(60));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(sha256(state->content), sink_.jobs.back().state_hash);
  EXPECT_EQ(host_.sessions, 1);
  EXPECT_EQ(sink_.closed, 0);
  EXPECT_GT(proxy.injected(), 10u);
  EXPECT_GT(board().stats().retries, 0u);
  expect_complete(sink_.steps, 75, true);
}

TEST_F(SimSession, BadFrameEndsTcpAndTheLinkComesBack) {
  test::FaultProxy proxy(io_, start_tcp_board(), {}, {}, 1);
  connect("tcp:127.0.0.1:" + std::to_string(proxy.port()));
  const std::uint64_t boot = board().hello().boot_id;
  test::Faults corrupt;
  corrupt.corrupt = 1000;
  proxy.set_faults({}, corrupt);
  const auto state = test::run(io_, board().get_state(false));
  EXPECT_TRUE(absl::IsUnavailable(state.status())) << state.status();
  proxy.set_faults({}, {});
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.sessions >= 2 && host_.online(); }));
  EXPECT_EQ(board().hello().boot_id, boot);
}

TEST_F(SimSession, EventsOfALostConnectionComeAfterwards) {
  test::FaultProxy proxy(io_, start_tcp_board({"--step-delay-ms", "10"}), {}, {}, 1);
  connect("tcp:127.0.0.1:" + std::to_string(proxy.port()));
  push(model::Resource::kModelImage, 0, "image.odtm");
  push(model::Resource::kSamples, 1, "samples.odts");
  BoardSession::StartRun start;
  start.run_id = new_uuid();
  start.attempt = 1;
  start.spec = spec_a(1);
  ASSERT_TRUE(test::run(io_, board().start_run(start)).ok());
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.steps.size() > 20; }));
  proxy.cut();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.sessions == 2 && host_.online(); }));
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.done(); }, seconds(30)));
  ASSERT_EQ(sink_.epochs.size(), 1u);
  EXPECT_EQ(sink_.epochs[0].loss.sum, 715945);
  expect_complete(sink_.steps, 75, true);
}

TEST_F(SimSession, ARestartedDaemonReadsTheRingWithoutFalseGaps) {
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  train_golden_epoch();
  ASSERT_TRUE(test::run(io_, board().ack_epoch(sink_.epochs[0].run_id, 1, 0)).ok());
  const std::uint32_t next = board().hello().next_event;
  test::run(io_, runner_->stop());
  const std::string endpoint = host_.endpoints[0];
  sink_ = {};
  host_ = {};
  host_.sink = &sink_;
  connect(endpoint);
  EXPECT_GT(board().hello().next_event, next);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.done(); }));
  EXPECT_FALSE(sink_.steps.empty());
  for (const model::TelemetryFrame& frame : sink_.steps) EXPECT_EQ(frame.gap, 0u);
  EXPECT_EQ(board().stats().telemetry_gaps, 0u);
}

TEST_F(SimSession, PowerCycleIsNoticedAndTheNewBootConnected) {
  const std::uint16_t port = start_tcp_board();
  connect("tcp:127.0.0.1:" + std::to_string(port));
  const std::uint64_t boot = board().hello().boot_id;
  board_.end();
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.closed == 1; }, seconds(6)));
  start_board({"--listen", std::to_string(port)});
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.online(); }));
  EXPECT_NE(board().hello().boot_id, boot);
}

TEST_F(SimSession, SilentBoardIsSuspectThenDown) {
  options_.ping_idle = milliseconds(100);
  options_.suspect_after = milliseconds(300);
  options_.down_after = milliseconds(600);
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  board_.kill(SIGSTOP);
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.closed == 1; }, seconds(3)));
  EXPECT_NE(std::find(sink_.statuses.begin(), sink_.statuses.end(), model::BoardStatus::kSuspect),
            sink_.statuses.end());
  board_.kill(SIGCONT);
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.online(); }));
}

TEST_F(SimSession, BusyBoardKeepsItsSession) {
  options_.ping_idle = milliseconds(100);
  options_.suspect_after = milliseconds(200);
  options_.down_after = milliseconds(400);
  connect("tcp:127.0.0.1:" +
          std::to_string(start_tcp_board({"--busy-every-ms", "900", "--busy-ms", "700"})));
  test::run_for(io_, milliseconds(2500));
  EXPECT_EQ(sink_.closed, 0);
  EXPECT_NE(std::find(sink_.statuses.begin(), sink_.statuses.end(), model::BoardStatus::kBusy),
            sink_.statuses.end());
  const auto state = test::run(io_, board().get_state(false));
  EXPECT_TRUE(state.ok()) << state.status();
}

TEST_F(SimSession, BoardDialsIn) {
  const std::uint16_t port = test::free_port();
  auto listener = session::make_tcp_listener(io_, clock_, "127.0.0.1", port, options_, host_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  runner_ = *std::move(listener);
  runner_->start();
  board_ = test::ChildProcess({test::sim_board_binary(), "--uid", "00112233445566778899aabb",
                               "--connect", "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.online(); }));
  EXPECT_EQ(host_.endpoints[0].rfind("tcp-in:127.0.0.1:", 0), 0u);
  train_golden_epoch();
}

TEST_F(SimSession, RefusalsKeepTheBoardsWords) {
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  const Status early =
      test::run(io_, board().send(model::Resource::kSamples, 1, golden("samples.odts"), 0, {}, {}));
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  EXPECT_NE(early.message().find("no model image"), std::string::npos) << early;
  auto broken = std::make_shared<std::string>(*golden("image.odtm"));
  (*broken)[0] = 'X';
  const Status bad =
      test::run(io_, board().send(model::Resource::kModelImage, 0, broken, 0, {}, {}));
  EXPECT_FALSE(bad.ok());
  const Status many = test::run(io_, board().identify(100000));
  EXPECT_TRUE(absl::IsInvalidArgument(many)) << many;
  EXPECT_TRUE(test::run(io_, board().identify(1)).ok());
  EXPECT_EQ(sink_.closed, 0);
}

TEST_F(SimSession, StreamedStepsAreTrainedOnce) {
  connect("tcp:127.0.0.1:" + std::to_string(start_tcp_board()));
  push(model::Resource::kModelImage, 0, "image.odtm");
  BoardSession::StartRun start;
  start.run_id = new_uuid();
  start.attempt = 1;
  start.spec = spec_a(3);
  start.spec.streamed = true;
  ASSERT_TRUE(test::run(io_, board().start_run(start)).ok());
  // The first batch of the golden order: header, 8 labels, 8 samples of 196 values.
  const std::string all = *golden("samples.odts");
  const std::uint32_t order[8] = {229, 168, 392, 488, 110, 363, 504, 480};
  std::string blob = all.substr(0, 8) + std::string("\x08\0\0\0", 4) + all.substr(12, 4);
  for (const std::uint32_t i : order) blob += all[16 + i];
  for (const std::uint32_t i : order) blob += all.substr(16 + 600 + i * 196, 196);
  const Status sent =
      test::run(io_, board().send(model::Resource::kBatch, 0,
                                  std::make_shared<const std::string>(blob), 1, {}, {}));
  ASSERT_TRUE(sent.ok()) << sent;
  const auto first = test::run(io_, board().train_step(start.run_id, 1, 0, 1, 0));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->loss.sum, 28501);  // README of the golden run: batch loss A
  const auto again = test::run(io_, board().train_step(start.run_id, 1, 0, 1, 0));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->loss.sum, 28501);
  const auto held = test::run(io_, board().get_state(false));
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->step, 1u);
  const auto wrong = test::run(io_, board().train_step(start.run_id, 1, 5, 1, 0));
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status())) << wrong.status();
}

}  // namespace
}  // namespace odt

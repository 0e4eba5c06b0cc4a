#include "odt/device/v1/device.pb.h"
#include "unit/session/session_fixture.h"

namespace odt::session {
namespace {

namespace pb = ::odt::device::v1;
using std::chrono::milliseconds;

TEST_F(SessionTest, HelloTellsWhoTheBoardIs) {
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(session_->hello().uid.str(), "board-01");
  EXPECT_EQ(session_->hello().boot_id, 0x1111u);
  EXPECT_TRUE(session_->alive());
  EXPECT_NE(board_->session, 0);
}

TEST_F(SessionTest, LostHellosAreRepeatedInTheSameSession) {
  board_->drop_hellos = 2;
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(board_->hellos, 3);
  EXPECT_EQ(board_->frames[0].session, board_->frames[2].session);
}

TEST_F(SessionTest, NoBoardIsSaidSo) {
  board_->mute = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(connect()));
  EXPECT_EQ(board_->count(FRAME_HELLO), 3);
}

TEST_F(SessionTest, NoProtocolInCommonIsRefused) {
  board_->proto = 0;
  EXPECT_TRUE(absl::IsFailedPrecondition(connect()));
  board_->proto = 2;
  EXPECT_TRUE(absl::IsFailedPrecondition(connect()));
}

TEST_F(SessionTest, MtuOutOfRangeIsRefused) {
  board_->mtu = 64;
  EXPECT_TRUE(absl::IsFailedPrecondition(connect()));
}

TEST_F(SessionTest, Report04_BootTextAtAnotherBaudBeforeHelloAck) {
  std::string junk;
  for (int i = 0; i < 300; ++i) junk.push_back(static_cast<char>(0x80 + i % 0x80));
  board_->send_raw(junk + "ets Jun  8 2016 00:22:57\r\n");
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(board_->hellos, 1);
}

TEST_F(SessionTest, Report03_EchoOfOurOwnFramesIsDropped) {
  start();
  board_->send_frame(FRAME_REQ, 1, "echo");
  board_->send_frame(FRAME_PING, 2, "");
  EXPECT_TRUE(test::run(io_, session_->get_state(false)).ok());
  EXPECT_GE(session_->stats().crc_errors, 2u);
}

TEST_F(SessionTest, Report14_ALostAnswerCostsOneRetryAndIsExecutedOnce) {
  start();
  board_->drop_responses = 1;
  const auto state = test::run(io_, session_->get_state(false));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->step, 42u);
  EXPECT_EQ(board_->requests, 2);
  EXPECT_EQ(board_->executed, 1);
  EXPECT_EQ(session_->stats().retries, 1u);
}

TEST_F(SessionTest, Report11_ALateAnswerIsNotTakenForTheNextOne) {
  start();
  // Answers carry the number of the request; each comes after 1.2 RTO.
  std::uint32_t number = 0;
  board_->on_request = [&](const pb::Request&, pb::Response& r) {
    r.mutable_state()->set_step(++number);
    return true;
  };
  board_->delay_response = milliseconds(48);
  for (std::uint32_t i = 1; i <= 5; ++i) {
    const auto state = test::run(io_, session_->get_state(false));
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->step, i);
  }
}

TEST_F(SessionTest, RequestsQueueBehindEachOther) {
  start();
  board_->delay_response = milliseconds(5);
  int done = 0;
  for (int i = 0; i < 10; ++i) {
    asio::co_spawn(io_, session_->get_state(false),
                   [&](std::exception_ptr, Result<model::DeviceState> state) {
                     EXPECT_TRUE(state.ok()) << state.status();
                     ++done;
                   });
  }
  ASSERT_TRUE(test::run_until(io_, [&] { return done == 10; }));
  EXPECT_EQ(board_->executed, 10);
}

TEST_F(SessionTest, AcceptedIsAskedForUntilItIsDone) {
  start();
  board_->accept_first = 3;
  const auto state = test::run(io_, session_->get_state(true));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->step, 42u);
  EXPECT_EQ(board_->executed, 4);
}

TEST_F(SessionTest, TheBoardsRefusalKeepsItsWords) {
  start();
  board_->on_request = [](const pb::Request&, pb::Response& r) {
    r.mutable_error()->set_code(pb::STATUS_CODE_OUT_OF_RANGE);
    r.mutable_error()->set_text("seconds 900, allowed 1..600");
    return true;
  };
  const Status refused = test::run(io_, session_->identify(900));
  EXPECT_TRUE(absl::IsOutOfRange(refused));
  EXPECT_NE(refused.message().find("900"), std::string::npos);
  EXPECT_TRUE(session_->alive());
}

TEST_F(SessionTest, Report13_OversizeSaysTheLimitAndTheLinkStaysUp) {
  start();
  board_->on_request = [&](const pb::Request&, pb::Response&) {
    pb::LinkErr e;
    e.set_reason(pb::LinkErr::REASON_OVERSIZE);
    e.set_limit(576);
    e.set_got(600);
    board_->send_frame_of(0, FRAME_LINK_ERR, 0, e.SerializeAsString());
    board_->drop_responses = 1;
    return true;
  };
  const Status refused = test::run(io_, session_->identify(1));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("576"), std::string::npos);
  board_->on_request = nullptr;
  EXPECT_TRUE(test::run(io_, session_->identify(1)).ok());
}

TEST_F(SessionTest, Report13_ARequestOverTheMtuIsNotSent) {
  board_->mtu = 128;
  start();
  BoardSession::StartRun run;
  run.run_id.bytes.fill(1);
  run.spec.sample_set_hash.bytes.fill(2);
  run.expect_state.bytes.fill(3);
  run.expect_weights.bytes.fill(4);
  const auto refused = test::run(io_, session_->start_run(run));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(board_->requests, 0);
}

TEST_F(SessionTest, UnansweredRequestSaysHelloAndGoesOn) {
  options_.slow_answer = milliseconds(0);
  make_link(false);
  start();
  board_->drop_responses = 5;
  const auto state = test::run(io_, session_->get_state(false));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(board_->hellos, 2);
  EXPECT_TRUE(session_->alive());
}

// It erases its flash for longer than five tries take, and answers PINGs meanwhile: the same
// request is repeated, never a second one; the last step (the checksum) is slow too.
// Where silence matters: a session is over after a second of it.
class ShortLivedTest : public SessionTest {
 protected:
  ShortLivedTest() : SessionTest(milliseconds(1000)) {}
};

TEST_F(ShortLivedTest, Report12_ASlowFirstAndLastStepOfATransfer) {
  start();
  board_->slow_open = milliseconds(1500);
  board_->slow_commit = milliseconds(900);
  const auto data = std::make_shared<const std::string>(3000, 'x');
  const Status sent =
      test::run(io_, session_->send(model::Resource::kModelImage, 0, data, 0, {}, {}));
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(board_->held[1], *data);
  EXPECT_EQ(board_->executed, 2) << "OPEN and COMMIT, each once";
  EXPECT_EQ(board_->hellos, 1) << "the session was kept";
  EXPECT_EQ(sink_.closed, 0);
  EXPECT_GT(session_->stats().retries, 5u);
}

TEST_F(SessionTest, Report13_MoreLayersThanTheBoardTakesAreNotSent) {
  board_->max_layers = 4;
  start();
  BoardSession::StartRun run;
  run.run_id.bytes.fill(1);
  run.spec.hyper.layer_k.assign(5, 8);
  const auto refused = test::run(io_, session_->start_run(run));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("5 layers; the board takes 4"), std::string_view::npos)
      << refused.status();
  EXPECT_EQ(board_->requests, 0);
  EXPECT_TRUE(session_->alive());
}

TEST_F(SessionTest, Report23_HostileNamesAreMadeHarmless) {
  board_->board_name = "e\x1b[2Jvil\n../../etc";
  ASSERT_TRUE(connect().ok());
  for (const char c : session_->hello().board_type) {
    EXPECT_GE(c, ' ');
    EXPECT_NE(c, '\x7f');
  }
  EXPECT_LE(session_->hello().board_type.size(), 64u);
}

TEST_F(SessionTest, NeedHelloOfTheSameBootResumesForTheCaller) {
  start();
  board_->forget_session();
  const auto state = test::run(io_, session_->get_state(false));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(board_->hellos, 2);
  EXPECT_EQ(sink_.closed, 0);
}

TEST_F(SessionTest, NeedHelloOfAnotherBootEndsTheSession) {
  start();
  board_->reboot();
  const auto state = test::run(io_, session_->get_state(false));
  EXPECT_TRUE(absl::IsUnavailable(state.status())) << state.status();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
  EXPECT_NE(sink_.closed_why.message().find("restarted"), std::string::npos) << sink_.closed_why;
  EXPECT_FALSE(session_->alive());
}

TEST_F(SessionTest, ABoardThatForgetsAtOnceForEverDoesNotHoldTheCaller) {
  start();
  board_->on_request = [&](const pb::Request&, pb::Response&) {
    board_->forget_session();
    board_->drop_responses = 1;
    return true;
  };
  const auto state = test::run(io_, session_->get_state(false), std::chrono::seconds(10));
  EXPECT_FALSE(state.ok());
}

TEST_F(SessionTest, FramesOfAnotherSessionAreIgnored) {
  start();
  const std::uint16_t other = static_cast<std::uint16_t>(board_->session ^ 0x5555);
  board_->on_request = [&](const pb::Request&, pb::Response& r) {
    pb::Response stale;
    stale.mutable_state()->set_step(666);
    for (std::uint32_t id = 0; id < 20; ++id) {
      board_->send_frame_of(other, FRAME_RSP, id, stale.SerializeAsString());
    }
    r.mutable_state()->set_step(1);
    return true;
  };
  EXPECT_EQ(test::run(io_, session_->get_state(false))->step, 1u);
}

TEST_F(SessionTest, PingsWhenIdleAndMeasures) {
  start();
  ASSERT_TRUE(test::run_until(io_, [&] { return board_->pings >= 3; }));
  EXPECT_TRUE(session_->alive());
  EXPECT_GT(session_->stats().rtt_us, 0u);
}

TEST_F(ShortLivedTest, SilenceIsSuspectThenTheEnd) {
  start();
  board_->mute = true;
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
  EXPECT_EQ(sink_.statuses, (std::vector<model::BoardStatus>{model::BoardStatus::kOnline,
                                                             model::BoardStatus::kSuspect}));
  const auto state = test::run(io_, session_->get_state(false));
  EXPECT_TRUE(absl::IsUnavailable(state.status()));
  ASSERT_TRUE(test::run_until(io_, [&] { return !pipe_->open(); }));
}

TEST_F(ShortLivedTest, AnnouncedBusySendsNothingAndKeepsTheSession) {
  never_resend();
  start();
  board_->emit_busy(2000);
  board_->mute_pong = true;
  ASSERT_TRUE(test::run_until(io_, [&] {
    return !sink_.statuses.empty() && sink_.statuses.back() == model::BoardStatus::kBusy;
  }));
  const std::size_t before = board_->frames.size();
  bool answered = false;
  asio::co_spawn(io_, session_->get_state(false),
                 [&](std::exception_ptr, Result<model::DeviceState> state) {
                   EXPECT_TRUE(state.ok()) << state.status();
                   answered = true;
                 });
  test::run_for(io_, milliseconds(1300));
  EXPECT_EQ(board_->frames.size(), before);
  EXPECT_EQ(sink_.closed, 0);
  board_->mute_pong = false;
  board_->emit_pong(0);
  ASSERT_TRUE(test::run_until(io_, [&] { return answered; }));
  EXPECT_EQ(sink_.statuses.back(), model::BoardStatus::kOnline);
  EXPECT_EQ(session_->stats().retries, 0u) << "timers pause";
}

TEST_F(SessionTest, CloseSaysByeAndFailsWhatWaits) {
  start();
  board_->delay_response = milliseconds(500);
  Status got;
  bool ended = false;
  asio::co_spawn(io_, session_->identify(1), [&](std::exception_ptr, Status status) {
    got = status;
    ended = true;
  });
  test::run_for(io_, milliseconds(10));
  session_->close(absl::CancelledError("stopped"));
  ASSERT_TRUE(test::run_until(io_, [&] { return ended && sink_.closed == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(got)) << got;
  ASSERT_TRUE(test::run_until(io_, [&] { return board_->byes == 1; }));
  session_->close(absl::CancelledError("again"));
  test::run_for(io_, milliseconds(20));
  EXPECT_EQ(sink_.closed, 1);
}

TEST_F(SessionTest, HangUpEndsTheSession) {
  start();
  board_->hang_up();
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.closed == 1; }, milliseconds(1000)));
}

TEST_F(SessionTest, Report23_HostileFramesDoNoHarm) {
  start();
  for (const int type : {0x80, 0x84, 0x83, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0xFF}) {
    board_->send_frame(static_cast<std::uint8_t>(type), 0xFFFFFFFF, std::string(200, '\xff'));
    board_->send_frame(static_cast<std::uint8_t>(type), 0, "");
    // A length of 2^32 - 1 in the first field.
    board_->send_frame(static_cast<std::uint8_t>(type), 1, "\x0a\xff\xff\xff\xff\x0f");
  }
  // An empty NEED_HELLO names boot 0: not this one, so the session ends; the process goes on.
  test::run_for(io_, milliseconds(50));
  EXPECT_LE(sink_.closed, 1);
}

TEST_F(SessionTest, StrictLinkEndsAtABadFrame) {
  make_link(true);
  start();
  std::string bad = wire::encode_frame({FRAME_PONG, board_->session, 1, "0123456789"});
  bad[8] = static_cast<char>(bad[8] ^ 0x10);
  board_->send_raw(bad);
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
}

TEST_F(SessionTest, LossyLinkDropsABadFrameAndCounts) {
  start();
  std::string bad = wire::encode_frame({FRAME_PONG, board_->session, 1, "0123456789"});
  bad[8] = static_cast<char>(bad[8] ^ 0x10);
  board_->send_raw(bad);
  EXPECT_TRUE(test::run(io_, session_->get_state(false)).ok());
  EXPECT_EQ(session_->stats().crc_errors, 1u);
}

}  // namespace
}  // namespace odt::session

// Frames, sessions, requests: what proto/README.md says of the board's end.
#include <google/protobuf/unknown_field_set.h>

#include "board_rig.h"

namespace odt::testing {
namespace {

pb::Request get_state() {
  pb::Request q;
  q.mutable_get_state();
  return q;
}

TEST(Session, BoardIsSilentUntilSpokenTo) {
  BoardRig rig;
  rig.turns(50);
  EXPECT_TRUE(rig.take().empty());
}

TEST(Session, HelloAnswersIdentityAndKeepsBootId) {
  BoardRig rig;
  const auto first = rig.hello();
  EXPECT_EQ(first.proto(), 1u);
  EXPECT_EQ(first.uid(), "uid-0001");
  EXPECT_EQ(first.mtu(), FRAME_MTU_DEFAULT);
  EXPECT_NE(first.boot_id(), 0u);
  EXPECT_TRUE(first.model_hash().empty());
  EXPECT_EQ(first.job(), pb::JOB_STATE_UNSPECIFIED);
  EXPECT_EQ(rig.hello().boot_id(), first.boot_id());
  rig.restart();
  EXPECT_NE(rig.hello().boot_id(), first.boot_id());
}

TEST(Session, BootIdDiffersFromBoardToBoard) {
  RigOptions other;
  other.uid = "uid-0002";
  EXPECT_NE(BoardRig().hello().boot_id(), BoardRig(other).hello().boot_id());
}

TEST(Session, NoCommonProtocolIsSaid) {
  BoardRig rig;
  pb::Hello h;
  h.set_proto_min(2);
  h.set_proto_max(3);
  h.set_mtu(576);
  rig.send(FRAME_HELLO, 1, h.SerializeAsString());
  rig.turns(2);
  EXPECT_FALSE(rig.take(FRAME_HELLO_ACK).has_value()) << "session 0 is no session";
  rig.hello(7);
  rig.send(FRAME_HELLO, 2, h.SerializeAsString());
  rig.turns(2);
  pb::HelloAck ack;
  const auto f = rig.take(FRAME_HELLO_ACK);
  ASSERT_TRUE(f.has_value());
  ASSERT_TRUE(ack.ParseFromString(f->body));
  EXPECT_EQ(ack.proto(), 0u);
  rig.send(FRAME_PING, 1);
  rig.turns(2);
  EXPECT_TRUE(rig.take(FRAME_NEED_HELLO).has_value());
}

TEST(Session, StaleSessionGetsNeedHelloAtMostOncePer200Ms) {
  BoardRig rig;
  const auto ack = rig.hello(5);
  rig.hello(6);
  pb::NeedHello n;
  BoardRig* r = &rig;
  const auto stale = [r](int times) {
    for (int i = 0; i < times; i++) {
      const frame_t f{FRAME_PING, 5, 1, nullptr, 0};
      std::uint8_t out[64];
      const auto size = frame_encode(&f, out, sizeof out);
      r->send_raw(std::string(reinterpret_cast<char*>(out), size));
      r->turns(1);
    }
  };
  stale(5);
  const auto first = rig.take(FRAME_NEED_HELLO);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->session, 0u);
  ASSERT_TRUE(n.ParseFromString(first->body));
  EXPECT_EQ(n.boot_id(), ack.boot_id());
  EXPECT_FALSE(rig.take(FRAME_NEED_HELLO).has_value());
  rig.advance_ms(200);
  stale(1);
  EXPECT_TRUE(rig.take(FRAME_NEED_HELLO).has_value());
}

TEST(Session, Report03_EchoesOfItsOwnFramesAreDropped) {
  BoardRig rig;
  rig.hello();
  rig.send(FRAME_RSP, 1, "x");
  rig.send(FRAME_EVENT, 1, "x");
  rig.turns(5);
  EXPECT_TRUE(rig.take().empty());
}

TEST(Session, PongTellsErrorsAndNextEvent) {
  BoardRig rig;
  rig.hello();
  rig.send_raw(std::string("\0\x05\x01\x02\x03\x04\0", 7));
  rig.send(FRAME_PING, 77);
  rig.turns(3);
  const auto f = rig.take(FRAME_PONG);
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->id, 77u);
  pb::Pong p;
  ASSERT_TRUE(p.ParseFromString(f->body));
  EXPECT_EQ(p.rx_errors(), 1u);
  EXPECT_EQ(p.next_event(), 1u);
}

TEST(Session, ByeEndsIt) {
  BoardRig rig;
  rig.hello();
  rig.send(FRAME_BYE, 0);
  rig.send(FRAME_PING, 1);
  rig.turns(3);
  EXPECT_TRUE(rig.take(FRAME_NEED_HELLO).has_value());
}

TEST(Link, Report21_ModemManagerProbeAndBootTextDoNotCostTheHello) {
  BoardRig rig;
  rig.send_raw("AT\rATE1\r");
  rig.send_raw(std::string(300, '\x7e'));
  std::string high;
  for (int i = 0; i < 300; i++) high.push_back(static_cast<char>(128 + i * 37 % 128));
  rig.send_raw(high);
  EXPECT_EQ(rig.hello().proto(), 1u);
}

TEST(Link, Report13_UnknownTypeAndOversizeAreAnsweredAndTheLinkStaysUp) {
  BoardRig rig;
  rig.hello();
  pb::LinkErr e;
  rig.send(0x55, 1);
  rig.turns(2);
  auto f = rig.take(FRAME_LINK_ERR);
  ASSERT_TRUE(f.has_value());
  ASSERT_TRUE(e.ParseFromString(f->body));
  EXPECT_EQ(e.reason(), pb::LinkErr::REASON_UNKNOWN_TYPE);
  EXPECT_EQ(e.got(), 0x55u);
  rig.send(FRAME_REQ, 1, std::string(FRAME_MTU_DEFAULT + 1, 'x'));
  rig.turns(4);
  f = rig.take(FRAME_LINK_ERR);
  ASSERT_TRUE(f.has_value());
  ASSERT_TRUE(e.ParseFromString(f->body));
  EXPECT_EQ(e.reason(), pb::LinkErr::REASON_OVERSIZE);
  EXPECT_EQ(e.limit(), FRAME_MTU_DEFAULT);
  EXPECT_FALSE(rig.request(get_state()).has_error());
}

TEST(Link, Report01_AShortWriteIsFinishedAndALogIsRefusedWhole) {
  BoardRig rig;
  rig.hello();
  rig.accept_bytes(10);  // a short write, then none
  rig.send(FRAME_REQ, 1, get_state().SerializeAsString());
  rig.turns(3);
  for (int i = 0; i < 20; i++) app_log(&rig.app(), 2, "a line of the log that is fairly long");
  rig.accept_bytes(0);
  rig.turns(3);
  EXPECT_TRUE(rig.take().empty());
  rig.accept_bytes(SIZE_MAX);
  rig.turns(10);
  EXPECT_TRUE(rig.take(FRAME_RSP).has_value());
  EXPECT_EQ(rig.bad_frames(), 0u);
  EXPECT_EQ(rig.logs.size(), 4u);
  EXPECT_EQ(rig.app().logs.dropped_total, 16u);
}

TEST(Requests, AnEqualIdGetsTheCachedAnswer) {
  BoardRig rig;
  rig.hello();
  pb::Request q;
  q.mutable_identify()->set_seconds(1);
  rig.send(FRAME_REQ, 9, q.SerializeAsString());
  rig.turns(3);
  const auto first = rig.take(FRAME_RSP);
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(rig.logs.size(), 1u);
  // The RSP was lost: the same request again is answered, not executed.
  rig.send(FRAME_REQ, 9, q.SerializeAsString());
  rig.turns(3);
  const auto second = rig.take(FRAME_RSP);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->body, first->body);
  EXPECT_EQ(rig.logs.size(), 1u);
}

TEST(Requests, ALowerIdIsIgnored) {
  BoardRig rig;
  rig.hello();
  rig.send(FRAME_REQ, 9, get_state().SerializeAsString());
  rig.send(FRAME_REQ, 8, get_state().SerializeAsString());
  rig.turns(4);
  EXPECT_TRUE(rig.take(FRAME_RSP).has_value());
  EXPECT_FALSE(rig.take(FRAME_RSP).has_value());
}

TEST(Requests, ANewSessionStartsAnewWithItsIds) {
  BoardRig rig;
  rig.hello();
  rig.send(FRAME_REQ, 500, get_state().SerializeAsString());
  rig.turns(3);
  EXPECT_TRUE(rig.take(FRAME_RSP).has_value());
  rig.hello();
  EXPECT_FALSE(rig.request(get_state()).has_error());
}

TEST(Requests, UndecodableIsInvalidAndUnknownIsUnimplemented) {
  BoardRig rig;
  rig.hello();
  pb::Request q;
  q.mutable_start_run()->set_run_id(std::string(17, 'x'));  // one over max_size
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  pb::Request unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddVarint(900, 1);
  EXPECT_EQ(rig.request(unknown).error().code(), pb::STATUS_CODE_UNIMPLEMENTED);
}

TEST(Requests, AFieldOfTheFutureIsSkipped) {
  BoardRig rig;
  rig.hello();
  pb::Request q = get_state();
  q.mutable_get_state()
      ->GetReflection()
      ->MutableUnknownFields(q.mutable_get_state())
      ->AddVarint(99, 7);
  EXPECT_FALSE(rig.request(q).has_error());
}

TEST(Requests, ResetAnswersFirst) {
  BoardRig rig;
  rig.hello();
  pb::Request q;
  q.mutable_reset();
  EXPECT_FALSE(rig.request(q).has_error());
  rig.turns(3);
  EXPECT_TRUE(rig.reset_seen());
}

TEST(Requests, Report15_ABoardThatCannotResetSaysSo) {
  RigOptions o;
  o.can_reset = false;
  BoardRig rig(o);
  EXPECT_EQ(rig.hello().caps() & APP_CAP_RESET, 0u);
  pb::Request q;
  q.mutable_reset();
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_UNIMPLEMENTED);
}

TEST(Requests, TwoBoardsInOneProcessDoNotShareAnything) {
  BoardRig a;
  RigOptions o;
  o.uid = "uid-0002";
  BoardRig b(o);
  load(a, golden_part(0, 16));
  EXPECT_TRUE(b.hello().model_hash().empty());
  EXPECT_EQ(a.hello().model_hash().size(), 16u);
}

TEST(Link, Report13_MoreLayersThanTheBoardTakesIsAnsweredAndTheLinkStaysUp) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  auto spec = small_spec(train);
  spec.set_layer_k(std::string(17, 8));
  const auto refused = rig.request(start_request(spec));
  ASSERT_TRUE(refused.has_error());
  EXPECT_EQ(refused.error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_FALSE(rig.request(get_state()).has_error());
  spec.clear_layer_k();
  EXPECT_FALSE(rig.request(start_request(spec)).has_error()) << "nothing was half-taken";
}

// The host reads 1 kB/s and the board floods it with log lines while it trains.
TEST(Link, Report16_ASlowReaderAndALogFloodLoseNoAnswerAndNoStep) {
  BoardRig rig;
  const std::string train = golden_part(0, 40);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.accept_bytes(0);
  const auto slow_ms = [&rig](int ms) {
    for (int i = 0; i < ms; i++) {
      app_log(&rig.app(), 2, "a line of the log that is fairly long and says nothing");
      rig.accept_bytes(1);
      rig.turns(static_cast<int>(1000 / rig.step_us));
    }
  };
  slow_ms(3000);  // every ring is full by now
  rig.take();
  rig.send(FRAME_REQ, rig.last_request() + 1, get_state().SerializeAsString());
  int waited = 0;
  while (!rig.take(FRAME_RSP) && waited < 5000) {
    slow_ms(10);
    waited += 10;
  }
  EXPECT_LE(waited, 1000) << "ms of the board's clock until the answer was through";
  EXPECT_EQ(rig.bad_frames(), 0u);
  EXPECT_GT(rig.app().logs.dropped_total, 1000u);
  // Reading fast again: what was missed is asked for, and every step is there once.
  rig.accept_bytes(SIZE_MAX);
  rig.settle();
  rig.request(get_state());  // the rig counts it again: the cached answer
  pb::Request refill;
  refill.mutable_get_telemetry_from()->set_event_id(1);
  const auto range = rig.request(refill).telemetry();
  rig.settle();
  std::map<std::uint32_t, std::string> seen;
  for (const auto& [id, event] : rig.events) seen[id] = event.SerializeAsString();
  for (std::uint32_t id = range.first(); id < range.next(); id++) {
    EXPECT_TRUE(seen.contains(id)) << "event " << id << " is in the ring and was not sent again";
  }
  EXPECT_EQ(rig.bad_frames(), 0u);
}

}  // namespace
}  // namespace odt::testing

#include "alert_rig.h"

namespace odt::test {
namespace {

using alerts::Book;
using alerts::Verdict;
using model::AlertKind;
using model::AlertState;
using model::DeliveryState;

TEST(Book, OneAlertForARuleAndASubject) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kDeadLayer, Verdict::kBad, 1, true));
  const auto first = rig.alert(AlertKind::kDeadLayer, "b1");
  EXPECT_EQ(first.count, 1u);
  for (int i = 0; i < 4; ++i) {
    rig.pass(20);
    rig.judge(rig.seen(AlertKind::kDeadLayer, Verdict::kBad, 1, true));
  }
  const auto later = rig.alert(AlertKind::kDeadLayer, "b1");
  EXPECT_EQ(later.id, first.id);
  EXPECT_EQ(later.count, 5u);
  EXPECT_EQ(later.first_time_us, first.first_time_us);
  EXPECT_EQ(later.last_time_us, rig.now);
  rig.judge(rig.seen(AlertKind::kDeadLayer, Verdict::kBad, 2, true));
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kBad, 1, true));
  rig.save();
  EXPECT_EQ(rig.stored.size(), 3u);
}

TEST(Book, CountsAloneAreWrittenRarely) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kDeadLayer, Verdict::kBad, 1, true));
  EXPECT_EQ(rig.save(), 1u);
  for (int i = 0; i < 9; ++i) {
    rig.pass(1);
    rig.judge(rig.seen(AlertKind::kDeadLayer, Verdict::kBad, 1, true));
    EXPECT_EQ(rig.save(), 0u);
  }
  rig.pass(1);
  EXPECT_EQ(rig.save(), 1u);
  // A level that stays bad is no news.
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kBad));
  EXPECT_EQ(rig.save(), 1u);
  rig.pass(100);
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kBad));
  EXPECT_EQ(rig.save(), 0u);
}

TEST(Book, IsOverAfterTheRulesTime) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kBad));
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kGood));
  rig.pass(9);
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kGood));
  EXPECT_TRUE(rig.fires(AlertKind::kOffline, "b1"));
  // Not quite good: the time begins anew.
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kBetween));
  rig.pass(1);
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kGood));
  rig.pass(9);
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kGood));
  EXPECT_TRUE(rig.fires(AlertKind::kOffline, "b1"));
  rig.pass(1);
  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kGood));
  const auto over = rig.alert(AlertKind::kOffline, "b1");
  EXPECT_EQ(over.state, AlertState::kResolved);
  EXPECT_EQ(over.resolution, "fine");
  EXPECT_EQ(over.resolve_time_us, rig.now);
}

TEST(Book, IsOverAfterTimesInARow) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kBad, 1, true));
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kGood));
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kBad, 1, true));
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kGood));
  EXPECT_TRUE(rig.fires(AlertKind::kSaturation, "b1"));
  rig.judge(rig.seen(AlertKind::kSaturation, Verdict::kGood));
  EXPECT_FALSE(rig.fires(AlertKind::kSaturation, "b1"));
}

TEST(Book, FiresAgainUnderItsIdAndForgetsWhoLookedAfterIt) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  const auto first = rig.alert(AlertKind::kStuck, "b1");
  ASSERT_TRUE(rig.book.acknowledge(first.id, "ann", "on it", rig.now).ok());
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b1").ack_by, "ann");
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kGood));
  EXPECT_EQ(rig.book.acknowledge(first.id, "ann", "", rig.now).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(rig.book.acknowledge(new_uuid(), "ann", "", rig.now).status().code(),
            absl::StatusCode::kNotFound);
  rig.pass(5);
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  const auto again = rig.alert(AlertKind::kStuck, "b1");
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.count, 2u);
  EXPECT_EQ(again.ack_time_us, 0);
  EXPECT_EQ(again.fire_time_us, rig.now);
  EXPECT_EQ(again.first_time_us, first.first_time_us);
}

TEST(Book, SilencesKeepTheWebhookQuietUntilTheirTime) {
  BookRig rig("http://x");
  model::AlertSilence silence;
  silence.id = new_uuid();
  EXPECT_FALSE(rig.book.silence(silence, rig.now).ok()) << "neither rule nor board";
  silence.rule = AlertKind::kOffline;
  silence.until_us = rig.now;
  EXPECT_FALSE(rig.book.silence(silence, rig.now).ok()) << "past";
  silence.until_us = rig.now + 400LL * 86'400 * kSecondUs;
  EXPECT_FALSE(rig.book.silence(silence, rig.now).ok()) << "over a year";
  silence.until_us = rig.now + 60 * kSecondUs;
  ASSERT_TRUE(rig.book.silence(silence, rig.now).ok());

  rig.judge(rig.seen(AlertKind::kOffline, Verdict::kBad));
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").delivery.state, DeliveryState::kNone);
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").silenced_until_us, silence.until_us);
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b1").delivery.state, DeliveryState::kPending);
  rig.pass(60);
  rig.book.expire(rig.now);
  EXPECT_TRUE(rig.book.settings().silences.empty());
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").delivery.state, DeliveryState::kPending)
      << "still fires: now it is told";

  silence.rule = AlertKind::kAny;
  silence.board = uid(1);
  silence.until_us = rig.now + 60 * kSecondUs;
  const auto firing = rig.book.silence(silence, rig.now);
  ASSERT_TRUE(firing.ok());
  EXPECT_EQ(*firing, 2u);
  EXPECT_FALSE(rig.book.due(rig.now).has_value());
  ASSERT_TRUE(rig.book.unsilence(silence.id, rig.now).ok());
  rig.save();
  EXPECT_TRUE(rig.book.due(rig.now).has_value());
  EXPECT_FALSE(rig.book.unsilence(silence.id, rig.now).ok());
}

TEST(Book, WhatWasNeverToldIsNotToldWhenItIsOver) {
  BookRig rig("http://x");
  model::AlertSilence silence;
  silence.id = new_uuid();
  silence.rule = AlertKind::kStuck;
  silence.until_us = rig.now + 60 * kSecondUs;
  ASSERT_TRUE(rig.book.silence(silence, rig.now).ok());
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kGood));
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b1").delivery.state, DeliveryState::kNone);
}

TEST(Book, MessagesAreTriedAgainAndGivenUp) {
  BookRig rig("http://x");
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  EXPECT_FALSE(rig.book.due(rig.now).has_value()) << "not before it is stored";
  rig.save();
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 12; ++i) {
    const auto due = rig.book.due(rig.now);
    ASSERT_TRUE(due.has_value()) << i;
    rig.book.delivered(*due, Book::Sent::kTryAgain, "HTTP status 500", rig.now);
    rig.save();
    const auto& delivery = rig.alert(AlertKind::kStuck, "b1").delivery;
    if (delivery.state == DeliveryState::kDead) break;
    EXPECT_FALSE(rig.book.due(rig.now).has_value());
    waits.push_back((delivery.next_time_us - rig.now) / kSecondUs);
    rig.pass(waits.back());
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}));
  const auto& dead = rig.alert(AlertKind::kStuck, "b1").delivery;
  EXPECT_EQ(dead.state, DeliveryState::kDead);
  EXPECT_EQ(dead.attempts, 12u);
  EXPECT_EQ(dead.error, "HTTP status 500");
  EXPECT_EQ(rig.book.pending_and_dead(), std::make_pair(0u, 1u));
  EXPECT_EQ(rig.book.retry_dead(rig.now), 1u);
  rig.save();
  const auto due = rig.book.due(rig.now);
  ASSERT_TRUE(due.has_value());
  rig.book.delivered(*due, Book::Sent::kDelivered, "", rig.now);
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b1").delivery.state, DeliveryState::kDelivered);
}

TEST(Book, ARefusalIsFinalAndSilenceOfTheOtherEndCountsForAll) {
  BookRig rig("http://x");
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad, 1));
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad, 2));
  rig.save();
  rig.book.delivered(rig.alert(AlertKind::kStuck, "b1"), Book::Sent::kNever, "HTTP status 404",
                     rig.now);
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b1").delivery.state, DeliveryState::kDead);
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad, 3));
  rig.save();
  rig.book.unreachable("cannot connect", rig.now);
  rig.save();
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b2").delivery.attempts, 1u);
  EXPECT_EQ(rig.alert(AlertKind::kStuck, "b3").delivery.attempts, 1u);
  EXPECT_FALSE(rig.book.due(rig.now).has_value());
}

TEST(Book, AnAnswerForAnOlderChangeDoesNotCount) {
  BookRig rig("http://x");
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  rig.save();
  const auto firing = *rig.book.due(rig.now);
  rig.pass(1);
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kGood));
  rig.save();
  rig.book.delivered(firing, Book::Sent::kDelivered, "", rig.now);
  const auto due = rig.book.due(rig.now);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->state, AlertState::kResolved);
}

TEST(Book, RulesAreSwitchedAndMovedWithinTheirRange) {
  BookRig rig;
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  model::AlertRule to = rig.book.rule(AlertKind::kStuck);
  to.threshold = 4;
  EXPECT_FALSE(rig.book.update_rule(to, false, rig.now).ok());
  to.threshold = 30;
  to.enabled = false;
  const auto off = rig.book.update_rule(to, false, rig.now);
  ASSERT_TRUE(off.ok());
  EXPECT_TRUE(off->changed);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.judge(rig.seen(AlertKind::kStuck, Verdict::kBad));
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  model::AlertRule skew = rig.book.rule(AlertKind::kFirmwareSkew);
  skew.threshold = 1;
  EXPECT_FALSE(rig.book.update_rule(skew, false, rig.now).ok());

  // What people changed outlives a restart; the rest follows the configuration.
  auto rules = alerts::default_rules();
  rules[0].threshold = rules[0].default_threshold = 77;
  Book next(rules, "");
  next.load({rig.alert(AlertKind::kStuck, "b1")}, rig.book.settings());
  EXPECT_FALSE(next.rule(AlertKind::kStuck).enabled);
  EXPECT_EQ(next.rule(AlertKind::kStuck).threshold, 30);
  EXPECT_EQ(next.rule(AlertKind::kOffline).threshold, 77);
}

}  // namespace
}  // namespace odt::test

#include "session/event_order.h"

#include <gtest/gtest.h>

#include <random>

namespace odt::session {
namespace {

using Items = std::vector<EventOrder::Item>;

// "5 6 gap(7,2) 9"
std::string text(const Items& items) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ' ';
    if (item.gap != 0) {
      out += "gap(" + std::to_string(item.id) + "," + std::to_string(item.gap) + ")";
    } else {
      out += std::to_string(item.id);
    }
  }
  return out;
}

TEST(EventOrder, InOrderPassesAtOnce) {
  EventOrder order;
  order.start(5);
  EXPECT_EQ(text(order.offer(5, "a")), "5");
  EXPECT_EQ(text(order.offer(6, "b")), "6");
  EXPECT_FALSE(order.missing());
}

TEST(EventOrder, TheWantedEventNeedsNoStoreWhereNoLaterOneWaits) {
  EventOrder order;
  order.start(5);
  EXPECT_TRUE(order.next(5));
  EXPECT_FALSE(order.next(5)) << "a duplicate";
  EXPECT_FALSE(order.missing());
  EXPECT_EQ(order.expected(), 6u);
  EXPECT_TRUE(order.offer(7, "later").empty());
  EXPECT_FALSE(order.next(6)) << "what is held goes out behind it";
  EXPECT_EQ(text(order.offer(6, "now")), "6 7");
  EXPECT_TRUE(order.next(8));
  order.announce(11);
  EXPECT_TRUE(order.next(9));
  EXPECT_TRUE(order.missing()) << "10 is announced";
}

TEST(EventOrder, DuplicatesAreDropped) {
  EventOrder order;
  order.start(5);
  order.offer(5, "a");
  EXPECT_TRUE(order.offer(5, "a").empty());
  EXPECT_TRUE(order.offer(4, "old").empty());
}

TEST(EventOrder, AGapIsHeldUntilItIsFilled) {
  EventOrder order;
  order.start(1);
  EXPECT_TRUE(order.offer(2, "b").empty());
  EXPECT_TRUE(order.offer(3, "c").empty());
  EXPECT_TRUE(order.missing());
  EXPECT_TRUE(order.holds_later());
  EXPECT_EQ(text(order.offer(1, "a")), "1 2 3");
  EXPECT_FALSE(order.missing());
}

TEST(EventOrder, ALostLastEventIsMissingByAnnouncement) {
  EventOrder order;
  order.start(1);
  order.announce(2);
  EXPECT_TRUE(order.missing());
  EXPECT_FALSE(order.holds_later());
  EXPECT_EQ(text(order.offer(1, "a")), "1");
  EXPECT_FALSE(order.missing());
}

TEST(EventOrder, WhatTheRingHasDroppedIsOneGap) {
  EventOrder order;
  order.start(3);
  EXPECT_TRUE(order.offer(20, "t").empty());
  EXPECT_EQ(text(order.range(10, 21)), "gap(3,7)");
  EXPECT_EQ(order.expected(), 10u);
  for (std::uint32_t id = 10; id < 19; ++id) order.offer(id, "x");
  EXPECT_EQ(text(order.offer(19, "x")), "19 20");
}

TEST(EventOrder, HeldEventsBeforeTheRangeAreStillDelivered) {
  EventOrder order;
  order.start(1);
  order.offer(4, "d");
  order.offer(5, "e");
  EXPECT_EQ(text(order.range(8, 9)), "gap(1,3) 4 5 gap(6,2)");
  EXPECT_EQ(text(order.offer(8, "h")), "8");
}

TEST(EventOrder, GiveUpMakesAGapUpToWhatIsHeld) {
  EventOrder order;
  order.start(1);
  order.offer(3, "c");
  EXPECT_EQ(text(order.give_up()), "gap(1,2) 3");
  EXPECT_FALSE(order.missing());
  order.announce(6);
  EXPECT_EQ(text(order.give_up()), "gap(4,2)");
  EXPECT_TRUE(order.give_up().empty());
}

TEST(EventOrder, HoldsABoundedNumber) {
  EventOrder order;
  order.start(0);
  for (std::uint32_t id = 1; id < 1000; ++id) EXPECT_TRUE(order.offer(id, "x").empty());
  EXPECT_EQ(order.offer(0, "x").size(), EventOrder::kMaxHeld + 1);
  EXPECT_TRUE(order.missing());
}

TEST(EventOrder, EveryEventOnceWhateverTheOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    EventOrder order;
    order.start(0);
    std::vector<std::uint32_t> ids(40);
    for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
    std::shuffle(ids.begin(), ids.end(), random);
    std::vector<std::uint32_t> got;
    for (const std::uint32_t id : ids) {
      for (int copy = 0; copy < 2; ++copy) {
        for (const auto& item : order.offer(id, "x")) got.push_back(item.id);
      }
    }
    ASSERT_EQ(got.size(), ids.size());
    for (std::uint32_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i);
  }
}

}  // namespace
}  // namespace odt::session

// What happens to boards in a lab, in a ControlStore: the same for SQLite and memory.
#include <gtest/gtest.h>

#include "any_control_store.h"

namespace odt::store {
namespace {

class LabStoreTest : public AnyControlStore {
 protected:
  Result<std::vector<model::Event>> put(Change change) {
    return store_->commit(batch_of(std::move(change)));
  }
  void append(const BoardUid& uid, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count;) {
      Batch batch;
      for (; i < count && batch.changes.size() < 500; ++i) {
        model::LabEvent event;
        event.board = uid;
        event.kind = model::LabKind::kExtended;
        event.note = std::to_string(i);
        batch.changes.push_back(AppendLabEvent{event});
      }
      ASSERT_TRUE(store_->commit(std::move(batch)).ok());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, LabStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(LabStoreTest, ABoardIsKeptWhole) {
  model::Board board;
  board.uid = uid_of(1);
  board.name = "b1";
  board.place = "rig 7";
  board.reservation = {"ann", "measuring", "local", 5, 6};
  board.maintenance = {"new cable", "bob", 7};
  board.target_snapshot = sha256("w");
  board.power.last_us = 8;
  board.power.profile = "rack";
  ASSERT_TRUE(put(PutBoard{board}).ok());
  open();
  const auto read = store_->board(board.uid);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->reservation, board.reservation);
  EXPECT_EQ(read->maintenance, board.maintenance);
  EXPECT_EQ(read->target_snapshot, board.target_snapshot);
  EXPECT_EQ(read->power.last_us, 8);
  EXPECT_EQ(read->power.profile, "");  // of the configuration, as it is then
}

TEST_P(LabStoreTest, EventsAreNumberedByBoardAndKept) {
  model::LabEvent event;
  event.board = uid_of(1);
  event.kind = model::LabKind::kPowerCycled;
  event.owner = "ann";
  event.previous = "bob";
  event.other = uid_of(2);
  event.place = "rig 7";
  event.expire_us = 9;
  event.power = {"rack", true, false, 3, "out", 12, {"POWER_FAILED", "text", "remedy"}};
  const auto events = put(AppendLabEvent{event});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_TRUE(std::holds_alternative<model::LabEvent>(events->front().body));
  event.board = uid_of(2);
  ASSERT_TRUE(put(AppendLabEvent{event}).ok());
  event.board = uid_of(1);
  ASSERT_TRUE(put(AppendLabEvent{event}).ok());
  open();
  const auto all = store_->lab_events(uid_of(1));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].seq, 1u);
  EXPECT_EQ((*all)[1].seq, 2u);
  EXPECT_EQ((*all)[1].previous, "bob");
  EXPECT_EQ((*all)[1].other, uid_of(2));
  EXPECT_EQ((*all)[1].power.reason.code, "POWER_FAILED");
  EXPECT_TRUE((*all)[1].power.automatic);
  EXPECT_EQ(store_->lab_events(uid_of(2))->size(), 1u);
  const auto again = store_->events_from(events->front().seq, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(std::get<model::LabEvent>(again->front().body).seq, 1u);
}

// A uid may be the beginning of another one.
TEST_P(LabStoreTest, UidsThatBeginAlikeDoNotMix) {
  BoardUid lengthened = uid_of(1);
  for (int i = 0; i < 4; ++i) lengthened.bytes.push_back(0);
  append(uid_of(1), 3);
  append(lengthened, 2);
  EXPECT_EQ(store_->lab_events(uid_of(1))->size(), 3u);
  EXPECT_EQ(store_->lab_events(lengthened)->size(), 2u);
}

TEST_P(LabStoreTest, TheNewestAreKept) {
  append(uid_of(1), kLabEventsKept + 5);
  const auto all = store_->lab_events(uid_of(1));
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), kLabEventsKept);
  EXPECT_EQ(all->front().seq, 6u);
  EXPECT_EQ(all->back().note, std::to_string(kLabEventsKept + 4));
  const auto gone = store_->events_from(1, 1);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(std::get<model::Deleted>(gone->front().body).kind, "lab_event");
}

TEST_P(LabStoreTest, APurgedBoardTakesItsHistoryAlong) {
  model::Board board;
  board.uid = uid_of(1);
  board.name = "b1";
  ASSERT_TRUE(put(PutBoard{board}).ok());
  append(board.uid, 2);
  ASSERT_TRUE(put(Trash{"board", board.uid.str()}).ok());
  EXPECT_EQ(store_->lab_events(board.uid)->size(), 2u);
  ASSERT_TRUE(put(Purge{"board", board.uid.str()}).ok());
  EXPECT_TRUE(store_->lab_events(board.uid)->empty());
}

}  // namespace
}  // namespace odt::store

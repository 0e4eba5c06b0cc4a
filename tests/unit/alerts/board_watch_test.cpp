#include "alerts/board_watch.h"

#include "alert_rig.h"

namespace odt::test {
namespace {

using model::AlertKind;
using model::BoardStatus;

struct Boards : BookRig {
  alerts::BoardWatch watch{book, 1};
  std::vector<model::Board> boards;

  explicit Boards(int count) {
    for (int n = 1; n <= count; ++n) {
      model::Board& board = boards.emplace_back();
      board.uid = uid(n);
      board.name = "b" + std::to_string(n);
      board.board_type = "sim";
      board.fw_version = "0.1.0";
      board.rules_version = 1;
      board.status = BoardStatus::kOnline;
    }
  }
  // Looks each second.
  void look(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      pass(1);
      watch.look(boards, now, mono);
    }
  }
};

TEST(BoardWatch, OfflineAfterTheThreshold) {
  Boards rig(2);
  rig.look(3);
  rig.boards[0].status = BoardStatus::kOffline;
  rig.look(60);
  EXPECT_FALSE(rig.fires(AlertKind::kOffline, "b1"));
  rig.look(1);
  EXPECT_TRUE(rig.fires(AlertKind::kOffline, "b1"));
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").reason.code, "BOARD_OFFLINE");
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").value, 60);
  EXPECT_FALSE(rig.fires(AlertKind::kOffline, "b2"));
  // A board that comes and goes is not back.
  rig.boards[0].status = BoardStatus::kOnline;
  rig.look(8);
  rig.boards[0].status = BoardStatus::kSuspect;
  rig.look(1);
  rig.boards[0].status = BoardStatus::kOnline;
  rig.look(10);
  EXPECT_TRUE(rig.fires(AlertKind::kOffline, "b1"));
  rig.look(1);
  EXPECT_FALSE(rig.fires(AlertKind::kOffline, "b1"));
  EXPECT_EQ(rig.alert(AlertKind::kOffline, "b1").count, 1u);
}

TEST(BoardWatch, CrcRateOfAMinute) {
  Boards rig(1);
  auto& link = rig.boards[0].link;
  const auto minute = [&](std::uint64_t errors) {
    for (int i = 0; i < 6; ++i) {
      link.rx_frames += 100;
      link.crc_errors += errors / 6;
      rig.look(10);
    }
  };
  rig.look(1);
  minute(0);
  EXPECT_FALSE(rig.fires(AlertKind::kCrcRate, "b1"));
  minute(12);  // 2 %
  EXPECT_TRUE(rig.fires(AlertKind::kCrcRate, "b1"));
  minute(0);
  EXPECT_TRUE(rig.fires(AlertKind::kCrcRate, "b1"));
  minute(0);
  minute(0);
  EXPECT_FALSE(rig.fires(AlertKind::kCrcRate, "b1"));
  // A new link counts from 0; few errors are no rate.
  link = {};
  rig.look(10);
  link.rx_frames = 20;
  link.crc_errors = 4;
  rig.look(60);
  EXPECT_FALSE(rig.fires(AlertKind::kCrcRate, "b1"));
}

TEST(BoardWatch, FirmwareUnlikeTheOthers) {
  Boards rig(3);
  rig.boards[2].fw_version = "0.0.9";
  rig.look(1);
  EXPECT_TRUE(rig.fires(AlertKind::kFirmwareSkew, "b3"));
  EXPECT_FALSE(rig.fires(AlertKind::kFirmwareSkew, "b1"));
  // Of as many of each the newer is right.
  rig.boards[0].status = BoardStatus::kOffline;
  rig.boards[1].fw_version = "0.10.0";
  rig.boards[2].fw_version = "0.9.0";
  rig.look(1);
  EXPECT_TRUE(rig.fires(AlertKind::kFirmwareSkew, "b3"));
  EXPECT_FALSE(rig.fires(AlertKind::kFirmwareSkew, "b2"));
  rig.boards[2].fw_version = "0.10.0";
  rig.look(1);
  EXPECT_FALSE(rig.fires(AlertKind::kFirmwareSkew, "b3"));
  rig.boards[2].rules_version = 2;
  rig.look(1);
  EXPECT_TRUE(rig.fires(AlertKind::kFirmwareSkew, "b3"));
  // Another type is another matter.
  rig.boards[2].rules_version = 1;
  rig.boards[2].board_type = "other";
  rig.boards[2].fw_version = "7";
  rig.look(1);
  EXPECT_FALSE(rig.fires(AlertKind::kFirmwareSkew, "b3"));
}

}  // namespace
}  // namespace odt::test

#include "lab/rules.h"

#include <gtest/gtest.h>

// Whose a board is, and what that allows.
namespace odt::test {
namespace {

using model::LabKind;

constexpr std::int64_t kNow = 1'900'000'000'000'000, kSecond = 1'000'000;

model::Board board_named(const char* name, std::uint8_t number = 1) {
  model::Board board;
  board.uid.bytes = {0, 1, 2, 3, 4, 5, 6, number};
  board.name = name;
  return board;
}
CallContext by(const char* actor, bool admin = false, const char* owner = "") {
  CallContext ctx;
  ctx.actor = actor;
  ctx.owner = owner;
  ctx.admin = admin;
  return ctx;
}

TEST(LabRules, OnesOwnBoardIsForNobodyElse) {
  model::Board board = board_named("b1");
  EXPECT_TRUE(lab::may_use(board, "bob", kNow).ok());
  const auto done = lab::reserve(board, by("ann"), {600, "measuring", false}, kNow);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->kind, LabKind::kReserved);
  EXPECT_EQ(done->expire_us, kNow + 600 * kSecond);
  EXPECT_TRUE(lab::may_use(board, "ann", kNow).ok());
  const Status refused = lab::may_use(board, "bob", kNow + kSecond);
  EXPECT_EQ(reason_of(refused), "BOARD_RESERVED");
  const std::string text(refused.message());
  for (const char* part : {"b1", "ann", "2030-03-17 17:56:40 UTC", "9 min", "measuring"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  EXPECT_NE(remedy_of(refused).find("--take-over"), std::string::npos);
  const auto second = lab::reserve(board, by("bob"), {600, "", false}, kNow + kSecond);
  EXPECT_EQ(reason_of(second.status()), "BOARD_RESERVED");
  EXPECT_EQ(board.reservation.owner, "ann");
  // For ann, but by somebody else.
  EXPECT_TRUE(lab::extend(board, by("local", true, "ann"), 60, kNow).ok());
  EXPECT_EQ(board.reservation.expire_us, kNow + 60 * kSecond);
}

TEST(LabRules, AnExpiredLeaseFreesItself) {
  model::Board board = board_named("b1");
  ASSERT_TRUE(lab::reserve(board, by("ann"), {10, "", false}, kNow).ok());
  EXPECT_FALSE(lab::may_use(board, "bob", kNow + 10 * kSecond - 1).ok());
  EXPECT_TRUE(lab::may_use(board, "bob", kNow + 10 * kSecond).ok());
  EXPECT_EQ(reason_of(lab::extend(board, by("ann"), 10, kNow + 10 * kSecond).status()),
            "NOT_RESERVED");
  const auto taken = lab::reserve(board, by("bob"), {10, "", false}, kNow + 10 * kSecond);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->kind, LabKind::kReserved);  // nobody was put out
}

TEST(LabRules, OnlyAnAdminTakesOverAndItIsSaid) {
  model::Board board = board_named("b1");
  ASSERT_TRUE(lab::reserve(board, by("ann"), {600, "", false}, kNow).ok());
  const auto refused = lab::reserve(board, by("bob"), {60, "", true}, kNow);
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
  EXPECT_FALSE(lab::release(board, by("bob"), true, kNow).ok());
  EXPECT_EQ(board.reservation.owner, "ann");
  const auto taken = lab::reserve(board, by("root", true), {60, "urgent", true}, kNow);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->kind, LabKind::kTakenOver);
  EXPECT_EQ(taken->previous, "ann");
  EXPECT_EQ(taken->owner, "root");
  const auto freed = lab::release(board, by("root", true), false, kNow);
  ASSERT_TRUE(freed.ok() && freed->has_value());
  EXPECT_EQ((*freed)->kind, LabKind::kReleased);
  const auto nothing = lab::release(board, by("bob"), false, kNow);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
}

TEST(LabRules, TimesAreOneSecondToThirtyDays) {
  for (const std::uint32_t bad : {0u, lab::kMaxReservation_s + 1, ~0u}) {
    model::Board board = board_named("b1");
    const auto done = lab::reserve(board, by("ann"), {bad, "", false}, kNow);
    EXPECT_TRUE(absl::IsInvalidArgument(done.status())) << bad;
    EXPECT_TRUE(board.reservation.owner.empty());
  }
  model::Board board = board_named("b1");
  EXPECT_TRUE(lab::reserve(board, by("ann"), {lab::kMaxReservation_s, "", false}, kNow).ok());
}

TEST(LabRules, RunsWaitForMaintenanceAndForOthersReservations) {
  model::Board board = board_named("b1");
  model::Run run;
  run.meta.created_by = "bob";
  EXPECT_EQ(lab::hold(board, run, kNow).code, "");
  ASSERT_TRUE(lab::reserve(board, by("ann"), {600, "", false}, kNow).ok());
  const auto reserved = lab::hold(board, run, kNow);
  EXPECT_EQ(reserved.code, "BOARD_RESERVED");
  EXPECT_EQ(lab::hold(board, run, kNow + kSecond), reserved);  // the same text: no news
  run.owner = "ann";
  EXPECT_EQ(lab::hold(board, run, kNow).code, "");
  ASSERT_TRUE(lab::set_maintenance(board, by("ann"), true, "new cable", kNow));
  EXPECT_FALSE(lab::set_maintenance(board, by("bob"), true, "new cable", kNow + kSecond));
  const auto held = lab::hold(board, run, kNow);
  EXPECT_EQ(held.code, "BOARD_IN_MAINTENANCE");
  EXPECT_NE(held.text.find("new cable"), std::string::npos);
  ASSERT_TRUE(lab::set_maintenance(board, by("bob"), false, "", kNow));
  EXPECT_EQ(lab::hold(board, run, kNow).code, "");
}

TEST(LabRules, AReplacementTakesPlaceLabelsAndTarget) {
  model::Board old_board = board_named("old", 1), fresh = board_named("new", 2);
  old_board.place = "rig 7";
  old_board.labels = {{"site", "lab"}, {"motor", "7"}};
  old_board.target_snapshot = sha256("weights");
  fresh.labels = {{"site", "store"}, {"batch", "3"}};
  const auto done = lab::replace(old_board, fresh);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(fresh.place, "rig 7");
  EXPECT_EQ(old_board.place, "");
  const std::map<std::string, std::string> labels{{"site", "lab"}, {"motor", "7"}, {"batch", "3"}};
  EXPECT_EQ(fresh.labels, labels);
  EXPECT_TRUE(old_board.labels.empty());
  EXPECT_EQ(fresh.target_snapshot, sha256("weights"));
  EXPECT_TRUE(old_board.target_snapshot.is_zero());
  EXPECT_EQ(done->of_old.kind, LabKind::kReplaced);
  EXPECT_EQ(done->of_old.other, fresh.uid);
  EXPECT_EQ(done->of_new.kind, LabKind::kReplaces);
  EXPECT_EQ(done->of_new.other, old_board.uid);
  model::Board third = board_named("third", 3);
  third.place = "rig 8";
  EXPECT_EQ(reason_of(lab::replace(fresh, third).status()), "PLACE_TAKEN");
  EXPECT_EQ(fresh.place, "rig 7");
}

}  // namespace
}  // namespace odt::test

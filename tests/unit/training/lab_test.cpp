#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "rig.h"

// Lab life as runs see it: reservations, maintenance, replacement, power.
namespace odt::test {
namespace {

using model::LabKind;
using model::RunState;
using training::FleetControl;

class LabTest : public testing::Test {
 protected:
  std::shared_ptr<FakeBoard> online(Rig& rig, std::uint8_t number = 1) {
    auto board = rig.make_board(number);
    EXPECT_TRUE(rig.connect(number, board));
    EXPECT_TRUE(rig.wait_online(board));
    return board;
  }
  static CallContext as(Rig& rig, const char* owner, std::string request_id = {}) {
    auto ctx = rig.ctx(std::move(request_id));
    ctx.owner = owner;
    return ctx;
  }
  Result<std::vector<model::Board>> lab(Rig& rig, CallContext ctx, const BoardUid& uid,
                                        FleetControl::LabAct act) {
    return rig.ask<std::vector<model::Board>>(
        [&](auto done) { rig.fleet().lab(ctx, uid, act, done); });
  }
  Result<model::Run> create(Rig& rig, const char* owner, const std::shared_ptr<FakeBoard>& board) {
    return rig.ask<model::Run>(
        [&](auto done) { rig.fleet().create_run(as(rig, owner), rig.spec(board), false, done); });
  }
  model::Board seen(Rig& rig, const BoardUid& uid) {
    for (const auto& board : rig.fleet().view()->boards)
      if (board.uid == uid) return board;
    return {};
  }
  std::vector<model::LabEvent> history(const BoardUid& uid) {
    return *library.control.call_sync([uid](store::ControlStore& s) { return s.lab_events(uid); });
  }
  Library library;
};

TEST_F(LabTest, AnothersRunIsRefusedAndWaitingOnesComeAfter) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] { board->step_time = 20ms; });
  auto first = create(rig, "bob", board);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->owner, "bob");
  ASSERT_TRUE(rig.wait_state(first->id, RunState::kRunning));
  auto waits = create(rig, "bob", board);
  ASSERT_TRUE(waits.ok());
  ASSERT_TRUE(lab(rig, as(rig, "ann"), board->uid, FleetControl::Reserve{3, "note", false}).ok());
  auto refused = create(rig, "bob", board);
  EXPECT_EQ(reason_of(refused.status()), "BOARD_RESERVED") << refused.status();
  auto evaluated = rig.ask<model::Job>([&](auto done) {
    rig.fleet().evaluate(as(rig, "bob"), board->uid, Hash{}, library.digits.id, "test", done);
  });
  EXPECT_EQ(reason_of(evaluated.status()), "BOARD_RESERVED");
  auto mine = create(rig, "ann", board);
  ASSERT_TRUE(mine.ok()) << mine.status();
  // What runs goes on; then ann's, though it came later; then bob's, when the time is over.
  ASSERT_TRUE(rig.wait_state(first->id, RunState::kSucceeded));
  ASSERT_TRUE(
      rig.wait_until([&] { return library.run(waits->id).reason.code == "BOARD_RESERVED"; }));
  EXPECT_EQ(library.run(waits->id).state, RunState::kQueued);
  ASSERT_TRUE(rig.wait_state(mine->id, RunState::kSucceeded));
  ASSERT_TRUE(rig.wait_state(waits->id, RunState::kSucceeded, 20s));
  EXPECT_EQ(library.run(waits->id).reason.code, "");
  EXPECT_EQ(seen(rig, board->uid).reservation.owner, "");
  const auto events = history(board->uid);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, LabKind::kReserved);
  EXPECT_EQ(events[1].kind, LabKind::kExpired);
  EXPECT_EQ(events[1].actor, "odtd");
}

TEST_F(LabTest, TwoWhoReserveAtOnceAreOneOwner) {
  Rig rig(library);
  auto board = online(rig);
  std::vector<std::future<Result<std::vector<model::Board>>>> answers;
  for (int i = 0; i < 8; ++i) {
    auto promise = std::make_shared<std::promise<Result<std::vector<model::Board>>>>();
    answers.push_back(promise->get_future());
    rig.fleet().lab(as(rig, ("user" + std::to_string(i)).c_str()), board->uid,
                    FleetControl::Reserve{600, "", false},
                    [promise](auto done) { promise->set_value(std::move(done)); });
  }
  int won = 0;
  std::string owner;
  for (auto& answer : answers) {
    auto done = answer.get();
    if (done.ok()) {
      ++won;
      owner = done->front().reservation.owner;
    } else {
      EXPECT_EQ(reason_of(done.status()), "BOARD_RESERVED") << done.status();
    }
  }
  EXPECT_EQ(won, 1);
  EXPECT_EQ(seen(rig, board->uid).reservation.owner, owner);
  EXPECT_EQ(history(board->uid).size(), 1u);
}

TEST_F(LabTest, ItOutlivesTheDaemonAndEndsOnTime) {
  BoardUid uid;
  {
    Rig rig(library);
    const auto board = online(rig);
    uid = board->uid;
    ASSERT_TRUE(lab(rig, as(rig, "ann"), uid, FleetControl::Reserve{2, "", false}).ok());
    ASSERT_TRUE(lab(rig, as(rig, "ann"), uid, FleetControl::Maintain{true, "cable"}).ok());
    rig.drop(board);
    rig.crash();
  }
  Rig rig(library);
  ASSERT_TRUE(rig.wait_until([&] { return seen(rig, uid).maintenance.on(); }));
  // Its board is away; its time passes all the same.
  ASSERT_TRUE(rig.wait_until([&] { return history(uid).back().kind == LabKind::kExpired; }));
  EXPECT_TRUE(rig.wait_until([&] { return seen(rig, uid).reservation.owner.empty(); }));
  EXPECT_EQ(seen(rig, uid).maintenance.note, "cable");
}

TEST_F(LabTest, InMaintenanceNoRunBegins) {
  Rig rig(library);
  auto board = online(rig);
  ASSERT_TRUE(lab(rig, rig.ctx(), board->uid, FleetControl::Maintain{true, "new cable"}).ok());
  auto run = create(rig, "", board);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(
      rig.wait_until([&] { return library.run(run->id).reason.code == "BOARD_IN_MAINTENANCE"; }));
  EXPECT_EQ(library.run(run->id).state, RunState::kQueued);
  auto cancelled = create(rig, "", board);
  ASSERT_TRUE(rig.desire(cancelled->id, model::Desired::kCancel).ok());
  EXPECT_EQ(library.run(cancelled->id).state, RunState::kCancelled);
  ASSERT_TRUE(lab(rig, rig.ctx(), board->uid, FleetControl::Maintain{false, ""}).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
  EXPECT_EQ(library.run(run->id).reason.code, "");
}

TEST_F(LabTest, PlacesAreUniqueAndMoveWithAReplacement) {
  Rig rig(library);
  auto a = online(rig, 1), b = online(rig, 2);
  const auto place = [&](const BoardUid& uid, const char* where) {
    FleetControl::BoardUpdate update;
    update.uid = uid;
    update.place = where;
    return rig.ask<model::Board>(
        [&](auto done) { rig.fleet().update_board(rig.ctx(), update, done); });
  };
  ASSERT_TRUE(place(a->uid, "rig 7").ok());
  EXPECT_EQ(reason_of(place(b->uid, "rig 7").status()), "PLACE_TAKEN");
  EXPECT_TRUE(place(a->uid, "rig 7").ok());
  for (const char* bad : {"-x", "a\nb"})
    EXPECT_TRUE(absl::IsInvalidArgument(place(b->uid, bad).status())) << bad;
  auto self = lab(rig, rig.ctx(), a->uid, FleetControl::ReplaceBy{a->uid});
  EXPECT_EQ(reason_of(self.status()), "SAME_BOARD");
  BoardUid nobody = a->uid;
  nobody.bytes.back() = 99;
  auto unknown = lab(rig, rig.ctx(), a->uid, FleetControl::ReplaceBy{nobody});
  EXPECT_TRUE(absl::IsNotFound(unknown.status())) << unknown.status();
  auto ctx = rig.ctx("once");
  auto done = lab(rig, ctx, a->uid, FleetControl::ReplaceBy{b->uid});
  ASSERT_TRUE(done.ok()) << done.status();
  auto again = lab(rig, ctx, a->uid, FleetControl::ReplaceBy{b->uid});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->back().place, "rig 7");
  EXPECT_EQ(seen(rig, a->uid).place, "");
  EXPECT_EQ(history(a->uid).back().kind, LabKind::kReplaced);
  EXPECT_EQ(history(b->uid).back().kind, LabKind::kReplaces);
  EXPECT_EQ(history(b->uid).size(), 1u);
}

class PowerTest : public LabTest {
 protected:
  PowerTest() : folder(testing::TempDir() + "odt-power-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder);
  }
  ~PowerTest() override { std::filesystem::remove_all(folder); }
  std::string log() const {
    std::ifstream in(folder + "/log");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  lab::PowerProfile profile(bool automatic, const char* script) const {
    lab::PowerProfile p;
    p.name = "rack";
    p.argv = {"/bin/sh", "-c", script, "sh", folder + "/log", "{uid}"};
    p.automatic = automatic;
    p.away_s = 1;
    return p;
  }
  Result<model::PowerResult> cycle(Rig& rig, const BoardUid& uid) {
    return rig.ask<model::PowerResult>(
        [&](auto done) { rig.fleet().power_cycle(rig.ctx(), uid, done); });
  }
  const std::string folder;
};

TEST_F(PowerTest, AWantedBoardThatIsAwayIsCycledOnceInAPause) {
  Rig rig(library, [&](auto& options) {
    options.power = {profile(true, "echo $2 >> $1")};
    options.power_pause = 3600s;
  });
  auto board = online(rig);
  // Nobody wants it.
  rig.drop(board);
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(log(), "");
  board = online(rig);
  rig.on_links([&] { board->step_time = 20ms; });
  auto run = create(rig, "", board);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
  rig.drop(board);
  ASSERT_TRUE(rig.wait_until([&] { return log() == board->uid.hex() + "\n"; })) << log();
  ASSERT_TRUE(rig.wait_until([&] { return !history(board->uid).empty(); }));
  const auto event = history(board->uid).back();
  EXPECT_TRUE(event.power.ok && event.power.automatic);
  EXPECT_EQ(event.power.reason.code, "BOARD_AWAY");
  EXPECT_GT(seen(rig, board->uid).power.last_us, 0);
  std::this_thread::sleep_for(2000ms);
  EXPECT_EQ(log(), board->uid.hex() + "\n");
  // A restart of odtd forgets nothing.
  rig.crash();
  Rig again(library, [&](auto& options) {
    options.power = {profile(true, "echo $2 >> $1")};
    options.power_pause = 3600s;
  });
  std::this_thread::sleep_for(2000ms);
  EXPECT_EQ(log(), board->uid.hex() + "\n");
}

TEST_F(PowerTest, OneAtATimeAndAFailureIsAnAnswer) {
  Rig rig(library, [&](auto& options) {
    options.power = {profile(false, "echo $2 >> $1; sleep 1; exit 4")};
  });
  auto board = online(rig);
  std::promise<Result<model::PowerResult>> first;
  rig.fleet().power_cycle(rig.ctx(), board->uid,
                          [&](auto done) { first.set_value(std::move(done)); });
  ASSERT_TRUE(rig.wait_until([&] { return !log().empty(); }));
  EXPECT_EQ(reason_of(cycle(rig, board->uid).status()), "POWER_BUSY");
  const auto failed = first.get_future().get();
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_FALSE(failed->ok);
  EXPECT_EQ(failed->exit_code, 4);
  EXPECT_EQ(failed->reason.code, "POWER_FAILED");
  EXPECT_FALSE(history(board->uid).back().power.ok);
  ASSERT_TRUE(lab(rig, as(rig, "ann"), board->uid, FleetControl::Reserve{60, "", false}).ok());
  EXPECT_EQ(reason_of(cycle(rig, board->uid).status()), "BOARD_RESERVED");
}

TEST_F(PowerTest, WithoutAProfileItIsRefused) {
  Rig rig(library);
  auto board = online(rig);
  EXPECT_EQ(reason_of(cycle(rig, board->uid).status()), "NO_POWER_PROFILE");
  BoardUid nobody = board->uid;
  nobody.bytes.back() = 99;
  EXPECT_TRUE(absl::IsNotFound(cycle(rig, nobody).status()));
}

}  // namespace
}  // namespace odt::test

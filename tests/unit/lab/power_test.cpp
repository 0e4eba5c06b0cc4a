#include "lab/power.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "lab/power_runner.h"

namespace odt::test {
namespace {

using lab::PowerProfile;

model::Board board_at(const char* name, const char* place) {
  model::Board board;
  board.uid.bytes = {0xAB, 1, 2, 3, 4, 5, 6, 7};
  board.name = name;
  board.place = place;
  return board;
}
PowerProfile profile(const char* name, std::vector<std::string> boards,
                     std::vector<std::string> argv) {
  PowerProfile out;
  out.name = name;
  out.boards = std::move(boards);
  out.argv = std::move(argv);
  return out;
}
model::PowerResult run(std::vector<std::string> argv, std::uint32_t timeout_s = 20) {
  const std::atomic<bool> stop{false};
  return lab::run_power_command(argv, timeout_s, stop);
}

TEST(Power, TheBoardsOwnProfileComesFirst) {
  const std::vector<PowerProfile> all{profile("every", {}, {"/bin/relay", "{uid}"}),
                                      profile("rack", {"rig 7", "m33"}, {"/bin/relay", "{place}"}),
                                      profile("one", {"ab01020304050607"}, {"/bin/relay", "7"})};
  ASSERT_TRUE(lab::check_profiles(all).ok());
  EXPECT_EQ(lab::profile_of(all, board_at("x", "rig 7"))->name, "rack");
  EXPECT_EQ(lab::profile_of(all, board_at("x", ""))->name, "one");
  EXPECT_EQ(lab::profile_of({all[0]}, board_at("x", ""))->name, "every");
  // It wants a place, and the board has none.
  EXPECT_EQ(lab::profile_of({all[1]}, board_at("m33", "")), nullptr);
  EXPECT_EQ(lab::profile_of({all[1]}, board_at("x", "rig 8")), nullptr);
}

// What people call a board and its place stays one argument, whatever it holds.
TEST(Power, NoTextBecomesCode) {
  const auto p = profile("p", {}, {"/bin/relay", "--at={place}", "{name}", "{uid}", "a b"});
  const auto argv = lab::command_of(p, board_at("b1", "x; rm -rf $HOME `id` {uid}"));
  EXPECT_THAT(argv, testing::ElementsAre("/bin/relay", "--at=x; rm -rf $HOME `id` {uid}", "b1",
                                         "ab01020304050607", "a b"));
  EXPECT_EQ(run({"/bin/echo", "$(id)", ";", "exit 3"}).output, "$(id) ; exit 3\n");
}

TEST(Power, BadProfilesAreRefused) {
  const auto says = [](std::vector<PowerProfile> all) {
    return std::string(lab::check_profiles(all).message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(says({profile("", {}, {"/bin/x"})}), HasSubstr("without name"));
  EXPECT_THAT(says({profile("p", {}, {})}), HasSubstr("neither command nor uhubctl"));
  EXPECT_THAT(says({profile("p", {}, {"relay"})}), HasSubstr("absolute path"));
  EXPECT_THAT(says({profile("p", {}, {"/bin/{place}"})}), HasSubstr("must not depend"));
  EXPECT_THAT(says({profile("p", {}, {"/x"}), profile("p", {}, {"/y"})}), HasSubstr("twice"));
  for (const char* bad : {"", ":", "1-1", "1-1:", ":2", "1-1:2;x", "-a:2", "1 1:2"})
    EXPECT_FALSE(lab::uhubctl_command(bad).ok()) << bad;
  EXPECT_THAT(*lab::uhubctl_command("1-1.4:2"),
              testing::ElementsAre("/usr/sbin/uhubctl", "-a", "cycle", "-l", "1-1.4", "-p", "2"));
}

TEST(PowerCommand, ItsEndIsTheAnswer) {
  const auto good = run({"/bin/sh", "-c", "echo on; echo err >&2"});
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.output, testing::AllOf(testing::HasSubstr("on"), testing::HasSubstr("err")));
  const auto bad = run({"/bin/sh", "-c", "echo no such hub; exit 7"});
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.exit_code, 7);
  EXPECT_EQ(bad.reason.code, "POWER_FAILED");
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $$"}).reason.code, "POWER_FAILED");
  EXPECT_EQ(run({"/nonexistent/relay"}).reason.code, "POWER_NO_PROGRAM");
  EXPECT_EQ(run({"/etc/passwd"}).reason.code, "POWER_NO_PROGRAM");
}

// One that hangs goes at its time, also where what it has started keeps its output open.
TEST(PowerCommand, HangsAndFloodsAreBounded) {
  const auto hung = run({"/bin/sh", "-c", "trap '' TERM; sleep 600"}, 1);
  EXPECT_FALSE(hung.ok);
  EXPECT_EQ(hung.reason.code, "POWER_TIMEOUT");
  const auto away = run({"/bin/sh", "-c", "setsid sleep 40 & echo started"}, 20);
  EXPECT_TRUE(away.ok) << away.reason.text;
  const auto orphan = run({"/bin/sh", "-c", "setsid sleep 40 & sleep 600"}, 1);
  EXPECT_EQ(orphan.reason.code, "POWER_TIMEOUT");
  EXPECT_LT(orphan.took_ms, 30'000u);  // it did not wait for what had left it
  const auto flood =
      run({"/bin/sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"});
  EXPECT_TRUE(flood.ok);
  EXPECT_EQ(flood.output.size(), 2000u);
  EXPECT_TRUE(flood.output.ends_with("end\n"));
}

TEST(PowerRunner, StopEndsWhatIsUnderWay) {
  lab::PowerRunner runner;
  std::promise<model::PowerResult> ended;
  runner.run({"/bin/sleep", "600"}, 300,
             [&](model::PowerResult result) { ended.set_value(std::move(result)); });
  runner.stop();
  EXPECT_EQ(ended.get_future().get().reason.code, "POWER_STOPPED");
  model::PowerResult late;
  runner.run({"/bin/true"}, 5, [&](model::PowerResult result) { late = std::move(result); });
  EXPECT_EQ(late.reason.code, "POWER_STOPPED");
}

}  // namespace
}  // namespace odt::test

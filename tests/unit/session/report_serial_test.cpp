#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/fd.h"
#include "link/serial_link.h"
#include "odt/device/v1/device.pb.h"
#include "runner_fixture.h"

// Failure reports of other products (design/device-link.md, section 2) about serial ports; their
// table: tests/integration/session/REPORTS.md.
namespace odt::session {
namespace {

// Counts how often a file is opened.
class OpenCount {
 public:
  explicit OpenCount(const std::string& path) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), path.c_str(), IN_OPEN), 0);
  }
  int count() {
    alignas(inotify_event) char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(fd_.get(), buffer, sizeof buffer)) > 0) {
      for (ssize_t at = 0; at < n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if ((event->mask & IN_OPEN) != 0) ++opens_;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return opens_;
  }

 private:
  Fd fd_;
  int opens_ = 0;
};

// A board whose reset hangs on DTR: every opening of its port is a boot.
class ResetAtOpen {
 public:
  ResetAtOpen(asio::io_context& io, const std::string& path, test::ScriptedBoard& board)
      : opens_(path), board_(board), timer_(io) {
    look();
  }
  ~ResetAtOpen() {
    *here_ = false;  // its last look may be under way already
    timer_.cancel();
  }
  int boots = 0;

 private:
  void look() {
    for (const int opened = opens_.count(); boots < opened; ++boots) board_.reboot();
    timer_.expires_after(milliseconds(1));
    timer_.async_wait([this, here = here_](boost::system::error_code ec) {
      if (!ec && *here) look();
    });
  }
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
  OpenCount opens_;
  test::ScriptedBoard& board_;
  asio::steady_timer timer_;
};

TEST_F(RunnerTest, Report05_OpeningThePortResetsTheBoard) {
  options_.down_after = milliseconds(1000);
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  ResetAtOpen reset(io_, pty.path(), *board);
  board->drop_hellos = 4;  // still booting: the first speed's tries and one of the next
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  EXPECT_EQ(reset.boots, 1) << "one opening at attach";
  EXPECT_EQ(host_.session->hello().boot_id, board->boot_id);
  // It crashes and comes back by itself: a new session on the same open port.
  board->reboot();
  board->emit_step(1);
  ASSERT_TRUE(online(2));
  // It is mute for longer than the session lives.
  board->mute = true;
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kSilent); }));
  board->mute = false;
  ASSERT_TRUE(online(3));
  EXPECT_EQ(reset.boots, 1) << "none of this opened the port again";
}

TEST_F(RunnerTest, Report05_ARefusedBoardIsNotResetOverAndOver) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  ResetAtOpen reset(io_, pty.path(), *board);
  host_.accept = false;
  run_endpoint(pty.path());
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.sessions >= 3; }));
  EXPECT_EQ(reset.boots, 1);
  EXPECT_EQ(board->requests, 0);
}

TEST_F(RunnerTest, Report06_TheBoardComesBackUnderAnotherName) {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("odt_by_id_" + std::to_string(::getpid())))
          .string();
  auto a = std::make_unique<test::PtyPair>(io_);
  std::filesystem::remove(name);
  std::filesystem::create_symlink(a->path(), name);
  const auto first = board_on(*a);
  run_endpoint(name);  // as by-id: the link follows the board
  ASSERT_TRUE(online(1));
  test::PtyPair b(io_);
  const auto second = board_on(b);
  // The old descriptor is still open when the device is back elsewhere.
  std::filesystem::remove(name);
  std::filesystem::create_symlink(b.path(), name);
  first->hang_up();
  a->hang_up();
  ASSERT_TRUE(online(2));
  EXPECT_EQ(host_.session->hello().uid.str(), second->uid);
  EXPECT_EQ(host_.states.back(), model::PortState::kOnline);
  std::filesystem::remove(name);
}

// 3 s, 60 s and 10 min at a thousandth of their length: the shortest waits are as many as ever.
TEST_F(RunnerTest, Report07_APortThatIsAwayForLongIsTakenEachTimeItComesBack) {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("odt_away_" + std::to_string(::getpid())))
          .string();
  std::filesystem::remove(name);
  std::unique_ptr<test::PtyPair> pty;
  std::shared_ptr<test::ScriptedBoard> board;
  const auto plug = [&] {
    pty = std::make_unique<test::PtyPair>(io_);
    std::filesystem::create_symlink(pty->path(), name);
    board = board_on(*pty);
  };
  plug();
  options_.backoff_min = milliseconds(1);
  options_.backoff_max = milliseconds(30);
  run_endpoint(name);
  ASSERT_TRUE(online(1));
  int sessions = 1;
  for (const int away : {3, 60, 600}) {
    std::filesystem::remove(name);
    board->hang_up();
    pty->hang_up();
    ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == sessions; }));
    test::run_for(io_, milliseconds(away));
    EXPECT_EQ(host_.states.back(), model::PortState::kGone);
    plug();
    ASSERT_TRUE(online(++sessions)) << "after " << away;
  }
  std::filesystem::remove(name);
}

TEST_F(RunnerTest, Report15_ABoardWithoutCapabilitiesComesBackFromAReset) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  board->on_request = [](const test::ScriptedBoard::Request& request,
                         test::ScriptedBoard::Response& response) {
    if (!request.has_reset()) return false;
    response.mutable_error()->set_code(device::v1::STATUS_CODE_UNIMPLEMENTED);
    response.mutable_error()->set_text("no reset");
    return true;
  };
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  EXPECT_EQ(host_.session->hello().caps, 0u);
  const Status asked = test::run(io_, host_.session->reset());
  EXPECT_TRUE(absl::IsUnimplemented(asked)) << asked;
  EXPECT_TRUE(host_.online()) << "a refusal is no loss";
  board->reboot();
  board->emit_step(1);
  ASSERT_TRUE(online(2));
  EXPECT_TRUE(test::run(io_, host_.session->get_state(false)).ok());
}

// What is at the other end of a cable that leads to no board: answers what it reads by `reply`.
class Stranger : public std::enable_shared_from_this<Stranger> {
 public:
  using Reply = std::function<std::string(std::string)>;
  Stranger(std::shared_ptr<link::ByteLink> link, Reply reply)
      : link_(std::move(link)), reply_(std::move(reply)) {}
  void start(asio::io_context& io) { asio::co_spawn(io, loop(shared_from_this()), asio::detached); }

 private:
  asio::awaitable<void> loop([[maybe_unused]] std::shared_ptr<Stranger> self) {
    std::array<char, 512> buffer;
    for (;;) {
      const Result<std::size_t> n = co_await link_->read(asio::buffer(buffer));
      if (!n.ok()) co_return;
      const std::string out = reply_(std::string(buffer.data(), *n));
      const Status written = co_await link_->write(asio::buffer(out));
      if (!written.ok()) co_return;
    }
  }
  std::shared_ptr<link::ByteLink> link_;
  Reply reply_;
};

TEST_F(RunnerTest, Report03_ACableThatEchoesIsSaidToBeOne) {
  test::PtyPair pty(io_);
  const auto wire = std::make_shared<Stranger>(pty.board_end(), [](std::string in) { return in; });
  wire->start(io_);
  run_endpoint(pty.path());
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kSilent); }));
  EXPECT_EQ(host_.reasons.back().code, "ECHO") << host_.reasons.back().text;
  EXPECT_EQ(host_.sessions, 0);
}

TEST_F(RunnerTest, Report21_AModemOrAPrinterIsShownByWhatItSays) {
  for (const std::string says : {"\r\nERROR\r\n", "echo:Unknown command: \"\"\nok T:21.3 /0.0\n"}) {
    test::PtyPair pty(io_);
    test::RecordingHost host;
    // Far more than what garbage at another speed takes to be called so.
    const auto device = std::make_shared<Stranger>(pty.board_end(), [says](const std::string&) {
      std::string out;
      while (out.size() < 3000) out += says;
      return out;
    });
    device->start(io_);
    auto runner = make_link_runner(io_, clock_, pty.path(), options_, host);
    runner->start();
    ASSERT_TRUE(test::run_until(io_, [&] { return host.seen(model::PortState::kSilent); }));
    EXPECT_EQ(host.reasons.back().code, "SPEAKS_TEXT");
    const std::string line = says.find("ERROR") != says.npos ? "\"ERROR\"" : "\"ok T:21.3 /0.0\"";
    EXPECT_NE(host.reasons.back().text.find(line), std::string::npos) << host.reasons.back().text;
    EXPECT_FALSE(host.seen(model::PortState::kBaudMismatchSuspected));
    test::run(io_, runner->stop());
    pty.hang_up();
    test::run_for(io_, milliseconds(20));
  }
}

TEST_F(RunnerTest, Report08_TwoProgramsOnOnePort) {
  options_.rto_start = options_.rto_min = options_.rto_max = milliseconds(20000);  // no loss: late
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  test::RecordingHost second_host;
  auto second = make_link_runner(io_, clock_, pty.path(), options_, second_host);
  second->start();
  ASSERT_TRUE(test::run_until(io_, [&] { return second_host.seen(model::PortState::kLocked); }));
  const model::Reason reason = second_host.reasons.back();
  EXPECT_EQ(reason.code, "PORT_LOCKED");
  EXPECT_NE(reason.text.find("(pid " + std::to_string(::getpid()) + ")"), std::string::npos)
      << reason.text;
  for (int i = 0; i < 20; ++i) {
    const auto state = test::run(io_, host_.session->get_state(false));
    ASSERT_TRUE(state.ok()) << state.status();
  }
  EXPECT_EQ(second_host.sessions, 0);
  EXPECT_EQ(host_.sessions, 1);
  EXPECT_EQ(host_.session->stats().retries, 0u) << "a frame of the first was lost";
  EXPECT_EQ(host_.session->stats().crc_errors, 0u);
  test::run(io_, runner_->stop());
  ASSERT_TRUE(test::run_until(io_, [&] { return second_host.online(); })) << "free: it is taken";
  second_host.session.reset();
  test::run(io_, second->stop());
}

TEST_F(RunnerTest, Report19_HangUpIsOfflineWithinASecond) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  options_.down_after = milliseconds(60000);
  board->hang_up();
  pty.hang_up();
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sink_.closed == 1; }, milliseconds(1000)));
  EXPECT_FALSE(host_.online());
}

}  // namespace
}  // namespace odt::session

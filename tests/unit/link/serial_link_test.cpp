#include "link/serial_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "support/pty_pair.h"
#include "support/run_io.h"

namespace odt::link {
namespace {

// A port with modem lines, both on as the kernel leaves them at opening; writes down how they are
// moved.
class RecordingSystem final : public SerialSystem {
 public:
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (request == TIOCMGET) {
      *static_cast<int*>(argument) = levels.empty() ? TIOCM_DTR | TIOCM_RTS : levels.back();
      return 0;
    }
    if (request == TIOCMSET) {
      levels.push_back(*static_cast<int*>(argument));
      return 0;
    }
    if (request == TIOCMBIS || request == TIOCMBIC) {
      ++single_moves;
      return 0;
    }
    if (request == TIOCEXCL) exclusive = true;
    return SerialSystem::ioctl(fd, request, argument);
  }
  std::vector<int> levels;
  int single_moves = 0;
  bool exclusive = false;
};

TEST(SerialLink, ReadsAndWritesRawBytes) {
  asio::io_context io;
  test::PtyPair pty(io);
  auto port = SerialLink::open(io, pty.path(), {115200});
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE((*port)->lossy());
  // Every byte value passes both ways: no echo, no line editing, no CR translation.
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  ASSERT_TRUE(test::run(io, (*port)->write(asio::buffer(all))).ok());
  std::string got;
  char buffer[512];
  const auto board = pty.board_end();
  while (got.size() < all.size()) {
    const auto n = test::run(io, board->read(asio::buffer(buffer)));
    ASSERT_TRUE(n.ok());
    got.append(buffer, *n);
  }
  EXPECT_EQ(got, all);
  ASSERT_TRUE(test::run(io, board->write(asio::buffer(all))).ok());
  got.clear();
  while (got.size() < all.size()) {
    const auto n = test::run(io, (*port)->read(asio::buffer(buffer)));
    ASSERT_TRUE(n.ok());
    got.append(buffer, *n);
  }
  EXPECT_EQ(got, all);
}

TEST(SerialLink, SecondOpenerIsLockedOut) {
  asio::io_context io;
  test::PtyPair pty(io);
  auto first = SerialLink::open(io, pty.path(), {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = SerialLink::open(io, pty.path(), {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_NE(second.status().message().find(pty.path()), std::string::npos);
  // This very program holds it.
  EXPECT_NE(second.status().message().find("(pid " + std::to_string(::getpid()) + ")"),
            std::string_view::npos)
      << second.status();
  EXPECT_NE(second.status().message().find("this one"), std::string_view::npos) << second.status();
  EXPECT_EQ(second.status().message().find("end that program"), std::string_view::npos);
  (*first)->close();
  EXPECT_TRUE(SerialLink::open(io, pty.path(), {}).ok());
}

TEST(SerialLink, DescriptorIsNotInherited) {
  asio::io_context io;
  test::PtyPair pty(io);
  auto fd = open_serial(pty.path(), {}, real_serial_system());
  ASSERT_TRUE(fd.ok());
  EXPECT_NE(::fcntl(*fd, F_GETFD) & FD_CLOEXEC, 0);
  ::close(*fd);
}

// The lines move together, once, to what the board's profile says; nothing moves them at the end.
TEST(SerialLink, Report05_DtrRtsAndHupclFollowTheBoardsProfile) {
  asio::io_context io;
  for (const bool dtr : {true, false}) {
    for (const bool rts : {true, false}) {
      test::PtyPair pty(io);
      RecordingSystem system;
      SerialConfig config;
      config.dtr = dtr;
      config.rts = rts;
      auto port = SerialLink::open(io, pty.path(), config, system);
      ASSERT_TRUE(port.ok()) << port.status();
      EXPECT_TRUE(system.exclusive);
      EXPECT_EQ(system.levels, std::vector<int>{(dtr ? TIOCM_DTR : 0) | (rts ? TIOCM_RTS : 0)});
      (*port)->close();
      EXPECT_EQ(system.levels.size(), 1u);
      EXPECT_EQ(system.single_moves, 0);
      const int again = ::open(pty.path().c_str(), O_RDWR | O_NOCTTY);
      ASSERT_GE(again, 0);
      termios t{};
      ASSERT_EQ(::tcgetattr(again, &t), 0);
      EXPECT_EQ(t.c_cflag & HUPCL, 0u) << "closing would drop DTR and reset the board";
      ::close(again);
    }
  }
}

TEST(SerialLink, HardwareFlowControlLeavesRtsToTheDriver) {
  asio::io_context io;
  test::PtyPair pty(io);
  RecordingSystem system;
  SerialConfig config;
  config.rts = false;
  config.rts_cts = true;
  const auto fd = open_serial(pty.path(), config, system);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(system.levels, std::vector<int>{TIOCM_DTR | TIOCM_RTS});
  termios t{};
  ASSERT_EQ(::tcgetattr(*fd, &t), 0);
  EXPECT_NE(t.c_cflag & CRTSCTS, 0u);
  ::close(*fd);
}

TEST(SerialLink, Report22_AnySpeedIsTaken) {
  asio::io_context io;
  test::PtyPair pty(io);
  // 74880, 250000 and 5000000 have no termios constant.
  for (const std::uint32_t baud : {74880u, 115200u, 250000u, 921600u, 1234567u, 5000000u}) {
    auto port = SerialLink::open(io, pty.path(), {baud});
    ASSERT_TRUE(port.ok()) << baud << ": " << port.status();
    EXPECT_TRUE((*port)->set_baud(baud + 1).ok());
  }
}

TEST(SerialLink, ErrorsNameThePort) {
  asio::io_context io;
  const auto missing = SerialLink::open(io, "/dev/no-such-port", {});
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_NE(missing.status().message().find("/dev/no-such-port"), std::string::npos);
  const auto not_tty = SerialLink::open(io, "/dev/null", {});
  EXPECT_TRUE(absl::IsInvalidArgument(not_tty.status())) << not_tty.status();
}

TEST(SerialLink, Report19_HangUpEndsTheReadOnceAndDoesNotSpin) {
  asio::io_context io;
  test::PtyPair pty(io);
  auto port = SerialLink::open(io, pty.path(), {});
  ASSERT_TRUE(port.ok());
  pty.hang_up();
  char buffer[16];
  std::size_t handlers = io.poll();
  const auto before = std::chrono::steady_clock::now();
  const auto end = test::run(io, (*port)->read(asio::buffer(buffer)));
  EXPECT_TRUE(absl::IsUnavailable(end.status())) << end.status();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  io.restart();
  handlers += io.poll();
  EXPECT_LT(handlers, 5u);
}

// VMIN 0 makes an idle tty read nothing at all: an end of file that is none.
TEST(SerialLink, Report19_ATransientEndOfFileIsNotTheEnd) {
  asio::io_context io;
  test::PtyPair pty(io);
  const auto fd = open_serial(pty.path(), {}, real_serial_system());
  ASSERT_TRUE(fd.ok());
  termios t{};
  ASSERT_EQ(::tcgetattr(*fd, &t), 0);
  t.c_cc[VMIN] = 0;
  ASSERT_EQ(::tcsetattr(*fd, TCSANOW, &t), 0);
  char probe = 0;
  ASSERT_EQ(::read(*fd, &probe, 1), 0) << "this tty gives no transient end of file";
  const auto port = std::make_shared<SerialLink>(io, *fd, pty.path(), real_serial_system());
  asio::steady_timer timer(io, std::chrono::milliseconds(20));
  timer.async_wait([&](boost::system::error_code) {
    t.c_cc[VMIN] = 1;
    EXPECT_EQ(::tcsetattr(*fd, TCSANOW, &t), 0);
    EXPECT_EQ(::write(pty.master(), "here", 4), 4);
  });
  char buffer[16];
  const auto n = test::run(io, port->read(asio::buffer(buffer)));
  ASSERT_TRUE(n.ok()) << n.status();
  EXPECT_EQ(std::string(buffer, *n), "here");
}

TEST(SerialLink, CloseEndsAPendingRead) {
  asio::io_context io;
  test::PtyPair pty(io);
  auto port = SerialLink::open(io, pty.path(), {});
  ASSERT_TRUE(port.ok());
  asio::steady_timer timer(io, std::chrono::milliseconds(20));
  timer.async_wait([link = *port](boost::system::error_code) { link->close(); });
  char buffer[4];
  EXPECT_TRUE(absl::IsUnavailable(test::run(io, (*port)->read(asio::buffer(buffer))).status()));
}

TEST(SerialLink, Report03_WhatTheTtyEchoedBeforeRawModeIsDiscarded) {
  asio::io_context io;
  test::PtyPair pty(io);
  ASSERT_EQ(::write(pty.master(), "boot\n", 5), 5);
  auto port = SerialLink::open(io, pty.path(), {});
  ASSERT_TRUE(port.ok());
  const auto board = pty.board_end();
  const std::string later = "later";
  ASSERT_TRUE(test::run(io, board->write(asio::buffer(later))).ok());
  char buffer[64];
  const auto n = test::run(io, (*port)->read(asio::buffer(buffer)));
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(std::string(buffer, *n), "later");
}

}  // namespace
}  // namespace odt::link

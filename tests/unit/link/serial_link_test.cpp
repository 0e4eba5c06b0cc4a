#include "link/serial_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>

#include "support/pty_pair.h"
#include "support/run_io.h"

namespace odt::link {
namespace {

// Writes down the modem lines that are set and cleared.
class RecordingSystem final : public SerialSystem {
 public:
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (request == TIOCMBIS || request == TIOCMBIC) {
      lines[*static_cast<int*>(argument)] = request == TIOCMBIS;
      return 0;
    }
    if (request == TIOCEXCL) exclusive = true;
    return SerialSystem::ioctl(fd, request, argument);
  }
  std::map<int, bool> lines;
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

TEST(SerialLink, LinePolicyIsTheBoards) {
  asio::io_context io;
  test::PtyPair pty(io);
  RecordingSystem system;
  SerialConfig config;
  config.dtr = true;
  config.rts = false;
  auto port = SerialLink::open(io, pty.path(), config, system);
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE(system.exclusive);
  EXPECT_EQ(system.lines, (std::map<int, bool>{{TIOCM_DTR, true}, {TIOCM_RTS, false}}));
}

TEST(SerialLink, AnySpeed) {
  asio::io_context io;
  test::PtyPair pty(io);
  // 250000 and 5000000 have no termios constant.
  for (const std::uint32_t baud : {115200u, 250000u, 921600u, 1234567u, 5000000u}) {
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

TEST(SerialLink, HangUpEndsTheReadOnceAndDoesNotSpin) {
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

TEST(SerialLink, WhatTheTtyEchoedBeforeRawModeIsDiscarded) {
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

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "link/serial_link.h"
#include "link/tcp_link.h"
#include "runner_fixture.h"
#include "support/certificates.h"
#include "support/sim_board.h"

namespace odt::session {
namespace {

using asio::ip::tcp;

TEST_F(RunnerTest, SerialPortComesOnlineWithOneOpen) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  EXPECT_EQ(host_.endpoints[0], pty.path());
  EXPECT_TRUE(host_.seen(model::PortState::kOnline));
  EXPECT_EQ(board->hellos, 1);
}

TEST_F(RunnerTest, Report21_ModemManagerProbesBeforeUsDoNoHarm) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  const int prober = ::open(pty.path().c_str(), O_RDWR | O_NOCTTY);
  ASSERT_GE(prober, 0);
  ASSERT_GT(::write(prober, "AT\rATE1\r\x7e\x7e~~", 12), 0);
  test::run_for(io_, milliseconds(20));
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  ::close(prober);
}

TEST_F(RunnerTest, LockedPortIsSaidAndTakenWhenFree) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  auto other = link::SerialLink::open(io_, pty.path(), {});
  ASSERT_TRUE(other.ok());
  run_endpoint(pty.path());
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kLocked); }));
  EXPECT_EQ(host_.reasons.back().code, "PORT_LOCKED");
  EXPECT_NE(host_.reasons.back().text.find(pty.path()), std::string::npos);
  EXPECT_EQ(host_.sessions, 0);
  (*other)->close();
  EXPECT_TRUE(online(1));
}

TEST_F(RunnerTest, SilentPortIsSaidAndTriedForEver) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  board->mute = true;
  run_endpoint(pty.path());
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kSilent); }));
  // Three for each speed of the list.
  EXPECT_GE(board->count(FRAME_HELLO), 6);
  board->mute = false;
  EXPECT_TRUE(online(1));
}

TEST_F(RunnerTest, Report22_GarbageIsAnotherSpeedAndTheNextIsTried) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  board->drop_hellos = 1000;
  run_endpoint(pty.path());
  std::string garbage;
  for (int i = 0; i < 4000; ++i) garbage.push_back(static_cast<char>(0x81 + i * 7 % 0x7e));
  // At each speed the board answers in its own.
  int hellos = 0;
  ASSERT_TRUE(test::run_until(io_, [&] {
    if (const int n = board->count(FRAME_HELLO); n > hellos) {
      hellos = n;
      board->send_raw(garbage);
    }
    return host_.seen(model::PortState::kBaudMismatchSuspected);
  }));
  board->drop_hellos = 0;
  EXPECT_TRUE(online(1));
}

TEST_F(RunnerTest, HangUpIsSeenAtOnceAndAnotherPortWithTheNameIsTaken) {
  const std::string name =
      (std::filesystem::temp_directory_path() / ("odt_port_" + std::to_string(::getpid())))
          .string();
  auto pty = std::make_unique<test::PtyPair>(io_);
  std::filesystem::remove(name);
  std::filesystem::create_symlink(pty->path(), name);
  auto board = board_on(*pty);
  run_endpoint(name);
  ASSERT_TRUE(online(1));
  for (int round = 2; round <= 4; ++round) {
    const auto before = std::chrono::steady_clock::now();
    std::filesystem::remove(name);
    board->hang_up();
    pty->hang_up();
    ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == round - 1; }));
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
    ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kGone); }));
    pty = std::make_unique<test::PtyPair>(io_);
    std::filesystem::create_symlink(pty->path(), name);
    board = board_on(*pty);
    ASSERT_TRUE(online(round));
  }
  std::filesystem::remove(name);
}

TEST_F(RunnerTest, MissingPortIsGoneAndFoundWhenItComes) {
  run_endpoint("/dev/no-such-port");
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kGone); }));
}

TEST_F(RunnerTest, BadEndpointIsSaidOnce) {
  for (const char* endpoint : {"tcp:", "tcp:host", "tcp::5", "tcp:host:"}) {
    test::RecordingHost host;
    auto runner = make_link_runner(io_, clock_, endpoint, options_, host);
    runner->start();
    ASSERT_TRUE(test::run_until(io_, [&] { return !host.states.empty(); })) << endpoint;
    EXPECT_EQ(host.states[0], model::PortState::kError) << endpoint;
    test::run(io_, runner->stop());
    EXPECT_EQ(host.states.size(), 1u) << endpoint;
  }
}

TEST_F(RunnerTest, DialsAgainForEver) {
  const std::uint16_t port = test::free_port();
  run_endpoint("tcp:127.0.0.1:" + std::to_string(port));
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.states.size() >= 4; }));
  EXPECT_TRUE(host_.seen(model::PortState::kError));
  auto acceptor = link::listen_tcp(io_, "127.0.0.1", port, false);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  std::vector<std::shared_ptr<test::ScriptedBoard>> boards;
  const auto accept = [&] {
    acceptor->async_accept([&](boost::system::error_code ec, tcp::socket socket) {
      if (ec) return;
      boards.push_back(
          std::make_shared<test::ScriptedBoard>(io_, link::make_tcp_link(std::move(socket), "in")));
      boards.back()->start();
    });
  };
  accept();
  ASSERT_TRUE(online(1));
  accept();
  boards[0]->hang_up();
  ASSERT_TRUE(online(2));
}

TEST_F(RunnerTest, QuarantinedBoardGetsNothingButBye) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  host_.accept = false;
  run_endpoint(pty.path());
  ASSERT_TRUE(test::run_until(io_, [&] { return board->byes >= 1; }));
  EXPECT_EQ(board->requests, 0);
  EXPECT_EQ(board->pings, 0);
}

TEST_F(RunnerTest, StopIsIdempotentAndSaysBye) {
  test::PtyPair pty(io_);
  const auto board = board_on(pty);
  run_endpoint(pty.path());
  ASSERT_TRUE(online(1));
  test::run(io_, runner_->stop());
  test::run(io_, runner_->stop());
  test::run_for(io_, milliseconds(20));
  EXPECT_EQ(board->byes, 1);
  EXPECT_EQ(sink_.closed, 1);
  EXPECT_TRUE(link::SerialLink::open(io_, pty.path(), {}).ok()) << "the port is free again";
}

TEST_F(RunnerTest, StopBeforeStart) {
  auto runner = make_link_runner(io_, clock_, "/dev/null", options_, host_);
  test::run(io_, runner->stop());
}

class ListenerTest : public RunnerTest {
 protected:
  void listen(int max_pending = 64) {
    port_ = test::free_port();
    auto made = make_tcp_listener(io_, clock_, "127.0.0.1", port_, options_, host_, max_pending);
    ASSERT_TRUE(made.ok()) << made.status();
    runner_ = *std::move(made);
    runner_->start();
  }
  std::shared_ptr<test::ScriptedBoard> dial() {
    auto link =
        test::run(io_, link::dial_tcp(io_, "127.0.0.1", std::to_string(port_), milliseconds(1000)));
    EXPECT_TRUE(link.ok()) << link.status();
    auto board = std::make_shared<test::ScriptedBoard>(io_, *link);
    board->start();
    return board;
  }
  std::uint16_t port_ = 0;
};

TEST_F(ListenerTest, BoardsThatDialInAreSpokenTo) {
  listen();
  const auto board = dial();
  ASSERT_TRUE(online(1));
  EXPECT_EQ(host_.endpoints[0].rfind("tcp-in:127.0.0.1:", 0), 0u);
  EXPECT_TRUE(test::run(io_, host_.session->get_state(false)).ok());
  const auto second = dial();
  second->uid = "board-02";
  ASSERT_TRUE(online(2));
  board->hang_up();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
}

TEST_F(ListenerTest, SilentConnectionIsClosedAtTheDeadline) {
  options_.hello_deadline = milliseconds(100);
  listen();
  asio::io_context other;
  tcp::socket socket(io_);
  socket.connect({asio::ip::address_v4::loopback(), port_});
  bool closed = false;
  char buffer[512];
  std::function<void()> read = [&] {
    socket.async_read_some(asio::buffer(buffer), [&](boost::system::error_code ec, std::size_t) {
      closed = static_cast<bool>(ec);
      if (!ec) read();
    });
  };
  read();
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(test::run_until(
      io_, [&] { return closed; }, milliseconds(2000)));
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(90));
  EXPECT_EQ(host_.sessions, 0);
}

TEST_F(ListenerTest, TooManyWithoutHelloAreTurnedAway) {
  options_.hello_deadline = milliseconds(5000);
  listen(2);
  std::vector<std::unique_ptr<tcp::socket>> mute;
  for (int i = 0; i < 2; ++i) {
    mute.push_back(std::make_unique<tcp::socket>(io_));
    mute.back()->connect({asio::ip::address_v4::loopback(), port_});
  }
  test::run_for(io_, milliseconds(50));
  tcp::socket third(io_);
  third.connect({asio::ip::address_v4::loopback(), port_});
  bool closed = false;
  char buffer[64];
  third.async_read_some(asio::buffer(buffer), [&](boost::system::error_code ec, std::size_t) {
    closed = static_cast<bool>(ec);
  });
  ASSERT_TRUE(test::run_until(
      io_, [&] { return closed; }, milliseconds(1000)));
  mute.clear();
  test::run_for(io_, milliseconds(50));
  const auto board = dial();
  EXPECT_TRUE(online(1));
}

TEST_F(ListenerTest, Report23_SilentConnectionsMakeRoomForABoard) {
  options_.hello_deadline = std::chrono::hours(1);
  options_.make_room = milliseconds(0);
  listen(2);
  std::vector<std::unique_ptr<tcp::socket>> mute;
  for (int i = 0; i < 20; ++i) {
    mute.push_back(std::make_unique<tcp::socket>(io_));
    mute.back()->connect({asio::ip::address_v4::loopback(), port_});
  }
  const auto board = dial();
  ASSERT_TRUE(online(1));
  ASSERT_EQ(host_.refusals.size(), 1u) << "one line, however many they are";
  EXPECT_EQ(host_.refusals[0].code, "TOO_MANY_CONNECTIONS");
  EXPECT_NE(host_.refusals[0].text.find("limit 2"), std::string::npos) << host_.refusals[0].text;
}

TEST_F(ListenerTest, Report23_ATlsHandshakeThatStallsMakesRoom) {
  test::Certificates pki;
  link::TlsFiles files;
  files.psk = pki.write("keys", "gateway-1:" + std::string(64, 'a') + "\n");
  options_.tls = *link::make_tls_context(files, link::TlsSide::kListen);
  options_.hello_deadline = std::chrono::hours(1);
  options_.make_room = milliseconds(0);
  listen(1);
  tcp::socket stalled(io_), second(io_);
  stalled.connect({asio::ip::address_v4::loopback(), port_});
  bool closed = false;
  char buffer[64];
  stalled.async_read_some(asio::buffer(buffer), [&](boost::system::error_code ec, std::size_t) {
    closed = static_cast<bool>(ec);
  });
  test::run_for(io_, milliseconds(20));
  EXPECT_FALSE(closed) << "alone it has its time";
  second.connect({asio::ip::address_v4::loopback(), port_});
  ASSERT_TRUE(test::run_until(io_, [&] { return closed; }));
  second.close();
}

TEST_F(ListenerTest, Report23_ConnectionsThatAnswerAreBoundedToo) {
  options_.max_open = 2;
  listen();
  const auto first = dial();
  ASSERT_TRUE(online(1));
  const auto second = dial();
  second->uid = "board-02";
  ASSERT_TRUE(online(2));
  tcp::socket third(io_);
  third.connect({asio::ip::address_v4::loopback(), port_});
  bool closed = false;
  char buffer[64];
  third.async_read_some(asio::buffer(buffer), [&](boost::system::error_code ec, std::size_t) {
    closed = static_cast<bool>(ec);
  });
  ASSERT_TRUE(test::run_until(io_, [&] { return closed; }));
  ASSERT_EQ(host_.refusals.size(), 1u);
  EXPECT_NE(host_.refusals[0].text.find("2 connections are open"), std::string::npos)
      << host_.refusals[0].text;
  first->hang_up();
  ASSERT_TRUE(test::run_until(io_, [&] { return sink_.closed == 1; }));
  test::run_for(io_, milliseconds(50));
  const auto fourth = dial();
  fourth->uid = "board-04";
  EXPECT_TRUE(online(3));
}

TEST_F(ListenerTest, AStopDoesNotWaitForASilentTlsClient) {
  test::Certificates pki;
  link::TlsFiles files;
  files.psk = pki.write("keys", "gateway-1:" + std::string(64, 'a') + "\n");
  options_.tls = *link::make_tls_context(files, link::TlsSide::kListen);
  options_.hello_deadline = std::chrono::hours(1);
  listen(1);
  tcp::socket silent(io_), second(io_);
  silent.connect({asio::ip::address_v4::loopback(), port_});
  second.connect({asio::ip::address_v4::loopback(), port_});
  // One may be pending: once the second is turned away, the first is in its handshake.
  bool closed = false;
  char buffer[64];
  second.async_read_some(asio::buffer(buffer), [&](boost::system::error_code ec, std::size_t) {
    closed = static_cast<bool>(ec);
  });
  ASSERT_TRUE(test::run_until(io_, [&] { return closed; }));
  test::run(io_, runner_->stop());
  // What it says now reaches nobody.
  silent.close();
  test::run_for(io_, milliseconds(20));
  EXPECT_EQ(host_.sessions, 0);
}

TEST_F(ListenerTest, PortInUseAndOpenAddressAreRefused) {
  listen();
  const auto again = make_tcp_listener(io_, clock_, "127.0.0.1", port_, options_, host_);
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  const auto open = make_tcp_listener(io_, clock_, "0.0.0.0", 0, options_, host_);
  EXPECT_TRUE(absl::IsFailedPrecondition(open.status())) << open.status();
  options_.insecure_tcp = true;
  EXPECT_TRUE(make_tcp_listener(io_, clock_, "0.0.0.0", 0, options_, host_).ok());
}

}  // namespace
}  // namespace odt::session

#include "link/tcp_link.h"

#include <gtest/gtest.h>

#include "support/run_io.h"
#include "support/sim_board.h"

namespace odt::link {
namespace {

using asio::ip::tcp;

TEST(TcpLink, DialsReadsWritesAndEnds) {
  asio::io_context io;
  auto acceptor = listen_tcp(io, "127.0.0.1", 0, false);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const std::uint16_t port = acceptor->local_endpoint().port();
  std::shared_ptr<ByteLink> accepted;
  acceptor->async_accept([&](boost::system::error_code ec, tcp::socket socket) {
    if (!ec) accepted = make_tcp_link(std::move(socket), "in");
  });
  auto dialled = test::run(
      io, dial_tcp(io, "127.0.0.1", std::to_string(port), std::chrono::milliseconds(1000)));
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  ASSERT_TRUE(test::run_until(io, [&] { return accepted != nullptr; }));
  EXPECT_FALSE((*dialled)->lossy());
  const std::string hello = "hello";
  ASSERT_TRUE(test::run(io, (*dialled)->write(asio::buffer(hello))).ok());
  char buffer[16] = {};
  const auto n = test::run(io, accepted->read(asio::buffer(buffer)));
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(std::string(buffer, *n), "hello");
  accepted->close();
  const auto end = test::run(io, (*dialled)->read(asio::buffer(buffer)));
  EXPECT_TRUE(absl::IsUnavailable(end.status())) << end.status();
  accepted->close();
}

TEST(TcpLink, CloseEndsAPendingRead) {
  asio::io_context io;
  auto acceptor = listen_tcp(io, "127.0.0.1", 0, false);
  ASSERT_TRUE(acceptor.ok());
  auto dialled =
      test::run(io, dial_tcp(io, "127.0.0.1", std::to_string(acceptor->local_endpoint().port()),
                             std::chrono::milliseconds(1000)));
  ASSERT_TRUE(dialled.ok());
  asio::steady_timer timer(io, std::chrono::milliseconds(20));
  timer.async_wait([link = *dialled](boost::system::error_code) { link->close(); });
  char buffer[4];
  EXPECT_TRUE(absl::IsUnavailable(test::run(io, (*dialled)->read(asio::buffer(buffer))).status()));
}

TEST(TcpLink, RefusedAndBadPort) {
  asio::io_context io;
  const auto refused = test::run(io, dial_tcp(io, "127.0.0.1", std::to_string(test::free_port()),
                                              std::chrono::milliseconds(1000)));
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  for (const char* port : {"", "0", "65536", "12x", "-1"}) {
    const auto bad = test::run(io, dial_tcp(io, "127.0.0.1", port, std::chrono::milliseconds(100)));
    EXPECT_TRUE(absl::IsInvalidArgument(bad.status())) << port;
  }
}

TEST(TcpListen, RefusesWhatIsNotLoopback) {
  asio::io_context io;
  for (const char* address : {"0.0.0.0", "::", "192.0.2.1"}) {
    const auto refused = listen_tcp(io, address, 0, false);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
    EXPECT_NE(refused.status().message().find("insecure_tcp"), std::string::npos);
  }
  EXPECT_TRUE(listen_tcp(io, "0.0.0.0", 0, true).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(listen_tcp(io, "localhost;rm", 0, false).status()));
}

TEST(TcpListen, PortInUse) {
  asio::io_context io;
  auto first = listen_tcp(io, "127.0.0.1", 0, false);
  ASSERT_TRUE(first.ok());
  const std::uint16_t port = first->local_endpoint().port();
  const auto second = listen_tcp(io, "127.0.0.1", port, false);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_NE(second.status().message().find(std::to_string(port)), std::string::npos);
}

}  // namespace
}  // namespace odt::link

#include "link/tcp_link.h"
#include "link/tls.h"
#include "sim_session.h"
#include "support/certificates.h"

// odt-sim-board speaks plain TCP; a gateway of the test's own puts TLS in front of it.
namespace odt {
namespace {

using asio::ip::tcp;
using link::ByteLink;

asio::awaitable<void> copy(std::shared_ptr<ByteLink> from, std::shared_ptr<ByteLink> to) {
  char buffer[2048];
  for (;;) {
    const Result<std::size_t> n = co_await from->read(asio::buffer(buffer));
    if (!n.ok()) break;
    const Status written = co_await to->write(asio::buffer(buffer, *n));
    if (!written.ok()) break;
  }
  from->close();
  to->close();
}

class TlsSession : public SimSession {
 protected:
  TlsSession() {
    pki_.issue("odtd");
    pki_.issue("gateway", "gateway.example");
  }
  std::shared_ptr<link::TlsContext> context(const std::string& name, link::TlsSide side) {
    link::TlsFiles files;
    files.cert = pki_.cert(name);
    files.key = pki_.key(name);
    files.peer_ca = pki_.ca();
    auto made = link::make_tls_context(files, side);
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }
  void join(std::shared_ptr<ByteLink> a, std::shared_ptr<ByteLink> b) {
    asio::co_spawn(io_, copy(a, b), asio::detached);
    asio::co_spawn(io_, copy(b, a), asio::detached);
  }
  std::shared_ptr<ByteLink> to_board(std::uint16_t port) {
    auto link =
        test::run(io_, link::dial_tcp(io_, "127.0.0.1", std::to_string(port), milliseconds(2000)));
    EXPECT_TRUE(link.ok()) << link.status();
    return *link;
  }
  asio::awaitable<void> serve(tcp::acceptor acceptor, std::uint16_t board,
                              std::shared_ptr<link::TlsContext> tls) {
    for (;;) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      const auto in =
          co_await link::accept_tls(io_, std::move(socket), tls, "gateway", milliseconds(2000));
      const auto out =
          co_await link::dial_tcp(io_, "127.0.0.1", std::to_string(board), milliseconds(2000));
      if (in.ok() && out.ok()) join(*in, *out);
    }
  }
  std::uint16_t start_gateway(std::uint16_t board) {
    auto acceptor = link::listen_tcp(io_, "127.0.0.1", 0, false);
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    const std::uint16_t port = acceptor->local_endpoint().port();
    asio::co_spawn(io_,
                   serve(*std::move(acceptor), board, context("gateway", link::TlsSide::kListen)),
                   asio::detached);
    return port;
  }
  test::Certificates pki_;
};

TEST_F(TlsSession, TrainsThroughAGatewayThatDialsIn) {
  options_.tls = context("odtd", link::TlsSide::kListen);
  const std::uint16_t port = test::free_port();
  // Beyond this machine, for it is TLS.
  auto listener = session::make_tcp_listener(io_, clock_, "0.0.0.0", port, options_, host_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  runner_ = *std::move(listener);
  runner_->start();
  const auto board = to_board(start_tcp_board());
  auto up = test::run(io_, link::dial_tls(io_, "127.0.0.1", std::to_string(port),
                                          context("gateway", link::TlsSide::kDial), "localhost",
                                          milliseconds(2000)));
  ASSERT_TRUE(up.ok()) << up.status();
  join(board, *up);
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.online(); }));
  EXPECT_EQ(host_.endpoints[0].rfind("tls-in:127.0.0.1:", 0), 0u);
  train_golden_epoch();
}

TEST_F(TlsSession, TrainsThroughAGatewayThatIsDialled) {
  options_.tls = context("odtd", link::TlsSide::kDial);
  options_.tls_name = "gateway.example";
  const std::uint16_t gateway = start_gateway(start_tcp_board());
  connect("tls:127.0.0.1:" + std::to_string(gateway));
  train_golden_epoch();
}

TEST_F(TlsSession, AGatewayOfAnotherNameIsAnErrorOfThePort) {
  options_.tls = context("odtd", link::TlsSide::kDial);
  options_.tls_name = "other.example";
  const std::uint16_t gateway = start_gateway(start_tcp_board());
  runner_ = session::make_link_runner(io_, clock_, "tls:127.0.0.1:" + std::to_string(gateway),
                                      options_, host_);
  runner_->start();
  ASSERT_TRUE(test::run_until(io_, [&] { return host_.seen(model::PortState::kError); }));
  EXPECT_NE(host_.reasons.back().text.find("ostname mismatch"), std::string::npos)
      << host_.reasons.back().text;
  EXPECT_EQ(host_.sessions, 0);
}

TEST_F(TlsSession, WhoHasNoCertificateIsToldOfAndGetsNoHello) {
  struct Host final : session::LinkHost {
    bool on_session(const std::string&, std::shared_ptr<session::BoardSession>) override {
      ++sessions;
      return false;
    }
    void on_port_state(const std::string&, model::PortState, const model::Reason&) override {}
    void on_refused(const std::string& endpoint, const model::Reason& reason) override {
      refused.push_back(endpoint + " " + reason.code + " " + reason.text);
    }
    int sessions = 0;
    std::vector<std::string> refused;
  } host;
  options_.tls = context("odtd", link::TlsSide::kListen);
  options_.hello_deadline = milliseconds(300);
  const std::uint16_t port = test::free_port();
  auto listener = session::make_tcp_listener(io_, clock_, "127.0.0.1", port, options_, host);
  ASSERT_TRUE(listener.ok()) << listener.status();
  (*listener)->start();
  // A board without TLS: it is silent until spoken to, so the deadline ends it.
  board_ = test::ChildProcess({test::sim_board_binary(), "--uid", "00112233445566778899aabb",
                               "--connect", "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(test::run_until(io_, [&] { return !host.refused.empty(); }));
  EXPECT_NE(host.refused[0].find("TLS_REFUSED"), std::string::npos) << host.refused[0];
  EXPECT_NE(host.refused[0].find("no TLS handshake"), std::string::npos) << host.refused[0];
  EXPECT_EQ(host.sessions, 0);
  board_.end();
  test::run(io_, (*listener)->stop());
}

}  // namespace
}  // namespace odt

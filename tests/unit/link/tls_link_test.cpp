#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "link/tcp_link.h"
#include "link/tls.h"
#include "support/certificates.h"
#include "support/run_io.h"
#include "support/sim_board.h"

namespace odt::link {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

const std::string kKey(64, 'a');
const std::string kOtherKey(64, 'b');

// One handshake over a real socket; both ends are ours unless a test says otherwise.
class TlsLinkTest : public testing::Test {
 protected:
  TlsLinkTest() {
    pki_.issue("odtd");
    pki_.issue("board", "board.example");
  }
  TlsFiles files(const std::string& name) const {
    TlsFiles f;
    f.cert = pki_.cert(name);
    f.key = pki_.key(name);
    f.peer_ca = pki_.ca();
    return f;
  }
  TlsFiles psk(const std::string& name, const std::string& text) {
    TlsFiles f;
    f.psk = pki_.write(name, text);
    return f;
  }

  // Listens for one connection.
  void listen(const TlsFiles& f) {
    auto context = make_tls_context(f, TlsSide::kListen);
    ASSERT_TRUE(context.ok()) << context.status();
    auto acceptor = listen_tcp(io_, "127.0.0.1", 0, false);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    port_ = acceptor->local_endpoint().port();
    asio::co_spawn(io_, serve(*std::move(acceptor), *context),
                   [](std::exception_ptr error) { ASSERT_EQ(error, nullptr); });
  }
  asio::awaitable<void> serve(tcp::acceptor acceptor, std::shared_ptr<TlsContext> context) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    auto link = co_await accept_tls(io_, std::move(socket), context, "in", milliseconds(500));
    accepted_ = link;
    served_ = true;
  }
  Result<std::shared_ptr<ByteLink>> dial(const TlsFiles& f, const std::string& name = "localhost") {
    auto context = make_tls_context(f, TlsSide::kDial);
    if (!context.ok()) return context.status();
    return test::run(
        io_, dial_tls(io_, "127.0.0.1", std::to_string(port_), *context, name, milliseconds(1000)));
  }
  bool served() {
    return test::run_until(io_, [&] { return served_; });
  }
  // Both ends are up, and bytes of all values pass both ways.
  void expect_talk(const std::shared_ptr<ByteLink>& ours) {
    ASSERT_TRUE(served());
    ASSERT_TRUE(accepted_.ok()) << accepted_.status();
    std::string all;
    for (int i = 0; i < 5000; ++i) all.push_back(static_cast<char>(i * 7));
    for (const auto& [from, to] : {std::pair(ours, *accepted_), std::pair(*accepted_, ours)}) {
      ASSERT_TRUE(test::run(io_, from->write(asio::buffer(all))).ok());
      std::string got;
      char buffer[4096];
      while (got.size() < all.size()) {
        const auto n = test::run(io_, to->read(asio::buffer(buffer)));
        ASSERT_TRUE(n.ok()) << n.status();
        got.append(buffer, *n);
      }
      EXPECT_EQ(got, all);
    }
  }
  // The listener refuses, and says what is in `part`.
  void expect_refused(const std::string& part) {
    ASSERT_TRUE(served());
    ASSERT_FALSE(accepted_.ok());
    EXPECT_TRUE(absl::IsUnavailable(accepted_.status()));
    EXPECT_NE(accepted_.status().message().find(part), std::string_view::npos)
        << accepted_.status();
  }

  asio::io_context io_;
  test::Certificates pki_;
  std::uint16_t port_ = 0;
  bool served_ = false;
  Result<std::shared_ptr<ByteLink>> accepted_ = absl::UnknownError("nobody came");
};

TEST_F(TlsLinkTest, BothEndsByCertificate) {
  listen(files("odtd"));
  const auto link = dial(files("board"));
  ASSERT_TRUE(link.ok()) << link.status();
  expect_talk(*link);
  (*link)->close();
  char buffer[4];
  const auto end = test::run(io_, (*accepted_)->read(asio::buffer(buffer)));
  EXPECT_TRUE(absl::IsUnavailable(end.status())) << end.status();
}

TEST_F(TlsLinkTest, BothEndsBySharedKey) {
  listen(psk("keys", "# gateways\nother:" + kOtherKey + "\ngateway-1:" + kKey + "\n"));
  const auto link = dial(psk("mine", "gateway-1:" + kKey + "\n"));
  ASSERT_TRUE(link.ok()) << link.status();
  expect_talk(*link);
}

TEST_F(TlsLinkTest, AListenerTakesBoth) {
  TlsFiles both = files("odtd");
  both.psk = pki_.write("keys", "gateway-1:" + kKey + "\n");
  listen(both);
  const auto by_key = dial(psk("mine", "gateway-1:" + kKey + "\n"));
  ASSERT_TRUE(by_key.ok()) << by_key.status();
  expect_talk(*by_key);
  served_ = false;
  listen(both);
  const auto by_certificate = dial(files("board"));
  ASSERT_TRUE(by_certificate.ok()) << by_certificate.status();
  expect_talk(*by_certificate);
}

TEST_F(TlsLinkTest, AKeyThatIsNotOursIsRefused) {
  listen(psk("keys", "gateway-1:" + kKey + "\n"));
  EXPECT_FALSE(dial(psk("wrong", "gateway-1:" + kOtherKey + "\n")).ok());
  expect_refused("another key");
  served_ = false;
  listen(psk("keys", "gateway-1:" + kKey + "\n"));
  EXPECT_FALSE(dial(psk("stranger", "gateway-2:" + kKey + "\n")).ok());
  expect_refused("none of the shared keys");
}

TEST_F(TlsLinkTest, ADiallerWithAKeyOnlyTrustsNoCertificate) {
  listen(files("odtd"));
  const auto link = dial(psk("mine", "gateway-1:" + kKey + "\n"));
  ASSERT_FALSE(link.ok());
  EXPECT_NE(link.status().message().find("only shared keys are set up"), std::string_view::npos)
      << link.status();
}

TEST_F(TlsLinkTest, CertificatesOfAnotherCaAreRefused) {
  test::Certificates other;
  other.issue("board");
  TlsFiles stranger = files("board");
  stranger.cert = other.cert("board");
  stranger.key = other.key("board");
  listen(files("odtd"));
  const auto link = dial(stranger);  // in TLS 1.3 the dialler may be done before it is refused
  expect_refused("must be signed by " + pki_.ca());
  if (link.ok()) {
    char buffer[4];
    const auto end = test::run(io_, (*link)->read(asio::buffer(buffer)));
    ASSERT_FALSE(end.ok());
    EXPECT_NE(end.status().message().find("alert"), std::string_view::npos) << end.status();
  }
  served_ = false;
  stranger = files("board");
  stranger.peer_ca = other.ca();
  listen(files("odtd"));
  const auto refusing = dial(stranger);
  ASSERT_FALSE(refusing.ok());
  EXPECT_NE(refusing.status().message().find("signed by " + other.ca()), std::string_view::npos)
      << refusing.status();
  expect_refused("alert");
}

TEST_F(TlsLinkTest, ACertificateForAnotherNameIsRefused) {
  listen(files("odtd"));
  const auto link = dial(files("board"), "gateway.example");
  ASSERT_FALSE(link.ok());
  EXPECT_NE(link.status().message().find("ostname mismatch"), std::string_view::npos)
      << link.status();
  served_ = false;
  pki_.issue("here", "127.0.0.1");
  listen(files("here"));
  EXPECT_TRUE(dial(files("board"), "").ok()) << "the address that was dialled";
}

// A zone or a name too long for DNS: without a name to look for any certificate would do.
TEST_F(TlsLinkTest, ANameThatNoCertificateCanHaveIsRefused) {
  for (const std::string& name : {std::string("fe80::1%1"), std::string(300, 'a')}) {
    served_ = false;
    listen(files("odtd"));
    const auto link = dial(files("board"), name);
    EXPECT_TRUE(absl::IsInvalidArgument(link.status())) << link.status();
    EXPECT_NE(link.status().message().find("'" + name + "' is no name"), std::string_view::npos)
        << link.status();
    ASSERT_TRUE(served());
    EXPECT_FALSE(accepted_.ok());
  }
}

TEST_F(TlsLinkTest, PlainTcpAndSilenceAreRefused) {
  listen(files("odtd"));
  auto plain =
      test::run(io_, dial_tcp(io_, "127.0.0.1", std::to_string(port_), milliseconds(1000)));
  ASSERT_TRUE(plain.ok());
  const std::string hello("\0\0\x05hello, this is no TLS at all", 32);
  ASSERT_TRUE(test::run(io_, (*plain)->write(asio::buffer(hello))).ok());
  expect_refused("does not speak TLS");
  served_ = false;
  listen(files("odtd"));
  auto silent =
      test::run(io_, dial_tcp(io_, "127.0.0.1", std::to_string(port_), milliseconds(1000)));
  ASSERT_TRUE(silent.ok());
  expect_refused("no TLS handshake within 500 ms");
}

// Another implementation's command line is the peer.
class OpensslClient : public TlsLinkTest {
 protected:
  test::ChildProcess client(std::vector<std::string> more) {
    more.insert(more.begin(), {"/usr/bin/openssl", "s_client", "-quiet", "-verify_quiet",
                               "-connect", "127.0.0.1:" + std::to_string(port_)});
    return test::ChildProcess(more);
  }
};

TEST_F(OpensslClient, WithACertificate) {
  listen(files("odtd"));
  auto peer = client({"-tls1_3", "-CAfile", pki_.ca(), "-verify_return_error", "-verify_hostname",
                      "localhost", "-cert", pki_.cert("board"), "-key", pki_.key("board")});
  ASSERT_TRUE(served());
  ASSERT_TRUE(accepted_.ok()) << accepted_.status();
  const std::string line = "from odtd\n";
  ASSERT_TRUE(test::run(io_, (*accepted_)->write(asio::buffer(line))).ok());
  EXPECT_EQ(peer.read_line(5000), "from odtd");
}

TEST_F(OpensslClient, WithASharedKey) {
  listen(psk("keys", "gateway-1:" + kKey + "\n"));
  auto peer = client({"-tls1_3", "-psk_identity", "gateway-1", "-psk", kKey});
  ASSERT_TRUE(served());
  ASSERT_TRUE(accepted_.ok()) << accepted_.status();
  const std::string line = "from odtd\n";
  ASSERT_TRUE(test::run(io_, (*accepted_)->write(asio::buffer(line))).ok());
  EXPECT_EQ(peer.read_line(5000), "from odtd");
}

TEST_F(OpensslClient, WithoutACertificateIsRefused) {
  listen(files("odtd"));
  auto peer = client({"-tls1_3"});
  expect_refused("showed no certificate");
}

TEST_F(OpensslClient, WithTls12IsRefused) {
  listen(files("odtd"));
  auto peer = client({"-tls1_2", "-cert", pki_.cert("board"), "-key", pki_.key("board")});
  expect_refused("speaks no TLS 1.3");
}

TEST_F(OpensslClient, WithAnExpiredCertificateIsRefused) {
  pki_.issue("old", "board.example", {-7200, -3600});
  listen(files("odtd"));
  auto peer = client({"-tls1_3", "-cert", pki_.cert("old"), "-key", pki_.key("old")});
  expect_refused("certificate has expired");
}

class TlsFilesTest : public TlsLinkTest {
 protected:
  void expect(const TlsFiles& f, absl::StatusCode code, const std::vector<std::string>& parts,
              TlsSide side = TlsSide::kListen) {
    const auto made = make_tls_context(f, side);
    EXPECT_EQ(made.status().code(), code) << made.status();
    for (const std::string& part : parts)
      EXPECT_NE(made.status().message().find(part), std::string_view::npos)
          << made.status() << "\nlacks: " << part;
  }
};

TEST_F(TlsFilesTest, WhatIsMissingIsSaid) {
  TlsFiles f = files("odtd");
  f.cert = "/no/such/cert.pem";
  expect(f, absl::StatusCode::kNotFound, {"boards.tls_cert", f.cert, "No such file"});
  f = files("odtd");
  f.key.clear();
  expect(f, absl::StatusCode::kFailedPrecondition, {"tls_cert and boards.tls_key go together"});
  f = files("odtd");
  f.peer_ca.clear();
  expect(f, absl::StatusCode::kFailedPrecondition, {"boards.tls_client_ca", "anybody"});
  expect({}, absl::StatusCode::kFailedPrecondition, {"tls_psk_file"}, TlsSide::kDial);
}

TEST_F(TlsFilesTest, WhatIsWrongIsSaid) {
  TlsFiles f = files("odtd");
  f.cert = pki_.write("text", "not a certificate\n");
  expect(f, absl::StatusCode::kInvalidArgument, {"boards.tls_cert", "not a certificate in PEM"});
  f = files("odtd");
  f.key = pki_.key("board");
  expect(f, absl::StatusCode::kFailedPrecondition, {"boards.tls_key", "is not the key of", f.cert});
  f = files("odtd");
  f.key = pki_.write("text", "not a key\n");
  expect(f, absl::StatusCode::kInvalidArgument, {"boards.tls_key", "not a private key"});
  f = files("odtd");
  f.peer_ca = pki_.write("text", "not a CA\n");
  expect(f, absl::StatusCode::kInvalidArgument, {"boards.tls_client_ca", "no certificate"});
}

TEST_F(TlsFilesTest, CertificatesOutOfTheirTimeAreRefusedAtStart) {
  pki_.issue("old", "localhost", {-7200, -3600});
  expect(files("old"), absl::StatusCode::kFailedPrecondition, {"has expired at", pki_.cert("old")});
  pki_.issue("young", "localhost", {3600, 7200});
  expect(files("young"), absl::StatusCode::kFailedPrecondition, {"not valid before", "clock"});
}

TEST_F(TlsFilesTest, ASecretThatAllMayReadIsRefused) {
  TlsFiles f = files("odtd");
  ASSERT_EQ(::chmod(f.key.c_str(), 0644), 0);
  expect(f, absl::StatusCode::kPermissionDenied, {"boards.tls_key", "chmod 600"});
  f = psk("keys", "a:" + kKey + "\n");
  ASSERT_EQ(::chmod(f.psk.c_str(), 0604), 0);
  expect(f, absl::StatusCode::kPermissionDenied, {"boards.tls_psk_file", "chmod 600"});
}

TEST_F(TlsFilesTest, BadKeysNameTheLine) {
  for (const std::string& line : {std::string("no colon"), ":" + kKey, std::string("a:abcd"),
                                  "a:" + kKey + "zz", "a:" + std::string(130, 'a')})
    expect(psk("keys", "good:" + kKey + "\n" + line + "\n"), absl::StatusCode::kInvalidArgument,
           {"keys:2:", "IDENTITY:HEX", "16 to 64 bytes"});
  expect(psk("keys", "\n# nothing\n"), absl::StatusCode::kInvalidArgument, {"has no key"});
}

}  // namespace
}  // namespace odt::link

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "link/tcp_link.h"
#include "link/tls_context.h"

namespace odt::link {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

class TlsLink final : public ByteLink {
 public:
  TlsLink(tcp::socket socket, std::shared_ptr<TlsContext> context, std::string name)
      : context_(std::move(context)),
        stream_(std::move(socket), context_->ssl),
        name_(std::move(name)) {
    set_tcp_options(stream_.next_layer());
  }

  asio::awaitable<Status> handshake() {
    const bool listens = context_->side == TlsSide::kListen;
    error_code ec;
    co_await stream_.async_handshake(
        listens ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
        asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return absl::UnavailableError(name_ + ": " + why(ec));
    co_return absl::OkStatus();
  }

  // The name that the peer's certificate must have. False: OpenSSL would look for none at all.
  [[nodiscard]] bool expect(const std::string& peer) {
    if (peer.empty()) return false;
    SSL* ssl = stream_.native_handle();
    error_code ec;
    asio::ip::make_address(peer, ec);
    const bool set = !ec ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peer.c_str()) == 1
                         : SSL_set1_host(ssl, peer.c_str()) == 1 &&
                               SSL_set_tlsext_host_name(ssl, peer.c_str()) == 1;
    if (!set) ERR_clear_error();
    return set;
  }

  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override {
    error_code ec;
    const std::size_t n =
        co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) co_return n;
    const bool ended = ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
    co_return absl::UnavailableError(name_ + ": " + (ended ? "closed by the peer" : why(ec)));
  }

  asio::awaitable<Status> write(asio::const_buffer buffer) override {
    error_code ec;
    co_await asio::async_write(stream_, asio::const_buffers_1(buffer),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return absl::UnavailableError(name_ + ": " + why(ec));
    co_return absl::OkStatus();
  }

  void close() override {
    error_code ignored;
    stream_.lowest_layer().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.lowest_layer().close(ignored);
  }

  bool lossy() const override { return false; }
  const std::string& name() const override { return name_; }

 private:
  // What OpenSSL says, in words of what to do.
  std::string why(const error_code& ec) {
    if (ec == asio::error::eof || ec == asio::ssl::error::stream_truncated) {
      return "TLS: the peer closed in the handshake; does it speak TLS 1.3, and are the keys or "
             "certificates those of this odtd?";
    }
    if (ec.category() != asio::error::get_ssl_category()) return ec.message();
    const int reason = ERR_GET_REASON(static_cast<unsigned long>(ec.value()));
    const long verify = SSL_get_verify_result(stream_.native_handle());
    if (verify != X509_V_OK) {
      return fmt::format("TLS: the peer's certificate is refused: {}{}",
                         X509_verify_cert_error_string(verify),
                         context_->peer_ca.empty() ? " (only shared keys are set up here)"
                                                   : "; it must be signed by " + context_->peer_ca);
    }
    switch (reason) {
      case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "TLS: the peer showed no certificate; it needs one signed by " + context_->peer_ca;
      case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      case SSL_R_NO_SHARED_CIPHER:
      case SSL_R_NO_CERTIFICATE_ASSIGNED:
        return "TLS: the peer knows none of the shared keys, and there is no certificate here";
      case SSL_R_BINDER_DOES_NOT_VERIFY:
        return "TLS: the peer has another key under this identity";
      case SSL_R_UNSUPPORTED_PROTOCOL:
        return "TLS: the peer speaks no TLS 1.3";
      case SSL_R_HTTP_REQUEST:
      case SSL_R_WRONG_VERSION_NUMBER:
      case SSL_R_PACKET_LENGTH_TOO_LONG:
        return "the peer does not speak TLS; boards without it go through serial or a gateway";
      default:
        return fmt::format("TLS: {}{}", ec.message(),
                           ec.message().find("alert") != std::string::npos
                               ? " (the peer refuses our certificate or key)"
                               : "");
    }
  }

  std::shared_ptr<TlsContext> context_;
  asio::ssl::stream<tcp::socket> stream_;
  std::string name_;
};

asio::awaitable<Result<std::shared_ptr<ByteLink>>> shake_hands(asio::io_context& io,
                                                               std::shared_ptr<TlsLink> link,
                                                               std::chrono::milliseconds timeout) {
  auto late = std::make_shared<bool>(false);
  asio::steady_timer timer(io, timeout);
  timer.async_wait([late, weak = std::weak_ptr<TlsLink>(link)](error_code ec) {
    if (ec) return;
    *late = true;
    if (const auto open = weak.lock()) open->close();
  });
  const Status done = co_await link->handshake();
  timer.cancel();
  if (done.ok()) co_return std::shared_ptr<ByteLink>(link);
  link->close();
  if (*late) {
    co_return absl::UnavailableError(
        fmt::format("{}: no TLS handshake within {} ms", link->name(), timeout.count()));
  }
  co_return done;
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<ByteLink>>> accept_tls(
    asio::io_context& io, tcp::socket socket, std::shared_ptr<TlsContext> context, std::string name,
    std::chrono::milliseconds timeout, std::function<void(std::weak_ptr<ByteLink>)> opened) {
  auto link = std::make_shared<TlsLink>(std::move(socket), std::move(context), std::move(name));
  if (opened) opened(link);
  Result<std::shared_ptr<ByteLink>> done = co_await shake_hands(io, link, timeout);
  co_return done;
}

asio::awaitable<Result<std::shared_ptr<ByteLink>>> dial_tls(asio::io_context& io, std::string host,
                                                            std::string port,
                                                            std::shared_ptr<TlsContext> context,
                                                            std::string peer_name,
                                                            std::chrono::milliseconds timeout) {
  const std::string name = "tls:" + host + ":" + port;
  Result<tcp::socket> socket = co_await connect_tcp(io, host, port, name, timeout);
  if (!socket.ok()) co_return socket.status();
  auto link = std::make_shared<TlsLink>(*std::move(socket), std::move(context), name);
  const std::string& peer = peer_name.empty() ? host : peer_name;
  if (!link->expect(peer)) {
    co_return absl::InvalidArgumentError(
        fmt::format("{}: '{}' is no name that a certificate can have; set tls_name", name, peer));
  }
  Result<std::shared_ptr<ByteLink>> done = co_await shake_hands(io, link, timeout);
  co_return done;
}

}  // namespace odt::link

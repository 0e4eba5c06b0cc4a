#include "link/tcp_link.h"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <charconv>

namespace odt::link {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

class TcpLink final : public ByteLink {
 public:
  TcpLink(tcp::socket socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {
    set_tcp_options(socket_);
  }

  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override {
    error_code ec;
    const std::size_t n =
        co_await socket_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::eof) co_return absl::UnavailableError(name_ + ": closed by the peer");
    if (ec) co_return absl::UnavailableError(name_ + ": " + ec.message());
    co_return n;
  }

  asio::awaitable<Status> write(asio::const_buffer buffer) override {
    error_code ec;
    co_await asio::async_write(socket_, asio::const_buffers_1(buffer),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return absl::UnavailableError(name_ + ": " + ec.message());
    co_return absl::OkStatus();
  }

  void close() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  bool lossy() const override { return false; }
  const std::string& name() const override { return name_; }

 private:
  tcp::socket socket_;
  std::string name_;
};

bool is_port(const std::string& text) {
  std::uint16_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() && value != 0;
}

// State shared by a dial and its deadline; the timer's handler may run after the dial has ended.
struct Dial {
  explicit Dial(asio::io_context& io) : resolver(io), socket(io), timer(io) {}
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  bool expired = false;
  bool done = false;
};

}  // namespace

// A peer that vanished without a FIN is seen by the session's PING long before this; keepalive only
// frees the socket of a link that nobody talks on.
void set_tcp_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int idle = 10, interval = 5, count = 3;
  const int fd = socket.native_handle();
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

asio::awaitable<Result<tcp::socket>> connect_tcp(asio::io_context& io, std::string host,
                                                 std::string port, std::string name,
                                                 std::chrono::milliseconds timeout) {
  if (!is_port(port)) {
    co_return absl::InvalidArgumentError(name + ": port must be 1..65535, got '" + port + "'");
  }
  auto dial = std::make_shared<Dial>(io);
  dial->timer.expires_after(timeout);
  dial->timer.async_wait([dial](error_code) {
    if (dial->done) return;
    dial->expired = true;
    dial->resolver.cancel();
    error_code ignored;
    dial->socket.close(ignored);
  });
  error_code ec;
  const auto found = co_await dial->resolver.async_resolve(
      host, port, asio::redirect_error(asio::use_awaitable, ec));
  if (!ec && !dial->expired) {
    co_await asio::async_connect(dial->socket, found,
                                 asio::redirect_error(asio::use_awaitable, ec));
  }
  dial->done = true;
  dial->timer.cancel();
  if (dial->expired) {
    co_return absl::UnavailableError(
        fmt::format("{}: no connection within {} ms", name, timeout.count()));
  }
  if (ec) co_return absl::UnavailableError(name + ": " + ec.message());
  co_return std::move(dial->socket);
}

asio::awaitable<Result<std::shared_ptr<ByteLink>>> dial_tcp(asio::io_context& io, std::string host,
                                                            std::string port,
                                                            std::chrono::milliseconds timeout) {
  const std::string name = "tcp:" + host + ":" + port;
  Result<tcp::socket> socket = co_await connect_tcp(io, host, port, name, timeout);
  if (!socket.ok()) co_return socket.status();
  co_return make_tcp_link(*std::move(socket), name);
}

std::shared_ptr<ByteLink> make_tcp_link(asio::ip::tcp::socket socket, std::string name) {
  return std::make_shared<TcpLink>(std::move(socket), std::move(name));
}

Result<tcp::acceptor> listen_tcp(asio::io_context& io, const std::string& address,
                                 std::uint16_t port, bool allow_any_address) {
  error_code ec;
  const auto parsed = asio::ip::make_address(address, ec);
  if (ec) {
    return absl::InvalidArgumentError("board listener: '" + address +
                                      "' is not an IP address; use 127.0.0.1 or ::1");
  }
  if (!parsed.is_loopback() && !allow_any_address) {
    return absl::FailedPreconditionError(
        "board listener: " + address +
        " is not a loopback address and boards on plain TCP are neither encrypted nor "
        "authenticated; listen on 127.0.0.1, use TLS (listen = \"tls:" +
        address + ":" + std::to_string(port) +
        "\" with boards.tls_cert or tls_psk_file), or allow it with --insecure-tcp "
        "(boards.insecure_tcp)");
  }
  const tcp::endpoint endpoint(parsed, port);
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) return acceptor;
  const std::string what = fmt::format("board listener {}:{}: {}", address, port, ec.message());
  if (ec == asio::error::address_in_use) {
    return absl::AlreadyExistsError(what + "; stop the other program or choose another port");
  }
  if (ec == asio::error::access_denied) {
    return absl::PermissionDeniedError(what + "; choose a port of 1024 or more");
  }
  return absl::UnavailableError(what);
}

}  // namespace odt::link

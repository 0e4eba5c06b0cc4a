#include "api/http_server.h"

#include <spdlog/spdlog.h>

#include "api/http_session.h"

namespace odt::api {

namespace {

// TLS 1.3; a client certificate is asked for where there is a CA, and counts only if that CA has
// signed it.
Status set_up(asio::ssl::context& context, const auth::ServerTls& tls) {
  boost::system::error_code error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
  SSL_CTX_set_session_id_context(context.native_handle(),
                                 reinterpret_cast<const unsigned char*>("odt"), 3);
  context.use_certificate_chain(asio::buffer(tls.cert_pem), error);
  if (!error) context.use_private_key(asio::buffer(tls.key_pem), asio::ssl::context::pem, error);
  if (!error && !tls.client_ca_pem.empty()) {
    context.add_certificate_authority(asio::buffer(tls.client_ca_pem), error);
    context.set_verify_mode(asio::ssl::verify_peer);
  }
  if (error) return absl::FailedPreconditionError("http: TLS: " + error.message());
  return absl::OkStatus();
}

}  // namespace

struct HttpServer::Impl {
  Impl(asio::io_context& f, HttpOptions o)
      : front(f), acceptor(f), shared(std::make_shared<HttpShared>(std::move(o))) {}

  asio::io_context& front;
  asio::ip::tcp::acceptor acceptor;
  std::shared_ptr<HttpShared> shared;
  std::chrono::steady_clock::time_point last_warning{};

  static asio::awaitable<void> accept(std::shared_ptr<Impl> self);
  void start(asio::ip::tcp::socket socket);
  bool shed_idle(bool remote);
  bool has_room(const asio::ip::tcp::socket& socket);
};

void HttpServer::Impl::start(asio::ip::tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  auto session = std::make_shared<HttpSession>(std::move(socket), shared);
  shared->sessions.insert(session);
  asio::co_spawn(front, HttpSession::run(session),
                 [keep = shared, session](std::exception_ptr failure) {
                   keep->sessions.erase(session);
                   if (!failure) return;
                   try {
                     std::rethrow_exception(failure);
                   } catch (const std::exception& error) {
                     spdlog::error("http: connection ended by {}", error.what());
                   }
                 });
}

// Makes room: of those who ask nothing, who has been silent for longest goes. False: all are at
// work. Else a few hundred silent connections would keep everybody out. remote: peers on this
// machine stay.
bool HttpServer::Impl::shed_idle(bool remote) {
  std::shared_ptr<HttpSession> longest;
  for (const auto& session : shared->sessions) {
    if (remote && session->local()) continue;
    const auto since = session->idle_since();
    if (since && (!longest || *since < *longest->idle_since())) longest = session;
  }
  if (longest) longest->close();
  return longest != nullptr;
}

// Peers on other machines leave some places to those on this one, and to each other.
bool HttpServer::Impl::has_room(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return false;
  const auto& options = shared->options;
  if (peer.address().is_loopback())
    return shared->sessions.size() < options.max_connections || shed_idle(false);
  const std::string address = peer.address().to_string();
  std::size_t remote = 0, same = 0;
  for (const auto& session : shared->sessions) {
    remote += session->local() ? 0 : 1;
    same += session->address() == address ? 1 : 0;
  }
  if (same >= options.max_of_address) return false;
  const std::size_t most =
      options.max_connections - std::min(options.max_connections / 2, options.kept_for_local);
  return remote < most || shed_idle(true);
}

asio::awaitable<void> HttpServer::Impl::accept(std::shared_ptr<Impl> self) {
  asio::steady_timer pause(self->front);
  while (self->acceptor.is_open()) {
    boost::system::error_code error;
    asio::ip::tcp::socket socket(self->front);
    co_await self->acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of descriptors: others must close first.
      spdlog::warn("http: accept: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (!self->has_room(socket)) {
      const auto now = std::chrono::steady_clock::now();
      if (now - self->last_warning >= std::chrono::seconds(10)) {
        self->last_warning = now;
        spdlog::warn("http: {} connections are open, more are refused",
                     self->shared->sessions.size());
      }
      continue;
    }
    self->start(std::move(socket));
  }
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Sessions and what they share hold each other while a connection is open.
HttpServer::~HttpServer() { impl_->shared->sessions.clear(); }

Result<std::unique_ptr<HttpServer>> HttpServer::bind(asio::io_context& front, HttpOptions options) {
  const std::string where = options.address + ":" + std::to_string(options.port);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error)
    return absl::InvalidArgumentError("http: '" + options.address +
                                      "' is not an IP address to listen on");
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  const std::shared_ptr<const auth::ServerTls> tls = options.tls;
  auto impl = std::make_shared<Impl>(front, std::move(options));
  if (tls) {
    impl->shared->tls.emplace(asio::ssl::context::tls_server);
    ODT_TRY(set_up(*impl->shared->tls, *tls));
  }
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    return with_reason(
        absl::AlreadyExistsError("http port " + where + " is in use"), "PORT_IN_USE",
        "stop what listens there (ss -ltnp shows it), or choose another with --http");
  if (error) return absl::UnavailableError("http port " + where + ": " + error.message());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::serve(HttpBackend backend) {
  impl_->shared->backend = std::move(backend);
  asio::co_spawn(impl_->front, Impl::accept(impl_), [](std::exception_ptr failure) {
    if (failure) spdlog::error("http: accepting has ended");
  });
}

void HttpServer::stop_accepting() {
  boost::system::error_code ignored;
  impl_->acceptor.close(ignored);
}

void HttpServer::close_all() {
  const auto sessions = impl_->shared->sessions;
  for (const auto& session : sessions) session->close();
}

std::uint16_t HttpServer::port() const {
  boost::system::error_code error;
  const auto endpoint = impl_->acceptor.local_endpoint(error);
  return error ? 0 : endpoint.port();
}

std::size_t HttpServer::connections() const { return impl_->shared->sessions.size(); }

}  // namespace odt::api

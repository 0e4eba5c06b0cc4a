#include "api/http_server.h"

#include <spdlog/spdlog.h>

#include "api/http_session.h"

namespace odt::api {

struct HttpServer::Impl {
  Impl(asio::io_context& f, HttpOptions o)
      : front(f), acceptor(f), shared(std::make_shared<HttpShared>(std::move(o))) {}

  asio::io_context& front;
  asio::ip::tcp::acceptor acceptor;
  std::shared_ptr<HttpShared> shared;

  static asio::awaitable<void> accept(std::shared_ptr<Impl> self);
  void start(asio::ip::tcp::socket socket);
  bool shed_idle();
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
// work. Else a few hundred silent connections would keep everybody out.
bool HttpServer::Impl::shed_idle() {
  std::shared_ptr<HttpSession> longest;
  for (const auto& session : shared->sessions) {
    const auto since = session->idle_since();
    if (since && (!longest || *since < *longest->idle_since())) longest = session;
  }
  if (longest) longest->close();
  return longest != nullptr;
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
    if (self->shared->sessions.size() >= self->shared->options.max_connections &&
        !self->shed_idle()) {
      spdlog::warn("http: {} connections are open, one more is refused",
                   self->shared->sessions.size());
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
  auto impl = std::make_shared<Impl>(front, std::move(options));
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

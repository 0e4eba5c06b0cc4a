#pragma once

#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/asio.h"

// For http_session.h only.
namespace odt::api {

// A connection in clear text or under TLS, chosen when it is accepted: what Beast reads and writes.
class WebStream {
 public:
  using Tcp = boost::beast::tcp_stream;
  using Tls = boost::beast::ssl_stream<Tcp>;
  using executor_type = Tcp::executor_type;

  // context: null for clear text; outlives this.
  WebStream(asio::ip::tcp::socket socket, asio::ssl::context* context) {
    if (context == nullptr)
      plain_.emplace(std::move(socket));
    else
      tls_ = std::make_unique<Tls>(Tcp(std::move(socket)), *context);
  }

  bool encrypted() const { return tls_ != nullptr; }
  Tls& tls() { return *tls_; }
  Tcp& tcp() { return tls_ ? boost::beast::get_lowest_layer(*tls_) : *plain_; }
  executor_type get_executor() { return tcp().get_executor(); }
  asio::ip::tcp::socket& socket() { return tcp().socket(); }
  void expires_after(std::chrono::steady_clock::duration time) { tcp().expires_after(time); }
  void expires_never() { tcp().expires_never(); }
  void close() { tcp().close(); }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [](auto handler, WebStream* self, const Buffers& to) {
          if (self->tls_)
            self->tls_->async_read_some(to, std::move(handler));
          else
            self->plain_->async_read_some(to, std::move(handler));
        },
        token, this, buffers);
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [](auto handler, WebStream* self, const Buffers& from) {
          if (self->tls_)
            self->tls_->async_write_some(from, std::move(handler));
          else
            self->plain_->async_write_some(from, std::move(handler));
        },
        token, this, buffers);
  }

 private:
  std::optional<Tcp> plain_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace odt::api

#pragma once

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <set>

#include "api/http_server.h"
#include "api/static_files.h"
#include "api/web_call.h"

// For http_server.cpp and http_session.cpp only: Beast stays in these two.
namespace odt::api {

namespace beast = boost::beast;
namespace http = boost::beast::http;

class HttpSession;

struct HttpShared {
  explicit HttpShared(HttpOptions o) : options(std::move(o)), files(options.web_dir) {}
  const HttpOptions options;
  const StaticFiles files;
  HttpBackend backend;
  std::set<std::shared_ptr<HttpSession>> sessions;
};

// One connection: requests one after the other until either side closes.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Request = http::request<http::string_body>;

  HttpSession(asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared);
  static asio::awaitable<void> run(std::shared_ptr<HttpSession> self);
  void close();

 private:
  asio::awaitable<bool> read(beast::flat_buffer& buffer, Request& request);
  asio::awaitable<bool> answer(Request& request);
  asio::awaitable<bool> bridge(Request& request);
  asio::awaitable<bool> pump(Request& request, std::shared_ptr<WebCall> call);
  asio::awaitable<bool> refuse_call(Request& request, Status why);
  asio::awaitable<bool> blob(Request& request, std::string hex);
  asio::awaitable<bool> file(Request& request, std::string path);
  asio::awaitable<bool> reply(Request& request, http::status status, std::string type,
                              std::string body);
  asio::awaitable<bool> send(http::response<http::string_body> response);
  asio::awaitable<bool> send_head(http::response<http::empty_body>& head);
  asio::awaitable<bool> send_raw(std::string bytes);

  void watch_disconnect(std::uint64_t call_number);
  void dress(http::fields& head, const Request& request) const;
  std::string_view header(const Request& request, http::field field) const;

  beast::tcp_stream stream_;
  asio::steady_timer wake_;
  std::shared_ptr<HttpShared> shared_;
  std::string peer_;
  std::shared_ptr<WebCall> call_;  // under way
  std::uint64_t call_number_ = 0;
  bool gone_ = false;
};

}  // namespace odt::api

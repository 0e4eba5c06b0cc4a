#pragma once

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <set>

#include "api/http_rules.h"
#include "api/http_server.h"
#include "api/static_files.h"
#include "api/web_call.h"
#include "api/web_stream.h"

// For http_server.cpp, http_session.cpp and http_call.cpp only: Beast stays in these.
namespace odt::api {

namespace beast = boost::beast;
namespace http = boost::beast::http;

class HttpSession;

struct HttpShared {
  explicit HttpShared(HttpOptions o)
      : options(std::move(o)), files(options.web_dir), python(options.python_dir) {}
  const HttpOptions options;
  const StaticFiles files, python;
  HttpBackend backend;
  std::optional<asio::ssl::context> tls;
  std::set<std::shared_ptr<HttpSession>> sessions;
};

// One connection: requests one after the other until either side closes.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Request = http::request<http::string_body>;
  using Text = http::response<http::string_body>;
  using Head = http::response<http::empty_body>;

  HttpSession(asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared);
  static asio::awaitable<void> run(std::shared_ptr<HttpSession> self);
  void close();
  // Since when nothing but the next request is awaited; empty while one is answered, and after
  // close().
  std::optional<std::chrono::steady_clock::time_point> idle_since() const { return idle_since_; }
  const std::string& address() const { return address_; }  // of the peer
  bool local() const { return local_; }

 private:
  asio::awaitable<bool> shake_hands();
  asio::awaitable<bool> await_request(beast::flat_buffer& buffer);
  asio::awaitable<bool> read(beast::flat_buffer& buffer, Request& request);
  Text too_big(const Request& request) const;
  asio::awaitable<void> drain();
  std::optional<std::string> forbidden(const Request& request) const;
  Status admit_door(const Request& request, const std::string& door) const;
  Text refused_door(const Request& request, const Status& why) const;
  asio::awaitable<bool> answer(Request& request);
  asio::awaitable<bool> bridge(Request& request);
  asio::awaitable<bool> pump(Request& request, WebCall& call);
  asio::awaitable<bool> answer_json(Request& request, const std::string& path, WebCall& call);
  Text refused_call(const Request& request, const Status& why) const;
  Text json(const Request& request, unsigned status, std::string body) const;
  asio::awaitable<bool> blob(Request& request, std::string& hex);
  asio::awaitable<bool> send_file(std::ifstream& in, ByteRange part);
  // Responses are made by plain functions and live in locals: GCC 12 may destroy a temporary in a
  // co_await expression twice.
  Text plain(const Request& request, http::status status, const char* type, std::string body) const;
  Text answer_get(const Request& request, const std::string& path) const;
  Text file(const Request& request, const std::string& path) const;
  Text python(const Request& request, std::string path) const;
  Text found_file(const Request& request, StaticFile found) const;
  asio::awaitable<bool> send(Text& response);
  asio::awaitable<bool> send_head(Head& head);
  asio::awaitable<bool> send_raw(const std::string& bytes);

  void watch_disconnect(std::uint64_t call_number);
  void look_again(std::uint64_t call_number);
  void dress(http::fields& head, const Request& request) const;
  std::string_view header(const Request& request, http::field field) const;

  WebStream stream_;
  asio::steady_timer wake_;
  std::shared_ptr<HttpShared> shared_;
  std::string peer_, cert_name_;   // cert_name_: CN of the client's certificate, checked
  std::shared_ptr<WebCall> call_;  // under way
  std::uint64_t call_number_ = 0;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
  std::string address_;
  bool local_ = false;
  bool gone_ = false;
};

}  // namespace odt::api

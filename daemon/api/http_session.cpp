#include "api/http_session.h"

#include <absl/strings/match.h>
#include <grpcpp/support/status.h>
#include <sys/socket.h>

#include <fstream>

#include "api/errors.h"
#include "api/http_rules.h"
#include "api/web_frame.h"
#include "base/ids.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kHeaderBytes = 16u << 10;
constexpr std::size_t kBlobChunk = 128u << 10;
constexpr char kSecurityPolicy[] =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'";

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool is_get(const HttpSession::Request& request) {
  return request.method() == http::verb::get || request.method() == http::verb::head;
}

}  // namespace

HttpSession::HttpSession(asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared)
    : stream_(std::move(socket)), wake_(stream_.get_executor()), shared_(std::move(shared)) {
  boost::system::error_code error;
  const auto remote = stream_.socket().remote_endpoint(error);
  if (!error)
    peer_ = peer_name(remote.address().to_string(), remote.address().is_v6(), remote.port());
}

void HttpSession::close() {
  gone_ = true;
  if (call_ != nullptr) call_->cancel();
  wake_.cancel();
  stream_.close();
}

asio::awaitable<void> HttpSession::run(std::shared_ptr<HttpSession> self) {
  beast::flat_buffer buffer;
  bool more = true;
  while (more && !self->gone_) {
    Request request;
    more = co_await self->read(buffer, request);
    if (!more) break;
    more = co_await self->answer(request);
    more = more && request.keep_alive();
  }
  boost::system::error_code ignored;
  self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  self->stream_.close();
}

asio::awaitable<bool> HttpSession::read(beast::flat_buffer& buffer, Request& request) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(kHeaderBytes);
  parser.body_limit(shared_->options.max_message_bytes + kWebFrameHeader);
  stream_.expires_after(shared_->options.idle);
  boost::system::error_code error;
  co_await http::async_read(stream_, buffer, parser,
                            asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  if (!error) {
    request = parser.release();
    co_return true;
  }
  if (error == http::error::body_limit && parser.is_header_done()) {
    request = parser.release();
    request.keep_alive(false);  // the rest of the body is on its way
    const Status why = with_reason(
        absl::ResourceExhaustedError("request body over " +
                                     std::to_string(shared_->options.max_message_bytes) + " bytes"),
        "MESSAGE_TOO_BIG", "upload files in chunks of at most 512 KiB");
    if (is_grpc_web(header(request, http::field::content_type))) {
      co_await refuse_call(request, why);
    } else {
      co_await reply(request, http::status::payload_too_large, "text/plain",
                     message_of(why) + "\n");
    }
    co_return false;
  }
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream &&
                         error != http::error::partial_message;
  if (malformed) {
    request.version(11);
    request.keep_alive(false);
    co_await reply(request, http::status::bad_request, "text/plain",
                   "not HTTP: " + error.message() + "\n");
  }
  co_return false;
}

std::string_view HttpSession::header(const Request& request, http::field field) const {
  const auto it = request.find(field);
  return it == request.end() ? std::string_view() : view(it->value());
}

void HttpSession::dress(http::fields& head, const Request& request) const {
  head.set(http::field::server, "odtd");
  head.set("X-Content-Type-Options", "nosniff");
  head.set("Content-Security-Policy", kSecurityPolicy);
  head.set("Referrer-Policy", "no-referrer");
  head.set(http::field::vary, "Origin, Accept-Encoding");
  const auto origin = header(request, http::field::origin);
  const auto host = header(request, http::field::host);
  if (origin.empty() || origin_allowed(origin, host, {})) return;
  if (!origin_allowed(origin, host, shared_->options.allowed_origins)) return;
  head.set(http::field::access_control_allow_origin, std::string(origin));
  head.set(http::field::access_control_expose_headers,
           "grpc-status,grpc-message,grpc-status-details-bin");
}

asio::awaitable<bool> HttpSession::answer(Request& request) {
  const auto& options = shared_->options;
  const auto host = header(request, http::field::host);
  if (!host_allowed(host, options.allowed_hosts)) {
    const bool more =
        co_await reply(request, http::status::forbidden, "text/plain",
                       "the Host '" + clean_text(host.substr(0, 128)) +
                           "' is not served here; add it to http.allowed_hosts in odtd.toml\n");
    co_return more;
  }
  const auto origin = header(request, http::field::origin);
  if (!origin.empty() && !origin_allowed(origin, host, options.allowed_origins)) {
    const bool more =
        co_await reply(request, http::status::forbidden, "text/plain",
                       "pages of '" + clean_text(origin.substr(0, 128)) +
                           "' may not call here; add it to http.allowed_origins in odtd.toml\n");
    co_return more;
  }
  if (request.method() == http::verb::post) {
    const bool more = co_await bridge(request);
    co_return more;
  }
  if (request.method() == http::verb::options) {
    http::response<http::empty_body> head(http::status::no_content, request.version());
    dress(head, request);
    head.set(http::field::access_control_allow_methods, "POST");
    head.set(http::field::access_control_allow_headers,
             "content-type,x-grpc-web,x-user-agent,grpc-timeout,authorization");
    head.set(http::field::access_control_max_age, "7200");
    head.keep_alive(request.keep_alive());
    const bool more = co_await send_head(head);
    co_return more;
  }
  if (!is_get(request)) {
    const bool more = co_await reply(request, http::status::method_not_allowed, "text/plain",
                                     "GET, HEAD and gRPC-Web's POST are served\n");
    co_return more;
  }
  const Result<std::string> path = parse_target(view(request.target()));
  bool more = false;
  if (!path.ok()) {
    more = co_await reply(request, http::status::bad_request, "text/plain", "bad path\n");
  } else if (*path == "/healthz") {
    more = co_await reply(request, http::status::ok, "text/plain", "ok\n");
  } else if (*path == "/readyz") {
    const bool ready = shared_->backend.ready();
    more = co_await reply(request, ready ? http::status::ok : http::status::service_unavailable,
                          "text/plain", ready ? "ready\n" : "stopping\n");
  } else if (*path == "/metrics") {
    more = co_await reply(request, http::status::ok, "text/plain; version=0.0.4",
                          shared_->backend.metrics());
  } else if (absl::StartsWith(*path, "/v1/blobs/")) {
    more = co_await blob(request, path->substr(10));
  } else {
    more = co_await file(request, *path);
  }
  co_return more;
}

// ---- gRPC-Web

asio::awaitable<bool> HttpSession::bridge(Request& request) {
  if (!is_grpc_web(header(request, http::field::content_type))) {
    const bool more = co_await reply(request, http::status::unsupported_media_type, "text/plain",
                                     "POST takes content-type application/grpc-web+proto\n");
    co_return more;
  }
  Result<std::string> message =
      parse_web_request(request.body(), shared_->options.max_message_bytes);
  WebCall::Request call;
  Status fault = message.status();
  if (const auto timeout = request.find("grpc-timeout"); fault.ok() && timeout != request.end()) {
    const auto parsed = parse_grpc_timeout(view(timeout->value()));
    fault = parsed.status();
    // A spent deadline is a deadline.
    if (parsed.ok()) call.timeout = std::max(*parsed, std::chrono::nanoseconds(1));
  }
  const Result<std::string> path = parse_target(view(request.target()));
  if (fault.ok()) fault = path.status();
  if (!fault.ok()) {
    const bool more = co_await refuse_call(request, fault);
    co_return more;
  }
  call.path = *path;
  call.message = std::move(*message);
  call.peer = peer_;
  call.bridge_token = shared_->backend.policy->bridge_token();
  call.authorization = std::string(header(request, http::field::authorization));
  const std::weak_ptr<HttpSession> weak = weak_from_this();
  // From gRPC's threads: the session is touched on the front thread only.
  auto wake = [weak, executor = stream_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake_.cancel();
    });
  };
  call_ = WebCall::start(shared_->backend.channel, std::move(call), std::move(wake));
  const bool more = co_await pump(request, call_);
  call_.reset();
  ++call_number_;
  boost::system::error_code ignored;
  if (more) stream_.socket().cancel(ignored);  // the watch for a disconnect
  co_return more;
}

asio::awaitable<bool> HttpSession::pump(Request& request, std::shared_ptr<WebCall> call) {
  http::response<http::empty_body> head(http::status::ok, 11);
  dress(head, request);
  head.set(http::field::content_type, "application/grpc-web+proto");
  head.set(http::field::cache_control, "no-store");
  head.keep_alive(request.keep_alive());
  head.chunked(true);
  bool open = co_await send_head(head);
  if (open) watch_disconnect(call_number_);
  while (open && !gone_) {
    std::string frames = call->take();
    const std::optional<std::string> trailer = call->take_trailer();
    if (trailer) frames += *trailer;
    if (frames.empty()) {
      wake_.expires_at(std::chrono::steady_clock::time_point::max());
      boost::system::error_code woken;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      continue;
    }
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", frames.size());
    std::string chunk = size + frames + "\r\n";
    if (trailer) chunk += "0\r\n\r\n";
    open = co_await send_raw(std::move(chunk));
    if (trailer) co_return open;
  }
  call->cancel();
  co_return false;
}

asio::awaitable<bool> HttpSession::refuse_call(Request& request, Status why) {
  http::response<http::string_body> response(http::status::ok, request.version());
  dress(response, request);
  response.set(http::field::content_type, "application/grpc-web+proto");
  response.keep_alive(request.keep_alive());
  response.body() = web_trailer(to_grpc(why), {});
  response.prepare_payload();
  const bool more = co_await send(std::move(response));
  co_return more;
}

// While a call runs nothing is read: an end of the connection shows only by looking.
void HttpSession::watch_disconnect(std::uint64_t call_number) {
  stream_.socket().async_wait(
      asio::ip::tcp::socket::wait_read,
      [self = shared_from_this(), call_number](const boost::system::error_code& error) {
        if (error || self->call_ == nullptr || self->call_number_ != call_number) return;
        char byte = 0;
        const auto got =
            ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0) return;  // the next request, sent early: the end shows when writing
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
          self->watch_disconnect(call_number);
          return;
        }
        self->gone_ = true;
        self->call_->cancel();
        self->wake_.cancel();
      });
}

// ---- blobs and files

asio::awaitable<bool> HttpSession::blob(Request& request, std::string hex) {
  const Status allowed = shared_->backend.policy->check(shared_->backend.policy->caller(peer_),
                                                        Role::kViewer, "/v1/blobs");
  if (!allowed.ok()) {
    const bool more =
        co_await reply(request, http::status::forbidden, "text/plain", message_of(allowed) + "\n");
    co_return more;
  }
  const auto raw = from_hex(hex);
  Result<std::string> path = absl::NotFoundError("no such blob");
  if (raw.ok() && raw->size() == Hash::kSize)
    path = shared_->backend.blobs->path(
        *Hash::from_bytes({reinterpret_cast<const char*>(raw->data()), raw->size()}));
  std::ifstream in;
  if (path.ok()) in.open(*path, std::ios::binary | std::ios::ate);
  if (!path.ok() || !in) {
    const bool more =
        co_await reply(request, http::status::not_found, "text/plain", "no such blob\n");
    co_return more;
  }
  const auto size = static_cast<std::uint64_t>(in.tellg());
  const auto range = parse_range(header(request, http::field::range), size);
  http::response<http::empty_body> head(http::status::ok, request.version());
  dress(head, request);
  head.keep_alive(request.keep_alive());
  head.set(http::field::accept_ranges, "bytes");
  if (!range.ok()) {
    head.result(http::status::range_not_satisfiable);
    head.set(http::field::content_range, "bytes */" + std::to_string(size));
    head.content_length(0);
    const bool more = co_await send_head(head);
    co_return more;
  }
  const ByteRange part = range->value_or(ByteRange{0, size});
  if (range->has_value()) {
    head.result(http::status::partial_content);
    head.set(http::field::content_range, "bytes " + std::to_string(part.first) + "-" +
                                             std::to_string(part.end - 1) + "/" +
                                             std::to_string(size));
  }
  head.set(http::field::content_type, "application/octet-stream");
  head.set(http::field::content_disposition, "attachment; filename=\"" + hex + "\"");
  head.set(http::field::etag, "\"" + hex + "\"");
  head.set(http::field::cache_control, "private, max-age=31536000, immutable");
  head.content_length(part.end - part.first);
  bool more = co_await send_head(head);
  if (request.method() == http::verb::head) co_return more;
  in.seekg(static_cast<std::streamoff>(part.first));
  for (std::uint64_t at = part.first; more && at < part.end;) {
    std::string chunk(std::min<std::uint64_t>(kBlobChunk, part.end - at), '\0');
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (!in) co_return false;  // shorter than announced: the client must notice
    at += chunk.size();
    more = co_await send_raw(std::move(chunk));
  }
  co_return more;
}

asio::awaitable<bool> HttpSession::file(Request& request, std::string path) {
  const bool gzip =
      absl::StrContains(absl::string_view(header(request, http::field::accept_encoding).data(),
                                          header(request, http::field::accept_encoding).size()),
                        "gzip");
  std::optional<StaticFile> found = shared_->files.find(path, gzip);
  if (!found) {
    const bool no_dashboard = path == "/" && !shared_->files.present();
    const bool more = co_await reply(
        request, no_dashboard ? http::status::ok : http::status::not_found,
        no_dashboard ? "text/html; charset=utf-8" : "text/plain",
        no_dashboard ? page_without_dashboard(shared_->files.folder()) : "not found\n");
    co_return more;
  }
  http::response<http::string_body> response(http::status::ok, request.version());
  dress(response, request);
  response.set(http::field::etag, found->etag);
  response.set(http::field::cache_control,
               found->immutable ? "public, max-age=31536000, immutable" : "no-cache");
  response.keep_alive(request.keep_alive());
  if (header(request, http::field::if_none_match) == found->etag) {
    response.result(http::status::not_modified);
    const bool more = co_await send(std::move(response));
    co_return more;
  }
  response.set(http::field::content_type, found->content_type);
  if (found->gzip) response.set(http::field::content_encoding, "gzip");
  const std::size_t length = found->content.size();
  if (request.method() == http::verb::get) response.body() = std::move(found->content);
  response.content_length(length);
  const bool more = co_await send(std::move(response));
  co_return more;
}

// ---- sending

asio::awaitable<bool> HttpSession::reply(Request& request, http::status status, std::string type,
                                         std::string body) {
  http::response<http::string_body> response(status, request.version());
  dress(response, request);
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  response.content_length(body.size());
  if (request.method() != http::verb::head) response.body() = std::move(body);
  const bool more = co_await send(std::move(response));
  co_return more;
}

asio::awaitable<bool> HttpSession::send(http::response<http::string_body> response) {
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await http::async_write(stream_, response, asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

asio::awaitable<bool> HttpSession::send_head(http::response<http::empty_body>& head) {
  http::response_serializer<http::empty_body> serializer(head);
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await http::async_write_header(stream_, serializer,
                                    asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

asio::awaitable<bool> HttpSession::send_raw(std::string bytes) {
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await asio::async_write(stream_, asio::buffer(bytes),
                             asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

}  // namespace odt::api

#include "api/http_session.h"

#include <absl/strings/match.h>

#include <array>

#include "api/errors.h"
#include "api/http_rules.h"
#include "api/json_call.h"
#include "api/web_frame.h"
#include "base/ids.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kHeaderBytes = 16u << 10;
constexpr std::size_t kBlobChunk = 128u << 10;
constexpr std::size_t kMostDrained = 64u << 20;
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kBlobs[] = "/v1/blobs/";
constexpr char kPython[] = "/python";
constexpr char kSecurityPolicy[] =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'";

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool is_get(const HttpSession::Request& request) {
  return request.method() == http::verb::get || request.method() == http::verb::head;
}

}  // namespace

HttpSession::HttpSession(asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared)
    : stream_(std::move(socket), shared->tls ? &*shared->tls : nullptr),
      wake_(stream_.get_executor()),
      shared_(std::move(shared)) {
  boost::system::error_code error;
  const auto remote = stream_.socket().remote_endpoint(error);
  if (!error)
    peer_ = peer_name(remote.address().to_string(), remote.address().is_v6(), remote.port());
  address_ = auth::address_of(peer_);
  local_ = is_local_peer(peer_);
}

void HttpSession::close() {
  gone_ = true;
  idle_since_.reset();
  if (call_ != nullptr) call_->cancel();
  wake_.cancel();
  stream_.close();
}

asio::awaitable<void> HttpSession::run(std::shared_ptr<HttpSession> self) {
  beast::flat_buffer buffer;
  bool more = co_await self->shake_hands();
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
  // Until the request is whole, the connection may be the one that makes room.
  idle_since_ = std::chrono::steady_clock::now();
  const bool begun = co_await await_request(buffer);
  if (!begun) co_return false;
  boost::system::error_code error;
  stream_.expires_after(shared_->options.header);
  co_await http::async_read_header(stream_, buffer, parser,
                                   asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    stream_.expires_after(shared_->options.body);
    co_await http::async_read(stream_, buffer, parser,
                              asio::redirect_error(asio::use_awaitable, error));
  }
  stream_.expires_never();
  idle_since_.reset();
  if (!error) {
    request = parser.release();
    co_return true;
  }
  if (error == http::error::body_limit) {
    request = std::move(parser.get());  // the fields are there: Content-Length tells it at once
    request.keep_alive(false);          // the rest of the body is on its way
    Text response = too_big(request);
    co_await send(response);
    co_await drain();
    co_return false;
  }
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream &&
                         error != http::error::partial_message;
  if (malformed) {
    request.version(11);
    request.keep_alive(false);
    Text response =
        plain(request, http::status::bad_request, kText, "not HTTP: " + error.message() + "\n");
    co_await send(response);
  }
  co_return false;
}

asio::awaitable<bool> HttpSession::shake_hands() {
  if (!stream_.encrypted()) co_return true;
  boost::system::error_code error;
  idle_since_ = std::chrono::steady_clock::now();
  stream_.expires_after(shared_->options.header);
  co_await stream_.tls().async_handshake(asio::ssl::stream_base::server,
                                         asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  idle_since_.reset();
  if (error) co_return false;
  // OpenSSL has checked it against tls.client_ca, or there is none.
  if (X509* cert = SSL_get_peer_certificate(stream_.tls().native_handle()); cert != nullptr) {
    char name[128];
    const int size =
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof name);
    if (size > 0) cert_name_.assign(name, static_cast<std::size_t>(size));
    X509_free(cert);
  }
  co_return true;
}

// The first byte of a request may take its time, what follows it may not.
asio::awaitable<bool> HttpSession::await_request(beast::flat_buffer& buffer) {
  if (buffer.size() > 0) co_return true;
  stream_.expires_after(shared_->options.idle);
  boost::system::error_code error;
  const asio::mutable_buffer room = buffer.prepare(4096);
  const std::size_t got =
      co_await stream_.async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  if (error) {
    idle_since_.reset();
    co_return false;
  }
  buffer.commit(got);
  co_return true;
}

HttpSession::Text HttpSession::too_big(const Request& request) const {
  const Status why = with_reason(
      absl::ResourceExhaustedError("request body over " +
                                   std::to_string(shared_->options.max_message_bytes) + " bytes"),
      "MESSAGE_TOO_BIG", "upload files in chunks of at most 512 KiB");
  const auto type = header(request, http::field::content_type);
  return is_grpc_web(type) ? refused_call(request, why)
         : is_json(type)
             ? json(request, 413, json_error(to_grpc(why)))
             : plain(request, http::status::payload_too_large, kText, message_of(why) + "\n");
}

// Closing with unread bytes resets the connection, and the client would lose the answer.
asio::awaitable<void> HttpSession::drain() {
  boost::system::error_code error;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  std::array<char, 65536> sink;
  std::size_t left = kMostDrained;
  stream_.expires_after(std::chrono::seconds(5));
  while (!error && left > 0) {
    const std::size_t got = co_await stream_.async_read_some(
        asio::buffer(sink), asio::redirect_error(asio::use_awaitable, error));
    left -= std::min(left, got);
  }
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
  head.set("Cross-Origin-Opener-Policy", "same-origin");
  head.set("Cross-Origin-Resource-Policy", "same-origin");
  head.set(http::field::vary, "Origin, Accept-Encoding");
  const auto origin = header(request, http::field::origin);
  const auto host = header(request, http::field::host);
  if (origin.empty() || origin_allowed(origin, host, {})) return;
  if (!origin_allowed(origin, host, shared_->options.allowed_origins)) return;
  head.set(http::field::access_control_allow_origin, std::string(origin));
  head.set(http::field::access_control_expose_headers,
           "grpc-status,grpc-message,grpc-status-details-bin");
}

// What the Host and Origin headers rule out.
std::optional<std::string> HttpSession::forbidden(const Request& request) const {
  const auto& options = shared_->options;
  const auto host = header(request, http::field::host);
  if (!host_allowed(host, options.allowed_hosts))
    return "the Host '" + clean_text(host.substr(0, 128)) +
           "' is not served here; add it to http.allowed_hosts in odtd.toml\n";
  const auto origin = header(request, http::field::origin);
  if (!origin.empty() && !origin_allowed(origin, host, options.allowed_origins))
    return "pages of '" + clean_text(origin.substr(0, 128)) +
           "' may not call here; add it to http.allowed_origins in odtd.toml\n";
  return std::nullopt;
}

asio::awaitable<bool> HttpSession::answer(Request& request) {
  Text response;
  const std::optional<std::string> why_not = forbidden(request);
  const Result<std::string> path = parse_target(view(request.target()));
  if (why_not) {
    response = plain(request, http::status::forbidden, kText, *why_not);
  } else if (!path.ok()) {
    response = plain(request, http::status::bad_request, kText, "bad path\n");
  } else if (request.method() == http::verb::post) {
    const bool more = co_await bridge(request);
    co_return more;
  } else if (request.method() == http::verb::options) {
    response = plain(request, http::status::no_content, kText, "");
    response.set(http::field::access_control_allow_methods, "POST");
    response.set(http::field::access_control_allow_headers,
                 "content-type,x-grpc-web,x-user-agent,grpc-timeout,authorization,x-odt-owner");
    response.set(http::field::access_control_max_age, "7200");
  } else if (!is_get(request)) {
    response = plain(request, http::status::method_not_allowed, kText,
                     "GET, HEAD and the POST of calls are served\n");
  } else if (absl::StartsWith(*path, kBlobs)) {
    std::string hex = path->substr(sizeof kBlobs - 1);
    const bool more = co_await blob(request, hex);
    co_return more;
  } else {
    response = answer_get(request, *path);
  }
  const bool more = co_await send(response);
  co_return more;
}

HttpSession::Text HttpSession::answer_get(const Request& request, const std::string& path) const {
  if (path == "/healthz") return plain(request, http::status::ok, kText, "ok\n");
  if (path == "/readyz")
    return shared_->backend.ready()
               ? plain(request, http::status::ok, kText, "ready\n")
               : plain(request, http::status::service_unavailable, kText, "stopping\n");
  if (path == "/metrics") {
    const Status allowed = admit_door(request, path);
    return allowed.ok() ? plain(request, http::status::ok, "text/plain; version=0.0.4",
                                shared_->backend.metrics())
                        : refused_door(request, allowed);
  }
  if (path == kPython || absl::StartsWith(path, std::string(kPython) + "/"))
    return python(request, path.substr(sizeof kPython - 1));
  return file(request, path);
}

// Data behind addresses that are no method: a viewer may read it.
Status HttpSession::admit_door(const Request& request, const std::string& door) const {
  return shared_->backend.gate->admit_door(peer_, header(request, http::field::authorization),
                                           cert_name_, Role::kViewer, door);
}

HttpSession::Text HttpSession::refused_door(const Request& request, const Status& why) const {
  const bool unknown = absl::IsUnauthenticated(why);
  const std::string remedy = remedy_of(why);
  Text response =
      plain(request, unknown ? http::status::unauthorized : http::status::forbidden, kText,
            message_of(why) + "\n" + (remedy.empty() ? "" : clean_text(remedy) + "\n"));
  if (unknown) response.set(http::field::www_authenticate, "Bearer realm=\"odt\"");
  return response;
}

// ---- blobs and files

asio::awaitable<bool> HttpSession::blob(Request& request, std::string& hex) {
  const Status allowed = admit_door(request, kBlobs);
  const auto raw = from_hex(hex);
  Result<std::string> path = absl::NotFoundError("no such blob");
  if (raw.ok() && raw->size() == Hash::kSize)
    path = shared_->backend.blobs->path(
        *Hash::from_bytes({reinterpret_cast<const char*>(raw->data()), raw->size()}));
  std::ifstream in;
  if (allowed.ok() && path.ok()) in.open(*path, std::ios::binary | std::ios::ate);
  if (!in.is_open()) {
    Text refusal = allowed.ok() ? plain(request, http::status::not_found, kText, "no such blob\n")
                                : refused_door(request, allowed);
    const bool more = co_await send(refusal);
    co_return more;
  }
  const auto size = static_cast<std::uint64_t>(in.tellg());
  const auto range = parse_range(header(request, http::field::range), size);
  const ByteRange part = range.ok() ? range->value_or(ByteRange{0, size}) : ByteRange{0, 0};
  Head head(http::status::ok, request.version());
  dress(head, request);
  head.keep_alive(request.keep_alive());
  head.set(http::field::accept_ranges, "bytes");
  head.set(http::field::content_type, "application/octet-stream");
  head.set(http::field::content_disposition, "attachment; filename=\"" + hex + "\"");
  head.set(http::field::etag, "\"" + hex + "\"");
  head.set(http::field::cache_control, "private, max-age=31536000, immutable");
  head.content_length(part.end - part.first);
  if (!range.ok()) {
    head.result(http::status::range_not_satisfiable);
    head.set(http::field::content_range, "bytes */" + std::to_string(size));
  } else if (range->has_value()) {
    head.result(http::status::partial_content);
    head.set(http::field::content_range, "bytes " + std::to_string(part.first) + "-" +
                                             std::to_string(part.end - 1) + "/" +
                                             std::to_string(size));
  }
  bool more = co_await send_head(head);
  if (more && range.ok() && request.method() == http::verb::get)
    more = co_await send_file(in, part);
  co_return more;
}

asio::awaitable<bool> HttpSession::send_file(std::ifstream& in, ByteRange part) {
  in.seekg(static_cast<std::streamoff>(part.first));
  bool more = true;
  std::string chunk;
  while (more && part.first < part.end) {
    chunk.resize(std::min<std::uint64_t>(kBlobChunk, part.end - part.first));
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (!in) co_return false;  // shorter than announced: the client must notice
    part.first += chunk.size();
    more = co_await send_raw(chunk);
  }
  co_return more;
}

HttpSession::Text HttpSession::file(const Request& request, const std::string& path) const {
  const auto encodings = header(request, http::field::accept_encoding);
  std::optional<StaticFile> found =
      shared_->files.find(path, encodings.find("gzip") != std::string_view::npos);
  if (!found && path == "/" && !shared_->files.present())
    return plain(request, http::status::ok, "text/html; charset=utf-8",
                 page_without_dashboard(shared_->files.folder()));
  if (!found) return plain(request, http::status::not_found, kText, "not found\n");
  return found_file(request, std::move(*found));
}

// The wheel, and the pages of a simple index: a folder is its index.html.
HttpSession::Text HttpSession::python(const Request& request, std::string path) const {
  if (path.empty() || path.back() == '/') path += path.empty() ? "/index.html" : "index.html";
  std::optional<StaticFile> found;
  if (path.find('.', path.rfind('/')) != std::string::npos)
    found = shared_->python.find(path, false);
  if (!found)
    return plain(request, http::status::not_found, kText,
                 "not found; pip install --index-url http://HOST:PORT/python/simple odtfleet\n");
  return found_file(request, std::move(*found));
}

HttpSession::Text HttpSession::found_file(const Request& request, StaticFile found) const {
  const bool known = header(request, http::field::if_none_match) == found.etag;
  Text response = known ? plain(request, http::status::not_modified, kText, "")
                        : plain(request, http::status::ok, found.content_type.c_str(),
                                std::move(found.content));
  if (known) response.erase(http::field::content_length);
  response.set(http::field::etag, found.etag);
  response.set(http::field::cache_control,
               found.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  if (found.gzip && !known) response.set(http::field::content_encoding, "gzip");
  return response;
}

// ---- sending

HttpSession::Text HttpSession::plain(const Request& request, http::status status, const char* type,
                                     std::string body) const {
  Text response(status, request.version() == 10 ? 10 : 11);
  dress(response, request);
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  response.content_length(body.size());
  if (request.method() != http::verb::head) response.body() = std::move(body);
  return response;
}

asio::awaitable<bool> HttpSession::send(Text& response) {
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await http::async_write(stream_, response, asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

asio::awaitable<bool> HttpSession::send_head(Head& head) {
  http::response_serializer<http::empty_body> serializer(head);
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await http::async_write_header(stream_, serializer,
                                    asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

asio::awaitable<bool> HttpSession::send_raw(const std::string& bytes) {
  stream_.expires_after(shared_->options.write);
  boost::system::error_code error;
  co_await asio::async_write(stream_, asio::buffer(bytes),
                             asio::redirect_error(asio::use_awaitable, error));
  stream_.expires_never();
  co_return !error;
}

}  // namespace odt::api

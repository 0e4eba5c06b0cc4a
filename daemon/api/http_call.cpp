// Calls over HTTP: gRPC-Web and JSON, carried to the gRPC server in this process.
#include <grpcpp/support/status.h>
#include <poll.h>
#include <sys/socket.h>

#include "api/errors.h"
#include "api/http_session.h"
#include "api/json_call.h"
#include "api/web_frame.h"

namespace odt::api {
namespace {

constexpr char kPlain[] = "text/plain; charset=utf-8";

std::string_view text_view(beast::string_view text) { return {text.data(), text.size()}; }

// The peer has closed its side, also where there is something left to read.
bool hung_up(int fd) {
  pollfd event{fd, POLLRDHUP, 0};
  return ::poll(&event, 1, 0) > 0 && (event.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

asio::awaitable<bool> HttpSession::bridge(Request& request) {
  Text refusal;
  const bool as_json = is_json(header(request, http::field::content_type));
  if (!as_json && !is_grpc_web(header(request, http::field::content_type))) {
    refusal = plain(request, http::status::unsupported_media_type, kPlain,
                    "POST takes content-type application/json or application/grpc-web+proto\n");
    const bool more = co_await send(refusal);
    co_return more;
  }
  const Result<std::string> path = parse_target(text_view(request.target()));
  Result<std::string> message =
      !path.ok() ? path
      : as_json  ? json_request(*path, request.body())
                 : parse_web_request(request.body(), shared_->options.max_message_bytes);
  WebCall::Request call;
  Status fault = message.status();
  if (const auto timeout = request.find("grpc-timeout"); fault.ok() && timeout != request.end()) {
    const auto parsed = parse_grpc_timeout(text_view(timeout->value()));
    fault = parsed.status();
    // A spent deadline is a deadline.
    if (parsed.ok()) call.timeout = std::max(*parsed, std::chrono::nanoseconds(1));
  }
  if (!fault.ok()) {
    refusal = refused_call(request, fault);
    const bool more = co_await send(refusal);
    co_return more;
  }
  call.path = *path;
  call.message = std::move(*message);
  call.peer = peer_;
  call.bridge_token = shared_->backend.gate->policy().bridge_token();
  call.cert_name = cert_name_;
  call.authorization = std::string(header(request, http::field::authorization));
  if (const auto owner = request.find(kOwnerKey); owner != request.end())
    call.owner = std::string(text_view(owner->value()));
  const std::weak_ptr<HttpSession> weak = weak_from_this();
  // From gRPC's threads: the session is touched on the front thread only.
  auto wake = [weak, executor = stream_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake_.cancel();
    });
  };
  const auto running = WebCall::start(shared_->backend.channel, std::move(call), std::move(wake));
  call_ = running;
  bool more = false;
  if (as_json)
    more = co_await answer_json(request, *path, *running);
  else
    more = co_await pump(request, *running);
  call_.reset();
  ++call_number_;
  boost::system::error_code ignored;
  if (more) stream_.socket().cancel(ignored);  // the watch for a disconnect
  co_return more;
}

asio::awaitable<bool> HttpSession::pump(Request& request, WebCall& call) {
  Head head(http::status::ok, 11);
  dress(head, request);
  head.set(http::field::content_type, "application/grpc-web+proto");
  head.set(http::field::cache_control, "no-store");
  head.keep_alive(request.keep_alive());
  head.chunked(true);
  bool open = co_await send_head(head);
  if (open) watch_disconnect(call_number_);
  while (open && !gone_) {
    std::string frames = call.take();
    const std::optional<std::string> trailer = call.take_trailer();
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
    open = co_await send_raw(chunk);
    if (trailer) co_return open;
  }
  call.cancel();
  co_return false;
}

// The one answer of a unary call, when it is whole.
asio::awaitable<bool> HttpSession::answer_json(Request& request, const std::string& path,
                                               WebCall& call) {
  watch_disconnect(call_number_);
  std::string frames;
  std::optional<grpc::Status> status;
  while (!gone_ && !status) {
    frames += call.take();
    status = call.status();
    if (status) break;
    wake_.expires_at(std::chrono::steady_clock::time_point::max());
    boost::system::error_code woken;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (!status) {
    call.cancel();
    co_return false;
  }
  Text response;
  if (status->ok()) {
    Result<std::string> message = parse_web_request(frames, frames.size());
    if (message.ok()) message = json_response(path, *message);
    if (message.ok())
      response = json(request, 200, std::move(*message));
    else
      status = to_grpc(message.status());
  }
  if (!status->ok())
    response = json(request, http_status_of(status->error_code()), json_error(*status));
  const bool more = co_await send(response);
  co_return more;
}

HttpSession::Text HttpSession::json(const Request& request, unsigned status,
                                    std::string body) const {
  return plain(request, static_cast<http::status>(status), "application/json", std::move(body));
}

HttpSession::Text HttpSession::refused_call(const Request& request, const Status& why) const {
  if (is_json(header(request, http::field::content_type))) {
    const grpc::Status status = to_grpc(why);
    return json(request, http_status_of(status.error_code()), json_error(status));
  }
  return plain(request, http::status::ok, "application/grpc-web+proto",
               web_trailer(to_grpc(why), {}));
}

// Bytes that nobody reads would wake the watch for ever.
void HttpSession::look_again(std::uint64_t call_number) {
  auto timer =
      std::make_shared<asio::steady_timer>(stream_.get_executor(), std::chrono::milliseconds(250));
  timer->async_wait([self = shared_from_this(), timer, call_number](const auto& error) {
    if (!error && self->call_ != nullptr && self->call_number_ == call_number)
      self->watch_disconnect(call_number);
  });
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
        // The next request, sent early, or under TLS the word of farewell.
        if (got > 0 && !hung_up(self->stream_.socket().native_handle())) {
          if (self->stream_.encrypted()) self->look_again(call_number);
          return;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
          self->watch_disconnect(call_number);
          return;
        }
        self->gone_ = true;
        self->call_->cancel();
        self->wake_.cancel();
      });
}

}  // namespace odt::api

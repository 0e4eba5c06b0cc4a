#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "link/serial_link.h"
#include "link/tcp_link.h"
#include "session/runner_parts.h"
#include "wire/text.h"

namespace odt::session {
namespace {

constexpr int kHelloTries = 3;
constexpr std::uint64_t kGarbageBytes = 2048;  // without one sound frame: another speed
constexpr std::size_t kShownText = 60;         // of what another device says
constexpr std::chrono::milliseconds kDialTimeout{5000};
constexpr std::chrono::milliseconds kLookForPort{250};
constexpr std::chrono::seconds kStable{10};  // a session of this age starts the backoff anew
constexpr std::string_view kTcp = "tcp:", kTls = "tls:";

struct Target {
  bool tcp = false, tls = false;
  std::string host, port;  // tcp
  std::string path;        // serial
};

Result<Target> parse_endpoint(const std::string& endpoint) {
  Target target;
  target.tls = endpoint.starts_with(kTls);
  if (!target.tls && !endpoint.starts_with(kTcp)) {
    target.path = endpoint;
    return target;
  }
  const std::string rest = endpoint.substr(kTcp.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == rest.size()) {
    return absl::InvalidArgumentError(endpoint + ": not tcp:host:port or tls:host:port");
  }
  target.tcp = true;
  target.host = rest.substr(0, colon);
  target.port = rest.substr(colon + 1);
  if (target.host.size() > 2 && target.host.front() == '[' && target.host.back() == ']') {
    target.host = target.host.substr(1, target.host.size() - 2);
  }
  return target;
}

// One endpoint for ever. Shared by its coroutine and the runner; host_ is null once the runner has
// gone.
class EndpointLoop : public std::enable_shared_from_this<EndpointLoop> {
 public:
  EndpointLoop(asio::io_context& io, const Clock& clock, std::string endpoint, LinkOptions options,
               LinkHost& host)
      : io_(io),
        clock_(clock),
        endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        host_(&host),
        random_(system_random()),
        backoff_(options_.backoff_min, options_.backoff_max, random_),
        memory_(std::make_shared<EndpointMemory>()),
        wake_(io),
        done_signal_(io),
        bauds_(options_.baud_list) {
    if (bauds_.empty()) bauds_.push_back(921600);
  }

  void start() {
    if (started_) return;
    started_ = true;
    asio::co_spawn(io_, loop(shared_from_this()), [self = shared_from_this()](std::exception_ptr) {
      self->done_ = true;
      self->done_signal_.notify();
    });
  }

  void halt() {
    stopped_ = true;
    wake_.notify();
    if (session_) session_->close(absl::CancelledError("the link was stopped"));
    if (pipe_) pipe_->close_after_flush(absl::CancelledError("the link was stopped"));
  }

  void forget_host() { host_ = nullptr; }

  asio::awaitable<void> wait_done(std::shared_ptr<EndpointLoop> self) {
    while (started_ && !done_) co_await done_signal_.wait();
    (void)self;
  }

 private:
  asio::awaitable<void> loop(std::shared_ptr<EndpointLoop> self) {
    const Result<Target> target = parse_endpoint(endpoint_);
    if (!target.ok()) {
      report(model::PortState::kError, reason_of(target.status(), "BAD_ENDPOINT"));
      co_return;
    }
    while (!stopped_) {
      const std::chrono::milliseconds pause = co_await attempt(*target);
      if (!stopped_) co_await rest(*target, pause);
    }
    (void)self;
  }

  // Opens the link, talks as long as it lasts. Returns how long to wait before the next time.
  asio::awaitable<std::chrono::milliseconds> attempt(Target target) {
    report(model::PortState::kOpening, {});
    gone_ = false;
    Result<std::shared_ptr<link::ByteLink>> opened = absl::UnavailableError("");
    std::shared_ptr<link::SerialLink> serial;
    if (options_.open) {
      opened = options_.open(endpoint_);
    } else if (target.tls && !options_.tls) {
      opened = absl::FailedPreconditionError(
          endpoint_ +
          ": TLS is not set up; set boards.tls_cert, tls_key and tls_client_ca, or "
          "boards.tls_psk_file, in odtd.toml");
    } else if (target.tls) {
      opened = co_await link::dial_tls(io_, target.host, target.port, options_.tls,
                                       options_.tls_name, kDialTimeout);
    } else if (target.tcp) {
      opened = co_await link::dial_tcp(io_, target.host, target.port, kDialTimeout);
    } else {
      auto port = link::SerialLink::open(
          io_, target.path, {bauds_.front(), options_.dtr, options_.rts, options_.rts_cts});
      if (port.ok()) {
        serial = *port;
        opened = std::shared_ptr<link::ByteLink>(serial);
      } else {
        opened = port.status();
      }
    }
    if (stopped_) co_return std::chrono::milliseconds(0);
    if (!opened.ok()) {
      report_open_error(opened.status());
      co_return backoff_.next();
    }
    const bool strict = target.tcp && !options_.tcp_lossy;
    pipe_ = std::make_shared<FramePipe>(io_, *opened, strict);
    pipe_->start();
    co_await use(target, serial);
    pipe_->close_after_flush(absl::UnavailableError("link ended"));
    co_await wait_pipe_closed(io_, pipe_);
    session_.reset();
    pipe_.reset();
    co_return backoff_.next();
  }

  // A serial port stays open from session to session: opening it again would reset many a board.
  asio::awaitable<void> use(Target target, std::shared_ptr<link::SerialLink> serial) {
    for (;;) {
      const bool lasted = co_await talk(serial);
      if (lasted) backoff_.reset();
      if (!serial || stopped_ || !pipe_->open()) co_return;
      co_await rest(target, backoff_.next());
      if (stopped_ || !pipe_->open()) co_return;
      report(model::PortState::kOpening, {});
    }
  }

  // HELLO at each speed of the list; then the session. True if it was a stable one.
  asio::awaitable<bool> talk(std::shared_ptr<link::SerialLink> serial) {
    session_ =
        std::make_shared<SessionImpl>(io_, clock_, options_, pipe_, memory_, endpoint_, random_);
    if (serial) session_->leave_link_open();
    bytes_before_ = pipe_->rx_bytes();
    frames_before_ = pipe_->rx_frames();
    echoes_before_ = pipe_->echoes();
    text_before_ = pipe_->text_bytes();
    Status said = co_await session_->connect(kHelloTries);
    bool mismatch = mismatched();
    for (std::size_t i = 1; serial && absl::IsDeadlineExceeded(said) && i < bauds_.size(); ++i) {
      if (mismatch) report_mismatch();
      std::rotate(bauds_.begin(), bauds_.begin() + 1, bauds_.end());
      const Status changed = serial->set_baud(bauds_.front());
      pipe_->reset_decoder();
      if (!changed.ok()) continue;
      said = co_await session_->connect(kHelloTries);
      mismatch = mismatch || mismatched();
    }
    if (stopped_) co_return true;
    if (!said.ok()) {
      report_hello_error(said, mismatch);
      session_->close(said);
      co_return false;
    }
    const SteadyTime since = std::chrono::steady_clock::now();
    const bool wanted = host_ != nullptr && host_->on_session(endpoint_, session_);
    if (!wanted) {
      session_->close(absl::FailedPreconditionError("quarantined"));
      co_return false;
    }
    report(model::PortState::kOnline, {});
    session_->run();
    const Status why = co_await session_->wait_closed();
    gone_ = serial && ::access(endpoint_.c_str(), F_OK) != 0;
    report(gone_ ? model::PortState::kGone : model::PortState::kOpening,
           reason_of(why, gone_ ? "PORT_GONE" : "SESSION_ENDED", gone_ ? "plug it in" : ""));
    co_return std::chrono::steady_clock::now() - since >= kStable;
  }

  // A port that has gone is looked for often: one stat() each, and it is back at once. An open one
  // is watched for its end likewise.
  asio::awaitable<void> rest(Target target, std::chrono::milliseconds pause) {
    const SteadyTime until = std::chrono::steady_clock::now() + pause;
    const bool open = pipe_ && pipe_->open();
    while (!stopped_ && std::chrono::steady_clock::now() < until) {
      const bool look = open || (gone_ && !target.tcp);
      const SteadyTime next =
          look ? std::min(until, std::chrono::steady_clock::now() + kLookForPort) : until;
      co_await wake_.wait_until(next);
      if (open && !pipe_->open()) co_return;
      if (look && !open && ::access(target.path.c_str(), F_OK) == 0) {
        backoff_.reset();
        co_return;
      }
    }
  }

  // Since talk() began.
  std::uint64_t garbage() const { return pipe_->rx_bytes() - bytes_before_; }
  std::uint64_t text() const { return pipe_->text_bytes() - text_before_; }
  // Text is read at the right speed.
  bool mismatched() const {
    return pipe_->rx_frames() == frames_before_ && garbage() > kGarbageBytes &&
           text() < garbage() / 2;
  }

  void report(model::PortState state, const model::Reason& reason) {
    if (host_ != nullptr && !stopped_) host_->on_port_state(endpoint_, state, reason);
  }

  void report_mismatch() {
    std::string speeds;
    for (const std::uint32_t baud : bauds_)
      speeds += (speeds.empty() ? "" : ", ") + std::to_string(baud);
    report(model::PortState::kBaudMismatchSuspected,
           {"BAUD_MISMATCH",
            fmt::format("{}: {} bytes without one sound frame at {} baud: the board seems to run "
                        "at another speed",
                        endpoint_, garbage(), bauds_.front()),
            fmt::format("tried are {}; give the board's speed: odtctl port adopt {} --baud N, or "
                        "baud in [[serial.allow]]",
                        speeds, endpoint_)});
  }

  void report_hello_error(const Status& said, bool mismatch) {
    if (mismatch) return report_mismatch();
    const bool silent = absl::IsDeadlineExceeded(said);
    if (silent && pipe_->echoes() > echoes_before_) {
      return report(model::PortState::kSilent,
                    {"ECHO", endpoint_ + ": what odtd writes comes back, and nothing else",
                     "are receiver and transmitter of the cable joined, or does an adapter echo? "
                     "Then no board is behind it"});
    }
    pipe_->flush_console();
    if (silent && text() > 0) {
      return report(model::PortState::kSilent,
                    {"SPEAKS_TEXT",
                     fmt::format("{}: no HELLO_ACK, but text: \"{}\"", endpoint_,
                                 wire::sanitise(pipe_->last_line(), kShownText)),
                     "a modem or a printer? Then: odtctl port release " + endpoint_ +
                         ". A board: does it run odt's firmware, or is it still starting?"});
    }
    if (silent) {
      return report(
          model::PortState::kSilent,
          reason_of(said, "SILENT",
                    "is this a board with odt firmware, and is it powered? For another program: "
                    "odtctl port release " +
                        endpoint_));
    }
    report(model::PortState::kError, reason_of(said, "HELLO_FAILED"));
  }

  void report_open_error(const Status& status) {
    if (absl::IsAlreadyExists(status)) {
      return report(model::PortState::kLocked,
                    reason_of(status, "PORT_LOCKED", "it is opened as soon as it is free"));
    }
    gone_ = absl::IsNotFound(status);
    if (gone_) return report(model::PortState::kGone, reason_of(status, "PORT_GONE", "plug it in"));
    const bool permission = absl::IsPermissionDenied(status);
    report(model::PortState::kError,
           reason_of(status, permission ? "PERMISSION" : "LINK_ERROR",
                     permission ? "add odtd's user to the group dialout" : ""));
  }

  asio::io_context& io_;
  const Clock& clock_;
  std::string endpoint_;
  LinkOptions options_;
  LinkHost* host_;
  Random random_;
  Backoff backoff_;
  std::shared_ptr<EndpointMemory> memory_;
  std::shared_ptr<FramePipe> pipe_;
  std::shared_ptr<SessionImpl> session_;
  Signal wake_, done_signal_;
  std::vector<std::uint32_t> bauds_;  // the one that answered last is first
  std::uint64_t bytes_before_ = 0, frames_before_ = 0, echoes_before_ = 0, text_before_ = 0;
  bool started_ = false, stopped_ = false, done_ = false, gone_ = false;
};

class EndpointRunner final : public LinkRunner {
 public:
  explicit EndpointRunner(std::shared_ptr<EndpointLoop> loop) : loop_(std::move(loop)) {}
  ~EndpointRunner() override {
    loop_->forget_host();
    loop_->halt();
  }
  void start() override { loop_->start(); }
  asio::awaitable<void> stop() override {
    loop_->halt();
    return loop_->wait_done(loop_);
  }

 private:
  std::shared_ptr<EndpointLoop> loop_;
};

}  // namespace

model::Reason reason_of(const Status& status, std::string code, std::string remedy) {
  return {std::move(code), std::string(status.message()), std::move(remedy)};
}

asio::awaitable<void> wait_pipe_closed(asio::io_context& io, std::shared_ptr<FramePipe> pipe) {
  asio::steady_timer timer(io);
  while (pipe->open()) {
    timer.expires_after(std::chrono::milliseconds(10));
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

std::unique_ptr<LinkRunner> make_link_runner(asio::io_context& io, const Clock& clock,
                                             std::string endpoint, LinkOptions options,
                                             LinkHost& host) {
  return std::make_unique<EndpointRunner>(
      std::make_shared<EndpointLoop>(io, clock, std::move(endpoint), std::move(options), host));
}

}  // namespace odt::session

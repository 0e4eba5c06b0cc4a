#include <fmt/format.h>

#include <list>

#include "link/tcp_link.h"
#include "session/runner_parts.h"

namespace odt::session {
namespace {

using asio::ip::tcp;

constexpr std::chrono::seconds kAcceptPause{1};  // out of descriptors: they come back
constexpr int kHelloTries = 8;                   // the deadline ends it

// Shared by its coroutines and the runner; host_ is null once the runner has gone.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(asio::io_context& io, const Clock& clock, tcp::acceptor acceptor, LinkOptions options,
           LinkHost& host, int max_pending)
      : io_(io),
        clock_(clock),
        acceptor_(std::move(acceptor)),
        options_(std::move(options)),
        host_(&host),
        max_pending_(max_pending),
        random_(system_random()),
        memory_(std::make_shared<EndpointMemory>()),
        pause_(io),
        done_signal_(io) {}

  void start() {
    if (started_ || stopped_) return;
    started_ = true;
    spawn(accept_loop(shared_from_this()));
  }

  void halt() {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.notify();
    const auto open = sessions_;
    for (const auto& session : open) {
      session->close(absl::CancelledError("the listener was stopped"));
    }
  }

  void forget_host() { host_ = nullptr; }

  asio::awaitable<void> wait_done(std::shared_ptr<Listener> self) {
    while (running_ > 0) co_await done_signal_.wait();
    (void)self;
  }

 private:
  void spawn(asio::awaitable<void> task) {
    ++running_;
    asio::co_spawn(io_, std::move(task), [self = shared_from_this()](std::exception_ptr) {
      --self->running_;
      self->done_signal_.notify();
    });
  }

  asio::awaitable<void> accept_loop(std::shared_ptr<Listener> self) {
    while (!stopped_) {
      boost::system::error_code ec;
      tcp::socket socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, ec));
      if (stopped_) co_return;
      if (ec) {
        co_await pause_.wait_until(std::chrono::steady_clock::now() + kAcceptPause);
        continue;
      }
      boost::system::error_code peer_error;
      const tcp::endpoint peer = socket.remote_endpoint(peer_error);
      if (peer_error || pending_ >= max_pending_) {
        socket.close(ec);
        continue;
      }
      const std::string name = fmt::format("{}-in:{}:{}", options_.tls ? "tls" : "tcp",
                                           peer.address().to_string(), peer.port());
      spawn(receive(self, std::move(socket), name));
    }
  }

  // Until it is over the connection counts as pending.
  asio::awaitable<void> receive(std::shared_ptr<Listener> self, tcp::socket socket,
                                std::string name) {
    ++pending_;
    const SteadyTime deadline = std::chrono::steady_clock::now() + options_.hello_deadline;
    if (!options_.tls) {
      co_await serve(self, link::make_tcp_link(std::move(socket), name), name, deadline);
      co_return;
    }
    // A stop does not wait for a client that says nothing: nobody is spoken to before this is over.
    --running_;
    done_signal_.notify();
    const auto link = co_await link::accept_tls(io_, std::move(socket), options_.tls, name,
                                                options_.hello_deadline);
    ++running_;
    if (link.ok() && !stopped_) {
      co_await serve(self, *link, name, deadline);
      co_return;
    }
    --pending_;
    if (link.ok()) {
      (*link)->close();
    } else if (!stopped_ && host_ != nullptr) {
      host_->on_refused(name, reason_of(link.status(), "TLS_REFUSED",
                                        "see `odtctl doctor`; certificates and keys are those of "
                                        "[boards] in odtd.toml"));
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Listener> self, std::shared_ptr<link::ByteLink> link,
                              std::string name, SteadyTime until) {
    auto pipe = std::make_shared<FramePipe>(io_, std::move(link), !options_.tcp_lossy);
    pipe->start();
    auto session =
        std::make_shared<SessionImpl>(io_, clock_, options_, pipe, memory_, name, random_);
    const auto place = sessions_.insert(sessions_.end(), session);
    asio::steady_timer deadline(io_, until);
    deadline.async_wait([weak = std::weak_ptr<SessionImpl>(session)](boost::system::error_code ec) {
      const auto late = weak.lock();
      if (!ec && late && !late->alive()) {
        late->close(absl::DeadlineExceededError("no HELLO_ACK within the deadline"));
      }
    });
    const Status said = co_await session->connect(kHelloTries);
    deadline.cancel();
    --pending_;
    if (said.ok() && !stopped_) {
      const bool wanted = host_ != nullptr && host_->on_session(name, session);
      if (wanted) {
        session->run();
        const Status why = co_await session->wait_closed();
        (void)why;
      } else {
        session->close(absl::FailedPreconditionError("quarantined"));
      }
    }
    session->close(said.ok() ? absl::CancelledError("done") : said);
    co_await wait_pipe_closed(io_, pipe);
    sessions_.erase(place);
    (void)self;
  }

  asio::io_context& io_;
  const Clock& clock_;
  tcp::acceptor acceptor_;
  LinkOptions options_;
  LinkHost* host_;
  int max_pending_, pending_ = 0, running_ = 0;
  Random random_;
  std::shared_ptr<EndpointMemory> memory_;
  std::list<std::shared_ptr<SessionImpl>> sessions_;
  Signal pause_, done_signal_;
  bool started_ = false, stopped_ = false;
};

class ListenerRunner final : public LinkRunner {
 public:
  explicit ListenerRunner(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}
  ~ListenerRunner() override {
    listener_->forget_host();
    listener_->halt();
  }
  void start() override { listener_->start(); }
  asio::awaitable<void> stop() override {
    listener_->halt();
    return listener_->wait_done(listener_);
  }

 private:
  std::shared_ptr<Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<LinkRunner>> make_tcp_listener(asio::io_context& io, const Clock& clock,
                                                      const std::string& address,
                                                      std::uint16_t port, LinkOptions options,
                                                      LinkHost& host, int max_pending) {
  auto acceptor =
      link::listen_tcp(io, address, port, options.insecure_tcp || options.tls != nullptr);
  if (!acceptor.ok()) return acceptor.status();
  return std::unique_ptr<LinkRunner>(std::make_unique<ListenerRunner>(std::make_shared<Listener>(
      io, clock, *std::move(acceptor), std::move(options), host, max_pending)));
}

}  // namespace odt::session

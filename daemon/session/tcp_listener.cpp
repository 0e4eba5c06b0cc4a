#include <fmt/format.h>
#include <sys/resource.h>

#include <list>

#include "link/tcp_link.h"
#include "session/runner_parts.h"

namespace odt::session {
namespace {

using asio::ip::tcp;

constexpr std::chrono::seconds kAcceptPause{1};  // out of descriptors: they come back
constexpr int kHelloTries = 8;                   // the deadline ends it
constexpr std::chrono::seconds kSayAgain{10};    // that the house is full

// The rest of the descriptors is for the API, the stores and serial ports: without any, they stand.
std::size_t bounded_open(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2);
}

// A connection that has not answered a HELLO yet.
struct Seat {
  SteadyTime since = std::chrono::steady_clock::now();
  std::weak_ptr<link::ByteLink> link;
};

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
        max_pending_(static_cast<std::size_t>(max_pending)),
        max_open_(bounded_open(options_.max_open)),
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
      const std::string name = peer_error ? std::string()
                                          : fmt::format("{}-in:{}:{}", options_.tls ? "tls" : "tcp",
                                                        peer.address().to_string(), peer.port());
      if (peer_error || !has_room(name)) {
        socket.close(ec);
        continue;
      }
      pending_.push_back(std::make_shared<Seat>());
      spawn(receive(self, std::move(socket), name, pending_.back()));
    }
  }

  // Who says nothing does not keep out who does: where all seats are taken, the one that has been
  // silent for longest gives way, once it has had its time.
  bool has_room(const std::string& name) {
    const bool open = open_ < max_open_;
    if (open && pending_.size() < max_pending_) return true;
    ++turned_away_;
    say_full(name, open);
    if (!open || pending_.empty()) return false;
    const SteadyTime until = pending_.front()->since + options_.make_room;
    if (std::chrono::steady_clock::now() < until) return false;
    const auto silent = pending_.front()->link.lock();
    pending_.pop_front();
    if (silent) silent->close();
    return true;
  }

  void say_full(const std::string& name, bool open) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (host_ == nullptr || now < say_again_) return;
    say_again_ = now + kSayAgain;
    const std::string what =
        open ? fmt::format("{} connections have not answered a HELLO; limit {}", pending_.size(),
                           max_pending_)
             : fmt::format("{} connections are open; limit {}", open_, max_open_);
    host_->on_refused(
        name, {"TOO_MANY_CONNECTIONS",
               fmt::format("{}: {}; {} turned away or closed so far", name, what, turned_away_),
               "Is there another program that dials this port? Boards try again by themselves."});
  }

  void leave(const std::shared_ptr<Seat>& seat) { pending_.remove(seat); }

  // Until it has answered a HELLO the connection has its seat among the pending.
  asio::awaitable<void> receive(std::shared_ptr<Listener> self, tcp::socket socket,
                                std::string name, std::shared_ptr<Seat> seat) {
    const Open counted(*this);
    const SteadyTime deadline = std::chrono::steady_clock::now() + options_.hello_deadline;
    if (!options_.tls) {
      co_await serve(self, link::make_tcp_link(std::move(socket), name), name, deadline, seat);
      co_return;
    }
    // A stop does not wait for a client that says nothing: nobody is spoken to before this is over.
    --running_;
    done_signal_.notify();
    std::function<void(std::weak_ptr<link::ByteLink>)> opened =
        [seat](std::weak_ptr<link::ByteLink> half_open) { seat->link = std::move(half_open); };
    const auto link = co_await link::accept_tls(io_, std::move(socket), options_.tls, name,
                                                options_.hello_deadline, std::move(opened));
    ++running_;
    if (link.ok() && !stopped_) {
      co_await serve(self, *link, name, deadline, seat);
      co_return;
    }
    leave(seat);
    if (link.ok()) {
      (*link)->close();
    } else if (!stopped_ && host_ != nullptr) {
      host_->on_refused(name, reason_of(link.status(), "TLS_REFUSED",
                                        "see `odtctl doctor`; certificates and keys are those of "
                                        "[boards] in odtd.toml"));
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Listener> self, std::shared_ptr<link::ByteLink> link,
                              std::string name, SteadyTime until, std::shared_ptr<Seat> seat) {
    seat->link = link;
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
    leave(seat);
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

  // Counts a connection for as long as its coroutine lives.
  class Open {
   public:
    explicit Open(Listener& listener) : listener_(listener) { ++listener_.open_; }
    ~Open() { --listener_.open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Listener& listener_;
  };

  asio::io_context& io_;
  const Clock& clock_;
  tcp::acceptor acceptor_;
  LinkOptions options_;
  LinkHost* host_;
  std::size_t max_pending_, max_open_, open_ = 0, turned_away_ = 0;
  std::list<std::shared_ptr<Seat>> pending_;  // oldest first
  SteadyTime say_again_{};
  int running_ = 0;
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

#include <fmt/format.h>

#include "session/session_impl.h"

namespace odt::session {
namespace {

constexpr std::uint32_t kProtoMin = 1, kProtoMax = 1;
constexpr std::size_t kRememberBoots = EndpointMemory::kMaxBoots;

}  // namespace

asio::awaitable<Status> SessionImpl::connect(int tries) {
  const auto self = shared_from_this();
  const Status said = co_await say_hello(tries);
  co_return said;
}

// One HELLO exchange at a time; who comes second waits for the outcome of the first.
asio::awaitable<Status> SessionImpl::say_hello(int tries) {
  if (rehello_) {
    const std::uint32_t incarnation = incarnation_;
    while (rehello_ && !closed_) {
      co_await pending_signal_.wait_until(now() + std::chrono::milliseconds(20));
    }
    if (closed_) co_return gone();
    if (incarnation != incarnation_) co_return absl::OkStatus();
    co_return absl::DeadlineExceededError("no HELLO_ACK");
  }
  rehello_ = true;
  const Status done = co_await exchange_hello(tries);
  rehello_ = false;
  resumed_at_ = now();
  pending_signal_.notify();
  transfer_signal_.notify();
  co_return done;
}

asio::awaitable<Status> SessionImpl::exchange_hello(int tries) {
  std::uint16_t session = 0;
  while (session == 0 || session == hello_session_) session = static_cast<std::uint16_t>(random_());
  hello_session_ = session;
  hello_ack_.reset();
  pipe_->clear_bulk();
  wire::Hello hello;
  hello.proto_min = kProtoMin;
  hello.proto_max = kProtoMax;
  hello.host_id = options_.host_id;
  hello.session64 = random_();
  hello.mtu = options_.mtu;
  hello.nonce = random_();
  const std::string payload = wire::encode(hello);
  auto wait = options_.hello_timeout;
  for (int i = 0; i < tries && !hello_ack_ && !closed_; ++i, wait *= 2) {
    pipe_->send({FRAME_HELLO, session, static_cast<std::uint32_t>(i), payload});
    const SteadyTime until = now() + wait;
    while (!hello_ack_ && !closed_ && now() < until) co_await hello_signal_.wait_until(until);
  }
  if (closed_) co_return gone();
  if (!hello_ack_) {
    co_return absl::DeadlineExceededError(
        fmt::format("{}: no HELLO_ACK after {} tries", endpoint_, tries));
  }
  co_return accept_hello(*hello_ack_);
}

Status SessionImpl::accept_hello(const wire::HelloAck& ack) {
  const model::HelloInfo& info = ack.info;
  if (ack.proto < kProtoMin || ack.proto > kProtoMax) {
    return absl::FailedPreconditionError(
        fmt::format("{}: board {} has no protocol in common with this daemon ({}..{}); firmware {}",
                    endpoint_, info.uid.hex(), kProtoMin, kProtoMax, info.fw_version));
  }
  if (info.mtu < FRAME_MTU_MIN || info.mtu > options_.mtu) {
    return absl::FailedPreconditionError(fmt::format("{}: board {} says MTU {}; allowed {}..{}",
                                                     endpoint_, info.uid.hex(), info.mtu,
                                                     FRAME_MTU_MIN, options_.mtu));
  }
  if (connected_ && (info.boot_id != hello_.boot_id || info.uid != hello_.uid)) {
    return absl::UnavailableError(
        fmt::format("{}: the board has restarted ({})", endpoint_, info.reset_reason));
  }
  const bool first = !connected_;
  hello_ = info;
  mtu_ = info.mtu;
  pipe_->set_session(hello_session_);
  connected_ = true;
  ++incarnation_;
  rto_.set_min(std::max<Rto::us>(options_.rto_min, std::chrono::milliseconds(info.max_poll_ms)));
  last_seen_ = now();
  keepalive_.on_receive(last_seen_);
  if (first) {
    ++memory_->sessions;
    run_ = info.run_id;
    attempt_ = info.attempt;
  } else if (events_begun_) {
    order_.announce(info.next_event);
    start_refill();
  }
  return absl::OkStatus();
}

void SessionImpl::on_hello_ack(const wire::Frame& frame) {
  if (!rehello_ || frame.session != hello_session_ || hello_ack_) return;
  Result<wire::HelloAck> ack = wire::decode_hello_ack(frame.payload);
  if (!ack.ok()) {
    log_line(3, std::string(ack.status().message()));
    return;
  }
  hello_ack_ = *std::move(ack);
  hello_signal_.notify();
}

void SessionImpl::on_need_hello(const wire::Frame& frame) {
  if (rehello_) return;
  const Result<wire::NeedHello> need = wire::decode_need_hello(frame.payload);
  if (!need.ok()) return;
  if (need->boot_id != hello_.boot_id) {
    return finish(absl::UnavailableError(
        fmt::format("{}: the board has restarted ({})", endpoint_, need->reset_reason)));
  }
  start_rehello();
}

void SessionImpl::start_rehello() {
  // Before run() the host has not consented yet; the board asks again.
  if (!running_) return;
  struct Task {
    static asio::awaitable<void> rehello([[maybe_unused]] std::shared_ptr<SessionImpl> self) {
      const Status said = co_await self->say_hello(3);
      if (!said.ok()) self->finish(said);
    }
  };
  spawn(Task::rehello(shared_from_this()));
}

void SessionImpl::run() {
  if (running_ || closed_) return;
  running_ = true;
  const SteadyTime start = now();
  keepalive_ = Keepalive(options_.ping_idle, options_.suspect_after, options_.down_after, start);
  spawn(keepalive_loop(shared_from_this()));
}

asio::awaitable<void> SessionImpl::keepalive_loop(
    [[maybe_unused]] std::shared_ptr<SessionImpl> self) {
  while (!closed_) {
    const Keepalive::Due due = keepalive_.check(now());
    if (due.down) {
      finish(absl::UnavailableError(
          fmt::format("{}: silent for {} ms", endpoint_, options_.down_after.count())));
      co_return;
    }
    if (status_ == model::BoardStatus::kBusy && !due.busy) {
      pipe_->hold(false);
      resumed_at_ = now();
    }
    if (due.ping) {
      ping_sent_ = now();
      pipe_->send({FRAME_PING, 0, ++next_ping_, {}});
      pipe_->flush_console();
    }
    set_status(due.status);
    if (!closed_) co_await keepalive_signal_.wait_until(due.next);
  }
}

void SessionImpl::on_busy(const wire::Frame& frame) {
  const Result<std::uint32_t> duration = wire::decode_busy(frame.payload);
  if (!duration.ok()) return;
  keepalive_.on_busy(now(), std::chrono::milliseconds(*duration));
  pipe_->hold(true);
  set_status(model::BoardStatus::kBusy);
  keepalive_signal_.notify();
}

void SessionImpl::on_pong(const wire::Frame& frame) {
  const Result<wire::Pong> pong = wire::decode_pong(frame.payload);
  if (!pong.ok()) return;
  keepalive_.on_answer(now());
  if (status_ == model::BoardStatus::kBusy) {
    keepalive_.end_busy(now());
    resumed_at_ = now();
    pipe_->hold(false);
    set_status(model::BoardStatus::kOnline);
    keepalive_signal_.notify();
  }
  if (frame.id == next_ping_ && rto_.smoothed().count() == 0) {
    rto_.sample(std::chrono::duration_cast<Rto::us>(now() - ping_sent_));
  }
  if (pong->next_event != 0 && events_begun_) {
    order_.announce(pong->next_event);
    start_refill();
  }
}

void SessionImpl::set_status(model::BoardStatus status) {
  if (status == status_ || closed_) return;
  status_ = status;
  if (sink_ != nullptr) sink_->on_status(status);
}

void SessionImpl::close(const Status& why) {
  if (closed_) return;
  pipe_->set_handler(nullptr);
  if (connected_) pipe_->send({FRAME_BYE, hello_session_, 0, {}});
  finish(why);
}

void SessionImpl::end_pipe(const Status& why) {
  if (owns_link_) return pipe_->close_after_flush(why);
  pipe_->clear_bulk();
  pipe_->hold(false);
}

void SessionImpl::on_pipe_closed(const Status& why) { finish(why); }

Status SessionImpl::gone() const {
  return absl::UnavailableError("session is over: " + std::string(closed_why_.message()));
}

void SessionImpl::finish(const Status& why) {
  if (closed_) return;
  closed_ = true;
  closed_why_ = why;
  remember_events();
  pipe_->set_handler(nullptr);
  end_pipe(why);
  while (memory_->next_event.size() > kRememberBoots) {
    memory_->next_event.erase(memory_->next_event.begin());
  }
  while (memory_->partial.size() > kRememberBoots) memory_->partial.erase(memory_->partial.begin());
  request_lock_.close();
  transfer_lock_.close();
  for (Signal* signal : {&hello_signal_, &keepalive_signal_, &closed_signal_, &pending_signal_,
                         &progress_signal_, &transfer_signal_, &events_signal_}) {
    signal->notify();
  }
  // Posted, so that whoever closes the session from a callback is not called back inside it.
  asio::post(io_, [self = shared_from_this()] {
    SessionSink* sink = std::exchange(self->sink_, nullptr);
    if (sink != nullptr) sink->on_closed(self->closed_why_);
  });
}

asio::awaitable<Status> SessionImpl::wait_closed() {
  const auto self = shared_from_this();
  while (!closed_) co_await closed_signal_.wait();
  co_return closed_why_;
}

void SessionImpl::spawn(asio::awaitable<void> task) {
  asio::co_spawn(io_, std::move(task), [self = shared_from_this()](std::exception_ptr error) {
    if (error) self->finish(absl::InternalError(self->endpoint_ + ": session failed"));
  });
}

}  // namespace odt::session

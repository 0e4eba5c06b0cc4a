#include "session/session_impl.h"

#include <fmt/format.h>

namespace odt::session {
namespace {

constexpr int kTries = 5;
constexpr int kRounds = 2;       // of kTries, with a HELLO between
constexpr int kMaxRestarts = 8;  // of one request by NEED_HELLO
constexpr std::chrono::milliseconds kMinPoll{20}, kMaxPoll{1000};
constexpr std::chrono::minutes kMaxAccepted{30};

}  // namespace

SessionImpl::SessionImpl(asio::io_context& io, const Clock& clock, LinkOptions options,
                         std::shared_ptr<FramePipe> pipe, std::shared_ptr<EndpointMemory> memory,
                         std::string endpoint, Random random)
    : io_(io),
      clock_(clock),
      options_(std::move(options)),
      pipe_(std::move(pipe)),
      memory_(std::move(memory)),
      endpoint_(std::move(endpoint)),
      random_(std::move(random)),
      hello_signal_(io),
      keepalive_signal_(io),
      closed_signal_(io),
      last_seen_(now()),
      resumed_at_(now()),
      ping_sent_(now()),
      keepalive_(options_.ping_idle, options_.suspect_after, options_.down_after, now()),
      request_lock_(io),
      transfer_lock_(io),
      pending_signal_(io),
      progress_signal_(io),
      rto_(options_.rto_start, options_.rto_min, options_.rto_max),
      transfer_signal_(io),
      events_signal_(io),
      logs_(now()) {
  pipe_->set_handler(this);
}

SessionImpl::~SessionImpl() {
  if (!closed_) pipe_->set_handler(nullptr);
}

model::LinkStats SessionImpl::stats() const {
  model::LinkStats s;
  s.endpoint = endpoint_;
  s.rx_frames = pipe_->rx_frames();
  s.tx_frames = pipe_->tx_frames();
  s.rx_bytes = pipe_->rx_bytes();
  s.tx_bytes = pipe_->tx_bytes();
  s.crc_errors = pipe_->rx_errors();
  s.retries = retries_;
  s.telemetry_gaps = gaps_;
  s.rtt_us = static_cast<std::uint32_t>(rto_.smoothed().count());
  s.session_count = memory_->sessions;
  return s;
}

void SessionImpl::on_frame(const wire::Frame& frame) {
  if (closed_) return;
  if (frame.type == FRAME_HELLO_ACK) return on_hello_ack(frame);
  if (!connected_) return;
  // These two come without a session: the board knows none.
  if (frame.type == FRAME_NEED_HELLO) return on_need_hello(frame);
  if (frame.type == FRAME_LINK_ERR) return on_link_err(frame);
  if (frame.session != hello_session_) return;  // late, of an earlier session
  last_seen_ = now();
  keepalive_.on_receive(last_seen_);
  if (status_ == model::BoardStatus::kSuspect) keepalive_signal_.notify();
  switch (frame.type) {
    case FRAME_RSP:
      return on_response(frame);
    case FRAME_PONG:
      return on_pong(frame);
    case FRAME_BUSY:
      return on_busy(frame);
    case FRAME_EVENT:
      return on_event(frame);
    case FRAME_LOG:
      return on_log(frame);
    case FRAME_WINDOW_TO_HOST: {
      const Result<wire::Window> window = wire::decode_window(frame.payload);
      if (!window.ok() || !transfer_.active || frame.id != transfer_.id) return;
      if (transfer_.windows.size() < 64) transfer_.windows.push_back(*window);
      return transfer_signal_.notify();
    }
    case FRAME_CHUNK_TO_HOST: {
      Result<wire::Chunk> chunk = wire::decode_chunk(frame.payload);
      if (!chunk.ok() || !transfer_.active || frame.id != transfer_.id) return;
      if (transfer_.chunks.size() < 64) transfer_.chunks.push_back(*std::move(chunk));
      return transfer_signal_.notify();
    }
    default:
      return;  // of a newer firmware
  }
}

void SessionImpl::on_response(const wire::Frame& frame) {
  // An answer that is not to the outstanding request is late: never taken for the next one's.
  if (!pending_.active || frame.id != pending_.id || pending_.answer) return;
  pending_.answer = wire::decode_response(frame.payload);
  pending_signal_.notify();
}

void SessionImpl::on_link_err(const wire::Frame& frame) {
  const Result<wire::LinkErr> e = wire::decode_link_err(frame.payload);
  if (!e.ok()) return;
  log_line(3, fmt::format("link error: reason {}, limit {}, got {}", static_cast<int>(e->reason),
                          e->limit, e->got));
  if (!pending_.active || pending_.answer || (frame.id != 0 && frame.id != pending_.id)) return;
  switch (e->reason) {
    case wire::LinkErr::Reason::kOversize:
      pending_.answer = absl::ResourceExhaustedError(
          fmt::format("request of {} bytes; the board takes {}", e->got, e->limit));
      break;
    case wire::LinkErr::Reason::kUnknownType:
      pending_.answer = absl::UnimplementedError("the board does not know this frame type");
      break;
    case wire::LinkErr::Reason::kUndecodable:
      pending_.answer = absl::InvalidArgumentError("the board cannot decode this request");
      break;
    case wire::LinkErr::Reason::kUnknown:
      return;  // a retry will tell
  }
  pending_signal_.notify();
}

asio::awaitable<bool> SessionImpl::wait_answer(SteadyTime sent, std::uint32_t incarnation) {
  const auto rto = rto_.value();
  while (!closed_ && !pending_.answer && incarnation == incarnation_) {
    const bool paused = status_ == model::BoardStatus::kBusy || rehello_;
    const SteadyTime deadline = std::max(sent, resumed_at_) + rto;
    if (!paused && now() >= deadline) co_return false;
    co_await pending_signal_.wait_until(paused ? now() + std::chrono::milliseconds(100) : deadline);
  }
  co_return true;
}

asio::awaitable<Result<wire::Answer>> SessionImpl::exchange(std::string payload) {
  const auto self = shared_from_this();
  const std::optional<FifoLock::Guard> guard = co_await request_lock_.lock();
  if (!guard && !closed_) co_return absl::ResourceExhaustedError("too many requests wait");
  if (closed_) co_return gone();
  if (payload.size() > mtu_) {
    co_return absl::ResourceExhaustedError(
        fmt::format("request of {} bytes; the link takes {}", payload.size(), mtu_));
  }
  int restarts = 0;
  for (int round = 0, tries = 0; round < kRounds && restarts < kMaxRestarts;) {
    const std::uint32_t incarnation = incarnation_;
    pending_ = {true, next_request_++, std::nullopt};
    const SteadyTime first = now();
    const auto patient = [&] { return last_seen_ > first && now() - first < options_.slow_answer; };
    for (tries = 0; tries < kTries || patient(); ++tries) {
      const SteadyTime sent = now();
      pipe_->send({FRAME_REQ, 0, pending_.id, payload});
      const bool woken = co_await wait_answer(sent, incarnation);
      if (closed_ || incarnation != incarnation_) break;
      if (pending_.answer) {
        if (tries == 0) {
          rto_.sample(std::chrono::duration_cast<Rto::us>(now() - std::max(sent, resumed_at_)));
        }
        break;
      }
      if (!woken) {
        ++retries_;
        rto_.backoff();
      }
    }
    pending_.active = false;
    if (closed_) co_return gone();
    if (pending_.answer) co_return std::move(*pending_.answer);
    if (incarnation != incarnation_) {
      ++restarts;  // requests may be repeated in a new session
      continue;
    }
    ++round;
    const Status again = co_await say_hello(3);
    if (!again.ok()) finish(again);
    if (closed_) co_return gone();
  }
  co_return absl::DeadlineExceededError("the board lives but does not answer this request");
}

asio::awaitable<Result<wire::Answer>> SessionImpl::call(std::string payload) {
  const auto self = shared_from_this();
  const SteadyTime until = now() + kMaxAccepted;
  for (;;) {
    Result<wire::Answer> answer = co_await exchange(payload);
    if (!answer.ok()) co_return answer;
    if (!answer->error.ok()) co_return answer->error;
    if (answer->accepted_ms == 0) co_return answer;
    if (now() >= until) co_return absl::DeadlineExceededError("the board works on it for too long");
    const auto pause =
        std::clamp(std::chrono::milliseconds(answer->accepted_ms), kMinPoll, kMaxPoll);
    co_await progress_signal_.wait_until(now() + pause);
    if (closed_) co_return gone();
  }
}

asio::awaitable<Status> SessionImpl::call_status(std::string payload) {
  const Result<wire::Answer> answer = co_await call(std::move(payload));
  co_return answer.status();
}

}  // namespace odt::session

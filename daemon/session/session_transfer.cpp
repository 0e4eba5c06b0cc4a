#include <fmt/format.h>

#include "session/session_impl.h"

// Bulk transfers: open, window, commit; broken ones are taken up again where both ends agree on the
// bytes held (prefix CRC), else from the start.
namespace odt::session {
namespace {

constexpr int kAttempts = 4;
constexpr int kMaxTimeouts = 6;  // without progress, before the transfer is opened anew
constexpr std::chrono::milliseconds kMinTimeout{500};
constexpr std::uint32_t kDefaultChunk = 512;
constexpr std::uint32_t kChunkOverhead = 12;  // field tags, offset, length
constexpr std::uint32_t kReceiveChunks = 8;
constexpr std::uint32_t kMaxReceive = 16u << 20;  // no board holds more

// The transfer itself broke, not the request: worth another attempt.
bool worth_retry(const Status& status) {
  return absl::IsAborted(status) || absl::IsDataLoss(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsNotFound(status);
}

}  // namespace

std::uint32_t SessionImpl::chunk_limit(std::uint32_t chunk) const {
  if (chunk == 0) chunk = kDefaultChunk;
  return std::min(chunk, mtu_ - kChunkOverhead);
}

void SessionImpl::begin_transfer(std::uint32_t id) {
  transfer_.active = true;
  transfer_.id = id;
  transfer_.windows.clear();
  transfer_.chunks.clear();
}

void SessionImpl::end_transfer() {
  transfer_.active = false;
  pipe_->clear_bulk();
}

SteadyTime SessionImpl::transfer_deadline(int timeouts) const {
  const std::chrono::steady_clock::duration base =
      std::max<std::chrono::steady_clock::duration>(kMinTimeout, rto_.value() * 2);
  return std::max(now(), resumed_at_) +
         std::min<std::chrono::steady_clock::duration>(base * (1 << timeouts), options_.rto_max);
}

Status SessionImpl::check_opened(const wire::XferOpened& opened, const std::string& content,
                                 const wire::XferOpen& open) const {
  if (opened.offset > open.resume_offset) {
    return absl::AbortedError(
        fmt::format("the board resumes at {}; offered were {}", opened.offset, open.resume_offset));
  }
  const std::string_view prefix(content.data(), opened.offset);
  if (opened.offset != 0 && wire::crc32(prefix) != opened.prefix_crc) {
    return absl::AbortedError("the bytes held differ: prefix CRC");
  }
  return absl::OkStatus();
}

asio::awaitable<Status> SessionImpl::send(model::Resource resource, std::uint32_t index,
                                          std::shared_ptr<const std::string> content,
                                          std::uint32_t batch_id, Hash expect, Progress progress) {
  const auto self = shared_from_this();
  const std::optional<FifoLock::Guard> guard = co_await transfer_lock_.lock();
  if (closed_) co_return gone();
  if (!guard) co_return absl::ResourceExhaustedError("too many transfers wait");
  if (content->size() > UINT32_MAX) co_return absl::InvalidArgumentError("transfer over 4 GiB");
  wire::XferOpen open;
  open.resource = resource;
  open.index = index;
  open.size = static_cast<std::uint32_t>(content->size());
  open.crc32 = wire::crc32(*content);
  open.batch_id = batch_id;
  open.expect = expect;
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto held = memory_->partial.find(boot());
    open.resume_offset = 0;
    if (held != memory_->partial.end() && held->second.resource == resource &&
        held->second.index == index && held->second.size == open.size &&
        held->second.crc32 == open.crc32 && held->second.batch_id == batch_id) {
      open.resume_offset = held->second.acked;
    }
    open.prefix_crc = wire::crc32(std::string_view(*content).substr(0, open.resume_offset));
    open.xfer_id = next_transfer_++;
    status = co_await send_once(open, content, progress);
    if (closed_ && !status.ok()) co_return gone();
    if (status.ok() || absl::IsDataLoss(status) || absl::IsAborted(status)) {
      memory_->partial.erase(boot());
    }
    if (status.ok() || !worth_retry(status)) co_return status;
    ++retries_;
  }
  co_return status;
}

asio::awaitable<Status> SessionImpl::send_once(wire::XferOpen open,
                                               std::shared_ptr<const std::string> content,
                                               Progress progress) {
  Result<wire::Answer> answer = co_await call(wire::request::xfer_open(open));
  if (!answer.ok()) co_return answer.status();
  const auto* opened = std::get_if<wire::XferOpened>(&answer->result);
  if (opened == nullptr) co_return absl::InternalError("the board's answer opens no transfer");
  const Status agreed = check_opened(*opened, *content, open);
  if (!agreed.ok()) {
    const Status aborted = co_await call_status(wire::request::xfer_abort(open.xfer_id));
    if (closed_) co_return aborted;
    co_return agreed;
  }
  std::uint32_t acked = opened->offset;
  begin_transfer(open.xfer_id);
  const Status pushed = co_await push_window(*opened, open.xfer_id, content, progress, &acked);
  end_transfer();
  memory_->partial[boot()] = {open.resource, open.index,    open.size,
                              open.crc32,    open.batch_id, acked};
  if (closed_ || worth_retry(pushed)) co_return pushed;
  // A refusal in a WINDOW is a code only; the answer to COMMIT says what is wrong.
  const Status committed =
      co_await call_status(wire::request::xfer_commit(open.xfer_id, open.crc32));
  co_return committed.ok() ? pushed : committed;
}

asio::awaitable<Status> SessionImpl::push_window(wire::XferOpened opened, std::uint32_t xfer_id,
                                                 std::shared_ptr<const std::string> content,
                                                 Progress progress, std::uint32_t* acked) {
  SendWindow window(opened.offset, static_cast<std::uint32_t>(content->size()), opened.window,
                    chunk_limit(opened.chunk));
  const std::uint32_t incarnation = incarnation_;
  int timeouts = 0;
  SteadyTime deadline = transfer_deadline(0);
  while (!window.done()) {
    while (const auto span = window.next()) {
      pipe_->send({FRAME_CHUNK_TO_BOARD, 0, xfer_id,
                   wire::encode_chunk(span->offset,
                                      std::string_view(*content).substr(span->offset, span->size))},
                  FramePipe::Lane::kBulk);
      co_await pipe_->bulk_room();
      deadline = transfer_deadline(timeouts);
      if (!transfer_.windows.empty() || closed_) break;
    }
    if (transfer_.windows.empty() && !closed_ && incarnation == incarnation_) {
      co_await transfer_signal_.wait_until(deadline);
    }
    if (closed_) co_return gone();
    if (incarnation != incarnation_) co_return absl::DeadlineExceededError("new session");
    if (status_ == model::BoardStatus::kBusy || rehello_) deadline = transfer_deadline(timeouts);
    while (!transfer_.windows.empty()) {
      const wire::Window got = transfer_.windows.front();
      transfer_.windows.pop_front();
      if (got.status != absl::StatusCode::kOk) {
        co_return Status(got.status, "board: ended the transfer");
      }
      const SendWindow::Outcome outcome = window.on_window(got);
      if (outcome == SendWindow::Outcome::kRetransmit) {
        ++retries_;
        pipe_->clear_bulk();
      }
      if (window.acked() > *acked) timeouts = 0;
      *acked = window.acked();
      deadline = transfer_deadline(timeouts);
    }
    if (progress) progress(window.acked(), static_cast<std::uint32_t>(content->size()));
    if (now() < deadline) continue;
    if (++timeouts > kMaxTimeouts) co_return absl::DeadlineExceededError("transfer stands still");
    ++retries_;
    pipe_->clear_bulk();
    window.on_timeout();
    deadline = transfer_deadline(timeouts);
  }
  co_return absl::OkStatus();
}

asio::awaitable<Result<BoardSession::Received>> SessionImpl::receive(model::Resource resource,
                                                                     std::uint32_t index) {
  const auto self = shared_from_this();
  const std::optional<FifoLock::Guard> guard = co_await transfer_lock_.lock();
  if (closed_) co_return gone();
  if (!guard) co_return absl::ResourceExhaustedError("too many transfers wait");
  wire::XferOpen open;
  open.resource = resource;
  open.index = index;
  open.to_board = false;
  Received out;
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    open.resume_offset = static_cast<std::uint32_t>(out.content.size());
    open.prefix_crc = wire::crc32(out.content);
    open.xfer_id = next_transfer_++;
    status = co_await receive_once(open, &out);
    if (status.ok()) co_return out;
    if (closed_) co_return gone();
    if (absl::IsDataLoss(status) || absl::IsAborted(status)) out.content.clear();
    if (!worth_retry(status) || (absl::IsNotFound(status) && out.content.empty())) break;
    ++retries_;
  }
  co_return status;
}

asio::awaitable<Status> SessionImpl::receive_once(wire::XferOpen open, Received* out) {
  Result<wire::Answer> answer = co_await call(wire::request::xfer_open(open));
  if (!answer.ok()) co_return answer.status();
  const auto* opened = std::get_if<wire::XferOpened>(&answer->result);
  if (opened == nullptr) co_return absl::InternalError("the board's answer opens no transfer");
  if (opened->size > kMaxReceive) {
    co_return absl::ResourceExhaustedError(
        fmt::format("the board offers {} bytes; at most {}", opened->size, kMaxReceive));
  }
  // What was received before counts only if the board still has the same content.
  const bool same = opened->version == out->version && opened->offset == out->content.size() &&
                    opened->offset <= opened->size;
  if (!same) {
    out->content.clear();
    if (opened->offset != 0) {
      const Status aborted = co_await call_status(wire::request::xfer_abort(open.xfer_id));
      if (closed_) co_return aborted;
      co_return absl::AbortedError("the board's content has changed");
    }
  }
  out->version = opened->version;
  begin_transfer(open.xfer_id);
  const Status pulled = co_await pull_window(*opened, open.xfer_id, out);
  end_transfer();
  if (!pulled.ok()) co_return pulled;
  const bool sound = wire::crc32(out->content) == opened->crc32;
  std::string end = wire::request::xfer_abort(open.xfer_id);
  if (sound) end = wire::request::xfer_commit(open.xfer_id, opened->crc32);
  const Status ended = co_await call_status(end);
  if (!sound) co_return absl::DataLossError("received content has another CRC");
  // All bytes are here and proven; a board that has forgotten the transfer meanwhile changes
  // nothing.
  if (!ended.ok() && closed_) co_return ended;
  co_return absl::OkStatus();
}

asio::awaitable<Status> SessionImpl::pull_window(wire::XferOpened opened, std::uint32_t xfer_id,
                                                 Received* out) {
  const std::uint32_t span = kReceiveChunks * chunk_limit(opened.chunk);
  ReceiveWindow window(opened.offset, opened.size, std::max(span, opened.window));
  const auto answer = [this, xfer_id](const wire::Window& w) {
    pipe_->send({FRAME_WINDOW_TO_BOARD, 0, xfer_id, wire::encode(w)});
  };
  const std::uint32_t incarnation = incarnation_;
  int timeouts = 0;
  SteadyTime deadline = transfer_deadline(0);
  answer(window.open());
  while (!window.done()) {
    if (transfer_.chunks.empty() && transfer_.windows.empty()) {
      co_await transfer_signal_.wait_until(deadline);
    }
    if (closed_) co_return gone();
    if (incarnation != incarnation_) co_return absl::DeadlineExceededError("new session");
    if (status_ == model::BoardStatus::kBusy || rehello_) deadline = transfer_deadline(timeouts);
    while (!transfer_.windows.empty()) {
      const wire::Window got = transfer_.windows.front();
      transfer_.windows.pop_front();
      if (got.status != absl::StatusCode::kOk) {
        co_return Status(got.status, "board: ended the transfer");
      }
    }
    while (!transfer_.chunks.empty()) {
      const wire::Chunk chunk = std::move(transfer_.chunks.front());
      transfer_.chunks.pop_front();
      const ReceiveWindow::Outcome outcome = window.on_chunk(chunk);
      if (outcome.accept) {
        out->content += chunk.data;
        timeouts = 0;
        deadline = transfer_deadline(0);
      }
      // One WINDOW for what has come together.
      if (outcome.answer && (transfer_.chunks.empty() || outcome.answer->retransmit)) {
        if (outcome.answer->retransmit) ++retries_;
        answer(*outcome.answer);
      }
    }
    if (now() < deadline) continue;
    if (++timeouts > kMaxTimeouts) co_return absl::DeadlineExceededError("transfer stands still");
    ++retries_;
    answer(window.on_timeout());
    deadline = transfer_deadline(timeouts);
  }
  co_return absl::OkStatus();
}

}  // namespace odt::session

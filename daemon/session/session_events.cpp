#include "session/session_impl.h"
#include "wire/text.h"

namespace odt::session {
namespace {

constexpr int kRefillTries = 3;
constexpr std::chrono::milliseconds kGrace{200};

}  // namespace

void SessionImpl::set_sink(SessionSink* sink) {
  remember_events();
  sink_ = sink;
  if (sink == nullptr || closed_ || !connected_) return;
  if (status_ != model::BoardStatus::kUnspecified) sink->on_status(status_);
  for (const auto& line : std::exchange(early_, {})) log_line(2, line, true);
  begin_events();
}

void SessionImpl::remember_events() {
  if (read_to_) memory_->next_event[boot()] = *read_to_;
}

// Where this boot's events were read up to, or the oldest that the board still has.
void SessionImpl::begin_events() {
  if (!events_begun_) {
    events_begun_ = true;
    const auto known = memory_->next_event.find(boot());
    std::uint32_t from = hello_.first_event;
    // A board without entropy can repeat a boot_id: then the mark is ahead of it and means nothing.
    if (known != memory_->next_event.end() && known->second <= hello_.next_event) {
      from = known->second;
    }
    order_.start(from);
    order_.announce(hello_.next_event);
  }
  start_refill(true);
}

void SessionImpl::on_event(const wire::Frame& frame) {
  keepalive_.on_answer(now());
  if (sink_ == nullptr || !events_begun_) return;  // kept on the board
  if (wanted_epoch_ && frame.id < order_.expected()) {
    Result<wire::EventBody> body = wire::decode_event(frame.payload);
    const auto* epoch = body.ok() ? std::get_if<model::EpochResult>(&*body) : nullptr;
    if (epoch != nullptr && epoch->epoch == *wanted_epoch_) {
      return deliver_event(frame.id, *std::move(body));
    }
  }
  if (order_.next(frame.id)) {
    read_to_ = frame.id + 1;
    deliver_payload(frame.id, frame.payload);
  } else {
    deliver(order_.offer(frame.id, frame.payload));
  }
  if (order_.missing()) start_refill();
  events_signal_.notify();
}

void SessionImpl::deliver(std::vector<EventOrder::Item> items) {
  for (EventOrder::Item& item : items) {
    // The sink may close the session, or leave, in any callback.
    if (closed_ || sink_ == nullptr) return;
    read_to_ = item.id + std::max<std::uint32_t>(item.gap, 1);
    if (item.gap != 0) {
      ++gaps_;
      model::TelemetryFrame frame;
      frame.gap = item.gap;
      deliver_event(item.id, wire::EventBody(std::move(frame)));
      continue;
    }
    deliver_payload(item.id, item.payload);
  }
}

void SessionImpl::deliver_payload(std::uint32_t id, std::string_view payload) {
  Result<wire::EventBody> body = wire::decode_event(payload);
  if (body.ok()) {
    deliver_event(id, *std::move(body));
  } else {
    log_line(3, std::string(body.status().message()));
  }
}

void SessionImpl::deliver_event(std::uint32_t id, wire::EventBody&& body) {
  if (auto* step = std::get_if<model::TelemetryFrame>(&body)) {
    step->run_id = run_;
    step->attempt = attempt_;
    step->board_uid = hello_.uid;
    step->time_us = clock_.now_us();
    step->boot_id = hello_.boot_id;
    step->event_id = id;
    sink_->on_step(std::move(*step));
  } else if (auto* epoch = std::get_if<model::EpochResult>(&body)) {
    if (wanted_epoch_ == epoch->epoch) wanted_epoch_.reset();
    epoch->run_id = run_;
    epoch->attempt = attempt_;
    epoch->board_uid = hello_.uid;
    epoch->time_us = clock_.now_us();
    sink_->on_epoch(*epoch);
  } else if (auto* job = std::get_if<model::JobChanged>(&body)) {
    if (!job->run_id.is_zero()) {
      run_ = job->run_id;
      attempt_ = job->attempt;
    }
    sink_->on_job(*job);
  } else if (auto* eval = std::get_if<model::EvalReport>(&body)) {
    sink_->on_eval(*eval);
  } else if (auto* nvm = std::get_if<model::NvmCommitted>(&body)) {
    sink_->on_nvm(*nvm);
  }
  progress_signal_.notify();
  events_signal_.notify();
}

void SessionImpl::start_refill(bool at_once) {
  if (refilling_ || closed_ || sink_ == nullptr || !order_.missing()) return;
  refilling_ = true;
  spawn(refill(shared_from_this(), at_once));
}

asio::awaitable<void> SessionImpl::refill([[maybe_unused]] std::shared_ptr<SessionImpl> self,
                                          bool at_once) {
  const auto grace = [this] {
    return now() + std::max<std::chrono::steady_clock::duration>(kGrace, rto_.value());
  };
  // An event that was only announced may be on its way behind the announcement.
  bool ask = at_once;
  int tries = 0;
  while (!closed_ && sink_ != nullptr && order_.missing()) {
    const std::uint32_t before = order_.expected();
    std::uint32_t last = before;
    if (ask || order_.holds_later()) {
      const Result<wire::Answer> answer = co_await call(wire::request::get_telemetry_from(before));
      if (closed_ || sink_ == nullptr) break;
      if (!answer.ok()) {
        deliver(order_.give_up());
        break;
      }
      if (const auto* range = std::get_if<wire::TelemetryRange>(&answer->result)) {
        deliver(order_.range(range->first, range->next));
        if (range->next != 0) last = range->next - 1;
      }
    }
    ask = true;
    const SteadyTime until = grace();
    // The last one is here and the first still is not: lost, or no longer there (an epoch that was
    // acknowledged is not sent again).
    while (!closed_ && order_.missing() && order_.expected() == before && !order_.holds(last) &&
           now() < until) {
      co_await events_signal_.wait_until(until);
    }
    if (order_.expected() != before) tries = 0;
    if (order_.expected() == before && ++tries > kRefillTries && !closed_ && sink_ != nullptr) {
      deliver(order_.give_up());
      tries = 0;
    }
  }
  refilling_ = false;
}

void SessionImpl::on_log(const wire::Frame& frame) {
  const Result<wire::Log> log = wire::decode_log(frame.payload);
  if (!log.ok()) return;
  if (log->dropped != 0) {
    log_line(3, "(" + std::to_string(log->dropped) + " log lines lost by the board)");
  }
  log_line(log->level, log->text);
}

void SessionImpl::on_console(const std::string& line) {
  if (sink_ != nullptr) return log_line(2, line, true);
  // What a board prints at its start comes before anybody listens.
  early_.push_back(line);
  if (early_.size() > kEarlyLines) early_.pop_front();
}

void SessionImpl::log_line(int level, const std::string& text, bool raw) {
  if (sink_ == nullptr || closed_ || !logs_.allow(now())) return;
  if (const std::uint32_t lost = logs_.take_suppressed(); lost != 0) {
    sink_->on_log(3, "(" + std::to_string(lost) + " log lines suppressed)");
  }
  if (sink_ == nullptr) return;
  if (raw) return sink_->on_console(text);
  sink_->on_log(level, text);
}

}  // namespace odt::session

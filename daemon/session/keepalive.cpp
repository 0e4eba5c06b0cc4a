#include "session/keepalive.h"

#include <algorithm>

namespace odt::session {
namespace {

// No board may silence its link for longer than this by announcement.
constexpr std::chrono::milliseconds kMaxBusy{120000};

}  // namespace

Keepalive::Keepalive(ms ping_idle, ms suspect_after, ms down_after, Time now)
    : ping_idle_(ping_idle),
      suspect_after_(suspect_after),
      down_after_(down_after),
      last_receive_(now),
      last_answer_(now),
      last_ping_(now),
      busy_until_(now) {}

void Keepalive::on_receive(Time now) { last_receive_ = now; }

void Keepalive::on_answer(Time now) { last_answer_ = now; }

void Keepalive::on_busy(Time now, ms duration) {
  busy_ = true;
  busy_until_ = now + std::min(duration, kMaxBusy);
}

void Keepalive::end_busy(Time now) {
  busy_ = false;
  last_receive_ = now;
}

Keepalive::Due Keepalive::check(Time now) {
  Due due;
  if (busy_ && now < busy_until_) {
    due.busy = true;
    due.status = model::BoardStatus::kBusy;
    due.next = busy_until_;
    return due;
  }
  if (busy_) {
    // The time announced is over without a PONG: silence counts from here, and we ask.
    busy_ = false;
    last_receive_ = std::max(last_receive_, busy_until_);
    last_answer_ = last_ping_ = now - ping_idle_;
  }
  const auto silent = now - last_receive_;
  if (silent >= down_after_) {
    due.down = true;
    due.status = model::BoardStatus::kOffline;
    due.next = now;
    return due;
  }
  if (silent >= suspect_after_) due.status = model::BoardStatus::kSuspect;
  if (now - std::max(last_answer_, last_ping_) >= ping_idle_) {
    due.ping = true;
    last_ping_ = now;
  }
  const Time threshold = last_receive_ + (silent >= suspect_after_ ? down_after_ : suspect_after_);
  due.next = std::min(std::max(last_answer_, last_ping_) + ping_idle_, threshold);
  return due;
}

}  // namespace odt::session

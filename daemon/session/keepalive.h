#pragma once

#include <chrono>

#include "model/board.h"

namespace odt::session {

// When to PING and what silence means. Pure: time comes with every call.
class Keepalive {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using ms = std::chrono::milliseconds;

  Keepalive(ms ping_idle, ms suspect_after, ms down_after, Time now);

  void on_receive(Time now);            // any sound frame of this session
  void on_answer(Time now);             // EVENT or PONG: nothing to ask for a while
  void on_busy(Time now, ms duration);  // BUSY: silent until then by announcement
  void end_busy(Time now);              // PONG

  struct Due {
    bool ping = false;
    bool down = false;
    bool busy = false;  // nothing may be sent
    model::BoardStatus status = model::BoardStatus::kOnline;
    Time next;  // look again then at the latest
  };
  // Records a PING that it asks for as sent.
  Due check(Time now);

 private:
  ms ping_idle_, suspect_after_, down_after_;
  Time last_receive_, last_answer_, last_ping_, busy_until_;
  bool busy_ = false;
};

}  // namespace odt::session

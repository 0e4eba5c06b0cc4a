#pragma once

#include <deque>
#include <memory>

#include "training/board_lease.h"
#include "training/env.h"

namespace odt::training {

class RunTask;

// One board as the run layer sees it. Entries live as long as the daemon.
struct BoardSlot {
  BoardSlot(Env& env, BoardUid board_uid)
      : uid(std::move(board_uid)), signal(env.io), exclusive(env.io, env.clock, env.lease_time) {}

  BoardUid uid;
  Session session;                             // null: away
  fleet::Signal signal;                        // session, desired or news of the board changed
  BoardLease exclusive;                        // a run, or an operation on the board's weights
  std::deque<std::shared_ptr<RunTask>> queue;  // not final, in their order; the active one too
  std::shared_ptr<RunTask> active;
  // The job that step frames of this session belong to.
  Uuid job_run;
  std::uint32_t job_attempt = 0;
  // Lab life, by the steady clock: a reservation ends by it too, whatever the host's clock does.
  using Steady = std::chrono::steady_clock::time_point;
  struct Reserved {
    model::Reservation what;
    Steady until;
  };
  std::optional<Reserved> reserved;
  std::optional<Steady> away_since;  // wanted, and not in session
  std::optional<Steady> powered;     // begun last by this odtd
  bool frozen = false;               // put out of its lease: nothing but its power is left

  Session live_session() const { return session && session->alive() ? session : nullptr; }
};

}  // namespace odt::training

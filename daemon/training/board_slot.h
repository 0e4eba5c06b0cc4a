#pragma once

#include <deque>
#include <memory>

#include "training/env.h"

namespace odt::training {

class RunTask;

// One board as the run layer sees it. Entries live as long as the daemon.
struct BoardSlot {
  BoardSlot(asio::io_context& io, BoardUid board_uid)
      : uid(std::move(board_uid)), signal(io), exclusive(io) {}

  BoardUid uid;
  Session session;                             // null: away
  fleet::Signal signal;                        // session, desired or news of the board changed
  fleet::AsyncMutex exclusive;                 // a run, or an operation on the board's weights
  std::deque<std::shared_ptr<RunTask>> queue;  // not final, oldest first; the active one too
  std::shared_ptr<RunTask> active;
  // The job that step frames of this session belong to.
  Uuid job_run;
  std::uint32_t job_attempt = 0;

  Session live_session() const { return session && session->alive() ? session : nullptr; }
};

}  // namespace odt::training

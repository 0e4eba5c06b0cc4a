#include "training/orchestrator.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "training/orchestrator_impl.h"

namespace odt::training {

using model::RunState;

Orchestrator::Impl::Impl(std::shared_ptr<Env> env, fleet::FleetOptions fleet)
    : env_(std::move(env)),
      fleet_options_(std::move(fleet)),
      ended_(env_->io),
      lease_watch_(env_->io),
      lab_tick_(env_->io),
      view_(std::make_shared<FleetView>()) {}

Status Orchestrator::Impl::start() {
  if (!power_.empty()) fleet_options_.complete = [this](model::Board& board) { add_power(board); };
  env_->registry = std::make_shared<fleet::Registry>(env_->io, env_->clock, env_->control,
                                                     fleet_options_, *this, env_->log);
  ODT_TRY(env_->registry->load());
  ODT_TRY(fail_stale_jobs());
  auto runs = env_->control.call_sync([](store::ControlStore& s) { return s.active_runs(); });
  if (!runs.ok()) return runs.status();
  ODT_TRY(env_->registry->listen());
  asio::post(env_->io, [self = shared_from_this(), runs = std::move(*runs)]() mutable {
    self->env_->renew = [impl = self.get()](const BoardUid& uid) {
      impl->slot(uid).exclusive.renew();
    };
    self->adopt_runs(std::move(runs));
    asio::co_spawn(self->env_->io, self->watch_leases(), fleet::Detached{});
    asio::co_spawn(self->env_->io, self->lab_loop(), fleet::Detached{});
    if (self->retention_)
      asio::co_spawn(self->env_->io, self->prune_loop(*self->retention_), fleet::Detached{});
    self->env_->registry->start();
  });
  return absl::OkStatus();
}

asio::awaitable<void> Orchestrator::Impl::stop(std::function<void()> done) {
  const auto self = shared_from_this();
  env_->stopping = true;
  lease_watch_.notify();
  lab_tick_.notify();
  power_runner_.stop();
  for (auto& [uid, slot] : slots_) slot->signal.notify();
  if (env_->registry) co_await env_->registry->stop();
  for (auto& [uid, slot] : slots_) {
    slot->session = nullptr;
    slot->signal.notify();
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (active_coroutines_ != 0 && std::chrono::steady_clock::now() < deadline)
    co_await ended_.wait_until(deadline);
  done();
}

BoardSlot& Orchestrator::Impl::slot(const BoardUid& uid) {
  auto& entry = slots_[uid];
  if (!entry) entry = std::make_unique<BoardSlot>(*env_, uid);
  return *entry;
}

void Orchestrator::Impl::adopt_runs(std::vector<model::Run> runs) {
  // A run that had begun goes before those that wait for it.
  std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    const bool a_begun = a.state != RunState::kQueued, b_begun = b.state != RunState::kQueued;
    if (a_begun != b_begun) return a_begun;
    return a.priority != b.priority ? a.priority > b.priority : a.queue_rank < b.queue_rank;
  });
  for (auto& run : runs) {
    BoardSlot& board = slot(run.spec.board_uid);
    board.queue.push_back(std::make_shared<RunTask>(env_, board, std::move(run)));
  }
  for (auto& [uid, board] : slots_) pump(*board);
}

void Orchestrator::Impl::enqueue(model::Run run) {
  BoardSlot& board = slot(run.spec.board_uid);
  put_in_line(board, std::make_shared<RunTask>(env_, board, std::move(run)));
  pump(board);
}

void Orchestrator::Impl::pump(BoardSlot& board) {
  if (board.active || env_->stopping) return;
  for (const auto& task : board.queue) {
    const bool waits =
        task->run().state == RunState::kQueued && task->run().desired == model::Desired::kPause;
    if (waits) continue;
    if (const model::Board* known = env_->registry->find(board.uid);
        known != nullptr && task->run().state == RunState::kQueued) {
      model::Reason why = lab::hold(*known, task->run(), env_->clock.now_us());
      if (!why.code.empty()) {
        if (task->held_by != why)
          asio::co_spawn(env_->io, tell_held(task, std::move(why)), fleet::Detached{});
        continue;
      }
    }
    board.active = task;
    env_->registry->set_active_run(board.uid, task->id());
    asio::co_spawn(env_->io, run_to_end(board, task), fleet::Detached{});
    return;
  }
}

asio::awaitable<void> Orchestrator::Impl::run_to_end(BoardSlot& board,
                                                     std::shared_ptr<RunTask> task) {
  const auto self = shared_from_this();
  ++active_coroutines_;
  if (lab::is_hold(task->run().reason)) {
    model::Reason nothing;
    auto told = co_await task->set_held(std::move(nothing));
    if (!told.ok()) env_->say(4, "store: " + told.ToString());
  }
  co_await task->main();
  --active_coroutines_;
  ended_.notify();
  if (env_->stopping) co_return;
  std::erase(board.queue, task);
  if (board.active != task) co_return;  // it had lost the board
  board.active = nullptr;
  env_->registry->set_active_run(board.uid, Uuid{});
  pump(board);
}

RunTask* Orchestrator::Impl::task_of_job(const BoardUid& uid) {
  BoardSlot& board = slot(uid);
  const auto& task = board.active;
  if (!task || task->id() != board.job_run || task->run().attempt != board.job_attempt)
    return nullptr;
  return task.get();
}

std::shared_ptr<RunTask> Orchestrator::Impl::find_task(const Uuid& run) {
  for (auto& [uid, board] : slots_)
    for (const auto& task : board->queue)
      if (task->id() == run) return task;
  return nullptr;
}

// ---- the fleet's news ---------------------------------------------------------------------------

void Orchestrator::Impl::on_board_up(const BoardUid& uid, Session session) {
  BoardSlot& board = slot(uid);
  board.session = session;
  board.frozen = false;
  board.job_run = session->hello().run_id;
  board.job_attempt = session->hello().attempt;
  if (board.active)
    env_->registry->set_active_run(uid, board.active->id());
  else
    asio::co_spawn(env_->io, tend(board, session), fleet::Detached{});
  board.signal.notify();
}

void Orchestrator::Impl::on_board_down(const BoardUid& uid, const Status&) {
  BoardSlot& board = slot(uid);
  board.session = nullptr;
  board.signal.notify();
}

void Orchestrator::Impl::on_step(const BoardUid& uid, model::TelemetryFrame frame) {
  if (frame.gap == 0) env_->registry->note_step(uid, frame.step + 1);
  RunTask* task = task_of_job(uid);
  if (task == nullptr) return;
  const bool other = !frame.run_id.is_zero() && frame.run_id != task->id();
  if (!other) task->on_step(std::move(frame));
}

void Orchestrator::Impl::on_epoch(const BoardUid& uid, const model::EpochResult& epoch) {
  RunTask* task = task_of_job(uid);
  if (task == nullptr) return;
  const bool other = !epoch.run_id.is_zero() && epoch.run_id != task->id();
  if (!other) task->on_epoch(epoch);
}

void Orchestrator::Impl::on_job(const BoardUid& uid, const model::JobChanged& job) {
  if (RunTask* task = task_of_job(uid)) task->on_job(job);
}

void Orchestrator::Impl::on_nvm(const BoardUid& uid, const model::NvmCommitted& nvm) {
  if (!nvm.text.empty()) {
    env_->say(4, "board " + uid.hex() + ": " + nvm.text);
  } else {
    env_->registry->note_commit(uid, nvm.erased ? 0 : nvm.sequence, nvm.step);
  }
  if (RunTask* task = task_of_job(uid)) task->on_nvm(nvm);
}

asio::awaitable<void> Orchestrator::Impl::tend(BoardSlot& board, Session session) {
  const auto self = shared_from_this();
  auto guard = co_await board.exclusive.lock(Uuid{}, "look", "odtd");
  if (board.active || !session->alive() || env_->stopping) co_return;
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return;
  env_->registry->note_state(board.uid, *state);
  co_await settle_commands(*env_, board.uid, *state);
  if (state->run_id.is_zero() || board.active) co_return;
  const Uuid id = state->run_id;
  auto run = co_await env_->control.call([id](store::ControlStore& s) { return s.run(id); });
  // A run that is over here (cancelled while the board was away) must not go on there.
  if (run.ok() && model::is_final(run->state) && session->alive()) {
    auto stopped = co_await stop_other_run(*env_, session, *state, Uuid{});
    if (!stopped.ok()) env_->say(3, "board " + board.uid.hex() + ": " + text_of(stopped));
  }
}

void Orchestrator::Impl::on_view(std::vector<model::Board> boards, std::vector<model::Port> ports) {
  auto next = std::make_shared<FleetView>();
  next->boards = std::move(boards);
  next->ports = std::move(ports);
  next->time_us = env_->clock.now_us();
  std::function<void(std::shared_ptr<const FleetView>)> listener;
  {
    std::lock_guard lock(view_mutex_);
    view_ = next;
    listener = view_listener_;
  }
  if (listener) listener(next);
}

std::shared_ptr<const FleetView> Orchestrator::Impl::view() const {
  std::lock_guard lock(view_mutex_);
  return view_;
}

std::shared_ptr<const FleetView> Orchestrator::Impl::view_now() {
  env_->registry->publish_view();
  return view();
}

void Orchestrator::Impl::set_view_listener(
    std::function<void(std::shared_ptr<const FleetView>)> fn) {
  std::lock_guard lock(view_mutex_);
  view_listener_ = std::move(fn);
}

// ---- boards and ports ---------------------------------------------------------------------------

asio::awaitable<Result<std::string>> Orchestrator::Impl::seen(CallContext ctx) {
  if (ctx.request_id.empty()) co_return std::string();
  const auto find = [ctx](store::ControlStore& s) {
    return s.find_request(ctx.actor, ctx.request_id);
  };
  auto found = co_await env_->control.call(find);
  if (absl::IsNotFound(found.status())) co_return std::string();
  co_return found;
}

Result<Session> Orchestrator::Impl::require_session(const BoardUid& uid) const {
  const model::Board* board = env_->registry->find(uid);
  if (board == nullptr)
    return with_reason(absl::NotFoundError("board " + uid.hex() + " is not known"),
                       "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
  Session session = env_->registry->session(uid);
  if (!session)
    return with_reason(absl::UnavailableError("board " + board->name + " is offline"),
                       "BOARD_OFFLINE", "Check its power and link.");
  return session;
}

Status Orchestrator::Impl::require_free(const BoardUid& uid) {
  const BoardSlot& board = slot(uid);
  if (!board.queue.empty())
    return with_reason(absl::FailedPreconditionError("the board has an active run, " +
                                                     board.queue.front()->id().hex().substr(0, 16)),
                       "BOARD_HAS_RUN", "Wait for its end, or cancel it.");
  if (board.exclusive.locked())
    return with_reason(absl::FailedPreconditionError("the board is busy with another operation: " +
                                                     board.exclusive.holder().what),
                       "BOARD_BUSY", "Try again when it is over.");
  return absl::OkStatus();
}

asio::awaitable<Result<model::Board>> Orchestrator::Impl::update_board(
    CallContext ctx, FleetControl::BoardUpdate update) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    for (auto& board : env_->registry->boards())
      if (board.uid.str() == *before) co_return board;
    co_return absl::NotFoundError("board " + update.uid.hex() + " was deleted since");
  }
  fleet::BoardEdit edit;
  edit.etag = update.etag;
  edit.name = update.name;
  edit.place = update.place;
  edit.set_labels = update.set_labels;
  edit.remove_labels = update.remove_labels;
  auto done = co_await env_->registry->edit(ctx, update.uid, std::move(edit));
  co_return done;
}

asio::awaitable<Result<bool>> Orchestrator::Impl::delete_board(CallContext ctx, BoardUid uid) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) co_return true;
  auto free = free_for(ctx, uid);
  if (free.ok()) free = require_free(uid);
  if (!free.ok() && env_->registry->find(uid) != nullptr) co_return free;
  auto done = co_await env_->registry->forget(ctx, uid);
  if (!done.ok()) co_return done;
  co_return true;
}

asio::awaitable<Result<bool>> Orchestrator::Impl::identify_board(BoardUid uid,
                                                                 std::uint32_t seconds) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto done = co_await (*session)->identify(seconds);
  if (!done.ok()) co_return done;
  co_return true;
}

asio::awaitable<Result<bool>> Orchestrator::Impl::reset_board(BoardUid uid) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  CommandLog command(*env_, uid, Uuid{});
  auto done = co_await command.begin("reset", Hash{});
  if (!done.ok()) co_return done;
  done = co_await (*session)->reset();
  co_await command.settle(done);
  if (!done.ok()) co_return done;
  co_return true;
}

asio::awaitable<Result<model::Port>> Orchestrator::Impl::adopt_port(CallContext ctx,
                                                                    std::string path,
                                                                    std::uint32_t baud,
                                                                    BoardUid expect_uid) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty())
    for (auto& port : env_->registry->ports())
      if (port.path == *before) co_return port;
  auto done = co_await env_->registry->adopt(ctx, path, baud, expect_uid);
  co_return done;
}

asio::awaitable<Result<model::Port>> Orchestrator::Impl::release_port(CallContext ctx,
                                                                      std::string path) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    for (auto& port : env_->registry->ports())
      if (port.path == *before) co_return port;
    model::Port gone;
    gone.path = *before;
    gone.state = model::PortState::kGone;
    co_return gone;
  }
  auto done = co_await env_->registry->release(ctx, path);
  co_return done;
}

// ---- runs ---------------------------------------------------------------------------------------

// For a request that was carried out before, or a run that no task holds.
asio::awaitable<Result<model::Run>> Orchestrator::Impl::as_stored(Uuid run, bool repeated) {
  const auto self = shared_from_this();
  auto stored = co_await env_->control.call([run](store::ControlStore& s) { return s.run(run); });
  if (!stored.ok() || repeated) co_return stored;
  co_return with_reason(
      absl::FailedPreconditionError("run " + run.hex().substr(0, 16) + " is over"), "RUN_OVER",
      "Create a new run.");
}

asio::awaitable<Result<model::Run>> Orchestrator::Impl::set_desired(CallContext ctx, Uuid run,
                                                                    model::Desired desired) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  const auto task = find_task(run);
  if (!before->empty() || !task) {
    auto done = co_await as_stored(run, !before->empty());
    co_return done;
  }
  BoardSlot& board = slot(task->run().spec.board_uid);
  auto done = co_await task->set_desired(ctx, desired, board.active == task);
  if (!done.ok()) co_return done.status();
  if (board.active != task) {
    if (model::is_final(task->run().state)) std::erase(board.queue, task);
    pump(board);
  }
  co_return done;
}

asio::awaitable<Result<model::Run>> Orchestrator::Impl::set_precision(CallContext ctx, Uuid run,
                                                                      model::Steer steer) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  const auto task = find_task(run);
  if (!before->empty() || !task) {
    auto done = co_await as_stored(run, !before->empty());
    co_return done;
  }
  auto done = co_await task->set_precision(std::move(ctx), steer);
  co_return done;
}

}  // namespace odt::training

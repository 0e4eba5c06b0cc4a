#include <absl/strings/str_cat.h>

#include <algorithm>

#include "training/estimate.h"
#include "training/orchestrator_impl.h"
#include "training/ram_fit.h"
#include "training/run_settings.h"

// Lines of runs in front of boards: order, leases, estimates, and the stop of everything.
namespace odt::training {
namespace {

constexpr auto kStopTime = std::chrono::seconds(2);
constexpr auto kLeaseCheck = std::chrono::milliseconds(500);

// a goes before b.
bool before_in_line(const model::Run& a, const model::Run& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.queue_rank < b.queue_rank;
}

std::string shown(const Uuid& run) { return "run " + run.hex().substr(0, 16); }

Status waits_no_more(const Uuid& run) {
  return with_reason(absl::FailedPreconditionError(shown(run) + " does not wait for its board"),
                     "RUN_NOT_QUEUED", "Look at the queue: odtctl run queue.");
}

}  // namespace

void Orchestrator::Impl::put_in_line(BoardSlot& board, std::shared_ptr<RunTask> task) {
  auto& line = board.queue;
  const auto place = std::find_if(line.begin(), line.end(), [&](const auto& other) {
    return other->run().state == model::RunState::kQueued && other != board.active &&
           before_in_line(task->run(), other->run());
  });
  line.insert(place, std::move(task));
}

asio::awaitable<Result<model::Run>> Orchestrator::Impl::retry_run(
    CallContext ctx, Uuid id, std::optional<std::int32_t> priority) {
  const auto self = shared_from_this();
  auto old = co_await env_->control.call([id](store::ControlStore& s) { return s.run(id); });
  if (!old.ok()) co_return old;
  if (old->state != model::RunState::kFailed && old->state != model::RunState::kCancelled)
    co_return with_reason(
        absl::FailedPreconditionError(
            shown(id) + (model::is_final(old->state) ? " has succeeded" : " is not over")),
        "RUN_NOT_FAILED", "Only runs that FAILED or were CANCELLED are done again.");
  model::RunSpec spec = old->spec;
  spec.priority = priority.value_or(old->priority);
  auto run = co_await make_run(std::move(ctx), std::move(spec), false, id);
  co_return run;
}

asio::awaitable<Result<model::Run>> Orchestrator::Impl::reorder_run(
    CallContext ctx, Uuid id, std::optional<std::int32_t> priority, Uuid before) {
  const auto self = shared_from_this();
  const auto task = find_task(id);
  if (!task) {
    auto over = co_await as_stored(id, false);
    co_return over;
  }
  BoardSlot& board = slot(task->run().spec.board_uid);
  if (board.active == task || task->run().state != model::RunState::kQueued)
    co_return waits_no_more(id);
  std::int32_t level = priority.value_or(task->run().priority);
  std::shared_ptr<RunTask> next;
  if (!before.is_zero()) {
    next = find_task(before);
    if (!next || &slot(next->run().spec.board_uid) != &board || next == task)
      co_return with_reason(
          absl::InvalidArgumentError(shown(before) + " does not wait for the same board"),
          "OTHER_QUEUE", "Look at the queue: odtctl run queue.");
    if (board.active == next) co_return waits_no_more(before);
    level = next->run().priority;
  }
  // Those of that priority, in their order to be.
  std::vector<std::shared_ptr<RunTask>> line;
  for (const auto& other : board.queue) {
    if (other == task || other == board.active || other->run().priority != level) continue;
    if (other == next) line.push_back(task);
    line.push_back(other);
  }
  if (!next) line.push_back(task);
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::int64_t own = line[i]->run().queue_rank;
    if (line[i] == task && i + 1 < line.size()) own = line[i + 1]->run().queue_rank - 1;
    if (i > 0) own = std::max(own, rank + 1);
    rank = own;
    if (line[i] != task && own == line[i]->run().queue_rank) continue;
    auto moved =
        co_await line[i]->set_place(ctx, line[i] == task ? level : line[i]->run().priority, own);
    if (!moved.ok()) co_return moved;
  }
  if (board.active != task && !model::is_final(task->run().state)) {
    std::erase(board.queue, task);
    put_in_line(board, task);
  }
  pump(board);
  co_return task->run();
}

asio::awaitable<Result<std::vector<FleetControl::BoardQueue>>> Orchestrator::Impl::list_queues(
    BoardUid uid) {
  const auto self = shared_from_this();
  if (!uid.empty() && env_->registry->find(uid) == nullptr)
    co_return with_reason(absl::NotFoundError("board " + uid.hex() + " is not known"),
                          "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
  std::vector<FleetControl::BoardQueue> out;
  for (const auto& [key, board] : slots_) {
    if (!uid.empty() && key != uid) continue;
    if (uid.empty() && board->queue.empty() && !board->exclusive.locked()) continue;
    FleetControl::BoardQueue queue;
    queue.uid = key;
    queue.lease = board->exclusive.holder();
    if (board->active) queue.runs.push_back(board->active->run());
    for (const auto& task : board->queue)
      if (task != board->active) queue.runs.push_back(task->run());
    out.push_back(std::move(queue));
  }
  co_return out;
}

asio::awaitable<Result<model::RunEstimate>> Orchestrator::Impl::estimate_run(model::RunSpec asked) {
  const auto self = shared_from_this();
  auto spec = std::make_shared<model::RunSpec>(std::move(asked));
  const auto taken = co_await take_settings(*env_, spec, Uuid{});
  if (!taken.ok()) co_return taken.status();
  auto parts = co_await check_run(*env_, spec, nullptr);
  if (!parts.ok()) co_return name_settings(parts.status(), *taken);
  auto likely = likely_settings(*parts, spec->hyper);
  if (!likely.ok()) co_return likely.status();
  auto rates = co_await read_rates(*env_, parts->board, parts->model);
  if (!rates.ok()) co_return rates.status();
  model::RunEstimate out = estimate(*parts, likely->hyper, likely->place, *rates);
  const SampleCounts counts{parts->dataset.train, parts->dataset.heldout, parts->evaluate,
                            parts->start_snapshot, spec->hyper.guard.value_or(true)};
  out.placement = placement_text(parts->model, parts->board, counts, spec->hyper, likely->place);
  out.warnings = sample_warnings(*parts, spec->hyper);
  if (env_->disk_free) out.disk_free_bytes = env_->disk_free();
  if (env_->disk_free && out.disk_bytes > out.disk_free_bytes)
    out.warnings.push_back({"DISK_SMALL",
                            absl::StrCat("records and weights may take ", out.disk_bytes,
                                         " bytes; ", out.disk_free_bytes, " are free"),
                            "Free disk space, or report fewer steps (--telemetry-every)."});
  const std::int64_t now = env_->clock.now_us();
  for (const auto& task : slot(spec->board_uid).queue) {
    const model::Run& run = task->run();
    if (run.eta_time_us != 0) {
      out.queue_us += std::max<std::int64_t>(0, run.eta_time_us - now);
    } else if (run.priority < spec->priority && run.state == model::RunState::kQueued) {
      continue;  // it waits for this one
    } else {
      out.queue_us = -1;
      break;
    }
  }
  co_return out;
}

// ---- stop of everything
// --------------------------------------------------------------------------

struct Orchestrator::Impl::Told {
  explicit Told(asio::io_context& io) : changed(io) {}
  fleet::Signal changed;
  FleetControl::StopReport report;
  std::size_t open = 0;
  std::uint32_t idle_asked = 0;
};

asio::awaitable<void> Orchestrator::Impl::stop_task(CallContext ctx, std::shared_ptr<RunTask> task,
                                                    bool cancel, std::shared_ptr<Told> told,
                                                    std::size_t item) {
  BoardSlot& board = slot(task->run().spec.board_uid);
  const bool trained = task->run().state == model::RunState::kRunning;
  auto done = co_await task->set_desired(
      ctx, cancel ? model::Desired::kCancel : model::Desired::kPause, board.active == task);
  auto& line = told->report.runs[item];
  if (!done.ok() && reason_of(done.status()) != "RUN_OVER")
    line.reason = reason_from(done.status());
  if (board.active != task) {
    if (model::is_final(task->run().state)) std::erase(board.queue, task);
    line.told = done.ok();
  } else if (done.ok()) {
    // Its own coroutine tells the board; here only the answer is waited for.
    const auto until = std::chrono::steady_clock::now() + kStopTime;
    const auto stopped = [&] {
      const auto state = task->run().state;
      return model::is_final(state) || state == model::RunState::kPaused;
    };
    while (!stopped() && std::chrono::steady_clock::now() < until && !env_->stopping)
      co_await board.signal.wait_for(std::chrono::milliseconds(50));
    const bool away = !board.live_session();
    line.told = stopped() || (!trained && !away);
    if (!line.told)
      told->report.runs[item].reason = {
          away ? "BOARD_OFFLINE" : "BOARD_SILENT",
          away ? "the board is away" : "the board has not answered within 2 s",
          "It is told when it answers again."};
    if (!away) ++(line.told ? told->report.boards_told : told->report.boards_silent);
  }
  --told->open;
  told->changed.notify();
}

asio::awaitable<void> Orchestrator::Impl::stop_idle(Session session, std::shared_ptr<Told> told) {
  auto state = co_await session->get_state(false);
  if (state.ok()) {
    auto stopped = co_await stop_other_run(*env_, session, *state, Uuid{});
    if (stopped.ok()) ++told->report.boards_told;
  }
  if (told->idle_asked != 0) --told->idle_asked;
  told->changed.notify();
}

asio::awaitable<Result<FleetControl::StopReport>> Orchestrator::Impl::stop_all(CallContext ctx,
                                                                               bool cancel) {
  const auto self = shared_from_this();
  ctx.request_id.clear();  // one request changes many runs; the API remembers the answer
  const auto told = std::make_shared<Told>(env_->io);
  std::vector<std::shared_ptr<RunTask>> tasks;
  for (const auto& [uid, board] : slots_)
    for (const auto& task : board->queue)
      if (!model::is_final(task->run().state)) tasks.push_back(task);
  told->report.runs.reserve(tasks.size());
  for (const auto& task : tasks) {
    told->report.runs.push_back({task->id(), task->run().spec.board_uid, false, {}});
    ++told->open;
    asio::co_spawn(env_->io, stop_task(ctx, task, cancel, told, told->report.runs.size() - 1),
                   fleet::Detached{});
  }
  for (auto& [job, stop] : evaluations_) {
    if (!std::exchange(stop, true)) ++told->report.evaluations;
  }
  for (const auto& [uid, board] : slots_) {
    const Session session = board->live_session();
    if (!session || board->active) continue;
    ++told->idle_asked;
    asio::co_spawn(env_->io, stop_idle(session, told), fleet::Detached{});
  }
  const auto until = std::chrono::steady_clock::now() + kStopTime + std::chrono::milliseconds(500);
  while ((told->open != 0 || told->idle_asked != 0) && std::chrono::steady_clock::now() < until)
    co_await told->changed.wait_until(until);
  told->report.boards_silent += std::exchange(told->idle_asked, 0u);
  for (auto& [uid, board] : slots_) pump(*board);
  env_->say(3, absl::StrCat("stop of everything: ", told->report.runs.size(), " runs ",
                            cancel ? "cancelled" : "paused", ", ", told->report.boards_told,
                            " boards told, ", told->report.boards_silent, " silent"));
  co_return told->report;
}

// ---- leases
// --------------------------------------------------------------------------------------

asio::awaitable<void> Orchestrator::Impl::watch_leases() {
  const auto self = shared_from_this();
  while (!env_->stopping) {
    co_await lease_watch_.wait_for(kLeaseCheck);
    if (env_->stopping) co_return;
    for (auto& [uid, board] : slots_) {
      env_->registry->set_lease(uid, board->exclusive.holder());
      if (board->exclusive.expired()) co_await put_out(*board);
    }
  }
}

// Its session ends first: whatever it still does then, it does to nobody.
asio::awaitable<void> Orchestrator::Impl::put_out(BoardSlot& board) {
  const model::Lease lease = board.exclusive.holder();
  const std::string text = absl::StrCat("'", lease.what, "' has held the board since ",
                                        (env_->clock.now_us() - lease.since_us) / 1'000'000,
                                        " s and shows no progress; it loses the board");
  env_->say(4, "board " + board.uid.hex() + ": " + text);
  const auto task = board.active;
  if (const Session session = board.live_session())
    session->close(absl::AbortedError("its lease has expired"));
  board.exclusive.expire();
  board.frozen = true;
  model::Warning warning;
  warning.reason = {"LEASE_EXPIRED", text, "Look at the log; the next in line gets the board."};
  warning.board_uid = board.uid;
  if (task && task->id() == lease.holder) {
    warning.run_id = task->id();
    board.active = nullptr;
    std::erase(board.queue, task);
    env_->registry->set_active_run(board.uid, Uuid{});
    co_await task->abandon();
  }
  store::Batch batch;
  batch.changes.push_back(store::AppendWarning{std::move(warning)});
  auto done = co_await env_->control.commit(std::move(batch));
  if (!done.ok()) env_->say(4, "store: " + done.status().ToString());
  pump(board);
}

}  // namespace odt::training

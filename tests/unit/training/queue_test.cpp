#include <gtest/gtest.h>

#include "rig.h"

// Lines of runs, leases, the stop of everything, estimates; and weights kept before they are lost.
namespace odt::test {
namespace {

using model::Desired;
using model::RunState;
using training::FleetControl;

class QueueTest : public testing::Test {
 protected:
  std::shared_ptr<FakeBoard> online(Rig& rig, std::uint8_t number = 1) {
    auto board = rig.make_board(number);
    EXPECT_TRUE(rig.connect(number, board));
    EXPECT_TRUE(rig.wait_online(board));
    return board;
  }
  Result<model::Run> prioritised(Rig& rig, const std::shared_ptr<FakeBoard>& board,
                                 std::int32_t priority) {
    auto spec = rig.spec(board);
    spec.priority = priority;
    return rig.create(spec);
  }
  // Ids of the runs that wait, in their order; the one under way first.
  std::vector<Uuid> line(Rig& rig, const std::shared_ptr<FakeBoard>& board) {
    auto queues = rig.ask<std::vector<FleetControl::BoardQueue>>(
        [&](auto done) { rig.fleet().list_queues(board->uid, done); });
    std::vector<Uuid> out;
    if (queues.ok() && !queues->empty())
      for (const auto& run : queues->front().runs) out.push_back(run.id);
    return out;
  }
  Result<model::Run> reorder(Rig& rig, const Uuid& run, std::optional<std::int32_t> priority,
                             const Uuid& before) {
    return rig.ask<model::Run>(
        [&](auto done) { rig.fleet().reorder_run(rig.ctx(), run, priority, before, done); });
  }
  Result<FleetControl::StopReport> stop_all(Rig& rig, bool cancel = false) {
    return rig.ask<FleetControl::StopReport>(
        [&](auto done) { rig.fleet().stop_all(rig.ctx(), cancel, done); });
  }
  std::vector<FleetControl::Restored> restore(Rig& rig, FleetControl::RestoreAsk ask) {
    auto out = rig.ask<std::vector<FleetControl::Restored>>(
        [&](auto done) { rig.fleet().restore_boards(rig.ctx(), ask, done); });
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : std::vector<FleetControl::Restored>{};
  }
  Result<model::Snapshot> snapshot(const Hash& hash) {
    return library.control.call_sync([hash](store::ControlStore& s) { return s.snapshot(hash); });
  }
  Library library;
};

TEST_F(QueueTest, HighestPriorityFirstThenInTheOrderOfArrival) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] { board->step_time = 50ms; });
  auto running = prioritised(rig, board, -50);
  ASSERT_TRUE(rig.wait_state(running->id, RunState::kRunning));
  auto a = prioritised(rig, board, 0), b = prioritised(rig, board, 5),
       c = prioritised(rig, board, 0), d = prioritised(rig, board, 5);
  const std::vector<Uuid> expected{running->id, b->id, d->id, a->id, c->id};
  EXPECT_EQ(line(rig, board), expected);
  // In front of b, with its priority; then the lowest of all.
  auto moved = reorder(rig, c->id, std::nullopt, b->id);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->priority, 5);
  EXPECT_EQ(line(rig, board), (std::vector<Uuid>{running->id, c->id, b->id, d->id, a->id}));
  ASSERT_TRUE(reorder(rig, b->id, -100, {}).ok());
  const std::vector<Uuid> last{running->id, c->id, d->id, a->id, b->id};
  EXPECT_EQ(line(rig, board), last);
  EXPECT_EQ(reason_of(reorder(rig, running->id, 3, {}).status()), "RUN_NOT_QUEUED");
  EXPECT_EQ(reason_of(reorder(rig, a->id, {}, running->id).status()), "RUN_NOT_QUEUED");
  // The order is durable.
  rig.on_links([&] { board->drop(); });
  rig.crash();
  Rig again(library);
  EXPECT_TRUE(again.wait_until([&] { return line(again, board) == last; }));
}

TEST_F(QueueTest, OnlyFailedRunsAreDoneAgain) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] { board->step_time = 50ms; });
  auto run = rig.create(rig.spec(board));
  const auto retry = [&](const Uuid& id) {
    return rig.ask<model::Run>(
        [&](auto done) { rig.fleet().retry_run(rig.ctx(), id, std::nullopt, done); });
  };
  EXPECT_EQ(reason_of(retry(run->id).status()), "RUN_NOT_FAILED");
  ASSERT_TRUE(rig.desire(run->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled));
  rig.on_links([&] { board->step_time = 1ms; });
  auto again = retry(run->id);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->retry_of, run->id);
  EXPECT_NE(again->id, run->id);
  EXPECT_EQ(again->spec.hyper, run->spec.hyper);
  ASSERT_TRUE(rig.wait_state(again->id, RunState::kSucceeded));
  EXPECT_EQ(reason_of(retry(again->id).status()), "RUN_NOT_FAILED");
  EXPECT_EQ(retry(new_uuid()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(QueueTest, StopsEveryRunAlthoughABoardHangs) {
  Rig rig(library);
  auto good = online(rig, 1), mute = online(rig, 2), away = online(rig, 3);
  rig.on_links([&] { good->step_time = mute->step_time = away->step_time = 20ms; });
  std::vector<Result<model::Run>> runs;
  for (const auto& board : {good, mute, away}) {
    auto spec = rig.spec(board);
    spec.hyper.epochs = 200;
    runs.push_back(rig.create(spec));
    ASSERT_TRUE(rig.wait_state(runs.back()->id, RunState::kRunning));
  }
  auto waiting = rig.create(rig.spec(good));
  rig.on_links([&] { mute->session->answering = false; });
  rig.drop(away);
  ASSERT_TRUE(rig.wait_state(runs[2]->id, RunState::kWaitingBoard));
  const auto report = stop_all(rig);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->runs.size(), 4u);
  EXPECT_EQ(report->boards_silent, 1u);
  for (const auto& one : report->runs) {
    const bool told = one.run == runs[0]->id || one.run == waiting->id;
    EXPECT_EQ(one.told, told) << one.run.hex();
    EXPECT_EQ(one.reason.code, one.run == runs[1]->id   ? "BOARD_SILENT"
                               : one.run == runs[2]->id ? "BOARD_OFFLINE"
                                                        : "");
    EXPECT_EQ(library.run(one.run).desired, Desired::kPause);
  }
  EXPECT_EQ(library.run(runs[0]->id).state, RunState::kPaused);
  EXPECT_EQ(library.run(runs[0]->id).eta_time_us, 0);
  EXPECT_EQ(library.run(waiting->id).state, RunState::kQueued);
  // A second call finds nothing more to do, and a cancel ends those that wait at once.
  ASSERT_TRUE(stop_all(rig, true).ok());
  EXPECT_TRUE(rig.wait_state(waiting->id, RunState::kCancelled));
  EXPECT_TRUE(rig.wait_state(runs[0]->id, RunState::kCancelled));
}

TEST_F(QueueTest, HolderThatShowsNoProgressLosesTheBoard) {
  Rig rig(library, [](auto& options) { options.lease_time = 300ms; });
  auto board = online(rig);
  rig.on_links([&] { board->session->answering = false; });
  rig.fleet().infer(rig.ctx(), board->uid, library.digits.id, "test", 0, 1, [](auto) {});
  const auto holder = [&] {
    for (const auto& b : rig.fleet().view()->boards)
      if (b.uid == board->uid) return b.lease.what;
    return std::string();
  };
  EXPECT_TRUE(rig.wait_until([&] { return holder() == "infer"; }));
  EXPECT_TRUE(rig.wait_until([&] { return holder().empty(); }));
  // Its session was ended, so that it can do nothing any more; the next one gets the board.
  EXPECT_TRUE(rig.on_links([&] { return board->session == nullptr || !board->session->alive(); }));
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
}

TEST_F(QueueTest, RunThatShowsNoProgressFailsAndTheNextOneStarts) {
  Rig rig(library, [](auto& options) { options.lease_time = 300ms; });
  auto board = online(rig);
  rig.on_links([&] {
    board->before = [&board](const std::string& op) {
      if (op == "start_run") board->session->answering = false;
      return absl::OkStatus();
    };
  });
  auto run = rig.create(rig.spec(board));
  auto next = rig.create(rig.spec(board));
  EXPECT_TRUE(rig.wait_state(run->id, RunState::kFailed));
  EXPECT_EQ(library.run(run->id).reason.code, "LEASE_EXPIRED");
  rig.on_links([&] { board->before = {}; });
  ASSERT_TRUE(rig.connect(1, board));
  EXPECT_TRUE(rig.wait_state(next->id, RunState::kSucceeded));
}

TEST_F(QueueTest, WeightsThatNobodyHasAreKeptBeforeARun) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] { board->step_time = 20ms; });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done > 0; }));
  ASSERT_TRUE(rig.desire(run->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled));
  const Hash held = rig.on_links([&] { return board->device_weights(); });
  EXPECT_FALSE(snapshot(held).ok());
  rig.on_links([&] { board->step_time = 1ms; });
  auto next = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(next->id, RunState::kSucceeded));
  const auto kept = snapshot(held);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->origin, "automatic: before a run");
  EXPECT_EQ(kept->run_id, run->id);
  // Those of a run that ended well are known: nothing more is kept.
  auto third = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(third->id, RunState::kSucceeded));
  const auto all = library.control.call_sync(
      [](store::ControlStore& s) { return s.snapshots(store::ListQuery{}); });
  std::size_t automatic = 0;
  for (const auto& s : all->items) automatic += s.origin.starts_with("automatic") ? 1 : 0;
  EXPECT_EQ(automatic, 1u);
}

TEST_F(QueueTest, RestoreToACohortAnswersForEachBoard) {
  Rig rig(library);
  auto first = online(rig, 1), second = online(rig, 2), away = online(rig, 3);
  auto run = rig.create(rig.spec(first));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
  const Hash weights = library.run(run->id).final_weights_hash;
  rig.drop(away);
  ASSERT_TRUE(rig.wait_until([&] {
    for (const auto& b : rig.fleet().view()->boards)
      if (b.uid == away->uid) return b.status == model::BoardStatus::kOffline;
    return false;
  }));
  FleetControl::RestoreAsk ask;
  ask.snapshot = weights;
  ask.boards = {first->uid, second->uid, away->uid};
  ask.dry_run = true;
  auto would = restore(rig, ask);
  ASSERT_EQ(would.size(), 3u);
  EXPECT_TRUE(would[0].held);
  EXPECT_FALSE(would[1].held);
  EXPECT_FALSE(would[1].begun);
  EXPECT_EQ(reason_of(would[2].status), "BOARD_OFFLINE");
  EXPECT_NE(rig.on_links([&] { return second->device_weights(); }), weights) << "a dry run";
  ask.dry_run = false;
  auto done = restore(rig, ask);
  EXPECT_TRUE(done[0].held && done[0].status.ok());
  EXPECT_TRUE(done[1].status.ok()) << done[1].status;
  EXPECT_EQ(rig.on_links([&] { return second->device_weights(); }), weights);
  EXPECT_EQ(reason_of(done[2].status), "BOARD_OFFLINE");
  ask.commit = true;
  ask.boards = {second->uid};
  EXPECT_EQ(reason_of(restore(rig, ask)[0].status), "NO_NVM");
}

TEST_F(QueueTest, RunsTellTimesVerdictAndDoubts) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] { board->step_time = 5ms; });
  const auto estimated = [&] {
    return rig.ask<model::RunEstimate>(
        [&](auto done) { rig.fleet().estimate_run(rig.ctx(), rig.spec(board), done); });
  };
  auto before = estimated();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->basis, model::RunEstimate::Basis::kUnspecified) << "nothing is known yet";
  EXPECT_EQ(before->total_us, 0);
  ASSERT_FALSE(before->warnings.empty());
  EXPECT_EQ(before->warnings.front().code, "TOO_FEW_SAMPLES") << "43 are few";
  const std::int64_t begun = library.clock.now_us();
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done == 1; }));
  EXPECT_GT(library.run(run->id).eta_time_us, begun);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
  const model::Run end = library.run(run->id);
  EXPECT_EQ(end.eta_time_us, 0);
  EXPECT_NE(end.timing.epoch_us, 0u);
  ASSERT_EQ(end.warnings.size(), 1u);
  EXPECT_EQ(end.warnings[0].code, "TOO_FEW_SAMPLES");
  const auto verdict = end.best_step == 0                 ? model::GuardVerdict::kStart
                       : end.best_step == end.steps_total ? model::GuardVerdict::kLast
                                                          : model::GuardVerdict::kBest;
  EXPECT_EQ(end.guard_verdict, verdict) << end.verdict_text;
  EXPECT_FALSE(end.verdict_text.empty());
  auto open = rig.spec(board);
  open.hyper.guard = false;
  auto free = rig.create(open);
  ASSERT_TRUE(rig.wait_state(free->id, RunState::kSucceeded));
  EXPECT_EQ(library.run(free->id).guard_verdict, model::GuardVerdict::kOff);
}

}  // namespace
}  // namespace odt::test

#include <gtest/gtest.h>

#include "rig.h"

// What can happen to a run: the end must be that of the undisturbed run, or say why not.
namespace odt::test {
namespace {

using model::Desired;
using model::RunState;

class RunPathsTest : public testing::Test {
 protected:
  // Final state of the same run when nothing happens to it.
  Hash undisturbed(bool streamed = false, std::uint32_t epochs = 3) {
    Library fresh;
    fresh.digits.id = library.digits.id;
    Rig rig(fresh);
    auto board = rig.make_board(9);
    rig.connect(1, board);
    rig.wait_online(board);
    auto spec = rig.spec(board);
    spec.hyper.streamed = streamed;
    spec.hyper.epochs = epochs;
    store::Batch batch;
    batch.changes.push_back(store::PutDataset{fresh.digits});
    fresh.commit(std::move(batch));
    auto run = rig.create(spec);
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
    return fresh.run(run->id).final_state_hash;
  }
  std::shared_ptr<FakeBoard> online(Rig& rig, std::uint8_t number = 1) {
    auto board = rig.make_board(number);
    EXPECT_TRUE(rig.connect(number, board));
    EXPECT_TRUE(rig.wait_online(board));
    return board;
  }
  bool went_through(const Uuid& run, RunState state) {
    for (const auto& event : library.events(run))
      if (event.to == state) return true;
    return false;
  }

  Library library;
};

TEST_F(RunPathsTest, StreamedEndsAsResident) { EXPECT_EQ(undisturbed(false), undisturbed(true)); }

TEST_F(RunPathsTest, LossInEachOperationEndsInTheSameState) {
  const Hash expected = undisturbed();
  for (const std::string op : {"get_state", "send_image", "evaluate", "eval_step", "send_samples",
                               "start_run", "ack_epoch", "receive_state", "receive"}) {
    SCOPED_TRACE(op);
    Rig rig(library);
    auto board = online(rig);
    auto hits = std::make_shared<int>(0);
    rig.on_links([&] {
      board->before = [board = board.get(), op, hits](const std::string& name) {
        if (name == op && (*hits)++ == 0) board->drop();
        return absl::OkStatus();
      };
    });
    auto run = rig.create(rig.spec(board));
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard));
    ASSERT_TRUE(rig.connect(1, board));
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
    EXPECT_EQ(library.run(run->id).final_state_hash, expected);
    // A start that may have arrived uses its attempt up.
    EXPECT_EQ(library.run(run->id).attempt, op == "start_run" ? 2u : 1u);
    rig.on_links([&] { board->before = {}; });
  }
}

TEST_F(RunPathsTest, LinkLossWhileTrainingGoesOnWhereTheBoardIs) {
  const Hash expected = undisturbed(false, 6);
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(5);
  auto spec = rig.spec(board);
  spec.hyper.epochs = 6;
  auto run = rig.create(spec);
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done >= 2; }));
  rig.drop(board);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard));
  // The board trains on by itself: nothing holds it while there is no session.
  ASSERT_TRUE(rig.wait_until([&] { return rig.on_links([&] { return board->epoch >= 5; }); }));
  const int images = rig.on_links([&] { return board->ops["send_image"]; });
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  EXPECT_EQ(library.run(run->id).final_state_hash, expected);
  EXPECT_EQ(library.run(run->id).attempt, 1u);
  EXPECT_EQ(library.epochs(run->id).size(), 6u);  // the missed ones were fetched
  EXPECT_EQ(rig.on_links([&] { return board->ops["send_image"]; }), images);
}

TEST_F(RunPathsTest, PowerCycleResumesFromTheCheckpoint) {
  const Hash expected = undisturbed(false, 6);
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    Rig rig(library);
    auto board = online(rig);
    board->step_time = std::chrono::milliseconds(10);
    auto spec = rig.spec(board);
    spec.hyper.epochs = 6;
    spec.hyper.streamed = streamed;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).checkpoint_step != 0; }));
    rig.on_links([&] { board->power_cycle(); });
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard));
    ASSERT_TRUE(rig.connect(1, board));
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
    EXPECT_EQ(library.run(run->id).final_state_hash, expected);
    EXPECT_EQ(library.run(run->id).attempt, 2u);
    EXPECT_GE(rig.on_links([&] { return board->ops["send_state"]; }), 1);
  }
}

TEST_F(RunPathsTest, PowerCycleBeforeTheFirstEpochStartsAfresh) {
  const Hash expected = undisturbed();
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(50);
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
  rig.on_links([&] {
    board->power_cycle();
    board->step_time = std::chrono::milliseconds(1);
  });
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  EXPECT_EQ(library.run(run->id).final_state_hash, expected);
  EXPECT_EQ(library.run(run->id).attempt, 2u);
}

TEST_F(RunPathsTest, DaemonCrashGoesOnByItself) {
  const Hash expected = undisturbed(false, 6);
  std::shared_ptr<FakeBoard> board;
  Uuid id;
  // The first life's context must outlive its coroutines' boards.
  auto first = std::make_unique<Rig>(library);
  board = online(*first);
  board->step_time = std::chrono::milliseconds(5);
  auto spec = first->spec(board);
  spec.hyper.epochs = 6;
  auto run = first->create(spec);
  ASSERT_TRUE(run.ok());
  id = run->id;
  ASSERT_TRUE(first->wait_until([&] { return library.run(id).epochs_done >= 2; }));
  first->crash();
  ASSERT_EQ(library.run(id).state, RunState::kRunning);

  Rig second(library);
  ASSERT_TRUE(second.wait_state(id, RunState::kWaitingBoard));
  auto same = second.make_board(1);  // what the board held is gone with the first context
  ASSERT_TRUE(second.connect(1, same));
  ASSERT_TRUE(second.wait_state(id, RunState::kSucceeded)) << library.run(id).reason.text;
  EXPECT_EQ(library.run(id).final_state_hash, expected);
  EXPECT_EQ(library.run(id).attempt, 2u);
  // Timers do not outlive their context.
  board->power_cycle();
  board.reset();
}

TEST_F(RunPathsTest, RefusedStartFailsWithTheBoardsWords) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] {
    board->before = [](const std::string& op) -> Status {
      if (op == "start_run") return absl::InvalidArgumentError("mu_weight: 9 against -11..4");
      return absl::OkStatus();
    };
  });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed));
  EXPECT_EQ(library.run(run->id).reason.code, "INVALID_ARGUMENT");
  EXPECT_EQ(library.run(run->id).reason.text, "mu_weight: 9 against -11..4");
  // The board is free for the next run.
  rig.on_links([&] { board->before = {}; });
  auto next = rig.create(rig.spec(board));
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(rig.wait_state(next->id, RunState::kSucceeded));
}

TEST_F(RunPathsTest, BoardWithoutRoomGetsASmallerPlacement) {
  Rig rig(library);
  auto board = online(rig);
  rig.on_links([&] {
    board->before = [](const std::string& op) -> Status {
      if (op == "send_samples") return absl::ResourceExhaustedError("memory: bytes wanted");
      return absl::OkStatus();
    };
  });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  EXPECT_TRUE(*library.run(run->id).effective.streamed);
  EXPECT_EQ(*library.run(run->id).effective.k, 15u);
}

TEST_F(RunPathsTest, CancelInEachState) {
  struct Case {
    const char* name;
    std::string hang;  // operation that does not answer
    RunState state;
  };
  for (const Case& c :
       {Case{"preparing", "send_image", RunState::kPreparing},
        Case{"evaluating", "eval_step", RunState::kEvaluating},
        Case{"running", "", RunState::kRunning}, Case{"waiting", "away", RunState::kWaitingBoard},
        Case{"paused", "pause", RunState::kPaused}}) {
    SCOPED_TRACE(c.name);
    Rig rig(library);
    auto board = online(rig);
    board->step_time = std::chrono::milliseconds(20);
    rig.on_links([&] {
      board->before = [board = board.get(), hang = c.hang](const std::string& op) {
        if (op == hang && board->session) board->session->answering = false;
        return absl::OkStatus();
      };
    });
    if (c.hang == "pause") rig.on_links([&] { board->before = {}; });
    auto run = rig.create(rig.spec(board));
    if (c.hang == "pause") {
      ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
      ASSERT_TRUE(rig.desire(run->id, Desired::kPause).ok());
    }
    if (c.hang == "away") {
      ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
      rig.on_links([&] { board->step_time = std::chrono::seconds(2); });  // it still trains later
      rig.drop(board);
    }
    ASSERT_TRUE(rig.wait_state(run->id, c.state));
    auto cancelled = rig.desire(run->id, Desired::kCancel);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    rig.on_links([&] {
      board->before = {};
      if (board->session) board->session->answering = true;
    });
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled));
    EXPECT_FALSE(rig.desire(run->id, Desired::kRun).ok());
    if (c.hang == "away") {
      // It comes back still training: told to stop.
      ASSERT_TRUE(rig.connect(1, board));
      EXPECT_TRUE(rig.wait_until(
          [&] { return rig.on_links([&] { return board->job == model::JobState::kStopped; }); }));
    }
  }
}

TEST_F(RunPathsTest, QueuedRunIsCancelledAtOnceAndOrderIsKept) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(10);
  auto first = rig.create(rig.spec(board));
  auto second = rig.create(rig.spec(board));
  auto third = rig.create(rig.spec(board));
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  auto cancelled = rig.desire(second->id, Desired::kCancel);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->state, RunState::kCancelled);
  ASSERT_TRUE(rig.wait_state(third->id, RunState::kSucceeded));
  EXPECT_EQ(library.run(first->id).state, RunState::kSucceeded);
  EXPECT_LE(library.run(first->id).end_time_us, library.run(third->id).start_time_us);
  EXPECT_EQ(library.run(first->id).final_state_hash, library.run(third->id).final_state_hash);
}

TEST_F(RunPathsTest, PauseAndResume) {
  const Hash expected = undisturbed();
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    Rig rig(library);
    auto board = online(rig);
    board->step_time = std::chrono::milliseconds(10);
    auto slow = [](const std::string& op) -> Status {
      if (op == "train_step") std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return absl::OkStatus();
    };
    rig.on_links([&] { board->before = slow; });
    auto spec = rig.spec(board);
    spec.hyper.streamed = streamed;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
    ASSERT_TRUE(rig.desire(run->id, Desired::kPause).ok());
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kPaused));
    const auto step = rig.on_links([&] { return board->step; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_EQ(rig.on_links([&] { return board->step; }), step);
    // Away and back: still paused.
    rig.drop(board);
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard));
    ASSERT_TRUE(rig.connect(1, board));
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kPaused));
    ASSERT_TRUE(rig.desire(run->id, Desired::kRun).ok());
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
    EXPECT_EQ(library.run(run->id).final_state_hash, expected);
  }
}

TEST_F(RunPathsTest, DuplicateAndLostEpochRecords) {
  const Hash expected = undisturbed();
  Rig rig(library);
  auto board = online(rig);
  board->duplicate_epochs = true;
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
  EXPECT_EQ(library.epochs(run->id).size(), 3u);
  board->lose_epoch_event = true;  // found by asking
  run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
  EXPECT_EQ(library.epochs(run->id).size(), 3u);
  EXPECT_EQ(library.run(run->id).final_state_hash, expected);
}

TEST_F(RunPathsTest, AnotherResultOfTheSameEpochIsDivergence) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(5);
  auto spec = rig.spec(board);
  spec.hyper.epochs = 6;
  spec.hyper.checkpoint_epochs = 0;  // the second attempt begins afresh
  auto run = rig.create(spec);
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done >= 2; }));
  rig.on_links([&] {
    board->power_cycle();
    board->corrupt_epochs = true;
  });
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed));
  EXPECT_EQ(library.run(run->id).reason.code, "DIVERGED");
  // Both records are kept.
  const auto epochs = library.epochs(run->id);
  int of_first_epoch = 0;
  for (const auto& e : epochs) of_first_epoch += e.epoch == 0;
  EXPECT_EQ(of_first_epoch, 2);
}

TEST_F(RunPathsTest, DivergedStepFailsTheRun) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(20);
  auto spec = rig.spec(board);
  spec.hyper.batch = 4;
  auto run = rig.create(spec);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
  // A record of a step to come, as if the step had been executed before with another result.
  model::TelemetryFrame frame;
  frame.run_id = run->id;
  frame.attempt = 1;
  frame.step = 10;
  frame.board_uid = board->uid;
  frame.loss.sum = -1;
  library.telemetry.append(frame);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed));
  EXPECT_EQ(library.run(run->id).reason.code, "DIVERGED");
}

TEST_F(RunPathsTest, ResumeDeadlineEndsTheRun) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(20);
  auto spec = rig.spec(board);
  spec.resume_deadline_s = 1;
  auto run = rig.create(spec);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
  rig.drop(board);
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed, std::chrono::seconds(3)));
  EXPECT_EQ(library.run(run->id).reason.code, "RESUME_DEADLINE");
}

TEST_F(RunPathsTest, StartSnapshotIsWhereTrainingBegins) {
  Rig rig(library);
  auto board = online(rig);
  auto first = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(first->id, RunState::kSucceeded));
  const auto one = library.run(first->id);
  auto spec = rig.spec(board);
  spec.start_snapshot = one.final_weights_hash;
  auto second = rig.create(spec);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(rig.wait_state(second->id, RunState::kSucceeded))
      << library.run(second->id).reason.text;
  EXPECT_NE(library.run(second->id).final_state_hash, one.final_state_hash);
  EXPECT_EQ(library.run(second->id).heldout_start, one.heldout_best);
  // A board that cannot hold weights twice gets them after the start.
  rig.on_links([&] { board->one_copy_of_weights = true; });
  spec.hyper.streamed = true;
  auto third = rig.create(spec);
  ASSERT_TRUE(third.ok()) << third.status();
  ASSERT_TRUE(rig.wait_state(third->id, RunState::kSucceeded))
      << library.run(third->id).reason.text;
  EXPECT_EQ(library.run(third->id).final_state_hash, library.run(second->id).final_state_hash);
  spec.hyper.k = 8;  // the snapshot has 15
  EXPECT_EQ(rig.create(spec).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RunPathsTest, CancelIsHeededByABoardThatDoesNotAnswer) {
  Rig rig(library, [](training::OrchestratorOptions& o) { o.cancel_grace = 100ms; });
  auto board = online(rig);
  rig.on_links([&] {
    board->before = [board = board.get()](const std::string& op) {
      if (op == "start_run" && board->session) board->session->answering = false;
      return absl::OkStatus();
    };
  });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(
      rig.wait_until([&] { return rig.on_links([&] { return board->ops["start_run"]; }); }));
  ASSERT_TRUE(rig.desire(run->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled));
  rig.on_links([&] { board->before = {}; });
}

TEST_F(RunPathsTest, CancelIsHeededAtTheEndOfARun) {
  Rig rig(library);
  auto board = online(rig);
  // All epochs are there, but the board never says that it is done.
  rig.on_links([&] {
    board->before = [board = board.get()](const std::string& op) {
      if (op == "get_state" && board->epoch >= 3) board->job = model::JobState::kRunning;
      return absl::OkStatus();
    };
  });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done == 3; }));
  ASSERT_TRUE(rig.desire(run->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled, 3s));
  rig.on_links([&] { board->before = {}; });
}

// Not a search for all the epochs before it.
TEST_F(RunPathsTest, WildEpochRecordsFailTheRun) {
  const std::vector<std::pair<const char*, std::function<void(model::EpochResult&)>>> kinds = {
      {"epoch far away", [](auto& e) { e.epoch = 0xFFFFFFFF; }},
      {"epoch behind the last", [](auto& e) { e.epoch = 6; }},
      {"step", [](auto& e) { e.step = 0xFFFFFFFF; }},
      {"count", [](auto& e) { e.heldout.correct = e.heldout.total + 1; }},
  };
  for (const auto& [name, spoil] : kinds) {
    SCOPED_TRACE(name);
    Rig rig(library);
    auto board = online(rig);
    board->step_time = std::chrono::milliseconds(5);
    auto spec = rig.spec(board);
    spec.hyper.epochs = 6;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done >= 1; }));
    rig.on_links([&, spoil = spoil] { board->send_spoilt_epoch(1, spoil); });
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed)) << library.run(run->id).reason.text;
    EXPECT_EQ(library.run(run->id).reason.code, "BOARD_FAULT");
    EXPECT_LE(library.run(run->id).steps_done, library.run(run->id).steps_total);
  }
}

TEST_F(RunPathsTest, AFloodOfTheSameEpochDoesNotHoldUpACancel) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(5);
  auto spec = rig.spec(board);
  spec.hyper.epochs = 50;
  const auto run = rig.create(spec);
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done >= 1; }));
  const model::EpochResult known = library.epochs(run->id).front();  // acknowledged, gone there
  const int before = rig.on_links([&] { return board->ops["ack_epoch"]; });
  rig.on_links([&] {
    for (int i = 0; i < 5000; ++i) board->send_spoilt_epoch(0, [&](auto& e) { e = known; });
  });
  ASSERT_TRUE(rig.desire(run->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kCancelled)) << library.run(run->id).reason.text;
  EXPECT_LT(rig.on_links([&] { return board->ops["ack_epoch"]; }) - before, 100);
}

TEST_F(RunPathsTest, AFullDiskIsWaitedOut) {
  const Hash expected = undisturbed();
  Rig rig(library);
  auto board = online(rig);
  auto hits = std::make_shared<int>(0);
  rig.on_links([&] {
    board->before = [hits](const std::string& op) {
      if (op != "ack_epoch" || (*hits)++ != 0) return absl::OkStatus();
      return with_reason(absl::ResourceExhaustedError("disk is full"), "DISK_FULL");
    };
  });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  EXPECT_EQ(library.run(run->id).final_state_hash, expected);
  EXPECT_GE(*hits, 2);
}

}  // namespace
}  // namespace odt::test

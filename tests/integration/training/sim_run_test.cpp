#include <gtest/gtest.h>
#include <signal.h>

#include "sim_rig.h"

// Whole runs on real firmware: golden results, and the same end whatever happens on the way.
namespace odt::test {
namespace {

using model::Desired;
using model::RunState;

class SimRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sim_board_binary().empty()) GTEST_SKIP() << "odt-sim-board is not built";
  }
  model::RunSpec adapt(const BoardUid& uid, std::uint32_t epochs = 4) {
    model::RunSpec spec;
    spec.board_uid = uid;
    spec.model_hash = dir.net.hash;
    spec.dataset_id = dir.split.id;
    spec.hyper.epochs = epochs;
    spec.evaluate = true;
    return spec;
  }
  model::HyperParams config(char which) {
    model::HyperParams h;
    h.policy = model::Policy::kFixed;
    h.epochs = 3;
    h.batch = 8;
    h.k = which == 'A' ? 8 : 15;
    h.loss = which == 'A' ? model::LossKind::kMse : model::LossKind::kCe;
    h.dead_zone = which == 'A' ? 4 : 0;
    h.mu_weight =
        which == 'A' ? std::vector<std::int32_t>{2, 1, 0} : std::vector<std::int32_t>{1, -1, -3};
    h.mu_offset = which == 'A' ? 1 : -3;
    h.order_seed = which == 'A' ? 1 : 7;
    return h;
  }
  // The end of adapt() when nothing happens to it.
  Hash undisturbed(std::uint32_t epochs = 4) {
    DataDir other;
    const std::uint16_t own_port = free_port();
    SimRig rig(other, own_port);
    SimBoard board(9, own_port);
    EXPECT_TRUE(rig.wait_online(board.uid));
    auto spec = adapt(board.uid, epochs);
    spec.dataset_id = other.split.id;
    auto run = rig.create(spec);
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    return rig.run(run->id).final_state_hash;
  }

  DataDir dir;
  std::uint16_t port = free_port();
};

TEST_F(SimRunTest, GoldenRunsResidentAndStreamed) {
  struct Epoch {
    std::int64_t loss;
    std::uint32_t correct;
  };
  const std::map<char, std::vector<Epoch>> expected = {
      {'A', {{715945, 205}, {455934, 352}, {391705, 400}}},
      {'B', {{6637768, 288}, {3770195, 424}, {3437869, 444}}}};
  SimRig rig(dir, port);
  SimBoard board(1, port);
  ASSERT_TRUE(rig.wait_online(board.uid));
  for (const auto& [which, epochs] : expected) {
    std::map<bool, Hash> ends;
    for (const bool streamed : {false, true}) {
      SCOPED_TRACE(std::string(1, which) + (streamed ? " streamed" : " resident"));
      auto spec = adapt(board.uid);
      spec.dataset_id = dir.whole.id;
      spec.evaluate = false;
      spec.hyper = config(which);
      spec.hyper.streamed = streamed;
      auto run = rig.create(spec);
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
      const auto got = rig.epochs(run->id);
      ASSERT_EQ(got.size(), 3u);
      for (std::size_t e = 0; e < 3; ++e) {
        EXPECT_EQ(got[e].loss.sum, epochs[e].loss);
        EXPECT_EQ(got[e].train, (model::Accuracy{epochs[e].correct, 600}));
      }
      EXPECT_TRUE(rig.wait_until([&] { return rig.frames(run->id) == 225; }))
          << rig.frames(run->id);
      ends[streamed] = rig.run(run->id).final_state_hash;
      EXPECT_EQ(ends[streamed], got.back().state_hash);
    }
    EXPECT_EQ(ends[false], ends[true]);
  }
}

TEST_F(SimRunTest, AdaptationIsMeasuredAndGuarded) {
  SimRig rig(dir, port);
  SimBoard board(1, port);
  ASSERT_TRUE(rig.wait_online(board.uid));
  Hash ends[2];
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    auto spec = adapt(board.uid);
    spec.hyper.streamed = streamed;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    const auto end = rig.run(run->id);
    EXPECT_EQ(end.before.total, 100u);
    EXPECT_GE(end.after.correct, end.before.correct + 10);  // rotated images: much to learn
    EXPECT_GE(end.heldout_best.correct, end.heldout_start.correct);
    ends[streamed] = end.final_state_hash;
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST_F(SimRunTest, PowerCycledBoardEndsInTheSameState) {
  const Hash expected = undisturbed();
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    SimRig rig(dir, port);
    SimBoard board(1, port, {"--step-delay-ms", "4"});
    ASSERT_TRUE(rig.wait_online(board.uid));
    auto spec = adapt(board.uid);
    spec.hyper.streamed = streamed;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(rig.wait_until([&] { return rig.run(run->id).checkpoint_step != 0; }));
    std::this_thread::sleep_for(50ms);  // somewhere in an epoch
    board.kill();
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard, 8s));
    board.start();
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    EXPECT_EQ(rig.run(run->id).final_state_hash, expected);
    EXPECT_EQ(rig.run(run->id).attempt, 2u);
  }
}

// The first process stands still, its connection as open as before: nobody waits for it, and what
// the second is given the first never sees.
TEST_F(SimRunTest, Report09_AStoppedBoardLosesItsUidToTheOneThatAnswers) {
  SimRig rig(dir, port);
  SimBoard first(1, port);
  ASSERT_TRUE(rig.wait_online(first.uid));
  const auto endpoint = [&] {
    for (const auto& b : rig.fleet().view()->boards)
      if (b.uid == first.uid && b.status == model::BoardStatus::kOnline) return b.link.endpoint;
    return std::string();
  };
  ASSERT_TRUE(rig.wait_until([&] { return !endpoint().empty(); }));
  const std::string of_first = endpoint();
  first.signal(SIGSTOP);
  SimBoard second(1, port);
  ASSERT_TRUE(rig.wait_until([&] { return !endpoint().empty() && endpoint() != of_first; }));
  const std::string of_second = endpoint();
  auto run = rig.create(adapt(first.uid));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
  EXPECT_EQ(rig.run(run->id).attempt, 1u);
  // Awake again it finds its place taken, and keeps knocking.
  first.signal(SIGCONT);
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(endpoint(), of_second);
  second.kill();
  ASSERT_TRUE(rig.wait_until([&] { return !endpoint().empty() && endpoint() != of_second; }));
  const auto pulled = rig.ask<model::Snapshot>([&](Done<model::Snapshot> done) {
    rig.fleet().pull_weights(rig.ctx(), first.uid, "", std::move(done));
  });
  EXPECT_FALSE(pulled.ok()) << "it was given a model while it stood still";
}

TEST_F(SimRunTest, RestartedDaemonGoesOnByItself) {
  const Hash expected = undisturbed(8);
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    auto first = std::make_unique<SimRig>(dir, port);
    SimBoard board(1, port, {"--step-delay-ms", "10"});
    ASSERT_TRUE(first->wait_online(board.uid));
    auto spec = adapt(board.uid, 8);
    spec.hyper.streamed = streamed;
    auto run = first->create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(first->wait_until([&] { return first->run(run->id).epochs_done >= 2; }));
    first->crash();
    first.reset();
    std::this_thread::sleep_for(300ms);  // a resident run goes on meanwhile

    SimRig second(dir, port);
    EXPECT_TRUE(second.wait_until([&] { return second.running_again(run->id); }, 10s));
    ASSERT_TRUE(second.wait_state(run->id, RunState::kSucceeded))
        << second.run(run->id).reason.text;
    EXPECT_EQ(second.run(run->id).final_state_hash, expected);
    EXPECT_EQ(second.run(run->id).attempt, 1u);
    EXPECT_EQ(second.epochs(run->id).size(), 8u);
  }
}

TEST_F(SimRunTest, PauseResumeAndCancel) {
  const Hash expected = undisturbed();
  SimRig rig(dir, port);
  SimBoard board(1, port, {"--step-delay-ms", "5"});
  ASSERT_TRUE(rig.wait_online(board.uid));
  auto run = rig.create(adapt(board.uid));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_until([&] { return rig.run(run->id).epochs_done >= 1; }));
  ASSERT_TRUE(rig.desire(run->id, Desired::kPause).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kPaused));
  ASSERT_TRUE(rig.desire(run->id, Desired::kRun).ok());
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
  EXPECT_EQ(rig.run(run->id).final_state_hash, expected);
  auto next = rig.create(adapt(board.uid));
  ASSERT_TRUE(rig.wait_state(next->id, RunState::kRunning));
  ASSERT_TRUE(rig.desire(next->id, Desired::kCancel).ok());
  ASSERT_TRUE(rig.wait_state(next->id, RunState::kCancelled));
  // The board is free again, and the next run is not disturbed by the cancelled one.
  auto last = rig.create(adapt(board.uid));
  ASSERT_TRUE(rig.wait_state(last->id, RunState::kSucceeded)) << rig.run(last->id).reason.text;
  EXPECT_EQ(rig.run(last->id).final_state_hash, expected);
}

TEST_F(SimRunTest, SmallBoardIsStreamed) {
  SimRig rig(dir, port);
  SimBoard board(1, port, {"--ram", "65536"});
  ASSERT_TRUE(rig.wait_online(board.uid));
  auto run = rig.create(adapt(board.uid));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
  EXPECT_TRUE(*rig.run(run->id).effective.streamed);
  EXPECT_EQ(*rig.run(run->id).effective.k, 15u);
}

TEST_F(SimRunTest, EvaluateRestoreAndStartFromASnapshot) {
  SimRig rig(dir, port);
  SimBoard board(1, port);
  ASSERT_TRUE(rig.wait_online(board.uid));
  auto run = rig.create(adapt(board.uid));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
  const auto end = rig.run(run->id);
  board.kill();
  ASSERT_TRUE(rig.wait_until([&] { return !rig.wait_online(board.uid) || true; }));
  board.start();
  Result<model::Board> restored = absl::UnavailableError("");
  ASSERT_TRUE(rig.wait_until([&] {
    restored = rig.ask<model::Board>([&](Done<model::Board> done) {
      rig.fleet().restore_weights(rig.ctx(), board.uid, end.final_weights_hash, std::move(done));
    });
    return restored.ok();
  })) << restored.status();
  auto started = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board.uid, Hash{}, dir.split.id, "test", std::move(done));
  });
  ASSERT_TRUE(started.ok()) << started.status();
  const Uuid id = started->id;
  const auto job = [&] {
    return *rig.control().call_sync([id](store::ControlStore& s) { return s.job(id); });
  };
  ASSERT_TRUE(rig.wait_until([&] { return job().state > model::Job::State::kRunning; }));
  ASSERT_EQ(job().state, model::Job::State::kSucceeded) << job().message;
  const auto key = job().result_key;
  const Uuid evaluation_id = *Uuid::from_bytes(std::string(key.begin(), key.end()));
  auto evaluation = rig.control().call_sync(
      [evaluation_id](store::ControlStore& s) { return s.evaluation(evaluation_id); });
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->accuracy, end.after);
  ASSERT_EQ(evaluation->confusion.size(), 100u);
  std::uint32_t diagonal = 0;
  for (int i = 0; i < 10; ++i) diagonal += evaluation->confusion[i * 11];
  EXPECT_EQ(diagonal, end.after.correct);

  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    auto spec = adapt(board.uid, 2);
    spec.start_snapshot = end.final_weights_hash;
    spec.hyper.streamed = streamed;
    auto next = rig.create(spec);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(rig.wait_state(next->id, RunState::kSucceeded)) << rig.run(next->id).reason.text;
    EXPECT_EQ(rig.run(next->id).before, end.after);
  }
}

TEST_F(SimRunTest, SeveralBoardsAtOnce) {
  SimRig rig(dir, port);
  std::vector<std::unique_ptr<SimBoard>> boards;
  for (std::uint8_t i = 1; i <= 4; ++i) boards.push_back(std::make_unique<SimBoard>(i, port));
  std::vector<Uuid> runs;
  for (const auto& board : boards) {
    ASSERT_TRUE(rig.wait_online(board->uid));
    auto run = rig.create(adapt(board->uid));
    ASSERT_TRUE(run.ok()) << run.status();
    runs.push_back(run->id);
  }
  for (const auto& id : runs) {
    ASSERT_TRUE(rig.wait_state(id, RunState::kSucceeded)) << rig.run(id).reason.text;
    EXPECT_EQ(rig.run(id).final_state_hash, rig.run(runs[0]).final_state_hash);
  }
}

}  // namespace
}  // namespace odt::test

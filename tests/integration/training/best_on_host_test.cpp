#include <gtest/gtest.h>

#include "compiler/plan.h"
#include "sim_rig.h"
#include "training/ram_fit.h"

// Boards that hold the weights once: the guard's best stays with the host, and the run ends as on a
// board that holds them twice.
namespace odt::test {
namespace {

using model::RunState;

class BestOnHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sim_board_binary().empty()) GTEST_SKIP() << "odt-sim-board is not built";
    const auto table = compiler::plan_table(golden("image.odtm"), "image.odtm");
    ASSERT_TRUE(table.ok()) << table.status();
    dir.net.ram = *table;
  }
  // Lets the daemon know what the model needs.
  void know(SimRig& rig) {
    store::Batch batch;
    model::Model m = dir.net;
    m.meta.etag = 0;
    batch.changes.push_back(store::PutModel{m});
    const auto done = rig.control().call_sync(
        [&batch](store::ControlStore& s) { return s.commit(std::move(batch)); });
    ASSERT_TRUE(done.ok()) << done.status();
  }
  // Steps so large that the last epoch is not the best.
  model::RunSpec coarse(const BoardUid& uid, bool streamed) {
    model::RunSpec spec;
    spec.board_uid = uid;
    spec.model_hash = dir.net.hash;
    spec.dataset_id = dir.split.id;
    spec.hyper.policy = model::Policy::kFixed;
    spec.hyper.epochs = 6;
    spec.hyper.k = 8;
    spec.hyper.batch = 8;
    spec.hyper.mu_weight = {3};
    spec.hyper.streamed = streamed;
    return spec;
  }
  // Holds the weights once, and not one byte more than is needed.
  std::string small(bool streamed) {
    const training::SampleCounts counts{dir.split.train, dir.split.heldout, false, false, true};
    training::Placement place{8, 8, streamed};
    place.best_on_host = true;
    return std::to_string(training::ram_need(dir.net, counts, place).total());
  }
  model::Run finished(SimRig& rig, const Uuid& id) {
    EXPECT_TRUE(rig.wait_state(id, RunState::kSucceeded)) << rig.run(id).reason.text;
    return rig.run(id);
  }
  model::Run kept_on_board() {
    SimRig rig(dir, port);
    know(rig);
    SimBoard roomy(9, port);
    EXPECT_TRUE(rig.wait_online(roomy.uid));
    auto run = rig.create(coarse(roomy.uid, false));
    EXPECT_TRUE(run.ok()) << run.status();
    const auto end = finished(rig, run->id);
    EXPECT_FALSE(*end.effective.best_on_host);
    EXPECT_LT(end.best_step, end.steps_total) << "nothing to roll back";
    return end;
  }
  DataDir dir;
  std::uint16_t port = free_port();
};

TEST_F(BestOnHostTest, ABoardWithRoomForOneCopyEndsInTheSameState) {
  const auto expected = kept_on_board();
  SimRig rig(dir, port);
  std::uint8_t number = 1;
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    SimBoard board(number++, port, {"--ram", small(streamed)});
    ASSERT_TRUE(rig.wait_online(board.uid));
    auto spec = coarse(board.uid, streamed);
    spec.hyper.best_on_host = false;
    const auto refused = rig.create(spec);
    EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
    spec.hyper.best_on_host.reset();
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    const auto end = finished(rig, run->id);
    EXPECT_TRUE(*end.effective.best_on_host);
    EXPECT_EQ(end.final_state_hash, expected.final_state_hash);
    EXPECT_EQ(end.final_weights_hash, expected.final_weights_hash);
    EXPECT_EQ(end.best_weights, expected.final_weights_hash);
    EXPECT_EQ(end.best_step, expected.best_step);
    EXPECT_EQ(end.attempt, 1u);
    const auto a = rig.epochs(expected.id), b = rig.epochs(run->id);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t e = 0; e < a.size(); ++e) EXPECT_EQ(a[e].state_hash, b[e].state_hash) << e;
  }
}

TEST_F(BestOnHostTest, SurvivesPowerCyclesOfTheBoard) {
  const auto expected = kept_on_board();
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    SimRig rig(dir, port);
    SimBoard board(1, port, {"--ram", small(streamed), "--step-delay-ms", "2"});
    ASSERT_TRUE(rig.wait_online(board.uid));
    auto run = rig.create(coarse(board.uid, streamed));
    ASSERT_TRUE(run.ok()) << run.status();
    for (const std::uint32_t at : {1u, 3u}) {
      ASSERT_TRUE(rig.wait_until([&] { return rig.run(run->id).epochs_done >= at; }));
      board.kill();
      ASSERT_TRUE(rig.wait_state(run->id, RunState::kWaitingBoard, 8s));
      board.start();
      ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning, 20s));
    }
    const auto end = finished(rig, run->id);
    EXPECT_EQ(end.final_state_hash, expected.final_state_hash);
    EXPECT_GE(end.attempt, 3u);
  }
}

// The daemon dies again and again, wherever it happens to be; the board stays.
TEST_F(BestOnHostTest, SurvivesCrashesOfTheDaemon) {
  const auto expected = kept_on_board();
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    auto rig = std::make_unique<SimRig>(dir, port);
    SimBoard board(1, port, {"--ram", small(streamed)});
    ASSERT_TRUE(rig->wait_online(board.uid));
    auto run = rig->create(coarse(board.uid, streamed));
    ASSERT_TRUE(run.ok()) << run.status();
    int lives = 1;
    for (; lives < 10 && !model::is_final(rig->run(run->id).state); ++lives) {
      rig->wait_until([&] { return rig->run(run->id).state == RunState::kRunning; }, 20s);
      std::this_thread::sleep_for(std::chrono::milliseconds(lives * 7 % 60));
      rig->crash();
      rig.reset();
      rig = std::make_unique<SimRig>(dir, port);
    }
    const auto end = finished(*rig, run->id);
    EXPECT_GT(lives, 2);
    EXPECT_EQ(end.final_state_hash, expected.final_state_hash);
    EXPECT_EQ(rig->epochs(run->id).size(), 6u);
  }
}

}  // namespace
}  // namespace odt::test

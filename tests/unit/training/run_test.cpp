#include <gtest/gtest.h>

#include "rig.h"

namespace odt::test {
namespace {

using model::Desired;
using model::RunState;

std::vector<RunState> states_of(Library& library, const Uuid& run) {
  std::vector<RunState> out;
  for (const auto& event : library.events(run)) out.push_back(event.to);
  return out;
}

class RunTest : public testing::Test {
 protected:
  Library library;
};

TEST_F(RunTest, ResidentRunGoesThroughItsStates) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto spec = rig.spec(board);
  spec.evaluate = true;
  spec.name = "first";
  auto run = rig.create(spec);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  EXPECT_EQ(states_of(library, run->id),
            (std::vector<RunState>{RunState::kQueued, RunState::kPreparing, RunState::kEvaluating,
                                   RunState::kPreparing, RunState::kRunning, RunState::kEvaluating,
                                   RunState::kSucceeded}));
  const auto end = library.run(run->id);
  EXPECT_EQ(end.attempt, 1u);
  EXPECT_EQ(end.epochs_done, 3u);
  EXPECT_EQ(end.before.total, 70u);
  EXPECT_EQ(end.after.total, 70u);
  EXPECT_EQ(end.heldout_start.total, 60u);
  EXPECT_FALSE(end.final_state_hash.is_zero());
  EXPECT_EQ(library.epochs(run->id).size(), 3u);
  EXPECT_EQ(library.epochs(run->id).back().state_hash, end.final_state_hash);
  EXPECT_TRUE(*end.effective.guard);
  EXPECT_EQ(*end.effective.k, 15u);
  const Hash weights = end.final_weights_hash;
  auto snapshot =
      library.control.call_sync([weights](store::ControlStore& s) { return s.snapshot(weights); });
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->aliases, std::vector<std::string>{"final/first"});
  EXPECT_TRUE(library.blobs.has(weights));
  store::TelemetryStore::Range range;
  range.run = run->id;
  auto frames =
      library.telemetry.call_sync([range](store::TelemetryStore& s) { return s.read(range); });
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ(frames->total, end.steps_total);
}

// Rule 1.9 where nothing is held out: the training samples, not seen yet, tell the drift.
TEST_F(RunTest, WithoutHeldOutSamplesTrainingSamplesTellTheDrift) {
  library.net.source_accuracy = {1, 100};  // whatever the board gets right is good enough
  library.digits.heldout = 0;
  library.jobs.samples->heldout = {};
  store::Batch batch;
  batch.changes.push_back(store::PutModel{library.net});
  batch.changes.push_back(store::PutDataset{library.digits});
  library.commit(std::move(batch));
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto spec = rig.spec(board);
  spec.hyper.policy = model::Policy::kAuto;
  spec.hyper.batch.reset();
  spec.hyper.mu_weight.clear();
  auto run = rig.create(spec);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
  const auto end = library.run(run->id);
  EXPECT_EQ(end.heldout_start.total, 0u);
  EXPECT_EQ(end.effective.mu_weight, (std::vector<std::int32_t>{-5, -6, -7}));
  EXPECT_EQ(*end.effective.batch, 32u);
  EXPECT_FALSE(*end.effective.guard);
}

// Who reads a step can divide: loss over samples, kind known, the partial batch counted as it is.
TEST_F(RunTest, StepFramesSaySamplesAndKindOfLoss) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  for (const bool streamed : {false, true}) {
    auto spec = rig.spec(board);
    spec.hyper.batch = 8;
    spec.hyper.streamed = streamed;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
    store::TelemetryStore::Range range;
    range.run = run->id;
    auto frames =
        library.telemetry.call_sync([range](store::TelemetryStore& s) { return s.read(range); });
    ASSERT_TRUE(frames.ok());
    ASSERT_EQ(frames->frames.size(), 18u);  // 43 samples: five batches of 8 and one of 3
    for (const auto& frame : frames->frames) {
      EXPECT_EQ(frame.loss.count, frame.step % 6 == 5 ? 3u : 8u) << frame.step;
      EXPECT_EQ(frame.loss.kind, model::LossKind::kCe);
    }
  }
}

}  // namespace
}  // namespace odt::test

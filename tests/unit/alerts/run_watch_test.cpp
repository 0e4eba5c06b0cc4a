#include "alerts/run_watch.h"

#include "alert_rig.h"

namespace odt::test {
namespace {

using model::AlertKind;
using model::RunState;

struct Runs : BookRig {
  alerts::RunWatch watch{book, [](const BoardUid&) { return std::string("b1"); }};
  model::Run run;
  std::uint32_t epochs = 0;

  Runs() {
    run.id = new_uuid();
    run.spec.board_uid = uid(1);
    run.spec.name = "r";
    run.state = RunState::kRunning;
    run.heldout_start = {50, 100};
    begin();
  }
  alerts::RunWatch::Now time() const { return {now, mono}; }
  void begin() {
    EXPECT_TRUE(watch.on_run(run, time()));
    watch.on_model(run.id, {1000, 100}, time());
  }
  void tick(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      pass(1);
      watch.tick(time());
    }
  }
  void epoch(std::uint32_t correct, std::uint32_t alarms = 0, std::uint32_t saturated = 0) {
    model::EpochResult e;
    e.run_id = run.id;
    e.epoch = epochs++;
    e.heldout = {correct, 100};
    e.alarms = alarms;
    e.layers.resize(2);
    e.layers[1].saturated = saturated;
    watch.on_epoch(e, time());
  }
};

TEST(RunWatch, AnEpochBeforeTheWeightsAreKnownIsJudgedThen) {
  Runs rig;
  rig.run.id = new_uuid();
  EXPECT_TRUE(rig.watch.on_run(rig.run, rig.time()));
  rig.epoch(90, 0, 60);
  EXPECT_FALSE(rig.fires(AlertKind::kSaturation, "b1"));
  rig.watch.on_model(rig.run.id, {1000, 100}, rig.time());
  EXPECT_TRUE(rig.fires(AlertKind::kSaturation, "b1"));
}

TEST(RunWatch, StuckWithoutProgress) {
  Runs rig;
  rig.tick(119);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.watch.on_progress({rig.run.id}, rig.time());
  rig.tick(119);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.tick(1);
  EXPECT_TRUE(rig.fires(AlertKind::kStuck, "b1"));
  rig.run.steps_done = 5;
  rig.watch.on_run(rig.run, rig.time());
  rig.tick(1);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  // Long epochs are allowed three of their time.
  rig.run.timing.epoch_us = 100'000'000;
  rig.run.steps_done = 6;
  rig.watch.on_run(rig.run, rig.time());
  rig.tick(299);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.tick(1);
  EXPECT_TRUE(rig.fires(AlertKind::kStuck, "b1"));
  // Waiting is not being stuck, nor is the time of it counted afterwards.
  rig.run.state = RunState::kWaitingBoard;
  rig.watch.on_run(rig.run, rig.time());
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.tick(1000);
  rig.run.state = RunState::kRunning;
  rig.watch.on_run(rig.run, rig.time());
  rig.tick(299);
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  rig.tick(1);
  rig.run.state = RunState::kFailed;
  rig.watch.on_run(rig.run, rig.time());
  EXPECT_FALSE(rig.fires(AlertKind::kStuck, "b1"));
  EXPECT_FALSE(rig.watch.any());
}

TEST(RunWatch, AccuracyUnderTheRunsBest) {
  Runs rig;
  rig.epoch(80);
  rig.epoch(76);
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  rig.epoch(75);
  EXPECT_TRUE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  EXPECT_EQ(rig.alert(AlertKind::kAccuracyDrop, "b1").value, 50'000);
  EXPECT_EQ(rig.alert(AlertKind::kAccuracyDrop, "b1").run_id, rig.run.id);
  rig.epoch(79);
  rig.epoch(77);  // neither
  rig.epoch(79);
  EXPECT_TRUE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  rig.epoch(81);
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  // The guard mends it at the run's end; without one it stands until another run begins.
  rig.epoch(40);
  EXPECT_TRUE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  rig.run.state = RunState::kSucceeded;
  rig.run.guard_verdict = model::GuardVerdict::kBest;
  rig.watch.on_run(rig.run, rig.time());
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));

  rig.run.id = new_uuid();
  rig.run.state = RunState::kRunning;
  rig.begin();
  rig.epoch(30);
  rig.run.state = RunState::kSucceeded;
  rig.run.guard_verdict = model::GuardVerdict::kOff;
  rig.watch.on_run(rig.run, rig.time());
  EXPECT_TRUE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  rig.run.id = new_uuid();
  rig.run.state = RunState::kRunning;
  rig.begin();
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
}

TEST(RunWatch, LossOverTheRunsLowestWhereThereAreNoClasses) {
  Runs rig;
  const auto epoch = [&](std::int64_t sum) {
    model::EpochResult e;
    e.run_id = rig.run.id;
    e.heldout_loss = {sum, -8, 100, model::LossKind::kMse};
    rig.watch.on_epoch(e, rig.time());
  };
  rig.run.heldout_start_loss = {1000, -8, 100, model::LossKind::kMse};
  rig.watch.on_run(rig.run, rig.time());
  epoch(1049);
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  epoch(1051);
  EXPECT_TRUE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
  epoch(900);
  epoch(910);
  EXPECT_FALSE(rig.fires(AlertKind::kAccuracyDrop, "b1"));
}

TEST(RunWatch, DeadLayerForEpochsInARow) {
  Runs rig;
  rig.epoch(80, 1);
  rig.epoch(80, 2);
  rig.epoch(80, 1);
  EXPECT_FALSE(rig.fires(AlertKind::kDeadLayer, "b1"));
  rig.epoch(80, 5);
  EXPECT_TRUE(rig.fires(AlertKind::kDeadLayer, "b1"));
  EXPECT_EQ(rig.alert(AlertKind::kDeadLayer, "b1").value, 2);
  rig.epoch(80, 0);
  EXPECT_TRUE(rig.fires(AlertKind::kDeadLayer, "b1"));
  rig.epoch(80, 0);
  EXPECT_FALSE(rig.fires(AlertKind::kDeadLayer, "b1"));
}

TEST(RunWatch, SaturationOfTheWorstLayer) {
  Runs rig;
  rig.epoch(80, 0, 4);
  EXPECT_FALSE(rig.fires(AlertKind::kSaturation, "b1"));
  rig.epoch(80, 0, 5);
  EXPECT_TRUE(rig.fires(AlertKind::kSaturation, "b1"));
  EXPECT_EQ(rig.alert(AlertKind::kSaturation, "b1").value, 50'000);
  for (int i = 0; i < 3; ++i) rig.epoch(80, 0, 4);  // not well under the threshold
  EXPECT_TRUE(rig.fires(AlertKind::kSaturation, "b1"));
  for (int i = 0; i < 2; ++i) rig.epoch(80, 0, 3);
  EXPECT_FALSE(rig.fires(AlertKind::kSaturation, "b1"));
}

}  // namespace
}  // namespace odt::test

#include <gtest/gtest.h>

#include <algorithm>

#include "rig.h"
#include "training/board_ops.h"
#include "training/ram_fit.h"
#include "training/run_checks.h"

// Runs without classes: losses where accuracy stands otherwise.
namespace odt::test {
namespace {

using model::RunState;
using model::Task;

class LossesTest : public testing::Test {
 protected:
  LossesTest() {
    library.net.outputs = {Task::kAutoencode, 4, {-128}, {1}};
    library.net.has_ce_scale = false;
    store::Batch batch;
    batch.changes.push_back(store::PutModel{library.net});
    library.commit(std::move(batch));
  }
  std::shared_ptr<FakeBoard> online(Rig& rig) {
    auto board = rig.make_board(1);
    board->losses = true;
    board->caps = 0xFFFFFFFF;
    EXPECT_TRUE(rig.connect(1, board));
    EXPECT_TRUE(rig.wait_online(board));
    return board;
  }
  Library library;
};

TEST_F(LossesTest, StandInTheirOwnPlaceAndTheLowestIsTheBest) {
  Rig rig(library);
  auto board = online(rig);
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    auto spec = rig.spec(board);
    spec.hyper.epochs = 6;
    spec.hyper.streamed = streamed;
    spec.evaluate = true;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->outputs, library.net.outputs);
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << library.run(run->id).reason.text;
    const auto end = library.run(run->id);
    for (const auto& accuracy : {end.before, end.after, end.heldout_start, end.heldout_best})
      EXPECT_EQ(accuracy, model::Accuracy{});
    EXPECT_EQ(end.before_loss.count, 70u);
    EXPECT_EQ(end.after_loss.count, 70u);
    EXPECT_EQ(end.heldout_start_loss.kind, model::LossKind::kMse);
    EXPECT_EQ(end.effective.loss, model::LossKind::kMse);
    EXPECT_EQ(end.effective.dead_zone, 0u);
    std::int64_t best = end.heldout_start_loss.sum;
    for (const auto& e : library.epochs(run->id)) {
      EXPECT_EQ(e.train, model::Accuracy{});
      EXPECT_EQ(e.heldout, model::Accuracy{});
      EXPECT_EQ(e.loss.count, 43u);
      EXPECT_EQ(e.heldout_loss.count, 60u);
      best = std::min(best, e.heldout_loss.sum);
    }
    EXPECT_LT(best, end.heldout_start_loss.sum) << "nothing was learnt: choose another seed";
    EXPECT_EQ(end.heldout_best_loss.sum, best);
    const Hash weights = end.final_weights_hash;
    const auto snapshot = library.control.call_sync(
        [weights](store::ControlStore& s) { return s.snapshot(weights); });
    ASSERT_TRUE(snapshot.ok());
    EXPECT_EQ(snapshot->heldout_loss, end.heldout_best_loss);
  }
}

TEST_F(LossesTest, RightAnswersOfAModelWithoutClassesAreAFault) {
  const std::vector<std::pair<const char*, std::function<void(model::EpochResult&)>>> kinds = {
      {"train", [](auto& e) { e.train.correct = 1; }},
      {"no such loss", [](auto& e) { e.heldout.correct = 0xFFFFFFFF; }},
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
  }
}

TEST_F(LossesTest, AnotherLossOfTheSameEpochIsADivergence) {
  Rig rig(library);
  auto board = online(rig);
  board->step_time = std::chrono::milliseconds(5);
  auto spec = rig.spec(board);
  spec.hyper.epochs = 6;
  auto run = rig.create(spec);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(rig.wait_until([&] { return library.run(run->id).epochs_done >= 2; }));
  rig.on_links([&] {
    board->send_spoilt_epoch(0, [&](model::EpochResult& e) {
      const auto known = library.epochs(run->id).front();
      e = known;
      e.train = {0, known.loss.count};
      e.heldout = {static_cast<std::uint32_t>(known.heldout_loss.sum) ^ 1u,
                   known.heldout_loss.count};
      e.heldout_loss = {};
    });
  });
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kFailed));
  EXPECT_EQ(library.run(run->id).reason.code, "DIVERGED") << library.run(run->id).reason.text;
}

TEST_F(LossesTest, OldModelRowsAreReadFromTheirImage) {
  model::Model old = library.net;
  std::string image(64, '\0');
  image.replace(0, 4, "ODTM");
  image[38] = 1;
  old.hash = *library.blobs.put(image);
  old.outputs = {};
  old.n_classes = 3;
  store::Batch batch;
  batch.changes.push_back(store::PutModel{old});
  library.commit(std::move(batch));
  Rig rig(library);
  auto board = online(rig);
  auto spec = rig.spec(board);
  spec.model_hash = old.hash;
  const auto refused = rig.create(spec);
  EXPECT_EQ(refused.status().message(),
            "dataset 'digits' has 2 classes; model 'net' is a regression of 3 values");
}

TEST(LossChecks, EachMismatchIsOneClearError) {
  training::RunParts parts;
  parts.board.name = "rig";
  parts.board.fw_version = "0.1.0";
  parts.board.caps = 0xFFFFFFFF;
  parts.model.name = "net";
  parts.model.input_shape = {4};
  parts.model.n_classes = 2;
  parts.model.outputs = {Task::kRegress, 2, {}, {}};
  parts.dataset.name = "data";
  parts.dataset.shape = {4};
  parts.dataset.train = 100;
  parts.dataset.heldout = 20;
  parts.dataset.outputs = 3;
  const auto shapes = [&] {
    return std::string(training::check_shapes(parts.model, parts.dataset, false).message());
  };
  const auto settings = [&](const model::HyperParams& asked) {
    return std::string(training::check_settings(parts, asked, nullptr).message());
  };
  EXPECT_EQ(shapes(), "dataset 'data' has 3 targets; model 'net' is a regression of 2 values");
  parts.dataset.outputs = 0;
  EXPECT_EQ(shapes(),
            "dataset 'data' has neither classes nor targets; model 'net' is a regression of 2 "
            "values");
  parts.model.outputs.task = Task::kAutoencode;
  EXPECT_EQ(shapes(), "");
  parts.dataset.outputs = 2;
  parts.model.outputs.task = Task::kRegress;
  EXPECT_EQ(shapes(), "");
  model::HyperParams asked;
  EXPECT_EQ(settings(asked), "");
  asked.loss = model::LossKind::kCe;
  EXPECT_EQ(settings(asked), "loss CE is given; it does not go with a model without classes");
  asked.loss = model::LossKind::kMse;
  EXPECT_EQ(settings(asked), "");
  parts.board.caps = 0x1FFF;
  EXPECT_EQ(settings(asked),
            "board rig (firmware 0.1.0) cannot train regressions and autoencoders");
  parts.model.outputs.task = Task::kClassify;
  EXPECT_EQ(shapes(), "dataset 'data' has 2 targets; model 'net' tells 2 classes apart");
}

TEST(LossChecks, TargetsTakeRoomAndAConfusionMatrixDoesNot) {
  model::Model net;
  net.input_shape = {8};
  net.n_classes = 4;
  net.outputs = {Task::kClassify, 4, {}, {}};
  const training::SampleCounts counts{100, 20, true, false, true};
  const training::Placement place{8, 8, false};
  const auto classes = training::ram_need(net, counts, place);
  net.outputs.task = Task::kRegress;
  const auto targets = training::ram_need(net, counts, place);
  // 3 more values in front of each of 100 + 20 samples, a set on 8 bytes: 916 and 196 bytes have 4
  // to spare, 1216 and 256 none; a sample alone has its 4 bytes anyway.
  EXPECT_EQ(targets.samples + 4 * 4 * 4, classes.samples + 3 * 120 - 4 - 4);
  net.outputs.task = Task::kAutoencode;
  EXPECT_EQ(training::ram_need(net, counts, place).samples + 4 * 4 * 4, classes.samples);
}

TEST(LossChecks, ScoresAreSummedUpByRank) {
  std::vector<std::uint64_t> scores;
  for (std::uint64_t i = 100; i > 0; --i) scores.push_back(i * 10);
  const auto s = training::summary_of(scores, Hash{});
  EXPECT_EQ(s.min, 10u);
  EXPECT_EQ(s.median, 500u);
  EXPECT_EQ(s.p95, 950u);
  EXPECT_EQ(s.max, 1000u);
  const auto one = training::summary_of({7}, Hash{});
  EXPECT_EQ(one.min, 7u);
  EXPECT_EQ(one.median, 7u);
  EXPECT_EQ(one.p95, 7u);
}

}  // namespace
}  // namespace odt::test

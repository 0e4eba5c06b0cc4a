#include <gtest/gtest.h>

#include "data/odtw.h"
#include "rig.h"
#include "training/board_ops.h"

// FleetControl but for runs: boards, weights, evaluation, repeated requests.
namespace odt::test {
namespace {

using model::RunState;

class ControlTest : public testing::Test {
 protected:
  std::shared_ptr<FakeBoard> trained(Rig& rig, Hash* weights) {
    auto board = rig.make_board(1);
    EXPECT_TRUE(rig.connect(1, board));
    EXPECT_TRUE(rig.wait_online(board));
    auto run = rig.create(rig.spec(board));
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded));
    *weights = library.run(run->id).final_weights_hash;
    return board;
  }
  model::Job job(const Uuid& id) {
    return *library.control.call_sync([id](store::ControlStore& s) { return s.job(id); });
  }
  Library library;
};

TEST(WeightsHeader, IsOfAFileThatIsWhole) {
  data::StoredWeights weights;
  weights.rules_version = 1;
  weights.model_hash = sha256("model");
  data::StoredLayer layer;
  layer.kind = 3;
  layer.shape = {2, 3};
  layer.dtype = 1;
  layer.k = 8;
  layer.values = {1, 2, 3, 4, 5, 6};
  layer.offsets = {7, 8};
  weights.layers.push_back(layer);
  layer.dtype = 3;
  layer.k = 15;
  weights.layers.push_back(layer);
  layer.dtype = 4;
  layer.k = -6;
  weights.layers.push_back(layer);
  const std::string bytes = data::weights_bytes(weights);
  const auto header = training::read_weights_header(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->model_hash, weights.model_hash);
  EXPECT_EQ(header->n_layers, 3);
  EXPECT_EQ(header->k, 8);
  EXPECT_EQ(header->layer_k, (std::vector<std::uint32_t>{8, 15, 16}));
  EXPECT_FALSE(training::read_weights_header(bytes.substr(0, bytes.size() - 1)).ok());
  EXPECT_FALSE(training::read_weights_header(bytes + "x").ok());
}

TEST_F(ControlTest, UnknownThingsAreNamed) {
  Rig rig(library);
  auto board = rig.make_board(1);
  auto spec = rig.spec(board);
  auto run = rig.create(spec);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reason_of(run.status()), "BOARD_NOT_FOUND");
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  spec.model_hash = sha256("other");
  EXPECT_EQ(reason_of(rig.create(spec).status()), "MODEL_NOT_FOUND");
  spec = rig.spec(board);
  spec.dataset_id = new_uuid();
  EXPECT_EQ(reason_of(rig.create(spec).status()), "DATASET_NOT_FOUND");
  spec = rig.spec(board);
  spec.start_snapshot = sha256("no such weights");
  EXPECT_EQ(reason_of(rig.create(spec).status()), "SNAPSHOT_NOT_FOUND");
  // Nothing was half made.
  auto runs = library.control.call_sync([](store::ControlStore& s) { return s.active_runs(); });
  EXPECT_TRUE(runs->empty());
}

TEST_F(ControlTest, DryRunAndRepeatedRequest) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto spec = rig.spec(board);
  auto dry = rig.create(spec, true);
  ASSERT_TRUE(dry.ok());
  EXPECT_TRUE(dry->id.is_zero());
  auto first = rig.create(spec, false, "request-1");
  auto again = rig.create(spec, false, "request-1");
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->id, again->id);
  auto page =
      library.control.call_sync([](store::ControlStore& s) { return s.runs(store::ListQuery{}); });
  EXPECT_EQ(page->items.size(), 1u);
}

TEST_F(ControlTest, PullAndRestoreWeights) {
  Rig rig(library);
  Hash weights;
  auto board = trained(rig, &weights);
  auto pulled = rig.ask<model::Snapshot>([&](Done<model::Snapshot> done) {
    rig.fleet().pull_weights(rig.ctx(), board->uid, "golden", done);
  });
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->hash, weights);
  EXPECT_NE(std::find(pulled->aliases.begin(), pulled->aliases.end(), "golden"),
            pulled->aliases.end());
  rig.on_links([&] { board->power_cycle(); });
  auto offline = rig.ask<model::Snapshot>([&](Done<model::Snapshot> done) {
    rig.fleet().pull_weights(rig.ctx(), board->uid, "", done);
  });
  EXPECT_EQ(reason_of(offline.status()), "BOARD_OFFLINE");
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto restored = rig.ask<model::Board>([&](Done<model::Board> done) {
    rig.fleet().restore_weights(rig.ctx(), board->uid, weights, done);
  });
  ASSERT_TRUE(restored.ok()) << restored.status();
  pulled = rig.ask<model::Snapshot>([&](Done<model::Snapshot> done) {
    rig.fleet().pull_weights(rig.ctx(), board->uid, "", done);
  });
  ASSERT_TRUE(pulled.ok());
  EXPECT_EQ(pulled->hash, weights);
}

TEST_F(ControlTest, RestoreAndEvaluateAreRefusedDuringARun) {
  Rig rig(library);
  Hash weights;
  auto board = trained(rig, &weights);
  rig.on_links([&] { board->step_time = 50ms; });
  auto run = rig.create(rig.spec(board));
  ASSERT_TRUE(rig.wait_state(run->id, RunState::kRunning));
  auto restored = rig.ask<model::Board>([&](Done<model::Board> done) {
    rig.fleet().restore_weights(rig.ctx(), board->uid, weights, done);
  });
  EXPECT_EQ(restored.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(reason_of(restored.status()), "BOARD_HAS_RUN");
  auto evaluated = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board->uid, {}, library.digits.id, "test", done);
  });
  EXPECT_EQ(reason_of(evaluated.status()), "BOARD_HAS_RUN");
}

TEST_F(ControlTest, EvaluationIsAJobWithAConfusionMatrix) {
  Rig rig(library);
  Hash weights;
  auto board = trained(rig, &weights);
  for (const Hash& snapshot : {Hash{}, weights}) {
    auto started = rig.ask<model::Job>([&](Done<model::Job> done) {
      rig.fleet().evaluate(rig.ctx(), board->uid, snapshot, library.digits.id, "test", done);
    });
    ASSERT_TRUE(started.ok()) << started.status();
    ASSERT_TRUE(rig.wait_until([&] {
      return job(started->id).state == model::Job::State::kSucceeded;
    })) << job(started->id).message;
    const auto done = job(started->id);
    const auto id = *Uuid::from_bytes(std::string(done.result_key.begin(), done.result_key.end()));
    auto evaluation =
        library.control.call_sync([id](store::ControlStore& s) { return s.evaluation(id); });
    ASSERT_TRUE(evaluation.ok());
    EXPECT_EQ(evaluation->accuracy.total, 70u);
    EXPECT_EQ(evaluation->confusion.size(), 4u);
    EXPECT_EQ(evaluation->split, "test");
  }
  auto wrong = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board->uid, {}, library.digits.id, "nosuch", done);
  });
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlTest, AnEvaluationCanBeCancelled) {
  Rig rig(library);
  Hash weights;
  auto board = trained(rig, &weights);
  rig.on_links([&] {
    board->before = [board = board.get()](const std::string& op) {
      if (op == "eval_step" && board->session) board->session->answering = false;
      return absl::OkStatus();
    };
    board->ops.clear();
  });
  auto started = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board->uid, {}, library.digits.id, "test", done);
  });
  ASSERT_TRUE(started.ok()) << started.status();
  ASSERT_TRUE(
      rig.wait_until([&] { return rig.on_links([&] { return board->ops["eval_step"] == 1; }); }));
  const auto cancel = [&](const Uuid& id) {
    return rig.ask<model::Job>(
        [&](Done<model::Job> done) { rig.fleet().cancel_evaluation(rig.ctx(), id, done); });
  };
  const auto cancelled = cancel(started->id);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->id, started->id);
  rig.on_links([&] {
    board->before = {};
    board->session->answering = true;
  });
  ASSERT_TRUE(rig.wait_until([&] {
    return job(started->id).state == model::Job::State::kCancelled;
  })) << job(started->id).message;
  EXPECT_EQ(rig.on_links([&] { return board->ops["eval_step"]; }), 1);
  EXPECT_TRUE(job(started->id).result_key.empty());
  EXPECT_EQ(reason_of(cancel(started->id).status()), "JOB_ENDED");
  EXPECT_EQ(cancel(new_uuid()).status().code(), absl::StatusCode::kNotFound);
  // The board is free again.
  auto again = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board->uid, {}, library.digits.id, "test", done);
  });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(
      rig.wait_until([&] { return job(again->id).state == model::Job::State::kSucceeded; }));
}

TEST_F(ControlTest, AnEvaluationCutByARestartHasFailed) {
  model::Job stale;
  stale.id = new_uuid();
  stale.kind = model::Job::Kind::kEvaluate;
  stale.state = model::Job::State::kRunning;
  store::Batch batch;
  batch.changes.push_back(store::PutJob{stale});
  library.commit(std::move(batch));
  Rig rig(library);
  EXPECT_EQ(job(stale.id).state, model::Job::State::kFailed);
  EXPECT_EQ(job(stale.id).reason.code, "INTERRUPTED");
}

TEST_F(ControlTest, ResetIsACommandThatIsSettled) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  auto done = rig.ask<bool>(
      [&](Done<bool> d) { rig.fleet().reset_board(rig.ctx(), board->uid, std::move(d)); });
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_TRUE(rig.connect(1, board));
  const BoardUid uid = board->uid;
  EXPECT_TRUE(rig.wait_until([&] {
    auto open =
        library.control.call_sync([uid](store::ControlStore& s) { return s.open_commands(uid); });
    return open.ok() && open->empty();
  }));
}

}  // namespace
}  // namespace odt::test

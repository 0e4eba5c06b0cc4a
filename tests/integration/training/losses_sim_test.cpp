#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "compiler/plan.h"
#include "image_builder.h"
#include "sim_rig.h"
#include "training/ram_fit.h"

// A regression on real firmware: the same end whatever keeps its samples and its best weights.
namespace odt::test {
namespace {

using model::RunState;

constexpr std::uint32_t kInputs = 8, kHidden = 6, kTargets = 2;

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Of 300 / 60 / 50 samples: a sum and a difference of int8 inputs.
class LossDir : public DataDir {
 public:
  LossDir() {
    SystemClock clock;
    auto stores = store::open_stores(path(), clock);
    if (!stores.ok()) throw std::runtime_error(stores.status().ToString());
    const std::string image = text_of(odt::testing::build_image(regression()));
    sums.hash = *stores->blobs->put(image);
    sums.name = "sums";
    sums.image_bytes = image.size();
    sums.n_classes = kTargets;
    sums.outputs = {model::Task::kRegress, kTargets, {0}, {2}};
    sums.input_shape = {kInputs};
    sums.trainable_layers = 2;
    const auto table = compiler::plan_table(image, "sums.odtm");
    if (!table.ok()) throw std::runtime_error(table.status().ToString());
    sums.ram = *table;
    data.id = new_uuid();
    data.name = "sums";
    data.shape = {kInputs};
    data.outputs = kTargets;
    data.train = 300;
    data.heldout = 60;
    data.test = 50;
    model::DerivedSamples samples;
    samples.model_hash = sums.hash;
    samples.outputs = sums.outputs;
    samples.train = *stores->blobs->put(draw(data.train));
    samples.heldout = *stores->blobs->put(draw(data.heldout));
    samples.test = *stores->blobs->put(draw(data.test));
    samples.sample_set_hash = sha256(samples.train.str() + samples.heldout.str());
    derived[data.id] = samples;
    store::Batch batch;
    batch.changes.push_back(store::PutModel{sums});
    batch.changes.push_back(store::PutDataset{data});
    if (!stores->control->commit(std::move(batch)).ok()) throw std::runtime_error("store");
  }
  model::Model sums;
  model::Dataset data;

 private:
  int pick(int lo, int hi) { return lo + static_cast<int>(random_() % unsigned(hi - lo + 1)); }
  odt::testing::LayerSpec dense(std::uint32_t in, std::uint32_t out, bool relu) {
    odt::testing::LayerSpec l;
    l.relu = relu;
    l.trainable = true;
    l.outputs = out;
    l.clip_lo = relu ? 0 : -128;
    l.clip_hi = relu ? 255 : 127;
    for (std::uint32_t i = 0; i < in * out; ++i)
      l.weights.push_back(static_cast<std::int8_t>(pick(-40, 40)));
    l.offsets.assign(out, 32);
    l.k.assign(out, 6);
    return l;
  }
  odt::testing::NetSpec regression() {
    odt::testing::NetSpec spec;
    spec.input_dims = {kInputs};
    spec.layers = {dense(kInputs, kHidden, true), dense(kHidden, kTargets, false)};
    spec.n_classes = kTargets;
    spec.task = 1;
    return spec;
  }
  std::string draw(std::uint32_t n) {
    std::vector<std::int8_t> targets;
    std::vector<std::uint8_t> values;
    for (std::uint32_t s = 0; s < n; ++s) {
      int x[kInputs];
      for (int& v : x) {
        v = pick(-100, 100);
        values.push_back(static_cast<std::uint8_t>(v));
      }
      targets.push_back(static_cast<std::int8_t>((x[0] + x[1]) / 2));
      targets.push_back(static_cast<std::int8_t>((x[2] - x[3]) / 2));
    }
    return text_of(
        odt::testing::build_samples(odt::testing::DType::kS8, kInputs, n, 1, targets, values));
  }
  std::mt19937 random_{7};
};

class LossesSimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sim_board_binary().empty()) GTEST_SKIP() << "odt-sim-board is not built";
  }
  model::RunSpec spec(const BoardUid& uid, bool streamed) {
    model::RunSpec s;
    s.board_uid = uid;
    s.model_hash = dir.sums.hash;
    s.dataset_id = dir.data.id;
    s.hyper.policy = model::Policy::kFixed;
    s.hyper.epochs = 6;
    s.hyper.k = 8;
    s.hyper.batch = 8;
    s.hyper.mu_weight = {2};
    s.hyper.streamed = streamed;
    return s;
  }
  // What a placement needs, to the byte.
  std::uint64_t need(bool streamed, bool host) {
    const training::SampleCounts counts{dir.data.train, dir.data.heldout, false, false, true};
    training::Placement place{8, 8, streamed};
    place.best_on_host = host;
    return training::ram_need(dir.sums, counts, place).total();
  }
  model::Run finished(SimRig& rig, const model::RunSpec& s) {
    auto run = rig.create(s);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return {};
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    return rig.run(run->id);
  }
  LossDir dir;
  std::uint16_t port = free_port();
};

TEST_F(LossesSimTest, EndInTheSameStateWhereverSamplesAndBestAre) {
  SimRig rig(dir, port);
  std::uint8_t number = 1;
  Hash expected;
  for (const bool host : {false, true})
    for (const bool streamed : {false, true}) {
      SCOPED_TRACE(std::string(streamed ? "streamed" : "resident") + (host ? ", host" : ""));
      SimBoard board(number++, port, {"--ram", std::to_string(need(streamed, host))});
      ASSERT_TRUE(rig.wait_online(board.uid));
      auto asked = spec(board.uid, streamed);
      asked.hyper.best_on_host = host;
      const auto end = finished(rig, asked);
      const auto epochs = rig.epochs(end.id);
      ASSERT_EQ(epochs.size(), 6u);
      std::int64_t best = end.heldout_start_loss.sum;
      for (const auto& e : epochs) {
        EXPECT_EQ(e.heldout_loss.count, 60u);
        EXPECT_EQ(e.loss.count, 300u);
        best = std::min(best, e.heldout_loss.sum);
      }
      EXPECT_EQ(end.heldout_best_loss.sum, best);
      EXPECT_LT(3 * best, end.heldout_start_loss.sum) << "not learnt";
      if (expected.is_zero()) expected = end.final_state_hash;
      EXPECT_EQ(end.final_state_hash, expected);
    }
}

TEST_F(LossesSimTest, APowerCycleChangesNothing) {
  Hash ends[2];
  for (const bool disturbed : {false, true}) {
    SimRig rig(dir, port);
    SimBoard board(disturbed ? 2 : 1, port, {"--step-delay-ms", "4"});
    ASSERT_TRUE(rig.wait_online(board.uid));
    auto run = rig.create(spec(board.uid, false));
    ASSERT_TRUE(run.ok()) << run.status();
    if (disturbed) {
      ASSERT_TRUE(rig.wait_until([&] { return rig.run(run->id).epochs_done >= 2; }));
      board.kill();
      board.start();
    }
    ASSERT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    EXPECT_EQ(rig.run(run->id).attempt, disturbed ? 2u : 1u);
    ends[disturbed] = rig.run(run->id).final_state_hash;
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST_F(LossesSimTest, ScoresAreThoseOfTheSamples) {
  SimRig rig(dir, port);
  SimBoard board(1, port);
  ASSERT_TRUE(rig.wait_online(board.uid));
  const auto end = finished(rig, spec(board.uid, false));
  auto job = rig.ask<model::Job>([&](Done<model::Job> done) {
    rig.fleet().evaluate(rig.ctx(), board.uid, Hash{}, dir.data.id, "heldout", std::move(done));
  });
  ASSERT_TRUE(job.ok()) << job.status();
  const auto stored = [&] {
    return *rig.control().call_sync([&](store::ControlStore& s) { return s.job(job->id); });
  };
  ASSERT_TRUE(rig.wait_until([&] { return stored().state == model::Job::State::kSucceeded; }))
      << stored().message;
  const auto key = stored().result_key;
  const Uuid id = *Uuid::from_bytes(std::string(key.begin(), key.end()));
  const auto e =
      *rig.control().call_sync([id](store::ControlStore& s) { return s.evaluation(id); });
  EXPECT_EQ(e.loss.sum, end.heldout_best_loss.sum) << "the board does not hold the best";
  EXPECT_EQ(e.loss.kind, model::LossKind::kMse);
  EXPECT_EQ(e.outputs, dir.sums.outputs);
  EXPECT_TRUE(e.confusion.empty());
  auto scores = rig.blob(e.scores.blob);
  ASSERT_EQ(scores.size(), 60u * 8);
  std::vector<std::uint64_t> each(60);
  std::memcpy(each.data(), scores.data(), scores.size());
  std::int64_t sum = 0;
  for (const auto score : each) sum += static_cast<std::int64_t>(score);
  EXPECT_EQ(sum, e.loss.sum);
  EXPECT_EQ(e.scores.max, *std::max_element(each.begin(), each.end()));

  const auto inferred = rig.ask<model::Inference>([&](Done<model::Inference> done) {
    rig.fleet().infer(rig.ctx(), board.uid, dir.data.id, "heldout", 58, 5, std::move(done));
  });
  ASSERT_TRUE(inferred.ok()) << inferred.status();
  EXPECT_EQ(inferred->there, 60u);
  ASSERT_EQ(inferred->samples.size(), 2u) << "the last two";
  for (const auto& sample : inferred->samples) {
    std::uint64_t score = 0;
    for (std::size_t i = 0; i < kTargets; ++i) {
      const int d = sample.outputs.at(i) - sample.wanted.at(i);
      score += static_cast<std::uint64_t>(d * d);
    }
    EXPECT_EQ(score, each[sample.index]);
  }
  const auto beyond = rig.ask<model::Inference>([&](Done<model::Inference> done) {
    rig.fleet().infer(rig.ctx(), board.uid, dir.data.id, "test", 50, 1, std::move(done));
  });
  EXPECT_EQ(beyond.status().message(), "first is 50; split test has 50 samples, from 0");
}

}  // namespace
}  // namespace odt::test

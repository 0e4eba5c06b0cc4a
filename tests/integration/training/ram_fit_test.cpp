#include "training/ram_fit.h"

#include <gtest/gtest.h>

#include "compiler/plan.h"
#include "sim_rig.h"

// What creation accepts also starts and ends; what it refuses could not have been started.
namespace odt::test {
namespace {

using model::RunState;

struct Case {
  const char* name;
  std::uint32_t k, batch;
  bool streamed, evaluate, guard, split;
  bool tight;         // eight bytes less are too few for the firmware as well
  bool host = false;  // the guard's best stays with the host
};

class RamFitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sim_board_binary().empty()) GTEST_SKIP() << "odt-sim-board is not built";
    const auto table = compiler::plan_table(golden("image.odtm"), "image.odtm");
    ASSERT_TRUE(table.ok()) << table.status();
    planned = dir.net;
    planned.ram = *table;
  }
  // The same image, with its figures known or not: without them the board alone decides.
  void know(SimRig& rig, bool figures) {
    store::Batch batch;
    model::Model m = planned;
    if (!figures) m.ram = {};
    m.meta.etag = 0;
    batch.changes.push_back(store::PutModel{m});
    const auto done = rig.control().call_sync(
        [&batch](store::ControlStore& s) { return s.commit(std::move(batch)); });
    ASSERT_TRUE(done.ok()) << done.status();
  }
  model::RunSpec spec_of(const Case& c, const BoardUid& uid) {
    model::RunSpec spec;
    spec.board_uid = uid;
    spec.model_hash = dir.net.hash;
    spec.dataset_id = c.split ? dir.split.id : dir.whole.id;
    spec.evaluate = c.evaluate;
    spec.hyper.policy = model::Policy::kFixed;
    spec.hyper.epochs = 1;
    spec.hyper.k = c.k;
    spec.hyper.batch = c.batch;
    spec.hyper.streamed = c.streamed;
    spec.hyper.guard = c.guard;
    spec.hyper.best_on_host = c.host;
    return spec;
  }
  DataDir dir;
  model::Model planned;
  std::uint16_t port = free_port();
};

const Case kCases[] = {
    {"resident k 8", 8, 8, false, false, true, true, true},
    {"resident k 15, evaluated", 15, 32, false, true, true, true, false},
    {"resident, no held-out samples", 15, 16, false, false, true, false, true},
    {"streamed k 8", 8, 8, true, false, true, true, true},
    {"streamed k 15, evaluated", 15, 32, true, true, true, true, true},
    {"streamed, batch of 3", 8, 3, true, false, false, true, false},
    {"streamed, batch of 1", 15, 1, true, false, true, false, true},
    {"resident, best on the host", 15, 8, false, false, true, true, true, true},
    {"streamed, best on the host", 8, 8, true, true, true, true, true, true},
};

TEST_F(RamFitTest, AcceptedRunsEndAndRefusedOnesCouldNotStart) {
  SimRig rig(dir, port);
  std::uint8_t number = 1;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const model::Dataset& data = c.split ? dir.split : dir.whole;
    const training::SampleCounts counts{data.train, data.heldout, c.evaluate, false, c.guard};
    training::Placement place{c.k, c.batch, c.streamed};
    place.best_on_host = c.host;
    const auto need =
        static_cast<std::uint32_t>(training::ram_need(planned, counts, place).total());
    know(rig, true);
    SimBoard fits(number++, port, {"--ram", std::to_string(need)});
    SimBoard short_of(number++, port, {"--ram", std::to_string(need - 8)});
    ASSERT_TRUE(rig.wait_online(fits.uid));
    ASSERT_TRUE(rig.wait_online(short_of.uid));
    auto run = rig.create(spec_of(c, fits.uid));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
    const auto refused = rig.create(spec_of(c, short_of.uid));
    ASSERT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
    EXPECT_NE(refused.status().message().find("needs " + std::to_string(need) + " bytes"),
              std::string::npos)
        << refused.status();
    EXPECT_NE(refused.status().message().find("has " + std::to_string(need - 8)), std::string::npos)
        << refused.status();
    if (!c.tight) continue;
    know(rig, false);
    run = rig.create(spec_of(c, short_of.uid));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kFailed));
    EXPECT_EQ(rig.run(run->id).reason.code, "BOARD_RAM") << rig.run(run->id).reason.text;
  }
}

TEST_F(RamFitTest, AStartSnapshotNeedsItsOwnRoom) {
  SimRig rig(dir, port);
  know(rig, true);
  SimBoard roomy(1, port);
  ASSERT_TRUE(rig.wait_online(roomy.uid));
  const Case c{"", 15, 8, false, true, true, true, false};
  auto first = rig.create(spec_of(c, roomy.uid));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(rig.wait_state(first->id, RunState::kSucceeded)) << rig.run(first->id).reason.text;
  std::uint8_t number = 2;
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed);
    const training::SampleCounts counts{dir.split.train, dir.split.heldout, true, true, true};
    const auto need = training::ram_need(planned, counts, {15, 8, streamed}).total();
    SimBoard fits(number++, port, {"--ram", std::to_string(need)});
    ASSERT_TRUE(rig.wait_online(fits.uid));
    auto spec = spec_of(c, fits.uid);
    spec.hyper.streamed = streamed;
    spec.start_snapshot = rig.run(first->id).final_weights_hash;
    auto run = rig.create(spec);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig.wait_state(run->id, RunState::kSucceeded)) << rig.run(run->id).reason.text;
  }
}

}  // namespace
}  // namespace odt::test

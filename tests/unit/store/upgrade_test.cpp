// Databases that earlier releases left behind open, with everything in them. See
// make_store_fixture.cpp.
#include "store/sqlite_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

class UpgradeTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const char* name : {"control.db", "telemetry.db"})
      fs::copy_file(fs::path(ODT_FIXTURES) / GetParam() / name, dir_.file(name));
  }
  TempDir dir_;
  FakeClock clock_;
};

INSTANTIATE_TEST_SUITE_P(Releases, UpgradeTest, testing::Values("v0.1"),
                         [](const auto&) { return std::string("v0_1"); });

TEST_P(UpgradeTest, ControlDatabaseKeepsEverything) {
  const auto opened = SqliteControlStore::open(dir_.file("control.db"), clock_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  SqliteControlStore& s = **opened;
  const auto runs = *s.active_runs();
  ASSERT_EQ(runs.size(), 1u);
  const model::Run& run = runs[0];
  EXPECT_EQ(run.state, model::RunState::kRunning);
  EXPECT_EQ(run.spec.hyper.mu_weight, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(run.spec.hyper.mu_offset, -8);
  // What that release did not know has its neutral value, and can be written now.
  EXPECT_TRUE(run.spec.hyper.layer_k.empty());
  EXPECT_EQ(run.spec.hyper.apt, model::AptMode::kUnspecified);
  EXPECT_FALSE(run.spec.hyper.apt_k_max.has_value());
  EXPECT_FALSE(run.spec.hyper.k_varies());
  EXPECT_TRUE(run.spec.hyper.lr_m.empty());
  EXPECT_TRUE(run.steering.empty());
  EXPECT_EQ((*s.epochs(run.id))[0].layers[0].u_q8, 11u);
  EXPECT_EQ((*s.epochs(run.id))[0].layers[0].resident_bytes, 0u);
  model::Run steered = run;
  steered.effective.layer_k = {8, 12};
  steered.effective.apt = model::AptMode::kQuarters;
  steered.effective.apt_offsets = false;
  steered.effective.lr_m = {1, 2, 3};
  steered.steering = {{100, 1, 12}, {200, 0, 2}};
  ASSERT_TRUE(s.commit(batch_of(UpdateRun{steered})).ok());
  const auto again = *s.run(run.id);
  EXPECT_EQ(again.effective, steered.effective);
  EXPECT_EQ(again.steering, steered.steering);
  EXPECT_EQ(s.run_events(run.id)->size(), 3u);
  ASSERT_EQ(s.epochs(run.id)->size(), 2u);
  EXPECT_EQ((*s.epochs(run.id))[1].loss.sum, 123456789012);
  EXPECT_EQ(s.dataset(run.spec.dataset_id)->class_names[0], "shirt");
  EXPECT_EQ(s.board(uid_of(1))->boot_id, 0xFEDCBA9876543210);
  EXPECT_TRUE(absl::IsNotFound(s.board(uid_of(2)).status()));
  EXPECT_EQ(s.port("/dev/ttyACM1")->baud, 115200u);
  EXPECT_EQ(s.model(model_of(1).hash)->layers.size(), 2u);
  EXPECT_EQ(s.snapshot(snapshot_of(1).hash)->aliases, (std::vector<std::string>{"best", "golden"}));
  EXPECT_EQ(s.jobs({})->items.size(), 1u);
  EXPECT_EQ(s.open_commands(uid_of(1))->size(), 1u);
  EXPECT_EQ(*s.setting("key"), "value");
  const auto events = *s.events_from(1, 1000);
  EXPECT_EQ(static_cast<std::int64_t>(events.size()) + 1, s.next_seq());
  EXPECT_EQ(s.next_seq(), 20);
  EXPECT_TRUE(s.commit(batch_of(PutBoard{board_of(3)})).ok());
}

TEST_P(UpgradeTest, TelemetryDatabaseKeepsEverything) {
  const auto control = SqliteControlStore::open(dir_.file("control.db"), clock_);
  ASSERT_TRUE(control.ok());
  const Uuid run = (*control)->active_runs()->front().id;
  const auto opened = SqliteTelemetryStore::open(dir_.file("telemetry.db"), 1 << 30);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto frames = *(*opened)->read({run});
  ASSERT_EQ(frames.total, 50u);
  EXPECT_EQ(frames.frames[9].loss, frame_of(run, 10).loss);
  EXPECT_EQ(frames.frames[9].layers, frame_of(run, 10).layers);
  EXPECT_EQ(frames.frames[49].gap, 4u);
}

}  // namespace
}  // namespace odt::store

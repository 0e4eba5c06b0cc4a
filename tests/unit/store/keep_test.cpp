// A full disk, thinning by room, backup and restore.
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "store/backup.h"
#include "store/disk_guard.h"
#include "store/durable_file.h"
#include "store/fs_blob_store.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;
using model::TelemetryFrame;

TelemetryFrame wild_frame(const Uuid& run, std::uint32_t step) {
  TelemetryFrame f = frame_of(run, step);
  f.loss.sum = static_cast<std::int64_t>(step) * 2654435761 % 1'000'000'007;
  f.time_us += static_cast<std::int64_t>(step) * 7919 % 100'003;
  f.layers.clear();
  for (std::uint32_t i = 0; i < 8; ++i)
    f.layers.push_back({static_cast<std::uint8_t>(step * (i + 3) * 2654435761u >> 27),
                        static_cast<std::int8_t>(step * (i + 7) * 40503u >> 9 & 7), 8});
  return f;
}

// Both stores on their threads, in a folder.
class KeepTest : public testing::Test {
 protected:
  void open(const std::string& folder, std::uint64_t quota) {
    auto control_store = SqliteControlStore::open(folder + "/control.db", clock_);
    ASSERT_TRUE(control_store.ok()) << control_store.status();
    control_ = std::make_unique<ControlThread>(std::move(*control_store));
    auto telemetry_store = SqliteTelemetryStore::open(folder + "/telemetry.db", quota);
    ASSERT_TRUE(telemetry_store.ok()) << telemetry_store.status();
    telemetry_ = std::make_unique<TelemetryThread>(std::move(*telemetry_store));
    auto blobs = FsBlobStore::open(folder + "/blobs");
    ASSERT_TRUE(blobs.ok());
    blobs_ = std::move(*blobs);
  }
  void close() {
    if (telemetry_) telemetry_->stop();
    if (control_) control_->stop();
    telemetry_.reset();
    control_.reset();
    blobs_.reset();
  }
  void TearDown() override { close(); }
  void append(const Uuid& run, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t step = first; step <= last; ++step) {
      telemetry_->append(wild_frame(run, step));
      // No more than the queue takes, however slow the machine is.
      if (step % 10'000 == 0) {
        EXPECT_TRUE(telemetry_->call_sync([](TelemetryStore& s) { return s.room(); }).ok());
      }
    }
  }
  std::uint32_t stored(const Uuid& run) {
    return telemetry_->call_sync([run](TelemetryStore& s) { return s.read({run}); })->total;
  }
  model::Run finished_run(int n, bool pinned) {
    model::Run run = run_of(n);
    run.pinned = pinned;
    run.end_time_us = 1000 + n;
    EXPECT_TRUE(control_
                    ->call_sync([run](ControlStore& s) {
                      return s.commit(batch_of(CreateRun{run, "ann"})).status();
                    })
                    .ok());
    EXPECT_TRUE(
        control_
            ->call_sync([run](ControlStore& s) {
              return s.commit(batch_of(transition_of(run, model::RunState::kCancelled))).status();
            })
            .ok());
    return run;
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<ControlThread> control_;
  std::unique_ptr<TelemetryThread> telemetry_;
  std::unique_ptr<BlobStore> blobs_;
};

TEST_F(KeepTest, OldestUnpinnedRunsGiveTheirRawRecordsWhenRoomIsShort) {
  open(dir_.path(), 2 << 20);
  const model::Run pinned = finished_run(1, true), old = finished_run(2, false),
                   young = finished_run(3, false);
  const Uuid live = new_uuid();
  for (const Uuid& id : {pinned.id, old.id, young.id, live}) append(id, 1, 16'500);
  const auto room = telemetry_->call_sync([](TelemetryStore& s) { return s.room(); });
  ASSERT_GT(room->used_bytes * 100, room->quota_bytes * 80) << "the test needs more frames";
  DiskGuard guard(dir_.path(), *control_, *telemetry_, *blobs_, clock_, {0});
  guard.check();
  EXPECT_NE(guard.report().text, "");
  append(live, 16'501, 23'000);
  guard.check();
  EXPECT_EQ(stored(pinned.id), 16'500u);
  EXPECT_EQ(stored(old.id), 0u);
  EXPECT_EQ(stored(live), 23'000u);
  const auto use = telemetry_->call_sync([&](TelemetryStore& s) { return s.use(old.id); });
  EXPECT_EQ(use->thinned_frames, 16'500u);
  const auto warned = control_->call_sync([](ControlStore& s) { return s.events_from(1, 1000); });
  int warnings = 0;
  for (const auto& event : *warned) warnings += std::holds_alternative<model::Warning>(event.body);
  EXPECT_GE(warnings, 1);
}

// Counts how often runs are asked for.
class CountingTelemetry final : public MemoryTelemetryStore {
 public:
  using MemoryTelemetryStore::MemoryTelemetryStore;
  Result<Use> use(const Uuid& run) override {
    ++asked;
    return MemoryTelemetryStore::use(run);
  }
  int asked = 0;
};

TEST_F(KeepTest, ThinningThatFoundTooLittleIsTriedAgainLater) {
  open(dir_.path(), 1 << 30);
  auto store = std::make_unique<CountingTelemetry>(100);
  CountingTelemetry& counting = *store;
  telemetry_ = std::make_unique<TelemetryThread>(std::move(store));
  const model::Run old = finished_run(1, false);
  append(old.id, 1, 5);
  const Uuid live = new_uuid();
  append(live, 1, 92);
  ASSERT_EQ(stored(live), 92u);
  DiskGuard guard(dir_.path(), *control_, *telemetry_, *blobs_, clock_, {0});
  guard.check();
  EXPECT_EQ(stored(old.id), 0u);
  const int once = counting.asked;
  EXPECT_GT(once, 0);
  for (int i = 0; i < 20; ++i) {
    clock_.time_us += 2'000'000;
    guard.check();
  }
  EXPECT_EQ(counting.asked, once);  // 40 s
  clock_.time_us += 20'000'000;
  guard.check();
  EXPECT_EQ(counting.asked, 2 * once);
  close();
}

// Erasing fails for one run; tells which runs were in the trash when theirs was erased.
class StubbornTelemetry final : public MemoryTelemetryStore {
 public:
  explicit StubbornTelemetry(ControlThread& control) : control_(control) {}
  Result<std::uint64_t> erase(const Uuid& run) override {
    const auto item =
        control_.call_sync([run](ControlStore& s) { return s.trash_item("run", run.str()); });
    if (item.ok()) erased_in_trash.insert(run);
    if (run == refused) return absl::ResourceExhaustedError("no room to erase");
    return MemoryTelemetryStore::erase(run);
  }
  Uuid refused;
  std::set<Uuid> erased_in_trash;

 private:
  ControlThread& control_;
};

TEST_F(KeepTest, RunLeavesTheTrashAfterItsTelemetryAndAloneWhereThatFails) {
  open(dir_.path(), 1 << 30);
  auto store = std::make_unique<StubbornTelemetry>(*control_);
  StubbornTelemetry& stubborn = *store;
  telemetry_ = std::make_unique<TelemetryThread>(std::move(store));
  const model::Run a = finished_run(1, false), b = finished_run(2, false);
  stubborn.refused = a.id;
  for (const model::Run& run : {a, b}) {
    append(run.id, 1, 20);
    ASSERT_TRUE(control_
                    ->call_sync([&](ControlStore& s) {
                      return s.commit(batch_of(Trash{"run", run.id.str()})).status();
                    })
                    .ok());
  }
  const auto left = [&] {
    return control_->call_sync([](ControlStore& s) { return s.trash({}); })->items;
  };
  DiskGuard guard(dir_.path(), *control_, *telemetry_, *blobs_, clock_, {0});
  clock_.time_us += kTrashKeptUs - 1;
  guard.check();
  EXPECT_EQ(left().size(), 2u);
  clock_.time_us += 3600LL * 1'000'000;
  guard.check();
  EXPECT_EQ(stubborn.erased_in_trash, (std::set<Uuid>{a.id, b.id}));
  ASSERT_EQ(left().size(), 1u);
  EXPECT_EQ(left()[0].key, a.id.str());
  EXPECT_EQ(stored(a.id), 20u);
  EXPECT_EQ(stored(b.id), 0u);
  // With its time to come again it goes too.
  stubborn.refused = {};
  clock_.time_us += 3600LL * 1'000'000;
  guard.check();
  EXPECT_TRUE(left().empty());
  EXPECT_EQ(stored(a.id), 0u);
  close();
}

TEST_F(KeepTest, FullDiskIsSaidAndNothingIsLostWhenRoomComesBack) {
  const std::string disk = dir_.file("disk");
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=24m") != 0)
    GTEST_SKIP() << "mounting a small file system needs root";
  struct Unmount {
    std::string path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } unmount{disk};
  open(disk, 1 << 30);
  DiskGuard guard(disk, *control_, *telemetry_, *blobs_, clock_, {2 << 20});
  // Something else takes the disk.
  std::ofstream filler(disk + "/filler", std::ios::binary);
  const std::string block(64 << 10, 'x');
  while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {}
  filler.close();
  const Uuid run = new_uuid();
  append(run, 1, 3000);
  for (int i = 0; i < 200 && !telemetry_->refused().full_now; ++i) ::usleep(20'000);
  EXPECT_TRUE(telemetry_->refused().full_now);
  guard.check();
  EXPECT_EQ(guard.report().state, DiskState::kFull);
  EXPECT_NE(guard.report().text.find("is full"), std::string::npos);
  fs::remove(disk + "/filler");
  for (int i = 0; i < 500 && telemetry_->refused().full_now; ++i) ::usleep(20'000);
  guard.check();
  EXPECT_EQ(stored(run), 3000u);
  EXPECT_EQ(telemetry_->refused().frames, 0u);
  EXPECT_NE(guard.report().state, DiskState::kFull);
  close();
}

TEST_F(KeepTest, BackupIsWholeAndRestoresIntoANewEpoch) {
  open(dir_.path(), 1 << 30);
  const Hash blob = *blobs_->put("weights"), other = *blobs_->put(std::string(100'000, 'b'));
  const model::Run run = finished_run(1, false);
  append(run.id, 1, 700);
  EXPECT_EQ(stored(run.id), 700u);
  const std::uint64_t epoch = control_->identity().store_epoch;
  const std::string file = dir_.file("backup.tar");
  {
    auto reader = BackupReader::open(dir_.path());
    ASSERT_TRUE(reader.ok()) << reader.status();
    append(run.id, 701, 900);  // goes on meanwhile
    std::ofstream out(file, std::ios::binary);
    std::uint64_t bytes = 0;
    while (true) {
      const auto part = (*reader)->read(10'007);
      ASSERT_TRUE(part.ok()) << part.status();
      if (part->empty()) break;
      bytes += part->size();
      out << *part;
    }
    EXPECT_EQ(bytes, (*reader)->total_bytes());
  }
  close();
  const std::string target = dir_.file("restored");
  const auto done = restore_backup(file, target);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->blobs, 2u);
  EXPECT_TRUE(absl::IsAlreadyExists(restore_backup(file, target).status()));
  open(target, 1 << 30);
  EXPECT_NE(control_->identity().store_epoch, epoch);
  EXPECT_EQ(stored(run.id), 700u);
  EXPECT_EQ(*blobs_->get(blob), "weights");
  EXPECT_TRUE(blobs_->has(other));
  EXPECT_TRUE(control_->call_sync([&](ControlStore& s) { return s.run(run.id); }).ok());
  close();
  // Damage is found, and leaves nothing behind.
  auto content = read_file(file);
  ASSERT_TRUE(content.ok());
  for (const std::string& bad : {content->substr(0, content->size() - 2000), [&] {
                                   std::string flipped = *content;
                                   flipped[flipped.rfind("bbbb")] = 'c';
                                   return flipped;
                                 }()}) {
    std::ofstream(dir_.file("bad.tar"), std::ios::binary) << bad;
    const std::string nowhere = dir_.file("nowhere");
    EXPECT_TRUE(absl::IsDataLoss(restore_backup(dir_.file("bad.tar"), nowhere).status()));
    EXPECT_FALSE(fs::exists(nowhere));
    EXPECT_FALSE(fs::exists(nowhere + ".restore-tmp"));
  }
  EXPECT_TRUE(absl::IsNotFound(restore_backup(dir_.file("none"), dir_.file("x")).status()));
}

TEST_F(KeepTest, BackupThatCannotReadABlobFails) {
  open(dir_.path(), 1 << 30);
  const Hash blob = *blobs_->put("weights"), freed = *blobs_->put("freed while it reads");
  const auto path = blobs_->path(blob), gone = blobs_->path(freed);
  auto reader = BackupReader::open(dir_.path());
  ASSERT_TRUE(reader.ok());
  fs::remove(*gone);
  const auto all = (*reader)->read(std::size_t{1} << 30);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_NE(all->find("weights"), std::string::npos);
  reader->reset();
  fs::remove(*path);
  fs::create_directory(*path);
  const Status folder = BackupReader::open(dir_.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(folder)) << folder;
  EXPECT_NE(folder.message().find(*path), std::string::npos) << folder;
  fs::remove_all(dir_.file("blobs"));
  std::ofstream(dir_.file("blobs")) << "no folder";
  const Status walk = BackupReader::open(dir_.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(walk)) << walk;
  EXPECT_NE(walk.message().find("blobs"), std::string::npos) << walk;
  for (const auto& entry : fs::directory_iterator(dir_.path()))
    EXPECT_EQ(entry.path().filename().string().find("backup.tmp-"), std::string::npos);
}

}  // namespace
}  // namespace odt::store

#include "store/open.h"

#include <absl/strings/match.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "store_fixture.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

TEST(OpenStores, MakesTheDirectoryAndAllStores) {
  TempDir dir;
  FakeClock clock;
  const std::string data = dir.file("a/b");
  const auto stores = open_stores(data, clock);
  ASSERT_TRUE(stores.ok()) << stores.status();
  EXPECT_TRUE(stores->warnings.empty());
  EXPECT_TRUE(fs::exists(data + "/control.db"));
  EXPECT_TRUE(fs::exists(data + "/telemetry.db"));
  EXPECT_TRUE(fs::is_directory(data + "/blobs"));
  EXPECT_EQ(stores->identity.store_epoch, stores->control->identity().store_epoch);
}

TEST(OpenStores, SecondProcessGetsOneClearError) {
  TempDir dir;
  FakeClock clock;
  auto stores = open_stores(dir.path(), clock);
  ASSERT_TRUE(stores.ok());
  const Status second = open_stores(dir.path(), clock).status();  // flock is per open file
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  const std::string text(second.message());
  EXPECT_TRUE(absl::StrContains(text, dir.path())) << text;
  EXPECT_TRUE(absl::StrContains(text, "pid " + std::to_string(::getpid()))) << text;
  *stores = OpenedStores();
  EXPECT_TRUE(open_stores(dir.path(), clock).ok());
}

TEST(OpenStores, KilledProcessLeavesNoLock) {
  TempDir dir;
  FakeClock clock;
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto stores = open_stores(dir.path(), clock);
    const char ok = stores.ok() ? 1 : 0;
    if (::write(fds[1], &ok, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char ok = 0;
  ASSERT_EQ(::read(fds[0], &ok, 1), 1);
  EXPECT_EQ(ok, 1);
  EXPECT_FALSE(open_stores(dir.path(), clock).ok());
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(open_stores(dir.path(), clock).ok());
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(OpenStores, DamagedTelemetryIsSetAsideWithAWarning) {
  TempDir dir;
  FakeClock clock;
  ASSERT_TRUE(open_stores(dir.path(), clock).ok());
  std::ofstream(dir.file("telemetry.db"), std::ios::binary | std::ios::trunc)
      << std::string(9000, 'x');
  const auto stores = open_stores(dir.path(), clock);
  ASSERT_TRUE(stores.ok()) << stores.status();
  ASSERT_EQ(stores->warnings.size(), 1u);
  EXPECT_EQ(stores->warnings[0].reason.code, "TELEMETRY_DAMAGED");
  EXPECT_TRUE(fs::exists(dir.file("telemetry.db.damaged-" + std::to_string(clock.time_us))));
  EXPECT_TRUE(stores->telemetry->append({frame_of(new_uuid(), 1)}).ok());
}

TEST(OpenStores, StartsWithoutATelemetryFile) {
  TempDir dir;
  FakeClock clock;
  fs::create_directory(dir.file("telemetry.db"));  // cannot be opened as a file
  const auto stores = open_stores(dir.path(), clock);
  ASSERT_TRUE(stores.ok()) << stores.status();
  ASSERT_EQ(stores->warnings.size(), 1u);
  EXPECT_EQ(stores->warnings[0].reason.code, "TELEMETRY_IN_MEMORY");
  EXPECT_TRUE(stores->telemetry->append({frame_of(new_uuid(), 1)}).ok());
}

TEST(OpenStores, WhatAKilledBackupLeftIsRemoved) {
  TempDir dir;
  FakeClock clock;
  ASSERT_TRUE(open_stores(dir.path(), clock).ok());
  fs::create_directories(dir.file("backup.tmp-0123/x"));
  std::ofstream(dir.file("backup.tmp-0123/control.db")) << "copy";
  std::ofstream(dir.file("mine-backup.tmp-")) << "kept";
  const auto stores = open_stores(dir.path(), clock);
  ASSERT_TRUE(stores.ok()) << stores.status();
  EXPECT_TRUE(stores->warnings.empty());
  EXPECT_FALSE(fs::exists(dir.file("backup.tmp-0123")));
  EXPECT_TRUE(fs::exists(dir.file("mine-backup.tmp-")));
}

// SQLite would begin a new store in it, and all runs and boards would seem never to have been.
TEST(OpenStores, AnEmptiedControlFileIsRefused) {
  TempDir dir;
  FakeClock clock;
  ASSERT_TRUE(open_stores(dir.path(), clock).ok());
  fs::resize_file(dir.file("control.db"), 0);
  fs::remove(dir.file("control.db-wal"));
  const Status status = open_stores(dir.path(), clock).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), "control.db is empty")) << status;
  EXPECT_EQ(fs::file_size(dir.file("control.db")), 0u);
}

// What a first start that was killed leaves behind.
TEST(OpenStores, AnEmptyControlFileInAnUnusedDirectoryIsAStart) {
  TempDir dir;
  FakeClock clock;
  std::ofstream(dir.file("control.db"));
  EXPECT_TRUE(open_stores(dir.path(), clock).ok());
}

TEST(OpenStores, UnusableDirectoryIsNamed) {
  TempDir dir;
  FakeClock clock;
  std::ofstream(dir.file("plain")) << "x";
  const Status status = open_stores(dir.file("plain/data"), clock).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), dir.file("plain/data")));
}

}  // namespace
}  // namespace odt::store

// What only control.db can do: durability, versions, identity, quota.
#include <absl/strings/match.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "store/durable_file.h"
#include "store/migrate.h"
#include "store/open.h"
#include "store/sqlite_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

class SqliteControlTest : public testing::Test {
 protected:
  Result<std::unique_ptr<SqliteControlStore>> open(const ControlOptions& options = {}) {
    return SqliteControlStore::open(path_, clock_, options);
  }
  void exec(const std::string& sql) {
    auto db = SqliteDb::open(path_, "FULL");
    ASSERT_TRUE(db.ok());
    const Status status = (*db)->exec(sql);
    ASSERT_TRUE(status.ok()) << status;
  }

  TempDir dir_;
  FakeClock clock_;
  std::string path_ = dir_.file("control.db");
};

TEST_F(SqliteControlTest, RefusesANewerSchemaWithOneClearError) {
  ASSERT_TRUE(open().ok());
  const int supported = control_migrations().back().number;
  exec("PRAGMA user_version=" + std::to_string(supported + 1));
  const Status status = open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string text(status.message());
  EXPECT_TRUE(absl::StrContains(text, path_)) << text;
  EXPECT_TRUE(absl::StrContains(text, "version " + std::to_string(supported + 1))) << text;
  EXPECT_TRUE(absl::StrContains(text, "up to " + std::to_string(supported))) << text;
  EXPECT_TRUE(absl::StrContains(text, "install the newer odt-fleet")) << text;
}

TEST_F(SqliteControlTest, RefusesARecordLayoutThatIsNewer) {
  (*open())->commit(batch_of(PutBoard{board_of(1)})).status().IgnoreError();
  exec("UPDATE resource SET version=99");
  EXPECT_EQ((*open())->board(uid_of(1)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SqliteControlTest, MigratesFromVersionOneAndKeepsACopy) {
  (*open())->commit(batch_of(PutBoard{board_of(1)})).status().IgnoreError();
  std::vector<Migration> migrations = control_migrations();
  const int next = migrations.back().number + 1;
  migrations.push_back({next, "place", "ALTER TABLE resource ADD COLUMN extra INTEGER DEFAULT 5;"});
  auto db = SqliteDb::open(path_, "FULL");
  ASSERT_TRUE(db.ok());
  ASSERT_TRUE(migrate(**db, migrations).ok());
  EXPECT_EQ(*(*db)->query_int("PRAGMA user_version"), next);
  EXPECT_EQ(*(*db)->query_int("SELECT sum(extra) FROM resource"), 5);
  auto copy = SqliteDb::open(path_ + ".v" + std::to_string(next - 1), "FULL");
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(*(*copy)->query_int("PRAGMA user_version"), next - 1);
  EXPECT_EQ(*(*copy)->query_int("SELECT count(*) FROM resource"), 1);
  EXPECT_FALSE((*copy)->query_int("SELECT extra FROM resource").ok());
}

TEST_F(SqliteControlTest, MigrationThatFailsChangesNothing) {
  (*open())->commit(batch_of(PutBoard{board_of(1)})).status().IgnoreError();
  std::vector<Migration> migrations = control_migrations();
  const int last = migrations.back().number;
  migrations.push_back({last + 1, "good", "CREATE TABLE extra (a);"});
  migrations.push_back({last + 2, "bad", "CREATE TABLE resource (a);"});
  {
    auto db = SqliteDb::open(path_, "FULL");
    EXPECT_FALSE(migrate(**db, migrations).ok());
    EXPECT_EQ(*(*db)->query_int("PRAGMA user_version"), last);
    EXPECT_EQ(*(*db)->query_int("SELECT count(*) FROM sqlite_master WHERE name='extra'"), 0);
  }
  EXPECT_TRUE((*open())->board(uid_of(1)).ok());
}

TEST_F(SqliteControlTest, DamagedFileIsDataLoss) {
  ASSERT_TRUE(open().ok());
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << std::string(8192, 'x');
  const Status status = open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(SqliteControlTest, FullDiskRefusesTheCommitWholeAndGoesOnWithRoom) {
  ControlOptions options;
  options.max_bytes = 512 * 1024;
  auto store = *open(options);
  std::int64_t acknowledged = 0;
  Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) {
    Batch batch = batch_of(PutBoard{board_of(1)});
    batch.changes.push_back(PutSetting{"k" + std::to_string(i), std::string(2000, 'x')});
    const auto events = store->commit(batch);
    status = events.status();
    if (events.ok()) acknowledged = events->back().seq;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), "free disk space"));
  EXPECT_EQ(reason_of(status), "DISK_FULL");
  EXPECT_EQ(store->next_seq(), acknowledged + 1);
  EXPECT_TRUE(store->board(uid_of(1)).ok());
  store.reset();
  store = *open();  // room again
  EXPECT_EQ(store->commit(batch_of(PutBoard{board_of(1)}))->front().seq, acknowledged + 1);
}

// The child commits for ever and writes each acknowledged number to a pipe, until it is killed.
[[noreturn]] void commit_for_ever(const std::string& path, const Clock& clock, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto store = SqliteControlStore::open(path, clock);
  if (!store.ok()) ::_exit(1);
  for (int i = 0;; ++i) {
    Batch batch = batch_of(PutBoard{board_of(i % 50)});
    batch.changes.push_back(PutModel{model_of(i % 50)});
    const auto events = (*store)->commit(std::move(batch));
    if (!events.ok()) ::_exit(2);
    const std::int64_t seq = events->back().seq;
    if (::write(out, &seq, sizeof seq) != sizeof seq) ::_exit(3);
  }
}

TEST_F(SqliteControlTest, KillInMidWriteLosesNothingAcknowledged) {
  std::int64_t last = 0;
  std::uint64_t epoch = 0;
  for (int round = 0; round < 8; ++round) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    const pid_t child = ::fork();
    if (child == 0) commit_for_ever(path_, clock_, fds[1]);
    ::close(fds[1]);
    std::int64_t seq = 0;
    const std::int64_t enough = last + 20 + 14 * round;
    while (seq < enough && ::read(fds[0], &seq, sizeof seq) == sizeof seq) last = seq;
    ::kill(child, SIGKILL);
    while (::read(fds[0], &seq, sizeof seq) == sizeof seq) last = seq;
    ::close(fds[0]);
    int end = 0;
    ASSERT_EQ(::waitpid(child, &end, 0), child);
    ASSERT_TRUE(WIFSIGNALED(end)) << "the child ended by itself: " << end;

    auto store = open();
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_GE((*store)->next_seq(), last + 1);
    EXPECT_EQ((*store)->next_seq() % 2, 1) << "half a batch";
    const auto events = (*store)->events_from(1, 1'000'000);
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(static_cast<std::int64_t>(events->size()), (*store)->next_seq() - 1);
    if (round > 0) {
      EXPECT_EQ((*store)->identity().store_epoch, epoch) << (*store)->identity_warning();
    }
    epoch = (*store)->identity().store_epoch;
    last = (*store)->next_seq() - 1;
  }
}

class IdentityTest : public SqliteControlTest {
 protected:
  Identity reopened(const ControlOptions& options = {}) {
    auto store = open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    warning_ = (*store)->identity_warning();
    (*store)->commit(batch_of(PutBoard{board_of(1)})).status().IgnoreError();
    return (*store)->identity();
  }
  void copy_database(const std::string& from, const std::string& to) {
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(to + suffix);
    std::ofstream(to, std::ios::binary | std::ios::trunc) << *read_file(from);  // the same inode
  }
  std::string warning_;
};

TEST_F(IdentityTest, StaysOverRestarts) {
  const Identity first = reopened();
  EXPECT_NE(first.store_epoch, 0u);
  EXPECT_FALSE(first.gateway_id.is_zero());
  for (int i = 0; i < 3; ++i) {
    const Identity again = reopened();
    EXPECT_EQ(again.store_epoch, first.store_epoch);
    EXPECT_EQ(again.gateway_id, first.gateway_id);
    EXPECT_EQ(warning_, "");
  }
}

TEST_F(IdentityTest, AnotherHostGetsANewEpochOfTheSameGateway) {
  const Identity first = reopened();
  ControlOptions other;
  other.fingerprint = hash_of(1);
  const Identity clone = reopened(other);
  EXPECT_NE(clone.store_epoch, first.store_epoch);
  EXPECT_EQ(clone.gateway_id, first.gateway_id);
  EXPECT_TRUE(absl::StrContains(warning_, "the host is another one")) << warning_;
  EXPECT_EQ(reopened(other).store_epoch, clone.store_epoch);
}

TEST_F(IdentityTest, CopiedFolderGetsANewEpoch) {
  const Identity first = reopened();
  const std::string copy = dir_.file("copy.db");
  fs::copy_file(path_, copy);
  fs::copy_file(path_ + ".host", copy + ".host");
  path_ = copy;
  EXPECT_NE(reopened().store_epoch, first.store_epoch);
  EXPECT_TRUE(absl::StrContains(warning_, "copied or replaced")) << warning_;
}

TEST_F(IdentityTest, BackupOfAnEarlierOpeningGetsANewEpoch) {
  const Identity first = reopened();
  fs::copy_file(path_, dir_.file("backup"));
  reopened();
  copy_database(dir_.file("backup"), path_);
  EXPECT_NE(reopened().store_epoch, first.store_epoch);
  EXPECT_TRUE(absl::StrContains(warning_, "older or another copy")) << warning_;
}

TEST_F(IdentityTest, BackupOfTheSameOpeningGetsANewEpoch) {
  std::uint64_t epoch = 0;
  {
    auto store = *open();
    epoch = store->identity().store_epoch;
    auto db = *SqliteDb::open(path_, "FULL");
    ASSERT_TRUE(db->exec("VACUUM INTO '" + dir_.file("backup") + "'").ok());
    ASSERT_TRUE(store->commit(batch_of(PutBoard{board_of(1)})).ok());
  }
  copy_database(dir_.file("backup"), path_);
  EXPECT_NE(reopened().store_epoch, epoch);
  EXPECT_TRUE(absl::StrContains(warning_, "lacks events")) << warning_;
}

TEST_F(IdentityTest, MissingHostFileGetsANewEpoch) {
  const Identity first = reopened();
  fs::remove(path_ + ".host");
  EXPECT_NE(reopened().store_epoch, first.store_epoch);
}

}  // namespace
}  // namespace odt::store

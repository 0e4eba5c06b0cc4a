// A restored data directory is on the disk before it has its name.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <set>

#include "store/backup.h"
#include "store/open.h"
#include "store_fixture.h"

namespace {

std::mutex mutex;
std::set<std::string>* synced = nullptr;  // paths as they were then

}  // namespace

// In the place of libc's.
extern "C" int fsync(int fd) {
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (::readlink(link.c_str(), path, sizeof path - 1) > 0) {
    const std::lock_guard lock(mutex);
    if (synced != nullptr) synced->insert(path);
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace odt::store {
namespace {

namespace fs = std::filesystem;

TEST(Restore, EveryFileAndFolderIsDurableBeforeTheDirectoryHasItsName) {
  TempDir dir;
  FakeClock clock;
  const std::string data = dir.file("data"), target = dir.file("restored");
  const std::string file = dir.file("backup.tar");
  {
    auto stores = open_stores(data, clock);
    ASSERT_TRUE(stores.ok()) << stores.status();
    for (const char* text : {"one", "two", "three"}) ASSERT_TRUE(stores->blobs->put(text).ok());
    auto reader = BackupReader::open(data);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto all = (*reader)->read(std::size_t{1} << 30);
    ASSERT_TRUE(all.ok());
    std::ofstream(file, std::ios::binary) << *all;
  }
  std::set<std::string> paths;
  {
    const std::lock_guard lock(mutex);
    synced = &paths;
  }
  const auto done = restore_backup(file, target);
  {
    const std::lock_guard lock(mutex);
    synced = nullptr;
  }
  ASSERT_TRUE(done.ok()) << done.status();
  const std::string real = fs::canonical(target).string();
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(real)) {
    const std::string before =
        real + ".restore-tmp/" + entry.path().lexically_relative(real).string();
    EXPECT_TRUE(paths.contains(before)) << before;
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 5);
  EXPECT_TRUE(paths.contains(real + ".restore-tmp"));
  EXPECT_TRUE(paths.contains(fs::path(real).parent_path().string()));  // its name
}

}  // namespace
}  // namespace odt::store

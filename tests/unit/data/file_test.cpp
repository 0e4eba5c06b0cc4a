// Files appear as a whole, and what a killed writer left goes with the next one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "data/dataset.h"

namespace odt::data {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
 protected:
  WriteFile() {
    char name[] = "/tmp/odt-file-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~WriteFile() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& f : fs::directory_iterator(folder_)) out.insert(f.path().filename());
    return out;
  }
  std::string folder_;
};

// A process that was killed; waited for, so that its number is nobody's.
std::string killed() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return std::to_string(pid);
}

TEST_F(WriteFile, RemovesWhatKilledWritersOfTheSameFileLeft) {
  const std::string gone = killed(), own = std::to_string(::getpid());
  const std::set<std::string> kept = {"out.bin.tmp." + own, "out.bin.tmp.x",
                                      "out.bin.tmp.",       "out.bin.tmp." + gone + "x",
                                      "other.tmp." + gone,  "out.bin.tmp.-1"};
  for (const auto& name : kept)
    if (name != "out.bin.tmp." + own) std::ofstream(path(name)) << "kept";
  std::ofstream(path("out.bin.tmp." + own + ".more")) << "of a living process";
  std::ofstream(path("out.bin.tmp." + gone)) << "half";
  fs::create_directory(path("out.bin.tmp." + gone + ".AbCdEf"));
  std::ofstream(path("out.bin.tmp." + gone + ".AbCdEf/file")) << "half";
  ASSERT_TRUE(write_file(path("out.bin"), "whole").ok());
  std::set<std::string> expected = kept;
  expected.erase("out.bin.tmp." + own);  // renamed
  expected.insert({"out.bin", "out.bin.tmp." + own + ".more"});
  EXPECT_EQ(names(), expected);
}

TEST_F(WriteFile, AStaleLinkGoesAndWhatItNamesStays) {
  std::ofstream(path("precious")) << "data";
  fs::create_symlink(path("precious"), path("out.tmp." + killed()));
  ASSERT_TRUE(write_file(path("out"), "whole").ok());
  EXPECT_EQ(names(), (std::set<std::string>{"out", "precious"}));
}

// A rename would put a file in the place of what stands there.
TEST_F(WriteFile, LinksAreFollowedAndWhatIsNoFileStays) {
  std::ofstream(path("real.bin")) << "old";
  fs::create_symlink(path("real.bin"), path("link.bin"));
  ASSERT_TRUE(write_file(path("link.bin"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link.bin")));
  EXPECT_EQ(*read_file(path("real.bin"), 100), "new");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink(path("pipe"), path("to_pipe"));
  fs::create_symlink(path("nowhere/x"), path("dangling"));
  for (const char* name : {"pipe", "to_pipe", "dangling"}) {
    const Status st = write_file(path(name), "new");
    EXPECT_TRUE(absl::IsInvalidArgument(st)) << name << ": " << st;
    EXPECT_NE(st.message().find(name), std::string::npos) << st;
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

}  // namespace
}  // namespace odt::data

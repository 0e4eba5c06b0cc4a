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
#include "data/output_files.h"

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

class OutputFiles : public WriteFile {
 protected:
  // Why these outputs are refused, files in the folder; empty: they are not.
  std::string refusal(const std::string& in, const std::string& a, const std::string& b = "") {
    const auto full = [this](const std::string& name) { return name.empty() ? "" : path(name); };
    return std::string(
        check_outputs({full(in)}, {{"-o", full(a)}, {"--report", full(b)}}).message());
  }
};

TEST_F(OutputFiles, EachIsAFileOfItsOwn) {
  std::ofstream(path("in")) << "read";
  fs::create_symlink(path("in"), path("link"));
  fs::create_hard_link(path("in"), path("hard"));
  fs::create_directory(path("d"));
  fs::create_directory_symlink(path("d"), path("dlink"));
  EXPECT_EQ(refusal("in", "out", "report"), "");
  EXPECT_EQ(refusal("in", "d/x", "x"), "");
  for (const char* same : {"in", "./in", "link", "hard", "d/../in"}) {
    EXPECT_NE(refusal("in", same).find("this is the file that is read"), std::string::npos) << same;
    EXPECT_NE(refusal("in", "x", same).find("--report "), std::string::npos) << same;
  }
  for (const char* same : {"x", "./x", "d/../x"})
    EXPECT_EQ(refusal("in", "x", same),
              "--report " + path(same) + ": the file that -o names too; give each its own");
  EXPECT_NE(refusal("in", "d/x", "dlink/x").find("-o names too"), std::string::npos);
  // Relative, and not there yet.
  const Status st = check_outputs({}, {{"-o", "odt-none"}, {"--report", "./odt-none"}});
  EXPECT_NE(st.message().find("-o names too"), std::string::npos) << st;
  std::ofstream(path("was")) << "there";
  fs::create_symlink(path("was"), path("to_was"));
  EXPECT_NE(refusal("in", "was", "to_was").find("-o names too"), std::string::npos);
}

TEST_F(OutputFiles, TheirPlaceIsLookedAtFirst) {
  fs::create_directory(path("d"));
  std::ofstream(path("file")) << "x";
  EXPECT_EQ(refusal("", "gone/x"), "-o " + path("gone/x") + ": cannot create: there is no folder " +
                                       path("gone") + "; make it first");
  EXPECT_NE(refusal("", "d").find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal("", "file/x"), "");
  EXPECT_NE(refusal("", "new/").find("a folder; give the name of a file"), std::string::npos);
}

TEST_F(OutputFiles, AllAreWrittenOrNone) {
  std::ofstream(path("b")) << "old";
  ASSERT_TRUE(write_files({{"-o", path("a"), "1"}, {"", "", "no"}, {"-r", path("b"), "2"}}).ok());
  EXPECT_EQ(*read_file(path("b"), 10), "2");
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b"}));
  const Status st = write_files({{"-o", path("a"), "3"}, {"-r", path("gone/x"), "4"}});
  EXPECT_FALSE(st.ok());
  EXPECT_NE(st.message().find("gone/x"), std::string::npos) << st;
  EXPECT_EQ(*read_file(path("a"), 10), "1");
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace odt::data

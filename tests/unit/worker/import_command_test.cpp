// odt-worker import, as a person calls it.
#include "worker/import_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/dataset.h"

namespace odt::worker {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ImportCommand : public testing::Test {
 protected:
  ImportCommand() {
    std::string pattern = (fs::temp_directory_path() / "odt-import-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::string table = "a,b,label\n";
    for (int n = 0; n < 40; ++n)
      table +=
          std::to_string(n) + "," + std::to_string(n % 7) + (n % 2 == 0 ? ",even\n" : ",odd\n");
    put("t.csv", table);
  }
  ~ImportCommand() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) {
    EXPECT_TRUE(data::write_file(path(name), text).ok());
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  int run(const std::vector<std::string>& args, bool terminal = false) {
    out_.str("");
    log_.str("");
    return import_command(args, out_, log_, terminal);
  }

  fs::path folder_;
  std::ostringstream out_, log_;
};

TEST_F(ImportCommand, WritesDatasetAndReportAndNothingElse) {
  ASSERT_EQ(run({path("t.csv"), "-o", path("d.odtd"), "--report", path("r.json"), "--json"}), 0)
      << log_.str();
  EXPECT_EQ(log_.str(), "");
  const auto bytes = data::read_file(path("d.odtd"), 1 << 20);
  ASSERT_TRUE(bytes.ok());
  const auto d = data::decode_dataset(*bytes);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->samples(), 40u);
  EXPECT_TRUE(nlohmann::json::accept(out_.str())) << out_.str();
  const auto report = data::read_file(path("r.json"), 1 << 20);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(nlohmann::json::parse(*report).contains("preview"));
  EXPECT_EQ(files(), 3u) << "what was unpacked is gone";
}

TEST_F(ImportCommand, ABarOnATerminalIsGoneAtTheEnd) {
  ASSERT_EQ(run({path("t.csv"), "-o", path("d.odtd")}, true), 0);
  EXPECT_THAT(log_.str(), HasSubstr("\r\x1b[K["));
  EXPECT_TRUE(log_.str().ends_with("\r\x1b[K"));
  EXPECT_THAT(out_.str(), HasSubstr("d.odtd"));
}

TEST_F(ImportCommand, FaultsAreOneLineAndLeaveNothing) {
  put("bad.csv", "a,label\n1,x\ntwo,y\n");
  EXPECT_EQ(run({path("bad.csv"), "-o", path("d.odtd")}), 1);
  EXPECT_THAT(log_.str(), HasSubstr("odt-worker import: bad.csv"));
  const std::string log = log_.str();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_EQ(run({path("none.csv"), "-o", path("d.odtd")}), 1);
  EXPECT_EQ(run({path("t.csv"), "-o", path("none/d.odtd")}), 1);
  EXPECT_THAT(log_.str(), HasSubstr("none/d.odtd: cannot create: there is no folder "));
  EXPECT_EQ(files(), 2u);
}

TEST_F(ImportCommand, ItsOwnFoldersOfKilledRunsGoAndOthersStay) {
  fs::create_directories(folder_ / "d.odtd.tmp.999999999.d" / "in.data.d");
  fs::create_directories(folder_ / "d.odtd.tmp.d");  // a user's
  ASSERT_EQ(run({path("t.csv"), "-o", path("d.odtd")}), 0) << log_.str();
  EXPECT_FALSE(fs::exists(folder_ / "d.odtd.tmp.999999999.d"));
  EXPECT_TRUE(fs::exists(folder_ / "d.odtd.tmp.d"));
}

TEST_F(ImportCommand, UsageIsExitCodeTwo) {
  EXPECT_EQ(run({}), 2);
  for (const char* window : {"0s", "x", "-4", "0"}) {
    EXPECT_EQ(run({path("t.csv"), "-o", path("d.odtd"), std::string("--window=") + window}), 2)
        << window;
    EXPECT_THAT(log_.str(), HasSubstr("1.5s (seconds) or 104 (steps) expected"));
  }
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("--group-column"));
}

}  // namespace
}  // namespace odt::worker

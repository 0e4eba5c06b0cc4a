#include "app_fixture.h"

namespace odt::cli {
namespace {

TEST_F(AppTest, EachErrorAboutAFileNamesItAsItWasGiven) {
  const std::string empty = folder_ + "/empty.onnx", broken = folder_ + "/broken.onnx",
                    csv = folder_ + "/samples.csv";
  std::ofstream(empty, std::ios::binary).flush();
  std::ofstream(broken, std::ios::binary) << "no onnx";
  EXPECT_EQ(run({"model", "add", empty}), 2);
  EXPECT_TRUE(said(empty + ": size: 0 bytes")) << err();
  EXPECT_EQ(run({"weights", "push", empty}), 2);
  EXPECT_TRUE(said(empty + ": size: 0 bytes")) << err();
  EXPECT_EQ(run({"model", "add", broken, "--name", "mine"}), 6);
  EXPECT_TRUE(said(broken + ": not an ONNX file")) << err();
  EXPECT_FALSE(said("mine.onnx")) << err();
  uploads_.content.clear();
  std::ofstream(csv) << "a,b,label\n";
  EXPECT_EQ(run({"data", "import", csv, "--name", "x"}), 6);
  EXPECT_TRUE(said(csv + ": line 3, column 1")) << err();
}

TEST_F(AppTest, PauseResumeAndCancelARun) {
  const std::string id(16, 'r');
  EXPECT_EQ(run({"run", "pause", "night"}), 0) << err();
  EXPECT_TRUE(said("PAUSED")) << out();
  EXPECT_EQ(run({"run", "resume", "72727272"}), 0) << err();
  EXPECT_TRUE(said("RUNNING")) << out();
  EXPECT_EQ(run({"--json", "run", "cancel", "night"}), 0) << err();
  EXPECT_EQ(nlohmann::json::parse(out())["state"], "CANCELLED");
  EXPECT_EQ(runs_.asked, (std::vector<std::string>{"pause " + id + " +", "resume " + id + " +",
                                                   "cancel " + id + " +"}));
  EXPECT_EQ(run({"run", "pause", "night"}), 5);
  EXPECT_TRUE(said("run night has ended")) << err();
  EXPECT_TRUE(said("remedy: start another one")) << err();
  EXPECT_EQ(run({"run", "cancel", "day"}), 4);
  EXPECT_TRUE(said("Did you mean 'night'?") || said("day")) << err();
  EXPECT_EQ(run({"run", "pause"}), 2);
}

}  // namespace
}  // namespace odt::cli

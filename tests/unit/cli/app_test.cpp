#include "app_fixture.h"

namespace odt::cli {
namespace {

TEST_F(AppTest, ListsAllPagesWithoutControlCharacters) {
  EXPECT_EQ(run({"board", "list"}), 0) << err();
  EXPECT_TRUE(said("m33-1"));
  EXPECT_TRUE(said("evil?[31m"));
  EXPECT_EQ(out().find_first_of("\x1b\r"), std::string::npos);
}

TEST_F(AppTest, PcTrainNamesModelAndOnnxApart) {
  EXPECT_EQ(run({"pc-train", "--data", "shifted", "--name", "small"}), 0) << err();
  EXPECT_TRUE(said("model     small  6d\n")) << out();
  EXPECT_TRUE(said("onnx      0f\n")) << out();
  EXPECT_TRUE(said("84.4 %  (844 of 1000)")) << out();
  EXPECT_EQ(run({"--json", "pc-train", "--data", "shifted"}), 0) << err();
  EXPECT_EQ(nlohmann::json::parse(out())["result"]["onnx_hash"], "0f");
}

TEST_F(AppTest, PcTrainSendsAnArchitectureOrWidths) {
  ASSERT_EQ(run({"pc-train", "--data", "shifted", "--hidden", "64,32"}), 0) << err();
  EXPECT_EQ(jobs_.trained.hidden_size(), 2);
  EXPECT_EQ(jobs_.trained.arch(), "");
  ASSERT_EQ(run({"pc-train", "--data", "shifted", "--arch", "conv8x3x3,relu,gap,dense", "--augment",
                 "shift2,flip"}),
            0)
      << err();
  EXPECT_EQ(jobs_.trained.arch(), "conv8x3x3,relu,gap,dense");
  EXPECT_EQ(jobs_.trained.augment(), "shift2,flip");
  EXPECT_EQ(jobs_.trained.hidden_size(), 0);
  EXPECT_EQ(run({"pc-train", "--data", "shifted", "--arch", "dense", "--hidden", "4"}), 2);
}

TEST_F(AppTest, JsonIsStable) {
  EXPECT_EQ(run({"--json", "board", "list"}), 0);
  const auto json = nlohmann::json::parse(out());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["uid"], "7569642d30303031");
  EXPECT_EQ(json[0]["status"], "ONLINE");
  EXPECT_EQ(json[0]["ram_bytes"], 0);
  EXPECT_EQ(json[0]["labels"]["site"], "lab");
  EXPECT_TRUE(json[0]["link"].is_null());
}

TEST_F(AppTest, MutationsCarryARequestIdOfTheirOwn) {
  EXPECT_EQ(run({"board", "rename", "m33-1", "a"}), 0) << err();
  EXPECT_EQ(run({"board", "rename", "m33-1", "b"}), 0);
  ASSERT_EQ(fleet_.request_ids.size(), 2u);
  EXPECT_FALSE(fleet_.request_ids[0].empty());
  EXPECT_NE(fleet_.request_ids[0], fleet_.request_ids[1]);
}

TEST_F(AppTest, RefusalShowsMessageAndRemedy) {
  EXPECT_EQ(run({"board", "reset", "m33-1"}), 5);
  EXPECT_TRUE(said("board m33-1 trains"));
  EXPECT_TRUE(said("remedy: cancel the run first"));
  EXPECT_EQ(run({"--json", "board", "reset", "m33-1"}), 5);
  const auto json = nlohmann::json::parse(err());
  EXPECT_EQ(json["error"]["reason"], "BUSY");
  EXPECT_EQ(json["error"]["exit"], 5);
}

TEST_F(AppTest, UnknownBoardIsNotFoundWithSuggestion) {
  EXPECT_EQ(run({"board", "show", "m33-2"}), 4);
  EXPECT_TRUE(said("Did you mean 'm33-1'?"));
}

TEST_F(AppTest, NoDaemonIsExitThreeWithRemedy) {
  EXPECT_EQ(run({"board", "list"}, "unix:" + folder_ + "/none"), 3);
  EXPECT_TRUE(said("no odtd answers at unix:" + folder_ + "/none"));
  EXPECT_TRUE(said("odtctl doctor"));
}

TEST_F(AppTest, AnArgumentThatIsNotUtf8IsWrongUsage) {
  EXPECT_EQ(run({"board", "rename", "m33-1", "\xFF\xFE"}), 2);
  EXPECT_TRUE(
      said("'?"
           "?' is not UTF-8"));
}

TEST(FinishOutput, FailsWhereTheOutputWasNotTaken) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  Context context({full, err, false, false});
  full << "a table\n";
  EXPECT_EQ(finish_output(context, 0), 1);
  EXPECT_NE(err.str().find("could not be written"), std::string::npos);
  EXPECT_EQ(finish_output(context, 4), 4);
}

TEST_F(AppTest, WrongUsageIsExitTwoWithSuggestion) {
  EXPECT_EQ(run({"bord", "list"}), 2);
  EXPECT_TRUE(said("Did you mean 'board'?"));
  EXPECT_EQ(run({"board", "lisst"}), 2);
  EXPECT_TRUE(said("Did you mean 'list'?"));
  EXPECT_EQ(run({"train", "--bord", "x"}), 2);
  EXPECT_TRUE(said("Did you mean '--board'?"));
  EXPECT_EQ(run({"board", "list"}, "nonsense"), 2);
  EXPECT_EQ(train({"--mu-weight", "1,2"}), 2);
  EXPECT_TRUE(said("one (constant) or three"));
  EXPECT_EQ(train({"--rounding", "up"}), 2);
}

TEST_F(AppTest, TrainSendsOnlyWhatWasGiven) {
  EXPECT_EQ(train({"--epochs", "5", "--mu-weight", "1,0,-1", "--mu-offset", "-3", "--rounding",
                   "psto", "--no-guard", "--dead-zone", "0", "--evaluate", "--detach"}),
            0)
      << err();
  const auto& spec = runs_.last.spec();
  EXPECT_EQ(spec.board_uid(), "uid-0001");
  EXPECT_EQ(spec.model_hash(), std::string(32, 'm'));
  EXPECT_TRUE(spec.evaluate());
  const auto& h = spec.hyper();
  EXPECT_EQ(h.epochs(), 5u);
  ASSERT_EQ(h.mu_weight_size(), 3);
  EXPECT_EQ(h.mu_weight(2), -1);
  EXPECT_EQ(h.mu_offset(), -3);
  EXPECT_EQ(h.rounding(), v1::ROUNDING_PSTO);
  EXPECT_TRUE(h.has_guard());
  EXPECT_FALSE(h.guard());
  EXPECT_TRUE(h.has_dead_zone());
  EXPECT_FALSE(h.has_k());
  EXPECT_FALSE(h.has_streamed());
  EXPECT_EQ(h.policy(), v1::POLICY_UNSPECIFIED);
  EXPECT_TRUE(said("run 72727272"));
}

TEST_F(AppTest, TrainFollowsOverALostConnectionAndShowsEachEpochOnce) {
  EXPECT_EQ(train({}), 0) << err();
  EXPECT_EQ(watch_.streams, 2);
  const std::string text = out();
  const auto first = text.find("epoch 1/2");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("epoch 1/2", first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("epoch 2/2"), std::string::npos);
  EXPECT_NE(text.find("held-out 80.0 %"), std::string::npos);
  EXPECT_NE(text.find("SUCCEEDED"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST_F(AppTest, FailedRunIsExitSix) {
  watch_.end = v1::RUN_STATE_FAILED;
  EXPECT_EQ(train({}), 6);
  EXPECT_TRUE(said("run FAILED: diverged"));
  EXPECT_TRUE(said("remedy: train again"));
}

TEST_F(AppTest, InterruptDetachesAndSaysHowToWatchAgain) {
  watch_.hang = true;
  interrupt_ = true;
  EXPECT_EQ(train({}), 130);
  EXPECT_TRUE(said("detached"));
  EXPECT_TRUE(said("odtctl run watch 72727272"));
}

TEST_F(AppTest, UploadGoesInChunksAndContinues) {
  std::string content(1'300'000, 'w');
  content[5] = 'x';
  std::ofstream(folder_ + "/w.odtw", std::ios::binary) << content;
  uploads_.content = content.substr(0, 1000);  // of an earlier try
  EXPECT_EQ(run({"weights", "push", folder_ + "/w.odtw", "--alias", "best"}), 0) << err();
  EXPECT_EQ(uploads_.content, content);
  EXPECT_TRUE(said(sha256(content).hex()));
  EXPECT_EQ(run({"weights", "push", folder_ + "/none"}), 4);
}

TEST_F(AppTest, HelpVersionAndCompletion) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(said("Exit codes"));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(said("0.1.0"));
  EXPECT_EQ(run({"completion", "bash"}), 0);
  EXPECT_TRUE(said("complete -F _odtctl odtctl"));
  EXPECT_TRUE(said("--mu-weight"));
}

TEST_F(AppTest, DoctorWorksWithoutDaemon) {
  EXPECT_EQ(run({"doctor"}, "unix:" + folder_ + "/none"), 1);
  EXPECT_TRUE(said("FAIL odtd"));
  EXPECT_TRUE(said("disk:"));
}

}  // namespace
}  // namespace odt::cli

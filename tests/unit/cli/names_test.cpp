// Several models or datasets of one name.
#include "app_fixture.h"

namespace odt::cli {
namespace {

using Keys = std::vector<std::string>;

class NamesTest : public AppTest {
 protected:
  NamesTest() {
    library_.older = {{"fmnist", std::string(32, 'n')}, {"other", std::string(32, 'o')}};
    data_.older = {{"shifted", std::string(16, 'e')}, {"shifted", std::string(16, 'f')}};
    data_.imports = true;
  }
  std::string table() const {
    std::ofstream(folder_ + "/t.csv") << "a,label\n1,x\n2,y\n";
    return folder_ + "/t.csv";
  }
};

TEST_F(NamesTest, NothingIsDeletedByANameThatSeveralHave) {
  EXPECT_EQ(run({"data", "rm", "shifted"}), kExitUsage);
  EXPECT_TRUE(
      said("3 datasets are called 'shifted': shifted (646464), shifted (656565), shifted "
           "(666666), the newest first; give the digits of one"))
      << err();
  EXPECT_EQ(data_.deleted, Keys());
  EXPECT_EQ(run({"data", "rm", "656565"}), 0) << err();
  EXPECT_EQ(data_.deleted, Keys{std::string(16, 'e')});
  EXPECT_EQ(run({"model", "rm", "fmnist"}), kExitUsage);
  EXPECT_EQ(run({"model", "rm", "other"}), 0) << err();
  EXPECT_EQ(library_.deleted, Keys{std::string(32, 'o')});
}

TEST_F(NamesTest, TheNewestIsMeantAndThatIsSaid) {
  EXPECT_EQ(train({"--detach"}), 0) << err();
  EXPECT_EQ(runs_.last.spec().model_hash(), std::string(32, 'm'));
  EXPECT_EQ(runs_.last.spec().dataset_id(), std::string(16, 'd'));
  EXPECT_TRUE(
      said("note: 2 models are called 'fmnist': fmnist (6d6d6d), fmnist (6e6e6e); the "
           "first, the newest, is meant"))
      << err();
  EXPECT_TRUE(said("note: 3 datasets are called 'shifted'")) << err();
  data_.older.clear();
  EXPECT_EQ(train({"--detach"}), 0) << err();
  EXPECT_FALSE(said("datasets are called"));
}

TEST_F(NamesTest, ListsTellOlderOnes) {
  EXPECT_EQ(run({"model", "list"}), 0);
  EXPECT_TRUE(said("fmnist (older)"));
  EXPECT_FALSE(said("other (older)"));
  EXPECT_EQ(run({"data", "list", "--json"}), 0);
  EXPECT_FALSE(said("(older)"));  // names are names there
}

TEST_F(NamesTest, AnImportNamesOlderOnesAndReplacesThemOnRequest) {
  EXPECT_EQ(run({"data", "import", table(), "--name", "shifted"}), 0) << err();
  EXPECT_TRUE(
      said("note: dataset 'shifted' stands for this one now; 2 older ones keep their "
           "keys: 656565, 666666"))
      << err();
  EXPECT_EQ(data_.deleted, Keys());
  EXPECT_EQ(run({"data", "import", table(), "--name", "shifted", "--replace"}), 0) << err();
  EXPECT_EQ(data_.deleted, (Keys{std::string(16, 'e'), std::string(16, 'f')}));
  EXPECT_TRUE(said("note: the older dataset 'shifted', 656565, is deleted")) << err();
}

TEST_F(NamesTest, WhatARunUsesStays) {
  library_.in_use = std::string(32, 'n');
  EXPECT_EQ(run({"pc-train", "--data", "646464", "--name", "fmnist", "--replace"}), 0) << err();
  EXPECT_TRUE(said("note: the older model 'fmnist', 6e6e6e, stays: model is in use by run night"))
      << err();
  EXPECT_EQ(library_.deleted, Keys());
  EXPECT_EQ(run({"pc-train", "--data", "646464"}), 0) << err();  // no name: nobody's
  EXPECT_FALSE(said("fmnist"));
}

TEST_F(NamesTest, PcTrainRefusesNoEpochs) {
  EXPECT_EQ(run({"pc-train", "--data", "shifted", "--epochs", "0"}), kExitUsage);
  EXPECT_TRUE(said("--epochs")) << err();
}

TEST_F(NamesTest, LayerPrecisionsAreOneForEachLayer) {
  library_.trainable_layers = 3;
  EXPECT_EQ(train({"--detach", "--layer-k", "8,8"}), kExitUsage);
  EXPECT_TRUE(
      said("--layer-k has 2 values; model 'fmnist' has 3 trainable layers: give one for "
           "each, 0 for that of --k"))
      << err();
  EXPECT_EQ(train({"--detach", "--layer-k", "8,0,12"}), 0) << err();
}

TEST_F(NamesTest, AFolderOfSeveralFormatsIsNotGuessed) {
  fs::create_directories(folder_ + "/mixed");
  for (const char* name : {"a.wav", "b.wav", "labels.csv", "notes.txt"})
    std::ofstream(folder_ + "/mixed/" + name) << "x";
  EXPECT_EQ(run({"data", "import", folder_ + "/mixed"}), kExitUsage);
  EXPECT_TRUE(said("mixed: files of several formats (1 csv, 2 wav); say which with --format"))
      << err();
  EXPECT_EQ(run({"data", "import", folder_ + "/mixed", "--format", "wav"}), 0) << err();
}

}  // namespace
}  // namespace odt::cli

#include "worker/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "compiler/compile.h"
#include "data/dataset.h"
#include "data/sampling.h"

namespace odt::worker {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("odt_train_") + info->name());
    fs::create_directories(folder_);
    ASSERT_TRUE(data::write_file(path("d.odtd"), data::encode_dataset(stripes())).ok());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Bright columns on the left, in the middle or on the right.
  static data::Dataset stripes() {
    data::Dataset d;
    d.shape = {1, 6, 6};
    d.counts[0] = 300;
    d.counts[2] = 90;
    d.class_names = {"left", "middle", "right"};
    data::Xorshift32 random(4);
    for (std::uint32_t s = 0; s < 390; ++s) {
      const std::uint32_t label = random.below(3);
      d.labels.push_back(static_cast<std::uint8_t>(label));
      d.source_index.push_back(s);
      for (std::uint32_t i = 0; i < 36; ++i)
        d.values.push_back(
            static_cast<std::uint8_t>((i % 6 / 2 == label ? 100u : 20u) + random.below(120)));
    }
    data::measure_ranges(d);
    return d;
  }

  int run(std::vector<std::string> args, bool terminal = false) {
    out_.str("");
    log_.str("");
    args.insert(args.begin(), path("d.odtd"));
    return train_command(args, out_, log_, terminal);
  }

  fs::path folder_;
  std::ostringstream out_, log_;
};

TEST_F(TrainCommand, WritesAModelThatTheCompilerTakes) {
  ASSERT_EQ(run({"--arch", "conv4x3x3s2p1,bn,relu,dense", "--epochs", "8", "--seed", "2",
                 "--validation", "10", "-o", path("m.onnx"), "--image", path("m.odtm")}),
            0)
      << log_.str();
  EXPECT_THAT(log_.str(), HasSubstr("epoch 8 of 8, loss "));
  EXPECT_THAT(log_.str(), HasSubstr(", validation "));
  EXPECT_THAT(log_.str(), Not(HasSubstr("\r")));
  EXPECT_THAT(out_.str(), HasSubstr("of 90, int8)"));
  const auto onnx = data::read_file(path("m.onnx"), 1 << 20);
  const auto image = data::read_file(path("m.odtm"), 1 << 20);
  ASSERT_TRUE(onnx.ok() && image.ok());
  const auto compiled = compiler::compile(*onnx, "m.onnx", {"dense", 0});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->image, *image);
  EXPECT_GE(compiled->network.calibration.src_correct, 80u);
}

TEST_F(TrainCommand, OnATerminalProgressIsABar) {
  ASSERT_EQ(run({"--hidden", "4", "--epochs", "2", "-o", path("m.onnx")}, true), 0);
  EXPECT_THAT(log_.str(), HasSubstr("\r\x1b[K[###########.............]  47 %  epoch 1 of 2"));
}

TEST_F(TrainCommand, ErrorsAreOneLineAndLeaveNoFile) {
  EXPECT_EQ(run({"--arch", "conv4x9x9,dense", "-o", path("m.onnx")}), 1);
  EXPECT_EQ(log_.str(),
            "odt-worker train: arch, character 1, 'conv4x9x9': its window of 9x9 is larger than "
            "what comes in, 6x6 with padding\n");
  EXPECT_EQ(run({"--augment", "spin", "-o", path("m.onnx")}), 1);
  EXPECT_THAT(log_.str(), HasSubstr("augment 'spin': expected shift1..shift8 or flip"));
  EXPECT_EQ(run({"--augment", "flip", "-o", path("m.onnx")}), 1);
  EXPECT_THAT(log_.str(), HasSubstr("begins with planes"));
  EXPECT_EQ(run({"--arch", "dense", "--hidden", "4"}), 2);
  EXPECT_EQ(run({"--validation", "60"}), 2);
  EXPECT_EQ(run({"--arch", "dense", "--rate", "10", "--epochs", "9", "-o", "/no/such/m.onnx"}), 1);
  EXPECT_FALSE(fs::exists(path("m.onnx")));
}

TEST_F(TrainCommand, HelpHasTheLanguage) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("dwHxW"));
}

}  // namespace
}  // namespace odt::worker

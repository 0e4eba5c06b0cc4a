// Real recordings from the archives in the folder that the environment variable ODT_TEST_DATA
// names, through import, training on the PC and the firmware library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "base/ids.h"
#include "data/import.h"
#include "worker/train_pc.h"

namespace odt::worker {
namespace {

namespace fs = std::filesystem;
using data::Dataset;
using data::Split;
using testing::ElementsAre;

constexpr char kGestures[] = "gestures-imu-acc.zip";
constexpr char kDigits[] = "free-spoken-digits.tar.xz";

class RealDataTest : public testing::Test {
 protected:
  // Skips the test where the archive is not there.
  bool find(const char* archive) {
    const char* folder = std::getenv("ODT_TEST_DATA");
    if (folder == nullptr) return false;
    archive_ = (fs::path(folder) / archive).string();
    EXPECT_TRUE(fs::exists(archive_)) << archive_;
    return true;
  }

  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "odt-real-data-XXXXXX").string();
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The folder with the recordings of the archive.
  std::string unpack() {
    const std::string command = "tar -xJf '" + archive_ + "' -C '" + folder_.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return (folder_ / "recordings").string();
  }

  static Dataset import(const data::ImportRequest& r) {
    auto d = data::import_dataset(r, [](auto, const auto&) {});
    EXPECT_TRUE(d.ok()) << d.status();
    return d.ok() ? *std::move(d) : Dataset{};
  }

  // Test accuracy of the int8 network, measured by firmware/odt.
  static double accuracy(const Dataset& d, const TrainPcOptions& o) {
    const auto net = train_pc(d, o, [](auto, const auto&) {});
    EXPECT_TRUE(net.ok()) << net.status();
    if (!net.ok()) return 0;
    EXPECT_EQ(net->calibration.src_total, d.count(Split::kTest));
    return static_cast<double>(net->calibration.src_correct) / net->calibration.src_total;
  }

  std::string archive_;
  fs::path folder_;
};

std::string hash_of(const std::vector<std::uint8_t>& values) {
  return sha256(values.data(), values.size()).hex().substr(0, 16);
}

// 24 of the 96 recordings are the archive's own test set. Windows of one second that overlap: a
// gesture begins anywhere in them.
data::ImportRequest gestures(const std::string& path) {
  data::ImportRequest r;
  r.format = "edge-impulse";
  r.data_path = path;
  r.window_s = 1;
  r.stride_s = 0.125;
  r.features = "decimate:2";
  r.split = {90, 10, 0};
  r.seed = 1;
  return r;
}

data::ImportRequest digits(const std::string& path) {
  data::ImportRequest r;
  r.format = "wav";
  r.data_path = path;
  r.pattern = "{label}_{speaker}_{n}.wav";
  r.features = "spectrogram:16x16";
  r.split = {80, 0, 20};
  return r;
}

TEST_F(RealDataTest, GesturesReachTheirBaselineInInt8) {
  if (!find(kGestures)) GTEST_SKIP() << "ODT_TEST_DATA is not set";
  const Dataset d = import(gestures(archive_));
  EXPECT_THAT(d.shape, ElementsAre(3, 52, 1));
  EXPECT_THAT(d.class_names, ElementsAre("circle", "flick", "idle", "updown"));
  EXPECT_FLOAT_EQ(d.sample_rate, 52);
  EXPECT_EQ(d.count(Split::kTest), 24u * 73);
  EXPECT_EQ(d.samples(), 96u * 73);
  EXPECT_EQ(hash_of(d.values), "b15c444afb19f571");
  TrainPcOptions o;
  o.hidden = {32};
  o.epochs = 100;
  o.rate = 0.1f;
  const double reached = accuracy(d, o);
  std::cout << "gestures 156-32-4 int8: " << reached << "\n";
  EXPECT_GE(reached, 0.991);
}

TEST_F(RealDataTest, WindowsOfAGestureAreInOneSplit) {
  if (!find(kGestures)) GTEST_SKIP() << "ODT_TEST_DATA is not set";
  const Dataset d = import(gestures(archive_));
  ASSERT_EQ(d.groups.size(), d.samples());
  std::map<std::uint32_t, std::set<int>> splits;
  for (std::uint32_t i = 0; i < d.samples(); ++i)
    splits[d.groups[i]].insert(i < d.first(Split::kHeldout) ? 0
                               : i < d.first(Split::kTest)  ? 1
                                                            : 2);
  EXPECT_EQ(splits.size(), 96u);
  for (const auto& [group, in] : splits) EXPECT_EQ(in.size(), 1u) << d.group_names[group];
}

// The mean of three draws: one has 600 test samples, so that a single draw is off by a point.
TEST_F(RealDataTest, SpokenDigitsReachTheirBaselineInInt8) {
  if (!find(kDigits)) GTEST_SKIP() << "ODT_TEST_DATA is not set";
  data::ImportRequest request = digits(unpack());
  TrainPcOptions o;
  o.hidden = {64};
  o.epochs = 60;
  double sum = 0;
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    request.seed = seed;
    const Dataset d = import(request);
    EXPECT_THAT(d.shape, ElementsAre(1, 16, 16));
    EXPECT_EQ(d.dtype, data::Dtype::kU8);
    EXPECT_EQ(d.count(Split::kTest), 600u);
    if (seed == 1) {
      EXPECT_EQ(hash_of(d.values), "043332cd4aa7ca56");
    }
    const double reached = accuracy(d, o);
    std::cout << "digits 256-64-10 int8, draw " << seed << ": " << reached << "\n";
    sum += reached;
  }
  EXPECT_GE(sum / 3, 0.973);
}

TEST_F(RealDataTest, SpokenDigitsCanBeSplitBySpeaker) {
  if (!find(kDigits)) GTEST_SKIP() << "ODT_TEST_DATA is not set";
  data::ImportRequest request = digits(unpack());
  request.group_column = "speaker";
  request.split = {4, 1, 1};
  const Dataset d = import(request);
  EXPECT_THAT(d.group_names, testing::UnorderedElementsAre("george", "jackson", "lucas", "nicolas",
                                                           "theo", "yweweler"));
  EXPECT_EQ(d.count(Split::kTrain), 2000u);
  EXPECT_EQ(d.count(Split::kHeldout), 500u);
  EXPECT_EQ(d.count(Split::kTest), 500u);
  // One board's own speaker.
  request.group_column = "";
  request.only = "speaker=george";
  request.split = {80, 0, 20};
  EXPECT_EQ(import(request).samples(), 500u);
  request.only = "speaker!=george";
  EXPECT_EQ(import(request).samples(), 2500u);
}

}  // namespace
}  // namespace odt::worker

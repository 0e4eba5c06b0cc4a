#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "onnx_fixture.h"
#include "run_program.h"

namespace odt::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class Cli : public testing::Test {
 protected:
  Cli() {
    char name[] = "/tmp/odt-cli-XXXXXX";
    folder_ = ::mkdtemp(name);
    OnnxBuilder b({1, 1, 4, 4}, 1);
    b.prequant().node("Flatten").matmul(16, 8).oss({1, 8}, 0, 255, 100);
    b.node("Relu").clip(0, 255).matmul(8, 3).oss({1, 3}, -128, 127, 100);
    onnx_ = b.bytes({1, 3});
    write("m.onnx", onnx_);
  }
  ~Cli() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  Output odtc(const std::string& args) const { return run(std::string(ODTC_PATH) + " " + args); }
  // Runs a job in the folder; its result object.
  json work(json job, int code = 0) const {
    job["result"] = "result.json";
    fs::remove(path("result.json"));
    write("job.json", job.dump());
    const Output out = run(std::string(ODT_WORKER_PATH) + " " + path("job.json"));
    EXPECT_EQ(out.code, code) << out.text;
    return json::parse(read(path("result.json")), nullptr, false);
  }

  std::string folder_, onnx_;
};

TEST_F(Cli, CompileWritesImageAndManifestThatInspectReads) {
  const Output out =
      odtc("compile " + path("m.onnx") + " -o " + path("m.odtm") + " --trainable 1 --name tiny");
  EXPECT_EQ(out.code, 0) << out.text;
  const json manifest = json::parse(read(path("m.odtm.json")));
  EXPECT_EQ(manifest["name"], "tiny");
  EXPECT_EQ(manifest["trainable_layers"], 1);
  EXPECT_EQ(manifest["input"]["prequant"]["offset"][0], -128.0);
  EXPECT_EQ(read(path("m.odtm")).substr(0, 4), "ODTM");
  const Output image = odtc("inspect " + path("m.odtm"));
  EXPECT_EQ(image.code, 0);
  EXPECT_THAT(image.text, HasSubstr("model image tiny"));
  EXPECT_THAT(image.text, HasSubstr("128 weights, frozen"));
  EXPECT_THAT(odtc("inspect " + path("m.onnx")).text, HasSubstr("behind PREQUANT"));
  EXPECT_THAT(odtc("--version").text, HasSubstr("rules_version"));
}

TEST_F(Cli, ATruncatedModelIsOneErrorAndLeavesNothing) {
  write("cut.onnx", onnx_.substr(0, onnx_.size() / 2));
  write("out.odtm", "what was there");
  const std::size_t before = files();
  const Output out = odtc("compile " + path("cut.onnx") + " -o " + path("out.odtm"));
  EXPECT_EQ(out.code, 1);
  EXPECT_THAT(out.text, HasSubstr("odtc: cut.onnx: not an ONNX model, or truncated"));
  EXPECT_EQ(std::count(out.text.begin(), out.text.end(), '\n'), 1) << out.text;
  EXPECT_EQ(read(path("out.odtm")), "what was there");
  EXPECT_EQ(files(), before);
}

TEST_F(Cli, MissingFilesAndFoldersAreNamed) {
  EXPECT_THAT(odtc("compile " + path("gone.onnx")).text, HasSubstr("gone.onnx: cannot open"));
  const Output out = odtc("compile " + path("m.onnx") + " -o " + path("no/such/folder/m.odtm"));
  EXPECT_EQ(out.code, 1);
  EXPECT_THAT(out.text, HasSubstr("cannot create"));
  EXPECT_NE(odtc("").code, 0);
}

TEST_F(Cli, ADamagedImageIsRefused) {
  ASSERT_EQ(odtc("compile " + path("m.onnx") + " -o " + path("m.odtm")).code, 0);
  const std::string image = read(path("m.odtm"));
  for (std::size_t n = 0; n < image.size(); n += 97) {
    write("cut.odtm", image.substr(0, n));
    const Output out = odtc("inspect " + path("cut.odtm"));
    EXPECT_EQ(out.code, 1) << n << ": " << out.text;
    EXPECT_THAT(out.text, HasSubstr("cut.odtm"));
  }
}

TEST_F(Cli, WorkerReportsABadCellAndWritesNoDataset) {
  write("d.csv", "x,y,label\n1,2,a\n3,oops,b\n");
  const json result = work(
      {{"kind", "import"}, {"format", "csv"}, {"data", "d.csv"}, {"dataset_out", "d.odtd"}}, 1);
  EXPECT_EQ(result["ok"], false);
  EXPECT_EQ(result["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_THAT(result["error"]["message"].get<std::string>(),
              HasSubstr("d.csv: line 3, column 1 (y): 'oops' is not a number"));
  EXPECT_FALSE(fs::exists(path("d.odtd")));
}

TEST_F(Cli, WorkerRefusesWhatIsNoJob) {
  EXPECT_EQ(run(ODT_WORKER_PATH).code, 2);
  EXPECT_EQ(run(std::string(ODT_WORKER_PATH) + " " + path("gone.json")).code, 2);
  write("bad.json", "{");
  EXPECT_EQ(run(std::string(ODT_WORKER_PATH) + " " + path("bad.json")).code, 2);
  EXPECT_THAT(work({{"kind", "dance"}}, 1)["error"]["message"].get<std::string>(),
              HasSubstr("kind 'dance'"));
  EXPECT_THAT(work({{"kind", "derive"}}, 1)["error"]["message"].get<std::string>(),
              HasSubstr("'dataset' (a path) is missing"));
  EXPECT_THAT(work({{"kind", "compile"}, {"onnx", 7}}, 1)["error"]["message"].get<std::string>(),
              HasSubstr("job:"));
}

TEST_F(Cli, FashionMnistReaches84PercentInInt8AndRepeatsToTheByte) {
  const std::string data = "/usr/share/datasets/fashion-mnist/";
  if (!fs::exists(data + "train-images-idx3-ubyte.gz"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const json imported = work({{"kind", "import"},
                              {"format", "idx"},
                              {"data", data + "train-images-idx3-ubyte.gz"},
                              {"labels", data + "train-labels-idx1-ubyte.gz"},
                              {"test_data", data + "t10k-images-idx3-ubyte.gz"},
                              {"test_labels", data + "t10k-labels-idx1-ubyte.gz"},
                              {"resize", {14, 14}},
                              {"train", 20000},
                              {"heldout", 500},
                              {"test", 10000},
                              {"seed", 1},
                              {"dataset_out", "f.odtd"}});
  ASSERT_EQ(imported["ok"], true) << imported;
  json job = {
      {"kind", "train-pc"}, {"dataset", "f.odtd"}, {"hidden", {32}},       {"epochs", 12},
      {"seed", 1},          {"name", "fmnist"},    {"onnx_out", "f.onnx"}, {"image_out", "f.odtm"}};
  const json trained = work(job);
  ASSERT_EQ(trained["ok"], true) << trained;
  EXPECT_EQ(trained["total"], 10000);
  EXPECT_GE(trained["correct"].get<int>(), 8400);
  // What odtc makes of the file is the image that was measured.
  ASSERT_EQ(odtc("compile " + path("f.onnx") + " -o " + path("again.odtm") + " --name fmnist").code,
            0);
  EXPECT_EQ(read(path("again.odtm")), read(path("f.odtm")));
  job["epochs"] = 2;
  const json once = work(job);
  const std::string onnx = read(path("f.onnx"));
  EXPECT_NE(once["onnx_hash"], trained["onnx_hash"]);
  EXPECT_EQ(work(job)["onnx_hash"], once["onnx_hash"]);
  EXPECT_EQ(read(path("f.onnx")), onnx);
}

}  // namespace
}  // namespace odt::test

// The table of exit codes in daemon/README.md, for the four programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "onnx_fixture.h"
#include "run_program.h"

namespace odt::test {
namespace {

namespace fs = std::filesystem;

class ExitCodes : public testing::Test {
 protected:
  ExitCodes() {
    char name[] = "/tmp/odt-exit-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ExitCodes() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string model() const {
    OnnxBuilder b({1, 1, 4, 4}, 1);
    b.prequant().node("Flatten").matmul(16, 8).oss({1, 8}, 0, 255, 100);
    b.node("Relu").clip(0, 255).matmul(8, 3).oss({1, 3}, -128, 127, 100);
    std::ofstream(path("m.onnx"), std::ios::binary) << b.bytes({1, 3});
    return path("m.onnx");
  }
  static void expect(int code, const char* program, const std::string& args) {
    const Output out = run(std::string(program) + " " + args);
    EXPECT_EQ(out.code, code) << program << " " << args << "\n" << out.text;
    if (code == 0) return;
    EXPECT_FALSE(out.text.empty()) << program << " " << args;
    EXPECT_LE(std::count(out.text.begin(), out.text.end(), '\n'), 3) << out.text;
  }

  std::string folder_;
};

TEST_F(ExitCodes, HelpAndVersionAreZero) {
  for (const char* program : {ODTC_PATH, ODTCTL_PATH, ODTD_PATH, ODT_WORKER_PATH})
    for (const char* flag : {"--help", "--version"}) expect(0, program, flag);
  for (const char* verb : {"compile", "c", "inspect", "fit", "export"})
    expect(0, ODTC_PATH, std::string(verb) + " --help");
  for (const char* verb : {"train", "import"})
    expect(0, ODT_WORKER_PATH, std::string(verb) + " --help");
}

TEST_F(ExitCodes, WrongUsageIsTwo) {
  const std::string m = model();
  for (const char* program : {ODTC_PATH, ODTCTL_PATH, ODT_WORKER_PATH}) expect(2, program, "");
  for (const char* program : {ODTC_PATH, ODTCTL_PATH, ODTD_PATH, ODT_WORKER_PATH})
    expect(2, program, "--no-such-flag");
  for (const std::string& args :
       {std::string("dance"), std::string("compile"), "compile " + m + " --trainable x",
        "compile " + m + " --arith float", "compile " + m + " " + m, "fit " + m,
        "fit " + m + " --board none", "fit " + m + " --cpu cortex-m4",
        "fit " + m + " --board an505 --k 1", "c " + m,
        "c " + m + " --out " + path("c") + " --label-column x", "export " + m})
    expect(2, ODTC_PATH, args);
  for (const char* args : {"train", "train a.odtd --validation 90", "import", "import x.csv",
                           "import x.csv -o y.odtd --window 1m", "/no/such/job.json"})
    expect(2, ODT_WORKER_PATH, args);
  expect(2, ODTD_PATH, "--listen nowhere --data-dir " + path("d"));
  expect(2, ODTCTL_PATH, "train");
}

// A full disk behind a shell's redirection: /dev/full takes no byte.
TEST_F(ExitCodes, OutputThatIsLostIsOne) {
  const std::string m = model();
  std::ofstream(path("t.csv")) << "a,label\n1,x\n2,y\n3,x\n4,y\n";
  const auto lost = [](const char* program, const std::string& args) {
    const Output out = run("{ " + std::string(program) + " " + args + " >/dev/full; }");
    EXPECT_EQ(out.code, 1) << program << " " << args << "\n" << out.text;
    EXPECT_NE(out.text.find("the output could not be written whole"), std::string::npos)
        << program << " " << args << "\n"
        << out.text;
  };
  for (const char* program : {ODTC_PATH, ODTCTL_PATH, ODTD_PATH, ODT_WORKER_PATH})
    for (const char* flag : {"--help", "--version"}) lost(program, flag);
  lost(ODTC_PATH, "inspect " + m);
  lost(ODTC_PATH, "compile " + m + " -o " + path("m.odtm"));
  lost(ODTC_PATH, "c " + m + " --out " + path("c"));
  lost(ODTC_PATH, "fit " + m + " --board mps2_an505");
  lost(ODTC_PATH, "fit " + m + " --board mps2_an505 --json");
  lost(ODTC_PATH, "export --help");
  lost(ODT_WORKER_PATH, "import --help");
  lost(ODT_WORKER_PATH, "import " + path("t.csv") + " -o " + path("t.odtd"));
  lost(ODT_WORKER_PATH, "train " + path("t.odtd") + " --hidden 4 -o " + path("t.onnx"));
  std::ofstream(path("job.json")) << R"({"kind": "import", "data": "t.csv", "format": "csv"})";
  lost(ODT_WORKER_PATH, path("job.json"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(ExitCodes, WhatFailsIsOneAndWhatDoesNotFitIsThree) {
  const std::string m = model();
  expect(1, ODTC_PATH, "compile " + path("gone.onnx"));
  expect(1, ODTC_PATH, "compile " + m + " --trainable 9");
  // Nothing is written over what is read.
  const std::string before = read(m);
  expect(1, ODTC_PATH, "compile " + m + " -o " + m);
  expect(1, ODTC_PATH,
         "compile " + m + " -o " + path("m.odtm") + " --manifest " + folder_ + "/./m.onnx");
  expect(1, ODTC_PATH, "export " + m + " --weights " + m + " -o " + m);
  // Nor over each other, nor a part of them where another cannot be.
  const std::string x = path("x"), same = folder_ + "/./x";
  for (const std::string& args :
       {"-o " + x + " --manifest " + same, "-o " + x + " --vectors " + same,
        "--manifest " + x + " --vectors " + same, "-o " + x + " --vectors " + path("none/v.json")})
    expect(1, ODTC_PATH, "compile " + m + " " + args);
  std::ofstream(path("t.csv")) << "a,label\n1,x\n2,y\n3,x\n4,y\n";
  expect(1, ODT_WORKER_PATH, "import " + path("t.csv") + " -o " + x + " --report " + same);
  expect(1, ODT_WORKER_PATH, "import " + path("t.csv") + " -o " + path("t.csv"));
  expect(0, ODT_WORKER_PATH, "import " + path("t.csv") + " -o " + path("t.odtd"));
  for (const std::string& args :
       {"-o " + x + " --image " + same, "-o " + x + " --manifest " + same,
        "--image " + x + " --manifest " + same, "--image " + path("t.odtd")})
    expect(1, ODT_WORKER_PATH, "train " + path("t.odtd") + " --hidden 4 " + args);
  EXPECT_FALSE(fs::exists(x));
  EXPECT_EQ(read(m), before);
  EXPECT_FALSE(fs::exists(path("m.odtm")));
  expect(1, ODT_WORKER_PATH, "train " + path("gone.odtd"));
  expect(1, ODT_WORKER_PATH, "import " + path("gone.csv") + " -o " + path("x.odtd"));
  std::ofstream(path("job.json")) << R"({"kind": "dance"})";
  expect(1, ODT_WORKER_PATH, path("job.json"));
  expect(0, ODTC_PATH, "fit " + m + " --cpu cortex-m4 --ram 60000");
  EXPECT_EQ(run(std::string(ODTC_PATH) + " fit " + m + " --cpu cortex-m4 --ram 100").code, 3);
  expect(3, ODTCTL_PATH, "--address unix:" + path("none.sock") + " board list");
}

}  // namespace
}  // namespace odt::test

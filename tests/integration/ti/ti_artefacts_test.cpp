// odtc's C files with a program written for TI's interface: gcc and clang on the host, gcc for
// Cortex-M33 under QEMU; all end in the same weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "arc_model.h"
#include "onnx_fixture.h"
#include "ti_programs.h"

namespace odt::test {
namespace {

using testing::HasSubstr;

class TiArtefacts : public TiFolder {
 protected:
  TiArtefacts() {
    write("arc.onnx", arc_onnx());
    write("arc.csv", arc_csv(220));
  }
  // Artefacts of the arc model into folder `out`.
  void make(const std::string& out, const std::string& more) const {
    const Output o =
        odtc("c " + path("arc.onnx") + " --out " + path(out) + " --data " + path("arc.csv") +
             " --label-column label --train 123 --val 40 --test 50 " + more);
    ASSERT_EQ(o.code, 0) << o.text;
  }
  // The last layer alone, over random features, gets better; two and three layers learn it.
  static void expect_learnt(const std::string& text, int trainable) {
    EXPECT_THAT(text, HasSubstr("vectors equal"));
    EXPECT_THAT(text, HasSubstr("first epoch equal"));
    EXPECT_LT(number(text, "train before "), 85) << text;
    EXPECT_LT(number(text, "test before "), 35) << text;
    EXPECT_GT(number(text, "train after "), number(text, "train before ")) << text;
    if (trainable == 1) return;
    EXPECT_GE(number(text, "train after "), 117) << text;
    EXPECT_GE(number(text, "test after "), 45) << text;
  }
};

// Trainable layers, 0: all.
class TiPrograms : public TiArtefacts, public testing::WithParamInterface<int> {};

TEST_P(TiPrograms, LearnAlikeWithGccClangAndOnACortexM33) {
  make("c", "--trainable " + std::to_string(GetParam()));
  expect_alike("c", [](const std::string& text) { expect_learnt(text, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(FullAndPartial, TiPrograms, testing::Values(0, 2, 1));

// Models at the edges of what TI's structs hold.
struct Odd {
  const char* name;
  Dims input;
  bool integers;  // samples as they are, without PREQUANT
  int compute_layers;
  void (*build)(OnnxBuilder&);
  Dims output;
};

const Odd kOdd[] = {
    {"conv without ReLU: int16 activations",
     {1, 1, 6, 4},
     false,
     2,
     [](OnnxBuilder& b) {
       b.prequant().conv(1, 3, 3, 2).oss({1, 3, 1, 1}, -255, 255, 100);
       b.node("Flatten").matmul(36, 3).oss({1, 3}, -128, 127, 500);
     },
     {1, 3}},
    {"stride, uneven padding, dilation, groups",
     {1, 2, 9, 7},
     false,
     3,
     [](OnnxBuilder& b) {
       b.prequant().conv(2, 4, 3, 3);
       b.ints("pads", {1, 0, 2, 1});
       b.ints("strides", {2, 1});
       b.oss({1, 4, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255);
       b.conv(2, 6, 2, 2);  // of two groups
       b.ints("dilations", {2, 1});
       b.integer("group", 2);
       b.oss({1, 6, 1, 1}, -255, 255, 300).node("Relu").clip(0, 255);
       b.node("Flatten").matmul(6 * 3 * 5, 4).oss({1, 4}, -128, 127, 300);
     },
     {1, 4}},
    {"PREQUANT per channel, negative; multipliers above 127",
     {1, 3, 2, 2},
     false,
     2,
     [](OnnxBuilder& b) {
       b.node("Add", {b.constant({1, 3, 1, 1}, {0.3125f, -7.8125f, 2.0f})});
       b.node("Mul", {b.constant({1, 3, 1, 1}, {2252, -1890, 77})});
       b.node("Mul", {b.constant({}, {std::ldexp(1.0f, -10)})});
       b.node("Floor").clip(-128, 127).node("Flatten");
       b.matmul(12, 6).oss({1, 6}, 0, 255, 300, true).node("Relu").clip(0, 255);
       b.matmul(6, 3).oss({1, 3}, -128, 127, 300, true);
     },
     {1, 3}},
    {"whole numbers, no ReLU anywhere, uint8 and narrow clips",
     {1, 10},
     true,
     3,
     [](OnnxBuilder& b) {
       b.matmul(10, 9).oss({1, 9}, 0, 255, 300);
       b.matmul(9, 7).oss({1, 7}, -20, 90, 300);
       b.matmul(7, 3).oss({1, 3}, -128, 127, 300);
     },
     {1, 3}},
};

class TiOdd : public TiArtefacts, public testing::WithParamInterface<int> {};

TEST_P(TiOdd, GiveTheirVectorsWithEveryNumberOfTrainableLayers) {
  const Odd& odd = kOdd[GetParam()];
  SCOPED_TRACE(odd.name);
  OnnxBuilder b(odd.input, 40u + static_cast<std::uint32_t>(GetParam()));
  odd.build(b);
  write("odd.onnx", b.bytes(odd.output));
  std::int64_t n = 1;
  for (auto d : odd.input) n *= d;
  std::string csv;
  for (int s = 0; s < 30; ++s) {
    for (std::int64_t i = 0; i < n; ++i)
      csv += std::to_string(b.random(-128, 127)) + (odd.integers || i > 0 ? "," : ".25,");
    csv += std::to_string(s % static_cast<int>(odd.output[1])) + "\n";
  }
  write("odd.csv", csv);
  for (int trainable = 1; trainable <= odd.compute_layers; ++trainable) {
    const Output made =
        odtc("c " + path("odd.onnx") + " --out " + path("odd") + " --data " + path("odd.csv") +
             " --train 21 --trainable " + std::to_string(trainable));
    ASSERT_EQ(made.code, 0) << made.text;
    Output o = run(std::string("gcc -fsanitize=address,undefined -fno-sanitize-recover=all") +
                   kStrict + ODT_TI_TESTS + "/vectors.c" + sources("odd") + library("gcc") +
                   " -o " + path("odd.run"));
    if (o.code == 0) o = run(path("odd.run"));
    EXPECT_EQ(o.code, 0) << trainable << " trainable layers: " << o.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TiOdd, testing::Range(0, 4));

TEST_F(TiArtefacts, RegressionsHaveTargetsWhereLabelsStand) {
  OnnxBuilder b({1, 5}, 3);
  b.prequant().matmul(5, 6).oss({1, 6}, 0, 255, 300).node("Relu").clip(0, 255);
  b.matmul(6, 2).oss({1, 2}, -128, 127, 300);
  b.metadata("odt.task", "regress");
  write("sums.onnx", b.bytes({1, 2}));
  std::string csv = "a,b,c,d,e,sum,half\n";
  for (int s = 0; s < 40; ++s) {
    int sum = 0;
    for (int i = 0; i < 5; ++i) {
      const int v = b.random(-100, 100);
      sum += v;
      csv += std::to_string(v) + ",";
    }
    csv += std::to_string(sum) + "," + std::to_string(sum) + "e-3\n";
  }
  write("sums.csv", csv);
  const std::string command =
      "c " + path("sums.onnx") + " --out " + path("sums") + " --data " + path("sums.csv");
  const Output made = odtc(command + " --target-column sum --target-column half --train 25");
  ASSERT_EQ(made.code, 0) << made.text;
  const std::string h = read("sums/train_data.h");
  EXPECT_THAT(h, HasSubstr("extern const int8_t TRAIN_TARGETS[25][N_CLASSES];"));
  EXPECT_THAT(h, HasSubstr("extern const float TARGET_SCALE[N_CLASSES];"));
  EXPECT_EQ(h.find("LABELS"), std::string::npos);
  Output o = run(std::string("gcc -fsanitize=address,undefined -fno-sanitize-recover=all "
                             "-DIS_REGRESSION") +
                 kStrict + ODT_TI_TESTS + "/vectors.c" + sources("sums") + library("gcc") + " -o " +
                 path("sums.run"));
  if (o.code == 0) o = run(path("sums.run"));
  EXPECT_EQ(o.code, 0) << o.text;
  const Output labels = odtc(command + " --label-column half");
  EXPECT_NE(labels.code, 0);
  EXPECT_THAT(labels.text, HasSubstr("the model is a regression of 2 values"));
}

TEST_F(TiArtefacts, FilesCompileStrictlyAloneOnEveryCompiler) {
  make("c", "");
  const std::string files = sources("c") + kHeaders + "-c ";
  const std::string extra = " -Wconversion -Wshadow -Wstrict-prototypes -pedantic ";
  for (const std::string& compiler :
       {std::string("gcc"), std::string("clang"), "arm-none-eabi-gcc" + std::string(kArm),
        "clang --target=arm-none-eabi -ffreestanding" + std::string(kArm)}) {
    const Output o = run("cd " + folder_ + " && " + compiler + kStrict + extra + files);
    EXPECT_EQ(o.code, 0) << compiler << ": " << o.text;
  }
}

TEST_F(TiArtefacts, FilesHaveTheInterfacesNames) {
  make("c", "");
  const std::string h = read("c/integer_model_config.h");
  for (const char* line :
       {"#define IS_FULL_MODEL_RETRAIN 1", "#define INPUT_SIZE 128",
        "#define FROZEN_OUTPUT_SIZE 128", "#define N_CLASSES 2", "#define BATCH_SIZE 8",
        "#define MU_WEIGHT_DEFAULT 1", "#define MU_OFFSET_DEFAULT 1", "#define N_INT_LAYERS 3",
        "#define N_TRAINABLE_LAYERS 3", "extern IntLayerDesc_t INT_LAYERS[N_INT_LAYERS];",
        "extern IntModelCtx_t INT_MODEL;"})
    EXPECT_THAT(h, HasSubstr(line));
  const std::string c = read("c/integer_model_config.c");
  EXPECT_THAT(
      c, HasSubstr(
             ".type = INT_LAYER_CONV2D_RELU,\n        .in_size = 128,\n        .out_size = 147,"));
  EXPECT_THAT(c, HasSubstr("static uint8_t layer0_relu_mask[BATCH_SIZE * 19];"));
  const std::string data = read("c/train_data.h");
  for (const char* line :
       {"#define N_TRAIN_SAMPLES 123", "#define N_VAL_SAMPLES 40", "#define N_TEST_SAMPLES 50",
        "extern const float TRAIN_INPUTS[123][INPUT_SIZE];"})
    EXPECT_THAT(data, HasSubstr(line));
  make("p", "--trainable 2");
  const std::string partial = read("p/integer_model_config.h");
  EXPECT_THAT(partial, HasSubstr("#define IS_FULL_MODEL_RETRAIN 0"));
  EXPECT_THAT(partial, HasSubstr("#define FROZEN_OUTPUT_SIZE 147"));
  EXPECT_THAT(partial, HasSubstr("#define INPUT_SIZE 128"));
  EXPECT_THAT(read("p/integer_model_config.c"), HasSubstr(".input_type = INT_INPUT_UINT8"));
}

TEST_F(TiArtefacts, EqualInputsGiveEqualFilesAndTheSeedShuffles) {
  make("a", "--seed 3");
  make("b", "--seed 3");
  make("c", "--seed 4");
  for (const auto& f : fs::directory_iterator(path("a"))) {
    const std::string name = f.path().filename();
    EXPECT_EQ(read("a/" + name), read("b/" + name));
  }
  EXPECT_NE(read("a/train_data.c"), read("c/train_data.c"));
  EXPECT_EQ(read("a/integer_model_config.c"), read("c/integer_model_config.c"));
}

TEST_F(TiArtefacts, BadInputIsOneErrorAndLeavesNothingBehind) {
  const std::string good = "c " + path("arc.onnx") + " --out " + path("out");
  write("short.csv", "v0,v1,label\n1,2,0\n3,4,1\n5,6,0\n");
  std::string many = arc_csv(4);
  many.replace(many.rfind("1\n"), 1, "7");  // three classes
  write("labels.csv", many);
  std::string broken = arc_csv(4);
  broken.replace(broken.find('\n') + 1, 3, "nan");
  write("nan.csv", broken);
  write("cut.onnx", arc_onnx().substr(0, 3000));
  fs::create_directory(path("taken"));
  write("taken/main.c", "int main(void) { return 0; }\n");
  const struct {
    std::string args, text;
  } kCases[] = {
      {good + " --trainable 4", "trainable layers 4; expected 1..3"},
      {good + " --data " + path("none.csv"), "none.csv: cannot open"},
      {good + " --data " + path("short.csv") + " --label-column label",
       "short.csv: 2 values per sample"},
      {good + " --data " + path("labels.csv") + " --label-column label --train 4",
       "label 2 of sample"},
      {good + " --data " + path("nan.csv") + " --label-column label --train 4", "nan.csv"},
      {good + " --data " + path("arc.csv") + " --label-column label --train 500", "train 500"},
      {"c " + path("cut.onnx") + " --out " + path("out"), "cut.onnx"},
      {"c " + path("arc.onnx") + " --out " + path("taken"), "taken: holds 'main.c'"},
      {"c " + path("arc.onnx") + " --out " + path("no/such/place"), "no/such/place"},
      {"c " + path("arc.onnx") + " --out ''", "output folder ''"},
      {"c " + path("arc.onnx") + " --out " + path("."), "give a folder's own name"},
      {"c " + path("arc.onnx") + " --out /", "output folder '/'"},
      {"c " + path("arc.onnx") + " --out " + path("arc.csv"),
       "arc.csv: exists and is not a folder"},
  };
  const auto listing = [&] {
    std::vector<std::string> names;
    for (const auto& f : fs::recursive_directory_iterator(folder_)) names.push_back(f.path());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto before = listing();
  for (const auto& c : kCases) {
    const Output o = odtc(c.args);
    EXPECT_EQ(o.code, 1) << c.args;
    EXPECT_THAT(o.text, HasSubstr(c.text));
    EXPECT_EQ(std::count(o.text.begin(), o.text.end(), '\n'), 1) << o.text;
    EXPECT_EQ(listing(), before) << c.args;
  }
}

TEST_F(TiArtefacts, SettingsOfTheDataNeedData) {
  for (const char* setting : {"--train 5", "--val 5", "--test 5", "--seed 2", "--label-column l"}) {
    const Output o = odtc("c " + path("arc.onnx") + " --out " + path("out") + " " + setting);
    EXPECT_NE(o.code, 0) << setting;
    EXPECT_THAT(o.text, HasSubstr("requires --data"));
    EXPECT_FALSE(fs::exists(path("out"))) << setting;
  }
}

TEST_F(TiArtefacts, AFolderOfItsOwnIsReplacedAsAWhole) {
  make("c", "");
  EXPECT_TRUE(fs::exists(path("c/train_data.c")));
  const Output o = odtc("c " + path("arc.onnx") + " --out " + path("c") + "/ --trainable 1");
  ASSERT_EQ(o.code, 0) << o.text;
  EXPECT_FALSE(fs::exists(path("c/train_data.c")));
  EXPECT_THAT(read("c/integer_model_config.h"), HasSubstr("#define N_INT_LAYERS 1"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()),
            3);  // no remains
}

// kill -9 at some moment of a run: the folder is whole or not there, and the next run tidies up.
TEST_F(TiArtefacts, AKilledRunLeavesNothingBehindTheNextOne) {
  const std::string args = "c " + path("arc.onnx") + " --out " + path("c") + " --data " +
                           path("arc.csv") + " --label-column label --train 123 --val 40 --test 50";
  for (int ms = 5; ms <= 245; ms += 20) {
    run("timeout -s KILL " + std::to_string(ms / 1000.0) + " " + ODTC_PATH + " " + args);
    if (!fs::exists(path("c"))) continue;
    const auto files = std::distance(fs::directory_iterator(path("c")), fs::directory_iterator());
    EXPECT_EQ(files, 8) << ms;
  }
  fs::create_directory(path("c.tmp.2147483646.AbCdEf"));  // above any process number
  write("c.tmp.2147483646.AbCdEf/test_vector.h", "half");
  ASSERT_EQ(odtc(args).code, 0);
  for (const auto& f : fs::directory_iterator(folder_))
    EXPECT_EQ(f.path().filename().string().find(".tmp."), std::string::npos) << f.path();
}

}  // namespace
}  // namespace odt::test

// C files of graphs: networks straight from the compiler's IR, whatever is trained.
#include <gmock/gmock.h>

#include <vector>

#include "compiler/c_writer.h"
#include "compiler/compile.h"
#include "graph_models.h"
#include "ti_programs.h"

namespace odt::test {
namespace {

using testing::HasSubstr;

class TiGraphs : public TiFolder, public testing::WithParamInterface<int> {
 protected:
  const GraphModel& model() const { return graph_models()[static_cast<std::size_t>(GetParam())]; }

  static Result<compiler::Compiled> compiled(const GraphModel& m, int trainable) {
    return compiler::compile_network(m.build(), "", "m.onnx",
                                     {"m", static_cast<std::uint32_t>(trainable)});
  }
  // C files with `train` samples into folder `out`.
  Status make(const GraphModel& m, int trainable, int train, const std::string& out) const {
    compiler::Compiled c;
    ODT_ASSIGN(c, compiled(m, trainable));
    compiler::CData samples;
    ODT_ASSIGN(samples,
               compiler::c_data(shapes_for(c.network, train, 60), "d", c.network, 1, {0, 0, 0}));
    std::vector<compiler::CFile> files;
    ODT_ASSIGN(files, compiler::write_c(c, "m.onnx", &samples));
    return compiler::write_folder(path(out), files);
  }
};

TEST_P(TiGraphs, GiveTheTrainersVectorsWithEveryCut) {
  for (const int trainable : model().one_cut) {
    const std::string out = std::string(model().name) + std::to_string(trainable);
    SCOPED_TRACE(out);
    const Status st = make(model(), trainable, 21, out);
    ASSERT_TRUE(st.ok()) << st;
    std::vector<const char*> batches = {""};
    if (full_run() || trainable == model().one_cut[0]) batches.push_back("-DBATCH_SIZE=9 ");
    for (const char* batch : batches) {
      Output o = run("gcc -fsanitize=address,undefined -fno-sanitize-recover=all " +
                     std::string(batch) + kStrict + ODT_TI_TESTS + "/vectors.c" + sources(out) +
                     library("gcc") + " -o " + path("run"));
      ASSERT_EQ(o.code, 0) << o.text;
      o = run(path("run"));
      // In other batches training ends elsewhere; everything before it does not.
      if (batch[0] == '\0')
        EXPECT_EQ(o.code, 0) << o.text;
      else
        EXPECT_THAT(o.text, HasSubstr("one pass of training")) << o.text;
      EXPECT_THAT(o.text, Not(HasSubstr("vector ")));
    }
  }
}

TEST_P(TiGraphs, FilesCompileStrictlyOnEveryCompiler) {
  const Status st = make(model(), model().one_cut[0], 6, "c");
  ASSERT_TRUE(st.ok()) << st;
  for (const std::string& compiler :
       {std::string("clang"), "arm-none-eabi-gcc" + std::string(kArm)}) {
    const Output o = run("cd " + folder_ + " && " + compiler + kStrict +
                         "-Wconversion -Wshadow -Wstrict-prototypes -pedantic " + sources("c") +
                         kHeaders + "-c ");
    EXPECT_EQ(o.code, 0) << compiler << ": " << o.text;
  }
}

TEST_P(TiGraphs, WhereSeveralTensorsWouldCrossTheErrorNamesWhatWorks) {
  for (const int trainable : model().several) {
    const Status st = make(model(), trainable, 6, "c");
    EXPECT_EQ(st.code(), absl::StatusCode::kUnimplemented) << trainable;
    EXPECT_THAT(std::string(st.message()),
                HasSubstr("m.onnx: " + std::to_string(trainable) + " trainable layers leave"));
    std::string works;
    for (const int n : model().one_cut) works += (works.empty() ? "" : ", ") + std::to_string(n);
    EXPECT_THAT(std::string(st.message()), HasSubstr("give --trainable " + works + ", or"));
    EXPECT_TRUE(compiled(model(), trainable).ok()) << "an image takes any";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TiGraphs, testing::Range(0, 6), [](const auto& p) {
  return graph_models()[static_cast<std::size_t>(p.param)].name;
});

// Those that a program written for TI's interface trains: five classifiers.
class TiGraphPrograms : public TiGraphs {};

TEST_P(TiGraphPrograms, LearnAlikeWithGccClangAndOnACortexM33) {
  const Status st = make(model(), 0, 120, "c");
  ASSERT_TRUE(st.ok()) << st;
  expect_alike("c", [](const std::string& text) {
    EXPECT_THAT(text, HasSubstr("vectors equal"));
    EXPECT_THAT(text, HasSubstr("first epoch equal"));
    EXPECT_GE(number(text, "test after "), number(text, "test before ") + 12) << text;
  });
}

INSTANTIATE_TEST_SUITE_P(Models, TiGraphPrograms, testing::Range(0, 5), [](const auto& p) {
  return graph_models()[static_cast<std::size_t>(p.param)].name;
});

TEST_F(TiFolder, TheFrozenPartSharesMemoryByLifetime) {
  const auto c = compiler::compile_network(graph_models()[2].build(), "", "m.onnx", {"m", 1});
  ASSERT_TRUE(c.ok()) << c.status();
  const auto files = compiler::write_c(*c, "m.onnx", nullptr);
  ASSERT_TRUE(files.ok()) << files.status();
  std::string text;
  for (const auto& f : *files)
    if (f.name == "tvmgen_default.c") text = f.text;
  // 864 values behind the first layer and 216 behind the second: at most, at the same time.
  EXPECT_EQ(number(text, "static int32_t scratch["), (864 + 216) / 4) << text;
}

}  // namespace
}  // namespace odt::test

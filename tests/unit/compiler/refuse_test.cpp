#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "onnx_fixture.h"

namespace odt::test {
namespace {

using testing::HasSubstr;

Status refuse(const std::string& bytes) {
  auto c = compiler::compile(bytes, "bad.onnx", {});
  EXPECT_FALSE(c.ok());
  return c.status();
}

std::string good() {
  OnnxBuilder b({1, 8}, 1);
  b.prequant().matmul(8, 4).oss({1, 4}, -128, 127, 100);
  return b.bytes({1, 4});
}

TEST(Refuse, UnsupportedNodeIsNamedWithItsPosition) {
  OnnxBuilder b({1, 1, 4, 4}, 2);
  b.prequant().node("Softmax", {}, "/head/Softmax");
  const auto st = refuse(b.bytes({1, 16}));
  EXPECT_EQ(st.code(), absl::StatusCode::kUnimplemented);
  const std::string text(st.message());
  EXPECT_THAT(text, HasSubstr("bad.onnx: node '/head/Softmax' (Softmax, number 8 of 8)"));
  EXPECT_THAT(text, HasSubstr("expected"));
  EXPECT_THAT(text, HasSubstr("supported"));
}

TEST(Refuse, BlockWithoutFloorNamesTheNodeThatCameInstead) {
  OnnxBuilder b({1, 8}, 3);
  b.prequant().matmul(8, 4).node("Add", {b.constant({1, 4}, {1, 2, 3, 4})});
  b.node("Mul", {b.constant({}, {0.5f})}).node("Round", {}, "r");
  const std::string text(refuse(b.bytes({1, 4})).message());
  EXPECT_THAT(text, HasSubstr("node 'r' (Round"));
  EXPECT_THAT(text, HasSubstr("expected Floor"));
}

TEST(Refuse, BranchesInsideABlockAreNamed) {
  OnnxBuilder b({1, 8}, 4);
  b.prequant().matmul(8, 4).oss({1, 4}, -128, 127, 100);
  // A sum of the block's output and what its Floor reads.
  const auto& nodes = b.graph().node();
  const std::string floor_input = nodes[nodes.size() - 2].input(0);
  b.node("Add", {floor_input});
  EXPECT_THAT(std::string(refuse(b.bytes({1, 4})).message()), HasSubstr("feeds 2 nodes"));
}

TEST(Refuse, EveryTruncationIsOneErrorAndNeverACrash) {
  const std::string bytes = good();
  ASSERT_TRUE(compiler::compile(bytes, "good.onnx", {}).ok());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto c = compiler::compile(bytes.substr(0, n), "bad.onnx", {});
    ASSERT_FALSE(c.ok()) << n << " of " << bytes.size() << " bytes";
    ASSERT_THAT(std::string(c.status().message()), HasSubstr("bad.onnx"));
  }
}

TEST(Refuse, FlippedBytesNeverCrash) {
  const std::string bytes = good();
  for (std::size_t n = 0; n < bytes.size(); ++n)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = bytes;
      bad[n] = static_cast<char>(bad[n] ^ flip);
      (void)compiler::compile(bad, "bad.onnx", {});
    }
}

TEST(Refuse, GarbageAndEmptyFiles) {
  EXPECT_THAT(std::string(refuse("").message()), HasSubstr("not an ONNX model, or truncated"));
  EXPECT_THAT(std::string(refuse("PK\x03\x04 a zip").message()), HasSubstr("not an ONNX model"));
}

TEST(Refuse, WeightsThatAreNotIntegers) {
  OnnxBuilder b({1, 2}, 5);
  b.prequant().node("MatMul", {b.constant({2, 2}, {1, 2, 0.25f, 4})}, "fc");
  b.oss({1, 2}, -128, 127, 100);
  const std::string text(refuse(b.bytes({1, 2})).message());
  EXPECT_THAT(text, HasSubstr("node 'fc'"));
  EXPECT_THAT(text, HasSubstr("weight 2 is 0.25"));
}

TEST(Refuse, WeightsOfTheWrongSize) {
  OnnxBuilder b({1, 8}, 6);
  b.prequant().matmul(9, 4).oss({1, 4}, -128, 127, 100);
  EXPECT_THAT(std::string(refuse(b.bytes({1, 4})).message()), HasSubstr("do not fit its input"));
}

TEST(Refuse, ScaleThatIsNoIntegerTimesAPowerOfTwo) {
  OnnxBuilder b({1, 2}, 7);
  b.prequant().matmul(2, 2).node("Add", {b.constant({}, {1})});
  b.node("Mul", {b.constant({}, {0.3f})}).node("Floor").clip(-128, 127);
  EXPECT_THAT(std::string(refuse(b.bytes({1, 2})).message()), HasSubstr("is not (integer in"));
}

TEST(Refuse, OneOutputCannotBeClasses) {
  OnnxBuilder b({1, 8}, 8);
  b.prequant().matmul(8, 1).oss({1, 1}, -128, 127, 100);
  EXPECT_TRUE(compiler::compile(b.bytes({1, 1}), "m.onnx", {}).ok());
  b.metadata("odt.task", "classify");
  EXPECT_THAT(std::string(refuse(b.bytes({1, 1})).message()), HasSubstr("expected 2..128"));
}

TEST(Refuse, BatchOtherThanOne) {
  OnnxBuilder b({4, 8}, 9);
  b.prequant().matmul(8, 2).oss({1, 2}, -128, 127, 100);
  EXPECT_THAT(std::string(refuse(b.bytes({4, 2})).message()), HasSubstr("batch 4"));
}

TEST(Refuse, MetadataOfTheWrongLength) {
  OnnxBuilder b({1, 8}, 10);
  b.prequant().matmul(8, 2).oss({1, 2}, -128, 127, 100);
  b.metadata("odt.target_correct", "1,2,3");
  EXPECT_THAT(std::string(refuse(b.bytes({1, 2})).message()), HasSubstr("odt.target_correct"));
}

TEST(Refuse, TextFromTheFileIsMadePrintable) {
  OnnxBuilder b({1, 8}, 11);
  b.prequant().node("Evil\x1b[31m", {}, "name\nwith\tcontrols");
  const std::string text(refuse(b.bytes({1, 8})).message());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace odt::test

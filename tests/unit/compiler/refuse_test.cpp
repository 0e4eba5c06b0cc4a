#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

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

// What hostile or unlucky files hold; each is one line that says where and what was expected.
struct Refused {
  const char* what;
  std::function<void(OnnxBuilder&)> spoil;  // of a small good graph, output [1,4]
  const char* expected;
};

onnx::NodeProto* node_of(OnnxBuilder& b, const std::string& op) {
  for (auto& n : *b.graph().mutable_node())
    if (n.op_type() == op) return &n;
  return nullptr;
}

const std::vector<Refused>& refused() {
  static const std::vector<Refused> kCases = {
      {"cycle",
       [](OnnxBuilder& b) {
         node_of(b, "Conv")->set_input(0, b.graph().node(b.graph().node_size() - 1).output(0));
       },
       "cycle"},
      {"missing input", [](OnnxBuilder& b) { node_of(b, "Conv")->set_input(0, "gone"); },
       "reads 'gone', which nothing makes"},
      {"duplicate output",
       [](OnnxBuilder& b) { node_of(b, "Relu")->set_output(0, node_of(b, "Conv")->output(0)); },
       "another node already"},
      {"two inputs",
       [](OnnxBuilder& b) {
         *b.graph().add_input() = b.graph().input(0);
         b.graph().mutable_input(1)->set_name("more");
       },
       "two inputs"},
      {"input of int64",
       [](OnnxBuilder& b) {
         b.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
       },
       "expected float32"},
      {"zero dimension",
       [](OnnxBuilder& b) {
         b.graph()
             .mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(2)
             ->set_dim_value(0);
       },
       "not in 1..65535"},
      {"huge input",
       [](OnnxBuilder& b) {
         for (int d : {2, 3})
           b.graph()
               .mutable_input(0)
               ->mutable_type()
               ->mutable_tensor_type()
               ->mutable_shape()
               ->mutable_dim(d)
               ->set_dim_value(65535);
       },
       "at most 65535"},
      {"external data",
       [](OnnxBuilder& b) {
         b.graph().mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
       },
       "external data"},
      {"NaN offset",
       [](OnnxBuilder& b) {
         for (auto& t : *b.graph().mutable_initializer())
           if (t.dims_size() == 4 && t.dims(0) == 1) t.set_float_data(0, NAN);
       },
       "out of range"},
      {"NaN clip", [](OnnxBuilder& b) { b.clip(-128, NAN); }, "expected two integers"},
      {"pool of a list",
       [](OnnxBuilder& b) {
         b.node("MaxPool");
         b.ints("kernel_shape", {2, 2});
       },
       "expected"},
      {"kernel larger than the input",
       [](OnnxBuilder& b) { node_of(b, "MaxPool")->mutable_attribute(0)->set_ints(0, 200); },
       "larger than its padded input"},
      {"groups that do not divide",
       [](OnnxBuilder& b) {
         auto* a = node_of(b, "Conv")->add_attribute();
         a->set_name("group");
         a->set_type(onnx::AttributeProto::INT);
         a->set_i(3);
       },
       "do not fit"},
      {"linear resize", [](OnnxBuilder& b) { node_of(b, "MaxPool")->set_op_type("Resize"); },
       "node"},
      {"unknown operator", [](OnnxBuilder& b) { node_of(b, "MaxPool")->set_op_type("LSTM"); },
       "'(unnamed)' (LSTM, number 1"},
      {"operator of another domain",
       [](OnnxBuilder& b) { node_of(b, "MaxPool")->set_domain("com.vendor"); },
       "com.vendor.MaxPool"},
      {"average without its padding",
       [](OnnxBuilder& b) {
         auto* n = node_of(b, "MaxPool");
         n->set_op_type("AveragePool");
         auto* a = n->add_attribute();
         a->set_name("pads");
         a->set_type(onnx::AttributeProto::INTS);
         for (int i = 0; i < 4; ++i) a->add_ints(1);
       },
       "count_include_pad"},
      {"scale without an offset",
       [](OnnxBuilder& b) {
         b.metadata("odt.task", "regress");
         b.metadata("odt.target_scale", "1");
       },
       "odt.target_offset"},
      {"two scales for four outputs",
       [](OnnxBuilder& b) {
         b.metadata("odt.task", "regress");
         b.metadata("odt.target_offset", "1");
         b.metadata("odt.target_scale", "1,2");
       },
       "4 numbers, one for each output, or one"},
      {"scale of 0",
       [](OnnxBuilder& b) {
         b.metadata("odt.task", "regress");
         b.metadata("odt.target_offset", "1");
         b.metadata("odt.target_scale", "1,2,0,4");
       },
       "not 0"},
      {"task", [](OnnxBuilder& b) { b.metadata("odt.task", "win"); }, "classify, regress"},
      {"autoencoder of another shape", [](OnnxBuilder& b) { b.metadata("odt.task", "autoencode"); },
       "those of the input"},
  };
  return kCases;
}

TEST(Refuse, TableOfHostileFiles) {
  for (const auto& c : refused()) {
    SCOPED_TRACE(c.what);
    OnnxBuilder b({1, 1, 6, 6}, 77);
    b.prequant().conv(1, 2, 3, 3).oss({1, 2, 1, 1}, -255, 255, 100).node("Relu").clip(0, 255);
    b.node("MaxPool");
    b.ints("kernel_shape", {2, 2});
    b.ints("strides", {2, 2});
    b.node("Flatten").matmul(8, 4).oss({1, 4}, -128, 127, 100);
    ASSERT_TRUE(compiler::compile(b.bytes({1, 4}), "good.onnx", {}).ok());
    c.spoil(b);
    const std::string text(refuse(b.bytes({1, 4})).message());
    EXPECT_THAT(text, HasSubstr("bad.onnx: "));
    EXPECT_THAT(text, HasSubstr(c.expected));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Refuse, ThousandsOfNodes) {
  OnnxBuilder b({1, 8}, 12);
  b.prequant();
  for (int n = 0; n < 5000; ++n) b.node("Relu");
  b.logits(8, 2);
  EXPECT_THAT(std::string(refuse(b.bytes({1, 2})).message()),
              HasSubstr("nodes depend on the input"));
}

}  // namespace
}  // namespace odt::test

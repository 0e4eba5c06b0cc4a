// Float32 files as DFP16 images: logits against the nodes in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "compiler/float_match.h"
#include "data/quantize.h"
#include "float_fixture.h"
#include "worker/host_model.h"

namespace odt::test {
namespace {

using compiler::Arithmetic;
using compiler::CompileOptions;
using compiler::LayerKind;
using testing::HasSubstr;

// Inputs and every tensor are rounded to 2^-15 of their largest value (half a unit at worst: 2^-16
// to 2^-15), weights to 2^-16 of theirs. Such errors are independent: over a sum of n terms they
// grow by sqrt(n) where the sum itself does, so each op adds some 2^-15 of the largest value. A
// depth of ten ops, and sums that cancel to a third of their terms' size, make 10 * 3 * 2^-15.
constexpr double kBound = 1e-3;

compiler::Compiled compile_float(const std::string& bytes, CompileOptions options = {}) {
  auto c = compiler::compile(bytes, "float.onnx", options);
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *std::move(c) : compiler::Compiled{};
}

data::Dataset one_sample(const data::InputStage& stage, const std::vector<float>& input) {
  data::Dataset d;
  d.dtype = data::Dtype::kF32;
  d.shape = stage.shape;
  d.counts[0] = 1;
  d.values.resize(4 * input.size());
  std::memcpy(d.values.data(), input.data(), d.values.size());
  return d;
}

// Largest |logit - expected| over samples, relative to the largest |expected|.
double error_of(const compiler::Compiled& compiled, FloatBuilder& b, double spread = 1) {
  auto spec = worker::HostTrainer::inference_spec(true);
  if (compiled.network.task != compiler::Task::kClassify) spec.loss = ODT_LOSS_MSE;
  auto host = worker::HostTrainer::create(compiled.image, spec);
  EXPECT_TRUE(host.ok()) << host.status();
  auto stage = data::parse_input_stage(compiled.manifest);
  EXPECT_TRUE(stage.ok()) << stage.status();
  if (!host.ok() || !stage.ok()) return 1e9;
  double largest = 0, error = 0;
  for (int s = 0; s < 6; ++s) {
    std::vector<float> input;
    for (std::uint32_t i = 0; i < stage->count(); ++i)
      input.push_back(static_cast<float>(b.normal() * spread));
    auto q = data::quantize_samples(*stage, one_sample(*stage, input), 0, 1);
    EXPECT_TRUE(q.ok()) << q.status();
    std::vector<std::int16_t> logits(compiled.network.n_classes());
    std::int32_t e = 0;
    EXPECT_EQ(odt_trainer_infer16((*host)->get(), q->data(), logits.data(), &e), ODT_OK);
    const Tensor64 expected = evaluate64(b.model(), input);
    EXPECT_EQ(expected.v.size(), logits.size());
    for (std::size_t c = 0; c < logits.size(); ++c) {
      largest = std::max(largest, std::abs(expected.v[c]));
      error = std::max(error, std::abs(std::ldexp(logits[c], e) - expected.v[c]));
    }
  }
  EXPECT_GT(largest, 0);
  return error / largest;
}

compiler::Compiled expect_close(FloatBuilder& b, const std::string& output,
                                CompileOptions options = {}, double spread = 1) {
  auto compiled = compile_float(b.bytes(output), options);
  if (compiled.image.empty()) return compiled;
  EXPECT_LT(error_of(compiled, b, spread), kBound);
  return compiled;
}

std::vector<LayerKind> kinds(const compiler::Compiled& c) {
  std::vector<LayerKind> out;
  for (const auto& l : c.network.layers) out.push_back(l.kind);
  return out;
}

// ---- single constructs -------------------------------------------------------------------------

TEST(Float, DenseByMatMulAddAndGemm) {
  FloatBuilder b({1, 20}, 1);
  auto t = b.node("MatMul", {"x", b.random({20, 12}, 0.2)});
  t = b.node("Relu", {b.node("Add", {t, b.random({12}, 0.3)})});
  t = b.node("Gemm", {t, b.random({12, 5}, 0.3), b.random({1, 5}, 0.3)});
  b.real("alpha", 0.5f);
  b.real("beta", 2.0f);
  const auto c = expect_close(b, t);
  EXPECT_EQ(kinds(c), (std::vector{LayerKind::kLinear, LayerKind::kLinear}));
  EXPECT_TRUE(c.network.layers[0].relu);
  EXPECT_EQ(c.network.arithmetic, Arithmetic::kDfp16);
  EXPECT_EQ(c.network.input_exponent, -12);
  for (const auto& l : c.network.layers) {  // the smallest exponent: 15 bits are used
    const auto most =
        std::abs(*std::max_element(l.weights.begin(), l.weights.end(),
                                   [](int x, int y) { return std::abs(x) < std::abs(y); }));
    EXPECT_GE(most, 16384);
  }
}

struct ConvCase {
  std::int64_t in, out, h, w, kernel, groups;
  std::vector<std::int64_t> pads, strides, dilations;
  const char* auto_pad;
};

TEST(Float, ConvolutionsOfEveryGeometry) {
  const std::vector<ConvCase> cases = {
      {1, 4, 8, 6, 3, 1, {}, {}, {}, nullptr},
      {3, 6, 9, 7, 3, 1, {1, 1, 1, 1}, {2, 2}, {}, nullptr},
      {2, 4, 9, 9, 3, 1, {0, 2, 1, 0}, {1, 2}, {2, 1}, nullptr},
      {4, 4, 7, 7, 3, 4, {1, 1, 1, 1}, {}, {}, nullptr},
      {4, 8, 7, 5, 1, 2, {}, {}, {}, nullptr},
      {4, 8, 8, 8, 5, 4, {2, 2, 2, 2}, {3, 3}, {}, nullptr},
      {2, 3, 9, 8, 4, 1, {}, {2, 3}, {}, "SAME_UPPER"},
      {2, 3, 9, 8, 4, 1, {}, {2, 3}, {}, "SAME_LOWER"},
  };
  for (std::size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE(n);
    const ConvCase& c = cases[n];
    FloatBuilder b({1, c.in, c.h, c.w}, static_cast<std::uint32_t>(n));
    auto t = b.conv("x", c.out, c.kernel, c.groups);
    if (!c.pads.empty()) b.ints("pads", c.pads);
    if (!c.strides.empty()) b.ints("strides", c.strides);
    if (!c.dilations.empty()) b.ints("dilations", c.dilations);
    if (c.auto_pad != nullptr) b.text("auto_pad", c.auto_pad);
    expect_close(b, b.gemm(b.node("Flatten", {b.node("Relu", {t})}), 4));
  }
}

TEST(Float, PoolsOfEveryKind) {
  for (const std::string op : {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
                               "ReduceMean", "MaxPool ceil", "AveragePool padded"}) {
    SCOPED_TRACE(op);
    FloatBuilder b({1, 2, 8, 7}, 3);
    const std::string conv = b.conv("x", 4, 3);
    const std::string kind = op.substr(0, op.find(' '));
    std::vector<std::string> inputs = {conv};
    auto t = b.node(kind, inputs);
    if (kind == "ReduceMean") {
      b.ints("axes", {2, 3});
      b.integer("keepdims", 0);
    }
    if (kind == "MaxPool" || kind == "AveragePool") {
      b.ints("kernel_shape", {3, 2});
      b.ints("strides", {2, 2});
      if (op == "MaxPool ceil") b.integer("ceil_mode", 1);
      if (op == "AveragePool padded") {
        b.ints("pads", {1, 0, 1, 1});
        b.integer("count_include_pad", 1);
      }
    }
    if (b.dims(t).size() > 2) t = b.node("Flatten", {t});
    expect_close(b, b.gemm(t, 3));
  }
}

TEST(Float, BatchNormalizationGoesIntoTheLayerInFront) {
  FloatBuilder b({1, 3, 6, 6}, 4);
  auto t = b.node("Relu", {b.batch_norm(b.conv("x", 5, 3, 1, false))});
  t = b.batch_norm(b.gemm(b.node("Flatten", {t}), 6));
  const auto c = expect_close(b, b.gemm(b.node("Relu", {t}), 3));
  EXPECT_EQ(kinds(c), (std::vector{LayerKind::kConv, LayerKind::kFlatten, LayerKind::kLinear,
                                   LayerKind::kLinear}));
}

TEST(Float, BatchNormalizationAtTheInputGoesIntoTheInputStage) {
  for (const bool image : {false, true}) {
    FloatBuilder b(image ? FloatBuilder::Dims{1, 3, 5, 5} : FloatBuilder::Dims{1, 9}, 5);
    auto t = b.node("Sub", {"x", b.constant({}, {100})});
    t = b.batch_norm(b.node("Mul", {t, b.constant({}, {0.01f})}));
    t = image ? b.node("Flatten", {b.conv(t, 4, 3)}) : t;
    const auto c = expect_close(b, b.gemm(t, 4), {}, 100);
    EXPECT_EQ(c.network.prequant->mult.size(), image ? 3u : 9u);
    EXPECT_EQ(c.network.layers.size(), image ? 3u : 1u);
  }
}

TEST(Float, BatchNormalizationAloneIsADepthwiseConvolution) {
  FloatBuilder b({1, 3, 6, 6}, 6);
  auto t = b.node("Relu", {b.conv("x", 4, 3)});
  t = b.node("Relu", {b.batch_norm(t)});
  b.ints("none", {});
  auto u = b.conv(t, 4, 3);
  b.ints("pads", {1, 1, 1, 1});
  const auto c = expect_close(b, b.gemm(b.node("Flatten", {b.node("Add", {u, t})}), 3));
  ASSERT_EQ(c.network.layers.size(), 6u);
  EXPECT_EQ(c.network.layers[1].conv.groups, 4);
  EXPECT_EQ(c.network.layers[1].weight_shape, (compiler::Shape{4, 1, 1, 1}));
  EXPECT_TRUE(c.network.layers[1].relu);
}

TEST(Float, BatchNormalizationBehindReluGoesIntoTheLayersBehind) {
  FloatBuilder b({1, 2, 6, 6}, 7);
  auto t = b.batch_norm(b.node("Relu", {b.conv("x", 4, 3)}));
  t = b.batch_norm(b.node("Relu", {b.conv(t, 6, 3, 2)}));
  t = b.batch_norm(b.node("Relu", {b.gemm(b.node("Flatten", {t}), 5)}));
  const auto c = expect_close(b, b.gemm(t, 3));
  EXPECT_EQ(c.network.layers.size(), 5u);  // with padding the first one could not
}

TEST(Float, ResidualAddConcatAndResize) {
  FloatBuilder b({1, 2, 6, 4}, 8);
  const auto a = b.node("Relu", {b.conv("x", 4, 1)});
  const auto c = b.conv(a, 4, 3);
  b.ints("pads", {1, 1, 1, 1});
  const auto sum = b.node("Relu", {b.node("Add", {c, a})});
  auto cat = b.node("Concat", {sum, a, "x"});
  b.integer("axis", 1);
  cat = b.node("Sub", {b.node("Neg", {cat}), cat});
  auto up = b.node("Resize", {cat, "", b.constant({4}, {1, 1, 2, 3})});
  b.text("mode", "nearest");
  b.text("coordinate_transformation_mode", "asymmetric");
  b.text("nearest_mode", "floor");
  up = b.node("GlobalAveragePool", {b.node("Relu", {b.conv(up, 5, 3)})});
  expect_close(b, b.gemm(b.node("Squeeze", {up}), 4));
}

TEST(Float, ReluMovesThroughPoolsAndConcat) {
  FloatBuilder b({1, 2, 6, 6}, 9);
  const auto a = b.conv("x", 3, 3), c = b.conv("x", 2, 3);
  auto t = b.node("Concat", {a, c});
  b.integer("axis", 1);
  t = b.node("MaxPool", {t});
  b.ints("kernel_shape", {2, 2});
  b.ints("strides", {2, 2});
  t = b.node("Relu", {b.node("Relu", {t})});
  const auto m = expect_close(b, b.gemm(b.node("Flatten", {t}), 3));
  EXPECT_TRUE(m.network.layers[0].relu && m.network.layers[1].relu);
  EXPECT_EQ(m.network.layers.size(), 6u);
}

std::string relu6(FloatBuilder& b, const std::string& x, float top = 6) {
  return b.node("Clip", {x, b.constant({}, {0}), b.constant({}, {top})});
}

// min(x, top) is top - Relu(top - x): two fixed layers, the second into a layer behind that can.
TEST(Float, ReluWithAnUpperBound) {
  FloatBuilder b({1, 2, 8, 8}, 21);
  auto t = relu6(b, b.conv("x", 6, 3), 0.8f);
  t = b.conv(t, 6, 3, 6);  // padded: takes no shift
  b.ints("pads", {1, 1, 1, 1});
  t = relu6(b, t, 0.5f);
  t = relu6(b, b.conv(t, 5, 1), 0.7f);
  t = b.node("MaxPool", {t});
  b.ints("kernel_shape", {2, 2});
  const std::string m_output = b.gemm(b.node("Flatten", {t}), 3);
  const auto m = expect_close(b, m_output);
  std::size_t fixed = 0, trainable = 0;
  for (const auto& l : m.network.layers) {
    fixed += l.fixed ? 1 : 0;
    trainable += l.trainable ? 1 : 0;
    EXPECT_FALSE(l.fixed && l.trainable);
  }
  EXPECT_EQ(fixed, 5u);  // the second bound's other half is in the 1x1 convolution behind it
  EXPECT_EQ(trainable, 4u);
  EXPECT_EQ(m.network.layers.size(), 11u);
  // Only layers of the file count.
  CompileOptions last;
  last.trainable_layers = 5;
  EXPECT_THAT(std::string(compiler::compile(b.bytes(m_output), "m.onnx", last).status().message()),
              HasSubstr("expected 1..4"));
}

// A vector has no channels: a dense layer with a diagonal, which is never trained.
TEST(Float, UpperBoundsAndScalesOfVectors) {
  FloatBuilder b({1, 12}, 22);
  auto t = relu6(b, b.gemm("x", 9), 0.6f);
  t = relu6(b, b.gemm(t, 7), 0.4f);
  const auto m = expect_close(b, b.batch_norm(relu6(b, b.gemm(t, 5), 0.5f)));
  std::size_t fixed = 0;
  for (const auto& l : m.network.layers) {
    fixed += l.fixed ? 1 : 0;
    EXPECT_NE(l.fixed, l.trainable);
    for (std::size_t i = 0; l.fixed && i < l.weights.size(); ++i)
      EXPECT_EQ(l.weights[i] != 0, i % (l.out_shape[0] + 1) == 0);
  }
  EXPECT_EQ(fixed, 4u);  // what is behind a bound takes its other half, but for the last one
}

TEST(Float, ReluBehindAnAverageIsALayerOfItsOwn) {
  FloatBuilder b({1, 2, 6, 6}, 10);
  auto t = b.node("AveragePool", {b.conv("x", 3, 3)});
  b.ints("kernel_shape", {2, 2});
  t = b.node("Clip", {t, b.constant({}, {0})});
  const auto m = expect_close(b, b.gemm(b.node("Flatten", {t}), 3));
  EXPECT_EQ(m.network.layers[2].kind, LayerKind::kConv);
}

// Rule 1.13's own factor is 1.001 of 1/80.
TEST(Float, AveragesOfAnyAreaKeepTheirGain) {
  FloatBuilder b({1, 2, 10, 8}, 13);
  const auto t = b.node("GlobalAveragePool", {b.node("Add", {"x", b.constant({}, {5})})});
  const auto c = compile_float(b.bytes(b.gemm(b.node("Flatten", {t}), 3)));
  EXPECT_LT(error_of(c, b), 2e-4);
}

TEST(Float, OneDimensionalConvolutions) {
  FloatBuilder b({1, 40}, 11);
  auto t = b.node("Unsqueeze", {"x", b.constant_i64({1})});
  t = b.node("Relu", {b.batch_norm(b.conv(t, 4, 5))});
  b.ints("none", {});
  t = b.node("MaxPool", {t});
  b.ints("kernel_shape", {2});
  b.ints("strides", {2});
  t = b.node("GlobalAveragePool", {b.conv(t, 6, 3)});
  expect_close(b, b.gemm(b.node("Flatten", {t}), 3));
}

TEST(Float, SoftmaxAtTheEndChangesNothing) {
  std::string images[3];
  for (const auto* end : {"", "Softmax", "LogSoftmax"}) {
    FloatBuilder b({1, 8}, 12);
    auto t = b.gemm("x", 4);
    if (*end != 0) t = b.node(end, {t});
    images[*end == 0 ? 0 : *end == 'S' ? 1 : 2] = expect_close(b, t).image;
  }
  EXPECT_EQ(images[0], images[1]);
  EXPECT_EQ(images[0], images[2]);
}

TEST(Float, AutoencodersAndRegressions) {
  FloatBuilder a({1, 6}, 14);
  const auto code = a.node("Relu", {a.gemm("x", 3)});
  EXPECT_EQ(expect_close(a, a.gemm(code, 6)).network.task, compiler::Task::kAutoencode);
  FloatBuilder r({1, 6}, 15);
  const auto c = compile_float(r.bytes(r.gemm(r.node("Relu", {r.gemm("x", 3)}), 1)));
  EXPECT_EQ(c.network.task, compiler::Task::kRegress);
  EXPECT_EQ(c.network.target_exponent, -4);
  EXPECT_TRUE(c.network.calibration.target_scale.empty()) << "as the data reaches";
  FloatBuilder t({1, 6}, 15);
  auto* exponent = t.model().add_metadata_props();
  exponent->set_key("odt.target_exponent");
  exponent->set_value("-3");
  const auto own = compile_float(t.bytes(t.gemm(t.node("Relu", {t.gemm("x", 3)}), 1)));
  EXPECT_EQ(own.network.target_exponent, -3);
  EXPECT_EQ(own.network.calibration.target_scale, std::vector<float>{8})
      << "the targets themselves";
  EXPECT_EQ(own.network.calibration.target_offset, std::vector<float>{0});
}

struct RandomLike {
  FloatBuilder builder{{1, 2, 6, 6}, 19};
  std::string build() {
    const auto a = builder.node("Relu", {builder.batch_norm(builder.conv("x", 4, 3))});
    const auto c = builder.conv(a, 4, 1);
    const auto t = builder.node("GlobalAveragePool", {builder.node("Add", {c, a})});
    return builder.bytes(builder.gemm(builder.node("Flatten", {t}), 3));
  }
};

TEST(Float, NodesInAnyOrderAndNamesGiveTheSameImage) {
  RandomLike b;
  const std::string bytes = b.build();
  onnx::ModelProto turned = b.builder.model();
  std::reverse(turned.mutable_graph()->mutable_node()->begin(),
               turned.mutable_graph()->mutable_node()->end());
  EXPECT_EQ(compile_float(turned.SerializeAsString()).image, compile_float(bytes).image);
}

TEST(Float, InputTypes) {
  FloatBuilder b({1, 8}, 16);
  b.model().clear_metadata_props();
  const std::string bytes = b.bytes(b.gemm("x", 4));
  CompileOptions options;
  options.input.dtype = compiler::Storage::kU8;
  const auto u8 = compile_float(bytes, options);
  EXPECT_EQ(u8.network.input_exponent, -8);
  EXPECT_FALSE(u8.network.prequant);
  options.input = {-15, std::nullopt};
  const auto fine = compile_float(bytes, options);
  EXPECT_EQ(fine.network.input_storage, compiler::Storage::kS16);
  EXPECT_LT(error_of(fine, b, 0.2), kBound);
  options.input.exponent = 7;
  EXPECT_LT(error_of(compile_float(bytes, options), b, 2e5), kBound);
  auto* entry = b.model().add_metadata_props();
  entry->set_key("odt.input_exponent");
  entry->set_value("-10");
  const auto named = compile_float(b.model().SerializeAsString());
  EXPECT_EQ(named.network.input_exponent, -10);
  for (const auto& w : named.network.warnings) EXPECT_THAT(w, testing::Not(HasSubstr("exponent")));
  const auto manifest = nlohmann::json::parse(named.manifest);
  EXPECT_EQ(manifest["input"]["dtype"], "i16");
  EXPECT_EQ(manifest["input"]["prequant"]["clip_lo"], -32767);
}

// ---- random graphs -----------------------------------------------------------------------------

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed)
      : b_({1, 1 + seed % 4, 5 + seed % 5, 4 + seed % 6}, seed) {
    tensors_.push_back("x");
  }
  FloatBuilder& builder() { return b_; }

  std::string build() {
    for (int n = b_.pick(3, 9); n > 0; --n) tensors_.push_back(grow(pick()));
    std::string t = tensors_.back();
    t = b_.node(b_.pick(0, 1) != 0 ? "GlobalAveragePool" : "Relu", {t});
    t = b_.node("Flatten", {t});
    if (b_.pick(0, 1) != 0) t = b_.batch_norm(b_.node("Relu", {b_.gemm(t, b_.pick(2, 9))}));
    return b_.gemm(t, b_.pick(2, 6));
  }

 private:
  std::string pick() {  // rather late ones
    const int n = static_cast<int>(tensors_.size());
    return tensors_[static_cast<std::size_t>(std::max(b_.pick(0, n - 1), b_.pick(0, n - 1)))];
  }
  std::string like(const std::string& x, bool channels) {
    std::vector<std::string> found;
    for (const auto& t : tensors_) {
      auto dims = b_.dims(t);
      if (!channels) dims[1] = b_.dims(x)[1];
      if (dims == b_.dims(x)) found.push_back(t);
    }
    return found[static_cast<std::size_t>(b_.pick(0, static_cast<int>(found.size()) - 1))];
  }

  std::string grow(const std::string& x) {
    const auto d = b_.dims(x);
    const auto small = std::min(d[2], d[3]);
    switch (b_.pick(0, 8)) {
      case 0:
      case 1:
        return convolution(x, small);
      case 2:
        return b_.batch_norm(x);
      case 3:
        return b_.node("Relu", {x});
      case 4:
        return b_.node("Add", {x, like(x, true)});
      case 5: {
        const auto t = b_.node("Concat", {x, like(x, false)});
        b_.integer("axis", 1);
        return d[1] > 12 ? b_.conv(t, 3, 1) : t;
      }
      case 6:
        if (small < 2) return b_.node("Mul", {x, b_.random({d[1], 1, 1}, 0.5, 1)});
        return pool(x);
      case 7:
        if (d[2] * d[3] > 60) return b_.node("Add", {b_.random({1, d[1], 1, 1}, 1), x});
        return upsampled(x);
      default:
        return b_.node("Relu", {convolution(x, small)});
    }
  }
  std::string convolution(const std::string& x, std::int64_t small) {
    const std::int64_t k = std::min<std::int64_t>(b_.pick(1, 3), small);
    const std::int64_t in = b_.dims(x)[1];
    const auto t =
        b_.pick(0, 2) == 0 ? b_.conv(x, in * b_.pick(1, 2), k, in) : b_.conv(x, b_.pick(1, 6), k);
    if (b_.pick(0, 1) != 0) b_.ints("pads", {k - 1, b_.pick(0, 1), 0, b_.pick(0, 1)});
    if (b_.pick(0, 2) == 0) b_.ints("strides", {b_.pick(1, 2), 2});
    return t;
  }
  std::string pool(const std::string& x) {
    const bool max = b_.pick(0, 1) != 0;
    const auto t = b_.node(max ? "MaxPool" : "AveragePool", {x});
    b_.ints("kernel_shape", {2, 2});
    if (b_.pick(0, 1) != 0) b_.ints("strides", {2, 1});
    if (max && b_.pick(0, 1) != 0) b_.integer("ceil_mode", 1);
    return t;
  }
  std::string upsampled(const std::string& x) {
    const auto t = b_.node("Upsample", {x, b_.constant({4}, {1, 1, 2, 1})});
    b_.text("mode", "nearest");
    return t;
  }

  FloatBuilder b_;
  std::vector<std::string> tensors_;
};

TEST(Float, RandomGraphsEqualTheirNodes) {
  int branched = 0;
  for (std::uint32_t seed = 100; seed < 260; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph g(seed);
    const auto c = expect_close(g.builder(), g.build());
    branched += compiler::is_chain(c.network) ? 0 : 1;
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(branched, 30);
}

}  // namespace
}  // namespace odt::test

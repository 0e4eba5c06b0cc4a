// Trained weights back in the ONNX file: through training, export, the reader and the file's nodes.
#include "compiler/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/ids.h"
#include "compiler/vectors.h"
#include "data/odtw.h"
#include "onnx_fixture.h"

namespace odt::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kHead = 44;  // of odt_weights, with the model's hash

// A model after some steps on random samples.
struct Trained {
  compiler::Compiled compiled;
  std::string weights;
  std::vector<float> inputs;         // of three samples
  std::vector<std::int16_t> logits;  // of them, trained
};

std::string weights_of(odt_trainer_t* t) {
  std::string out(odt_weights_size(t), '\0');
  odt_weights_read(t, false, 0, reinterpret_cast<std::uint8_t*>(out.data()),
                   static_cast<std::uint32_t>(out.size()));
  return out;
}

std::string image_weights(const std::string& image) {
  compiler::GoldenTrainer host(image);
  EXPECT_TRUE(host.start(1, 1).ok());
  return weights_of(host.trainer.get());
}

Trained train(const std::string& onnx, std::uint32_t trainable) {
  Trained run;
  auto compiled = compiler::compile(onnx, "m.onnx", {"m", trainable});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return run;
  run.compiled = *std::move(compiled);
  const auto in = data::parse_input_stage(run.compiled.manifest);
  compiler::GoldenTrainer host(run.compiled.image);
  EXPECT_TRUE(host.start(24, 4).ok());
  const auto all = compiler::spread_inputs(*in, 24);
  const auto bytes = compiler::sample_bytes(*in, compiler::quantised(*in, all));
  for (std::uint32_t at = 0; at < 24; at += 4) {
    std::int8_t labels[4];
    for (std::uint32_t i = 0; i < 4; ++i)
      labels[i] = static_cast<std::int8_t>((at + i) % run.compiled.network.n_classes());
    odt_samples_t batch{};
    batch.dtype = in->dtype == data::Dtype::kU8 ? ODT_U8 : ODT_S8;
    batch.count = 4;
    batch.sample_len = in->count();
    batch.label_len = 1;
    batch.labels = labels;
    batch.data = bytes.data() + std::size_t{at} * in->count();
    odt_step_record_t record{};
    EXPECT_EQ(odt_trainer_step(host.trainer.get(), &batch, &record, nullptr), ODT_OK);
  }
  run.weights = weights_of(host.trainer.get());
  run.inputs.assign(all.begin(), all.begin() + 3 * in->count());
  run.logits = compiler::golden_logits(host, *in, compiler::quantised(*in, run.inputs), 3)->values;
  return run;
}

compiler::ExportOptions as_m(const std::string& name = "m") {
  compiler::ExportOptions o;
  o.name = name;
  return o;
}

compiler::Exported export_ok(const std::string& onnx, const std::string& weights) {
  auto e = compiler::export_onnx(onnx, "m.onnx", weights, "w.odtw", as_m());
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *std::move(e) : compiler::Exported{};
}

Status refused(const std::string& onnx, const std::string& weights, bool exact = false) {
  compiler::ExportOptions o = as_m();
  o.exact = exact;
  const auto e = compiler::export_onnx(onnx, "m.onnx", weights, "w.odtw", o);
  EXPECT_FALSE(e.ok());
  return e.status();
}

onnx::ModelProto parsed(const std::string& bytes) {
  onnx::ModelProto m;
  EXPECT_TRUE(m.ParseFromString(bytes));
  return m;
}

// Names of the initialisers that differ; empties the numbers of both.
std::vector<std::string> differing(onnx::GraphProto& a, onnx::GraphProto& b) {
  std::vector<std::string> out;
  for (int n = 0; n < a.initializer_size(); ++n) {
    auto *x = a.mutable_initializer(n), *y = b.mutable_initializer(n);
    if (x->SerializeAsString() != y->SerializeAsString()) out.push_back(x->name());
    x->clear_float_data();
    y->clear_float_data();
  }
  return out;
}

// Everything holds: the image, the nodes in float32, and nothing but numbers has changed.
void expect_round_trip(const std::string& onnx, std::uint32_t trainable) {
  const Trained run = train(onnx, trainable);
  ASSERT_FALSE(run.weights.empty());
  ASSERT_NE(run.weights.substr(kHead), image_weights(run.compiled.image).substr(kHead));
  const auto exported = export_ok(onnx, run.weights);
  EXPECT_GT(exported.changed_weights, 0u);
  EXPECT_GT(exported.changed_offsets, 0u);
  EXPECT_TRUE(exported.warnings.empty());
  const auto again = compiler::compile(exported.onnx, "m.onnx", {"m", trainable});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(image_weights(again->image).substr(kHead), run.weights.substr(kHead));
  const auto model = parsed(exported.onnx);
  const std::size_t n = run.inputs.size() / 3, classes = run.logits.size() / 3;
  for (std::size_t s = 0; s < 3; ++s) {
    const auto z = evaluate(model, {run.inputs.begin() + static_cast<std::ptrdiff_t>(s * n),
                                    run.inputs.begin() + static_cast<std::ptrdiff_t>((s + 1) * n)});
    for (std::size_t c = 0; c < classes; ++c)
      EXPECT_EQ(z.v[c], static_cast<float>(run.logits[s * classes + c])) << s << " " << c;
  }
}

std::string small_net(std::uint32_t seed) {
  OnnxBuilder b({1, 1, 6, 5}, seed);
  b.prequant().conv(1, 3, 3, 2).oss({1, 3, 1, 1}, -255, 255, 100).node("Relu").clip(0, 255);
  b.node("Flatten").matmul(3 * 4 * 4, 8).oss({1, 8}, 0, 255, 300).node("Relu").clip(0, 255);
  b.matmul(8, 3).oss({1, 3}, -128, 127, 300);
  b.metadata("odt.target_correct", "60,50,40");
  b.metadata("odt.target_wrong", "-10,-20,-30");
  return b.bytes({1, 3});
}

TEST(Export, ConvAndMatMulRoundTripAndNothingButNumbersChanges) {
  const std::string onnx = small_net(1);
  expect_round_trip(onnx, 3);
  const Trained run = train(onnx, 3);
  const auto exported = export_ok(onnx, run.weights);
  auto before = parsed(onnx), after = parsed(exported.onnx);
  EXPECT_EQ(differing(*before.mutable_graph(), *after.mutable_graph()).size(), 6u);
  EXPECT_EQ(before.graph().SerializeAsString(), after.graph().SerializeAsString());
  ASSERT_EQ(after.metadata_props_size(), 3);
  EXPECT_EQ(after.metadata_props(0).value(), "60,50,40");
  EXPECT_EQ(after.metadata_props(2).key(), "odt.weights_hash");
  EXPECT_EQ(after.metadata_props(2).value(), sha256(run.weights).hex());
}

TEST(Export, FrozenLayersStayAsTheyAre) {
  const std::string onnx = small_net(2);
  const Trained run = train(onnx, 1);
  auto before = parsed(onnx), after = parsed(export_ok(onnx, run.weights).onnx);
  EXPECT_EQ(differing(*before.mutable_graph(), *after.mutable_graph()).size(), 2u);
  expect_round_trip(onnx, 2);
}

TEST(Export, GemmKeepsItsLayoutAndOffsetsGoToTheAdd) {
  for (const bool trans : {false, true}) {
    OnnxBuilder b({1, 20}, 3);
    b.prequant().gemm(20, 9, trans).oss({1, 9}, 0, 255, 200).node("Relu").clip(0, 255);
    b.gemm(9, 3, trans).oss({1, 3}, -128, 127, 300);
    const std::string onnx = b.bytes({1, 3});
    expect_round_trip(onnx, 2);
    const Trained run = train(onnx, 2);
    auto before = parsed(onnx), after = parsed(export_ok(onnx, run.weights).onnx);
    // Two weights and two constants of an Add; no bias.
    EXPECT_EQ(differing(*before.mutable_graph(), *after.mutable_graph()).size(), 4u);
  }
}

// Both layers share weights and offsets (the offsets through Identity); training parts them.
TEST(Export, SharedConstantsAreSplitWhereLayersDiffer) {
  OnnxBuilder b({1, 6}, 4);
  std::vector<float> w;
  for (int i = 0; i < 36; ++i) w.push_back(static_cast<float>(b.random(-24, 24)));
  const auto weights = b.constant({6, 6}, w);
  const auto offset = b.constant({1, 6}, std::vector<float>(6, 16));
  const auto one = b.constant({}, {1}), shift = b.constant({}, {0.03125f});
  b.prequant();
  for (const auto& o : {offset, b.identity_of(offset)}) {
    b.node("MatMul", {weights}).node("Add", {o}).node("Mul", {one}).node("Mul", {shift});
    b.node("Floor").clip(-128, 127);
  }
  const std::string onnx = b.bytes({1, 6});
  expect_round_trip(onnx, 2);
  const auto before = parsed(onnx), after = parsed(export_ok(onnx, train(onnx, 2).weights).onnx);
  EXPECT_EQ(after.graph().initializer_size(), before.graph().initializer_size() + 2);
  EXPECT_EQ(after.graph().node_size(), before.graph().node_size());
}

TEST(Export, AFrozenLayerKeepsTheConstantThatATrainedOneShared) {
  OnnxBuilder b({1, 6}, 5);
  std::vector<float> w;
  for (int i = 0; i < 36; ++i) w.push_back(static_cast<float>(b.random(-24, 24)));
  const auto weights = b.constant({6, 6}, w);
  b.prequant().node("MatMul", {weights}).oss({1, 6}, -128, 127, 100);
  b.node("MatMul", {weights}).oss({1, 6}, -128, 127, 100);
  expect_round_trip(b.bytes({1, 6}), 1);
}

TEST(Export, OneOffsetForAllOutputsBecomesOneEach) {
  OnnxBuilder b({1, 1, 5, 5}, 6);
  b.prequant().conv(1, 3, 3, 3).node("Add", {b.constant({}, {32})});
  b.node("Mul", {b.constant({}, {1})}).node("Mul", {b.constant({}, {0.015625f})});
  b.node("Floor").clip(-255, 255).node("Relu").clip(0, 255).node("Flatten");
  b.matmul(27, 3).node("Add", {b.constant_node({64})}).node("Mul", {b.constant({}, {1})});
  b.node("Mul", {b.constant({}, {0.0078125f})}).node("Floor").clip(-128, 127);
  expect_round_trip(b.bytes({1, 3}), 2);
}

TEST(Export, RawDataAndOtherTypesKeepTheirForm) {
  auto model = parsed(small_net(7));
  for (auto& t : *model.mutable_graph()->mutable_initializer()) {
    if (t.dims_size() != 4 || t.dims(0) != 3) continue;  // the convolution's weights
    std::string raw;
    for (const float v : t.float_data()) {
      const double d = v;
      raw.append(reinterpret_cast<const char*>(&d), sizeof d);
    }
    t.clear_float_data();
    t.set_data_type(onnx::TensorProto::DOUBLE);
    t.set_raw_data(raw);
  }
  const std::string onnx = model.SerializeAsString();
  const Trained run = train(onnx, 3);
  const auto exported = export_ok(onnx, run.weights);
  const auto again = compiler::compile(exported.onnx, "m.onnx", {"m", 3});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(image_weights(again->image).substr(kHead), run.weights.substr(kHead));
  int doubles = 0;
  const auto written = parsed(exported.onnx);
  for (const auto& t : written.graph().initializer())
    doubles += t.data_type() == onnx::TensorProto::DOUBLE && t.has_raw_data() ? 1 : 0;
  EXPECT_EQ(doubles, 1);
}

// A float32 file, where values are whole multiples of 2^e: the average over 35 positions scales the
// layer behind it.
TEST(Export, Dfp16WeightsGoBackAsRealNumbers) {
  OnnxBuilder b({1, 1, 7, 5}, 13);
  std::vector<float> w[2];
  for (int i = 0; i < 36; ++i) w[0].push_back(static_cast<float>(b.random(-999, 999)) / 1711.0f);
  for (int i = 0; i < 12; ++i) w[1].push_back(static_cast<float>(b.random(-999, 999)) / 333.0f);
  b.node("Conv", {b.constant({4, 1, 3, 3}, w[0]), b.constant({4}, {0.5f, -0.25f, 0.1f, 0.0f})});
  b.ints("kernel_shape", {3, 3});
  b.ints("pads", {1, 1, 1, 1});
  b.node("Relu").node("GlobalAveragePool").node("Flatten");
  b.node("Gemm", {b.constant({3, 4}, w[1]), b.constant({3}, {0.1f, 0.2f, 0.3f})});
  b.integer("transB", 1);
  const std::string onnx = b.bytes({1, 3});
  const auto compiled = compiler::compile(onnx, "m.onnx", {"m", 2});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ(compiled->network.arithmetic, compiler::Arithmetic::kDfp16);
  std::string weights = image_weights(compiled->image);
  // Every weight one step towards 0.
  std::size_t at = kHead;
  for (const std::size_t n : {36u, 12u}) {
    at += 20;
    for (std::size_t i = 0; i < n; ++i, at += 2) {
      std::int16_t m = 0;
      std::memcpy(&m, weights.data() + at, 2);
      m = static_cast<std::int16_t>(m > 0 ? m - 1 : m < 0 ? m + 1 : 0);
      std::memcpy(weights.data() + at, &m, 2);
    }
    at += 4 * (n == 36 ? 4 : 3);
  }
  ASSERT_EQ(at, weights.size());
  const auto exported = export_ok(onnx, weights);
  EXPECT_GT(exported.changed_weights, 40u);
  const auto again = compiler::compile(exported.onnx, "m.onnx", {"m", 2});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(image_weights(again->image).substr(kHead), weights.substr(kHead));
}

// With the image or without.
TEST(Export, Dfp16WeightsOfAQuantisedFileAreRefused) {
  OnnxBuilder b({1, 1, 4, 4}, 1);
  b.prequant().node("Flatten").matmul(16, 3).oss({1, 3}, -128, 127, 100);
  b.metadata("odt.ce_scale", "64");
  const std::string onnx = b.bytes({1, 3});
  compiler::CompileOptions options{"m", 0};
  options.arithmetic = compiler::Arithmetic::kDfp16;
  const auto compiled = compiler::compile(onnx, "m.onnx", options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::string weights = image_weights(compiled->image);
  compiler::ExportOptions with = as_m();
  with.image = compiled->image;
  for (const auto& o : {as_m(), with}) {
    const Status st = compiler::export_onnx(onnx, "m.onnx", weights, "w.odtw", o).status();
    EXPECT_EQ(st.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(st.message()),
                HasSubstr("m.onnx: the file is quantised and the model made of it is DFP16"));
  }
}

TEST(Export, AFoldedBatchNormalizationIsRefused) {
  OnnxBuilder b({1, 1, 4, 4}, 14);
  std::vector<float> w;
  for (int i = 0; i < 18; ++i) w.push_back(static_cast<float>(b.random(-99, 99)) / 100.0f);
  b.node("Conv", {b.constant({2, 1, 3, 3}, w)});
  b.node("BatchNormalization", {b.constant({2}, {1.5f, 0.5f}), b.constant({2}, {0.1f, 0.2f}),
                                b.constant({2}, {0, 0}), b.constant({2}, {1, 2})});
  b.node("Flatten").node("MatMul", {b.constant({8, 2}, std::vector<float>(16, 0.5f))});
  const std::string onnx = b.bytes({1, 2});
  const auto compiled = compiler::compile(onnx, "m.onnx", {"m", 2});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const Status st = refused(onnx, image_weights(compiled->image));
  EXPECT_EQ(st.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(st.message()), HasSubstr("(BatchNormalization) is folded into it"));
}

// ---- precision, errors --------------------------------------------------------------------------

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

// The same weights at precision k, moved by `move` of its steps.
std::string finer(const std::string& bytes, int k, int move) {
  const auto w = data::parse_weights(bytes, "w");
  EXPECT_TRUE(w.ok());
  std::string out = bytes.substr(0, kHead);
  for (const auto& l : w->layers) {
    put<std::uint8_t>(out, l.kind);
    put<std::uint8_t>(out, 3);
    put<std::int8_t>(out, static_cast<std::int8_t>(k));
    put<std::uint8_t>(out, static_cast<std::uint8_t>(l.shape.size()));
    for (std::size_t d = 0; d < 4; ++d)
      put<std::uint16_t>(out, static_cast<std::uint16_t>(d < l.shape.size() ? l.shape[d] : 0));
    put<std::uint32_t>(out, static_cast<std::uint32_t>(l.values.size()));
    put<std::uint32_t>(out, static_cast<std::uint32_t>(l.offsets.size()));
    for (const auto v : l.values)
      put<std::int16_t>(out, static_cast<std::int16_t>(v * (1 << (k - 8)) + move));
    if (l.values.size() % 2 != 0) put<std::int16_t>(out, 0);
    for (const auto v : l.offsets) put<std::int32_t>(out, v);
  }
  return out;
}

TEST(Export, FinerWeightsAreRoundedHalfUpWithAWarningOrRefused) {
  const std::string onnx = small_net(8);
  const Trained run = train(onnx, 3);
  const auto rounded = export_ok(onnx, finer(run.weights, 12, 7));  // below half a step
  ASSERT_EQ(rounded.warnings.size(), 1u);
  EXPECT_THAT(rounded.warnings[0], HasSubstr("weights are finer than 8 bits (k up to 12)"));
  const auto again = compiler::compile(rounded.onnx, "m.onnx", {"m", 3});
  EXPECT_EQ(image_weights(again->image).substr(kHead), run.weights.substr(kHead));
  const Status st = refused(onnx, finer(run.weights, 12, 7), true);
  EXPECT_EQ(st.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(st.message()), HasSubstr("without --exact they are rounded"));
  // Nothing to round: --exact takes them.
  compiler::ExportOptions exact = as_m();
  exact.exact = true;
  EXPECT_TRUE(compiler::export_onnx(onnx, "m.onnx", finer(run.weights, 12, 0), "w", exact).ok());
  // Half a step goes up.
  std::string up = finer(run.weights, 9, 0);
  std::int16_t first = 0;
  std::memcpy(&first, up.data() + kHead + 20, 2);
  first = static_cast<std::int16_t>(2 * -3 + 1);
  std::memcpy(up.data() + kHead + 20, &first, 2);
  const auto half = compiler::compile(export_ok(onnx, up).onnx, "m.onnx", {"m", 3});
  EXPECT_EQ(half->network.layers[0].weights[0], -2);
}

TEST(Export, WeightsOfAnotherModelAreRefused) {
  const std::string onnx = small_net(9);
  const Trained run = train(onnx, 3);
  const Status other = refused(small_net(10), run.weights);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("w.odtw: weights of model "));
  const auto name = compiler::export_onnx(onnx, "m.onnx", run.weights, "w.odtw", as_m("other"));
  EXPECT_EQ(name.status().code(), absl::StatusCode::kFailedPrecondition);
  compiler::ExportOptions by_image;
  by_image.image = run.compiled.image;
  EXPECT_TRUE(compiler::export_onnx(onnx, "file.onnx", run.weights, "w.odtw", by_image).ok());
}

TEST(Export, BrokenWeightsAreOneErrorEach) {
  const std::string onnx = small_net(11);
  const std::string good = train(onnx, 3).weights;
  for (std::size_t cut = 0; cut < good.size(); cut += 1 + cut / 8)
    EXPECT_EQ(refused(onnx, good.substr(0, cut)).code(), absl::StatusCode::kInvalidArgument) << cut;
  EXPECT_EQ(refused(onnx, good + "x").code(), absl::StatusCode::kInvalidArgument);
  for (const std::size_t at : {4u, 44u, 45u, 46u, 47u, 57u}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(compiler::export_onnx(onnx, "m.onnx", bad, "w", as_m()).ok()) << at;
  }
}

TEST(Export, WeightsWithoutLayersAreRefused) {
  const std::string onnx = small_net(12);
  std::string none = train(onnx, 0).weights.substr(0, kHead);  // of all layers
  none[9] = 0;
  const Status status = refused(onnx, none);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no layers"));
}

TEST(Export, WeightsThatNodesComputeAreRefused) {
  OnnxBuilder b({1, 6}, 12);
  std::vector<float> w(18, 3.0f);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i) - 9;
  const auto stored = b.constant({6, 3}, w);
  auto* scale = b.graph().add_node();
  scale->set_op_type("Mul");
  scale->add_input(stored);
  scale->add_input(b.constant({}, {2}));
  scale->add_output("scaled");
  b.prequant().node("MatMul", {"scaled"}).oss({1, 3}, -128, 127, 100);
  const std::string onnx = b.bytes({1, 3});
  const Status st = refused(onnx, train(onnx, 1).weights);
  EXPECT_EQ(st.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(st.message()), HasSubstr("nodes compute its weights"));
}

}  // namespace
}  // namespace odt::test

#include "worker/train_pc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/compile.h"
#include "compiler/dfp.h"
#include "compiler/image_writer.h"
#include "compiler/onnx_writer.h"
#include "data/quantize.h"
#include "data/sampling.h"
#include "training/gavg.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

void no_report(std::uint32_t, const std::string&) {}

// Three noisy classes over 12 values.
data::Dataset blobs(data::Dtype dtype) {
  data::Dataset d;
  d.dtype = dtype;
  d.shape = dtype == data::Dtype::kU8 ? std::vector<std::uint32_t>{1, 3, 4}
                                      : std::vector<std::uint32_t>{12};
  d.counts[0] = 600;
  d.counts[2] = 200;
  d.class_names = {"a", "b", "c"};
  data::Xorshift32 random(9);
  for (std::uint32_t s = 0; s < 800; ++s) {
    const std::uint32_t label = random.below(3);
    d.labels.push_back(static_cast<std::uint8_t>(label));
    d.source_index.push_back(s);
    for (std::uint32_t i = 0; i < 12; ++i) {
      const std::uint32_t v = (i % 3 == label ? 110u : 60u) + random.below(90);
      if (dtype == data::Dtype::kU8) {
        d.values.push_back(static_cast<std::uint8_t>(v));
      } else {
        const float f = static_cast<float>(v) * 0.013f * static_cast<float>(i + 1) - 2;
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&f);
        d.values.insert(d.values.end(), raw, raw + 4);
      }
    }
  }
  data::measure_ranges(d);
  return d;
}

compiler::Network train(const data::Dataset& d, std::uint32_t seed,
                        std::vector<std::uint32_t> hidden = {16}) {
  TrainPcOptions options;
  options.hidden = std::move(hidden);
  options.epochs = 10;
  options.seed = seed;
  auto net = train_pc(d, options, no_report);
  EXPECT_TRUE(net.ok()) << net.status();
  return *std::move(net);
}

TEST(TrainPc, LearnsAndLeavesHeadroom) {
  const auto net = train(blobs(data::Dtype::kU8), 1);
  EXPECT_EQ(net.calibration.src_total, 200u);
  EXPECT_GE(net.calibration.src_correct, 170u);
  EXPECT_GT(net.calibration.ce_scale, 0);
  for (const auto& l : net.layers)
    for (auto w : l.weights) EXPECT_LE(std::abs(int{w}), 64);
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_GT(net.calibration.target_correct[c], net.calibration.target_wrong[c]);
}

TEST(TrainPc, TheSameSeedGivesTheSameBytes) {
  const auto d = blobs(data::Dtype::kU8);
  const std::string a = compiler::write_onnx(train(d, 1));
  EXPECT_EQ(a, compiler::write_onnx(train(d, 1)));
  EXPECT_NE(a, compiler::write_onnx(train(d, 2)));
}

TEST(TrainPc, FloatFeaturesGetTheirOwnPrequant) {
  const auto net = train(blobs(data::Dtype::kF32), 1);
  ASSERT_TRUE(net.prequant.has_value());
  EXPECT_EQ(net.prequant->offset.size(), 12u);
  EXPECT_GE(net.calibration.src_correct, 170u);
  const auto compiled = compiler::compile(compiler::write_onnx(net), "f.onnx", {"f", 0});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->network.prequant->offset, net.prequant->offset);
}

TEST(TrainPc, PrequantSpreadsEachFeatureOverInt8) {
  const auto d = blobs(data::Dtype::kF32);
  const auto p = make_prequant(d);
  data::InputStage in;
  in.shape = {12};
  in.offset = p.offset;
  in.mult = p.mult;
  in.k = p.k;
  for (std::uint32_t f = 0; f < 12; ++f) {
    EXPECT_LE(data::quantize_float(in, f, d.feature_min[f]), -120);
    EXPECT_GE(data::quantize_float(in, f, d.feature_max[f]), 120);
  }
}

// Exponents go through the ONNX file into the image; with them Gavg is in real units.
void expect_exponents_survive(const compiler::Network& net) {
  const auto c = compiler::compile(compiler::write_onnx(net), "e.onnx", {net.name, 0});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->network.input_exponent, -7);
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    EXPECT_EQ(c->network.layers[n].e_w, net.layers[n].e_w) << n;
    EXPECT_EQ(c->network.layers[n].e_out, net.layers[n].e_out) << n;
  }
  const auto read = training::read_exponents(c->image);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->logits, net.layers.back().e_out);
  for (const auto& layer : read->layers) EXPECT_LT(layer.weights, 0);
}

TEST(TrainPc, ExponentsSurviveTheFile) {
  auto d = blobs(data::Dtype::kU8);
  expect_exponents_survive(train(d, 1));
  TrainPcOptions options;
  options.arch = "conv6x3x3p1,bn,relu,add(conv6x3x3p1,bn),relu,gap,dense8,relu,dense";
  options.epochs = 4;
  const auto net = train_pc(d, options, no_report);
  ASSERT_TRUE(net.ok()) << net.status();
  expect_exponents_survive(*net);
}

// The real value of a logit, by the exponents, is what the softmax takes.
TEST(TrainPc, ExponentsAreThoseOfTheLogits) {
  const auto net = train(blobs(data::Dtype::kU8), 1);
  EXPECT_NEAR(net.calibration.ce_scale, std::ldexp(256 * 1.442695, net.layers.back().e_out), 1);
}

// How many of the test samples an image gets right.
int right_of(const std::string& image, bool dfp16, const data::Dataset& d,
             const compiler::Network& net) {
  const auto host = HostTrainer::create(image, HostTrainer::inference_spec(dfp16));
  EXPECT_TRUE(host.ok()) << host.status();
  if (!host.ok()) return 0;
  data::InputStage stage;
  stage.shape = d.shape;
  stage.dtype = data::Dtype::kS8;
  stage.offset = net.prequant->offset;
  stage.mult = net.prequant->mult;
  stage.k = net.prequant->k;
  const auto from = d.first(data::Split::kTest), n = d.count(data::Split::kTest);
  const auto values = data::quantize_samples(stage, d, from, n);
  EXPECT_TRUE(values.ok());
  int right = 0;
  for (std::uint32_t s = 0; s < n; ++s) {
    std::int8_t z[3];
    odt_trainer_infer((*host)->get(), values->data() + std::size_t{s} * d.sample_len(), z);
    right += std::max_element(z, z + 3) - z == d.labels[from + s] ? 1 : 0;
  }
  return right;
}

TEST(TrainPc, GraphsBecomeDfp16OfTheSameFunction) {
  const auto d = blobs(data::Dtype::kU8);
  TrainPcOptions options;
  options.arch =
      "conv6x3x3p1,relu,add(conv6x3x3p1,relu,conv6x3x3p1),relu,avg2x2s1,max2s1,flatten,dense";
  options.epochs = 12;
  const auto net = train_pc(d, options, no_report);
  ASSERT_TRUE(net.ok()) << net.status();
  const auto dfp = compiler::to_dfp16(*net);
  ASSERT_TRUE(dfp.ok()) << dfp.status();
  for (const auto& l : dfp->layers)
    EXPECT_TRUE(l.is_compute() || (l.offset.empty() && l.mult.empty() && l.k.empty()));
  const int narrow = right_of(*compiler::write_image(*net), false, d, *net);
  const int wide = right_of(*compiler::write_image(*dfp), true, d, *net);
  EXPECT_GE(narrow, 150);
  EXPECT_NEAR(wide, narrow, 6);
}

TEST(TrainPc, Dfp16BiasesHaveRoomToGrow) {
  const auto dfp = compiler::to_dfp16(train(blobs(data::Dtype::kU8), 1));
  ASSERT_TRUE(dfp.ok()) << dfp.status();
  for (const auto& l : dfp->layers)
    for (const auto b : l.offset) EXPECT_LT(std::abs(std::int64_t{b}), std::int64_t{1} << 24);
}

TEST(TrainPc, WithoutHiddenLayersItIsOneLinearLayer) {
  const auto net = train(blobs(data::Dtype::kU8), 1, {});
  EXPECT_EQ(net.layers.size(), 1u);
  EXPECT_GE(net.calibration.src_correct, 160u);
}

TEST(TrainPc, BadOptionsAreRefused) {
  auto d = blobs(data::Dtype::kU8);
  TrainPcOptions units, epochs, arch, validation, good;
  units.hidden = {0};
  epochs.epochs = 1001;
  arch.arch = "conv";
  validation.validation = 501;
  for (const auto& bad : {units, epochs, arch, validation})
    EXPECT_EQ(train_pc(d, bad, no_report).status().code(), absl::StatusCode::kInvalidArgument);
  d.counts[0] = 0;
  EXPECT_EQ(train_pc(d, good, no_report).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TrainPc, ARateThatIsTooLargeIsSaid) {
  TrainPcOptions o;
  o.arch = "conv8x3x3p1,relu,conv8x3x3p1,relu,dense";
  o.rate = 10;
  o.decay = 0.9f;
  o.epochs = 8;
  const auto net = train_pc(blobs(data::Dtype::kU8), o, no_report);
  ASSERT_EQ(net.status().code(), absl::StatusCode::kAborted) << net.status();
  EXPECT_THAT(std::string(net.status().message()), testing::HasSubstr("smaller rate than 10"));
}

TEST(TrainPc, AnArchitectureLearnsAndRepeatsToTheByte) {
  const auto d = blobs(data::Dtype::kU8);
  TrainPcOptions o;
  o.arch = "conv6x3x2,bn,relu,max1x2,dense";
  o.epochs = 10;
  std::string last;
  const auto net =
      train_pc(d, o, [&](std::uint32_t, const std::string& message) { last += message + "\n"; });
  ASSERT_TRUE(net.ok()) << net.status();
  EXPECT_GE(net->calibration.src_correct, 120u);
  EXPECT_THAT(last, testing::HasSubstr("epoch 10 of 10, loss "));
  const auto image = [&] {
    return compiler::write_image(train_pc(d, o, no_report).value()).value();
  };
  EXPECT_EQ(compiler::write_image(*net).value(), image());
  o.augment = "shift1,flip";
  const std::string moved = image();
  EXPECT_NE(moved, compiler::write_image(*net).value());
  EXPECT_EQ(moved, image());
}

TEST(TrainPc, AutoencodersLearnTheirInput) {
  auto d = blobs(data::Dtype::kU8);
  for (const char* arch : {"dense8,relu,dense", "conv4x3x3p1,relu,max1x2,conv1x3x3p1,resize1x2"}) {
    TrainPcOptions o;
    o.arch = arch;
    o.autoencode = true;
    o.epochs = 2;
    TrainPcFigures before, after;
    ASSERT_TRUE(train_pc(d, o, no_report, &before).ok());
    o.epochs = 20;
    const auto net = train_pc(d, o, no_report, &after);
    ASSERT_TRUE(net.ok()) << net.status();
    EXPECT_EQ(net->task, compiler::Task::kAutoencode);
    EXPECT_LT(after.mse, 0.9 * before.mse) << arch;
  }
}

// The sum of the inputs, and a difference.
data::Dataset sums() {
  data::Dataset d = blobs(data::Dtype::kF32);
  d.class_names.clear();
  d.outputs = 2;
  for (std::uint32_t s = 0; s < d.samples(); ++s) {
    float sum = 0;
    for (std::uint32_t i = 0; i < 12; ++i) sum += d.value(s, i);
    d.targets.push_back(sum);
    d.targets.push_back(d.value(s, 11) - d.value(s, 3));
    d.labels[s] = 0;
  }
  d.target_min = d.target_max = {d.targets[0], d.targets[1]};
  for (std::size_t i = 0; i < d.targets.size(); ++i) {
    d.target_min[i % 2] = std::min(d.target_min[i % 2], d.targets[i]);
    d.target_max[i % 2] = std::max(d.target_max[i % 2], d.targets[i]);
  }
  return d;
}

TEST(TrainPc, RegressionsLearnTheirTargetsAndSayTheirScale) {
  const auto d = sums();
  for (const char* arch : {"", "dense24,relu,dense"}) {
    SCOPED_TRACE(arch);
    TrainPcOptions o;
    o.hidden = {16};
    o.arch = arch;
    o.epochs = 100;
    TrainPcFigures figures;
    const auto net = train_pc(d, o, no_report, &figures);
    ASSERT_TRUE(net.ok()) << net.status();
    EXPECT_EQ(net->task, compiler::Task::kRegress);
    // Of targets spread over -100..100 with a standard deviation of about 35.
    EXPECT_LT(figures.mse, 60) << "not learnt";
    EXPECT_EQ(figures.mse_in_units, -1) << "two scales";
    ASSERT_EQ(net->calibration.target_scale.size(), 2u);
    EXPECT_FLOAT_EQ(net->calibration.target_scale[0], 200 / (d.target_max[0] - d.target_min[0]));
    const auto files = package(*net, false);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(files->manifest, testing::HasSubstr("\"targets\""));
    const auto same = train_pc(d, o, no_report);
    EXPECT_EQ(package(*same, false)->image, files->image) << "not reproducible";
  }
}

TEST(TrainPc, Fp32IsTrainedWithTheSameRecipe) {
  TrainPcOptions o;
  o.arch = "dense16,relu,dense";
  o.float_only = true;
  const auto net = train_pc(blobs(data::Dtype::kU8), o, no_report);
  ASSERT_TRUE(net.ok()) << net.status();
  EXPECT_TRUE(net->layers.empty());
  EXPECT_EQ(net->calibration.src_total, 200u);
  EXPECT_GE(net->calibration.src_correct, 170u);
}

}  // namespace
}  // namespace odt::worker

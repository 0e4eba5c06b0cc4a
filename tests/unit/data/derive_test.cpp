#include "data/derive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "data/batcher.h"

namespace odt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Dataset small(Dtype dtype, const std::vector<std::uint8_t>& values) {
  Dataset d;
  d.dtype = dtype;
  d.shape = {2};
  d.counts[0] = 2;
  d.counts[2] = 1;
  d.class_names = {"a", "b"};
  d.labels = {0, 1, 1};
  d.source_index = {4, 2, 7};
  d.values = values;
  measure_ranges(d);
  return d;
}

InputStage stage(float offset, std::int16_t mult, std::uint8_t k) {
  InputStage in;
  in.shape = {2};
  in.offset = {offset};
  in.mult = {mult};
  in.k = {k};
  return in;
}

TEST(Quantize, IntegerSourcesFollowTheRule) {
  EXPECT_EQ(quantize_int(stage(-128, 1, 0), 0, 255), 127);
  EXPECT_EQ(quantize_int(stage(-128, 1, 0), 0, 0), -128);
  // ((3 * 256 + 64) * -7) >> 10 = -5824 >> 10 = floor(-5.6875)
  EXPECT_EQ(quantize_int(stage(0.25f, -7, 2), 0, 3), -6);
  // round_half_even(0.001953125 * 256 = 0.5) = 0, of 1.5 / 256 = 2
  EXPECT_EQ(quantize_int(stage(0.5f / 256, 256, 0), 0, 0), 0);
  EXPECT_EQ(quantize_int(stage(1.5f / 256, 256, 0), 0, 0), 2);
  EXPECT_EQ(quantize_int(stage(0, 32767, 0), 0, 32767), 127) << "clips; int64 inside";
}

TEST(Quantize, FloatSourcesFollowTheNodes) {
  EXPECT_EQ(quantize_float(stage(0.25f, -7, 2), 0, 3.1f), -6);
  EXPECT_EQ(quantize_float(stage(0, 1, 0), 0, -0.5f), -1);
  EXPECT_EQ(quantize_float(stage(0, 1, 0), 0, 1e30f), 127);
}

TEST(Derive, BlobsHaveTheSamplesFormat) {
  const auto blobs =
      derive_samples(small(Dtype::kU8, {0, 255, 128, 129, 1, 2}), stage(-128, 1, 0), 2);
  ASSERT_TRUE(blobs.ok()) << blobs.status();
  const std::string expected =
      std::string("ODTS\x01\x00\x01\x00\x02\x00\x00\x00\x02\x00\x00\x00", 16) +
      std::string("\x00\x01\x00\x00", 4) + std::string("\x80\x7f\x00\x01", 4);
  EXPECT_EQ(blobs->train, expected);
  EXPECT_TRUE(blobs->heldout.empty());
  EXPECT_EQ(blobs->test.size(), 16u + 4 + 2);
  std::string both = sha256(blobs->train).str() + std::string(32, '\0');
  EXPECT_EQ(blobs->sample_set_hash, sha256(both));
}

TEST(Derive, RegressionTargetsStandWhereLabelsStand) {
  Dataset d = small(Dtype::kU8, {0, 255, 128, 129, 1, 2});
  d.class_names.clear();
  d.labels = {0, 0, 0};
  d.outputs = 1;
  d.targets = {-1, 3, 1.0101f};
  d.target_min = {-1};
  d.target_max = {3};
  const auto out = parse_output_stage(R"({"task":1,"n_classes":1})", d);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(out->offset, ElementsAre(1));
  EXPECT_THAT(out->scale, ElementsAre(50));
  const auto blobs = derive_samples(d, stage(-128, 1, 0), *out);
  ASSERT_TRUE(blobs.ok()) << blobs.status();
  EXPECT_EQ(blobs->train, std::string("ODTS\x01\x00\x01\x01\x02\x00\x00\x00\x02\x00\x00\x00", 16) +
                              std::string("\x9c\x64\x00\x00", 4) +
                              std::string("\x80\x7f\x00\x01", 4));
  EXPECT_EQ(blobs->test[16], 1) << "0.505 rounds half up";
  const auto own =
      parse_output_stage(R"({"task":1,"n_classes":1,"targets":{"offset":[0],"scale":[1000]}})", d);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(quantize_target(*own, 0, -1), -128);
  EXPECT_EQ(quantize_target(*own, 0, 3), 127);
}

TEST(Derive, OneScaleServesAllTargets) {
  Dataset d = small(Dtype::kU8, {0, 255, 128, 129, 1, 2});
  d.class_names.clear();
  d.labels = {0, 0, 0};
  d.outputs = 2;
  d.targets = {-1, 3, 1, 2, 0, 0};
  d.target_min = {-1, 0};
  d.target_max = {1, 3};
  const auto of = [&](const std::string& targets) {
    return parse_output_stage(R"({"task":1,"n_classes":2,"targets":)" + targets + "}", d);
  };
  const auto one = of(R"({"offset":[4],"scale":[0.5]})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->offset, ElementsAre(4, 4));
  EXPECT_THAT(one->scale, ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(std::string(of(R"({"offset":[4],"scale":[1,2,3]})").status().message()),
              HasSubstr("3 scales; expected 2"));
  EXPECT_FALSE(of(R"({"offset":[4],"scale":[0]})").ok());
}

TEST(Derive, AnAutoencodersOutputsHaveTheScaleOfItsInputs) {
  const auto scales = [](const InputStage& in, Dtype dtype = Dtype::kU8) {
    OutputStage out{OutputStage::Task::kNothing, in.count(), {}, {}};
    output_scales(in, dtype, out);
    return out;
  };
  const auto pixels = scales(stage(-128, 1, 0));  // y = x - 128
  EXPECT_THAT(pixels.offset, ElementsAre(128));
  EXPECT_THAT(pixels.scale, ElementsAre(1));
  InputStage raw;
  raw.shape = {2};
  EXPECT_THAT(scales(raw).scale, ElementsAre(1));
  InputStage planes;
  planes.shape = {2, 1, 2};
  planes.offset = {1, -2};
  planes.mult = {3, 5};
  planes.k = {1, 0};
  const auto each = scales(planes);
  EXPECT_THAT(each.offset, ElementsAre(-1, -1, 2, 2));
  EXPECT_THAT(each.scale, ElementsAre(1.5f, 1.5f, 5, 5));
  // Each integer is the middle of the values that become it: of reals half a step further.
  EXPECT_THAT(scales(stage(0.25f, 1, 1), Dtype::kF32).offset, ElementsAre(0.75f));
  EXPECT_THAT(scales(stage(0, 1, 2), Dtype::kS16).offset, ElementsAre(1.5f));    // 0 1 2 3 -> 0
  EXPECT_THAT(scales(stage(0, -1, 2), Dtype::kS16).offset, ElementsAre(-1.5f));  // -3 -2 -1 0 -> 0
}

// What comes back of a value is as near above it as below.
TEST(Derive, ValuesComeBackWithoutABias) {
  for (const float shift : {0.0f, 0.125f, 3.4f}) {
    const InputStage in = stage(shift, 37, 3);
    OutputStage out{OutputStage::Task::kNothing, 1, {}, {}};
    output_scales(in, Dtype::kF32, out);
    double sum = 0;
    int n = 0;
    for (float x = -20; x < 20; x += 0.01f, ++n) {
      const auto y = static_cast<float>(quantize_float(in, 0, x));
      sum += x - (y / out.scale[0] + out.offset[0]);
    }
    EXPECT_NEAR(sum / n, 0, 0.002) << shift;
  }
}

TEST(SampleSetTargets, BatchesCarryTheTargetsOfTheirSamples) {
  const std::vector<std::int8_t> targets = {1, 2, 3, 4, 5, 6, 7, 8, -9, 10};
  const auto blob = std::make_shared<const std::string>(
      encode_target_samples(Dtype::kU8, 1, 5, targets, {50, 51, 52, 53, 54}));
  const auto set = SampleSet::parse(blob);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->label_len(), 2u);
  const std::uint32_t index[] = {4, 0};
  const std::string batch = set->batch(index, 2);
  EXPECT_EQ(batch[7], 1);
  EXPECT_EQ(batch.substr(16), std::string("\xf7\x0a\x01\x02\x36\x32", 6));
  EXPECT_FALSE(SampleSet::parse(blob, 3).ok());
  // One sample of one target: its padding could be more of them.
  const auto one =
      std::make_shared<const std::string>(encode_target_samples(Dtype::kU8, 1, 1, {7, 8}, {9}));
  EXPECT_EQ(SampleSet::parse(one)->label_len(), 1u);
  EXPECT_EQ(SampleSet::parse(one, 2)->label_len(), 2u);
  EXPECT_EQ(set->labels(4), std::string("\xf7\x0a", 2));
  EXPECT_EQ(set->values(4), "\x36");
}

TEST(Derive, TheDatasetFitsTheModelsTask) {
  Dataset d = small(Dtype::kU8, {0, 255, 128, 129, 1, 2});
  EXPECT_THAT(std::string(parse_output_stage(R"({"task":1,"n_classes":1})", d).status().message()),
              HasSubstr("the dataset has 2 classes; the model is a regression of 1 values"));
  EXPECT_TRUE(parse_output_stage(R"({"task":2,"n_classes":2})", d).ok());
  d.class_names.clear();
  EXPECT_THAT(std::string(parse_output_stage(R"({"n_classes":2})", d).status().message()),
              HasSubstr("neither classes nor targets; the model tells 2 apart"));
  EXPECT_FALSE(parse_output_stage(R"({"task":7})", d).ok());
}

TEST(Derive, MisfitsAreRefused) {
  const auto d = small(Dtype::kU8, {0, 255, 128, 129, 1, 2});
  InputStage in = stage(0, 1, 0);
  EXPECT_THAT(std::string(derive_samples(d, in, 1).status().message()), HasSubstr("2 classes"));
  in.shape = {3};
  EXPECT_THAT(std::string(derive_samples(d, in, 2).status().message()),
              HasSubstr("2 values per sample ([2]); the model takes 3 ([3])"));
  InputStage plain;
  plain.shape = {2};
  plain.dtype = Dtype::kS8;
  EXPECT_THAT(std::string(derive_samples(d, plain, 2).status().message()),
              HasSubstr("no PREQUANT"));
}

TEST(Manifest, DamagedInputIsRefused) {
  EXPECT_FALSE(parse_input_stage("{").ok());
  EXPECT_FALSE(parse_input_stage("{}").ok());
  EXPECT_FALSE(parse_input_stage(R"({"input":{"shape":[2],"dtype":"i8","prequant":
      {"offset":[1,2],"mult":[1],"k":[0],"clip_lo":0,"clip_hi":1}}})")
                   .ok());
  EXPECT_TRUE(parse_input_stage(R"({"input":{"shape":[2],"dtype":"u8","prequant":null}})").ok());
}

TEST(DatasetFile, RoundTrip) {
  for (const Dtype dtype : {Dtype::kS8, Dtype::kU8, Dtype::kS16, Dtype::kF32}) {
    std::vector<std::uint8_t> values(6 * dtype_bytes(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 3);
    Dataset d = small(dtype, values);
    d.source = "csv x, seed 1";
    d.unit = "mV";
    const std::string bytes = encode_dataset(d);
    const auto back = decode_dataset(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(encode_dataset(*back), bytes);
    EXPECT_EQ(back->labels, d.labels);
    EXPECT_EQ(back->unit, "mV");
    EXPECT_THAT(back->class_counts(), ElementsAre(1, 2));
  }
}

TEST(DatasetFile, EveryTruncationIsAnError) {
  const std::string bytes = encode_dataset(small(Dtype::kU8, {0, 255, 128, 129, 1, 2}));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_dataset(bytes.substr(0, n)).ok()) << n;
  for (std::size_t n = 0; n < 48; ++n) {
    std::string bad = bytes;
    bad[n] = static_cast<char>(bad[n] ^ 0xff);
    (void)decode_dataset(bad);
  }
}

}  // namespace
}  // namespace odt::data

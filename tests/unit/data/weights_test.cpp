#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "data/npy_array.h"
#include "data/weight_diff.h"
#include "data/weight_files.h"
#include "temp_files.h"

namespace odt::data {
namespace {

StoredWeights two_layers(std::int8_t k = 8) {
  StoredWeights w;
  w.rules_version = 1;
  w.rule_set = 1;
  w.model_hash = sha256("model");
  StoredLayer linear;
  linear.kind = 3;
  linear.dtype = k > 8 ? 3 : 1;
  linear.k = k;
  linear.shape = {3, 2};  // [in][out]
  linear.values = {1, 2, 3, -4, 5, -128};
  if (k > 8)
    for (auto& v : linear.values) v = static_cast<std::int16_t>(v * (1 << (k - 8)));
  linear.offsets = {100, INT32_MIN};
  StoredLayer conv = linear;
  conv.kind = 2;
  conv.shape = {2, 1, 1, 3};  // [out][in][h][w]
  w.layers = {linear, conv};
  return w;
}

TEST(WeightDiff, SameWeightsDoNotDiffer) {
  const auto diff = diff_weights(two_layers(), two_layers());
  ASSERT_TRUE(diff.ok());
  for (const auto& layer : *diff) {
    EXPECT_EQ(layer.weights.values, 6u);
    EXPECT_EQ(layer.weights.changed + layer.offsets.changed + layer.weights.hamming_bits, 0u);
    EXPECT_TRUE(layer.same_form);
  }
}

TEST(WeightDiff, CountsByLayerAndChannel) {
  auto b = two_layers();
  b.layers[0].values[1] = 7;    // 2 -> 7: bits 010 ^ 111; second output
  b.layers[0].values[5] = 127;  // -128 -> 127: all 8 bits
  b.layers[1].values[1] = 3;    // 2 -> 3; first output of a convolution
  b.layers[1].offsets[1] = INT32_MAX;
  const auto diff = diff_weights(two_layers(), b);
  ASSERT_TRUE(diff.ok());
  const LayerDiff& linear = (*diff)[0];
  EXPECT_EQ(linear.weights.changed, 2u);
  EXPECT_EQ(linear.weights.l1, 5u + 255u);
  EXPECT_EQ(linear.weights.linf, 255u);
  EXPECT_EQ(linear.weights.hamming_bits, 2u + 8u);
  ASSERT_EQ(linear.channels.size(), 2u);
  EXPECT_EQ(linear.channels[0].changed, 0u);
  EXPECT_EQ(linear.channels[1].changed, 2u);
  const LayerDiff& conv = (*diff)[1];
  EXPECT_EQ(conv.channels[0].changed, 1u);
  EXPECT_EQ(conv.channels[1].changed, 0u);
  EXPECT_EQ(conv.offsets.linf, 0xFFFFFFFFu);
}

TEST(WeightDiff, PrecisionsAreBroughtToTheFinerStep) {
  // The same real weights in 8 and in 12 bits.
  auto diff = diff_weights(two_layers(8), two_layers(12));
  ASSERT_TRUE(diff.ok());
  EXPECT_EQ((*diff)[0].weights.changed, 0u);
  EXPECT_FALSE((*diff)[0].same_form);
  auto fine = two_layers(12);
  fine.layers[0].values[0] += 1;
  diff = diff_weights(two_layers(8), fine);
  EXPECT_EQ((*diff)[0].weights.l1, 1u) << "one step of 12 bits";
  EXPECT_EQ((*diff)[0].weights.hamming_bits, 0u) << "not stored alike";
}

TEST(WeightDiff, OtherModelsAreRefused) {
  auto b = two_layers();
  b.model_hash = sha256("other");
  const auto other = diff_weights(two_layers(), b);
  EXPECT_EQ(reason_of(other.status()), "OTHER_MODEL");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  b = two_layers();
  b.layers.pop_back();
  EXPECT_EQ(diff_weights(two_layers(), b).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WeightFiles, NpzIsReadBack) {
  const StoredWeights w = two_layers(12);
  const std::string file = weights_npz(w, {sha256("weights"), "net", {"fc1", "conv/2"}});
  EXPECT_EQ(file, weights_npz(w, {sha256("weights"), "net", {"fc1", "conv/2"}}));
  TempFiles files;
  const auto archive = FileRange::open(files.put("w.npz", file), "w.npz");
  ASSERT_TRUE(archive.ok());
  const auto members = zip_members(*archive, "w.npz");
  ASSERT_TRUE(members.ok()) << members.status();
  std::vector<std::string> names;
  for (const auto& member : *members) {
    names.push_back(member.name);
    const auto content = zip_open(*archive, member, 1 << 20, "w.npz");
    EXPECT_TRUE(content.ok()) << content.status();
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"layer0.weight.npy", "layer0.offset.npy", "layer1.weight.npy",
                                      "layer1.offset.npy", "manifest.json"}));
}

TEST(WeightFiles, JsonHasEveryValue) {
  const StoredWeights w = two_layers();
  const auto json = nlohmann::json::parse(weights_json(w, {sha256("weights"), "net", {"fc1"}}));
  EXPECT_EQ(json["weights_hash"], sha256("weights").hex());
  EXPECT_EQ(json["layers"][0]["name"], "fc1");
  EXPECT_EQ(json["layers"][0]["weights"].get<std::vector<std::int16_t>>(), w.layers[0].values);
  EXPECT_EQ(json["layers"][1]["offsets"].get<std::vector<std::int32_t>>(), w.layers[1].offsets);
  EXPECT_EQ(json["layers"][1]["k"], 8);
}

TEST(WeightFiles, CHeaderHasNoWayOutOfItsComments) {
  const std::string c = weights_c(two_layers(), {sha256("w"), "a */ int x; /*\n", {"f*/c"}});
  EXPECT_EQ(c.find("int x; /*"), std::string::npos);
  EXPECT_NE(c.find("static const int8_t odt_layer0_weight[6] = {"), std::string::npos) << c;
  EXPECT_NE(c.find("100, (-2147483647 - 1),"), std::string::npos);
  EXPECT_NE(c.find("#define ODT_LAYER0_K (8)"), std::string::npos);
}

}  // namespace
}  // namespace odt::data

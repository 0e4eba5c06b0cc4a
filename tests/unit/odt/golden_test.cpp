// The dense-196-32-10 fixture: whole runs of real data against hashes that two independent
// implementations agree on (README.txt there).
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/layout.h"
#include "odt/odt.h"
#include "odt/trainer.h"

namespace {

std::vector<uint8_t> read_file(const std::string& name) {
  std::ifstream f(std::string(ODT_GOLDEN_DIR) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

struct EpochWant {
  const char* hash;
  uint64_t loss;
  uint32_t correct;
};

struct LayerWant {
  int bits, shift;
};

struct Config {
  const char* name;
  uint8_t k, loss, dead_zone;
  int8_t mu[3];
  int8_t mu_offset;
  uint32_t seed;
  EpochWant epochs[3];
  uint16_t order[8];
  LayerWant first[2];  // layer0, layer1
  uint64_t first_loss;
};

const Config kA = {
    "A",
    8,
    ODT_LOSS_MSE,
    4,
    {2, 1, 0},
    1,
    1,
    {{"b55bb4ff27781b5311f10f120e35db00b1b3f4a4fb3b5d5b11ec3c83a56bad94", 715945, 205},
     {"d273fc5644f8585b8d7d8bc41c0f09228eff0b173bc439972d4d9f0ca2c9a29c", 455934, 352},
     {"9da888841d12430080a27ac4ea00dff80f6e9bfa8557a07e7b3b81597488501f", 391705, 400}},
    {229, 168, 392, 488, 110, 363, 504, 480},
    {{15, 13}, {13, 11}},
    28501};
const Config kB = {
    "B",
    15,
    ODT_LOSS_CE,
    0,
    {1, -1, -3},
    -3,
    7,
    {{"0170bfa3de57d9508adea4bf02e123368a6806d0583bff57852b73cdd718d155", 6637768, 288},
     {"134b2163c8cd0ffbd5890ac53dedbdf05c02c6d91b866245084e608b2bca2cad", 3770195, 424},
     {"b10a513e7c649534ffef30e1e786a9e7751721471197806e959d8925153ac5f2", 3437869, 444}},
    {523, 321, 191, 64, 435, 268, 205, 322},
    {{15, 14}, {15, 14}},
    209438};

// Hash of the fixture's README: M as int16 and offsets as int32, layer by layer.
std::string fixture_hash(const odt_trainer_t& t) {
  odt_sha256_t sha;
  odt_sha256_init(&sha);
  for (int l = 0; l < t.model->n_layers; l++) {
    const odt_layer_t& layer = t.layers[l];
    for (uint32_t i = 0; i < layer.n_weights; i++) {
      auto v = static_cast<int16_t>(odt_layer_get(&layer, i));
      odt_sha256_update(&sha, &v, 2);
    }
    odt_sha256_update(&sha, layer.off, 4 * layer.n_offsets);
  }
  uint8_t hash[32];
  odt_sha256_final(&sha, hash);
  std::string out;
  for (uint8_t b : hash) {
    char hex[3];
    snprintf(hex, sizeof hex, "%02x", b);
    out += hex;
  }
  return out;
}

class Golden : public testing::TestWithParam<Config> {};

TEST_P(Golden, WholeRun) {
  const Config& c = GetParam();
  std::vector<uint8_t> image = read_file("image.odtm"), blob = read_file("samples.odts");
  odt_error_t err{};
  odt_model_t model;
  ASSERT_EQ(odt_model_open(&model, image.data(), static_cast<uint32_t>(image.size()), &err), ODT_OK)
      << err.what;
  odt_samples_t samples;
  ASSERT_EQ(odt_samples_open(&samples, blob.data(), static_cast<uint32_t>(blob.size()), &err),
            ODT_OK)
      << err.what;
  odt_run_spec_t spec{};
  spec.rule_set = ODT_RULE_NITI;
  spec.loss = c.loss;
  spec.shift_source = ODT_SHIFT_EXACT;
  for (int i = 0; i < 3; i++) spec.mu_weight[i] = c.mu[i];
  spec.mu_offset = c.mu_offset;
  spec.dead_zone = c.dead_zone;
  spec.k = c.k;
  spec.batch = 8;
  spec.epochs = 3;
  spec.train_samples = 600;
  spec.order_seed = c.seed;
  for (uint8_t& w : spec.class_weights) w = 64;
  odt_memory_plan_t plan;
  odt_trainer_plan(&model, &spec, true, &plan);
  std::vector<uint64_t> arena(plan.total_bytes / 8 + 1);
  odt_trainer_t t;
  ASSERT_EQ(odt_trainer_init(&t, &model, &spec, true, arena.data(), plan.total_bytes, &err), ODT_OK)
      << err.what;
  uint16_t order[600];
  odt_order(c.seed, 0, 600, order);
  for (int i = 0; i < 8; i++) EXPECT_EQ(order[i], c.order[i]) << i;
  for (const EpochWant& want : c.epochs) {
    while (!odt_trainer_epoch_complete(&t)) {
      odt_step_record_t rec;
      ASSERT_EQ(odt_trainer_step_resident(&t, &samples, &rec, &err), ODT_OK) << err.what;
      if (rec.step != 0) continue;
      EXPECT_EQ(rec.loss, c.first_loss);
      for (int l = 0; l < 2; l++) {
        EXPECT_EQ(rec.layers[l].bits, c.first[l].bits) << l;
        EXPECT_EQ(rec.layers[l].shift, c.first[l].shift) << l;
      }
    }
    EXPECT_EQ(fixture_hash(t), want.hash);
    odt_epoch_record_t rec;
    ASSERT_EQ(odt_trainer_end_epoch(&t, 0, 0, &rec, &err), ODT_OK) << err.what;
    EXPECT_EQ(rec.loss, want.loss);
    EXPECT_EQ(rec.correct, want.correct);
  }
  EXPECT_TRUE(odt_trainer_done(&t));
}

INSTANTIATE_TEST_SUITE_P(Dense, Golden, testing::Values(kA, kB),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace

#include "worker/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/onnx_writer.h"
#include "data/derive.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

using testing::HasSubstr;

void no_progress(std::uint32_t, const std::string&) {}

std::string golden(const std::string& name) {
  std::ifstream in(std::string(ODT_GOLDEN_DIR) + "/dense-196-32-10/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

template <typename T>
std::vector<T> values(const std::string& bytes) {
  std::vector<T> v(bytes.size() / sizeof(T));
  std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
  return v;
}

// The golden model, as odtc makes it from an ONNX file.
std::string golden_image() {
  compiler::Network net;
  net.name = "golden";
  net.input_shape = {196};
  const std::uint32_t sizes[] = {196, 32, 10};
  for (std::uint32_t n = 0; n < 2; ++n) {
    const std::string p = "layer" + std::to_string(n) + "_";
    compiler::Layer l;
    l.in0 = static_cast<std::uint16_t>(n);
    l.relu = n == 0;
    l.clip_lo = n == 0 ? 0 : -128;
    l.clip_hi = n == 0 ? 255 : 127;
    l.in_shape = {sizes[n]};
    l.out_shape = {sizes[n + 1]};
    l.weight_shape = {sizes[n], sizes[n + 1]};
    const auto weights = values<std::int8_t>(golden(p + "weights_in_out.i8"));
    l.weights.assign(weights.begin(), weights.end());
    l.offset = values<std::int32_t>(golden(p + "offset.i32"));
    l.k = values<std::uint8_t>(golden(p + "k.i8"));
    l.mult.assign(l.k.size(), 1);
    net.layers.push_back(l);
  }
  net.calibration.ce_scale = 103;
  net.calibration.target_correct = {35, 41, 24, 27, 29, 37, 25, 34, 38, 48};
  net.calibration.target_wrong = {1, -8, 1, -2, 0, -7, 2, -12, -1, -14};
  auto compiled = compiler::compile(compiler::write_onnx(net), "golden.onnx", {"golden", 0});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? compiled->image : std::string();
}

// Configuration B of the golden fixture.
ReplayRequest golden_request() {
  ReplayRequest r;
  r.image = golden_image();
  const auto data = values<std::uint8_t>(golden("samples_600x196.i8"));
  const auto labels = values<std::uint8_t>(golden("labels_600.i8"));
  r.train = data::encode_samples(data::Dtype::kS8, 196, labels, data);
  r.spec = HostTrainer::inference_spec();
  r.spec.loss = ODT_LOSS_CE;
  r.spec.k = 15;
  r.spec.batch = 8;
  r.spec.epochs = 3;
  r.spec.mu_weight[0] = 1;
  r.spec.mu_weight[1] = -1;
  r.spec.mu_weight[2] = -3;
  r.spec.mu_offset = -3;
  r.spec.train_samples = 600;
  r.spec.order_seed = 7;
  return r;
}

// What a board would report: hashes by epoch and at the end, losses and counts by step.
void record(ReplayRequest& r) {
  auto host = *HostTrainer::create(r.image, r.spec);
  const auto train = *HostSamples::open(r.train, host->model());
  odt_error_t error{};
  for (std::uint32_t e = 0; e < r.spec.epochs; ++e) {
    odt_step_record_t step{};
    while (!odt_trainer_epoch_complete(host->get())) {
      odt_trainer_step_resident(host->get(), &train.get(), &step, &error);
      r.steps.push_back({step.step, step.loss, step.correct});
    }
    odt_epoch_record_t rec{};
    odt_trainer_end_epoch(host->get(), 0, 0, &rec, &error);
    Hash hash;
    std::copy(std::begin(rec.state_hash), std::end(rec.state_hash), hash.bytes.begin());
    r.epochs.push_back({e, rec.step, hash});
  }
  odt_state_hash(host->get(), r.final_state_hash.bytes.data());
  odt_weights_hash(host->get(), false, r.final_weights_hash.bytes.data());
}

TEST(Replay, GoldenRunThroughTheCompilerKeepsItsLosses) {
  ReplayRequest r = golden_request();
  record(r);
  std::uint64_t loss[3] = {0, 0, 0};
  std::uint32_t correct[3] = {0, 0, 0};
  for (const auto& s : r.steps) {
    loss[s.step / 75] += s.loss;
    correct[s.step / 75] += s.correct;
  }
  EXPECT_EQ(loss[0], 6637768u);
  EXPECT_EQ(loss[1], 3770195u);
  EXPECT_EQ(loss[2], 3437869u);
  EXPECT_EQ(correct[0], 288u);
  EXPECT_EQ(correct[2], 444u);
}

TEST(Replay, EqualRunIsEqual) {
  ReplayRequest r = golden_request();
  record(r);
  const auto v = replay(r, no_progress);
  ASSERT_TRUE(v.ok()) << v.status();
  EXPECT_TRUE(v->equal);
  EXPECT_EQ(v->epochs_compared, 3u);
  EXPECT_EQ(v->steps_compared, 225u);
  EXPECT_EQ(v->state_hash, r.final_state_hash);
}

TEST(Replay, AFlippedStartWeightIsFoundInItsFirstEpochAndStep) {
  ReplayRequest r = golden_request();
  record(r);
  auto host = *HostTrainer::create(r.image, r.spec);
  std::string weights(odt_weights_size(host->get()), '\0');
  odt_weights_read(host->get(), false, 0, reinterpret_cast<std::uint8_t*>(weights.data()),
                   static_cast<std::uint32_t>(weights.size()));
  r.start_weights = weights;
  EXPECT_TRUE(replay(r, no_progress)->equal) << "the image's own weights change nothing";
  // 44 header bytes, 20 of the layer's, then M as int16: a pixel in the middle of the image.
  const std::size_t at = 44 + 20 + 2 * (100 * 32 + 5);
  r.start_weights[at + 1] = static_cast<char>(r.start_weights[at + 1] ^ 0x10);
  const auto v = replay(r, no_progress);
  ASSERT_TRUE(v.ok()) << v.status();
  EXPECT_FALSE(v->equal);
  EXPECT_EQ(v->first_different_epoch, 0u);
  ASSERT_TRUE(v->first_different_step.has_value());
  EXPECT_LT(*v->first_different_step, 75u);
}

TEST(Replay, ADifferenceInOneEpochIsNamed) {
  ReplayRequest r = golden_request();
  record(r);
  r.steps.clear();
  r.epochs[2].state_hash.bytes[5] ^= 1;
  const auto v = replay(r, no_progress);
  EXPECT_FALSE(v->equal);
  EXPECT_EQ(v->first_different_epoch, 2u);
  EXPECT_FALSE(v->first_different_step.has_value());
  EXPECT_EQ(v->expected_state_hash, r.epochs[2].state_hash);
}

TEST(Replay, SteeringIsRepeatedAtItsStep) {
  ReplayRequest r = golden_request();
  r.spec.k = 8;
  r.spec.apt.k_max = 15;
  r.steering = {{80, 0, 13}, {150, 1, 6}};
  const auto own = [&r] {
    ReplayRequest out = r;
    auto host = *HostTrainer::create(r.image, r.spec);
    const auto train = *HostSamples::open(r.train, host->model());
    odt_error_t error{};
    odt_step_record_t step{};
    odt_epoch_record_t rec{};
    while (!odt_trainer_done(host->get())) {
      if (odt_trainer_epoch_complete(host->get())) {
        odt_trainer_end_epoch(host->get(), 0, 0, &rec, &error);
        continue;
      }
      for (const auto& s : r.steering) {
        if (s.step == odt_trainer_step_count(host->get())) {
          EXPECT_EQ(odt_trainer_set_k(host->get(), s.layer, s.k, &error), ODT_OK);
        }
      }
      odt_trainer_step_resident(host->get(), &train.get(), &step, &error);
    }
    odt_state_hash(host->get(), out.final_state_hash.bytes.data());
    return out;
  };
  const auto v = replay(own(), no_progress);
  ASSERT_TRUE(v.ok()) << v.status();
  EXPECT_TRUE(v->equal);
  ReplayRequest without = own();
  without.steering.pop_back();
  EXPECT_FALSE(replay(without, no_progress)->equal);
}

TEST(Replay, OtherSettingsGiveOtherBits) {
  ReplayRequest r = golden_request();
  record(r);
  r.spec.order_seed = 8;
  EXPECT_FALSE(replay(r, no_progress)->equal);
}

TEST(Replay, RefusesWhatItCannotCompare) {
  ReplayRequest r = golden_request();
  EXPECT_EQ(replay(r, no_progress).status().code(), absl::StatusCode::kFailedPrecondition);
  record(r);
  ReplayRequest other = r;
  other.rules_version = ODT_RULES_VERSION + 1;
  EXPECT_THAT(std::string(replay(other, no_progress).status().message()),
              HasSubstr("rules_version 2"));
  other = r;
  other.spec.train_samples = 599;
  EXPECT_THAT(std::string(replay(other, no_progress).status().message()),
              HasSubstr("the run had 599 training"));
  other = r;
  other.start_weights = "ODTW";
  EXPECT_THAT(std::string(replay(other, no_progress).status().message()),
              HasSubstr("start weights"));
  other = r;
  other.train.resize(100);
  EXPECT_FALSE(replay(other, no_progress).ok());
}

}  // namespace
}  // namespace odt::worker

// TI's interface against the trainer: the same bits on random models, whatever is trainable.
#include "odt/ti.h"

#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"
#include "random_graph.h"
#include "ti_model.h"

namespace odt::testing {
namespace {

using Bytes = std::vector<uint8_t>;

// The last `trainable` compute layers are trainable; 0: all.
void keep_last(NetSpec& net, int trainable) {
  int left = trainable == 0 ? 16 : trainable;
  for (auto l = net.layers.rbegin(); l != net.layers.rend(); ++l) {
    l->trainable = l->kind != OpKind::kFlatten && left > 0;
    if (l->trainable) left--;
  }
}

int compute_layers(const NetSpec& net) {
  return static_cast<int>(std::count_if(net.layers.begin(), net.layers.end(),
                                        [](const auto& l) { return l.kind != OpKind::kFlatten; }));
}

struct Batch {
  Bytes data;
  std::vector<int> labels;
  uint32_t n() const { return static_cast<uint32_t>(labels.size()); }
};

Batch batch_of(const Bytes& blob) {
  odt_samples_t s = open_samples(blob);
  Batch b;
  b.data.assign(s.data, s.data + s.count * s.sample_len);
  b.labels.assign(s.labels, s.labels + s.count);
  return b;
}

Bytes snapshot(const odt_ti_t& t, const odt_model_t& m) {
  Bytes out(odt_ti_snapshot_size(t.ctx));
  EXPECT_EQ(odt_ti_snapshot(&t, m.hash, out.data(), static_cast<uint32_t>(out.size()), nullptr),
            ODT_OK);
  return out;
}

odt_ti_t start(TiModel& ti, uint16_t batch) {
  odt_ti_t t{};
  odt_error_t err{};
  EXPECT_EQ(odt_ti_init(&t, &ti.ctx, batch, &err), ODT_OK) << err.what << " " << err.got;
  return t;
}

void expect_same_logits(Rig& rig, TiModel& ti, const Batch& b) {
  const uint32_t len = rig.model().tensors[rig.model().input].count;
  for (uint32_t s = 0; s < b.n(); s++) {
    std::vector<int8_t> expected(ti.n_classes()), got(ti.n_classes());
    odt_trainer_infer(rig.trainer(), b.data.data() + s * len, expected.data());
    const Bytes input =
        ti.frozen(Bytes(b.data.begin() + s * len, b.data.begin() + (s + 1) * len), 1);
    INTODT_Infer(&ti.ctx, input.data(), got.data());
    ASSERT_EQ(got, expected);
  }
}

void set_mu(odt_run_spec_t& spec, int8_t mu) {
  for (int8_t& m : spec.mu_weight) m = mu;
}

class Ti : public ::testing::TestWithParam<int> {};

TEST_P(Ti, TheThreeFunctionsGiveTheTrainersBits) {
  Random r(1000u + static_cast<uint32_t>(GetParam()));
  NetSpec net = random_net(r);
  keep_last(net, r.range(0, compute_layers(net)));
  const SampleSet set = random_samples(r, net, r.range(3, 25));
  odt_run_spec_t spec = plain_spec(static_cast<int>(set.labels.size()), r.range(2, 9), 3);
  set_mu(spec, static_cast<int8_t>(r.range(-4, 4)));
  spec.mu_offset = static_cast<int8_t>(r.range(-8, 7));
  Rig rig(build_image(net));
  rig.start(spec, false);
  TiModel ti(rig.model(), spec.batch);
  ti.ctx.mu_weight = spec.mu_weight[0];
  ti.ctx.mu_offset = spec.mu_offset;
  const odt_ti_t view = start(ti, spec.batch);
  while (!odt_trainer_done(rig.trainer())) {
    const Bytes blob = next_batch(rig.trainer(), net, set);
    const Batch b = batch_of(blob);
    const odt_samples_t samples = open_samples(blob);
    odt_step_record_t rec{};
    const Bytes input = ti.frozen(b.data, b.n());
    INTODT_Forward(&ti.ctx, input.data(), static_cast<int32_t>(b.n()));
    ti.loss(rig.model(), b.labels);
    INTODT_Backward(&ti.ctx, input.data(), static_cast<int32_t>(b.n()));
    ASSERT_EQ(odt_trainer_step(rig.trainer(), &samples, &rec, &rig.err), ODT_OK) << rig.err.what;
    ASSERT_EQ(snapshot(view, rig.model()), weights_of(rig.trainer())) << "step " << rec.step;
    expect_same_logits(rig, ti, b);
    odt_epoch_record_t end;
    if (odt_trainer_epoch_complete(rig.trainer()))
      odt_trainer_end_epoch(rig.trainer(), 0, 0, &end, nullptr);
  }
}

TEST_P(Ti, AFrozenGraphGivesTheTrainersValues) {
  Choices c(9000u + static_cast<uint32_t>(GetParam()));
  GraphLimits limits;
  limits.tasks = false;
  NetSpec net;
  do net = random_graph(c, limits);
  while (net.layers.back().kind != OpKind::kLinear || net.layers.size() < 3);
  for (LayerSpec& l : net.layers) l.trainable = l.offsets_only = false;
  net.layers.back().trainable = true;
  const GraphSamples set = random_graph_samples(c, net, 5);
  Rig rig(build_image(net));
  odt_run_spec_t spec = plain_spec(5, 5, 1);
  rig.start(spec, false);
  TiModel ti(rig.model(), 5);
  const Bytes blob = samples_blob(set, {0, 1, 2, 3, 4});
  const odt_samples_t batch = open_samples(blob);
  const Bytes data(batch.data, batch.data + batch.count * batch.sample_len);
  const Bytes input = ti.frozen(data, 5);
  for (uint32_t s = 0; s < 5; s++) {
    Bytes expected(ti.input_bytes());
    ASSERT_EQ(
        odt_trainer_freeze(rig.trainer(), data.data() + s * batch.sample_len, expected.data()),
        ODT_OK);
    ASSERT_EQ(
        Bytes(input.begin() + s * ti.input_bytes(), input.begin() + (s + 1) * ti.input_bytes()),
        expected)
        << describe_net(net);
  }
}

TEST_P(Ti, SettingsBesideTheInterfaceGiveTheTrainersBitsToo) {
  Random r(5000u + static_cast<uint32_t>(GetParam()));
  NetSpec net = random_net(r);
  keep_last(net, r.range(0, compute_layers(net)));
  const SampleSet set = random_samples(r, net, 20);
  odt_run_spec_t spec = plain_spec(20, 6, 3);
  spec.rule_set = r.chance(20) ? ODT_RULE_NITI_LITERAL : ODT_RULE_NITI;
  if (spec.rule_set == ODT_RULE_NITI) {
    spec.rounding = static_cast<uint8_t>(r.range(0, 4));
    spec.shift_source = r.chance(50) ? ODT_SHIFT_STALE : ODT_SHIFT_EXACT;
  }
  int8_t lo, hi;
  odt_mu_limits(&spec, &lo, &hi);
  set_mu(spec, static_cast<int8_t>(r.range(lo, hi)));
  spec.sr_seed = r.word();
  Rig rig(build_image(net));
  rig.start(spec, false);
  TiModel ti(rig.model(), spec.batch);
  ti.ctx.mu_weight = spec.mu_weight[0];
  odt_ti_t t = start(ti, spec.batch);
  t.rule_set = spec.rule_set;
  t.rounding = spec.rounding;
  t.shift_source = spec.shift_source;
  t.sr_seed = spec.sr_seed;
  odt_error_t err{};
  while (!odt_trainer_done(rig.trainer())) {
    const Bytes blob = next_batch(rig.trainer(), net, set);
    const Batch b = batch_of(blob);
    const odt_samples_t samples = open_samples(blob);
    const Bytes input = ti.frozen(b.data, b.n());
    const auto n = static_cast<int32_t>(b.n());
    odt_step_record_t expected{};
    odt_ti_record_t rec{};
    ASSERT_EQ(odt_ti_forward(&t, input.data(), n, &err), ODT_OK) << err.what;
    ti.loss(rig.model(), b.labels);
    ASSERT_EQ(odt_ti_backward(&t, input.data(), n, &rec, &err), ODT_OK) << err.what;
    ASSERT_EQ(odt_trainer_step(rig.trainer(), &samples, &expected, &err), ODT_OK) << err.what;
    EXPECT_EQ(rec.step, expected.step);
    for (uint32_t i = 0; i < rig.model().n_layers; i++) {
      EXPECT_EQ(rec.layers[i].bits, expected.layers[i].bits) << "layer " << i;
      EXPECT_EQ(rec.layers[i].shift, expected.layers[i].shift) << "layer " << i;
      EXPECT_EQ(rec.layers[i].k, 8);
    }
    ASSERT_EQ(snapshot(t, rig.model()), weights_of(rig.trainer())) << describe(spec);
    odt_epoch_record_t end;
    if (!odt_trainer_epoch_complete(rig.trainer())) continue;
    odt_trainer_end_epoch(rig.trainer(), 0, 0, &end, nullptr);
    for (uint32_t i = 0; i < rig.model().n_layers; i++)
      EXPECT_EQ(rec.layers[i].e_d, end.layers[i].e_d) << "layer " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Ti, ::testing::Range(0, 60));

// ---- one small model --------------------------------------------------------------------------

class TiDense : public ::testing::Test {
 protected:
  Random r_{77};
  NetSpec net_ = small_dense();
  SampleSet set_ = random_samples(r_, net_, 8);
  Rig rig_{build_image(net_)};
  TiModel ti_{rig_.model(), 8};
  Batch b_ = batch_of(set_.blob);
  odt_error_t err_{};

  void step(odt_ti_t& t) {
    ASSERT_EQ(odt_ti_forward(&t, b_.data.data(), 8, &err_), ODT_OK);
    ti_.loss(rig_.model(), b_.labels);
    ASSERT_EQ(odt_ti_backward(&t, b_.data.data(), 8, nullptr, &err_), ODT_OK) << err_.what;
  }
};

TEST_F(TiDense, InferTouchesNeitherActivationsNorMasksNorWeights) {
  INTODT_Forward(&ti_.ctx, b_.data.data(), 8);
  const Bytes before = ti_.everything();
  const std::vector<int8_t> batch_logits(ti_.logits(), ti_.logits() + 4);
  int8_t logits[4];
  INTODT_Infer(&ti_.ctx, b_.data.data() + 12 * 5, logits);
  INTODT_Infer(&ti_.ctx, b_.data.data(), logits);
  EXPECT_EQ(ti_.everything(), before);
  EXPECT_EQ(std::vector<int8_t>(logits, logits + 4), batch_logits);
}

TEST_F(TiDense, MasksAreBitsOfPositiveActivationsPerSample) {
  INTODT_Forward(&ti_.ctx, b_.data.data(), 8);
  int ones = 0;
  for (int i = 0; i < 64; i++) {
    const bool bit = (ti_.layers[0].relu_mask[i / 8] >> (i % 8)) & 1;  // 8 outputs: a byte a sample
    EXPECT_EQ(bit, static_cast<uint8_t*>(ti_.layers[0].act_buf)[i] > 0) << i;
    ones += bit ? 1 : 0;
  }
  EXPECT_GT(ones, 5);
  EXPECT_LT(ones, 60);
}

TEST_F(TiDense, BackwardReadsTheMaskNotTheActivation) {
  TiModel other(rig_.model(), 8);
  for (TiModel* m : {&ti_, &other}) {
    INTODT_Forward(&m->ctx, b_.data.data(), 8);
    m->loss(rig_.model(), b_.labels);
  }
  std::memset(other.layers[0].relu_mask, 0, 8);  // every hidden unit gated: the first layer stays
  const std::vector<int8_t> start = ti_.memory[0].weights;
  INTODT_Backward(&ti_.ctx, b_.data.data(), 8);
  INTODT_Backward(&other.ctx, b_.data.data(), 8);
  EXPECT_NE(ti_.memory[0].weights, start);
  EXPECT_EQ(other.memory[0].weights, start);
}

TEST_F(TiDense, AMuOutOfRangeCountsAsTheLimitAndIsRefusedBeside) {
  TiModel limit(rig_.model(), 8);
  ti_.ctx.mu_weight = 100;
  limit.ctx.mu_weight = 4;
  for (TiModel* m : {&ti_, &limit}) {
    INTODT_Forward(&m->ctx, b_.data.data(), 8);
    m->loss(rig_.model(), b_.labels);
    INTODT_Backward(&m->ctx, b_.data.data(), 8);
  }
  EXPECT_EQ(ti_.everything(), limit.everything());
  odt_ti_t t = start(ti_, 8);
  EXPECT_EQ(odt_ti_backward(&t, b_.data.data(), 8, nullptr, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "mu_weight");
  EXPECT_EQ(err_.limit_hi, 4);
  EXPECT_EQ(ti_.everything(), limit.everything());
}

TEST_F(TiDense, WrongBatchSizesAreRefusedOrIgnored) {
  odt_ti_t t = start(ti_, 4);
  EXPECT_EQ(odt_ti_forward(&t, b_.data.data(), 5, &err_), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(err_.limit_hi, 4);
  EXPECT_EQ(odt_ti_backward(&t, b_.data.data(), 0, nullptr, &err_), ODT_INVALID_ARGUMENT);
  const Bytes before = ti_.everything();
  INTODT_Forward(&ti_.ctx, b_.data.data(), 0);
  INTODT_Backward(&ti_.ctx, b_.data.data(), -1);
  EXPECT_EQ(ti_.everything(), before);
}

TEST_F(TiDense, ABrokenContextIsNamedAndLeftAlone) {
  const struct {
    const char* what;
    void (*spoil)(TiModel&);
  } kCases[] = {
      {"in_size", [](TiModel& m) { m.layers[1].in_size = 9; }},
      {"act_buf: NULL", [](TiModel& m) { m.layers[0].act_buf = nullptr; }},
      {"relu_mask: NULL", [](TiModel& m) { m.layers[0].relu_mask = nullptr; }},
      {"type", [](TiModel& m) { m.layers[1].type = INT_LAYER_PREQUANT; }},
      {"k", [](TiModel& m) { m.memory[1].k[2] = 32; }},
      {"weights, offset or k: NULL", [](TiModel& m) { m.layers[1].linear.weights = nullptr; }},
      {"input_type", [](TiModel& m) { m.ctx.input_type = static_cast<IntInputType_t>(0); }},
      {"grad_buf: NULL", [](TiModel& m) { m.ctx.grad_buf[1] = nullptr; }},
      {"last layer: int8 logits", [](TiModel& m) { m.layers[1].act_dtype = ODT_S16; }},
  };
  for (const auto& c : kCases) {
    TiModel m(rig_.model(), 8);
    c.spoil(m);
    const Bytes before = m.everything();
    EXPECT_EQ(odt_ti_check(&m.ctx, &err_), ODT_INVALID_ARGUMENT) << c.what;
    EXPECT_STREQ(err_.what, c.what);
    int8_t logits[4] = {9, 9, 9, 9};
    INTODT_Forward(&m.ctx, b_.data.data(), 8);
    INTODT_Backward(&m.ctx, b_.data.data(), 8);
    INTODT_Infer(&m.ctx, b_.data.data(), logits);
    EXPECT_EQ(logits[0], 9);
    EXPECT_EQ(m.everything(), before);
  }
}

TEST_F(TiDense, RestoringASnapshotRepeatsTheSteps) {
  odt_ti_t t = start(ti_, 8);
  t.shift_source = ODT_SHIFT_STALE;
  step(t);
  const Bytes middle = snapshot(t, rig_.model());
  EXPECT_NE(t.b_prev[0], 0);
  uint8_t hash[32];
  odt_ti_weights_hash(&t, rig_.model().hash, hash);
  odt_sha256_t sha;
  uint8_t expected[32];
  odt_sha256_init(&sha);
  odt_sha256_update(&sha, middle.data(), static_cast<uint32_t>(middle.size()));
  odt_sha256_final(&sha, expected);
  EXPECT_EQ(std::memcmp(hash, expected, 32), 0);
  t.b_prev[0] = t.b_prev[1] = 0;
  step(t);
  const Bytes end = snapshot(t, rig_.model());
  EXPECT_NE(end, middle);
  ASSERT_EQ(odt_ti_restore(&t, rig_.model().hash, middle.data(),
                           static_cast<uint32_t>(middle.size()), &err_),
            ODT_OK);
  EXPECT_EQ(t.b_prev[0], 0);
  EXPECT_EQ(snapshot(t, rig_.model()), middle);
  step(t);
  EXPECT_EQ(snapshot(t, rig_.model()), end);
}

TEST_F(TiDense, RestoreRefusesWhatIsNotItsOwn) {
  odt_ti_t t = start(ti_, 8);
  const Bytes good = snapshot(t, rig_.model());
  const auto size = static_cast<uint32_t>(good.size());
  const uint8_t* hash = rig_.model().hash;
  EXPECT_EQ(odt_ti_snapshot(&t, hash, Bytes(size).data(), size - 1, &err_), ODT_RESOURCE_EXHAUSTED);
  EXPECT_EQ(odt_ti_restore(&t, hash, good.data(), size - 4, &err_), ODT_INVALID_ARGUMENT);
  const struct {
    size_t at;
    odt_status_t status;
  } kCases[] = {{0, ODT_INVALID_ARGUMENT},
                {9, ODT_INVALID_ARGUMENT},
                {6, ODT_FAILED_PRECONDITION},
                {12, ODT_FAILED_PRECONDITION},
                {44, ODT_INVALID_ARGUMENT}};
  for (const auto& c : kCases) {
    Bytes bad = good;
    bad[c.at] ^= 1;
    bad[70] ^= 1;  // a weight: must not be taken
    EXPECT_EQ(odt_ti_restore(&t, hash, bad.data(), size, &err_), c.status) << c.at;
    EXPECT_EQ(snapshot(t, rig_.model()), good);
  }
}

TEST_F(TiDense, BoundBuffersTrainAlike) {
  TiModel plain(rig_.model(), 8);
  const uint32_t bytes = odt_ti_buffer_bytes(&ti_.ctx, 8);
  std::vector<uint32_t> memory(bytes / 4 + 1, 0xCCCCCCCCu);
  EXPECT_EQ(odt_ti_bind(&ti_.ctx, 8, memory.data(), bytes - 1, &err_), ODT_RESOURCE_EXHAUSTED);
  EXPECT_EQ(err_.limit_lo, static_cast<int32_t>(bytes));
  EXPECT_EQ(odt_ti_bind(&ti_.ctx, 0, memory.data(), bytes, &err_), ODT_OUT_OF_RANGE);
  ASSERT_EQ(odt_ti_bind(&ti_.ctx, 8, memory.data(), bytes, &err_), ODT_OK);
  for (TiModel* m : {&ti_, &plain}) {
    INTODT_Forward(&m->ctx, b_.data.data(), 8);
    m->loss(rig_.model(), b_.labels);
    INTODT_Backward(&m->ctx, b_.data.data(), 8);
  }
  EXPECT_EQ(ti_.memory[0].weights, plain.memory[0].weights);
  EXPECT_EQ(ti_.memory[1].offset, plain.memory[1].offset);
  EXPECT_EQ(memory.back(), 0xCCCCCCCCu);
}

TEST_F(TiDense, StatsCountSaturatedWeightsAndDeadUnits) {
  odt_ti_t t = start(ti_, 8);
  ti_.memory[0].weights.assign(ti_.memory[0].weights.size(), 1);
  ti_.memory[0].weights[3] = 127;
  ti_.memory[0].weights[4] = -128;
  ti_.memory[0].offset[6] = -(1 << 29);  // never above 0
  INTODT_Forward(&ti_.ctx, b_.data.data(), 8);
  odt_ti_layer_stats_t s;
  odt_ti_layer_stats(&t, 0, 8, &s);
  EXPECT_EQ(s.saturated, 2u);
  EXPECT_EQ(s.w_min, -128);
  EXPECT_EQ(s.w_max, 127);
  EXPECT_GE(s.dead_units, 1u);
  EXPECT_LT(s.dead_units, 8u);
}

TEST(TiPrequant, IsTheFilesNodesInFloat32) {
  const float offset[] = {0.5f, -7.8125f}, scale[] = {2252.0f / 64, -1890.0f / 1024};
  const IntPrequant_t p = {offset, scale, 2};
  const float x[] = {0.0f, -0.51f, 3.6f, 1e30f, 7.8f, -60.25f, 80.0f, NAN};
  int8_t y[8];
  odt_ti_prequant(&p, -128, 127, x, 8, ODT_S8, y);
  for (int i = 0; i < 7; i++) {
    const float v = (x[i] + offset[i / 4]) * scale[i / 4];
    EXPECT_EQ(y[i], std::clamp(std::floor(v), -128.0f, 127.0f)) << i;
  }
  EXPECT_EQ(y[7], -128);
  int16_t wide[8];
  odt_ti_prequant(&p, -300, 300, x, 8, ODT_S16, wide);
  EXPECT_EQ(wide[3], 300);
}

TEST(TiPrequant, InFrontOfTheLayersTakesFloatsItself) {
  Random r(3);
  const NetSpec net = small_dense();
  Rig rig(build_image(net));
  TiModel ti(rig.model(), 4), direct(rig.model(), 4);
  const float offset = -0.25f, scale = 3.0f;
  int8_t buffer[4 * 12];
  IntLayerDesc_t first{};
  first.type = INT_LAYER_PREQUANT;
  first.in_size = first.out_size = 12;
  first.clip_lo = -128;
  first.clip_hi = 127;
  first.act_buf = buffer;
  first.prequant = {&offset, &scale, 1};
  ti.layers.insert(ti.layers.begin(), first);
  ti.ctx.layers = ti.layers.data();
  ti.ctx.n_layers = 3;
  std::vector<float> x;
  for (int i = 0; i < 48; i++) x.push_back(static_cast<float>(r.range(-500, 500)) / 10.0f);
  int8_t q[48];
  odt_ti_prequant(&first.prequant, -128, 127, x.data(), 48, ODT_S8, q);
  INTODT_Forward(&ti.ctx, x.data(), 4);
  INTODT_Forward(&direct.ctx, q, 4);
  EXPECT_EQ(std::memcmp(buffer, q, 48), 0);
  for (TiModel* m : {&ti, &direct}) m->loss(rig.model(), {0, 1, 2, 3});
  INTODT_Backward(&ti.ctx, x.data(), 4);
  INTODT_Backward(&direct.ctx, q, 4);
  EXPECT_EQ(ti.everything(), direct.everything());
  int8_t a[4], b[4];
  INTODT_Infer(&ti.ctx, x.data() + 24, a);
  INTODT_Infer(&direct.ctx, q + 24, b);
  EXPECT_EQ(std::memcmp(a, b, 4), 0);
}

TEST(TiNames, HaveTheInterfacesValues) {
  EXPECT_EQ(INT_LAYER_PREQUANT, 0);
  EXPECT_EQ(INT_LAYER_CONV2D, 1);
  EXPECT_EQ(INT_LAYER_CONV2D_RELU, 2);
  EXPECT_EQ(INT_LAYER_LINEAR, 3);
  EXPECT_EQ(INT_LAYER_LINEAR_RELU, 4);
  EXPECT_EQ(INT_INPUT_INT8, 1);
  EXPECT_EQ(INT_INPUT_UINT8, 2);
}

}  // namespace
}  // namespace odt::testing

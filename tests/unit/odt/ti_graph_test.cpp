// TI's interface on graphs against the trainer: the same bits on random models of every layer kind
// and task, with every set of trained layers that a cut goes in front of.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "fixture.h"
#include "full.h"
#include "odt/ti.h"
#include "random_graph.h"
#include "ti_model.h"

namespace odt::testing {
namespace {

using Bytes = std::vector<uint8_t>;

bool has_weights(const LayerSpec& l) {
  return l.kind == OpKind::kConv2d || l.kind == OpKind::kLinear;
}

// A random graph whose layers are trained from some layer on.
NetSpec trained_from_one_on(Choices& c) {
  GraphLimits limits;
  limits.offsets_only = false;
  NetSpec net = random_graph(c, limits);
  int weights = 0;
  for (const LayerSpec& l : net.layers) weights += has_weights(l) ? 1 : 0;
  int frozen = weights == 0 ? 0 : c.range(0, weights - 1);
  for (LayerSpec& l : net.layers) {
    l.offsets_only = false;
    l.trainable = has_weights(l) && frozen-- <= 0;
  }
  return net;
}

bool usable(const NetSpec& net) {
  const Bytes image = build_image(net);
  std::vector<uint32_t> words(image.size() / 4 + 1);
  std::memcpy(words.data(), image.data(), image.size());
  auto m = std::make_unique<odt_model_t>();
  const odt_run_spec_t spec = plain_spec(2, 2, 1);
  return odt_model_open(m.get(), words.data(), static_cast<uint32_t>(image.size()), nullptr) ==
             ODT_OK &&
         m->n_layers > 0 && TiModel::fits(*m) &&
         odt_run_spec_check(&spec, m.get(), nullptr) == ODT_OK;
}

NetSpec usable_net(uint32_t seed) {
  for (uint32_t n = 0;; n++) {
    Choices c(seed * 1000u + n);
    NetSpec net = trained_from_one_on(c);
    if (usable(net)) return net;
  }
}

struct Case {
  NetSpec net;
  GraphSamples samples;
  odt_run_spec_t spec;
};

Case case_of(uint32_t seed) {
  Case out;
  out.net = usable_net(seed);
  Choices c(seed + 77777u);
  const int n = c.range(3, 20);
  out.samples = random_graph_samples(c, out.net, n);
  out.spec = plain_spec(n, c.range(2, 7), 2);
  out.spec.rule_set = c.chance(20) ? ODT_RULE_NITI_LITERAL : ODT_RULE_NITI;
  if (out.spec.rule_set == ODT_RULE_NITI) {
    out.spec.rounding = static_cast<uint8_t>(c.range(0, 4));
    out.spec.shift_source = c.chance(30) ? ODT_SHIFT_STALE : ODT_SHIFT_EXACT;
  }
  int8_t lo, hi;
  odt_mu_limits(&out.spec, &lo, &hi);
  for (int8_t& mu : out.spec.mu_weight) mu = static_cast<int8_t>(c.range(lo, hi));
  for (int8_t& mu : out.spec.mu_weight) mu = out.spec.mu_weight[0];
  out.spec.mu_offset = static_cast<int8_t>(c.range(-8, 7));
  out.spec.sr_seed = c.word();
  return out;
}

class TiGraph : public ::testing::TestWithParam<int> {
 protected:
  void run(uint32_t seed) {
    const Case c = case_of(seed);
    SCOPED_TRACE(describe_net(c.net) + describe(c.spec) + "seed " + std::to_string(seed));
    Rig rig(build_image(c.net));
    rig.start(c.spec, false);
    TiModel ti(rig.model(), c.spec.batch);
    for (const IntLayerDesc_t& l : ti.layers) kinds_.insert(l.type);
    ti.ctx.mu_weight = c.spec.mu_weight[0];
    ti.ctx.mu_offset = c.spec.mu_offset;
    odt_ti_t t{};
    ASSERT_EQ(odt_ti_init(&t, &ti.ctx, c.spec.batch, &rig.err), ODT_OK)
        << rig.err.what << " " << rig.err.index << " " << rig.err.got;
    t.rule_set = c.spec.rule_set;
    t.rounding = c.spec.rounding;
    t.shift_source = c.spec.shift_source;
    t.sr_seed = c.spec.sr_seed;
    while (!odt_trainer_done(rig.trainer()) && !HasFatalFailure()) step(c, rig, ti, t);
  }

  static std::set<int> kinds_;

 private:
  static std::vector<int> batch_at(const odt_trainer_t* t) {
    const std::vector<int> order =
        oracle_order(t->spec.order_seed, t->epoch, static_cast<int>(t->spec.train_samples));
    const uint32_t n = std::min<uint32_t>(t->spec.batch, t->spec.train_samples - t->position);
    return {order.begin() + t->position, order.begin() + t->position + n};
  }

  static void loss(const Case& c, Rig& rig, TiModel& ti, const std::vector<int>& batch) {
    if (rig.model().task == ODT_TASK_CLASSIFY) {
      std::vector<int> labels;
      for (int s : batch) labels.push_back(c.samples.labels[static_cast<size_t>(s)]);
      ti.loss(rig.model(), labels);
      return;
    }
    const bool own = rig.model().task == ODT_TASK_AUTOENCODE;
    std::vector<Values> targets;
    for (int s : batch)
      targets.push_back((own ? c.samples.values : c.samples.targets)[static_cast<size_t>(s)]);
    ti.loss_values(targets);
  }

  void step(const Case& c, Rig& rig, TiModel& ti, odt_ti_t& t) {
    const std::vector<int> batch = batch_at(rig.trainer());
    const Bytes blob = samples_blob(c.samples, batch);
    const odt_samples_t samples = open_samples(blob);
    const auto n = static_cast<int32_t>(batch.size());
    const Bytes data(samples.data, samples.data + samples.count * samples.sample_len);
    const Bytes input = ti.frozen(data, samples.count);
    odt_step_record_t expected{};
    odt_ti_record_t rec{};
    ASSERT_EQ(odt_ti_forward(&t, input.data(), n, &rig.err), ODT_OK) << rig.err.what;
    loss(c, rig, ti, batch);
    ASSERT_EQ(odt_ti_backward(&t, input.data(), n, &rec, &rig.err), ODT_OK) << rig.err.what;
    ASSERT_EQ(odt_trainer_step(rig.trainer(), &samples, &expected, &rig.err), ODT_OK)
        << rig.err.what;
    Bytes mine(odt_ti_snapshot_size(&ti.ctx));
    odt_ti_snapshot(&t, rig.model().hash, mine.data(), static_cast<uint32_t>(mine.size()), nullptr);
    ASSERT_EQ(mine, weights_of(rig.trainer())) << "step " << rec.step;
    for (uint32_t i = 0; i < rig.model().n_layers; i++) {
      EXPECT_EQ(rec.layers[i].bits, expected.layers[i].bits) << "layer " << i;
      EXPECT_EQ(rec.layers[i].shift, expected.layers[i].shift) << "layer " << i;
      EXPECT_EQ(rec.layers[i].e_d, rig.trainer()->layers[i].e_d) << "layer " << i;
    }
    same_logits(rig, ti, data, input);
    odt_epoch_record_t end;
    if (odt_trainer_epoch_complete(rig.trainer()))
      odt_trainer_end_epoch(rig.trainer(), 0, 0, &end, nullptr);
  }

  static void same_logits(Rig& rig, TiModel& ti, const Bytes& data, const Bytes& input) {
    const uint32_t len = rig.model().tensors[rig.model().input].count;
    const Bytes before = ti.everything();
    for (uint32_t s = 0; s * len < data.size(); s++) {
      std::vector<int8_t> expected(ti.n_classes()), got(ti.n_classes());
      odt_trainer_infer(rig.trainer(), data.data() + s * len, expected.data());
      INTODT_Infer(&ti.ctx, input.data() + s * ti.input_bytes(), got.data());
      ASSERT_EQ(got, expected);
    }
    EXPECT_EQ(ti.everything(), before) << "INTODT_Infer touched more than scratch";
  }
};

std::set<int> TiGraph::kinds_;

constexpr int kNets = 25;

TEST_P(TiGraph, TrainsToTheTrainersBits) {
  const int nets = test::repeats(6, kNets);
  for (int i = 0; i < nets && !HasFatalFailure(); i++)
    run(static_cast<uint32_t>(GetParam() * kNets + i));
}

INSTANTIATE_TEST_SUITE_P(Random, TiGraph, ::testing::Range(0, 12));

TEST_F(TiGraph, TheRandomGraphsHaveLayersOfEveryKind) {
  for (uint32_t seed = 0; seed < 3000 && kinds_.size() < 12; seed++) run(seed);
  RecordProperty("kinds", static_cast<int>(kinds_.size()));
  for (int kind = INT_LAYER_CONV2D; kind <= INT_LAYER_FLATTEN; kind++)
    EXPECT_TRUE(kinds_.count(kind)) << kind;
}

// ---- what a context must fulfil -----------------------------------------------------------------

LayerSpec plain(OpKind kind, int in0, int in1 = -1) {
  LayerSpec l;
  l.kind = kind;
  l.in0 = in0;
  l.in1 = in1;
  return l;
}

LayerSpec conv(Random& r, int in0, uint32_t in_ch, uint32_t out_ch) {
  LayerSpec l = plain(OpKind::kConv2d, in0);
  l.outputs = out_ch;
  l.k_h = l.k_w = 3;
  l.pad_t = l.pad_l = l.pad_b = l.pad_r = 1;
  l.trainable = true;
  for (uint32_t i = 0; i < in_ch * out_ch * 9; i++)
    l.weights.push_back(static_cast<int8_t>(r.range(-30, 30)));
  l.offsets.assign(out_ch, 32);
  l.k.assign(out_ch, 6);
  return l;
}

// input -> conv -> maxpool -> conv -> add with the pool -> gap -> linear
NetSpec residual() {
  Random r(5);
  NetSpec net;
  net.input_dims = {2, 6, 6};
  net.n_classes = 3;
  net.layers = {conv(r, 0, 2, 4),          plain(OpKind::kMaxPool, 1), conv(r, 2, 4, 4),
                plain(OpKind::kAdd, 2, 3), plain(OpKind::kGap, 4),     plain(OpKind::kFlatten, 5),
                plain(OpKind::kLinear, 6)};
  LayerSpec& pool = net.layers[1];
  pool.k_h = pool.k_w = pool.stride_h = pool.stride_w = 2;
  net.layers[3].outputs = 2;
  net.layers[3].offsets = {1 << 20, 1 << 20};
  net.layers[4].outputs = 1;
  net.layers[4].offsets = {4};
  net.layers[4].k = {3};
  LayerSpec& last = net.layers[6];
  last.outputs = 3;
  last.trainable = true;
  for (int i = 0; i < 12; i++) last.weights.push_back(static_cast<int8_t>(r.range(-50, 50)));
  last.offsets = {64, 64, 64};
  last.k = {5, 5, 5};
  net.target_correct = {60, 60, 60};
  net.target_wrong = {-20, -20, -20};
  return net;
}

TEST(TiGraphCheck, AContextThatDoesNotFitItselfIsRefusedAndChangesNothing) {
  Rig rig(build_image(residual()));
  ASSERT_EQ(rig.err.status, ODT_OK);
  const struct {
    const char* what;
    void (*spoil)(TiModel&);
  } kCases[] = {
      {"in0", [](TiModel& m) { m.layers[2].in0 = 4; }},
      {"in1", [](TiModel& m) { m.layers[3].in1 = 0; }},
      {"in1", [](TiModel& m) { m.layers[3].in1 = 5; }},
      {"in1", [](TiModel& m) { m.layers[1].in1 = 1; }},
      {"delta_buf: NULL", [](TiModel& m) { m.layers[1].delta_buf = nullptr; }},
      {"output: not read", [](TiModel& m) { m.layers[3].in1 = m.layers[3].in0 = 2; }},
      {"act_dtype", [](TiModel& m) { m.layers[1].act_dtype = 0; }},
      {"act_dtype", [](TiModel& m) { m.layers[1].act_dtype = ODT_U8; }},
      {"add: m", [](TiModel& m) { m.layers[3].add.m[1] = -1; }},
      {"add: values of in1", [](TiModel& m) { m.layers[3].in1 = INT_FROM_INPUT; }},
      {"out_size", [](TiModel& m) { m.layers[3].type = INT_LAYER_CONCAT; }},
      {"pool: input_h * input_w against in_size", [](TiModel& m) { m.layers[1].pool.input_h = 5; }},
      {"pool: channels * out_h * out_w against out_size",
       [](TiModel& m) { m.layers[1].pool.out_w = 4; }},
      {"pool: kH, kW", [](TiModel& m) { m.layers[1].pool.kH = 0; }},
      {"pool: a window of padding alone", [](TiModel& m) { m.layers[1].pool.pad_h = 2; }},
      {"pool: offset or k: NULL", [](TiModel& m) { m.layers[4].pool.k = nullptr; }},
      {"pool: n_ch", [](TiModel& m) { m.layers[4].pool.n_ch = 3; }},
      {"k", [](TiModel& m) { m.memory[4].k[0] = 32; }},
      {"type", [](TiModel& m) { m.layers[1].type = static_cast<IntLayerType_t>(13); }},
  };
  for (const auto& c : kCases) {
    TiModel m(rig.model(), 4);
    ASSERT_EQ(odt_ti_check(&m.ctx, &rig.err), ODT_OK) << rig.err.what;
    c.spoil(m);
    const Bytes before = m.everything();
    EXPECT_EQ(odt_ti_check(&m.ctx, &rig.err), ODT_INVALID_ARGUMENT) << c.what;
    EXPECT_STREQ(rig.err.what, c.what);
    const Bytes input(4 * 72, 1);
    INTODT_Forward(&m.ctx, input.data(), 4);
    INTODT_Backward(&m.ctx, input.data(), 4);
    EXPECT_EQ(m.everything(), before);
  }
}

TEST(TiGraphCheck, BoundBuffersTrainAlike) {
  Rig rig(build_image(residual()));
  TiModel bound(rig.model(), 4), plain(rig.model(), 4);
  const uint32_t bytes = odt_ti_buffer_bytes(&bound.ctx, 4);
  std::vector<uint32_t> memory(bytes / 4 + 1, 0xCCCCCCCCu);
  ASSERT_EQ(odt_ti_bind(&bound.ctx, 4, memory.data(), bytes, &rig.err), ODT_OK);
  Bytes input(4 * 72);
  for (size_t i = 0; i < input.size(); i++) input[i] = static_cast<uint8_t>(i * 37);
  for (TiModel* m : {&bound, &plain}) {
    INTODT_Forward(&m->ctx, input.data(), 4);
    m->loss(rig.model(), {0, 1, 2, 0});
    INTODT_Backward(&m->ctx, input.data(), 4);
  }
  EXPECT_NE(plain.memory[0].weights, TiModel(rig.model(), 4).memory[0].weights);
  for (size_t i : {0u, 2u, 6u}) EXPECT_EQ(bound.memory[i].weights, plain.memory[i].weights);
  EXPECT_EQ(memory.back(), 0xCCCCCCCCu);
}

}  // namespace
}  // namespace odt::testing

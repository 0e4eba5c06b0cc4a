// The library against the oracle: random networks, every rule, rounding, k and loss.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "fixture.h"
#include "full.h"

namespace odt::testing {
namespace {

void compare(const Oracle& oracle, const odt_trainer_t& t, const odt_step_record_t& rec) {
  ASSERT_EQ(rec.loss, static_cast<uint64_t>(oracle.loss()));
  ASSERT_EQ(rec.correct, static_cast<uint32_t>(oracle.correct()));
  for (size_t i = 0; i < oracle.layers().size(); i++) {
    const OracleLayer& want = oracle.layers()[i];
    const odt_layer_t& got = t.layers[i];
    SCOPED_TRACE("layer " + std::to_string(i));
    ASSERT_EQ(rec.layers[i].bits, want.bits);
    ASSERT_EQ(rec.layers[i].shift, want.ws);
    ASSERT_EQ(got.b_prev, want.b_prev);
    ASSERT_EQ(Values(got.off, got.off + got.n_offsets), want.off);
    ASSERT_EQ(stored(got), want.m);
  }
}

void run_against_oracle(const NetSpec& net, const SampleSet& set, const odt_run_spec_t& spec,
                        int max_steps) {
  auto n = static_cast<int>(spec.train_samples);
  Rig resident(build_image(net)), streamed(build_image(net));
  resident.start(spec, true);
  streamed.start(spec, false);
  if (::testing::Test::HasFailure()) return;
  Oracle oracle(net, oracle_settings(spec, net));
  odt_samples_t train = open_samples(set.blob);
  odt_trainer_t* t = resident.trainer();
  for (int i = 0; i < max_steps && !odt_trainer_done(t); i++) {
    std::vector<int> order = oracle_order(spec.order_seed, t->epoch, n);
    std::vector<Values> xs;
    std::vector<int> labels;
    for (uint32_t j = t->position; j < t->spec.train_samples && xs.size() < spec.batch; j++) {
      xs.push_back(set.values[static_cast<size_t>(order[j])]);
      labels.push_back(set.labels[static_cast<size_t>(order[j])]);
    }
    oracle.step(xs, labels);
    std::vector<uint8_t> blob = next_batch(streamed.trainer(), net, set);
    odt_samples_t batch = open_samples(blob);
    odt_step_record_t rec{}, rec2{};
    ASSERT_EQ(odt_trainer_step_resident(t, &train, &rec, &resident.err), ODT_OK);
    ASSERT_EQ(odt_trainer_step(streamed.trainer(), &batch, &rec2, &streamed.err), ODT_OK)
        << streamed.err.what;
    SCOPED_TRACE("step " + std::to_string(i));
    compare(oracle, *t, rec);
    if (::testing::Test::HasFailure()) return;
    std::vector<int8_t> logits(net.n_classes);
    odt_trainer_infer(t, train.data, logits.data());
    ASSERT_EQ(Values(logits.begin(), logits.end()), oracle.infer(set.values[0]));
    if (odt_trainer_epoch_complete(t)) {
      odt_epoch_record_t e{}, e2{};
      ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &resident.err), ODT_OK);
      ASSERT_EQ(odt_trainer_end_epoch(streamed.trainer(), 0, 0, &e2, &streamed.err), ODT_OK);
    }
    ASSERT_EQ(state_of(t), state_of(streamed.trainer()));
  }
}

void run(uint32_t seed) {
  Random r(seed);
  NetSpec net = random_net(r);
  int n = r.range(1, 30);
  SampleSet set = random_samples(r, net, n);
  odt_run_spec_t spec = random_spec(r, net, n);
  SCOPED_TRACE("seed " + std::to_string(seed) + " " + describe(spec));
  run_against_oracle(net, set, spec, 12);
}

class Differential : public ::testing::TestWithParam<uint32_t> {};

// Each case is 20 networks, everyday the first of them.
TEST_P(Differential, EqualsOracle) {
  const uint32_t nets = test::repeats(6u, 20u);
  for (uint32_t i = 0; i < nets && !HasFailure(); i++) run(GetParam() * 1000 + i);
}

INSTANTIATE_TEST_SUITE_P(Random, Differential, ::testing::Range(1u, 31u));

// The golden model and the first of its samples under settings that have no golden hash.
struct Setting {
  const char* name;
  int k, rounding, loss, shift, batch, epochs, mu[3];
  bool literal;
};

class Fixture : public ::testing::TestWithParam<Setting> {
 protected:
  static std::vector<uint8_t> read(const std::string& name) {
    std::ifstream f(std::string(ODT_GOLDEN_DIR) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  template <class T>
  static std::vector<T> values(const std::string& name) {
    std::vector<uint8_t> bytes = read(name);
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  static NetSpec net() {
    NetSpec n;
    n.input_dims = {196};
    n.n_classes = 10;
    for (int i = 0; i < 2; i++) {
      std::string layer = "layer" + std::to_string(i);
      LayerSpec l;
      l.outputs = i == 0 ? 32 : 10;
      l.relu = i == 0;
      l.trainable = true;
      l.clip_lo = i == 0 ? 0 : -128;
      l.clip_hi = i == 0 ? 255 : 127;
      l.weights = values<int8_t>(layer + "_weights_in_out.i8");
      l.offsets = values<int32_t>(layer + "_offset.i32");
      l.k = values<int8_t>(layer + "_k.i8");
      n.layers.push_back(l);
    }
    n.target_correct = {35, 41, 24, 27, 29, 37, 25, 34, 38, 48};
    n.target_wrong = {1, -8, 1, -2, 0, -7, 2, -12, -1, -14};
    n.ce_scale = 103;
    return n;
  }
  static SampleSet samples(int n) {
    std::vector<int8_t> data = values<int8_t>("samples_600x196.i8");
    std::vector<int8_t> labels = values<int8_t>("labels_600.i8");
    labels.resize(static_cast<size_t>(n));
    data.resize(static_cast<size_t>(n) * 196);
    SampleSet set;
    set.labels.assign(labels.begin(), labels.end());
    for (int i = 0; i < n; i++) {
      set.values.emplace_back(data.begin() + i * 196, data.begin() + (i + 1) * 196);
    }
    set.blob = build_samples(DType::kS8, 196, labels, {data.begin(), data.end()});
    return set;
  }
};

TEST_P(Fixture, EqualsOracle) {
  const Setting& s = GetParam();
  NetSpec model = net();
  SampleSet set = samples(50);
  odt_run_spec_t spec = plain_spec(50, s.batch, s.epochs);
  spec.rule_set = s.literal ? ODT_RULE_NITI_LITERAL : ODT_RULE_NITI;
  spec.k = static_cast<uint8_t>(s.k);
  spec.rounding = static_cast<uint8_t>(s.rounding);
  spec.loss = static_cast<uint8_t>(s.loss);
  spec.shift_source = static_cast<uint8_t>(s.shift);
  for (int i = 0; i < 3; i++) spec.mu_weight[i] = static_cast<int8_t>(s.mu[i]);
  spec.sr_seed = 12345;
  spec.order_seed = 3;
  run_against_oracle(model, set, spec, 1000);
}

INSTANTIATE_TEST_SUITE_P(
    Golden, Fixture,
    ::testing::Values(Setting{"psto_k2", 2, 3, 1, 1, 8, 2, {4, 3, 2}, false},
                      Setting{"half_up_k4", 4, 1, 1, 1, 8, 1, {4, 4, 4}, false},
                      Setting{"sr_k6_stale", 6, 4, 1, 2, 8, 3, {3, 2, 1}, false},
                      Setting{"half_away_k9", 9, 2, 2, 1, 7, 4, {2, 1, 0}, false},
                      Setting{"default_k15_stale", 15, 0, 2, 2, 8, 5, {1, -1, -3}, false},
                      Setting{"mild_k15_batch32", 15, 0, 2, 1, 32, 3, {-5, -6, -7}, false},
                      Setting{"sr_k16_batch1", 16, 4, 1, 1, 1, 1, {2, 0, -12}, false},
                      Setting{"psto_k8_batch1_stale", 8, 0, 1, 2, 1, 2, {2, 1, 0}, false},
                      Setting{"literal", 8, 0, 1, 1, 8, 3, {4, 1, 0}, true}),
    [](const auto& param_info) { return param_info.param.name; });

// The oracle itself on the roundings' golden vectors.
TEST(Oracle, GoldenRounding) {
  const int64_t g[] = {-1000, -768, -513, -512, -511, -64, -1,  0,   1,   63,
                       64,    96,   255,  256,  511,  512, 768, 999, 1000};
  const int64_t psto[] = {-4, -3, -2, -2, -1, -1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 2, 3, 4, 4};
  for (size_t i = 0; i < std::size(g); i++) {
    EXPECT_EQ(oracle_round(g[i], 8, Rounding::kPsto, 0), psto[i]) << g[i];
  }
}

}  // namespace
}  // namespace odt::testing

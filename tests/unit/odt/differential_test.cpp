// The library against the oracle: random networks, every rule, rounding, k and loss.
#include <gtest/gtest.h>

#include "fixture.h"

namespace odt::testing {
namespace {

Values stored(const odt_layer_t& l) {
  Values m;
  for (uint32_t i = 0; i < l.n_weights; i++) {
    m.push_back(l.k > 8 ? static_cast<const int16_t*>(l.m)[i] : static_cast<const int8_t*>(l.m)[i]);
  }
  return m;
}

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

void run(uint32_t seed, int max_steps) {
  Random r(seed);
  NetSpec net = random_net(r);
  int n = r.range(1, 30);
  SampleSet set = random_samples(r, net, n);
  odt_run_spec_t spec = random_spec(r, net, n);
  SCOPED_TRACE("seed " + std::to_string(seed) + " " + describe(spec));
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

class Differential : public ::testing::TestWithParam<uint32_t> {};

// Each case is 20 networks.
TEST_P(Differential, EqualsOracle) {
  for (uint32_t i = 0; i < 20 && !HasFailure(); i++) run(GetParam() * 1000 + i, 12);
}

INSTANTIATE_TEST_SUITE_P(Random, Differential, ::testing::Range(1u, 31u));

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

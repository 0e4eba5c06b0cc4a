// DFP16's canonical bytes: layout, restore at every step, roll-back, refusals.
#include "dfp_fixture.h"

namespace odt::testing::dfp {
namespace {

TEST_F(DfpTrainer, RestoreAtEveryStep) {
  for (bool blocked : {false, true}) {
    spec_.blocked = blocked;
    Rig whole(build_image(net_));
    whole.start(spec_);
    ASSERT_EQ(odt_trainer_set_start(whole.trainer(), 7, 21), ODT_OK);
    for (uint32_t piece = 1; !odt_trainer_done(whole.trainer()); piece = piece * 3 % 1009) {
      std::vector<uint8_t> state = state_of(whole.trainer());
      std::vector<uint8_t> best = weights_of(whole.trainer(), true);
      Rig other(build_image(net_));
      other.start(spec_);
      ASSERT_EQ(push_state(other.trainer(), state, piece), ODT_OK) << err_.what;
      if (odt_trainer_best_missing(other.trainer())) {
        ASSERT_EQ(push_weights(other.trainer(), true, best), ODT_OK) << err_.what;
      }
      ASSERT_FALSE(odt_trainer_best_missing(other.trainer()));
      ASSERT_EQ(state_of(other.trainer()), state);
      while (!odt_trainer_done(other.trainer())) advance(other.trainer());
      advance(whole.trainer());
      if (odt_trainer_done(whole.trainer())) {
        ASSERT_EQ(state_of(other.trainer()), state_of(whole.trainer()));
      }
      if (piece == 1) final_ = state_of(other.trainer());
      ASSERT_EQ(state_of(other.trainer()), final_);
    }
  }
}

TEST_F(DfpTrainer, RollBackBringsExponentsBack) {
  for (bool blocked : {false, true}) {
    spec_.blocked = blocked;
    spec_.lr_m[1] = spec_.lr_m[2] = 32767;
    spec_.lr_s = 10;
    Rig rig(build_image(net_));
    rig.start(spec_);
    odt_trainer_t* t = rig.trainer();
    ASSERT_EQ(odt_trainer_set_start(t, 20, 21), ODT_OK);
    std::vector<uint8_t> start = weights_of(t);
    for (int i = 0; i < 8; i++) advance(t);
    EXPECT_NE(weights_of(t), start);
    EXPECT_GT(odt_dfp_e_max(t, &t->layers[0]), net_.layers[0].e_w);  // it overflowed
    while (!odt_trainer_done(t)) advance(t);
    EXPECT_EQ(weights_of(t), start);
  }
}

TEST_F(DfpTrainer, WeightsLayout) {
  for (bool blocked : {false, true}) {
    net_ = dense_net();
    spec_.blocked = blocked;
    Rig rig(build_image(net_));
    rig.start(spec_);
    std::vector<uint8_t> w = weights_of(rig.trainer());
    size_t exponents = blocked ? 12 + 4 : 0;  // 9 and 3 of them, padded to 4
    ASSERT_EQ(w.size(), 44u + 20 + 2 * 117 + 2 + 36 + 20 + 2 * 27 + 2 + 12 + exponents);
    EXPECT_EQ(w[8], ODT_RULE_DFP16);
    EXPECT_EQ(w[45], blocked ? 5 : 4);
    EXPECT_EQ(static_cast<int8_t>(w[46]), blocked ? 0 : net_.layers[0].e_w);
    for (size_t i = 0; i < 117; i++) {  // ONNX order, whatever the kernels want
      int v = static_cast<int16_t>(w[64 + 2 * i] | w[65 + 2 * i] << 8);
      int e = blocked ? static_cast<int8_t>(w[64 + 236 + 36 + i % 9]) : net_.layers[0].e_w;
      EXPECT_EQ(dfp_value(v, e), dfp_value(net_.layers[0].weights16[i], net_.layers[0].e_w));
    }
    std::vector<uint8_t> piece(7);
    for (uint32_t at = 0; at + 7 <= w.size(); at += 5) {
      odt_weights_read(rig.trainer(), false, at, piece.data(), 7);
      ASSERT_EQ(std::memcmp(piece.data(), w.data() + at, 7), 0) << at;
    }
  }
}

TEST_F(DfpTrainer, BlockedLoadIsExactAndAsFineAsItGets) {
  spec_.blocked = true;
  Rig rig(build_image(net_));
  rig.start(spec_);
  for (uint32_t i = 0; i < rig.model().n_layers; i++) {
    const odt_layer_t& l = rig.trainer()->layers[i];
    const LayerSpec& from = net_.layers[l.op];
    uint32_t each = l.n_weights / l.n_offsets;
    for (uint32_t o = 0; o < l.n_offsets; o++) {
      int largest = 0;
      for (uint32_t j = 0; j < each; j++) {
        uint32_t k = from.kind == OpKind::kLinear ? j * l.n_offsets + o : o * each + j;
        const auto* m = static_cast<const int16_t*>(l.m);
        int v = m[odt_dfp_stored_at(&rig.model(), &rig.model().ops[l.op], k)];
        EXPECT_EQ(dfp_value(v, odt_dfp_e(&l)[o]), dfp_value(from.weights16[k], from.e_w));
        largest = std::max(largest, std::abs(v));
      }
      EXPECT_GT(2 * largest, 32767);
    }
  }
}

TEST_F(DfpTrainer, RefusesBytesThatCannotBe) {
  net_ = dense_net();
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  std::vector<uint8_t> good = state_of(t), bad;
  auto refused = [&](size_t at, uint8_t value, const char* what, const std::vector<uint8_t>& from) {
    bad = from;
    bad[at] = value;
    EXPECT_NE(push_state(t, bad, 4096), ODT_OK) << what;
    EXPECT_STREQ(err_.what, what);
  };
  refused(176, static_cast<uint8_t>(good[176] + 1), "state: lr, blocked", good);
  refused(176 + 7, 1, "state: lr, blocked", good);
  refused(208, 101, "layer: exponent", good);
  refused(208, 0x80, "layer: exponent", good);
  refused(209, 5, "layer: kind, k, shape or sizes", good);
  bad = good;
  bad[208 + 28] = 0;
  bad[208 + 29] = 0x80;  // -32768
  EXPECT_NE(push_state(t, bad, 3), ODT_OK);
  EXPECT_STREQ(err_.what, "layer: weight");
  EXPECT_EQ(push_state(t, good, 5), ODT_OK);
  spec_.blocked = true;
  rig.start(spec_);
  t = rig.trainer();
  good = state_of(t);
  size_t exponents = 208 + 28 + 236 + 36;
  refused(exponents, 101, "layer: exponent", good);
  refused(exponents + 9, 1, "layer: padding", good);
  EXPECT_EQ(push_state(t, good, 1), ODT_OK);
}

}  // namespace
}  // namespace odt::testing::dfp

// Golden vectors of rule 1.13's primitives: multiply-accumulate, down-convert, add, update; losses.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "dfp/dfp.h"
#include "fixture.h"

namespace odt::testing::dfp {
namespace {

using Sums = std::vector<int64_t>;
constexpr int kChain = ODT_DFP_CHAIN;

struct Converted {
  std::vector<int> v;
  int e = 0;
  bool operator==(const Converted&) const = default;
};

void PrintTo(const Converted& c, std::ostream* out) {
  for (int v : c.v) *out << v << " ";
  *out << "e " << c.e;
}

// One sample's sums through the sink with that pre, and the down-conversion.
Converted convert(const Sums& sums, int e, int pre = 0, bool relu = false) {
  auto n = static_cast<uint32_t>(sums.size());
  std::vector<int32_t> acc(odt_dfp_even(n), 77);
  std::vector<int16_t> y(odt_dfp_even(n), 77);
  odt_dfp_sink_t k{};
  k.acc = acc.data();
  k.stride = odt_dfp_even(n);
  k.pre = pre;
  do {
    for (uint32_t i = 0; i < n; i++) odt_dfp_put(&k, 0, i, sums[i]);
  } while (odt_dfp_again(&k));
  int8_t e_out = 0;
  uint32_t zeros = odt_dfp_convert(&k, 1, n, e, relu, y.data(), &e_out);
  Converted c{{y.begin(), y.begin() + n}, e_out};
  EXPECT_EQ(zeros, std::count(c.v.begin(), c.v.end(), 0));
  if (n % 2) {
    EXPECT_EQ(y[n], 0);
  }
  return c;
}

TEST(DfpConvert, Vectors) {
  EXPECT_EQ(convert({0, 0, 0}, 5), (Converted{{0, 0, 0}, 5}));
  EXPECT_EQ(convert({32767, -32767, 1}, -3), (Converted{{32767, -32767, 1}, -3}));
  // 16 bits: Rs = 1. Ties go up; the carry to 2^15 saturates.
  EXPECT_EQ(convert({32768, 3, -3, 1, -1}, 0), (Converted{{16384, 2, -1, 1, 0}, 1}));
  EXPECT_EQ(convert({65535, -65535}, 0), (Converted{{32767, -32767}, 1}));
  EXPECT_EQ(convert({-32768, 5}, 0), (Converted{{-16384, 3}, 1}));
  EXPECT_EQ(convert({int64_t{1} << 54, 1 << 20}, -40, 25), (Converted{{16384, 0}, 0}));
  EXPECT_EQ(convert({1000000, -1000000, 15, 16}, 0), (Converted{{31250, -31250, 0, 1}, 5}));
  EXPECT_EQ(convert({1000000, -1000000, 15, 16}, 0, 0, true), (Converted{{31250, 0, 0, 1}, 5}));
}

TEST(DfpConvert, ExponentsStopAtTheirLimits) {
  EXPECT_EQ(convert({5, -7, 0}, 100), (Converted{{5, -7, 0}, 100}));
  EXPECT_EQ(convert({5, -7, 0}, 101), (Converted{{32767, -32767, 0}, 100}));
  EXPECT_EQ(convert({5, -7, 0}, 101, 0, true), (Converted{{32767, 0, 0}, 100}));
  EXPECT_EQ(convert({1 << 20, 31, 32}, 95), (Converted{{32767, 0, 32767}, 100}));
  EXPECT_EQ(convert({5, -7, 0}, -100), (Converted{{5, -7, 0}, -100}));
  EXPECT_EQ(convert({5, -7, 0}, -101), (Converted{{0, 0, 0}, -100}));
}

// Keeping floor(sum / 2^pre) in 32 bits gives what the whole sums give, whatever was expected.
TEST(DfpConvert, KeptInThirtyTwoBits) {
  Random r(5);
  for (int i = 0; i < 3000; i++) {
    int bits = r.range(0, 55);
    Sums sums;
    for (int n = r.range(1, 6); n > 0; n--) {
      int64_t v = (int64_t{r.word()} << 24 ^ r.word()) & ((int64_t{1} << bits) - 1);
      sums.push_back(r.chance(50) ? -v : v);
    }
    uint64_t largest = 0;
    for (int64_t v : sums) largest = std::max<uint64_t>(largest, std::llabs(v));
    int rs = std::max(0, odt_bitlen64(largest) - 15);
    Converted want{{}, rs};
    for (int64_t v : sums) {
      int64_t y = rs ? (v + (int64_t{1} << (rs - 1))) >> rs : v;
      want.v.push_back(static_cast<int>(std::clamp<int64_t>(y, -32767, 32767)));
    }
    // pre as the bound asks for: at least what makes the sums fit.
    int pre = std::max(0, odt_bitlen64(largest) - 30) + r.range(0, 20);
    ASSERT_EQ(convert(sums, 0, pre), want) << "bits " << bits << " pre " << pre;
  }
}

// A dense layer of 3 inputs and 2 outputs; sums as they come, not rounded.
struct Dense {
  uint32_t n_in = 3, n_out = 2;
  std::vector<int16_t> onnx = {100, -7, 20, 8, -3, 9};  // [in][out]
  std::vector<int32_t> bias = {1000, -1000};
  std::vector<int8_t> e;
  int e_max = 0, bias_left = 0;
  bool panels = true;
  std::vector<int16_t> packed;

  odt_dfp_weights_t weights() {
    packed.assign(odt_dfp_panel_values(n_in, n_out), 0);
    for (uint32_t i = 0; i < n_in * n_out; i++) {
      packed[odt_dfp_panel_at(n_in, i / n_out, i % n_out)] = onnx[i];
    }
    odt_dfp_weights_t w{};
    w.w = panels ? packed.data() : onnx.data();
    w.panels = panels;
    w.e = e.empty() ? nullptr : e.data();
    w.e_max = e_max;
    w.bias = bias.data();
    w.bias_left = bias_left;
    return w;
  }
  static std::vector<int16_t> rows(const std::vector<int16_t>& v, uint32_t n) {
    std::vector<int16_t> out;
    for (size_t b = 0; b * n < v.size(); b++) {
      out.insert(out.end(), v.begin() + static_cast<long>(b * n),
                 v.begin() + static_cast<long>((b + 1) * n));
      if (n % 2) out.push_back(0);
    }
    return out;
  }
  Sums run(bool forward, const std::vector<int16_t>& in) {
    uint32_t from = forward ? n_in : n_out, to = forward ? n_out : n_in;
    auto n = static_cast<uint32_t>(in.size()) / from;
    std::vector<int16_t> x = rows(in, from);
    Sums out;
    odt_dfp_weights_t w = weights();
    std::vector<uint64_t> scratch(4096);
    for (uint32_t b = 0; b < n; b++) {
      Sums wide(odt_dfp_even(to));
      odt_dfp_sink_t k{};
      k.wide = wide.data();
      k.stride = odt_dfp_even(to);
      (forward ? odt_dfp_dense_forward : odt_dfp_dense_delta)(
          &w, n_in, n_out, x.data() + b * odt_dfp_even(from), odt_dfp_even(from), 1, &k,
          scratch.data());
      out.insert(out.end(), wide.begin(), wide.begin() + to);
    }
    return out;
  }
};

TEST(DfpAccumulate, DenseForwardAndBack) {
  for (bool panels : {true, false}) {
    Dense d;
    d.panels = panels;
    if (kChain == 0) {
      EXPECT_EQ(d.run(true, {1, -2, 5, 32767, 0, -32767}),
                (Sums{100 - 40 - 15 + 1000, -7 - 16 + 45 - 1000, 32767 * 103 + 1000,
                      -32767 * 16 - 1000}));
      EXPECT_EQ(d.run(false, {10, -20}), (Sums{1140, 40, -210}));
    } else {  // both operands halved, towards minus infinity
      EXPECT_EQ(d.run(true, {1, -2, 5, 32767, 0, -32767}),
                (Sums{0 - 10 - 4 + 1000, 0 - 4 + 8 - 1000, 16383 * 50 + 16384 * 2 + 1000,
                      -16383 * 4 - 16384 * 4 - 1000}));
      EXPECT_EQ(d.run(false, {10, -20}), (Sums{250 + 40, 50 - 40, -10 - 40}));
    }
  }
}

TEST(DfpAccumulate, OffsetsAlign) {
  Dense d;
  d.onnx.assign(6, 0);
  d.bias = {5, -5};
  d.bias_left = 10;
  EXPECT_EQ(d.run(true, {0, 0, 0}), (Sums{5120, -5120}));
  d.bias_left = -1;  // HALF_UP
  EXPECT_EQ(d.run(true, {0, 0, 0}), (Sums{3, -2}));
  d.bias_left = -63;
  EXPECT_EQ(d.run(true, {0, 0, 0}), (Sums{0, 0}));
  d.bias_left = 61;  // saturates
  EXPECT_EQ(d.run(true, {0, 0, 0}), (Sums{int64_t{1} << 62, -(int64_t{1} << 62)}));
}

TEST(DfpAccumulate, BlockedComesToTheLargestExponent) {
  Dense d;
  d.e = {-3, 0};
  d.e_max = 0;
  d.onnx = {2, 2, 0, 0, 0, 0};
  d.bias = {9, 9};
  // Output 0 lies 3 below: its offset is added there, then all is shifted.
  Sums got = d.run(true, {6, 0, 0});
  int64_t products = kChain ? 3 : 12;
  EXPECT_EQ(got, (Sums{(products + 72 + 4) >> 3, products + 9}));
  // Back: weights of output 0 are brought to the common exponent first. 20 -> 3 (2.5 goes up).
  d.onnx = {20, 100, -20, 100, 3, 100};
  got = d.run(false, {10, 0});
  EXPECT_EQ(got, kChain ? (Sums{5 * 1, 5 * -1, 0}) : (Sums{10 * 3, 10 * -2, 0}));
  d.e = {-16, 0};  // beyond 15 bits nothing is left
  EXPECT_EQ(d.run(false, {10, 0}), (Sums{0, 0, 0}));
}

// Where 32 bits end: 3 whole products, 8 halved ones.
TEST(DfpAccumulate, LongSumsAreExact) {
  for (int16_t v : {int16_t{32767}, int16_t{-32767}}) {
    Dense d;
    d.n_in = 4001;
    d.n_out = 1;
    d.bias = {0};
    d.onnx.assign(d.n_in, -32767);
    int64_t a = v >> (kChain / 2), b = -32767 >> (kChain / 2);
    EXPECT_EQ(d.run(true, std::vector<int16_t>(d.n_in, v)), (Sums{a * b * 4001}));
  }
}

// Units with the sums of x (inputs) and dy (outputs) over the batch.
struct Update {
  uint32_t n_in = 2, n_out = 2;
  std::vector<int16_t> w;  // panels
  odt_dfp_update_t u{};

  explicit Update(std::vector<int16_t> weights) : w(std::move(weights)) {
    u.lane = -1;
    u.lr_m = 1;
    u.to = static_cast<uint32_t>(w.size()) / 4;
  }
  uint32_t run(const std::vector<int16_t>& x, const std::vector<int16_t>& dy) {
    std::vector<uint64_t> scratch(4096);
    u.w = w.data();
    uint32_t xs = odt_dfp_even(n_in), ds = odt_dfp_even(n_out);
    return odt_dfp_dense_update(n_in, n_out, x.data(), xs, dy.data(), ds,
                                static_cast<uint32_t>(x.size()) / xs, &u, scratch.data());
  }
};

TEST(DfpUpdate, HalfUpOfRateTimesSum) {
  const int64_t k = kChain ? 4 : 1;  // operands are even: halves are exact
  Update a({100, 200, 300, 400});
  a.u.s = 4 - kChain;
  a.u.lr_m = 3;
  // Sums 20*2+(-4)*6 = 16, 8*2-(-2... ; x of two samples: (20, 8), (-4, 2); dy: (2, -6), (6, 4).
  EXPECT_EQ(a.run({20, 8, -4, 2}, {2, -6, 6, 4}), 1u);
  // w[0][0]: 40 - 24 = 16 -> 3; w[1][0]: 16 + 12 = 28 -> 5.25 -> 5;
  // w[0][1]: -120 - 16 = -136 -> -25.5 -> -25; w[1][1]: -48 + 8 = -40 -> -7.5 -> -7.
  EXPECT_EQ(a.w, (std::vector<int16_t>{97, 195, 325, 407}));
  EXPECT_EQ(a.u.or_abs, static_cast<uint64_t>((16 | 28 | 136 | 40) / k));
}

TEST(DfpUpdate, FarShifts) {
  Update a({5, -5, 0, 1});
  a.u.s = 63;
  EXPECT_EQ(a.run({32766, 32766}, {32766, 32766}), 1u);
  EXPECT_EQ(a.w, (std::vector<int16_t>{5, -5, 0, 1}));
  a.u.s = -60;  // saturates far outside: an overflow, nothing changes
  EXPECT_EQ(a.run({2, 2}, {2, 2}), 0u);
  EXPECT_EQ(a.w, (std::vector<int16_t>{5, -5, 0, 1}));
  a.u.saturate = true;
  EXPECT_EQ(a.run({2, -2}, {2, 2}), 1u);
  EXPECT_EQ(a.w, (std::vector<int16_t>{-32767, 32767, -32767, 32767}));
}

TEST(DfpUpdate, LimitIsSymmetric) {
  Update a({32765, 0, -32765, 0});
  a.u.s = -kChain;
  EXPECT_EQ(a.run({-2, 0}, {1 << 1, 0}), 0u);  // +4: 32769
  EXPECT_EQ(a.run({-2, 0}, {0, -2}), 0u);      // -4: -32769
  a.u.s = 1 - kChain;
  EXPECT_EQ(a.run({-2, 0}, {2, -2}), 1u);  // +2 and -2: 32767, -32767
  EXPECT_EQ(a.w, (std::vector<int16_t>{32767, 0, -32767, 0}));
}

// Whatever unit does not fit: those before it are put back to the bit.
TEST(DfpUpdate, RevertIsExact) {
  Random r(9);
  for (int i = 0; i < 400; i++) {
    Update a(std::vector<int16_t>(4 * 4 * 3));
    a.n_in = 7;
    a.n_out = 6;
    for (uint32_t j = 0; j < 42; j++) {
      a.w[odt_dfp_panel_at(7, j / 6, j % 6)] = static_cast<int16_t>(r.range(-32767, 32767));
    }
    std::vector<int16_t> before = a.w, x, dy;
    for (int b = r.range(1, 5); b > 0; b--) {
      for (int j = 0; j < 7; j++) x.push_back(static_cast<int16_t>(r.range(-32767, 32767)));
      x.push_back(0);
      for (int j = 0; j < 6; j++) dy.push_back(static_cast<int16_t>(r.range(-300, 300)));
    }
    a.u.lr_m = r.range(1, 32767);
    a.u.s = r.range(22, 30);
    uint32_t done = a.run(x, dy);
    for (uint32_t p = done; p < 12; p++) {
      for (uint32_t j = 4 * p; j < 4 * p + 4; j++) ASSERT_EQ(a.w[j], before[j]);
    }
    a.u.revert = true;
    a.u.to = done;
    ASSERT_EQ(a.run(x, dy), done);
    ASSERT_EQ(a.w, before);
  }
}

TEST(DfpUpdate, LaneLeavesTheOtherOutput) {
  Update a({10, 20, 30, 40});
  a.u.s = -kChain;
  a.u.lane = 1;
  EXPECT_EQ(a.run({2, 4}, {100, 2}), 1u);
  EXPECT_EQ(a.w, (std::vector<int16_t>{10, 20, 26, 32}));
}

class DfpLoss : public ::testing::Test {
 protected:
  odt_model_t model_{};
  odt_trainer_t trainer_{};
  std::vector<int16_t> dy_ = std::vector<int16_t>(8);
  uint64_t loss_ = 0;

  void SetUp() override {
    for (uint8_t& w : trainer_.spec.class_weights) w = 64;
    trainer_.model = &model_;
  }
  std::vector<int> cross_entropy(const std::vector<int16_t>& z, int e, uint32_t label,
                                 uint32_t* got = nullptr) {
    model_.n_classes = static_cast<uint16_t>(z.size());
    loss_ = 0;
    uint32_t best = odt_dfp_loss(&trainer_, z.data(), e, label, dy_.data(), &loss_);
    if (got) *got = best;
    return {dy_.begin(), dy_.begin() + static_cast<long>(z.size())};
  }
};

TEST_F(DfpLoss, CrossEntropyVectors) {
  using V = std::vector<int>;
  uint32_t got = 9;
  // Equal logits: halves, and the lowest index wins.
  EXPECT_EQ(cross_entropy({7, 7}, -10, 1, &got), (V{8192, -8192}));
  EXPECT_EQ(got, 0u);
  EXPECT_EQ(loss_, 2u * 8192 * 8192);
  // Far apart: 0 and 1, and no loss where that is right.
  EXPECT_EQ(cross_entropy({-32767, 32767}, 0, 1), (V{0, 0}));
  EXPECT_EQ(loss_, 0u);
  EXPECT_EQ(cross_entropy({-32767, 32767}, 100, 0, &got), (V{-16384, 16384}));
  EXPECT_EQ(got, 1u);
  // So small that they are one: a third each, rounded.
  EXPECT_EQ(cross_entropy({300, -300, 7}, -100, 2), (V{5461, 5461, -10923}));
  // ln 2 apart, as near as Q8 comes: 2 : 1.
  EXPECT_EQ(cross_entropy({22713, 0}, -15, 0), (V{-5461, 5461}));
}

// Every entry of the table, through differences of 1/256 in the exponent of 2.
TEST_F(DfpLoss, FollowsTheExponential) {
  for (int e : {-14, -12, -9}) {
    for (int d = 0; d < 32767; d += 97) {
      std::vector<int> dy = cross_entropy({static_cast<int16_t>(d), 0}, e, 0);
      double q = std::exp(-std::ldexp(d, e)), p = 16384 * q / (1 + q);
      EXPECT_NEAR(dy[1], p, 1 + p * 0.0015) << d << " " << e;
      EXPECT_LE(std::abs(dy[0] + dy[1]), 1);
    }
  }
}

TEST_F(DfpLoss, ClassWeightsScaleAfterTheLoss) {
  trainer_.spec.class_weights[1] = 192;
  EXPECT_EQ(cross_entropy({7, 7}, 0, 1), (std::vector<int>{24576, -24576}));
  EXPECT_EQ(loss_, 2u * 8192 * 8192);
  trainer_.spec.class_weights[1] = 255;
  EXPECT_EQ(cross_entropy({32767, -32767}, 0, 1), (std::vector<int>{32767, -32767}));
  trainer_.spec.class_weights[1] = 0;
  EXPECT_EQ(cross_entropy({7, 7}, 0, 1), (std::vector<int>{0, 0}));
}

TEST_F(DfpLoss, SquaredErrorAlignsTheOutput) {
  model_.n_classes = 4;
  model_.task = ODT_TASK_REGRESS;
  model_.logits = 0;
  model_.tensors[0].exponent = -2;
  const std::array<int8_t, 4> target = {10, -10, 127, -128};
  const std::array<int16_t, 4> z = {7, -7, 32767, -32767};
  odt_dfp_loss_mse(&model_, z.data(), -3, target.data(), nullptr, dy_.data(), &loss_);
  EXPECT_EQ(dy_[0], 4 - 10);  // 3.5 goes up
  EXPECT_EQ(dy_[1], -3 + 10);
  EXPECT_EQ(dy_[2], 16384 - 127);
  EXPECT_EQ(dy_[3], -16383 + 128);
  EXPECT_EQ(loss_, 36u + 49u + 16257ull * 16257 + 16255ull * 16255);
  odt_dfp_loss_mse(&model_, z.data(), 90, target.data(), nullptr, dy_.data(), &loss_);
  EXPECT_EQ(dy_[0], 32767);
  EXPECT_EQ(dy_[3], -32767);
  odt_dfp_loss_mse(&model_, z.data(), -90, target.data(), nullptr, dy_.data(), &loss_);
  EXPECT_EQ(dy_[0], -10);
  // An autoencoder's target is its input, at the input's exponent.
  model_.task = ODT_TASK_AUTOENCODE;
  model_.input = 1;
  model_.tensors[1].exponent = 0;
  const std::array<int16_t, 4> x = {1, -2, 3, -30000};
  odt_dfp_loss_mse(&model_, z.data(), 0, nullptr, x.data(), dy_.data(), &loss_);
  EXPECT_EQ(std::vector<int16_t>(dy_.begin(), dy_.begin() + 4),
            (std::vector<int16_t>{6, -5, 32764, -2767}));
}

}  // namespace
}  // namespace odt::testing::dfp

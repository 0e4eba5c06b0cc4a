// Rule 1.1: golden vectors, extremes, and the 32-bit path of weight updates.
#include "round.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "kernels/matrix.h"

namespace odt::testing {
namespace {

const int64_t kG[] = {-1000, -768, -513, -512, -511, -64, -1,  0,   1,   63,
                      64,    96,   255,  256,  511,  512, 768, 999, 1000};

template <class Fn>
Values apply(Fn fn) {
  Values out;
  for (int64_t g : kG) out.push_back(fn(g));
  return out;
}

int64_t saturate(int64_t v) { return v > 127 ? 127 : v < -127 ? -127 : v; }

TEST(Round, GoldenVectors) {
  EXPECT_EQ(apply([](int64_t g) { return odt_half_up(odt_half_up(g, 3), 2); }),
            (Values{-31, -24, -16, -16, -16, -2, 0, 0, 0, 2, 2, 3, 8, 8, 16, 16, 24, 31, 31}));
  EXPECT_EQ(apply([](int64_t g) { return odt_half_up(odt_half_up(g, 6), 5); }),
            (Values{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(apply([](int64_t g) { return odt_round(g, 8, ODT_ROUND_HALF_UP, 0); }),
            (Values{-4, -3, -2, -2, -2, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(apply([](int64_t g) { return odt_round(g, 8, ODT_ROUND_PSTO, 0); }),
            (Values{-4, -3, -2, -2, -1, -1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(
      apply([](int64_t g) { return saturate(odt_half_up(g, 3)); }),
      (Values{-125, -96, -64, -64, -64, -8, 0, 0, 0, 8, 8, 12, 32, 32, 64, 64, 96, 125, 125}));
}

TEST(Round, TiesAndSigns) {
  EXPECT_EQ(odt_round(-3, 1, ODT_ROUND_HALF_UP, 0), -1);
  EXPECT_EQ(odt_round(-3, 1, ODT_ROUND_HALF_AWAY, 0), -2);
  EXPECT_EQ(odt_round(3, 1, ODT_ROUND_HALF_UP, 0), 2);
  EXPECT_EQ(odt_round(5, 0, ODT_ROUND_PSTO, 0), 5);
  EXPECT_EQ(odt_round(-5, -3, ODT_ROUND_PSTO, 0), -40);
  EXPECT_EQ(odt_round(1023, 3, ODT_ROUND_HALF_UP, 0), 128);
  EXPECT_EQ(odt_round(5, 2, ODT_ROUND_SR, 0), 2);  // fr = 1, r mod 4 = 0 < 1
  EXPECT_EQ(odt_round(5, 2, ODT_ROUND_SR, 5), 1);  // r mod 4 = 1
  EXPECT_EQ(odt_round(-5, 2, ODT_ROUND_SR, 4), -2);
  EXPECT_EQ(odt_round(INT64_MAX / 2, 63, ODT_ROUND_HALF_UP, 0), 0);
}

TEST(Round, EqualsOracleAtEveryShiftAndExtreme) {
  const int64_t values[] = {
      INT32_MIN, INT32_MAX,        INT32_MIN + 1,       -1,          0,           1,    2, -2,
      3,         int64_t{1} << 40, -(int64_t{1} << 40), 0x123456789, -0x76543210, 12345};
  for (int rounding = 1; rounding <= 4; rounding++) {
    for (int s : {-8, -1, 0, 1, 2, 3, 8, 9, 30, 31, 32, 33, 40, 50}) {
      for (int64_t g : values) {
        uint32_t r = oracle_hash32(1, 2, 3, static_cast<uint32_t>(g));
        EXPECT_EQ(odt_round(g, s, static_cast<uint8_t>(rounding), r),
                  oracle_round(g, s, static_cast<Rounding>(rounding), r))
            << rounding << " " << s << " " << g;
      }
    }
  }
}

TEST(Round, Hash32) {
  Random r(5);
  for (int i = 0; i < 1000; i++) {
    uint32_t a = r.word(), b = r.word(), c = r.word(), d = r.word();
    ASSERT_EQ(odt_hash32(a, b, c, d), oracle_hash32(a, b, c, d));
  }
  EXPECT_NE(odt_hash32(0, 0, 0, 1), odt_hash32(0, 0, 1, 0));
}

// The row path (32 bits) moves weights exactly as the scalar path (64 bits).
TEST(Update, RowEqualsScalar) {
  Random r(6);
  for (int i = 0; i < 4000; i++) {
    odt_update_t u{};
    u.apply = u.measure = true;
    u.rounding = static_cast<uint8_t>(r.range(1, 4));
    u.s = r.range(-8, 34);
    u.literal = r.chance(10);
    u.s2 = u.literal ? r.range(0, 20) : 0;
    if (u.literal && u.s < 0) u.s = 0;
    u.d_clip = r.chance(50) ? 1 << r.range(0, 12) : INT32_MAX;
    u.m_lo = -32575;
    u.m_hi = 32575;
    u.sr_seed = r.word();
    u.step = r.word();
    std::vector<int16_t> a(16), b;
    for (int16_t& m : a) m = static_cast<int16_t>(r.range(-32575, 32575));
    b = a;
    std::vector<int32_t> g(16);
    for (int32_t& v : g) {
      v = static_cast<int32_t>(r.word()) >> r.range(1, 30);
      if (r.chance(5)) v = r.chance(50) ? 1 << 30 : -(1 << 30);
    }
    odt_update_t row = u, one = u;
    row.m16 = a.data();
    one.m16 = b.data();
    odt_layout_t lay = odt_layout(ODT_OP_CONV2D, 16, 1, ODT_S16);
    odt_update_prepare(&row);
    odt_update_words(&row, &lay, 0, 0, g.data(), 16);
    for (uint32_t j = 0; j < 16; j++) odt_update_one(&one, j, odt_layout_index(&lay, j), g[j]);
    ASSERT_EQ(a, b) << "rounding " << int{u.rounding} << " s " << u.s;
    ASSERT_EQ(row.or_abs, one.or_abs);
    ASSERT_EQ(row.nonzero, one.nonzero);
    ASSERT_EQ(row.abs_delta, one.abs_delta);
  }
}

}  // namespace
}  // namespace odt::testing

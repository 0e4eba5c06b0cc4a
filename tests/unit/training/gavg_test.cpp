#include "training/gavg.h"

#include <gtest/gtest.h>

namespace odt::training {
namespace {

void put(std::string& s, std::size_t at, std::uint32_t v, int n) {
  for (int i = 0; i < n; ++i) s[at + static_cast<std::size_t>(i)] = static_cast<char>(v >> (8 * i));
}

// Input, hidden and logits with exponents -1, -2 and -3; a frozen and a trainable layer.
std::string image() {
  std::string s(64 + 3 * 16 + 2 * 96, '\0');
  s.replace(0, 4, "ODTM");
  put(s, 12, 3, 2);
  put(s, 14, 2, 2);
  put(s, 20, 64, 4);
  put(s, 24, 64 + 48, 4);
  for (unsigned i = 0; i < 3; ++i) s[64 + 16 * i + 2] = static_cast<char>(-1 - static_cast<int>(i));
  for (unsigned i = 0; i < 2; ++i) {
    const std::size_t op = 112 + 96 * i;
    s[op] = 3;
    s[op + 1] = static_cast<char>(i == 1 ? 2 : 0);
    put(s, op + 2, i, 2);
    put(s, op + 6, i + 1, 2);
    put(s, op + 20, 100, 4);
    s[op + 62] = static_cast<char>(-7);
  }
  return s;
}

TEST(Gavg, ExponentsComeFromTheImage) {
  const auto read = read_exponents(image());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->layers.size(), 1u) << "trainable layers only";
  EXPECT_EQ(read->layers[0].weights, -7);
  EXPECT_EQ(read->layers[0].input, -2);
  EXPECT_EQ(read->layers[0].n_weights, 100u);
  EXPECT_EQ(read->logits, -3);
  for (std::size_t n : {0u, 63u, 64u, 111u, 200u})
    EXPECT_FALSE(read_exponents(image().substr(0, n)).ok()) << n;
}

TEST(Gavg, IsTheMeanGradientInStepsOfTheGrid) {
  model::LayerEpoch r;
  r.k = 6;
  r.w_min = -31;
  r.w_max = 32;  // 63 steps of 2^(e_w + 2): eps = 2^(e_w + 2)
  r.sum_n = 2;
  r.sum_abs_g = 100 * 2 * 4 * 24;  // 24 per weight, step and sample of 4
  r.e_d = 1;
  const Exponents::Layer layer{-7, -2, 100};
  // g = 24 * 2^(1 - 2 - 3) = 1.5; eps = 2^-5: 48.
  EXPECT_EQ(gavg_q8(r, layer, -3, model::LossKind::kMse, 4), 48u * 256);
  // The same of cross-entropy: 24 / 127 * 2^-1 * 2^5.
  EXPECT_EQ(gavg_q8(r, layer, -3, model::LossKind::kCe, 4), 774u);
  r.k = 7;  // the grid is twice as fine, and the range is one of 127 steps
  r.w_max = 96;
  EXPECT_EQ(gavg_q8(r, layer, -3, model::LossKind::kMse, 4), 96u * 256);
  r.sum_n = 0;
  EXPECT_EQ(gavg_q8(r, layer, -3, model::LossKind::kMse, 4), 0u);
  r.sum_n = 2;
  r.w_max = r.w_min;
  EXPECT_EQ(gavg_q8(r, layer, -3, model::LossKind::kMse, 4), 0u) << "no range, no step";
}

TEST(Gavg, HostileRecordsGiveSomeNumber) {
  model::LayerEpoch r;
  r.k = 16;
  r.w_min = INT32_MIN;
  r.w_max = INT32_MAX;
  r.sum_n = UINT32_MAX;
  r.sum_abs_g = UINT64_MAX;
  for (const int e : {INT32_MIN, -1, INT32_MAX}) {
    r.e_d = e;
    gavg_q8(r, {127, 127, UINT32_MAX}, 127, model::LossKind::kMse, UINT32_MAX);
  }
}

}  // namespace
}  // namespace odt::training

// SHA-256, order, samples, loss at its extremes.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"
#include "internal.h"

namespace odt::testing {
namespace {

std::string sha(const std::string& text, size_t piece) {
  odt_sha256_t s;
  odt_sha256_init(&s);
  for (size_t i = 0; i < text.size(); i += piece) {
    std::string part = text.substr(i, piece);
    odt_sha256_update(&s, part.data(), static_cast<uint32_t>(part.size()));
  }
  uint8_t hash[32];
  odt_sha256_final(&s, hash);
  std::string out;
  for (uint8_t b : hash) {
    char hex[3];
    snprintf(hex, sizeof hex, "%02x", b);
    out += hex;
  }
  return out;
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 7),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha(std::string(1000000, 'a'), 4093),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Order, EqualsOracleAndIsAPermutation) {
  for (uint32_t n : {1u, 2u, 3u, 600u, 65535u}) {
    // A seed whose state is 0 before the fix-up, too.
    for (uint32_t seed : {0u, 1u, 0x9E3779B1u, 0xFFFFFFFFu}) {
      for (uint32_t epoch : {0u, 1u, 65534u}) {
        std::vector<uint16_t> p(n);
        odt_order(seed, epoch, n, p.data());
        std::vector<int> want = oracle_order(seed, epoch, static_cast<int>(n));
        ASSERT_TRUE(std::equal(p.begin(), p.end(), want.begin())) << n << " " << seed;
      }
    }
  }
}

TEST(Samples, EveryFieldChecked) {
  std::vector<uint8_t> good =
      build_samples(DType::kS8, 3, {0, 1, 1}, std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  odt_samples_t s;
  odt_error_t err;
  auto open = [&](const std::vector<uint8_t>& b) {
    return odt_samples_open(&s, b.data(), static_cast<uint32_t>(b.size()), &err);
  };
  ASSERT_EQ(open(good), ODT_OK);
  EXPECT_EQ(s.count, 3u);
  EXPECT_EQ(s.sample_len, 3u);
  EXPECT_EQ(s.labels[1], 1);
  EXPECT_EQ(s.data[0], 1);
  EXPECT_EQ(s.data[8], 9);
  for (size_t n = 0; n < good.size(); n++) {
    EXPECT_NE(open({good.begin(), good.begin() + static_cast<long>(n)}), ODT_OK) << n;
  }
  for (size_t at : {0, 4, 6, 7, 8, 12}) {
    std::vector<uint8_t> bad = good;
    bad[at] = 77;
    EXPECT_NE(open(bad), ODT_OK) << at;
  }
  std::vector<uint8_t> huge = good;
  std::memset(huge.data() + 8, 0xFF,
              8);  // count * sample_len overflows 64 bits if added carelessly
  EXPECT_EQ(open(huge), ODT_INVALID_ARGUMENT);
}

TEST(Samples, FitTheModel) {
  NetSpec net = small_dense();
  Rig rig(build_image(net));
  Random r(1);
  SampleSet set = random_samples(r, net, 5);
  odt_samples_t s = open_samples(set.blob);
  odt_error_t err;
  EXPECT_EQ(odt_samples_fit(&s, &rig.model(), &err), ODT_OK);
  odt_samples_t wrong = s;
  wrong.dtype = ODT_U8;
  EXPECT_EQ(odt_samples_fit(&wrong, &rig.model(), &err), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err.what, "samples: dtype");
  wrong = s;
  wrong.sample_len = 13;
  EXPECT_EQ(odt_samples_fit(&wrong, &rig.model(), &err), ODT_INVALID_ARGUMENT);
  for (int label : {-1, 4, 127}) {
    std::vector<uint8_t> blob = set.blob;
    blob[16 + 2] = static_cast<uint8_t>(label);
    odt_samples_t bad = open_samples(blob);
    EXPECT_EQ(odt_samples_fit(&bad, &rig.model(), &err), ODT_INVALID_ARGUMENT);
    EXPECT_EQ(err.index, 2);
    EXPECT_EQ(err.got, label);
    EXPECT_EQ(err.limit_hi, 3);
  }
}

class Loss : public ::testing::Test {
 protected:
  Rig rig_{build_image(small_dense())};
  odt_run_spec_t spec_ = plain_spec(8, 1, 1);
  int8_t dy_[4];
  uint64_t loss_ = 0;

  uint32_t run(std::vector<int8_t> z, uint32_t label) {
    loss_ = 0;
    return odt_loss(&rig_.model(), &spec_, z.data(), label, dy_, &loss_);
  }
  Values dy() const { return Values(dy_, dy_ + 4); }
};

TEST_F(Loss, MseWithDeadZoneAndClip) {
  // targets: correct 60 50 40 70, wrong -10 0 -5 -20
  EXPECT_EQ(run({127, 0, -128, -15}, 1), 0u);
  EXPECT_EQ(dy(), (Values{127, -50, -123, 5}));
  EXPECT_EQ(loss_, 137u * 137 + 50 * 50 + 123 * 123 + 25);
  spec_.dead_zone = 5;
  EXPECT_EQ(run({127, 0, -128, -15}, 1), 0u);
  EXPECT_EQ(dy(), (Values{127, -50, -123, 0}));
  EXPECT_EQ(loss_, 137u * 137 + 50 * 50 + 123 * 123 + 25);
  run({127, 0, -128, -128}, 3);
  EXPECT_EQ(dy_[3], -128);  // -198 clipped
}

TEST_F(Loss, PredictionIsTheLowestIndexOfTheMaximum) {
  EXPECT_EQ(run({-3, 9, 9, 9}, 0), 1u);
  EXPECT_EQ(run({5, 5, 5, 5}, 0), 0u);
}

TEST_F(Loss, CrossEntropyAtTiesAndExtremes) {
  spec_.loss = ODT_LOSS_CE;
  run({7, 7, 7, 7}, 2);  // a quarter each: (127 * 65536 + 131072) / 262144 = 32
  EXPECT_EQ(dy(), (Values{32, 32, -95, 32}));
  EXPECT_EQ(loss_, 3u * 32 * 32 + 95 * 95);
  run({127, -128, -128, -128}, 0);
  EXPECT_EQ(dy(), (Values{0, 0, 0, 0}));
  run({127, -128, -128, -128}, 1);
  EXPECT_EQ(dy(), (Values{127, -127, 0, 0}));
}

TEST_F(Loss, ClassWeights) {
  spec_.class_weights[1] = 96;
  run({127, 0, -128, -15}, 1);
  EXPECT_EQ(dy(), (Values{127, -75, -128, 8}));  // 190.5 -> clip, -184.5 -> clip, 7.5 -> 8
  spec_.class_weights[1] = 0;
  run({127, 0, -128, -15}, 1);
  EXPECT_EQ(dy(), (Values{0, 0, 0, 0}));
  EXPECT_EQ(loss_, 137u * 137 + 50 * 50 + 123 * 123 + 25);
}

}  // namespace
}  // namespace odt::testing

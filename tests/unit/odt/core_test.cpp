// A build that leaves parts out and has lower limits: golden_test.cpp runs on it too.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "odt/odt.h"

namespace {

std::vector<char> golden_image() {
  std::ifstream in(std::string(ODT_GOLDEN_DIR) + "/image.odtm", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

uint32_t le32(const char* p) {
  uint32_t v = 0;
  for (int i = 3; i >= 0; i--) v = v << 8 | static_cast<uint8_t>(p[i]);
  return v;
}

struct Core : testing::Test {
  std::vector<char> image = golden_image();
  odt_model_t model{};
  odt_error_t err{};

  odt_status_t open() {
    err = {};
    return odt_model_open(&model, image.data(), static_cast<uint32_t>(image.size()), &err);
  }
  char* op(uint32_t i) { return image.data() + le32(image.data() + 24) + 64 * i; }
};

TEST_F(Core, RefusesImagesOfWhatIsLeftOut) {
  ASSERT_EQ(open(), ODT_OK) << err.what;
  const char kind = op(0)[0];
  for (char lacks : {2, 5, 6, 7, 8, 9, 10}) {  // CONV2D, the operators of graphs
    op(0)[0] = lacks;
    EXPECT_EQ(open(), ODT_UNIMPLEMENTED) << int{lacks};
    EXPECT_STREQ(err.what, "op: kind: not in this firmware");
    EXPECT_EQ(err.got, lacks);
  }
  op(0)[0] = 11;  // no such kind: malformed for every build
  EXPECT_NE(open(), ODT_OK);
  EXPECT_STRNE(err.what, "op: kind: not in this firmware");
  op(0)[0] = kind;
  image[39] = 1;
  EXPECT_EQ(open(), ODT_UNIMPLEMENTED);
  EXPECT_STREQ(err.what, "image: arithmetic: DFP16 is not in this firmware");
}

TEST_F(Core, NamesItsLimits) {
  image[14] = 9;
  EXPECT_EQ(open(), ODT_OUT_OF_RANGE);
  EXPECT_STREQ(err.what, "n_ops");
  EXPECT_EQ(err.limit_hi, 8);
  image = golden_image();
  image[18] = 17;
  EXPECT_EQ(open(), ODT_OUT_OF_RANGE);
  EXPECT_STREQ(err.what, "n_classes");
  EXPECT_EQ(err.limit_hi, 16);
}

TEST_F(Core, RefusesPrecisionThatMoves) {
  ASSERT_EQ(open(), ODT_OK) << err.what;
  odt_run_spec_t spec{};
  spec.rule_set = ODT_RULE_NITI;
  spec.loss = ODT_LOSS_CE;
  spec.shift_source = ODT_SHIFT_EXACT;
  spec.k = 8;
  spec.batch = 8;
  spec.epochs = 1;
  spec.train_samples = 8;
  for (auto& w : spec.class_weights) w = 64;
  ASSERT_EQ(odt_run_spec_check(&spec, &model, &err), ODT_OK) << err.what;
  spec.layer_k[1] = 12;  // one that stands still is fine
  EXPECT_EQ(odt_run_spec_check(&spec, &model, &err), ODT_OK) << err.what;
  spec.apt.k_max = 12;
  EXPECT_EQ(odt_run_spec_check(&spec, &model, &err), ODT_UNIMPLEMENTED);
  EXPECT_STREQ(err.what, "apt: not in this firmware");
}

}  // namespace

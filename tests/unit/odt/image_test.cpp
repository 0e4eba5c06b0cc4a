// odt_model_open against bad bytes: one error per field, truncation, and random mutation.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "fixture.h"
#include "full.h"

namespace odt::testing {
namespace {

NetSpec conv_net() {
  NetSpec net;
  net.input_dtype = DType::kU8;
  net.input_dims = {2, 6, 5};
  net.n_classes = 3;
  LayerSpec conv;
  conv.kind = OpKind::kConv2d;
  conv.relu = conv.trainable = true;
  conv.clip_lo = 0;
  conv.clip_hi = 255;
  conv.outputs = 4;
  conv.k_h = conv.k_w = 3;
  conv.stride_w = 2;
  conv.pad_t = 1;
  conv.groups = 2;
  conv.weights.assign(4 * 9, 3);
  conv.offsets.assign(4, 10);
  conv.k.assign(4, 4);
  conv.mult.assign(4, 2);
  LayerSpec flat;
  flat.kind = OpKind::kFlatten;
  LayerSpec dense;
  dense.outputs = 3;
  dense.trainable = true;
  dense.weights.assign(4 * 5 * 2 * 3, -2);
  dense.offsets.assign(3, 0);
  dense.k.assign(3, 6);
  net.layers = {conv, flat, dense};
  net.target_correct = {60, 60, 60};
  net.target_wrong = {0, 0, 0};
  net.ce_scale = 100;
  return net;
}

constexpr size_t kTensors = 64, kOps = 64 + 4 * 16;

class Image : public ::testing::Test {
 protected:
  std::vector<uint8_t> good_ = build_image(conv_net());
  odt_model_t m_;
  odt_error_t err_{};

  odt_status_t open(const std::vector<uint8_t>& image) {
    err_ = {};
    return odt_model_open(&m_, image.data(), static_cast<uint32_t>(image.size()), &err_);
  }
  template <class T>
  void expect(size_t at, T value, odt_status_t status, const char* what, int index = -1) {
    std::vector<uint8_t> bad = good_;
    std::memcpy(bad.data() + at, &value, sizeof value);
    EXPECT_EQ(open(bad), status) << what;
    if (status == ODT_OK) return;
    ASSERT_NE(err_.what, nullptr);
    EXPECT_STREQ(err_.what, what);
    EXPECT_EQ(err_.index, index) << what;
    EXPECT_EQ(err_.status, status);
  }
};

TEST_F(Image, GoodImageIsTakenWhole) {
  ASSERT_EQ(open(good_), ODT_OK) << err_.what;
  EXPECT_EQ(m_.n_ops, 3);
  EXPECT_EQ(m_.n_layers, 2);
  EXPECT_EQ(m_.layer_op[0], 0);
  EXPECT_EQ(m_.layer_op[1], 2);
  EXPECT_EQ(m_.ops[1].layer, -1);
  EXPECT_EQ(m_.first_trainable_op, 0);
  EXPECT_EQ(m_.input, 0);
  EXPECT_EQ(m_.logits, 3);
  EXPECT_STREQ(m_.name, "test");
  EXPECT_EQ(m_.tensors[1].count, 40u);
}

TEST_F(Image, Header) {
  expect<uint32_t>(0, 1, ODT_INVALID_ARGUMENT, "image: magic");
  expect<uint16_t>(4, 2, ODT_UNIMPLEMENTED, "image: version");
  expect<uint16_t>(6, 68, ODT_INVALID_ARGUMENT, "image: header bytes");
  expect<uint32_t>(8, 9, ODT_INVALID_ARGUMENT, "image: total bytes");
  expect<uint16_t>(12, 66, ODT_OUT_OF_RANGE, "n_tensors");
  expect<uint16_t>(14, 65, ODT_OUT_OF_RANGE, "n_ops");
  expect<uint16_t>(14, 0, ODT_OUT_OF_RANGE, "n_ops");
  expect<uint16_t>(16, 17, ODT_OUT_OF_RANGE, "n_layers");
  expect<uint16_t>(16, 0, ODT_OUT_OF_RANGE, "n_layers");
  expect<uint16_t>(16, 1, ODT_INVALID_ARGUMENT, "n_layers", 2);
  expect<uint16_t>(16, 3, ODT_INVALID_ARGUMENT, "n_layers");
  expect<uint16_t>(18, 129, ODT_OUT_OF_RANGE, "n_classes");
  expect<uint16_t>(18, 1, ODT_OUT_OF_RANGE, "n_classes");
  expect<uint16_t>(18, 4, ODT_INVALID_ARGUMENT, "logits: values");
  expect<uint32_t>(20, 0xFFFFFFFF, ODT_INVALID_ARGUMENT, "tensors_off");
  expect<uint32_t>(20, 66, ODT_INVALID_ARGUMENT, "tensors_off");
  expect<uint32_t>(24, 0, ODT_INVALID_ARGUMENT, "ops_off");
  expect<uint32_t>(24, static_cast<uint32_t>(good_.size()) - 8, ODT_INVALID_ARGUMENT, "ops_off");
  expect<uint32_t>(28, 0, ODT_INVALID_ARGUMENT, "targets: one of two absent");
  expect<uint32_t>(28, static_cast<uint32_t>(good_.size()), ODT_INVALID_ARGUMENT,
                   "target_correct_off");
  expect<uint32_t>(32, 4, ODT_INVALID_ARGUMENT, "target_wrong_off");
  expect<uint8_t>(38, 1, ODT_OK, "");  // a regression of three outputs
  expect<uint8_t>(38, 2, ODT_INVALID_ARGUMENT, "autoencoder: input values");
  expect<uint8_t>(38, 3, ODT_INVALID_ARGUMENT, "image: task");
  expect<uint8_t>(39, 1, ODT_INVALID_ARGUMENT, "op: k_off in DFP16", 0);
  expect<uint8_t>(39, 2, ODT_INVALID_ARGUMENT, "image: arithmetic");
  expect<uint32_t>(40, 1, ODT_INVALID_ARGUMENT, "src_correct");
}

TEST_F(Image, Tensors) {
  expect<uint8_t>(kTensors, 4, ODT_INVALID_ARGUMENT, "tensor: dtype", 0);
  expect<uint8_t>(kTensors + 17, 5, ODT_INVALID_ARGUMENT, "tensor: ndim", 1);
  expect<uint8_t>(kTensors + 17, 0, ODT_INVALID_ARGUMENT, "tensor: ndim", 1);
  expect<int8_t>(kTensors + 18, -128, ODT_OK, "");  // an exponent
  expect<uint8_t>(kTensors + 19, 1, ODT_INVALID_ARGUMENT, "tensor: reserved", 1);
  expect<uint16_t>(kTensors + 4, 0, ODT_INVALID_ARGUMENT, "tensor: dims", 0);
  expect<uint16_t>(kTensors + 10, 1, ODT_INVALID_ARGUMENT, "tensor: dims", 0);
  expect<uint32_t>(kTensors + 4, 0xFFFFFFFF, ODT_OUT_OF_RANGE, "tensor: values", 0);
  expect<uint32_t>(kTensors + 12, 61, ODT_INVALID_ARGUMENT, "tensor: count", 0);
}

TEST_F(Image, Ops) {
  size_t dense = kOps + 2 * 96;
  expect<uint8_t>(kOps, 0, ODT_INVALID_ARGUMENT, "op: kind", 0);
  expect<uint8_t>(kOps, 5, ODT_INVALID_ARGUMENT, "op: flags", 0);  // MAXPOOL with a ReLU
  expect<uint8_t>(kOps, 11, ODT_INVALID_ARGUMENT, "op: kind", 0);
  expect<uint8_t>(kOps + 1, 4, ODT_INVALID_ARGUMENT, "op: flags", 0);
  expect<uint8_t>(kOps + 96 + 1, 2, ODT_INVALID_ARGUMENT, "op: flags", 1);
  expect<uint16_t>(kOps + 2, 4, ODT_INVALID_ARGUMENT, "op: in0", 0);
  expect<uint16_t>(kOps + 6, 4, ODT_INVALID_ARGUMENT, "op: out", 0);
  expect<uint16_t>(kOps + 6, 0, ODT_INVALID_ARGUMENT, "op: out", 0);
  expect<uint16_t>(kOps + 4, 0, ODT_INVALID_ARGUMENT, "op: in1", 0);
  expect<uint16_t>(dense + 2, 1, ODT_INVALID_ARGUMENT, "op: input dimensions", 2);
  expect<uint16_t>(kOps + 96 + 2, 3, ODT_INVALID_ARGUMENT, "op: in0 not written before", 1);
  expect<uint16_t>(dense + 6, 0, ODT_INVALID_ARGUMENT, "op: out written or read before", 2);
  expect<int32_t>(kOps + 8, -1, ODT_INVALID_ARGUMENT, "op: clip_lo of a ReLU", 0);
  expect<int32_t>(kOps + 8, 300, ODT_INVALID_ARGUMENT, "op: clip_lo", 0);
  expect<int32_t>(kOps + 12, 256, ODT_INVALID_ARGUMENT, "op: output dtype", 0);
  expect<int32_t>(kOps + 12, 40000, ODT_INVALID_ARGUMENT, "op: clip_hi", 0);
  expect<uint32_t>(kOps + 16, 0, ODT_INVALID_ARGUMENT, "op: weights_off", 0);
  expect<uint32_t>(kOps + 16, static_cast<uint32_t>(good_.size()) - 32, ODT_INVALID_ARGUMENT,
                   "op: weights_off", 0);
  expect<uint32_t>(kOps + 20, 35, ODT_INVALID_ARGUMENT, "op: n_weights", 0);
  expect<uint32_t>(kOps + 24, 2, ODT_INVALID_ARGUMENT, "op: offset_off", 0);
  expect<uint32_t>(kOps + 28, 5, ODT_INVALID_ARGUMENT, "op: n_out", 0);
  expect<uint32_t>(kOps + 32, 0x80000000, ODT_INVALID_ARGUMENT, "op: k_off", 0);
  expect<uint32_t>(kOps + 36, 8, ODT_INVALID_ARGUMENT, "op: mult_off", 0);
  expect<uint32_t>(kOps + 36, 0, ODT_OK, "");
  expect<int8_t>(kOps + 62, -128, ODT_OK, "");  // e_w
  expect<int8_t>(kOps + 63, 1, ODT_INVALID_ARGUMENT, "op: e_b", 0);
  expect<int8_t>(kOps + 96 + 62, 1, ODT_INVALID_ARGUMENT, "op: e_w", 1);
  expect<uint32_t>(dense + 20, 119, ODT_INVALID_ARGUMENT, "op: n_weights", 2);
}

TEST_F(Image, ConvolutionShape) {
  expect<uint16_t>(kOps + 40, 0, ODT_INVALID_ARGUMENT, "op: kernel", 0);
  expect<uint16_t>(kOps + 40, 65535, ODT_INVALID_ARGUMENT, "op: output height", 0);
  expect<uint16_t>(kOps + 42, 2, ODT_INVALID_ARGUMENT, "op: n_weights", 0);  // same width
}

TEST_F(Image, ConvolutionFields) {
  expect<uint16_t>(kOps + 44, 0, ODT_INVALID_ARGUMENT, "op: stride", 0);
  expect<uint16_t>(kOps + 46, 1, ODT_INVALID_ARGUMENT, "op: output width", 0);
  expect<uint16_t>(kOps + 48, 2, ODT_INVALID_ARGUMENT, "op: output height", 0);
  expect<uint16_t>(kOps + 54, 65535, ODT_INVALID_ARGUMENT, "op: output width", 0);
  expect<uint16_t>(kOps + 56, 0, ODT_INVALID_ARGUMENT, "op: dilation", 0);
  expect<uint16_t>(kOps + 58, 65535, ODT_INVALID_ARGUMENT, "op: output width", 0);
  expect<uint16_t>(kOps + 60, 0, ODT_INVALID_ARGUMENT, "op: groups", 0);
  expect<uint16_t>(kOps + 60, 3, ODT_INVALID_ARGUMENT, "op: groups", 0);
  expect<uint16_t>(kOps + 60, 1, ODT_INVALID_ARGUMENT, "op: n_weights", 0);
}

TEST_F(Image, ValuesInSections) {
  uint32_t k_off, mult_off;
  std::memcpy(&k_off, good_.data() + kOps + 32, 4);
  std::memcpy(&mult_off, good_.data() + kOps + 36, 4);
  expect<int8_t>(k_off, 31, ODT_OK, "");
  expect<int8_t>(k_off, 32, ODT_INVALID_ARGUMENT, "op: k", 0);
  expect<int8_t>(k_off + 3, -1, ODT_INVALID_ARGUMENT, "op: k", 0);
  expect<uint8_t>(mult_off, 255, ODT_OK, "");
  expect<uint8_t>(mult_off, 0, ODT_INVALID_ARGUMENT, "op: mult", 0);
}

TEST_F(Image, SumsThatCouldOverflowAreRefused) {
  NetSpec net;
  net.input_dtype = DType::kS8;
  net.input_dims = {1};
  LayerSpec wide;  // int16 outputs up to 32767
  wide.outputs = 512;
  wide.clip_lo = -32768;
  wide.clip_hi = 32767;
  wide.weights.assign(512, 1);
  wide.offsets.assign(512, 0);
  wide.k.assign(512, 0);
  LayerSpec last;
  last.outputs = 2;
  last.trainable = true;
  last.weights.assign(1024, 1);
  last.offsets.assign(2, 0);
  last.k.assign(2, 0);
  net.layers = {wide, last};
  EXPECT_EQ(open(build_image(net)), ODT_OUT_OF_RANGE);
  EXPECT_STREQ(err_.what, "op: products per sum");
  net.layers[0].outputs = 511;
  net.layers[0].weights.resize(511);
  net.layers[0].offsets.resize(511);
  net.layers[0].k.resize(511);
  net.layers[1].weights.resize(1022);
  EXPECT_EQ(open(build_image(net)), ODT_OK) << err_.what;
}

// 6 taps to each of `filters` outputs: that many products in the delta of one input.
NetSpec fan_out_net(uint32_t filters) {
  NetSpec net;
  net.input_dims = {1, 2, 3};
  LayerSpec conv;
  conv.kind = OpKind::kConv2d;
  conv.outputs = filters;
  conv.k_h = 2;
  conv.k_w = 3;
  conv.weights.assign(filters * 6, 1);
  conv.offsets.assign(filters, 0);
  conv.k.assign(filters, 0);
  LayerSpec flat;
  flat.kind = OpKind::kFlatten;
  LayerSpec dense;
  dense.outputs = 2;
  dense.trainable = true;
  dense.weights.assign(filters * 2, 1);
  dense.offsets.assign(2, 0);
  dense.k.assign(2, 0);
  net.layers = {conv, flat, dense};
  return net;
}

TEST_F(Image, DeltasThatCouldOverflowAreRefused) {
  EXPECT_EQ(open(build_image(fan_out_net(21845))), ODT_OK) << err_.what;
  EXPECT_EQ(open(build_image(fan_out_net(21846))), ODT_OUT_OF_RANGE);
}

TEST_F(Image, LogitsAreInt8) {
  NetSpec net = conv_net();
  net.layers[2].clip_lo = 0;
  EXPECT_EQ(open(build_image(net)), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "logits: dtype");
}

TEST_F(Image, EveryTruncation) {
  for (size_t n = 0; n < good_.size(); n++) {
    // A copy of exactly n bytes: reading past it is a sanitizer's error.
    std::vector<uint8_t> cut(good_.begin(), good_.begin() + static_cast<long>(n));
    EXPECT_NE(open(cut), ODT_OK) << n;
    if (n < 12) continue;
    auto size = static_cast<uint32_t>(n);
    std::memcpy(cut.data() + 8, &size, 4);
    // The last section's three bytes end one before the padded end.
    EXPECT_EQ(open(cut) == ODT_OK, n == good_.size() - 1) << n;
  }
}

TEST_F(Image, MisalignedAddress) {
  std::vector<uint8_t> copy(good_.size() + 1);
  std::memcpy(copy.data() + 1, good_.data(), good_.size());
  EXPECT_EQ(odt_model_open(&m_, copy.data() + 1, static_cast<uint32_t>(good_.size()), &err_),
            ODT_INVALID_ARGUMENT);
}

TEST_F(Image, RandomMutations) {
  Random r(2024);
  const int rounds = test::repeats(4000, 20000);
  int accepted = 0;
  for (int i = 0; i < rounds; i++) {
    std::vector<uint8_t> bad = good_;
    for (int n = r.range(1, 4); n > 0; n--) {
      // Header, tensors and ops most of the time.
      auto at = static_cast<size_t>(r.range(0, r.chance(90) ? static_cast<int>(kOps + 3 * 96 - 1)
                                                            : static_cast<int>(bad.size()) - 1));
      bad[at] = r.chance(50) ? static_cast<uint8_t>(r.word())
                             : static_cast<uint8_t>(bad[at] ^ (1 << r.range(0, 7)));
    }
    if (open(bad) != ODT_OK) continue;
    accepted++;
    train_a_little(&m_);
  }
  EXPECT_GT(accepted, rounds / 200);
}

}  // namespace
}  // namespace odt::testing

// odt_model_open on graphs: every kind, at each limit and one beyond; tasks, DFP16, the cut.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"
#include "full.h"

namespace odt::testing {
namespace {

LayerSpec plain(OpKind kind, uint32_t outputs, size_t weights) {
  LayerSpec l;
  l.kind = kind;
  l.outputs = outputs;
  l.weights.assign(weights, 1);
  l.offsets.assign(outputs, 0);
  l.k.assign(outputs, 3);
  return l;
}

LayerSpec conv1x1(uint32_t outputs, uint32_t channels) {
  return plain(OpKind::kConv2d, outputs, size_t{outputs} * channels);
}

LayerSpec pool(OpKind kind, uint16_t k, uint16_t stride) {
  LayerSpec l = plain(kind, kind == OpKind::kAvgPool ? 1 : 0, 0);
  l.k_h = l.k_w = k;
  l.stride_h = l.stride_w = stride;
  return l;
}

// 2x6x6 -> conv A -> conv B -> ADD(A, B) -> AVGPOOL -> RESIZE -> CONCAT(ADD, RESIZE) -> MAXPOOL
// -> GAP -> FLATTEN -> dense.
NetSpec graph_net() {
  NetSpec net;
  net.input_dims = {2, 6, 6};
  net.n_classes = 3;
  net.ce_scale = 100;
  LayerSpec a = conv1x1(2, 2), b = conv1x1(2, 2), add = plain(OpKind::kAdd, 2, 0);
  b.trainable = true;
  add.in0 = 1;
  add.in1 = 2;
  add.offsets = {1 << 20, 1 << 19};
  LayerSpec resize = plain(OpKind::kResize, 0, 0), concat = plain(OpKind::kConcat, 0, 0);
  resize.out_h = resize.out_w = 6;
  concat.in0 = 3;
  concat.in1 = 5;
  LayerSpec gap = plain(OpKind::kGap, 4, 0), dense = plain(OpKind::kLinear, 3, 12);
  dense.trainable = true;
  net.layers = {a,
                b,
                add,
                pool(OpKind::kAvgPool, 2, 2),
                resize,
                concat,
                pool(OpKind::kMaxPool, 3, 2),
                gap,
                plain(OpKind::kFlatten, 0, 0),
                dense};
  return net;
}

constexpr size_t kA = 0, kB = 1, kAdd = 2, kAvg = 3, kResize = 4, kConcat = 5, kMax = 6, kGap = 7,
                 kDense = 9;

// The same with 16-bit tensors.
NetSpec dfp16(NetSpec net) {
  net.arith = ODT_ARITH_DFP16;
  for (LayerSpec& l : net.layers) {
    l.weights16.assign(l.weights.begin(), l.weights.end());
    l.clip_lo = l.relu ? 0 : -32767;
    l.clip_hi = 32767;
    if (!l.weights.empty()) continue;
    l.outputs = 0;
    l.offsets.clear();
  }
  return net;
}

class GraphImage : public ::testing::Test {
 protected:
  NetSpec net_ = graph_net();
  std::vector<uint8_t> image_;
  odt_model_t m_;
  odt_error_t err_{};

  odt_status_t open() {
    image_ = build_image(net_);
    return reopen();
  }
  odt_status_t reopen() {
    err_ = {};
    return odt_model_open(&m_, image_.data(), static_cast<uint32_t>(image_.size()), &err_);
  }
  size_t op_at(size_t op) const { return 64 + 16 * (net_.layers.size() + 1) + 96 * op; }
  template <class T>
  void patch(size_t at, T value) {
    std::memcpy(image_.data() + at, &value, sizeof value);
  }
  // Of the good image with one field changed.
  template <class T>
  void expect_op(size_t op, size_t at, T value, odt_status_t status, const char* what) {
    open();
    patch(op_at(op) + at, value);
    refused(reopen(), status, what, static_cast<int>(op));
  }
  template <class T>
  void expect_dim(size_t tensor, size_t dim, T value, odt_status_t status, const char* what,
                  int op) {
    open();
    patch(64 + 16 * tensor + 4 + 2 * dim, value);
    uint32_t n = 1;
    for (size_t d = 0; d < 3; d++) {
      uint16_t size;
      std::memcpy(&size, image_.data() + 64 + 16 * tensor + 4 + 2 * d, 2);
      n *= size ? size : 1u;
    }
    patch(64 + 16 * tensor + 12, n);
    refused(reopen(), status, what, op);
  }
  void refused(odt_status_t got, odt_status_t status, const char* what, int op) {
    EXPECT_EQ(got, status) << what << " " << op << " " << (err_.what ? err_.what : "");
    if (got == ODT_OK || status == ODT_OK) return;
    EXPECT_STREQ(err_.what, what);
    EXPECT_EQ(err_.index, op) << what;
  }
};

TEST_F(GraphImage, IsTakenWhole) {
  ASSERT_EQ(open(), ODT_OK) << err_.what << " " << err_.index << " got " << err_.got;
  EXPECT_EQ(m_.n_ops, 10);
  EXPECT_EQ(m_.n_layers, 2);
  EXPECT_EQ(m_.first_trainable_op, 1);
  EXPECT_EQ(m_.tensors[0].producer, ODT_NO_OP);
  EXPECT_EQ(m_.tensors[6].producer, 5);
  EXPECT_EQ(m_.ops[kAdd].in1, 2);
  EXPECT_EQ(m_.ops[kAdd].offset[1], 1 << 19);
  EXPECT_EQ(m_.tensors[8].count, 4u);
  EXPECT_EQ(m_.cut, 1);  // conv A alone leads into the rest
}

TEST_F(GraphImage, CutIsTheOneTensorThatCrosses) {
  net_.layers[kB].trainable = false;
  net_.layers[kA].trainable = true;  // nothing frozen in front: the input
  ASSERT_EQ(open(), ODT_OK);
  EXPECT_EQ(m_.cut, 0);
  net_.layers[kA].trainable = false;
  ASSERT_EQ(open(), ODT_OK);
  EXPECT_EQ(m_.first_trainable_op, kDense);
  EXPECT_EQ(m_.cut, 9);  // FLATTEN's output
  NetSpec two = graph_net();
  two.layers.resize(3);
  two.layers[1].trainable = false;
  two.layers[2].in1 = 2;
  LayerSpec c = conv1x1(2, 2), add = two.layers[2];
  c.trainable = true;
  c.in0 = 2;
  add.in0 = 1;
  add.in1 = 3;
  two.layers = {two.layers[0], two.layers[1], c, add};
  two.n_classes = 72;
  two.layers.push_back(plain(OpKind::kFlatten, 0, 0));
  net_ = two;
  ASSERT_EQ(open(), ODT_OK) << err_.what << err_.index;
  EXPECT_EQ(m_.cut, ODT_NO_TENSOR);  // A and B both
}

TEST_F(GraphImage, Flags) {
  for (size_t op = 0; op < net_.layers.size(); op++) {
    OpKind kind = net_.layers[op].kind;
    bool weights = kind == OpKind::kConv2d || kind == OpKind::kLinear;
    for (uint8_t flag : {8, 16, 128}) {
      expect_op<uint8_t>(op, 1, flag, ODT_INVALID_ARGUMENT, "op: flags");
    }
    expect_op<uint8_t>(op, 1, 4, ODT_INVALID_ARGUMENT, "op: flags");  // OFFSETS_ONLY alone
    if (!weights) expect_op<uint8_t>(op, 1, 2, ODT_INVALID_ARGUMENT, "op: flags");
    if (!weights && kind != OpKind::kAdd) {
      expect_op<uint8_t>(op, 1, 1, ODT_INVALID_ARGUMENT, "op: flags");
    }
  }
  net_.layers[kB].offsets_only = true;
  EXPECT_EQ(open(), ODT_OK);
  net_.layers[kAdd].relu = true;
  net_.layers[kAdd].clip_lo = -1;
  refused(open(), ODT_INVALID_ARGUMENT, "op: clip_lo of a ReLU", kAdd);
  net_.layers[kAdd].clip_lo = 0;
  net_.layers[kConcat].clip_lo = -128;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
}

TEST_F(GraphImage, Links) {
  expect_op<uint16_t>(kAdd, 4, 11, ODT_INVALID_ARGUMENT, "op: in1");
  expect_op<uint16_t>(kAdd, 4, 0xFFFF, ODT_INVALID_ARGUMENT, "op: in1");
  expect_op<uint16_t>(kAdd, 4, 3, ODT_INVALID_ARGUMENT, "op: out");
  expect_op<uint16_t>(kAdd, 4, 4, ODT_INVALID_ARGUMENT, "op: in1 not written before");
  expect_op<uint16_t>(kAdd, 2, 9, ODT_INVALID_ARGUMENT, "op: in0 not written before");
  expect_op<uint16_t>(kMax, 4, 0, ODT_INVALID_ARGUMENT, "op: in1");
  open();
  patch<uint16_t>(op_at(kAdd) + 4, 1);
  refused(reopen(), ODT_INVALID_ARGUMENT, "tensor: not read", 2);
  expect_op<uint16_t>(kDense, 6, 9, ODT_INVALID_ARGUMENT, "op: out");
  expect_op<uint16_t>(kDense, 6, 1, ODT_INVALID_ARGUMENT, "op: out written or read before");
}

TEST_F(GraphImage, EveryTensorIsWritten) {
  open();
  // One tensor more than ops write, at the images's end.
  std::vector<uint8_t> extra(image_.begin() + 64, image_.begin() + 64 + 16 * 11);
  extra.insert(extra.end(), image_.begin() + 64 + 16, image_.begin() + 64 + 32);
  auto at = static_cast<uint32_t>(image_.size());
  image_.insert(image_.end(), extra.begin(), extra.end());
  patch<uint32_t>(8, static_cast<uint32_t>(image_.size()));
  patch<uint32_t>(20, at);
  EXPECT_EQ(reopen(), ODT_OK);
  patch<uint16_t>(12, 12);
  refused(reopen(), ODT_INVALID_ARGUMENT, "tensor: not written", 11);
}

TEST_F(GraphImage, Pools) {
  for (size_t op : {kAvg, kMax}) {
    expect_op<uint16_t>(op, 40, 0, ODT_INVALID_ARGUMENT, "op: kernel");
    expect_op<uint16_t>(op, 46, 0, ODT_INVALID_ARGUMENT, "op: stride");
    expect_op<uint16_t>(op, 42, 6, ODT_INVALID_ARGUMENT, "op: output width");
    expect_op<uint16_t>(op, 48, 5, ODT_INVALID_ARGUMENT, "op: output height");
    // Dilation and groups are a convolution's: not read.
    expect_op<uint16_t>(op, 56, 9, ODT_OK, "");
    expect_op<uint16_t>(op, 60, 9, ODT_OK, "");
  }
  expect_dim<uint16_t>(7, 0, 3, ODT_INVALID_ARGUMENT, "op: output channels", kMax);
  expect_op<uint32_t>(kMax, 28, 1, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(kMax, 20, 1, ODT_INVALID_ARGUMENT, "op: n_weights");
  expect_op<uint32_t>(kAvg, 28, 3, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(kAvg, 28, 0, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(kAvg, 32, 0, ODT_INVALID_ARGUMENT, "op: k_off");
  expect_op<uint32_t>(kAvg, 24, 0, ODT_INVALID_ARGUMENT, "op: offset_off");
  expect_op<int32_t>(kAvg, 12, 200, ODT_INVALID_ARGUMENT, "op: output dtype");
  net_.layers[kAvg].outputs = 2;
  net_.layers[kAvg].offsets = {0, 5};
  net_.layers[kAvg].k = {1, 31};
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_.layers[kAvg].k = {1, 32};
  refused(open(), ODT_INVALID_ARGUMENT, "op: k", kAvg);
}

TEST_F(GraphImage, AWindowOfPaddingAloneHasNoMaximum) {
  LayerSpec& p = net_.layers[kMax];  // 6x6, kernel 3, stride 2
  p.pad_t = p.pad_l = 2;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  p.pad_l = 3;
  refused(open(), ODT_INVALID_ARGUMENT, "op: padding of MAXPOOL", kMax);
  p.pad_l = 0;
  p.pad_b = 2;  // last window from row 4 on
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  p.pad_t = 0;
  p.pad_b = 3;  // from row 6 on
  refused(open(), ODT_INVALID_ARGUMENT, "op: last window of MAXPOOL", kMax);
  net_.layers[kAvg].pad_t = 2;  // of AVGPOOL it is 0
  p.pad_b = 0;
  net_.layers[kAvg].pad_b = 2;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
}

TEST_F(GraphImage, AveragesThatCouldOverflow) {
  NetSpec net;
  net.input_dims = {1, 256, 256};
  net.input_dtype = DType::kS16;
  LayerSpec gap = plain(OpKind::kGap, 1, 0), flat = plain(OpKind::kFlatten, 0, 0);
  LayerSpec dense = plain(OpKind::kLinear, 2, 2);
  dense.trainable = true;
  net.layers = {gap, flat, dense};
  net_ = net;
  refused(open(), ODT_OUT_OF_RANGE, "op: products per sum", 0);
  net_.input_dims = {1, 256, 255};
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  // A pool counts its window, or the plane where that is smaller.
  net_.input_dims = {1, 300, 300};
  LayerSpec avg = pool(OpKind::kAvgPool, 256, 300);
  net_.layers[0] = avg;
  refused(open(), ODT_OUT_OF_RANGE, "op: products per sum", 0);
  net_.layers[0].k_h = 255;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
}

TEST_F(GraphImage, OutputPositions) {
  NetSpec net;
  net.input_dims = {1, 1, 1};
  LayerSpec resize = plain(OpKind::kResize, 0, 0), dense = plain(OpKind::kLinear, 2, 2);
  resize.out_h = 5;
  resize.out_w = 13107;  // 65535
  dense.trainable = true;
  net.layers = {resize, plain(OpKind::kGap, 1, 0), plain(OpKind::kFlatten, 0, 0), dense};
  net_ = net;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_.layers[0].out_h = 2;
  net_.layers[0].out_w = 32768;
  refused(open(), ODT_OUT_OF_RANGE, "op: output positions", 0);
  net_.layers[0] = pool(OpKind::kMaxPool, 1, 1);
  net_.input_dims = {1, 2, 32768};
  refused(open(), ODT_OUT_OF_RANGE, "op: output positions", 0);
}

TEST_F(GraphImage, Merges) {
  expect_op<uint32_t>(kAdd, 28, 1, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(kAdd, 24, 0, ODT_INVALID_ARGUMENT, "op: offset_off");
  expect_op<uint32_t>(kConcat, 28, 2, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_dim<uint16_t>(3, 2, 5, ODT_INVALID_ARGUMENT, "op: output shape", kAdd);
  expect_dim<uint16_t>(6, 0, 5, ODT_INVALID_ARGUMENT, "op: output shape", kConcat);
  expect_dim<uint16_t>(6, 1, 5, ODT_INVALID_ARGUMENT, "op: output shape", kConcat);
  expect_dim<uint16_t>(5, 1, 5, ODT_INVALID_ARGUMENT, "op: second input's shape", kConcat);
  net_.layers[kAdd].offsets[1] = -1;
  refused(open(), ODT_INVALID_ARGUMENT, "op: factor of ADD", kAdd);
  net_.layers[kAdd].offsets[1] = 0;
  EXPECT_EQ(open(), ODT_OK);
  net_.layers[kB].outputs = 1;
  net_.layers[kB].weights.resize(2);
  refused(open(), ODT_INVALID_ARGUMENT, "op: second input's shape", kAdd);
}

TEST_F(GraphImage, ConcatHoldsWhatItCopies) {
  net_.layers[kAdd].clip_hi = 100;
  net_.layers[kAdd].clip_lo = -100;
  net_.layers[kAvg].clip_lo = -90;
  net_.layers[kConcat].clip_hi = 127;
  net_.layers[kConcat].clip_lo = -100;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_.layers[kConcat].clip_lo = -99;
  refused(open(), ODT_INVALID_ARGUMENT, "op: clip_lo of CONCAT", kConcat);
  net_.layers[kConcat].clip_lo = -100;
  net_.layers[kConcat].clip_hi = 126;
  refused(open(), ODT_INVALID_ARGUMENT, "op: clip_hi of CONCAT", kConcat);
  net_.layers[kAvg].clip_hi = 126;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
}

TEST_F(GraphImage, ValuesPassThroughUnchanged) {
  open();
  for (size_t tensor : {size_t{5}, size_t{7}, size_t{9}}) {  // RESIZE, MAXPOOL, FLATTEN
    open();
    patch<uint8_t>(64 + 16 * tensor, ODT_U8);
    refused(reopen(), ODT_INVALID_ARGUMENT, "op: output dtype", static_cast<int>(tensor) - 1);
  }
  expect_op<uint32_t>(kResize, 28, 1, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(8, 28, 1, ODT_INVALID_ARGUMENT, "op: n_out");  // FLATTEN
}

TEST_F(GraphImage, GlobalPool) {
  expect_op<uint32_t>(kGap, 28, 3, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_dim<uint16_t>(8, 1, 2, ODT_INVALID_ARGUMENT, "op: output values", kGap);
  net_.layers[kGap] = plain(OpKind::kGap, 1, 0);  // one shift for all
  EXPECT_EQ(open(), ODT_OK) << err_.what;
}

TEST_F(GraphImage, RegressionsAndAutoencoders) {
  NetSpec net;
  net.task = ODT_TASK_REGRESS;
  net.n_classes = 1;
  net.input_dims = {5};
  LayerSpec dense = plain(OpKind::kLinear, 1, 5);
  dense.trainable = true;
  net.layers = {dense};
  net_ = net;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_.task = ODT_TASK_CLASSIFY;
  refused(open(), ODT_OUT_OF_RANGE, "n_classes", -1);
  net_.task = ODT_TASK_REGRESS;
  for (uint16_t n : {4096, 4097}) {
    net_.n_classes = n;
    net_.layers[0] = plain(OpKind::kLinear, n, size_t{5} * n);
    net_.layers[0].trainable = true;
    refused(open(), n == 4096 ? ODT_OK : ODT_OUT_OF_RANGE, "n_classes", -1);
  }
  net_.task = ODT_TASK_AUTOENCODE;
  net_.n_classes = 5;
  net_.layers[0] = plain(OpKind::kLinear, 5, 25);
  net_.layers[0].trainable = true;
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_.input_dtype = DType::kU8;
  refused(open(), ODT_INVALID_ARGUMENT, "autoencoder: input dtype", -1);
  net_.input_dtype = DType::kS8;
  net_.input_dims = {6};
  net_.layers[0].weights.resize(30);
  refused(open(), ODT_INVALID_ARGUMENT, "autoencoder: input values", -1);
}

TEST_F(GraphImage, Dfp16) {
  net_ = dfp16(net_);
  ASSERT_EQ(open(), ODT_OK) << err_.what << " " << err_.index << " got " << err_.got;
  EXPECT_EQ(m_.arith, ODT_ARITH_DFP16);
  EXPECT_EQ(m_.ops[kDense].weights, nullptr);
  EXPECT_EQ(m_.ops[kDense].weights16[11], 1);
  EXPECT_EQ(m_.ops[kDense].k_out, nullptr);
  EXPECT_EQ(m_.ops[kAdd].n_out, 0u);
  EXPECT_EQ(m_.tensors[m_.logits].dtype, ODT_S16);
  expect_op<uint32_t>(kDense, 32, 64, ODT_INVALID_ARGUMENT, "op: k_off in DFP16");
  expect_op<uint32_t>(kDense, 36, 64, ODT_INVALID_ARGUMENT, "op: mult_off in DFP16");
  expect_op<uint32_t>(kAdd, 28, 2, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<uint32_t>(kGap, 28, 1, ODT_INVALID_ARGUMENT, "op: n_out");
  expect_op<int32_t>(kA, 8, -32768, ODT_INVALID_ARGUMENT, "op: clip_lo in DFP16");
  expect_op<int32_t>(kA, 8, 0, ODT_INVALID_ARGUMENT, "op: clip_lo in DFP16");
  expect_op<int32_t>(kA, 12, 32766, ODT_INVALID_ARGUMENT, "op: clip_hi in DFP16");
  expect_op<uint32_t>(kDense, 16, static_cast<uint32_t>(image_.size()) - 20, ODT_INVALID_ARGUMENT,
                      "op: weights_off");
  open();
  patch<uint8_t>(64 + 16, ODT_S8);
  refused(reopen(), ODT_INVALID_ARGUMENT, "op: output dtype", kA);
  for (int e : {-100, 100, -101, 101}) {
    bool ok = e >= -100 && e <= 100;
    auto v = static_cast<int8_t>(e);
    expect_op<int8_t>(kA, 62, v, ok ? ODT_OK : ODT_INVALID_ARGUMENT, "op: e_w");
    expect_op<int8_t>(kA, 63, v, ok ? ODT_OK : ODT_INVALID_ARGUMENT, "op: e_b");
    net_.input_exponent = v;
    refused(open(), ok ? ODT_OK : ODT_INVALID_ARGUMENT, "tensor: exponent", 0);
    net_.input_exponent = 0;
  }
  expect_op<int8_t>(kMax, 62, 1, ODT_INVALID_ARGUMENT, "op: e_w");
  LayerSpec pre = plain(OpKind::kPrequant, 2, 0);
  pre.prequant_mult = {1, 1};
  net_.layers.insert(net_.layers.begin(), pre);
  for (size_t i = 1; i < net_.layers.size(); i++) {
    if (net_.layers[i].in0 >= 0) net_.layers[i].in0++;
    if (net_.layers[i].in1 >= 0) net_.layers[i].in1++;
  }
  refused(open(), ODT_INVALID_ARGUMENT, "op: PREQUANT in DFP16", 0);
}

// Sums of any length: no limit in 64 bits.
TEST_F(GraphImage, Dfp16HasNoLimitOfProducts) {
  NetSpec net;
  net.arith = ODT_ARITH_DFP16;
  net.input_dims = {60000};
  net.input_dtype = DType::kS16;
  LayerSpec dense = plain(OpKind::kLinear, 2, 120000);
  dense.trainable = true;
  net.layers = {dense};
  net_ = dfp16(net);
  EXPECT_EQ(open(), ODT_OK) << err_.what;
  net_ = net;
  net_.arith = ODT_ARITH_INT8;
  refused(open(), ODT_OUT_OF_RANGE, "op: products per sum", 0);
}

// Header, tensors and ops of graphs, integer and DFP16.
TEST_F(GraphImage, RandomMutations) {
  Random r(77);
  for (bool wide : {false, true}) {
    if (wide) net_ = dfp16(net_);
    ASSERT_EQ(open(), ODT_OK);
    ASSERT_TRUE(train_a_little(&m_));
    std::vector<uint8_t> good = image_;
    const int rounds = test::repeats(4000, 20000);
    int accepted = 0, ran = 0;
    for (int i = 0; i < rounds; i++) {
      image_ = good;
      for (int n = r.range(1, 4); n > 0; n--) {
        auto top = r.chance(90) ? op_at(net_.layers.size()) : image_.size();
        auto at = static_cast<size_t>(r.range(0, static_cast<int>(top) - 1));
        image_[at] = r.chance(50) ? static_cast<uint8_t>(r.word())
                                  : static_cast<uint8_t>(image_[at] ^ (1 << r.range(0, 7)));
      }
      if (reopen() != ODT_OK) continue;
      accepted++;
      if (train_a_little(&m_)) ran++;
    }
    EXPECT_GT(accepted, rounds / 200);
    EXPECT_GT(ran, rounds / 200);
  }
}

TEST_F(GraphImage, EveryTruncation) {
  open();
  for (size_t n = 64; n + 4 < image_.size(); n++) {
    std::vector<uint8_t> cut(image_.begin(), image_.begin() + static_cast<long>(n));
    auto size = static_cast<uint32_t>(n);
    std::memcpy(cut.data() + 8, &size, 4);
    EXPECT_NE(odt_model_open(&m_, cut.data(), size, &err_), ODT_OK) << n;
  }
}

}  // namespace
}  // namespace odt::testing

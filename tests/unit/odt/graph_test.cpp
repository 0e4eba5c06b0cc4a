// Ops without weights and what crosses them, by hand.
#include <gtest/gtest.h>

#include "fixture.h"
#include "walk.h"

namespace odt::testing {
namespace {

// One op over tensors of [1,H,W] or [N].
class Pass {
 public:
  Pass(odt_op_kind_t kind, std::vector<uint16_t> in, std::vector<uint16_t> out) {
    op_.kind = kind;
    op_.clip_lo = -128;
    op_.clip_hi = 127;
    op_.n_out = 1;
    op_.k_out = &k_;
    op_.offset = off_;
    op_.stride_h = op_.stride_w = 1;
    in_ = tensor(in);
    out_ = tensor(out);
    in1_ = in_;
  }
  odt_op_t& op() { return op_; }
  odt_tensor_t& in1() { return in1_; }
  void constants(int32_t a, int32_t b, int8_t k) {
    off_[0] = a;
    off_[1] = b;
    k_ = k;
  }
  void window(uint16_t k, uint16_t stride, uint16_t pad) {
    op_.k_h = op_.k_w = k;
    op_.stride_h = op_.stride_w = stride;
    op_.pad_t = op_.pad_l = pad;
  }
  Values forward(const std::vector<int8_t>& x, const std::vector<int8_t>& x1 = {}) {
    odt_pass_t p = pass(x, x1);
    std::vector<int8_t> y(out_.count, 99);
    odt_pass_forward(&p, reinterpret_cast<uint8_t*>(y.data()));
    return Values(y.begin(), y.end());
  }
  Values delta(const std::vector<int8_t>& x, const std::vector<int8_t>& dy, uint32_t slot = 0) {
    odt_pass_t p = pass(x, {});
    const odt_tensor_t& to = slot ? in1_ : in_;
    Values sum(to.count);
    std::vector<int64_t> acc(to.count, 5);  // added to what is there
    odt_sink_t sink{};
    sink.acc = acc.data();
    sink.count = to.count;
    odt_pass_delta(&p, slot, dy.data(), &sink, 0);
    for (size_t i = 0; i < acc.size(); i++) sum[i] = acc[i] - 5;
    return sum;
  }

 private:
  static odt_tensor_t tensor(const std::vector<uint16_t>& dims) {
    odt_tensor_t t{};
    t.dtype = ODT_S8;
    t.ndim = static_cast<uint8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), t.dims);
    t.count = count(dims);
    return t;
  }
  odt_pass_t pass(const std::vector<int8_t>& x, const std::vector<int8_t>& x1) {
    odt_pass_t p{};
    p.op = &op_;
    p.in = &in_;
    p.in1 = &in1_;
    p.out = &out_;
    p.x = reinterpret_cast<const uint8_t*>(x.data());
    p.x1 = reinterpret_cast<const uint8_t*>(x1.data());
    p.x_dtype = p.x1_dtype = ODT_S8;
    return p;
  }
  odt_op_t op_{};
  odt_tensor_t in_, in1_, out_;
  int32_t off_[2] = {0, 0};
  int8_t k_ = 0;
};

TEST(Ops, MaxPoolGoesToTheFirstMaximum) {
  Pass p(ODT_OP_MAXPOOL, {1, 3, 3}, {1, 2, 2});
  p.window(2, 1, 0);
  std::vector<int8_t> x = {1, 7, 7, 7, 7, -1, 0, 2, 7};
  EXPECT_EQ(p.forward(x), (Values{7, 7, 7, 7}));
  // Windows: {1,7,7,7} -> 1; {7,7,7,-1} -> 1; {7,7,0,2} -> 3; {7,-1,2,7} -> 4.
  EXPECT_EQ(p.delta(x, {10, 20, 40, 80}), (Values{0, 30, 0, 40, 80, 0, 0, 0, 0}));
}

TEST(Ops, MaxPoolIgnoresPadding) {
  Pass p(ODT_OP_MAXPOOL, {1, 2, 2}, {1, 2, 2});
  p.window(2, 2, 1);
  std::vector<int8_t> x = {-5, -6, -7, -8};
  EXPECT_EQ(p.forward(x), (Values{-5, -6, -7, -8}));
  EXPECT_EQ(p.delta(x, {1, 2, 3, -128}), (Values{1, 2, 3, -128}));
}

TEST(Ops, AveragePoolCountsPaddingAsZero) {
  Pass p(ODT_OP_AVGPOOL, {1, 3, 3}, {1, 2, 2});
  p.window(2, 2, 1);
  p.constants(2, 0, 2);  // (sum + 2) >> 2
  std::vector<int8_t> x = {10, 20, 30, 40, 50, 60, 70, 80, -90};
  EXPECT_EQ(p.forward(x), (Values{3, 13, 28, 25}));  // 12, 52, 112, 102
  EXPECT_EQ(p.delta(x, {1, 2, 3, 4}), (Values{1, 2, 2, 3, 4, 4, 3, 4, 4}));
}

TEST(Ops, GlobalPool) {
  Pass p(ODT_OP_GAP, {2, 2, 2}, {2, 1, 1});
  p.constants(-1, 0, 1);
  EXPECT_EQ(p.forward({1, 2, 3, 4, -1, -2, -3, -4}), (Values{4, -6}));  // 9 >> 1, -11 >> 1
  EXPECT_EQ(p.delta({}, {7, -9}), (Values{7, 7, 7, 7, -9, -9, -9, -9}));
}

TEST(Ops, AddRoundsHalfToEven) {
  Pass p(ODT_OP_ADD, {6}, {6});
  p.constants(1 << 19, 1 << 18, 0);  // a / 2 + b / 4
  EXPECT_EQ(p.forward({1, 3, -1, -3, 127, 1}, {0, 0, 0, 0, 127, 1}), (Values{0, 2, 0, -2, 95, 1}));
  EXPECT_EQ(p.delta({}, {1, -128, 0, 127, 5, 6}, 1), (Values{1, -128, 0, 127, 5, 6}));
  p.constants(1 << 20, 1 << 20, 0);
  EXPECT_EQ(p.forward({127, -128, 0, 0, 0, 0}, {127, -128, 1, 2, 3, 4}),
            (Values{127, -128, 1, 2, 3, 4}));
}

TEST(Ops, ConcatSlices) {
  Pass p(ODT_OP_CONCAT, {2}, {5});
  p.in1().dims[0] = 3;
  p.in1().count = 3;
  EXPECT_EQ(p.forward({1, 2}, {3, 4, 5}), (Values{1, 2, 3, 4, 5}));
  EXPECT_EQ(p.delta({}, {1, 2, 3, 4, 5}, 0), (Values{1, 2}));
  EXPECT_EQ(p.delta({}, {1, 2, 3, 4, 5}, 1), (Values{3, 4, 5}));
}

TEST(Ops, ResizeUpAndDown) {
  Pass up(ODT_OP_RESIZE, {1, 1, 3}, {1, 2, 5});  // indices 0 0 1 1 2
  EXPECT_EQ(up.forward({1, 2, 3}), (Values{1, 1, 2, 2, 3, 1, 1, 2, 2, 3}));
  EXPECT_EQ(up.delta({}, {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}), (Values{33, 77, 55}));
  Pass down(ODT_OP_RESIZE, {1, 1, 5}, {1, 1, 3});  // indices 0 1 3
  EXPECT_EQ(down.forward({1, 2, 3, 4, 5}), (Values{1, 2, 4}));
  EXPECT_EQ(down.delta({}, {7, 8, 9}), (Values{7, 8, 0, 9, 0}));
}

TEST(Exponents, NearestLogarithm) {
  EXPECT_EQ(odt_log2_nearest(1), 0);
  EXPECT_EQ(odt_log2_nearest(2), 1);
  EXPECT_EQ(odt_log2_nearest(3), 2);    // 1.58
  EXPECT_EQ(odt_log2_nearest(5), 2);    // 2.32
  EXPECT_EQ(odt_log2_nearest(6), 3);    // 2.58
  EXPECT_EQ(odt_log2_nearest(181), 7);  // 7.4998
  EXPECT_EQ(odt_log2_nearest(182), 8);
  EXPECT_EQ(odt_log2_nearest(1u << 31), 31);
  EXPECT_EQ(odt_log2_nearest(3037000499u), 31);  // below 2^31.5
  EXPECT_EQ(odt_log2_nearest(3037000500u), 32);
}

}  // namespace
}  // namespace odt::testing

#include "worker/qat_net.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/image_writer.h"
#include "data/sampling.h"
#include "odt/trainer.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

using compiler::Shape;

struct Case {
  const char* name;
  Shape input;
  const char* arch;
};

const Case kCases[] = {
    {"dense", {7}, "dense5,relu,dense"},
    {"dense_bn", {7}, "dense5,bn,relu,dense"},
    {"conv", {2, 6, 5}, "conv3x3x2,relu,dense"},
    {"conv_stride_pad", {2, 7, 6}, "conv4x3x3s2x1p1,relu,conv3x2x3p0x1x1x2,dense"},
    {"conv_bn", {2, 6, 5}, "conv3x3x3p1,bn,relu,dense"},
    {"conv_1x1", {3, 4, 4}, "conv5x1x1,relu,conv2x1x1s2,dense"},
    {"groups_dilation", {4, 7, 7}, "conv6x3x3g2d2p1,relu,dense"},
    {"depthwise", {3, 6, 6}, "dw3x3s2p1,bn,relu,conv4x1x1,relu,dense"},
    {"channel_multiplier", {2, 5, 5}, "conv4x3x3g2p1,relu,dense"},
    {"max", {2, 7, 7}, "conv3x3x3,relu,max3s2p1,dense"},
    {"avg", {2, 7, 6}, "conv3x3x3p1,avg3x2s2x1p1,dense"},
    {"avg_first", {1, 6, 6}, "avg2,conv3x2x2,relu,dense"},
    {"gap", {2, 7, 7}, "conv4x3x3p1,relu,gap,dense"},
    {"gap_last", {2, 5, 5}, "conv3x3x3p1,relu,conv3x3x3,gap"},
    {"resize", {2, 3, 3}, "conv3x2x2,relu,resize2x3,conv2x3x3,dense"},
    {"add", {2, 5, 5}, "conv4x3x3p1,bn,relu,add(conv4x3x3p1,relu,conv4x1x1),relu,max2,dense"},
    {"add_input", {6}, "add(dense6,relu,dense6),dense5,relu,dense"},
};

class QatNetCase : public testing::TestWithParam<Case> {
 protected:
  Arch arch() const {
    auto a = parse_arch(GetParam().arch, GetParam().input, {{3}, "3 classes"});
    EXPECT_TRUE(a.ok()) << a.status();
    return *a;
  }
};

// int8 values, as reals.
QatMatrix samples(std::uint32_t n, const Shape& shape, std::uint32_t seed) {
  data::Xorshift32 random(seed);
  QatMatrix x(n, static_cast<Eigen::Index>(compiler::count_of(shape)));
  for (Eigen::Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<float>(static_cast<int>(random.below(256)) - 128) / 128.0f;
  return x;
}

// Double, so that differences of a small step are not lost in the sum.
double loss_of(QatNet& net, const QatMatrix& x, const QatMatrix& weight) {
  return (net.forward(x, true).cast<double>().array() * weight.cast<double>().array()).sum();
}

void expect_slope(QatNet& net, const QatMatrix& x, const QatMatrix& weight, float& value,
                  float gradient, const std::string& what) {
  // A step across the corner of a ReLU or a maximum has another slope on its two sides.
  const float kept = value;
  double best = 1e9, slope = 0;
  for (const float step : {4e-3f, 1e-3f, 2.5e-4f}) {
    value = kept + step;
    const double up = loss_of(net, x, weight);
    value = kept - step;
    const double down = loss_of(net, x, weight);
    value = kept;
    slope = (up - down) / (2.0 * step);
    best = std::min(best, std::abs(slope - gradient));
  }
  EXPECT_LE(best, 0.02 * std::abs(gradient) + 4e-3) << what << ": " << slope << " " << gradient;
}

TEST_P(QatNetCase, GradientsEqualFiniteDifferences) {
  QatNet net(arch(), 5, {});
  // Away from 0, where a ReLU of nothing but zeros has its corner.
  for (QatNode& node : net.nodes())
    for (QatParam* p : {&node.b, &node.beta})
      for (Eigen::Index i = 0; i < p->value.size(); ++i)
        p->value.data()[i] = 0.1f - 0.05f * static_cast<float>(i % 5);
  QatMatrix x = samples(4, net.arch().input, 11);
  const QatMatrix weight = samples(4, {3}, 12);
  net.forward(x, true);
  net.backward(x, weight, true);
  const QatMatrix to_input = net.input_gradient();
  for (Eigen::Index i = 0; i < x.size(); i += 1 + x.size() / 23)
    expect_slope(net, x, weight, x.data()[i], to_input.data()[i], "input " + std::to_string(i));
  for (std::size_t n = 0; n < net.nodes().size(); ++n) {
    QatNode& node = net.nodes()[n];
    if (!node.arch.is_compute()) continue;
    std::vector<std::pair<QatParam*, const char*>> params = {{&node.w, " w"}, {&node.b, " b"}};
    if (node.bn) params = {{&node.w, " w"}, {&node.gamma, " gamma"}, {&node.beta, " beta"}};
    for (auto& [p, name] : params) {
      const QatMatrix gradient = p->gradient;
      for (Eigen::Index i = 0; i < gradient.size(); i += 1 + gradient.size() / 17)
        expect_slope(net, x, weight, p->value.data()[i], gradient.data()[i],
                     "layer " + std::to_string(n) + name + std::to_string(i));
    }
  }
}

compiler::Network network_of(QatNet& net, const Shape& input) {
  compiler::Network out;
  out.name = "test";
  out.input_shape = input;
  out.layers = net.exported();
  for (auto& l : out.layers) l.trainable = l.is_compute();
  out.calibration.ce_scale = 100;
  out.calibration.target_correct.assign(3, 64);
  out.calibration.target_wrong.assign(3, -64);
  return out;
}

// [C,H,W] int8 of one sample.
std::vector<std::uint8_t> board_input(const QatMatrix& x, Eigen::Index row, const Shape& shape) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(x.cols()));
  const Eigen::Index c = shape.size() == 3 ? shape[0] : 1, plane = x.cols() / c;
  for (Eigen::Index p = 0; p < plane; ++p)
    for (Eigen::Index n = 0; n < c; ++n)
      out[static_cast<std::size_t>(n * plane + p)] =
          static_cast<std::uint8_t>(static_cast<std::int8_t>(x(row, p * c + n) * 128.0f));
  return out;
}

TEST_P(QatNetCase, TheGridIsTheFirmwaresArithmetic) {
  for (const bool per_channel : {true, false}) {
    QatNet net(arch(), 6, {per_channel, 0, false});
    // A few steps, so that batch-norm and offsets are not what they began with.
    const QatMatrix x = samples(64, net.arch().input, 21), pull = samples(64, {3}, 22) / 64.0f;
    for (int step = 0; step < 12; ++step) {
      if (step == 6) net.start_grid(x);
      net.forward(x, true);
      net.backward(x, pull);
      net.update(0.02f, 0.9f, 1e-3f);
    }
    const auto network = network_of(net, net.arch().input);
    const auto image = compiler::write_image(network);
    ASSERT_TRUE(image.ok()) << image.status();
    auto host = HostTrainer::create(*image, HostTrainer::inference_spec());
    ASSERT_TRUE(host.ok()) << host.status();
    const QatMatrix& z = net.forward(x, false);
    const int e = net.nodes().back().out_exp;
    bool varies = false;
    for (Eigen::Index r = 0; r < x.rows(); ++r) {
      std::int8_t logits[3];
      const auto input = board_input(x, r, net.arch().input);
      ASSERT_EQ(odt_trainer_infer((*host)->get(), input.data(), logits), ODT_OK);
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(std::ldexp(z(r, c), -e), static_cast<float>(logits[c])) << "sample " << r;
        varies = varies || z(r, c) != z(0, c);
      }
    }
    EXPECT_TRUE(varies);
    for (const auto& l : network.layers)
      for (auto w : l.weights) EXPECT_LE(std::abs(int{w}), 64);
  }
}

TEST_P(QatNetCase, TheSameSeedGivesTheSameBits) {
  const auto trained = [this](std::uint32_t seed) {
    QatNet net(arch(), seed, {});
    const QatMatrix x = samples(8, net.arch().input, 31), pull = samples(8, {3}, 32) / 8.0f;
    for (int step = 0; step < 4; ++step) {
      net.forward(x, true);
      net.backward(x, pull);
      net.update(0.1f, 0.9f, 1e-3f);
    }
    return net.nodes()[0].arch.is_compute() ? net.nodes()[0].w.value : net.nodes()[1].w.value;
  };
  EXPECT_EQ(trained(3), trained(3));
  EXPECT_NE(trained(3), trained(4));
}

INSTANTIATE_TEST_SUITE_P(Archs, QatNetCase, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(QatNet, ShiftsOfALayerDifferByAtMostThree) {
  const auto arch = parse_arch("dense4,relu,dense", {5}, {{2}, ""});
  ASSERT_TRUE(arch.ok());
  QatNet net(*arch, 1, {});
  net.nodes()[0].w.value.col(0) *= 1000.0f;
  net.nodes()[0].w.value.col(1).setZero();
  net.start_grid(samples(20, {5}, 1));
  const auto layers = net.exported();
  const auto [low, high] = std::minmax_element(layers[0].k.begin(), layers[0].k.end());
  EXPECT_EQ(*high - *low, 3);
}

TEST(QatKernels, ThePortableExponentialIsExpToTheLastBits) {
  for (double x = 0; x > -90; x -= 0.0371)
    EXPECT_NEAR(exp_portable(x) / std::exp(x), 1.0, 4e-16) << x;
  EXPECT_EQ(exp_portable(0), 1.0);
  EXPECT_EQ(exp_portable(-1e9), 0.0);
}

}  // namespace
}  // namespace odt::worker

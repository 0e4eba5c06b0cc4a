#include "arc_model.h"

#include <cmath>
#include <cstdio>
#include <random>

#include "onnx_fixture.h"

namespace odt::test {
namespace {

std::string weights(OnnxBuilder& b, const Dims& dims) {
  std::int64_t n = 1;
  for (auto d : dims) n *= d;
  std::vector<float> w;
  for (std::int64_t i = 0; i < n; ++i) w.push_back(static_cast<float>(b.random(-40, 40)));
  return b.constant(dims, w);
}

// Add Mul Mul Floor Clip [Relu Clip] as the exporter writes them, rounding folded into the offset.
void finish(OnnxBuilder& b, const Dims& dims, int k, bool relu, float oss_lo, float oss_hi) {
  std::int64_t n = 1;
  for (auto d : dims) n *= d;
  const auto same = [&](float v) {
    return b.constant(dims, std::vector<float>(static_cast<std::size_t>(n), v));
  };
  b.node("Add", {same(static_cast<float>(1 << (k - 1)))}).node("Mul", {same(1.0f)});
  b.node("Mul", {same(std::ldexp(1.0f, -k))}).node("Floor").clip(oss_lo, oss_hi);
  if (relu) b.node("Relu").clip(0, 255);
}

}  // namespace

std::string arc_onnx() {
  OnnxBuilder b({1, 1, 64, 2}, 20);
  b.node("Add", {b.constant({1, 1, 1, 1}, {0.03125f})})
      .node("Mul", {b.constant({1, 1, 1, 1}, {160})});
  b.node("Mul", {b.constant({}, {0.125f})}).node("Floor").clip(-128, 127, true);
  b.node("Conv", {weights(b, {3, 1, 16, 2})});
  b.ints("kernel_shape", {16, 2});
  finish(b, {1, 3, 1, 1}, 8, true, -255, 255);
  b.node("Reshape", {b.constant_i64({1, 147})});
  b.node("MatMul", {weights(b, {147, 160})});
  finish(b, {1, 160}, 8, true, 0, 255);
  b.node("MatMul", {weights(b, {160, 2})});
  finish(b, {1, 2}, 9, false, -128, 127);
  b.metadata("odt.ce_scale", "0");
  b.metadata("odt.target_correct", "50,50");
  b.metadata("odt.target_wrong", "-50,-50");
  return b.bytes({1, 2});
}

// A mains current on two channels; an arc adds bursts while the current is high.
std::string arc_csv(int samples) {
  std::mt19937 engine(5);
  const auto uniform = [&] { return static_cast<double>(engine() % 20001u) / 10000.0 - 1.0; };
  std::string out;
  for (int i = 0; i < 128; ++i) out += "v" + std::to_string(i) + ",";
  out += "label\n";
  for (int s = 0; s < samples; ++s) {
    const bool arc = s % 2 == 1;
    const double phase = 3.14159 * uniform(), gain = 2.0 + 0.8 * uniform();
    for (int t = 0; t < 64; ++t) {
      const double wave = gain * std::sin(phase + t * 0.12);
      for (int channel = 0; channel < 2; ++channel) {
        double v = wave * (channel == 0 ? 1.0 : 0.6) + 0.25 * uniform();
        if (arc && std::abs(wave) > 0.6 * gain) v += (t % 2 == 0 ? 1.1 : -1.1) + 0.5 * uniform();
        char text[32];
        std::snprintf(text, sizeof text, "%.5f,", v);
        out += text;
      }
    }
    out += arc ? "1\n" : "0\n";
  }
  return out;
}

}  // namespace odt::test

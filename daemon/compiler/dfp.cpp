#include "compiler/dfp.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

namespace odt::compiler {
namespace {

constexpr double kLog2E = 1.4426950408889634;
// Rates are those of fp32 SGD only where values are about 1: inputs fill +-1, and what an 8-bit
// layer clips at (255) is 4.
constexpr double kHiddenScale = 1.0 / 64;

template <typename T>
Block<T> block_of(const std::vector<double>& reals) {
  constexpr int bits = 8 * sizeof(T) - 1;
  double most = 0;
  for (const double v : reals) most = std::max(most, std::fabs(v));
  int exponent = most > 0 ? std::clamp(std::ilogb(most) + 1 - bits, -100, 100) : 0;
  const double limit = std::ldexp(1.0, bits) - 1;
  for (;; ++exponent) {
    Block<T> out;
    out.exponent = static_cast<std::int8_t>(exponent);
    bool fits = true;
    for (const double v : reals) {
      const double scaled = std::nearbyint(std::ldexp(v, -exponent));
      fits = fits && std::fabs(scaled) <= limit;
      out.values.push_back(static_cast<T>(std::clamp(scaled, -limit, limit)));
    }
    if (fits || exponent >= 100) return out;
  }
}

// What the integers of a layer stand for: y = (acc + offset) * mult * 2^-k, its rounding taken out.
struct Reals {
  std::vector<double> weights, bias;
};
Reals reals_of(const Layer& l, double in_scale, double out_scale) {
  Reals out;
  const std::size_t n = l.n_out(), per_out = l.weights.size() / n;
  std::vector<double> unit(n);
  for (std::size_t o = 0; o < n; ++o) {
    unit[o] = std::ldexp(out_scale * l.mult[o], -static_cast<int>(l.k[o]));
    const double half = l.k[o] > 0 ? std::ldexp(1.0, l.k[o] - 1) / l.mult[o] : 0;
    out.bias.push_back((l.offset[o] - half) * unit[o]);
  }
  for (std::size_t i = 0; i < l.weights.size(); ++i) {
    const std::size_t o = l.kind == LayerKind::kConv ? i / per_out : i % n;
    out.weights.push_back(l.weights[i] * unit[o] / in_scale);
  }
  return out;
}

Layer converted(const Layer& from, double in_scale, double out_scale) {
  Layer to = from;
  const Reals reals = reals_of(from, in_scale, out_scale);
  const auto weights = block16(reals.weights);
  const auto bias = block32(reals.bias);
  to.weights = weights.values;
  to.e_w = weights.exponent;
  to.offset = bias.values;
  to.e_b = bias.exponent;
  to.mult.clear();
  to.k.clear();
  to.clip_lo = to.relu ? 0 : -32767;
  to.clip_hi = 32767;
  return to;
}

}  // namespace

Block<std::int16_t> block16(const std::vector<double>& reals) {
  return block_of<std::int16_t>(reals);
}
Block<std::int32_t> block32(const std::vector<double>& reals) {
  return block_of<std::int32_t>(reals);
}

void set_dfp16(const std::vector<double>& weights, const std::vector<double>& bias, Layer& l) {
  constexpr int kHeadroom = 7, kFiner = 8, kNone = -15;
  auto w = block16(weights);
  const auto zero = [](const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [](double x) { return x == 0; });
  };
  // Weights of 0 are about to be trained from there: as if the largest were 1.
  l.e_w = zero(weights) ? static_cast<std::int8_t>(kNone) : w.exponent;
  l.weights = std::move(w.values);
  int e_b = l.e_w - kFiner;
  if (!zero(bias)) e_b = std::max(e_b, block32(bias).exponent + kHeadroom);
  l.e_b = static_cast<std::int8_t>(std::clamp(e_b, -100, 100));
  l.offset.clear();
  for (const double b : bias)
    l.offset.push_back(static_cast<std::int32_t>(
        std::clamp(std::nearbyint(std::ldexp(b, -l.e_b)), -2147483647.0, 2147483647.0)));
}

Result<Network> to_dfp16(const Network& net) {
  if (net.arithmetic != Arithmetic::kInteger)
    return absl::InvalidArgumentError(absl::StrCat("model '", net.name, "' is DFP16 already"));
  if (net.calibration.ce_scale == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("model '", net.name, "' has no scale of its logits: needed for DFP16"));
  Network out = net;
  out.arithmetic = Arithmetic::kDfp16;
  out.input_exponent = net.input_storage == Storage::kU8 ? -8 : -7;
  out.calibration.ce_scale = 0;
  out.calibration.target_correct.clear();
  out.calibration.target_wrong.clear();
  const auto last = std::find_if(net.layers.rbegin(), net.layers.rend(),
                                 [](const Layer& l) { return l.is_compute(); });
  double scale = std::ldexp(1.0, out.input_exponent);  // of a value of the 8-bit net
  for (Layer& l : out.layers) {
    if (!l.is_compute() && l.kind != LayerKind::kFlatten)
      return absl::UnimplementedError(
          absl::StrCat("layer '", shown(l.name),
                       "': dense, convolution and flatten layers become DFP16 so far; export the "
                       "model in float32 instead"));
    if (!l.is_compute()) continue;
    const bool logits = &net.layers[static_cast<std::size_t>(&l - out.layers.data())] == &*last;
    const double to = logits ? net.calibration.ce_scale / (256.0 * kLog2E) : kHiddenScale;
    l = converted(l, scale, to);
    scale = to;
  }
  return out;
}

}  // namespace odt::compiler

#include "compiler/dfp.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <optional>

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

// Real value of an integer step of every tensor, as far as the graph ties them together: DFP16 adds
// and joins real values. A forest: real step of t = factor * that of its root.
class Scales {
 public:
  explicit Scales(std::size_t tensors) : parent_(tensors), factor_(tensors, 1), step_(tensors, 0) {
    for (std::size_t t = 0; t < tensors; ++t) parent_[t] = static_cast<std::uint16_t>(t);
  }
  // step(b) = ratio * step(a). False: the graph says otherwise already.
  bool tie(std::uint16_t a, std::uint16_t b, double ratio) {
    const auto [root_a, fa] = find(a);
    const auto [root_b, fb] = find(b);
    if (root_a == root_b) return std::abs(fb / (ratio * fa) - 1) < 1e-6;
    parent_[root_b] = root_a;
    factor_[root_b] = ratio * fa / fb;
    return true;
  }
  // False: it has another one already.
  bool set(std::uint16_t t, double step) {
    const auto [root, f] = find(t);
    if (step_[root] == 0) step_[root] = step / f;
    return std::abs(step_[root] * f / step - 1) < 1e-6;
  }
  double step(std::uint16_t t) const {
    const auto [root, f] = find(t);
    return step_[root] * f;
  }

 private:
  std::pair<std::uint16_t, double> find(std::uint16_t t) const {
    double f = 1;
    for (; parent_[t] != t; t = parent_[t]) f *= factor_[t];
    return {t, f};
  }
  std::vector<std::uint16_t> parent_;
  std::vector<double> factor_, step_;  // step_: of roots
};

// Averages are sum * mult * 2^-k; rule 1.13: sum * R * 2^-15, R = floor((65536 + area) / (2 area)).
std::optional<double> average_ratio(const Layer& l) {
  const std::uint64_t area = l.kind == LayerKind::kGap
                                 ? std::uint64_t{l.in_shape[1]} * l.in_shape[2]
                                 : std::uint64_t{l.conv.k_h} * l.conv.k_w;
  const double mean = std::ldexp(static_cast<double>((65536 + area) / (2 * area)), -15);
  std::optional<double> out;
  for (std::size_t n = 0; n < l.k.size(); ++n) {
    const double ratio = mean / std::ldexp(l.mult.empty() ? 1 : l.mult[n], -int{l.k[n]});
    if (out && *out != ratio) return std::nullopt;
    out = ratio;
  }
  return out;
}

// What a layer without weights does to the steps of its tensors. False: DFP16 cannot follow it.
bool tie_tensors(const Layer& l, std::uint16_t y, Scales& scales) {
  constexpr double kOne = 1 << 20;
  switch (l.kind) {
    case LayerKind::kConv:
    case LayerKind::kLinear:
      return true;
    case LayerKind::kAvgPool:
    case LayerKind::kGap: {
      const auto ratio = average_ratio(l);
      return ratio && *ratio > 0 && scales.tie(l.in0, y, *ratio);
    }
    case LayerKind::kAdd:
      if (l.offset[0] <= 0) return false;
      // One tensor, clipped or scaled: DFP16 adds it to itself.
      if (l.in0 == l.in1) return scales.tie(l.in0, y, 2 * kOne / (l.offset[0] + l.offset[1]));
      return l.offset[1] > 0 && scales.tie(l.in0, y, kOne / l.offset[0]) &&
             scales.tie(l.in1, y, kOne / l.offset[1]);
    case LayerKind::kConcat:
      return scales.tie(l.in0, y, 1) && scales.tie(l.in1, y, 1);
    default:
      return scales.tie(l.in0, y, 1);
  }
}

void convert(double in_step, double out_step, Layer& l) {
  if (l.is_compute()) {
    const Reals reals = reals_of(l, in_step, out_step);
    set_dfp16(reals.weights, reals.bias, l);
  } else {
    l.offset.clear();
  }
  l.mult.clear();
  l.k.clear();
  l.clip_lo = l.relu ? 0 : -32767;
  l.clip_hi = 32767;
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
  const bool classes = net.task == Task::kClassify;
  if (classes && net.calibration.ce_scale == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("model '", net.name, "' has no scale of its logits: needed for DFP16"));
  Network out = net;
  out.arithmetic = Arithmetic::kDfp16;
  out.input_exponent = net.input_storage == Storage::kU8 ? -8 : -7;
  // Without classes the outputs' steps are those of the integer net, and so are the targets.
  const int steps = net.task == Task::kAutoencode ? out.input_exponent : -7;
  if (net.task == Task::kRegress) out.target_exponent = -7;
  out.calibration.ce_scale = 0;
  out.calibration.target_correct.clear();
  out.calibration.target_wrong.clear();
  Scales scales(net.layers.size() + 1);
  const auto refused = [&net](const Layer& l) {
    return absl::UnimplementedError(absl::StrCat(
        "model '", net.name, "', layer '", shown(l.name),
        "': the scales that it has in 8 bits cannot be those of DFP16; export the model in float32 "
        "instead"));
  };
  for (std::size_t n = 0; n < net.layers.size(); ++n)
    if (!tie_tensors(net.layers[n], static_cast<std::uint16_t>(n + 1), scales))
      return refused(net.layers[n]);
  const auto logits = static_cast<std::uint16_t>(net.layers.size());
  const double logit_step =
      classes ? net.calibration.ce_scale / (256.0 * kLog2E) : std::ldexp(1.0, steps);
  if (!scales.set(0, std::ldexp(1.0, out.input_exponent)) || !scales.set(logits, logit_step))
    return refused(net.layers.back());
  // The others: hidden layers first to last.
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    const auto y = static_cast<std::uint16_t>(n + 1);
    if (scales.step(y) == 0) scales.set(y, kHiddenScale);
    Layer& l = out.layers[n];
    convert(scales.step(l.in0), scales.step(y), l);
  }
  return out;
}

}  // namespace odt::compiler

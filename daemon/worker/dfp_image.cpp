#include "worker/dfp_image.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "odt/odt.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

using compiler::Layer;
using compiler::LayerKind;

constexpr std::size_t kHead = 64, kTensor = 16, kOp = 96;
constexpr double kLog2E = 1.4426950408889634;
// Rates are those of fp32 SGD only where values are about 1: inputs fill +-1, and what an 8-bit
// layer clips at (255) is 4.
constexpr double kHiddenScale = 1.0 / 64;

// Values as mantissas of one exponent, the smallest that holds them.
template <typename T>
struct Block {
  std::vector<T> values;
  int exponent = 0;
};

template <typename T>
Block<T> block_of(const std::vector<double>& reals) {
  constexpr int bits = 8 * sizeof(T) - 1;
  double most = 0;
  for (const double v : reals) most = std::max(most, std::fabs(v));
  Block<T> out;
  if (most > 0) out.exponent = std::clamp(std::ilogb(most) + 1 - bits, -100, 100);
  const double limit = std::ldexp(1.0, bits) - 1;
  for (;; ++out.exponent) {
    out.values.clear();
    bool fits = true;
    for (const double v : reals) {
      const double scaled = std::nearbyint(std::ldexp(v, -out.exponent));
      fits = fits && std::fabs(scaled) <= limit;
      out.values.push_back(static_cast<T>(std::clamp(scaled, -limit, limit)));
    }
    if (fits) return out;
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

class Writer {
 public:
  explicit Writer(const compiler::Network& net) : net_(net) {}

  std::string run() {
    const std::size_t n = net_.layers.size();
    out_.assign(kHead + (n + 1) * kTensor + n * kOp, '\0');
    head(n);
    tensor(0, net_.layers[0].in_shape, static_cast<std::uint8_t>(net_.input_storage));
    const int input = net_.input_storage == compiler::Storage::kU8 ? -8 : -7;
    set(kHead + 2, static_cast<std::int8_t>(input));
    scale_ = std::ldexp(1.0, input);
    const Layer* last = nullptr;
    for (const Layer& l : net_.layers)
      if (l.is_compute()) last = &l;
    for (std::size_t i = 0; i < n; ++i) {
      tensor(i + 1, net_.layers[i].out_shape, ODT_S16);
      op(i, net_.layers[i], &net_.layers[i] == last);
    }
    set<std::uint32_t>(8, static_cast<std::uint32_t>(out_.size()));
    return std::move(out_);
  }

 private:
  template <typename T>
  void set(std::size_t at, T value) {
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  template <typename T>
  std::uint32_t section(const std::vector<T>& values) {
    const auto at = static_cast<std::uint32_t>(out_.size());
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    out_.append((4 - out_.size() % 4) % 4, '\0');
    return at;
  }

  void head(std::size_t n) {
    const auto layers = std::count_if(net_.layers.begin(), net_.layers.end(),
                                      [](const Layer& l) { return l.trainable; });
    std::memcpy(out_.data(), "ODTM", 4);
    set<std::uint16_t>(4, 1);
    set<std::uint16_t>(6, kHead);
    set(12, static_cast<std::uint16_t>(n + 1));
    set(14, static_cast<std::uint16_t>(n));
    set(16, static_cast<std::uint16_t>(layers));
    set(18, static_cast<std::uint16_t>(net_.n_classes()));
    set(20, static_cast<std::uint32_t>(kHead));
    set(24, static_cast<std::uint32_t>(kHead + (n + 1) * kTensor));
    set<std::uint8_t>(39, ODT_ARITH_DFP16);
    set(40, net_.calibration.src_correct);
    set(44, net_.calibration.src_total);
    std::memcpy(out_.data() + 48, net_.name.data(), std::min<std::size_t>(16, net_.name.size()));
  }

  void tensor(std::size_t index, const compiler::Shape& shape, std::uint8_t dtype) {
    const std::size_t at = kHead + index * kTensor;
    set(at, dtype);
    set(at + 1, static_cast<std::uint8_t>(shape.size()));
    for (std::size_t d = 0; d < shape.size(); ++d)
      set(at + 4 + 2 * d, static_cast<std::uint16_t>(shape[d]));
    set(at + 12, static_cast<std::uint32_t>(compiler::count_of(shape)));
  }

  void op(std::size_t index, const Layer& l, bool logits) {
    const std::size_t at = kHead + (net_.layers.size() + 1) * kTensor + index * kOp;
    const std::uint8_t kind = l.kind == LayerKind::kConv     ? ODT_OP_CONV2D
                              : l.kind == LayerKind::kLinear ? ODT_OP_LINEAR
                                                             : ODT_OP_FLATTEN;
    set(at, kind);
    set(at + 1, static_cast<std::uint8_t>((l.relu ? ODT_OP_FLAG_RELU : 0) |
                                          (l.trainable ? ODT_OP_FLAG_TRAINABLE : 0)));
    set(at + 2, static_cast<std::uint16_t>(index));
    set<std::uint16_t>(at + 4, 0xFFFF);
    set(at + 6, static_cast<std::uint16_t>(index + 1));
    const std::string name = compiler::shown(l.name);
    std::memcpy(out_.data() + at + 64, name.data(), std::min<std::size_t>(32, name.size()));
    if (!l.is_compute()) return;
    const double out = logits ? net_.calibration.ce_scale / (256.0 * kLog2E) : kHiddenScale;
    const Reals reals = reals_of(l, scale_, out);
    scale_ = out;
    const auto weights = block_of<std::int16_t>(reals.weights);
    const auto bias = block_of<std::int32_t>(reals.bias);
    set<std::int32_t>(at + 8, l.relu ? 0 : -32767);
    set<std::int32_t>(at + 12, 32767);
    set(at + 16, section(weights.values));
    set(at + 20, static_cast<std::uint32_t>(weights.values.size()));
    set(at + 24, section(bias.values));
    set(at + 28, l.n_out());
    set(at + 62, static_cast<std::int8_t>(weights.exponent));
    set(at + 63, static_cast<std::int8_t>(bias.exponent));
    if (l.kind != LayerKind::kConv) return;
    const auto& g = l.conv;
    const std::uint16_t fields[] = {g.k_h,   g.k_w,   g.stride_h, g.stride_w, g.pad_t, g.pad_l,
                                    g.pad_b, g.pad_r, g.dil_h,    g.dil_w,    g.groups};
    for (std::size_t i = 0; i < std::size(fields); ++i) set(at + 40 + 2 * i, fields[i]);
  }

  const compiler::Network& net_;
  std::string out_;
  double scale_ = 1;  // of a value of the 8-bit net, at the layer to come
};

}  // namespace

Result<std::string> dfp_image(const compiler::Network& net) {
  if (net.calibration.ce_scale == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("model '", net.name, "' has no scale of its logits: needed for DFP16"));
  std::string image = Writer(net).run();
  // firmware/odt has the last word.
  odt_run_spec_t spec = HostTrainer::inference_spec(true);
  ODT_TRY(HostTrainer::create(image, spec).status());
  return image;
}

}  // namespace odt::worker

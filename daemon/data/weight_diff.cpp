#include "data/weight_diff.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace odt::data {
namespace {

constexpr int kMostShift = 40;  // 16-bit values stay far from 64 bits

std::uint64_t add_limited(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

void count(WeightDiff& diff, std::int64_t a, std::int64_t b) {
  ++diff.values;
  if (a == b) return;
  ++diff.changed;
  const std::uint64_t d = static_cast<std::uint64_t>(a > b ? a - b : b - a);
  diff.l1 = add_limited(diff.l1, d);
  diff.linf = std::max(diff.linf, d);
}

// Binary places of a value's step: more is finer. Of integer models as rule 1.5 views them.
int places(const StoredLayer& layer, std::size_t output) {
  if (!layer.dfp16()) return layer.k;
  return layer.blocked() ? -layer.exponents[output] : -layer.k;
}

unsigned stored_bits(const StoredLayer& layer, std::int16_t a, std::int16_t b) {
  const auto differing = static_cast<std::uint16_t>(a ^ b);
  return static_cast<unsigned>(
      std::popcount(layer.dtype == 1 ? static_cast<std::uint16_t>(differing & 0xFF) : differing));
}

LayerDiff diff_layer(const StoredLayer& a, const StoredLayer& b) {
  LayerDiff out;
  out.shape = a.shape;
  out.k_a = a.k;
  out.k_b = b.k;
  out.same_form = a.dtype == b.dtype && a.k == b.k && a.exponents == b.exponents;
  const std::size_t outputs = a.offsets.size();
  out.channels.resize(a.values.empty() ? 0 : outputs);
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const std::size_t output = output_of(a, i, outputs);
    const int pa = places(a, output), pb = places(b, output);
    const int up_a = std::clamp(pb - pa, 0, kMostShift), up_b = std::clamp(pa - pb, 0, kMostShift);
    WeightDiff& channel = out.channels[output];
    count(channel, std::int64_t{a.values[i]} * (std::int64_t{1} << up_a),
          std::int64_t{b.values[i]} * (std::int64_t{1} << up_b));
    if (out.same_form) channel.hamming_bits += stored_bits(a, a.values[i], b.values[i]);
  }
  for (const WeightDiff& channel : out.channels) out.weights.add(channel);
  for (std::size_t i = 0; i < outputs; ++i) {
    count(out.offsets, a.offsets[i], b.offsets[i]);
    out.offsets.hamming_bits += static_cast<unsigned>(
        std::popcount(static_cast<std::uint32_t>(a.offsets[i] ^ b.offsets[i])));
  }
  return out;
}

}  // namespace

void WeightDiff::add(const WeightDiff& part) {
  values += part.values;
  changed += part.changed;
  l1 = add_limited(l1, part.l1);
  linf = std::max(linf, part.linf);
  hamming_bits += part.hamming_bits;
}

std::size_t output_of(const StoredLayer& layer, std::size_t index, std::size_t outputs) {
  if (outputs == 0) return 0;
  if (!layer.conv()) return index % outputs;
  const std::size_t each = std::max<std::size_t>(1, layer.values.size() / outputs);
  return std::min(index / each, outputs - 1);
}

Result<std::vector<LayerDiff>> diff_weights(const StoredWeights& a, const StoredWeights& b) {
  if (a.model_hash != b.model_hash)
    return with_reason(
        absl::FailedPreconditionError(absl::StrCat(
            "weights of different models cannot be compared: ", a.model_hash.hex().substr(0, 12),
            " and ", b.model_hash.hex().substr(0, 12))),
        "OTHER_MODEL", "Choose two snapshots of one model: odtctl weights list.");
  const auto other = [](const std::string& what) {
    return absl::InvalidArgumentError("the two are of one model, but " + what);
  };
  if (a.layers.size() != b.layers.size())
    return other(absl::StrCat("have ", a.layers.size(), " and ", b.layers.size(), " layers"));
  std::vector<LayerDiff> out;
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const StoredLayer &x = a.layers[i], &y = b.layers[i];
    if (x.shape != y.shape || x.values.size() != y.values.size() ||
        x.offsets.size() != y.offsets.size() || x.dfp16() != y.dfp16())
      return other(absl::StrCat("layer ", i, " is not alike"));
    out.push_back(diff_layer(x, y));
  }
  return out;
}

}  // namespace odt::data

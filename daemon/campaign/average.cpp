#include "campaign/average.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

namespace odt::campaign {
namespace {

using data::StoredLayer;
using data::StoredWeights;

constexpr int kMostExponentSpread = 16;
constexpr std::uint8_t kDfp16 = 4;

Status refuse(const std::string& text, const char* reason, const char* remedy) {
  return with_reason(absl::FailedPreconditionError("weights cannot be averaged: " + text), reason,
                     remedy);
}

// Bits that a value moves left to lie on the finest grid.
int shift_to(const StoredLayer& layer, int grid) {
  return layer.dfp16() ? layer.k - grid : grid - layer.k;
}

// The finest grid of one layer: the largest k, or the smallest exponent.
int finer(const StoredLayer& layer, int grid) {
  return layer.dfp16() ? std::min<int>(grid, layer.k) : std::max<int>(grid, layer.k);
}

std::int64_t on_grid(std::int16_t value, int shift) {
  return std::int64_t{value} * (std::int64_t{1} << shift);
}

std::uint64_t magnitude(std::int64_t v) {
  return v < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
}

// Puts sums of `total` samples into a DFP16 layer: the smallest exponent that holds them all.
Status settle_dfp16(const std::vector<std::int64_t>& sums, std::int64_t total, int grid,
                    StoredLayer& out) {
  for (int up = 0; grid + up <= 127; ++up) {
    const std::int64_t divisor = total << up;  // total < 2^26, up <= 31
    if (up > 31) break;
    std::vector<std::int16_t> values;
    values.reserve(sums.size());
    for (const std::int64_t sum : sums) {
      const std::int64_t v = divide_half_away(sum, divisor);
      if (v > 32767 || v < -32767) break;
      values.push_back(static_cast<std::int16_t>(v));
    }
    if (values.size() != sums.size()) continue;
    out.values = std::move(values);
    out.k = static_cast<std::int8_t>(grid + up);
    return absl::OkStatus();
  }
  return refuse("an average is out of range", "GRIDS_TOO_FAR",
                "Start the boards from one snapshot.");
}

class Image {
 public:
  explicit Image(const std::string& bytes)
      : p_(reinterpret_cast<const unsigned char*>(bytes.data())), size_(bytes.size()) {}
  bool holds(std::uint64_t at, std::uint64_t n) const { return at <= size_ && n <= size_ - at; }
  unsigned u8(std::size_t at) const { return p_[at]; }
  unsigned u16(std::size_t at) const { return p_[at] | static_cast<unsigned>(p_[at + 1]) << 8; }
  std::uint32_t u32(std::size_t at) const { return u16(at) | std::uint32_t{u16(at + 2)} << 16; }

 private:
  const unsigned char* p_;
  std::uint64_t size_;
};

// The op at `at` as a layer of weights; false: its values lie outside of the image.
bool read_layer(const Image& image, std::size_t at, bool dfp16, StoredLayer& out) {
  constexpr unsigned kOffsetsOnly = 4;
  out.kind = static_cast<std::uint8_t>(image.u8(at));
  out.dtype = dfp16 ? kDfp16 : 1;
  out.k = dfp16 ? static_cast<std::int8_t>(image.u8(at + 62)) : 8;
  const bool weights = (image.u8(at + 1) & kOffsetsOnly) == 0;
  const std::uint32_t from = image.u32(at + 16), n = weights ? image.u32(at + 20) : 0;
  const std::uint32_t offsets = image.u32(at + 24), n_out = image.u32(at + 28);
  if (!image.holds(from, std::uint64_t{n} * (dfp16 ? 2 : 1)) ||
      (offsets != 0 && !image.holds(offsets, std::uint64_t{n_out} * 4)))
    return false;
  for (std::uint32_t i = 0; i < n; ++i)
    out.values.push_back(dfp16 ? static_cast<std::int16_t>(image.u16(from + std::size_t{2} * i))
                               : static_cast<std::int8_t>(image.u8(from + i)));
  for (std::uint32_t i = 0; offsets != 0 && i < n_out; ++i)
    out.offsets.push_back(static_cast<std::int32_t>(image.u32(offsets + std::size_t{4} * i)));
  return true;
}

Status average_offsets(const std::vector<Share>& shares, std::size_t n, std::int64_t total,
                       StoredLayer& out) {
  for (std::size_t i = 0; i < out.offsets.size(); ++i) {
    std::int64_t sum = 0;  // |offset| <= 2^31, samples < 2^16, shares <= 2^10: below 2^57
    for (const Share& s : shares) sum += std::int64_t{s.weights.layers[n].offsets[i]} * s.samples;
    out.offsets[i] = static_cast<std::int32_t>(divide_half_away(sum, total));
  }
  return absl::OkStatus();
}

// One layer of the average; the shares' layers are consistent.
Status average_layer(const std::vector<Share>& shares, std::size_t n, std::int64_t total,
                     StoredLayer& out) {
  int grid = out.k;
  for (const Share& s : shares) grid = finer(s.weights.layers[n], grid);
  std::vector<std::int64_t> sums(out.values.size(), 0);
  for (const Share& s : shares) {
    const StoredLayer& layer = s.weights.layers[n];
    const int shift = shift_to(layer, grid);
    if (shift > kMostExponentSpread)
      return refuse(absl::StrCat("exponents of layer ", n, " are ", shift, " apart"),
                    "GRIDS_TOO_FAR", "Start the boards from one snapshot.");
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += on_grid(layer.values[i], shift) * s.samples;
  }
  ODT_TRY(average_offsets(shares, n, total, out));
  if (out.dfp16()) return settle_dfp16(sums, total, grid, out);
  out.k = static_cast<std::int8_t>(grid);
  out.dtype = grid > 8 ? 3 : 1;
  for (std::size_t i = 0; i < sums.size(); ++i)
    out.values[i] = static_cast<std::int16_t>(divide_half_away(sums[i], total));
  return absl::OkStatus();
}

}  // namespace

std::int64_t divide_half_away(std::int64_t n, std::int64_t d) {
  const std::uint64_t size = magnitude(n), by = static_cast<std::uint64_t>(d);
  const std::uint64_t rest = size % by;
  const auto q = static_cast<std::int64_t>(size / by + (rest >= by - rest ? 1 : 0));
  return n < 0 ? -q : q;
}

Status check_same(const StoredWeights& a, const StoredWeights& b) {
  if (a.model_hash != b.model_hash)
    return refuse("they are of models " + a.model_hash.hex().substr(0, 12) + " and " +
                      b.model_hash.hex().substr(0, 12),
                  "MODELS_DIFFER", "Average weights of one model.");
  if (a.rules_version != b.rules_version || (a.rule_set == 3) != (b.rule_set == 3))
    return refuse(absl::StrCat("rules ", a.rule_set, " version ", a.rules_version, " and rules ",
                               b.rule_set, " version ", b.rules_version),
                  "RULES_DIFFER", "Use firmware of one version and one rule set.");
  if (a.layers.size() != b.layers.size())
    return refuse(absl::StrCat(a.layers.size(), " and ", b.layers.size(), " layers"),
                  "LAYERS_DIFFER", "Average weights of one model.");
  for (std::size_t n = 0; n < a.layers.size(); ++n) {
    const StoredLayer &x = a.layers[n], &y = b.layers[n];
    if (x.blocked() || y.blocked())
      return refuse(absl::StrCat("layer ", n, " has an exponent for each output"), "BLOCKED",
                    "Train without --blocked.");
    if (x.kind != y.kind || x.dfp16() != y.dfp16() || x.values.size() != y.values.size() ||
        x.offsets.size() != y.offsets.size())
      return refuse(absl::StrCat("layer ", n, " differs in kind or size"), "LAYERS_DIFFER",
                    "Average weights of one model.");
  }
  return absl::OkStatus();
}

Result<StoredWeights> average(const std::vector<Share>& shares) {
  if (shares.empty() || shares.size() > kMaxShares)
    return absl::InvalidArgumentError(
        absl::StrCat("an average of ", shares.size(), " boards; allowed 1 to ", kMaxShares));
  std::int64_t total = 0;
  for (const Share& s : shares) {
    if (s.samples == 0 || s.samples > 65535)
      return absl::InvalidArgumentError(
          absl::StrCat("a board counts for ", s.samples, " samples; allowed 1 to 65535"));
    ODT_TRY(check_same(shares.front().weights, s.weights));
    total += s.samples;
  }
  StoredWeights out = shares.front().weights;
  for (std::size_t n = 0; n < out.layers.size(); ++n)
    ODT_TRY(average_layer(shares, n, total, out.layers[n]));
  return out;
}

std::vector<Drift> drifts(const StoredWeights& start, const std::vector<Share>& shares) {
  std::vector<Drift> out(shares.size());
  std::vector<std::uint64_t> changed(shares.size(), 0);
  std::uint64_t all = 0;
  for (std::size_t n = 0; n < start.layers.size(); ++n) {
    const StoredLayer& from = start.layers[n];
    int grid = from.k;
    for (const Share& s : shares) grid = finer(s.weights.layers[n], grid);
    all += from.values.size();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const StoredLayer& layer = shares[i].weights.layers[n];
      for (std::size_t v = 0; v < from.values.size(); ++v) {
        const std::int64_t d = on_grid(layer.values[v], shift_to(layer, grid)) -
                               on_grid(from.values[v], shift_to(from, grid));
        out[i].l1 += magnitude(d);
        changed[i] += d != 0 ? 1 : 0;
      }
    }
  }
  for (std::size_t i = 0; i < shares.size() && all != 0; ++i)
    out[i].changed_ppm = static_cast<std::uint32_t>(changed[i] * 1'000'000 / all);
  return out;
}

std::uint64_t lower_median_l1(const std::vector<Drift>& drifts) {
  std::vector<std::uint64_t> l1;
  for (const Drift& d : drifts)
    if (d.l1 != 0) l1.push_back(d.l1);
  if (l1.empty()) return 0;
  const auto middle = l1.begin() + static_cast<std::ptrdiff_t>((l1.size() - 1) / 2);
  std::nth_element(l1.begin(), middle, l1.end());
  return *middle;
}

std::vector<bool> outliers(const std::vector<Drift>& drifts, std::uint32_t outlier_q8,
                           std::size_t least) {
  std::vector<bool> out(drifts.size(), false);
  if (drifts.size() < 4 || outlier_q8 == std::numeric_limits<std::uint32_t>::max()) return out;
  const std::uint64_t median = lower_median_l1(drifts);
  std::vector<std::size_t> by_drift(drifts.size());
  std::iota(by_drift.begin(), by_drift.end(), 0u);
  std::stable_sort(by_drift.begin(), by_drift.end(),
                   [&](std::size_t a, std::size_t b) { return drifts[a].l1 > drifts[b].l1; });
  std::size_t left = drifts.size();
  for (const std::size_t i : by_drift) {
    if (left <= std::max<std::size_t>(least, 1)) break;
    // l1 * 256 > median * q8, without overflow: l1 < 2^53.
    if (static_cast<unsigned __int128>(drifts[i].l1) * 256 <=
        static_cast<unsigned __int128>(median) * outlier_q8)
      break;
    out[i] = true;
    --left;
  }
  return out;
}

Result<StoredWeights> image_weights(const std::string& bytes) {
  constexpr std::size_t kHead = 64, kOpBytes = 96;
  constexpr unsigned kTrainable = 2;
  const Image image(bytes);
  if (!image.holds(0, kHead) || std::memcmp(bytes.data(), "ODTM", 4) != 0)
    return absl::InvalidArgumentError("not a model image (magic 'ODTM')");
  const unsigned n_ops = image.u16(14);
  const std::uint32_t ops = image.u32(24);
  if (!image.holds(ops, n_ops * kOpBytes))
    return absl::InvalidArgumentError("model image: the table of ops is cut off");
  StoredWeights out;
  for (unsigned i = 0; i < n_ops; ++i) {
    const std::size_t at = ops + i * kOpBytes;
    if ((image.u8(at + 1) & kTrainable) == 0 || (image.u8(at) != 2 && image.u8(at) != 3)) continue;
    if (!read_layer(image, at, image.u8(39) == 1, out.layers.emplace_back()))
      return absl::InvalidArgumentError(
          absl::StrCat("model image: values of op ", i, " are cut off"));
  }
  return out;
}

}  // namespace odt::campaign

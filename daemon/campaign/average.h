#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/odtw.h"

// Exact averages of weights (README.md, rule F1). Integers only; no result depends on the order of
// the boards.
namespace odt::campaign {

inline constexpr std::size_t kMaxShares = 1024;

struct Share {
  data::StoredWeights weights;
  std::uint32_t samples = 0;  // 1..65535: it counts so often
};

// Distance of weights from a round's start on the grid of the average: layers' largest k (DFP16:
// smallest exponent) of all shares and the start; offsets are not counted.
struct Drift {
  std::uint64_t l1 = 0;           // sum of |difference|
  std::uint32_t changed_ppm = 0;  // share of the weights that differ at all
};

// Whether weights can be averaged with each other. Errors: FAILED_PRECONDITION with the reason
// MODELS_DIFFER, RULES_DIFFER, LAYERS_DIFFER, BLOCKED (DFP16 with an exponent per output), or
// GRIDS_TOO_FAR (DFP16 exponents over 16 apart).
Status check_same(const data::StoredWeights& a, const data::StoredWeights& b);

// sum(samples * value) / sum(samples) on the finest grid, rounded half away from zero, once. DFP16:
// the smallest exponent that holds the largest average, from the finest grid on. Errors: those of
// check_same; INVALID_ARGUMENT: no share, too many, samples out of range.
Result<data::StoredWeights> average(const std::vector<Share>& shares);

// `grid`: all that are compared with each other, so that they have one grid.
std::vector<Drift> drifts(const data::StoredWeights& start, const std::vector<Share>& shares);

// Which shares are left out: those whose drift exceeds outlier_q8 / 256 times lower_median_l1 of
// all, farthest first, while at least `least` stay; none where there are fewer than 4 shares.
std::vector<bool> outliers(const std::vector<Drift>& drifts, std::uint32_t outlier_q8,
                           std::size_t least);
// Of the shares that moved: where the guard kept the start of most boards, those that learned are
// no outliers. 0: none.
std::uint64_t lower_median_l1(const std::vector<Drift>& drifts);

// The trained layers of a model image (ODTM) as weights of precision 8 (DFP16: as they are), for
// comparison; their shapes are not filled in. Errors: INVALID_ARGUMENT.
Result<data::StoredWeights> image_weights(const std::string& image);

// n / d, half away from zero. d > 0.
std::int64_t divide_half_away(std::int64_t n, std::int64_t d);

}  // namespace odt::campaign

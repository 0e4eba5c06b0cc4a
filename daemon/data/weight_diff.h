#pragma once

#include "data/odtw.h"

namespace odt::data {

// Differences of values, in steps of the finer of the two precisions (DFP16: of the smaller
// exponent), so that both are exact.
struct WeightDiff {
  std::uint64_t values = 0, changed = 0;
  std::uint64_t l1 = 0, linf = 0;  // sum and largest |a - b|; the sum is limited to 2^64 - 1
  std::uint64_t hamming_bits = 0;  // of values as stored; 0 where they are stored differently
  void add(const WeightDiff& part);
};

struct LayerDiff {
  std::vector<std::uint32_t> shape;
  std::int32_t k_a = 0, k_b = 0;  // DFP16: exponents
  bool same_form = false;         // both are stored alike: dtype, precision, exponents
  WeightDiff weights, offsets;
  std::vector<WeightDiff> channels;  // weights of each output
};

// Of two sets of one model, layer by layer. Errors: FAILED_PRECONDITION (OTHER_MODEL, with both
// hashes), INVALID_ARGUMENT (same model, but other layers or shapes).
Result<std::vector<LayerDiff>> diff_weights(const StoredWeights& a, const StoredWeights& b);

// Output that value `index` of a layer with `outputs` of them belongs to.
std::size_t output_of(const StoredLayer& layer, std::size_t index, std::size_t outputs);

}  // namespace odt::data

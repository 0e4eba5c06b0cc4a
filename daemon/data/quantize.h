#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace odt::data {

// A model's input stage as its manifest has it: PREQUANT, or (n_ch = 0) source values taken as they
// are.
struct InputStage {
  std::vector<std::uint32_t> shape;  // per sample, of the network input
  Dtype dtype = Dtype::kS8;          // of what the board receives: kS8, kU8, or kS16 (DFP16)
  std::vector<float> offset;         // [n_ch] as in the file
  std::vector<std::int16_t> mult;    // [n_ch], may be negative
  std::vector<std::uint8_t> k;       // [n_ch], right shift 0..31
  std::int32_t clip_lo = -128, clip_hi = 127;
  bool has_prequant() const { return !offset.empty(); }
  std::uint32_t count() const;
};

// The "input" object of a manifest. Errors: INVALID_ARGUMENT.
Result<InputStage> parse_input_stage(std::string_view manifest_json);

// Integer source: clip(((x * 256 + round_half_even(offset * 256)) * mult) >> (k + 8)).
std::int32_t quantize_int(const InputStage& in, std::uint32_t channel, std::int32_t x);
// Float source, as the file's nodes say: each operation in float32.
std::int32_t quantize_float(const InputStage& in, std::uint32_t channel, float x);

// Samples [first, first + n) of a dataset behind the input stage, little-endian values of its
// dtype. Errors: INVALID_ARGUMENT (values per sample, dtype against a model without PREQUANT).
Result<std::vector<std::uint8_t>> quantize_samples(const InputStage& in, const Dataset& d,
                                                   std::uint32_t first, std::uint32_t n);

}  // namespace odt::data

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace odt::data {

// One layer of odt_weights v1 (proto/README.md).
struct StoredLayer {
  std::uint8_t kind = 0;   // 2 conv, 3 linear
  std::uint8_t dtype = 0;  // 1 s8, 3 s16, 4 DFP16, 5 DFP16 blocked
  std::int8_t k = 8;       // DFP16: the exponent
  std::vector<std::uint32_t> shape;
  std::vector<std::int16_t> values;  // M, ONNX order; none: the offsets alone were trained
  std::vector<std::int32_t> offsets;
  std::vector<std::int8_t> exponents;  // blocked: per output

  bool conv() const { return kind == 2; }
  bool dfp16() const { return dtype >= 4; }
  bool blocked() const { return dtype == 5; }
  bool operator==(const StoredLayer&) const = default;
};

struct StoredWeights {
  std::uint16_t rules_version = 0;
  std::uint8_t rule_set = 0;
  Hash model_hash;
  std::vector<StoredLayer> layers;
  bool operator==(const StoredWeights&) const = default;
};

// `file` names it in errors: INVALID_ARGUMENT (what is wrong, at which byte or layer).
Result<StoredWeights> parse_weights(const std::string& bytes, const std::string& file);

// The canonical bytes: parse_weights() of them gives `weights` again. Its layers are consistent
// (counts and shapes agree, values are in range of their dtype).
std::string weights_bytes(const StoredWeights& weights);

}  // namespace odt::data

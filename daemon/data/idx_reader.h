#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace odt::data {

// An IDX array; values little-endian.
struct IdxArray {
  Dtype dtype = Dtype::kU8;
  std::vector<std::uint32_t> dims;  // [count, ...]
  std::vector<std::uint8_t> values;
};

// Inflates gzip data, or returns plain data as it is. Errors: INVALID_ARGUMENT (damaged, or more
// than max_bytes).
Result<std::string> maybe_gunzip(std::string_view bytes, std::uint64_t max_bytes);

// Plain or gzip. `name` stands in the errors: INVALID_ARGUMENT (not IDX, truncated, dtype).
Result<IdxArray> read_idx(std::string_view bytes, const std::string& name);

}  // namespace odt::data

#pragma once

#include <string>

#include "data/quantize.h"

namespace odt::data {

// ODTS blobs (proto/README.md) of a dataset's splits for one model; empty: the split has no
// samples.
struct DerivedBlobs {
  std::string train, heldout, test;
  Hash sample_set_hash;  // SHA-256(sha256(train) || sha256(heldout) or 32 zero bytes)
};

std::string encode_samples(Dtype dtype, std::uint32_t sample_len,
                           const std::vector<std::uint8_t>& labels,
                           const std::vector<std::uint8_t>& data);

// Errors: those of quantize_samples; INVALID_ARGUMENT where the dataset has more classes than
// n_classes.
Result<DerivedBlobs> derive_samples(const Dataset& dataset, const InputStage& input,
                                    std::uint32_t n_classes);

}  // namespace odt::data

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

// What stands beside the values. Targets reach the board as the int8 outputs the model is to give:
// y_q = clip(floor((t - offset) * scale + 0.5), -128, 127), so t is about y_q / scale + offset.
struct OutputStage {
  enum class Task : std::uint8_t { kClasses = 0, kTargets = 1, kNothing = 2 };  // ODTM
  Task task = Task::kClasses;
  std::uint32_t outputs = 0;  // classes, or values per sample
  // [outputs], kTargets. kNothing: what output_scales() says, [outputs] or [1]: all alike.
  std::vector<float> offset, scale;
};
// Of a manifest ("task", "n_classes"). A regression's scaling is the manifest's {"targets":
// {"offset", "scale"}}, one for each output or one for all; where it has none, the dataset's ranges
// are laid over -100..100: offset = (min + max) / 2, scale = 200 / (max - min), or 1 where they are
// equal. Errors: INVALID_ARGUMENT (a dataset with classes for a regression or the reverse, another
// number of outputs).
Result<OutputStage> parse_output_stage(std::string_view manifest_json, const Dataset& dataset);
// The same of an empty or given scaling. Errors: INVALID_ARGUMENT.
Result<OutputStage> output_stage(const Dataset& dataset, OutputStage out);
// Of an autoencoder, from PREQUANT: value of the source = output / scale + offset, the middle of
// those that PREQUANT makes this integer of. dtype: the dataset's; whole values have fewer.
void output_scales(const InputStage& input, Dtype dtype, OutputStage& out);
std::int8_t quantize_target(const OutputStage& out, std::uint32_t output, float target);

std::string encode_samples(Dtype dtype, std::uint32_t sample_len,
                           const std::vector<std::uint8_t>& labels,
                           const std::vector<std::uint8_t>& data);

// With flag 1: targets, [samples][outputs], stand where the labels stand.
std::string encode_target_samples(Dtype dtype, std::uint32_t sample_len, std::uint32_t samples,
                                  const std::vector<std::int8_t>& targets,
                                  const std::vector<std::uint8_t>& data);
Result<DerivedBlobs> derive_samples(const Dataset& dataset, const InputStage& input,
                                    const OutputStage& output);

// For a classifier. Errors: those of quantize_samples; INVALID_ARGUMENT where the dataset has more
// classes than n_classes.
Result<DerivedBlobs> derive_samples(const Dataset& dataset, const InputStage& input,
                                    std::uint32_t n_classes);

}  // namespace odt::data

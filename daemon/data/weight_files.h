#pragma once

#include <string>
#include <vector>

#include "data/odtw.h"

// Weights as files of other programs. Integers as stored: real weight = integer * 2^(8 - k) steps
// of the model's 8-bit grid (DFP16: integer * 2^exponent).
namespace odt::data {

struct WeightsTitle {
  Hash hash;                             // of the odt_weights
  std::string model;                     // name, for people
  std::vector<std::string> layer_names;  // of the trainable layers; may be shorter
};

// NumPy: "layer0.weight", "layer0.offset" (and "layer0.exponent") of each trainable layer in the
// shapes of the ONNX file, and "manifest.json". The same bytes for the same weights.
std::string weights_npz(const StoredWeights& weights, const WeightsTitle& title);
// A C header of static const arrays, for any C99 compiler.
std::string weights_c(const StoredWeights& weights, const WeightsTitle& title);
std::string weights_json(const StoredWeights& weights, const WeightsTitle& title);

// Members of a zip archive, stored without compression, in their order.
std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace odt::data

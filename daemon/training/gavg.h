#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/run.h"

// Gavg as published (rule 1.12): mean |g / eps| over a layer's weights, eps = (max W - min W) /
// (2^k - 1). Boards send sums; the exponents that make real values of them stand in the image.
namespace odt::training {

struct Exponents {
  struct Layer {
    int weights = 0, input = 0;
    std::uint32_t n_weights = 0;
  };
  std::vector<Layer> layers;  // trainable ones, first to last
  int logits = 0;
};
// Of a model image (ODTM v1). Errors: INVALID_ARGUMENT.
Result<Exponents> read_exponents(const std::string& image);

// In Q8; 0 where the record does not tell. g is the mean over the batch; that of MSE is in units of
// the logits, that of CE of probabilities (127 = 1).
std::uint64_t gavg_q8(const model::LayerEpoch& record, const Exponents::Layer& layer, int logits,
                      model::LossKind loss, std::uint32_t batch);

}  // namespace odt::training

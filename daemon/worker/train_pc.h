#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"
#include "data/dataset.h"
#include "data/import.h"

namespace odt::worker {

struct TrainPcOptions {
  std::vector<std::uint32_t> hidden = {32};
  std::uint32_t epochs = 0;  // 0: 12
  std::uint32_t seed = 1;
  std::string name;  // of the model; empty: "dense"
};

// A dense classifier trained on a dataset's train split, with PREQUANT, CE scale, targets (mean
// logits of the training samples) and its accuracy on the test split (else held-out, else train),
// measured by firmware/odt. The same options and dataset give the same network.
// Errors: INVALID_ARGUMENT (no training samples, hidden, epochs).
Result<compiler::Network> train_pc(const data::Dataset& dataset, const TrainPcOptions& options,
                                   const data::Progress& progress);

// PREQUANT that spreads the dataset's range over int8: per channel of [C,H,W], per value of [N]. u8
// images: x - 128.
compiler::Prequant make_prequant(const data::Dataset& dataset);

}  // namespace odt::worker

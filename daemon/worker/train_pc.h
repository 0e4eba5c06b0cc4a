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
  std::string arch;          // qat_arch.h; empty: dense layers of `hidden` units
  bool autoencode = false;   // learn the samples themselves; so where they have no classes
  std::uint32_t epochs = 0;  // 0: 12; with arch up to 100 for small sets, about 1000 steps
  std::uint32_t seed = 1;
  std::string name;     // of the model; empty: "dense"
  std::string augment;  // "shift2,flip": random changes of training images
  float rate = 0;       // 0: 0.05; falls to 0 along a cosine
  float decay = -1;     // of weights; below 0: 0.001
  // Per mille of the training samples that are kept back for validation where the dataset has no
  // held-out split.
  std::uint32_t validation = 0;
  bool float_only =
      false;  // stay in float: accuracy is that of fp32, the layers are not trained on
};

// Without classes: mean squared error of an output.
struct TrainPcFigures {
  double mse = 0;            // in steps of int8
  double mse_in_units = -1;  // of the target, where all have one scale, or of the data; -1: unknown
};

// A classifier, regression (datasets with targets) or autoencoder trained on a dataset's train
// split, with PREQUANT, CE scale, targets (mean logits of the training samples) and its accuracy on
// the test split (else held-out, else train), measured by firmware/odt. The same options and
// dataset give the same network. Errors: INVALID_ARGUMENT (no training samples, hidden, arch,
// epochs, augment, rate), ABORTED (the loss grows without end).
Result<compiler::Network> train_pc(const data::Dataset& dataset, const TrainPcOptions& options,
                                   const data::Progress& progress,
                                   TrainPcFigures* figures = nullptr);

// What is written of a trained network. Image and manifest come from the ONNX file, not from
// memory: what others compile is what was measured. dfp16: an image for DFP16 instead of 8-bit
// integers.
struct TrainedFiles {
  std::string onnx, image, manifest;
  std::string tail;  // of Compiled
  std::vector<std::string> warnings;
};
// Errors: those of compile().
Result<TrainedFiles> package(const compiler::Network& net, bool dfp16);

// PREQUANT that spreads the dataset's range over int8: per channel of [C,H,W], per value of [N]. u8
// images: x - 128.
compiler::Prequant make_prequant(const data::Dataset& dataset);

}  // namespace odt::worker

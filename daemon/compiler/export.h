#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"

// Trained weights back in the ONNX file that they came from.
namespace odt::compiler {

struct ExportOptions {
  std::string name;  // of the model, as it was compiled; empty: stem of the file
  // The model image, if it is there: gives the name, the task and what a float32 file's input is.
  std::string image;
  std::optional<Task> task = {};  // as it was compiled
  bool exact = false;             // refuse weights finer than 8 bits instead of rounding them
};

struct Exported {
  std::string onnx;
  std::vector<std::string> warnings;
  std::uint32_t changed_weights = 0, changed_offsets = 0;  // against the file
};

// onnx: the original file; weights: odt_weights v1. Only the numbers of weights and offsets are
// replaced, in the type and layout that the file has; metadata gets odt.weights_hash, the SHA-256
// of `weights`. The result compiles to the weights that were given (checked). `file` and
// `weights_file` name the two in errors: those of compile and parse_weights; FAILED_PRECONDITION
// (weights of another model or other rules; finer than 8 bits with `exact`), UNIMPLEMENTED (a file
// that computes its weights, has no place for offsets, or folds a BatchNormalization).
Result<Exported> export_onnx(const std::string& onnx, const std::string& file,
                             const std::string& weights, const std::string& weights_file,
                             const ExportOptions& options);

}  // namespace odt::compiler

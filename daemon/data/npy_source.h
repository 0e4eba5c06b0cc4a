#pragma once

#include <string>

#include "data/source_parts.h"

namespace odt::data {

struct NpyOptions {
  std::string path, name;           // .npy or .npz
  std::string labels, labels_name;  // .npy of labels or targets; empty: none (or in the .npz)
  std::string x_key, y_key;         // arrays of an .npz; empty: found by their names
  bool targets = false;             // y are regression targets, whatever they look like
};

// x: [N], [N,V], [N,H,W] or [N,C,H,W] (or [N,H,W,C] with 1, 3 or 4 channels). y: [N] of integers,
// text or whole floats are labels; other floats, and [N,outputs], are targets. An .npz may have
// train and test arrays (x_train, y_train, x_test, y_test or the like): the latter are the own test
// set. Errors: INVALID_ARGUMENT with the file and the arrays it has, NOT_FOUND.
Result<SourcePtr> open_npy(const NpyOptions& options);

}  // namespace odt::data

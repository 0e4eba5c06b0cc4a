#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/source.h"
#include "data/splits.h"

namespace odt::data {

using Progress = std::function<void(std::uint32_t permille, const std::string& message)>;

// What becomes of a value that is not there.
enum class Missing : std::uint8_t {
  kRefuse,  // an error that names the first
  kDrop,    // its row is left out
  kMean,    // the mean of the feature over all rows; whole where all its values are whole
  kZero,
};
// "refuse" or "", "drop", "mean", "zero". Errors: INVALID_ARGUMENT with the list.
Result<Missing> parse_missing(const std::string& text);

// What an import saw beside the dataset; goes into its report.
struct ImportNotes {
  std::uint64_t rows = 0;               // read, without dropped ones
  std::uint64_t dropped = 0;            // rows with missing values
  std::uint64_t missing_cells = 0;      // filled or dropped
  std::vector<std::uint64_t> missing;   // per value, where any is missing
  std::uint64_t wanted[3] = {0, 0, 0};  // samples of each split, before groups were kept whole
  bool own_test = false;                // the test split is the source's own
  SourceInfo info;
};

// Sorted as numbers where all are, else as text.
std::vector<std::string> sorted_class_names(std::vector<std::string> names);

// Two passes: class names, ranges and splits, then the values straight into the dataset in the
// narrowest type that holds all of them (u8, i8, i16, f32). Memory: the dataset and about 20 bytes
// a row. Classes are sorted as numbers where all are, else as text. Errors: those of the source,
// INVALID_ARGUMENT (no rows, classes below 2 or above 128, targets that change their number,
// missing or infinite values, a dataset above kMaxDatasetBytes, those of choose_splits).
Result<Dataset> import_source(Source& source, const SplitOptions& splits, Missing missing,
                              const Progress& progress, ImportNotes* notes = nullptr);

}  // namespace odt::data

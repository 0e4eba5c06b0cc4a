#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace odt::data {

struct ImportRequest {
  std::string format;                 // "idx", "csv"
  std::vector<std::uint32_t> resize;  // [h, w]; empty: as it is. Images (u8) only
  std::string transform;              // image_ops.h
  // Samples per split. All 0: everything, 80/10/10 %, or 90/10 % where there is an own test set.
  std::uint32_t train = 0, heldout = 0, test = 0;
  std::uint32_t seed = 0;    // picks the samples; each pool is shuffled once
  std::uint32_t skip = 0;    // leaves out the first of the shuffled training pool (disjoint draws)
  std::string label_column;  // CSV
  std::string data_path, labels_path, test_data_path, test_labels_path;
  // Shown in errors and in Dataset::source instead of the paths; empty: the file name of the path.
  std::string data_name, labels_name, test_data_name, test_labels_name;
};

using Progress = std::function<void(std::uint32_t permille, const std::string& message)>;

// Train and held-out come from the data file; test from the own test set if there is one, else from
// the data file behind train and held-out. Errors: INVALID_ARGUMENT (format, transform, size,
// counts above what is there, labels against data), NOT_FOUND.
Result<Dataset> import_dataset(const ImportRequest& request, const Progress& progress);

}  // namespace odt::data

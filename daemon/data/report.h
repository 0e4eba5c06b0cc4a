#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/import_source.h"

namespace odt::data {

struct FeatureSummary {
  float min = 0, max = 0;
  double mean = 0, deviation = 0;  // over all samples of all splits
  std::uint64_t missing = 0;       // in the source, before they were filled
  bool constant() const { return min == max; }
};

// What an import found, for people who decide whether to trust the data.
struct Report {
  std::uint64_t rows = 0, dropped = 0, missing_cells = 0;  // of the source
  std::vector<std::uint32_t> class_counts[3];              // per split
  std::uint32_t groups[3] = {0, 0, 0};                     // recordings per split
  std::uint32_t duplicates = 0;   // samples whose values equal those of one before them
  std::uint32_t leaked = 0;       // held-out and test samples that are in train too
  std::uint32_t conflicting = 0;  // duplicates under another label
  std::vector<FeatureSummary> features;
  std::vector<std::string> value_names;
  std::vector<std::string> warnings;  // sentences, the gravest first
};

Report make_report(const Dataset& dataset, const ImportNotes& notes);
// {"rows", "dropped_rows", "missing_cells", "splits": [{"split", "samples", "class_counts",
// "groups"}], "duplicates", "leaked", "conflicting", "constant", "features": [{"name", "min",
// "max", "mean", "deviation", "missing"}], "warnings"}. Features: the first 1024.
nlohmann::json report_json(const Report& report, const Dataset& dataset);
// For terminals: class balance per split, findings, features of tables.
std::string report_text(const Report& report, const Dataset& dataset);

// A few samples of each class as source values: {"kind", "shape", "unit", "sample_rate",
// "value_names", "target_names", "samples": [{"index", "split", "label", "group", "targets",
// "values"}]}. At most 60 samples and 131072 values in all.
nlohmann::json preview_json(const Dataset& dataset, const std::vector<std::string>& value_names);

// "table", "image" or "series": as the dataset says, else by its shape.
std::string kind_of(const Dataset& dataset);

}  // namespace odt::data

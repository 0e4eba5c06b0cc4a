#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace odt::data {

struct CsvTable {
  std::vector<std::string> columns;      // header names, or "column 0", ... without the label's
  std::vector<float> values;             // [rows][columns.size()]
  bool integral = true;                  // every value is an integer
  std::vector<std::uint8_t> labels;      // rank in class_names
  std::vector<std::string> class_names;  // sorted: as numbers where all are, else as text
  std::uint32_t rows() const { return static_cast<std::uint32_t>(labels.size()); }
};

// RFC 4180 with ',', ';' or tab (the first of them in the first line). The first line is a header
// where no feature cell of it is a number, or where label_column is a name. label_column: a name, a
// number from 0, or empty: the last. Errors: INVALID_ARGUMENT with `name`, line and column: text or
// an empty cell, not finite, ragged line, unknown label column, fewer than 2 or more than 128
// classes.
Result<CsvTable> read_csv(std::string_view text, const std::string& name,
                          const std::string& label_column);

}  // namespace odt::data

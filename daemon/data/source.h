#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::data {

// One sample as a reader yields it.
struct Row {
  std::string label;           // class; empty: unlabelled or regression
  std::vector<float> targets;  // regression: as many in every row; else empty
  std::string group;           // recording, speaker, ...: never in two splits; empty: none
  std::uint32_t index = 0;     // place in the source, from 0
  std::string name;            // file, or file and line: stands in errors
  std::vector<float> values;   // as many as shape() says; NaN: the value is missing
  bool own_test = false;       // belongs to a test set that the source brings along
};

// What a source knows of all its rows.
struct SourceInfo {
  std::string kind;                       // "table", "image", "series"; empty: by the shape
  std::string unit;                       // of the values; empty: unknown
  float sample_rate = 0;                  // Hz, of a series; 0: unknown or none
  std::vector<std::string> value_names;   // CSV columns, channels; empty: numbers from 0
  std::vector<std::string> target_names;  // regression
  // Files that were taken although they are not whole, "a.wav: 100 of 8000 samples' bytes".
  std::vector<std::string> faults;
};

// A reader: rows one at a time with bounded memory, twice over (import_source makes two passes that
// must see the same rows). Errors name the file, the place, what was got and what was expected.
class Source {
 public:
  virtual ~Source() = default;
  // Per row, [N] or [C,H,W]; constant; known from the start.
  virtual const std::vector<std::uint32_t>& shape() const = 0;
  // Fills `row` (its memory is used again) and returns true; false: no more rows.
  virtual Result<bool> next(Row& row) = 0;
  virtual Status rewind() = 0;
  virtual double progress() const = 0;            // 0..1, of this pass
  virtual std::string describe() const = 0;       // one line for Dataset::source, "csv data.csv"
  virtual SourceInfo info() const { return {}; }  // asked after the first pass
};

}  // namespace odt::data

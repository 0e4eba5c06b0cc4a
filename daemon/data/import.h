#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/import_source.h"

namespace odt::data {

struct ImportRequest {
  std::string format;  // of open_source.cpp's table or "idx"; empty: by the name of the data
  std::vector<std::uint32_t> resize;  // [h, w]; empty: as it is. Images (u8) only
  std::string transform;              // image_ops.h
  // Samples per split. All 0: by `split`, else 80/10/10 %, or 90/10 % where there is an own test
  // set.
  std::uint32_t train = 0, heldout = 0, test = 0;
  std::vector<std::uint32_t> split;  // parts of train, held-out, test; empty: as above
  std::uint32_t seed = 0;            // picks the samples; each pool is shuffled once
  std::uint32_t skip = 0;  // leaves out the first of the shuffled training pool (disjoint draws)
  bool stratify = false;   // IDX and CSV: classes in proportion; the other formats always do
  std::string missing;     // parse_missing
  // CSV. Columns by name, or number from 0.
  std::string label_column;                 // empty: the last, where there are no targets
  std::vector<std::string> target_columns;  // regression
  std::vector<std::string> drop_columns;    // left out
  std::string group_column;                 // recording: stays in one split
  // NPY, NPZ: names of the arrays; empty: by name or guess. target_columns not empty: y are
  // targets.
  std::string x_key, y_key;
  // Series (WAV, Edge Impulse).
  double window_s = 0, stride_s = 0;                 // 0: the format's own; stride 0: the window
  double sample_rate = 0;                            // Hz to resample to; 0: as it is
  std::string features;                              // window.h; empty: the format's own
  std::uint32_t window_steps = 0, stride_steps = 0;  // instead of seconds
  std::string short_recordings;  // "refuse", "pad", "drop"; empty: the format's own
  std::string series;            // a table as recordings: "steps" or "rows" (open_series.h)
  // Channels of a PNG (1, 3; 0: by the files) or of a series of rows (0: 1).
  std::uint32_t channels = 0;
  // Folders and archives of WAV, Edge Impulse, PNG files (sample_names.h); the group is
  // group_column.
  std::string pattern, only;
  // data_path may be a folder where the format says so; more_paths: further ones of the same kind,
  // their rows behind it (not IDX).
  std::vector<std::string> more_paths;
  std::string data_path, labels_path, test_data_path, test_labels_path;
  // Shown in errors and in Dataset::source instead of the paths; empty: the file name of the path.
  std::string data_name, labels_name, test_data_name, test_labels_name;
};

// The name given, else the file name of the path.
std::string shown_name(const std::string& name, const std::string& path);

// Format by the name of a file or, for a folder, by what lies in it. Errors: INVALID_ARGUMENT with
// the list of formats, NOT_FOUND.
Result<std::string> guess_format(const std::string& path);

// The reader of the request's format (open_source.cpp has the table); `request` outlives it.
// Errors: INVALID_ARGUMENT (format, its options, content), NOT_FOUND.
Result<std::unique_ptr<Source>> open_source(const ImportRequest& request);

// Train and held-out come from the data file; test from the own test set if there is one, else from
// the data file behind train and held-out. Errors: INVALID_ARGUMENT (format, transform, size,
// counts above what is there, labels against data), NOT_FOUND.
Result<Dataset> import_dataset(const ImportRequest& request, const Progress& progress,
                               ImportNotes* notes = nullptr);

}  // namespace odt::data

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/file_set.h"
#include "data/sample_names.h"
#include "data/source.h"

namespace odt::data {

constexpr std::uint64_t kMaxRecordingValues = std::uint64_t{1} << 26;  // steps * channels

// One recording of a time series.
struct Recording {
  std::string label, group;  // group empty: the recording itself
  std::string name;          // stands in errors
  bool own_test = false;
  std::vector<float> values;  // [steps][channels]; NaN: missing
};

// Recordings one at a time, twice over, as Source has it for rows.
class RecordingSource {
 public:
  virtual ~RecordingSource() = default;
  virtual std::uint32_t channels() const = 0;  // constant, known from the start
  virtual double sample_rate() const = 0;      // Hz; 0: not known
  virtual double full_scale() const { return 1; }
  virtual Result<bool> next(Recording& recording) = 0;
  virtual Status rewind() = 0;
  virtual double progress() const = 0;
  virtual std::string describe() const = 0;
  virtual SourceInfo info() const = 0;  // channels and unit
};

// WAV files: 1 channel (the mean of the file's), 16-bit values whatever the file holds. rate 0:
// that of the first file. Files of another rate are resampled where a rate is given (libsamplerate,
// medium sinc), else refused. Errors: INVALID_ARGUMENT (no WAV file, not decodable, limits, names).
Result<std::unique_ptr<RecordingSource>> open_wav(std::unique_ptr<FileSet> files,
                                                  const NameOptions& names, double rate);

// Edge Impulse data acquisition files (.json, .cbor): payload.{interval_ms, sensors, values}. Class
// by the pattern, else info.labels, else the file's name up to the first '.'. All files have the
// same sensors and rate (1 %). Errors: INVALID_ARGUMENT.
Result<std::unique_ptr<RecordingSource>> open_edge_impulse(std::unique_ptr<FileSet> files,
                                                           const NameOptions& names);

// A table of time steps as recordings: rows that follow each other with the same group are one
// recording. Errors in next(): a step without a group; classes that change within a recording; a
// group that comes back after another (sort the file).
std::unique_ptr<RecordingSource> recordings_of_steps(std::unique_ptr<Source> steps, double rate);
// A table whose rows are whole recordings: [steps][channels] flat. Errors: INVALID_ARGUMENT where
// the channels do not divide the row.
Result<std::unique_ptr<RecordingSource>> recordings_of_rows(std::unique_ptr<Source> rows,
                                                            std::uint32_t channels, double rate);

}  // namespace odt::data

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace odt::data {

// Type of source values; numbers as in the file format (data/README.md).
enum class Dtype : std::uint8_t { kS8 = 1, kU8 = 2, kS16 = 3, kF32 = 4 };
std::size_t dtype_bytes(Dtype dtype);
std::string dtype_name(Dtype dtype);  // "i8", "u8", "i16", "f32"

constexpr std::uint32_t kMaxClasses = 128;
constexpr std::uint32_t kMaxOutputs = 128;  // regression targets per sample
constexpr std::uint32_t kMaxSampleValues = 65535;
constexpr std::uint64_t kMaxDatasetBytes = std::uint64_t{1} << 30;

enum class Split : std::uint8_t { kTrain = 0, kHeldout = 1, kTest = 2 };

// Source values with their splits: samples are stored train first, then held-out, then test. They
// have classes, or regression targets, or neither (autoencoders).
struct Dataset {
  Dtype dtype = Dtype::kU8;
  std::vector<std::uint32_t> shape;  // per sample: [N] or [C,H,W]
  std::uint32_t counts[3] = {0, 0, 0};
  std::vector<std::string> class_names;
  std::string unit;                             // of the values; empty: unknown
  std::string source;                           // one line: where it came from, transforms, seed
  std::vector<std::uint8_t> labels;             // [samples], below class_names.size(), or all 0
  std::vector<std::uint32_t> source_index;      // [samples]: row in the source file
  std::vector<float> feature_min, feature_max;  // [sample_len], over all samples
  std::vector<std::uint8_t> values;             // [samples][sample_len], little-endian dtype
  // Version 2 of the file; empty or 0 where there is none.
  std::uint32_t outputs = 0;                  // regression targets per sample
  std::vector<float> targets;                 // [samples][outputs]
  std::vector<float> target_min, target_max;  // [outputs], over all rows of the source
  std::vector<std::string> target_names;      // [outputs] or empty
  std::vector<std::uint32_t> groups;          // [samples]: recording, in group_names
  std::vector<std::string> group_names;
  float sample_rate = 0;  // Hz, of a series
  std::string kind;       // "table", "image", "series"; empty: by the shape

  // Whether the file needs version 2.
  bool extended() const {
    return outputs > 0 || !groups.empty() || sample_rate > 0 || !kind.empty() ||
           class_names.empty();
  }
  std::uint32_t sample_len() const;
  std::uint32_t samples() const { return counts[0] + counts[1] + counts[2]; }
  std::uint32_t first(Split split) const;
  std::uint32_t count(Split split) const { return counts[static_cast<int>(split)]; }
  float value(std::uint32_t sample, std::uint32_t feature) const;
  std::vector<std::uint32_t> class_counts() const;
};

// Sets feature_min and feature_max from the values.
void measure_ranges(Dataset& dataset);

// The file format of data/README.md; equal datasets give equal bytes, so that the SHA-256 of the
// file names the content.
std::string encode_dataset(const Dataset& dataset);
// The same bytes into a file, without a second copy of the values; the SHA-256 of them. Errors: as
// write_file.
Result<Hash> write_dataset(const std::string& path, const Dataset& dataset);
// Errors: INVALID_ARGUMENT naming the field, got and expected.
Result<Dataset> decode_dataset(std::string_view bytes);

// One sample of the file's bytes, with everything that is about it: a dataset of that sample alone,
// in its split. Errors: those of decode_dataset; OUT_OF_RANGE (sample: train first, from 0).
Result<Dataset> decode_sample(std::string_view bytes, std::uint32_t sample);
// The same from a file, of which little is read. Errors: also NOT_FOUND.
Result<Dataset> read_sample(const std::string& path, std::uint32_t sample);

// Removes what writers of `path` that were killed have left beside it: files and folders named
// "<path>.tmp.<pid>", also with ".<more>", whose process is gone. write_file does it first.
void clear_stale(const std::string& path);
// Whole file, at most max_bytes. Errors: NOT_FOUND, INVALID_ARGUMENT (size), all naming the path.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);
// Temp file in the same folder, fsync, rename: `path` is complete or unchanged.
Status write_file(const std::string& path, std::string_view content);
Status write_file(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace odt::data

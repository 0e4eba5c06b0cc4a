#include "data/import.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "data/idx_reader.h"
#include "data/source_parts.h"

namespace odt::data {
namespace {

// Samples as read, before splits.
struct Pool {
  Dtype dtype = Dtype::kU8;
  std::vector<std::uint32_t> shape;
  std::vector<std::uint8_t> values, labels;
  std::uint32_t rows() const { return static_cast<std::uint32_t>(labels.size()); }
  std::size_t sample_bytes() const { return rows() == 0 ? 0 : values.size() / rows(); }
};

Result<Pool> read_idx_pool(const std::string& data_path, const std::string& data_name,
                           const std::string& labels_path, const std::string& labels_name) {
  const std::string name = shown_name(data_name, data_path);
  const std::string lname = shown_name(labels_name, labels_path);
  if (labels_path.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": IDX data needs an IDX label file"));
  std::string bytes;
  ODT_ASSIGN(bytes, read_file(data_path, kMaxDatasetBytes));
  IdxArray data;
  ODT_ASSIGN(data, read_idx(bytes, name));
  ODT_ASSIGN(bytes, read_file(labels_path, kMaxDatasetBytes));
  IdxArray labels;
  ODT_ASSIGN(labels, read_idx(bytes, lname));
  if (labels.dims.size() != 1 || labels.dtype != Dtype::kU8)
    return absl::InvalidArgumentError(absl::StrCat(lname, ": labels are one dimension of u8; got ",
                                                   labels.dims.size(), " dimensions of ",
                                                   dtype_name(labels.dtype)));
  if (data.dims.size() < 2 || data.dims[0] == 0)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": data is [samples, ...]; got ", data.dims.size(), " dimensions"));
  if (data.dims[0] != labels.dims[0])
    return absl::InvalidArgumentError(absl::StrCat(lname, ": ", labels.dims[0], " labels for ",
                                                   data.dims[0], " samples of ", name));
  Pool pool;
  pool.dtype = data.dtype;
  pool.shape.assign(data.dims.begin() + 1, data.dims.end());
  if (pool.shape.size() == 2) pool.shape.insert(pool.shape.begin(), 1);
  pool.values = std::move(data.values);
  pool.labels = std::move(labels.values);
  for (std::size_t i = 0; i < pool.labels.size(); ++i)
    if (pool.labels[i] >= kMaxClasses)
      return absl::InvalidArgumentError(absl::StrCat(
          lname, ": label ", pool.labels[i], " of sample ", i, "; expected 0..", kMaxClasses - 1));
  return pool;
}

Result<ImageSteps> image_steps(const ImportRequest& r, const Pool& pool, const std::string& name) {
  ImageSteps steps;
  ODT_ASSIGN(steps, parse_image_steps(r.transform, r.resize));
  if (steps.any() && (pool.dtype != Dtype::kU8 || pool.shape.size() != 3))
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": resize and transform need u8 images; got ", dtype_name(pool.dtype),
                     " of shape [", absl::StrJoin(pool.shape, ","), "]"));
  return steps;
}

void append_split(const Pool& pool, const std::vector<std::uint32_t>& rows, const ImageSteps& steps,
                  Split split, Dataset& d) {
  d.counts[static_cast<int>(split)] = static_cast<std::uint32_t>(rows.size());
  const std::size_t bytes = pool.sample_bytes();
  for (auto row : rows) {
    d.labels.push_back(pool.labels[row]);
    d.source_index.push_back(row);
    const std::uint8_t* sample = pool.values.data() + row * bytes;
    if (steps.any())
      append_image(steps, pool.shape, sample, d.values);
    else
      d.values.insert(d.values.end(), sample, sample + bytes);
  }
}

std::string source_line(const ImportRequest& r, const std::string& name) {
  std::string line =
      absl::StrCat("idx ", name, steps_text(r.transform, r.resize), ", seed ", r.seed);
  if (r.skip > 0) absl::StrAppend(&line, ", skip ", r.skip);
  return line;
}

struct Pools {
  Pool pool, test;
  std::vector<std::string> class_names;
};

Result<Pools> read_idx_source(const ImportRequest& r) {
  Pools s;
  ODT_ASSIGN(s.pool, read_idx_pool(r.data_path, r.data_name, r.labels_path, r.labels_name));
  if (!r.test_data_path.empty()) {
    ODT_ASSIGN(s.test, read_idx_pool(r.test_data_path, r.test_data_name, r.test_labels_path,
                                     r.test_labels_name));
    if (s.test.shape != s.pool.shape || s.test.dtype != s.pool.dtype)
      return absl::InvalidArgumentError(
          absl::StrCat(shown_name(r.test_data_name, r.test_data_path), ": shape [",
                       absl::StrJoin(s.test.shape, ","), "] ", dtype_name(s.test.dtype),
                       "; the training data has [", absl::StrJoin(s.pool.shape, ","), "] ",
                       dtype_name(s.pool.dtype)));
  }
  std::uint32_t n = 0;
  for (const auto* pool : {&s.pool, &s.test})
    for (auto label : pool->labels) n = std::max<std::uint32_t>(n, label + 1u);
  for (std::uint32_t i = 0; i < std::max(n, 2u); ++i) s.class_names.push_back(absl::StrCat(i));
  return s;
}

Result<SplitOptions> split_options(const ImportRequest& r, bool stratify) {
  SplitOptions splits{r.train, r.heldout, r.test, {0, 0, 0}, r.seed, r.skip, stratify};
  if (!r.split.empty() && (r.split.size() != 3 || r.split[0] == 0))
    return absl::InvalidArgumentError(
        absl::StrCat("split [", absl::StrJoin(r.split, ","),
                     "]; expected parts of train, held-out and test, e.g. [80,10,10]"));
  std::copy(r.split.begin(), r.split.end(), splits.parts);
  return splits;
}

// Readers of rows: everything but IDX.
Result<Dataset> import_rows(const ImportRequest& r, const Progress& progress, ImportNotes* notes) {
  SourcePtr source;
  ODT_ASSIGN(source, open_source(r));
  Missing missing;
  ODT_ASSIGN(missing, parse_missing(r.missing));
  SplitOptions splits;
  ODT_ASSIGN(splits, split_options(r, r.format != "csv" || r.stratify || !r.group_column.empty()));
  return import_source(*source, splits, missing, progress, notes);
}

Result<Dataset> import_idx(const ImportRequest& r, const Progress& progress) {
  progress(0, "reading");
  Pools source;
  ODT_ASSIGN(source, read_idx_source(r));
  const std::string name = shown_name(r.data_name, r.data_path);
  ImageSteps steps;
  ODT_ASSIGN(steps, image_steps(r, source.pool, name));
  SplitOptions splits;
  ODT_ASSIGN(splits, split_options(r, r.stratify));
  Picks picks;
  ODT_ASSIGN(picks, choose_splits(splits, {source.pool.labels, {}}, {source.test.labels, {}}));
  Dataset d;
  d.dtype = source.pool.dtype;
  d.shape = shape_after(steps, source.pool.shape);
  std::uint64_t len = 1;
  for (auto n : d.shape) len *= n;
  if (len < 1 || len > kMaxSampleValues)
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", len, " values per sample; at most ",
                                                   kMaxSampleValues, " (use resize)"));
  d.class_names = source.class_names;
  d.source = source_line(r, name);
  progress(300, "making splits");
  append_split(source.pool, picks.train, steps, Split::kTrain, d);
  progress(600, "making splits");
  append_split(source.pool, picks.heldout, steps, Split::kHeldout, d);
  append_split(source.test.rows() > 0 ? source.test : source.pool, picks.test, steps, Split::kTest,
               d);
  progress(900, "measuring ranges");
  measure_ranges(d);
  return d;
}

}  // namespace

std::string shown_name(const std::string& name, const std::string& path) {
  if (!name.empty()) return name;
  const std::string p = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  return p.substr(p.rfind('/') + 1);
}

Result<Dataset> import_dataset(const ImportRequest& request, const Progress& progress,
                               ImportNotes* notes) {
  ImportRequest r = request;
  if (r.format.empty()) {
    ODT_ASSIGN(r.format, guess_format(r.data_path));
  }
  return r.format == "idx" ? import_idx(r, progress) : import_rows(r, progress, notes);
}

}  // namespace odt::data

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <filesystem>
#include <map>

#include "data/csv_reader.h"
#include "data/file_set.h"
#include "data/import.h"
#include "data/npy_source.h"
#include "data/open_series.h"
#include "data/source_parts.h"

namespace odt::data {
namespace {

namespace fs = std::filesystem;

// What one opener gets: the training data, or the own test set in its place.
struct Input {
  const ImportRequest& request;
  std::string path, name;           // file or folder; as shown
  std::string labels, labels_name;  // empty: none
};
using Open = Result<SourcePtr> (*)(const Input&);

Result<SourcePtr> open_csv_file(const ImportRequest& r, const std::string& path,
                                const std::string& name) {
  Missing missing;
  ODT_ASSIGN(missing, parse_missing(r.missing));
  return open_csv(path, name,
                  {r.label_column, r.target_columns, r.drop_columns, r.group_column,
                   missing != Missing::kRefuse});
}

const std::vector<std::string> kCsvEndings = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};

Result<SourcePtr> open_csv_rows(const Input& in) {
  std::error_code ec;
  if (!fs::is_directory(in.path, ec)) return open_csv_file(in.request, in.path, in.name);
  std::vector<std::string> files;
  ODT_ASSIGN(files, files_below(in.path, kCsvEndings));
  const std::size_t n = files.size();
  return chain_sources(absl::StrCat("csv ", in.name, " (", n, " files)"), n,
                       [r = in.request, in_path = in.path, in_name = in.name,
                        files = std::move(files)](std::size_t i) {
                         return open_csv_file(r, in_path + "/" + files[i],
                                              in_name + "/" + files[i]);
                       });
}

Result<SourcePtr> open_csvs(const Input& in) {
  SourcePtr rows;
  ODT_ASSIGN(rows, open_csv_rows(in));
  return wants_windows(in.request) ? windows_of(std::move(rows), in.request) : std::move(rows);
}

Result<SourcePtr> open_numpy(const Input& in) {
  const ImportRequest& r = in.request;
  SourcePtr rows;
  ODT_ASSIGN(rows, open_npy({in.path, in.name, in.labels, in.labels_name, r.x_key, r.y_key,
                             !r.target_columns.empty()}));
  return wants_windows(r) ? windows_of(std::move(rows), r) : std::move(rows);
}

Result<SourcePtr> open_wavs(const Input& in) { return open_wav_rows(in.request, in.path, in.name); }
Result<SourcePtr> open_edge_impulses(const Input& in) {
  return open_edge_impulse_rows(in.request, in.path, in.name);
}
Result<SourcePtr> open_pngs(const Input& in) { return open_png_rows(in.request, in.path, in.name); }

// A line for each format that is read row by row; a reader adds its own.
struct Format {
  const char* name;
  Open open;
  bool steps;  // transform and resize are done here, on [C,H,W] rows; else the reader does them
  std::vector<std::string> endings;
};
const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"csv", open_csvs, true, kCsvEndings},
      {"npy", open_numpy, true, {".npy"}},
      {"npz", open_numpy, true, {".npz"}},
      {"wav", open_wavs, false, {".wav"}},
      {"edge-impulse", open_edge_impulses, false, {".json", ".cbor"}},
      {"png", open_pngs, false, {".png"}},
  };
  return all;
}

std::string known_formats() {
  std::string known = "idx";
  for (const auto& format : formats()) absl::StrAppend(&known, ", ", format.name);
  return known;
}

Result<SourcePtr> open_one(const Format& format, const Input& in) {
  SourcePtr source;
  ODT_ASSIGN(source, format.open(in));
  if (!format.steps) return source;
  ImageSteps steps;
  ODT_ASSIGN(steps, parse_image_steps(in.request.transform, in.request.resize));
  return with_steps(std::move(source), steps, steps_text(in.request.transform, in.request.resize));
}

}  // namespace

Result<SourcePtr> open_source(const ImportRequest& r) {
  const auto& all = formats();
  const auto format =
      std::find_if(all.begin(), all.end(), [&](const Format& f) { return r.format == f.name; });
  if (format == all.end())
    return absl::InvalidArgumentError(
        absl::StrCat("format '", r.format, "' is not known; use ", known_formats()));
  const Input first{r, r.data_path, shown_name(r.data_name, r.data_path), r.labels_path,
                    shown_name(r.labels_name, r.labels_path)};
  SourcePtr pool;
  if (r.more_paths.empty()) {
    ODT_ASSIGN(pool, open_one(*format, first));
  } else {
    const std::size_t n = 1 + r.more_paths.size();
    ODT_ASSIGN(pool,
               chain_sources(absl::StrCat(r.format, " ", first.name, " and ", n - 1, " more"), n,
                             [&r, first, format](std::size_t i) {
                               if (i == 0) return open_one(*format, first);
                               const auto& path = r.more_paths[i - 1];
                               return open_one(*format, {r, path, shown_name("", path), "", ""});
                             }));
  }
  if (r.test_data_path.empty()) return pool;
  SourcePtr test;
  ODT_ASSIGN(
      test,
      open_one(*format, {r, r.test_data_path, shown_name(r.test_data_name, r.test_data_path),
                         r.test_labels_path, shown_name(r.test_labels_name, r.test_labels_path)}));
  return with_test(std::move(pool), std::move(test));
}

Result<std::string> guess_format(const std::string& path) {
  std::error_code ec;
  const auto by_name = [](const std::string& name) -> std::string {
    const std::string lower = absl::AsciiStrToLower(name);
    for (const auto& format : formats())
      for (const auto& ending : format.endings)
        if (lower.ends_with(ending)) return format.name;
    return lower.find("ubyte") != std::string::npos || lower.ends_with(".idx") ||
                   lower.ends_with(".idx.gz")
               ? "idx"
               : "";
  };
  std::map<std::string, std::size_t> found;
  const auto count = [&](const std::string& name) {
    if (const std::string format = by_name(name); !format.empty()) ++found[format];
  };
  if (fs::is_directory(path, ec)) {
    std::vector<std::string> files;
    ODT_ASSIGN(files, files_below(path, {}));
    for (const auto& file : files) count(file);
  } else if (extension_of(path) == ".zip") {
    std::unique_ptr<FileSet> files;
    ODT_ASSIGN(files, open_files(path, ""));
    for (const auto& file : files->entries()) count(file.path);
  } else {
    count(path);
  }
  if (found.size() == 1) return found.begin()->first;
  if (found.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(
        shown_name("", path), ": files of several formats (",
        absl::StrJoin(
            found, ", ",
            [](std::string* out, const auto& f) { absl::StrAppend(out, f.second, " ", f.first); }),
        "); say which with --format: the others are left out"));
  return absl::InvalidArgumentError(
      absl::StrCat(shown_name("", path),
                   ": the name does not tell the format; say --format, one of ", known_formats()));
}

}  // namespace odt::data

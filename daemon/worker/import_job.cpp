#include "worker/import_job.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/tar.h"
#include "worker/job.h"

namespace odt::worker {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

constexpr std::uint64_t kMaxUnpacked = std::uint64_t{8} << 30;

Status unpack(std::string& path, std::string& name, const std::string& folder) {
  if (path.empty() || !data::looks_like_tar(path)) return absl::OkStatus();
  if (::mkdir(folder.c_str(), 0755) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": cannot make a folder: ", std::strerror(errno)));
  name = data::shown_name(name, path);
  ODT_TRY(data::unpack_tar(path, folder, kMaxUnpacked, name));
  path = folder;
  return absl::OkStatus();
}

data::ImportRequest request_of(const json& job, const std::string& base) {
  const auto text = [&job](const char* key) { return job.value(key, ""); };
  const auto path = [&](const char* key) { return job_path(text(key), base); };
  const auto number = [&job](const char* key) { return job.value(key, 0u); };
  data::ImportRequest r;
  r.format = text("format");
  r.resize = job.value("resize", std::vector<std::uint32_t>{});
  r.transform = text("transform");
  r.train = number("train");
  r.heldout = number("heldout");
  r.test = number("test");
  r.split = job.value("split", std::vector<std::uint32_t>{});
  r.seed = number("seed");
  r.skip = number("skip");
  r.stratify = job.value("stratify", false);
  r.missing = text("missing");
  r.label_column = text("label_column");
  r.target_columns = job.value("target_columns", Texts{});
  r.drop_columns = job.value("drop_columns", Texts{});
  r.group_column = text("group_column");
  r.x_key = text("x_key");
  r.y_key = text("y_key");
  r.window_s = job.value("window_s", 0.0);
  r.stride_s = job.value("stride_s", 0.0);
  r.sample_rate = job.value("sample_rate", 0.0);
  r.features = text("features");
  r.window_steps = number("window_steps");
  r.stride_steps = number("stride_steps");
  r.short_recordings = text("short_recordings");
  r.series = text("series");
  r.channels = number("channels");
  r.pattern = text("pattern");
  r.only = text("only");
  r.data_path = path("data");
  r.labels_path = path("labels");
  r.test_data_path = path("test_data");
  r.test_labels_path = path("test_labels");
  r.data_name = text("data_name");
  r.labels_name = text("labels_name");
  r.test_data_name = text("test_data_name");
  r.test_labels_name = text("test_labels_name");
  return r;
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
}

}  // namespace

Result<Imported> import_files(data::ImportRequest r, const std::string& scratch,
                              const ImportOutputs& outputs, const data::Progress& progress) {
  ODT_TRY(unpack(r.data_path, r.data_name, scratch + "/in.data.d"));
  ODT_TRY(unpack(r.test_data_path, r.test_data_name, scratch + "/in.test.d"));
  Imported out;
  data::ImportNotes notes;
  ODT_ASSIGN(out.dataset, data::import_dataset(r, progress, &notes));
  progress(970, "reporting");
  out.report = data::make_report(out.dataset, notes);
  if (!outputs.dataset.empty()) {
    ODT_ASSIGN(out.content_hash, data::write_dataset(outputs.dataset, out.dataset));
  }
  if (!outputs.report.empty()) {
    const json both = {{"report", data::report_json(out.report, out.dataset)},
                       {"preview", data::preview_json(out.dataset, out.report.value_names)}};
    ODT_TRY(data::write_file(outputs.report,
                             both.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
  return out;
}

Result<json> run_import(const json& job, const std::string& base, const data::Progress& progress) {
  const auto path = [&](const char* key) { return job_path(job.value(key, ""), base); };
  const ImportOutputs outputs{path("dataset_out"), path("report_out")};
  Imported in;
  ODT_ASSIGN(in, import_files(request_of(job, base), base, outputs, progress));
  const data::Dataset& d = in.dataset;
  json result = {{"dtype", data::dtype_name(d.dtype)},
                 {"shape", d.shape},
                 {"train", d.counts[0]},
                 {"heldout", d.counts[1]},
                 {"test", d.counts[2]},
                 {"class_names", d.class_names},
                 {"class_counts", d.class_counts()},
                 {"outputs", d.outputs},
                 {"source", d.source},
                 {"warnings", in.report.warnings},
                 {"bytes", file_bytes(outputs.dataset)},
                 {"content_hash", in.content_hash.is_zero() ? sha256(encode_dataset(d)).hex()
                                                            : in.content_hash.hex()}};
  if (!outputs.report.empty()) {
    Hash hash;
    ODT_ASSIGN(hash, sha256_file(outputs.report));
    result["report_hash"] = hash.hex();
  }
  return result;
}

}  // namespace odt::worker

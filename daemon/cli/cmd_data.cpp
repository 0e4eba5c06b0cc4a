// Datasets.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/data_files.h"
#include "cli/data_view.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/same_name.h"
#include "cli/upload.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = api::v1;

struct Import {
  std::vector<std::string> files;
  std::string labels, test_file, test_labels, resize, window, stride;
  bool replace = false;
  v1::ImportOptions options;
};

// A folder with the files of the MNIST family.
void take_folder(Import& import) {
  std::error_code ec;
  if (import.files.size() != 1 || !fs::is_directory(import.files[0], ec)) return;
  const fs::path folder = import.files[0];
  const auto find = [&](const char* name) {
    for (const char* end : {"", ".gz"})
      if (fs::exists(folder / (std::string(name) + end)))
        return (folder / (name + std::string(end))).string();
    return std::string();
  };
  const std::string images = find("train-images-idx3-ubyte");
  if (images.empty()) return;
  import.files[0] = images;
  if (import.labels.empty()) import.labels = find("train-labels-idx1-ubyte");
  if (import.test_file.empty()) import.test_file = find("t10k-images-idx3-ubyte");
  if (import.test_labels.empty()) import.test_labels = find("t10k-labels-idx1-ubyte");
}

Status parse_resize(const std::string& text, v1::ImportOptions& options) {
  if (text.empty()) return {};
  std::uint32_t height = 0, width = 0;
  const std::size_t x = text.find('x');
  if (x == std::string::npos || !absl::SimpleAtoi(text.substr(0, x), &height) ||
      !absl::SimpleAtoi(text.substr(x + 1), &width) || height == 0 || width == 0)
    return absl::InvalidArgumentError("--resize '" + clean(text) + "' is not HxW, e.g. 14x14");
  options.add_resize(height);
  options.add_resize(width);
  return {};
}

// "1.5s": seconds; "104": steps.
Status parse_length(const char* option, const std::string& text, double& seconds,
                    std::uint32_t& steps) {
  if (text.empty()) return {};
  const bool in_seconds = text.ends_with('s');
  const std::string number = in_seconds ? text.substr(0, text.size() - 1) : text;
  if (in_seconds ? absl::SimpleAtod(number, &seconds) && seconds > 0
                 : absl::SimpleAtoi(number, &steps) && steps > 0)
    return {};
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", clean(text), "': 1.5s (seconds) or 104 (steps) expected"));
}

Status parse_lengths(const Import& import, v1::ImportOptions& options) {
  double window = 0, stride = 0;
  std::uint32_t window_steps = 0, stride_steps = 0;
  ODT_TRY(parse_length("--window", import.window, window, window_steps));
  ODT_TRY(parse_length("--stride", import.stride, stride, stride_steps));
  options.set_window_s(window);
  options.set_window_steps(window_steps);
  options.set_stride_s(stride);
  options.set_stride_steps(stride_steps);
  return {};
}

Status upload_into(Context& context, const std::string& path, std::string* blob) {
  if (path.empty()) return {};
  ODT_ASSIGN(const DataFiles files, gather_files({path}));
  ODT_ASSIGN(*blob, upload_data(context, files));
  return {};
}

// odtd's names of uploads become the user's: a file, "folder/file", or a file among several.
Status in_own_words(Status status, const Import& import, const DataFiles& files,
                    const v1::ImportDatasetRequest& r) {
  const std::string called = imported_name("data", r.data_blob());
  if (!files.file.empty()) {
    status = rename_file(status, called, files.file);
  } else if (!files.folder.empty()) {
    status = rename_file(status, called, files.folder);
  } else {
    for (const auto& [path, name] : files.members)
      status = rename_file(status, absl::StrCat(called, "/", name), path);
    status = rename_file(status, called, absl::StrCat(files.members.size(), " files"));
  }
  status = rename_file(status, imported_name("labels", r.label_blob()), import.labels);
  status = rename_file(status, imported_name("test_data", r.test_data_blob()), import.test_file);
  return rename_file(status, imported_name("test_labels", r.test_label_blob()), import.test_labels);
}

Status print_dataset(Context& context, const v1::GetDatasetResponse& got, bool with_preview) {
  if (!context.json) {
    show_dataset(context, got.dataset(), got.report());
    return {};
  }
  nlohmann::ordered_json out = to_json(got.dataset());
  if (got.has_report()) out["report"] = to_json(got.report());
  if (got.has_preview() && with_preview) out["preview"] = to_json(got.preview());
  context.print_json(out);
  return {};
}

Result<v1::GetDatasetResponse> get_dataset(Context& context, const std::string& id) {
  v1::GetDatasetRequest get;
  get.set_id(id);
  return context.call<v1::GetDatasetResponse>(get);
}

Status import_data(Context& context, Import import) {
  v1::ImportDatasetRequest request;
  v1::ImportOptions& options = *request.mutable_options();
  options = import.options;
  const fs::path given = import.files[0];
  if (options.name().empty())
    options.set_name((given.has_filename() ? given : given.parent_path()).stem().string());
  take_folder(import);
  ODT_ASSIGN(const DataFiles files, gather_files(import.files));
  if (options.format().empty()) {
    ODT_ASSIGN(const std::string format, format_by_name(files));
    options.set_format(format);
  }
  ODT_TRY(parse_resize(import.resize, options));
  ODT_TRY(parse_lengths(import, options));
  ODT_ASSIGN(*request.mutable_data_blob(), upload_data(context, files));
  ODT_TRY(upload_into(context, import.labels, request.mutable_label_blob()));
  ODT_TRY(upload_into(context, import.test_file, request.mutable_test_data_blob()));
  ODT_TRY(upload_into(context, import.test_labels, request.mutable_test_label_blob()));
  ODT_ASSIGN(const auto started, context.call<v1::ImportDatasetResponse>(request));
  const auto ended = wait_for_job(context, started.job());
  if (!ended.ok()) return in_own_words(ended.status(), import, files, request);
  ODT_ASSIGN(const auto got, get_dataset(context, ended->result_key()));
  ODT_TRY(print_dataset(context, got, false));
  return settle_dataset_name(context, got.dataset().name(), got.dataset().id(), import.replace);
}

Status show_data(Context& context, const std::string& word, int sample) {
  ODT_ASSIGN(const v1::Dataset d, find_dataset(context, word));
  if (sample < 0) {
    ODT_ASSIGN(const auto got, get_dataset(context, d.id()));
    ODT_TRY(print_dataset(context, got, true));
    context.say(absl::StrCat("samples: --sample 0 to ", d.train() + d.heldout() + d.test() - 1,
                             " (training first, then held-out, then test)"));
    return {};
  }
  v1::GetDatasetRequest request;
  request.set_id(d.id());
  request.set_sample(static_cast<std::uint32_t>(sample));
  ODT_ASSIGN(const auto got, context.call<v1::GetDatasetResponse>(request));
  if (got.preview().samples_size() != 1 ||
      got.preview().samples(0).index() != static_cast<std::uint32_t>(sample))
    return absl::UnimplementedError("this odtd is too old to show any sample; update it");
  if (context.json) {
    context.print_json(got.preview().samples(0));
    return {};
  }
  const std::string text = sample_text(got.preview(), 0);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    context.say(text.substr(at, end - at));
    at = end + 1;
  }
  return {};
}

Status list_data(Context& context) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto all, client->list<v1::ListDatasetsResponse>(
                                 v1::ListDatasetsRequest(), [](auto& r) { return r.datasets(); }));
  auto out = nlohmann::ordered_json::array();
  Table table({"NAME", "ID", "SAMPLE", "TRAIN", "HELD-OUT", "TEST", "CLASSES", "SOURCE"});
  std::set<std::string> newer;
  for (const auto& d : all) {
    out.push_back(to_json(d));
    const bool first = newer.insert(d.name()).second;
    table.add({first ? d.name() : d.name() + " (older)", hex(d.id()),
               d.dtype() + " " + join_numbers(d.shape(), "x"), std::to_string(d.train()),
               std::to_string(d.heldout()), std::to_string(d.test()), std::to_string(d.n_classes()),
               d.source()});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

Status remove_data(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Dataset d, find_dataset(context, word, Several::kRefuse));
  v1::DeleteDatasetRequest request;
  request.set_id(d.id());
  ODT_TRY(context.call<v1::DeleteDatasetResponse>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"deleted", d.name()}});
  context.say(d.name() + " deleted");
  return {};
}

// An option that sets a field of the request.
template <typename T>
CLI::Option* field(CLI::App& app, const std::shared_ptr<Import>& import, const char* name,
                   const char* help, T set) {
  return app.add_option_function<std::string>(
      name, [import, set](const std::string& text) { set(import->options, text); }, help);
}

void add_split_options(CLI::App& app, const std::shared_ptr<Import>& import) {
  v1::ImportOptions& o = import->options;
  o.set_seed(1);
  const auto number = [&](const char* name, const char* help,
                          void (v1::ImportOptions::*set)(std::uint32_t)) {
    app.add_option_function<std::uint32_t>(
        name, [import, set](std::uint32_t n) { (import->options.*set)(n); }, help);
  };
  number("--train", "Samples to train on", &v1::ImportOptions::set_train);
  number("--heldout", "Samples of the guard", &v1::ImportOptions::set_heldout);
  number("--test", "Samples to test with", &v1::ImportOptions::set_test);
  app.add_option_function<std::vector<std::uint32_t>>(
         "--split",
         [import](const std::vector<std::uint32_t>& parts) {
           for (const auto part : parts) import->options.add_split(part);
         },
         "Parts of train, held-out, test instead: 80,10,10")
      ->delimiter(',')
      ->expected(3);
  number("--seed", "Picks the samples", &v1::ImportOptions::set_seed);
  number("--skip", "Leave out the first N after the shuffle", &v1::ImportOptions::set_skip);
  app.add_flag_callback(
      "--stratify", [import] { import->options.set_stratify(true); },
      "IDX, CSV: every class in proportion (the other formats always do)");
  number("--channels", "PNG: 1 or 3; series of rows: channels of a step",
         &v1::ImportOptions::set_channels);
}

void add_table_options(CLI::App& app, const std::shared_ptr<Import>& import) {
  using Options = v1::ImportOptions;
  field(app, import, "--label-column", "CSV: name, or number from 0 (default: last); '-': none",
        [](Options& o, const std::string& v) { o.set_label_column(v); });
  for (const auto& [name, help, add] :
       {std::tuple(
            "--target-column,--target", "CSV: regression; may come again",
            +[](Options&o, const std::string&v) { o.add_target_columns(v); }),
        std::tuple(
            "--drop-column", "CSV: leave out; may come again",
            +[](Options&o, const std::string&v) { o.add_drop_columns(v); })})
    app.add_option_function<std::vector<std::string>>(
        name,
        [import, add = add](const std::vector<std::string>& columns) {
          for (const auto& column : columns) add(import->options, column);
        },
        help);
  field(app, import, "--group-column",
        "CSV: column of the recording; files: folder, recording or a field of --pattern. It stays "
        "in one split",
        [](Options& o, const std::string& v) { o.set_group_column(v); });
  field(app, import, "--missing", "Missing values: refuse (default), drop, mean, zero",
        [](Options& o, const std::string& v) { o.set_missing(v); })
      ->check(CLI::IsMember({"refuse", "drop", "mean", "zero"}));
  field(app, import, "--x-key", "NPZ: array of the values",
        [](Options& o, const std::string& v) { o.set_x_key(v); });
  field(app, import, "--y-key", "NPZ: array of the labels",
        [](Options& o, const std::string& v) { o.set_y_key(v); });
}

void add_series_options(CLI::App& app, const std::shared_ptr<Import>& import) {
  using Options = v1::ImportOptions;
  app.add_option("--window", import->window, "Series: length of a sample, 1.5s or 104 (steps)");
  app.add_option("--stride", import->stride,
                 "Series: from one sample to the next (default: the window)");
  app.add_option_function<double>(
      "--sample-rate", [import](double hz) { import->options.set_sample_rate(hz); },
      "Series: resample to Hz");
  field(app, import, "--features", "Series: what a sample is made of (daemon/data/README.md)",
        [](Options& o, const std::string& v) { o.set_features(v); });
  field(app, import, "--short", "Series shorter than a window: refuse, pad, drop",
        [](Options& o, const std::string& v) { o.set_short_recordings(v); })
      ->check(CLI::IsMember({"refuse", "pad", "drop"}));
  field(app, import, "--series", "CSV, NPY as recordings: 'steps' (a row is a step), 'rows' (one)",
        [](Options& o, const std::string& v) { o.set_series(v); })
      ->check(CLI::IsMember({"steps", "rows"}));
  field(app, import, "--pattern", "Files: how a name tells class and fields: '{label}_{who}_*.wav'",
        [](Options& o, const std::string& v) { o.set_pattern(v); });
  field(app, import, "--only", "Files: who=george,lucas or who!=george",
        [](Options& o, const std::string& v) { o.set_only(v); });
}

void add_import(CLI::App& data, Context& context) {
  using Options = v1::ImportOptions;
  const auto import = std::make_shared<Import>();
  import->options.set_transform("none");
  CLI::App* sub = data.add_subcommand("import", "Bring in samples");
  sub->add_option("FILE", import->files,
                  "Files of one format, a folder of them, or a folder of the MNIST family")
      ->required();
  sub->add_option("--labels", import->labels, "Labels: IDX, NPY");
  sub->add_option("--test-data", import->test_file, "Own test set, of the same format");
  sub->add_option("--test-labels", import->test_labels, "Its labels");
  field(*sub, import, "--name", "Default: the file's name",
        [](Options& o, const std::string& v) { o.set_name(v); });
  sub->add_flag("--replace", import->replace, "Delete older datasets of this name");
  field(*sub, import, "--format", "Default: by the file's name",
        [](Options& o, const std::string& v) { o.set_format(v); })
      ->check(CLI::IsMember({"idx", "csv", "npy", "npz", "wav", "edge-impulse", "png"}));
  sub->add_option("--resize", import->resize, "Images: HxW, e.g. 14x14");
  field(*sub, import, "--transform", "Sensor shift: none, inversion, rot90, flip, gain:0.4,60",
        [](Options& o, const std::string& v) { o.set_transform(v); });
  add_split_options(*sub, import);
  add_table_options(*sub, import);
  add_series_options(*sub, import);
  sub->callback([&context, import] {
    context.action = [&context, import] { return import_data(context, *import); };
  });
}

}  // namespace

void add_data(CLI::App& app, Context& context) {
  CLI::App* data = app.add_subcommand("data", "Datasets: import, list, show, rm");
  data->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto sample = std::make_shared<int>(-1);
  add_import(*data, context);
  CLI::App* sub = data->add_subcommand("list", "All datasets, newest first");
  sub->callback([&context] { context.action = [&context] { return list_data(context); }; });
  sub = data->add_subcommand("show", "One dataset: class balance, report, samples");
  sub->add_option("DATA", *word, "Name, or beginning of the id")->required();
  sub->add_option("--sample", *sample,
                  "Show sample N, from 0: training first, then held-out, then test")
      ->check(CLI::NonNegativeNumber);
  sub->callback([&context, word, sample] {
    context.action = [&context, word, sample] { return show_data(context, *word, *sample); };
  });
  sub = data->add_subcommand("rm", "Delete a dataset");
  sub->add_option("DATA", *word, "Name, or beginning of the id")->required();
  sub->callback([&context, word] {
    context.action = [&context, word] { return remove_data(context, *word); };
  });
}

}  // namespace odt::cli

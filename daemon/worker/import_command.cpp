#include "worker/import_command.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/progress_line.h"
#include "data/output_files.h"
#include "worker/command_line.h"
#include "worker/import_job.h"

namespace odt::worker {
namespace {

namespace fs = std::filesystem;

struct ImportCommand {
  data::ImportRequest request;
  std::vector<std::string> files;
  std::string out, report;
  bool json = false;
};

void add_files(CLI::App& app, ImportCommand& o) {
  data::ImportRequest& r = o.request;
  app.add_option("FILE", o.files, "Files of one format, or a folder")->required();
  app.add_option("-o,--out", o.out, "Dataset to write (.odtd)")->required();
  app.add_option("--report", o.report, "Report and preview to write (JSON)");
  app.add_flag("--json", o.json, "The report as JSON on standard output");
  app.add_option("--format", r.format, "Default: by the name");
  app.add_option("--labels", r.labels_path, "Labels: IDX or NPY");
  app.add_option("--test-data", r.test_data_path, "Own test set, of the same format");
  app.add_option("--test-labels", r.test_labels_path, "Its labels");
}

void add_splits(CLI::App& app, data::ImportRequest& r) {
  app.add_option("--train", r.train, "Samples to train on");
  app.add_option("--heldout", r.heldout, "Samples of the guard");
  app.add_option("--test", r.test, "Samples to test with");
  app.add_option("--split", r.split, "Parts of train, held-out, test instead: 80,10,10")
      ->delimiter(',')
      ->expected(3);
  app.add_option("--seed", r.seed, "Picks the samples (default 1)");
  app.add_option("--skip", r.skip, "Leave out the first N after the shuffle");
  app.add_flag("--stratify", r.stratify, "IDX, CSV: every class in proportion (others always do)");
}

void add_columns(CLI::App& app, data::ImportRequest& r) {
  app.add_option("--label-column", r.label_column,
                 "CSV: name, or number from 0 (default: last); '-': no labels");
  app.add_option("--target-column", r.target_columns, "CSV: regression; may come again");
  app.add_option("--drop-column", r.drop_columns, "CSV: leave out; may come again");
  app.add_option("--group-column", r.group_column,
                 "CSV: column of the recording; files: folder, recording or a "
                 "field of --pattern. It stays in one split");
  app.add_option("--missing", r.missing, "Missing values: refuse (default), drop, mean, zero")
      ->check(CLI::IsMember({"refuse", "drop", "mean", "zero"}));
  app.add_option("--x-key", r.x_key, "NPZ: array of the values");
  app.add_option("--y-key", r.y_key, "NPZ: array of the labels");
}

// "1.5s": seconds; "104": steps.
void length_option(CLI::App& app, const char* name, double& seconds, std::uint32_t& steps,
                   const char* help) {
  app.add_option_function<std::string>(
      name,
      [&seconds, &steps, name](const std::string& text) {
        const bool in_seconds = text.ends_with('s');
        const std::string number = in_seconds ? text.substr(0, text.size() - 1) : text;
        if (!(in_seconds ? absl::SimpleAtod(number, &seconds) && seconds > 0
                         : absl::SimpleAtoi(number, &steps) && steps > 0))
          throw CLI::ValidationError(name,
                                     "'" + text + "': 1.5s (seconds) or 104 (steps) expected");
      },
      help);
}

void add_signals(CLI::App& app, data::ImportRequest& r) {
  app.add_option("--resize", r.resize, "Images: H,W")->delimiter(',')->expected(2);
  app.add_option("--transform", r.transform, "Images: none, inversion, rot90, flip, gain:0.4,60");
  app.add_option("--channels", r.channels, "PNG: 1 or 3; series of rows: channels of a step");
  app.add_option("--pattern", r.pattern,
                 "Files: how a name tells class and fields, e.g. '{label}_{speaker}_*.wav'");
  app.add_option("--only", r.only, "Files: speaker=george,lucas or speaker!=george");
  length_option(app, "--window", r.window_s, r.window_steps,
                "Series: length of a sample, 1.5s or 104 (steps)");
  length_option(app, "--stride", r.stride_s, r.stride_steps,
                "Series: from one sample to the next (default: the window)");
  app.add_option("--sample-rate", r.sample_rate, "Series: resample to Hz");
  app.add_option("--features", r.features,
                 "Series: what a sample is made of (daemon/data/README.md)");
  app.add_option("--short", r.short_recordings, "Series shorter than a window: refuse, pad, drop")
      ->check(CLI::IsMember({"refuse", "pad", "drop"}));
  app.add_option("--series", r.series,
                 "CSV, NPY as recordings: 'steps' (a row is a step) or 'rows' (a row is one)")
      ->check(CLI::IsMember({"steps", "rows"}));
}

Status import_all(ImportCommand& o, std::ostream& out, std::ostream& log, bool terminal) {
  o.request.data_path = o.files[0];
  o.request.more_paths.assign(o.files.begin() + 1, o.files.end());
  std::vector<std::string> inputs = o.files;
  for (const std::string& more :
       {o.request.labels_path, o.request.test_data_path, o.request.test_labels_path})
    inputs.push_back(more);
  ODT_TRY(data::check_outputs(inputs, {{"-o", o.out}, {"--report", o.report}}));
  // Archives are unpacked beside the output, and gone in the end.
  data::clear_stale(o.out);
  const std::string scratch = absl::StrCat(o.out, ".tmp.", ::getpid(), ".d");
  std::error_code ec;
  if (!fs::create_directory(scratch, ec))
    return absl::FailedPreconditionError(absl::StrCat(o.out, ": cannot write: ", ec.message()));
  const auto imported = [&] {
    ProgressLine line(log, terminal);
    return import_files(o.request, scratch, {o.out, o.report},
                        [&line](std::uint32_t permille, const std::string& message) {
                          line.show_bar(permille, message);
                        });
  }();
  fs::remove_all(scratch, ec);
  ODT_TRY(imported.status());
  if (o.json)
    out << data::report_json(imported->report, imported->dataset)
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  else
    out << data::report_text(imported->report, imported->dataset) << o.out << "  "
        << imported->content_hash.hex() << "\n";
  return absl::OkStatus();
}

}  // namespace

int import_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& log,
                   bool terminal) {
  ImportCommand o;
  o.request.seed = 1;
  CLI::App app("Import samples into a dataset file, without a daemon", "odt-worker import");
  add_files(app, o);
  add_splits(app, o.request);
  add_columns(app, o.request);
  add_signals(app, o.request);
  return run_command(app, args, out, log, [&] { return import_all(o, out, log, terminal); });
}

}  // namespace odt::worker

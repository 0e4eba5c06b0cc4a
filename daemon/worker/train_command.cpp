#include "worker/train_command.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/progress_line.h"
#include "data/dataset.h"
#include "data/output_files.h"
#include "worker/command_line.h"
#include "worker/qat_arch.h"
#include "worker/train_pc.h"

namespace odt::worker {
namespace {

struct Options {
  std::string dataset, onnx = "model.onnx", image, manifest;
  TrainPcOptions train;
  double validation = 0;
};

void add_options(CLI::App& app, Options& o) {
  app.footer(absl::StrCat("ARCH: ", kArchHelp));
  app.add_option("dataset", o.dataset, "Dataset file (.odtd)")->required();
  auto* arch = app.add_option("--arch", o.train.arch, "Layers, as below");
  app.add_option("--hidden", o.train.hidden, "Short form: widths of dense layers, e.g. 64,32")
      ->delimiter(',')
      ->excludes(arch);
  app.add_flag("--autoencode", o.train.autoencode,
               "Learn the samples themselves; so where the data has no classes");
  app.add_option(
         "--epochs", o.train.epochs,
         "Passes over the training samples (default 12; with --arch up to 100 for small sets)")
      ->check(CLI::Range(1, 10000));
  app.add_option("--seed", o.train.seed, "Of weights, order and augmentation (default 1)");
  app.add_option("--augment", o.train.augment, "Random training images: shift2,flip");
  app.add_option("--rate", o.train.rate, "Learning rate at the start (default 0.05)");
  app.add_option("--decay", o.train.decay, "Of weights (default 0.001)");
  app.add_option("--validation", o.validation,
                 "Percent of the training samples kept back where the dataset has no held-out "
                 "split")
      ->check(CLI::Range(0.0, 50.0));
  app.add_option("--name", o.train.name, "Of the model, at most 16 bytes");
  app.add_option("-o,--onnx", o.onnx, "QAT ONNX to write")->capture_default_str();
  app.add_option("--image", o.image, "Model image to write");
  app.add_option("--manifest", o.manifest, "Manifest to write");
}

Status train(Options& o, std::ostream& out, std::ostream& log, bool terminal) {
  ODT_TRY(data::check_outputs({o.dataset},
                              {{"-o", o.onnx}, {"--image", o.image}, {"--manifest", o.manifest}}));
  std::string bytes;
  ODT_ASSIGN(bytes, data::read_file(o.dataset, 2 * data::kMaxDatasetBytes));
  auto dataset = data::decode_dataset(bytes);
  if (!dataset.ok())
    return Status(dataset.status().code(),
                  absl::StrCat(o.dataset, ": ", dataset.status().message()));
  bytes = {};
  o.train.validation = static_cast<std::uint32_t>(o.validation * 10 + 0.5);
  compiler::Network net;
  TrainPcFigures figures;
  {
    ProgressLine line(log, terminal, ProgressLine::Elsewhere::kFirstToLast);
    ODT_ASSIGN(net, train_pc(
                        *dataset, o.train,
                        [&](std::uint32_t permille, const auto& message) {
                          line.show_bar(permille, message);
                        },
                        &figures));
  }
  TrainedFiles files;
  ODT_ASSIGN(files, package(net, false));
  ODT_TRY(data::write_files({{"--manifest", o.manifest, files.manifest},
                             {"--image", o.image, files.image},
                             {"-o", o.onnx, files.onnx}}));
  const auto& cal = net.calibration;
  if (net.task == compiler::Task::kClassify)
    out << absl::StrFormat("accuracy  %.2f %%  (%d of %d, int8)\n",
                           100.0 * cal.src_correct / std::max(cal.src_total, 1u), cal.src_correct,
                           cal.src_total);
  else
    out << absl::StrFormat("error     %.3f  (mean square of an output, in steps of int8)\n",
                           figures.mse);
  if (figures.mse_in_units >= 0)
    out << absl::StrFormat("          %.4g  (in units of the %s)\n", figures.mse_in_units,
                           net.task == compiler::Task::kRegress ? "target" : "data");
  std::size_t weights = 0;
  for (const auto& l : net.layers) weights += l.weights.size();
  out << "weights   " << weights << "\nonnx      " << o.onnx << "  " << sha256(files.onnx).hex()
      << "\nmodel     " << sha256(files.image).hex() << "\n";
  for (const auto& warning : files.warnings) out << "warning   " << warning << "\n";
  return absl::OkStatus();
}

}  // namespace

int train_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& log,
                  bool terminal) {
  Options o;
  CLI::App app("Train a quantised model on this computer, without a daemon", "odt-worker train");
  add_options(app, o);
  return run_command(app, args, out, log, [&] { return train(o, out, log, terminal); });
}

}  // namespace odt::worker

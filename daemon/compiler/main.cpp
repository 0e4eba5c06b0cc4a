#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "base/std_output.h"
#include "compiler/c_writer.h"
#include "compiler/cmd_export.h"
#include "compiler/cmd_fit.h"
#include "compiler/compile.h"
#include "compiler/options.h"
#include "compiler/vectors.h"
#include "data/dataset.h"
#include "data/import.h"
#include "data/output_files.h"
#include "odt/odt.h"

namespace {

using odt::compiler::fail;
using odt::compiler::file_name;
using odt::compiler::kMaxFileBytes;

int run_compile(const std::string& in, std::string out, const std::string& manifest_path,
                const std::string& vectors_path, const odt::compiler::CompileOptions& options) {
  if (out.empty()) out = std::filesystem::path(in).replace_extension(".odtm").string();
  const std::string manifest = manifest_path.empty() ? out + ".json" : manifest_path;
  if (auto st = odt::data::check_outputs(
          {in}, {{"-o", out}, {"--manifest", manifest}, {"--vectors", vectors_path}});
      !st.ok())
    return fail(st);
  auto onnx = odt::data::read_file(in, kMaxFileBytes);
  if (!onnx.ok()) return fail(onnx.status());
  auto compiled = odt::compiler::compile(*onnx, file_name(in), options);
  if (!compiled.ok()) return fail(compiled.status());
  std::string vectors;
  if (!vectors_path.empty()) {
    auto text = odt::compiler::write_vectors(*compiled);
    if (!text.ok()) return fail(text.status());
    vectors = *std::move(text);
  }
  if (auto st = odt::data::write_files({{"--manifest", manifest, compiled->manifest},
                                        {"--vectors", vectors_path, vectors},
                                        {"-o", out, compiled->image}});
      !st.ok())
    return fail(st);
  std::cout << odt::compiler::inspect_manifest(compiled->manifest) << "wrote " << out << " and "
            << manifest << "\n";
  return 0;
}

struct COptions {
  std::string folder, data, label_column;
  std::vector<std::string> target_columns;
  std::uint32_t limits[3] = {0, 0, 0};  // train, val, test; 0: all
  std::uint32_t seed = 1;
};

// A dataset file, or a CSV table.
odt::Result<odt::data::Dataset> read_data(const COptions& o) {
  auto bytes = odt::data::read_file(o.data, odt::data::kMaxDatasetBytes);
  if (!bytes.ok()) return bytes.status();
  if (bytes->substr(0, 4) == "ODTD") {
    auto dataset = odt::data::decode_dataset(*bytes);
    if (dataset.ok()) return dataset;
    return odt::Status(dataset.status().code(),
                       file_name(o.data) + ": " + std::string(dataset.status().message()));
  }
  odt::data::ImportRequest request;
  request.format = "csv";
  request.data_path = o.data;
  request.label_column = o.label_column;
  request.target_columns = o.target_columns;
  request.seed = o.seed;
  request.train = o.limits[0];
  request.heldout = o.limits[1];
  request.test = o.limits[2];
  return odt::data::import_dataset(request, [](std::uint32_t, const std::string&) {});
}

int run_c(const std::string& in, const odt::compiler::CompileOptions& options, const COptions& o) {
  auto onnx = odt::data::read_file(in, kMaxFileBytes);
  if (!onnx.ok()) return fail(onnx.status());
  auto compiled = odt::compiler::compile(*onnx, file_name(in), options);
  if (!compiled.ok()) return fail(compiled.status());
  odt::compiler::CData data;
  if (!o.data.empty()) {
    auto dataset = read_data(o);
    if (!dataset.ok()) return fail(dataset.status());
    auto samples =
        odt::compiler::c_data(*dataset, file_name(o.data), compiled->network, o.seed, o.limits);
    if (!samples.ok()) return fail(samples.status());
    data = *std::move(samples);
  }
  auto files = odt::compiler::write_c(*compiled, file_name(in), o.data.empty() ? nullptr : &data);
  if (!files.ok()) return fail(files.status());
  if (auto st = odt::compiler::write_folder(o.folder, *files); !st.ok()) return fail(st);
  std::cout << odt::compiler::inspect_manifest(compiled->manifest) << "wrote";
  for (const auto& f : *files) std::cout << " " << f.name;
  std::cout << " into " << o.folder << "\n";
  return 0;
}

int run_inspect(const std::string& in, const odt::compiler::CompileOptions& options) {
  auto bytes = odt::data::read_file(in, kMaxFileBytes);
  if (!bytes.ok()) return fail(bytes.status());
  if (bytes->substr(0, 4) == "ODTM") {
    auto text = odt::compiler::inspect_image(*bytes, file_name(in));
    if (!text.ok()) return fail(text.status());
    std::cout << *text;
    return 0;
  }
  auto compiled = odt::compiler::compile(*bytes, file_name(in), options);
  if (!compiled.ok()) return fail(compiled.status());
  std::cout << odt::compiler::inspect_manifest(compiled->manifest);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"odtc compiles QAT ONNX files into model images for boards, or C files", "odtc"};
  app.set_version_flag("--version", "odtc " ODT_VERSION " (rules_version " +
                                        std::to_string(ODT_RULES_VERSION) + ")");
  app.require_subcommand(1);
  std::string in, out, manifest, vectors;
  odt::compiler::CompileOptions options;
  auto* compile = app.add_subcommand("compile", "ONNX -> image and manifest");
  compile->add_option("model", in, "QAT ONNX file")->required();
  compile->add_option("-o,--output", out, "image; default: the model's name with .odtm");
  compile->add_option("--manifest", manifest, "manifest; default: the image's name + .json");
  compile->add_option("--vectors", vectors,
                      "golden vectors as JSON: inputs, as the board receives them, logits");
  compile->add_option("--trainable", options.trainable_layers,
                      "trainable layers, counted from the last; 0: all");
  compile->add_option("--name", options.name, "name of the model, at most 16 bytes");
  using odt::compiler::add_arithmetic;
  using odt::compiler::add_task;
  add_task(compile, options.task);
  add_arithmetic(compile, options);
  COptions c_options;
  auto* c = app.add_subcommand("c", "ONNX -> C files for TI's interface (firmware/odt)");
  c->add_option("model", in, "QAT ONNX file")->required();
  c->add_option("--out", c_options.folder, "folder for the files; new, or one that odtc wrote")
      ->required();
  c->add_option(
      "--trainable", options.trainable_layers,
      "trainable layers, counted from the last; 0: all. The others become the frozen part");
  c->add_option("--name", options.name, "name of the model, at most 16 bytes");
  add_task(c, options.task);
  auto* data = c->add_option("--data", c_options.data,
                             "dataset file or CSV table: gives train_data.h and .c");
  c->add_option("--label-column", c_options.label_column, "CSV: name or number of the label column")
      ->needs(data);
  c->add_option("--target-column,--target", c_options.target_columns,
                "CSV: column of a regression's targets; may come again")
      ->allow_extra_args(false)
      ->needs(data);
  c->add_option("--train", c_options.limits[0], "training samples, 0: all")->needs(data);
  c->add_option("--val", c_options.limits[1], "held-out samples, 0: all")->needs(data);
  c->add_option("--test", c_options.limits[2], "test samples, 0: all")->needs(data);
  c->add_option("--seed", c_options.seed, "of the samples' order")->needs(data);
  auto* inspect = app.add_subcommand("inspect", "what a model or an image holds");
  inspect->add_option("file", in, "ONNX file or model image")->required();
  add_task(inspect, options.task);
  add_arithmetic(inspect, options);
  const auto fit = odt::compiler::add_fit(app);
  const auto exported = odt::compiler::add_export(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return odt::finish_output("odtc", app.exit(asked));
  } catch (const CLI::ParseError& e) {
    return odt::compiler::usage(e.what());
  }
  const int code = exported->command->parsed() ? exported->run()
                   : fit->command->parsed()    ? fit->run()
                   : c->parsed()               ? run_c(in, options, c_options)
                   : compile->parsed()         ? run_compile(in, out, manifest, vectors, options)
                                               : run_inspect(in, options);
  return odt::finish_output("odtc", code);
}

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "base/ids.h"
#include "compiler/compile.h"
#include "data/dataset.h"
#include "odt/odt.h"

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

int fail(const odt::Status& status) {
  std::cerr << "odtc: " << status.message() << "\n";
  return 1;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int run_compile(const std::string& in, std::string out, const std::string& manifest_path,
                const odt::compiler::CompileOptions& options) {
  auto onnx = odt::data::read_file(in, kMaxFileBytes);
  if (!onnx.ok()) return fail(onnx.status());
  auto compiled = odt::compiler::compile(*onnx, file_name(in), options);
  if (!compiled.ok()) return fail(compiled.status());
  if (out.empty()) out = in.substr(0, in.rfind('.')) + ".odtm";
  const std::string manifest = manifest_path.empty() ? out + ".json" : manifest_path;
  if (auto st = odt::data::write_file(manifest, compiled->manifest); !st.ok()) return fail(st);
  if (auto st = odt::data::write_file(out, compiled->image); !st.ok()) {
    std::remove(manifest.c_str());
    return fail(st);
  }
  std::cout << odt::compiler::inspect_manifest(compiled->manifest) << "wrote " << out << " and "
            << manifest << "\n";
  return 0;
}

int run_inspect(const std::string& in) {
  auto bytes = odt::data::read_file(in, kMaxFileBytes);
  if (!bytes.ok()) return fail(bytes.status());
  if (bytes->substr(0, 4) == "ODTM") {
    auto text = odt::compiler::inspect_image(*bytes, file_name(in));
    if (!text.ok()) return fail(text.status());
    std::cout << *text;
    return 0;
  }
  auto compiled = odt::compiler::compile(*bytes, file_name(in), {});
  if (!compiled.ok()) return fail(compiled.status());
  std::cout << odt::compiler::inspect_manifest(compiled->manifest);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"odtc compiles QAT ONNX files into model images for boards", "odtc"};
  app.set_version_flag("--version", "odtc " ODT_VERSION " (rules_version " +
                                        std::to_string(ODT_RULES_VERSION) + ")");
  app.require_subcommand(1);
  std::string in, out, manifest;
  odt::compiler::CompileOptions options;
  auto* compile = app.add_subcommand("compile", "ONNX -> image and manifest");
  compile->add_option("model", in, "QAT ONNX file")->required();
  compile->add_option("-o,--output", out, "image; default: the model's name with .odtm");
  compile->add_option("--manifest", manifest, "manifest; default: the image's name + .json");
  compile->add_option("--trainable", options.trainable_layers,
                      "trainable layers, counted from the last; 0: all");
  compile->add_option("--name", options.name, "name of the model, at most 16 bytes");
  auto* inspect = app.add_subcommand("inspect", "what a model or an image holds");
  inspect->add_option("file", in, "ONNX file or model image")->required();
  CLI11_PARSE(app, argc, argv);
  return compile->parsed() ? run_compile(in, out, manifest, options) : run_inspect(in);
}
